"""The inputs for the measurement of proficiency and error: all of them if they are a short list, else a sample."""

import itertools
import math
import zlib
from typing import Any

import numpy as np

from derivations.contract import Initial, UsageError
from derivations.pruning.parameters import Parameters

MOST_INPUTS = 200_000
"""Maximal number of enumerated inputs: a table of some hundred megabytes, evaluated at every saved state."""
Table = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Tokens (S, length) as pattern numbers with the task token first, labels (S,), probabilities (S,)."""


def table(initial: Initial) -> Table:
    """The test inputs of a run.

    For data=single the 2 (d - 2) inputs (y, q), with their probabilities, and with l copies of q for all n - 1 (n - 1
    if that is less); for data=empirical the rows of the table; otherwise `n_test` inputs drawn from `data_seed`, or all
    of them.
    """
    p, c = initial.parameters, initial.constants
    if p.data == "single":
        return enumerated(p, c["pi"])
    if p.data == "empirical":
        rows = np.asarray(c["tokens"], np.int64)
        return rows, np.asarray(c["labels"], float), np.full(len(rows), 1 / len(rows))
    if p.n_test == "all":
        return every_input(p, c["pi"])
    rng = np.random.default_rng([zlib.crc32(b"test inputs"), p.data_seed])
    tokens, labels = draw(p, c["pi"], rng, p.n_test)
    return tokens, labels, np.full(len(labels), 1 / len(labels))


def fraction(chance: np.ndarray, happens: np.ndarray) -> Any:
    """The probability of inputs (last axis) with some property: exactly 0 or 1 if all agree."""
    yes, no = (chance * happens).sum(-1), (chance * ~happens).sum(-1)
    return yes / (yes + no)


def enumerated(parameters: Parameters, pi: np.ndarray) -> Table:
    """All inputs (y, q) of data=single."""
    N = parameters.N
    length = min(parameters.l, parameters.n - 1)
    q = np.tile(np.arange(N), 2)
    labels = np.repeat([1.0, -1.0], N)
    task = np.where(labels > 0, 0, 1)
    tokens = np.concatenate([task[:, None], np.repeat(q[:, None] + 2, length, axis=1)], axis=1)
    return tokens.astype(np.int64), labels, np.tile(pi, 2) / 2


def every_input(parameters: Parameters, pi: np.ndarray) -> Table:
    """All inputs of data=iid, distinct or multi_copy with their chances: irrelevant tokens as sets, orders counted.

    Raises `UsageError` for more than `MOST_INPUTS`.
    """
    p = parameters
    drawn = p.copies if p.data == "multi_copy" else p.n - 1
    count = 2 * (math.comb(p.N, drawn) if p.data == "distinct" else math.comb(p.N + drawn - 1, drawn))
    if count > MOST_INPUTS:
        raise UsageError(
            f"n_test=all would enumerate {count:.3g} inputs ({drawn} irrelevant tokens of {p.N} patterns), but at most "
            f"{MOST_INPUTS} are: draw some, as n_test=4000, or take smaller n or d"
        )
    kinds = itertools.combinations if p.data == "distinct" else itertools.combinations_with_replacement
    q = np.array(list(kinds(range(p.N), drawn)), dtype=np.int64).reshape(-1, drawn)
    if p.data == "distinct":
        chance = np.full(len(q), 1 / len(q))
    else:  # the multinomial law of the counts of each pattern
        copies = (q[:, :, None] == np.arange(p.N)).sum(axis=1)
        orders = math.factorial(drawn) / np.vectorize(math.factorial, otypes=[float])(copies).prod(axis=1)
        chance = orders * np.prod(np.where(copies > 0, pi, 1.0) ** copies, axis=1)
    if p.data == "multi_copy":
        q = np.repeat(q, min(p.l, p.n - 1), axis=1)
    labels = np.repeat([1.0, -1.0], len(q))
    task = np.where(labels > 0, 0, 1)
    return np.concatenate([task[:, None], np.tile(q + 2, (2, 1))], axis=1), labels, np.tile(chance, 2) / 2


def draw(parameters: Parameters, pi: np.ndarray, rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Random inputs of the distribution of the data: tokens (count, length), labels (count,).

    For data=multi_copy each of the c patterns has l copies, because more cannot be selected.
    """
    p = parameters
    labels = np.where(rng.random(count) < 0.5, 1.0, -1.0)
    if p.data == "distinct":
        q = np.argsort(rng.random((count, p.N)), axis=1)[:, : p.n - 1]
    else:
        number = {"single": 1, "multi_copy": p.copies}.get(p.data, p.n - 1)
        q = np.minimum(np.searchsorted(np.cumsum(pi), rng.random((count, number)), side="right"), p.N - 1)
    if p.data in ("single", "multi_copy"):
        q = np.repeat(q, min(p.l, p.n - 1), axis=1)
    task = np.where(labels > 0, 0, 1)[:, None]
    return np.concatenate([task, q + 2], axis=1).astype(np.int64), labels


def law_of_slope(p: Parameters) -> str:
    """The distribution of the tokens in the slope: under the hinge a table of inputs with masked rows."""
    return "empirical" if p.loss == "hinge" and p.data != "single" else p.data


def validity(p: Parameters) -> str:
    """Description of the inputs in the mean of a step."""
    if law_of_slope(p) == p.data or p.n_test == "all":
        nodes = f"; inputs by {p.nodes} quadrature nodes" if law_of_slope(p) == "iid" else ""
        return f"exact population descent: the mean over infinitely many fresh samples in every step{nodes}"
    return (
        f"descent of the mean hinge over {p.n_test} inputs drawn from data_seed, the same in every step; exact with "
        "n_test=all"
    )

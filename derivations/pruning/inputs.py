"""The inputs on which proficiency and error are measured: all of them where they are a short list, else a sample."""

import zlib
from typing import Any

import numpy as np

from derivations.contract import Initial
from derivations.pruning.parameters import Parameters

Table = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Tokens (S, length) as pattern numbers with the task token first, labels (S,), chances (S,)."""


def table(initial: Initial) -> Table:
    """The test inputs of a run.

    For data=single the 2 (d - 2) inputs (y, q), with their chances, l copies of q standing for all n - 1 (n - 1 where
    fewer); for data=empirical the rows of the table; otherwise `n_test` inputs drawn from `data_seed`.
    """
    p, c = initial.parameters, initial.constants
    if p.data == "single":
        return enumerated(p, c["pi"])
    if p.data == "empirical":
        rows = np.asarray(c["tokens"], np.int64)
        return rows, np.asarray(c["labels"], float), np.full(len(rows), 1 / len(rows))
    rng = np.random.default_rng([zlib.crc32(b"test inputs"), p.data_seed])
    tokens, labels = draw(p, c["pi"], rng, p.n_test)
    return tokens, labels, np.full(len(labels), 1 / len(labels))


def fraction(chance: np.ndarray, happens: np.ndarray) -> Any:
    """The chance-weighted share of inputs (last axis) where something happens: exactly 0 or 1 where all agree."""
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


def draw(parameters: Parameters, pi: np.ndarray, rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs drawn from the law of the data: tokens (count, length), labels (count,).

    For data=multi_copy each of the c patterns stands with l copies, which is all that can be selected.
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

"""The data of the paper: patterns by their Gram matrix, and samples as counts of patterns, exactly or as a pool.

A sample has one class-discriminative patch and n - 1 irrelevant ones whose distribution is the same in all classes;
positions carry no information. Patterns are numbered o_1 = 0, .., o_c = c - 1, q_1 = c, ...; labels are y = +1 (o_1)
and y = -1 (o_2) under the logistic loss, and y = i (o_i) from 1 to c under the softmax loss. Source: Chowdhury et al.
2023, Section 4.2 and, for c classes, Appendix M.
"""

import math
import zlib

import numpy as np

from derivations.contract import UsageError
from derivations.pmoe.parameters import Parameters
from derivations.vectors import root

COINCIDE = 1e-9
"""Unit vectors of a larger inner product than one minus this are the same pattern."""


def generator(seed: int, purpose: str) -> np.random.Generator:
    """A separate random stream for one purpose."""
    return np.random.default_rng([seed, zlib.crc32(purpose.encode())])


def pairs(p: Parameters) -> np.ndarray:
    """<o_i, q> of every irrelevant pattern, (p, c): b1 and b2 for o1 and o2, and 0 for those of other classes."""
    found = np.zeros((p.p, p.classes))
    for column, name in enumerate(("b1", "b2")):
        values = getattr(p, name)
        if len(values) not in (0, 1, p.p):
            raise UsageError(f"{name} needs one value or p = {p.p} of them, but has {len(values)}")
        if values:
            found[:, column] = values if len(values) == p.p else values[0]
    return found


def tilt_of(p: Parameters, gram: np.ndarray) -> np.ndarray:
    """<o1 - o2, q> of every irrelevant pattern (p,), which determines its rank for the routers of two classes."""
    return gram[p.classes :, 0] - gram[p.classes :, 1]


def class_vectors(p: Parameters) -> np.ndarray:
    """Unit vectors o_1..o_c of d dimensions with the products delta_d, (c, d).  Raises `UsageError` for a small d."""
    found = np.zeros((p.classes, p.d))
    if p.classes == 2:
        found[0, 0], found[1, 0] = 1.0, p.delta_d
        if p.d > 1:
            found[1, 1] = math.sqrt(1 - p.delta_d**2)
        return found
    spread = root(class_gram(p))
    used = spread[:, spread.any(axis=0)]
    span = used.shape[1]
    if p.d < span:
        raise UsageError(f"the patterns of {p.classes} classes span {span} dimensions, but d = {p.d}")
    found[:, :span] = used
    return found


def class_gram(p: Parameters) -> np.ndarray:
    """The Gram matrix (c, c) of o_1..o_c."""
    return np.where(np.eye(p.classes) > 0, 1.0, p.delta_d)


def gram_of(p: Parameters) -> np.ndarray:
    """The Gram matrix (P, P) of the patterns o_1..o_c, q_1..q_p, with a diagonal of exactly 1.

    q_i = [o_1..o_c] Gd^-1 b_i + the rest of its norm along a separate axis, or in random directions orthogonal to all
    o. Raises `UsageError` if b_i' Gd^-1 b_i > 1 (no unit vector has these products) or two patterns coincide.
    """
    b, c = pairs(p), p.classes
    if p.irrelevant == "random" and not p.b1 and not p.b2:
        x = generator(p.data_seed, "patterns").standard_normal((p.p, p.d))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        x = np.vstack([class_vectors(p), x])
        gram = x @ x.T
    else:
        inside, found = _spanned(p, b)
        rest = np.eye(p.p)
        if p.irrelevant == "random" and p.p:
            x = generator(p.data_seed, "patterns").standard_normal((p.p, max(p.d - c, 1)))
            x /= np.linalg.norm(x, axis=1, keepdims=True)
            rest = x @ x.T
        left = np.sqrt(np.maximum(1 - np.diag(found), 0.0))
        gram = np.eye(p.width)
        gram[:c, :c] = inside
        gram[c:, :c], gram[:c, c:] = b, b.T
        gram[c:, c:] = found + left[:, None] * rest * left
    np.fill_diagonal(gram, 1.0)
    require_gram(gram, c)
    return gram


def _spanned(p: Parameters, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    inside = class_gram(p)
    inverse = np.linalg.pinv(inside, hermitian=True)
    if p.p and np.abs(b @ (np.eye(p.classes) - inside @ inverse)).max(initial=0.0) > 1e-9:
        raise UsageError(f"at delta_d = {p.delta_d:g} an irrelevant pattern has b2 = -b1: other products do not exist")
    found = b @ inverse @ b.T
    if p.p and np.diag(found).max() > 1 + 1e-12:
        worst = int(np.argmax(np.diag(found)))
        raise UsageError(
            f"no unit vector has the products {b[worst].tolist()} with o1, o2, .. at delta_d = {p.delta_d:g}: "
            "b' Gd^-1 b must be at most 1"
        )
    return inside, found


def require_gram(gram: np.ndarray, classes: int = 2) -> None:
    """Raise `UsageError` unless `gram` is a Gram matrix of different patterns, none of them zero."""
    if gram.ndim != 2 or gram.shape[0] != gram.shape[1] or gram.shape[0] < classes:
        names = ", ".join(f"o{i}" for i in range(1, classes + 1))
        raise UsageError(f"the Gram matrix must be square, of {names} and the irrelevant patterns, not {gram.shape}")
    if not np.isfinite(gram).all() or np.abs(gram - gram.T).max() > 1e-9 * max(1.0, np.abs(gram).max()):
        raise UsageError("the Gram matrix must be symmetric and finite")
    norms = np.diag(gram)
    if (norms <= 0).any():
        raise UsageError(f"pattern {int(np.argmin(norms))} is zero: every pattern needs a direction")
    low = float(np.linalg.eigvalsh(gram).min())
    if low < -1e-9 * float(norms.max()):
        raise UsageError(f"the Gram matrix is not one of vectors: its least eigenvalue is {low:.3g}")
    apart = norms[:, None] + norms[None, :] - 2 * gram + 2 * norms.max() * np.eye(len(gram))
    if apart.min() <= 2 * COINCIDE * norms.max():
        i, j = np.unravel_index(int(apart.argmin()), gram.shape)
        raise UsageError(f"patterns {min(i, j)} and {max(i, j)} coincide: all patterns must differ")


def probabilities(p: Parameters) -> np.ndarray:
    """The probabilities pi (p,) of the irrelevant patterns."""
    return np.array(p.pi, float) / sum(p.pi) if p.pi else np.full(p.p, 1 / max(p.p, 1))


def groups(p: Parameters) -> list[tuple[int, np.ndarray]]:
    """The independent parts of a composition: (number of patches, probabilities (p,)), each a multinomial."""
    pi = probabilities(p)
    if p.composition == "multinomial":
        return [(p.n - 1, pi)] if p.n > 1 else []
    near = np.abs(pairs(p)[:, :2] @ np.array([1.0, -1.0])) > (1 - p.delta_d) / 2
    if p.irrelevant == "random" and not p.b1 and not p.b2:
        near = np.abs(tilt_of(p, gram_of(p))) > (1 - p.delta_d) / 2
    parts = []
    for count, member, name in ((p.close, near, "close"), (p.n - 1 - p.close, ~near, "far")):
        share = np.where(member, pi, 0.0)
        if count and share.sum() <= 0:
            raise UsageError(f"composition=bounded_close asks for {count} {name} patches, but no pattern is {name}")
        if count:
            parts.append((count, share / share.sum()))
    return parts


def multisets(total: int, parts: int) -> np.ndarray:
    """All ways to write `total` as `parts` non-negative integers, (C(total + parts - 1, parts - 1), parts)."""
    if parts == 0:
        return np.zeros((1 if total == 0 else 0, 0), int)
    found = np.zeros((1, 1), int) + np.arange(total + 1)[:, None] if parts > 1 else np.array([[total]])
    for column in range(1, parts):
        left = total - found.sum(axis=1)
        if column == parts - 1:
            found = np.hstack([found, left[:, None]])
        else:
            repeat = np.repeat(np.arange(len(found)), left + 1)
            start = np.concatenate([[0], np.cumsum(left + 1)[:-1]])
            found = np.hstack([found[repeat], (np.arange(len(repeat)) - start[repeat])[:, None]])
    return found


def irrelevant_law(p: Parameters) -> tuple[np.ndarray, np.ndarray] | None:
    """All compositions of the irrelevant patches (C, p) with their probabilities; None if they are too many."""
    if p.composition == "deterministic":
        return np.array(p.counts, int).reshape(1, p.p), np.ones(1)
    counts, chance = np.zeros((1, p.p), int), np.ones(1)
    for total, pi in groups(p):
        support = np.flatnonzero(pi > 0)
        if math.comb(total + len(support) - 1, max(len(support) - 1, 0)) * len(counts) > p.exact:
            return None
        part = multisets(total, len(support))
        logs = math.lgamma(total + 1) - _log_factorials(part).sum(axis=1) + part @ np.log(pi[support])
        wide = np.zeros((len(part), p.p), int)
        wide[:, support] = part
        counts = (counts[:, None] + wide[None]).reshape(-1, p.p)
        chance = (chance[:, None] * np.exp(logs)[None]).reshape(-1)
    return counts, chance


def _log_factorials(x: np.ndarray) -> np.ndarray:
    table = np.array([math.lgamma(k + 1) for k in range(int(x.max(initial=0)) + 1)])
    return table[x]


def sample(p: Parameters, rng: np.random.Generator, size: int, balanced: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """`size` samples: counts (size, P) and labels (size,); with `balanced` equally many of each class (within one)."""
    c, number = p.classes, rng.random(size)
    own = np.where(number < 0.5, 0, 1) if c == 2 else np.floor(number * c).astype(int)
    if balanced:
        own = np.arange(size) % c
    counts = np.zeros((size, p.width), int)
    if p.composition == "deterministic":
        counts[:, c:] = np.array(p.counts, int).reshape(1, p.p)
    elif p.p:
        for total, pi in groups(p):
            counts[:, c:] += rng.multinomial(total, pi, size=size)
    counts[np.arange(size), own] = 1
    return counts, labels_of(p, own)


def labels_of(p: Parameters, own: np.ndarray) -> np.ndarray:
    """The labels of the classes with numbers `own` (from 0): +1 and -1 under the logistic loss, else 1 to c."""
    return own + 1.0 if p.softmax else np.where(own == 0, 1.0, -1.0)


def population(p: Parameters) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The rows (counts (C, P), label (C,), weight (C,)) of the population, for expectations.

    Exact by enumeration up to `exact` compositions; otherwise `pool` random draws of the irrelevant part from
    `data_seed`, each in all classes.
    """
    law = irrelevant_law(p)
    if law is None:
        counts, _ = sample(p, generator(p.data_seed, "pool"), p.pool)
        chosen, repeats = np.unique(counts[:, p.classes :], axis=0, return_counts=True)
        law = chosen, repeats / p.pool
    counts, chance = law
    classes = [np.hstack([np.tile(row, (len(counts), 1)), counts]) for row in np.eye(p.classes, dtype=int)]
    labels = labels_of(p, np.repeat(np.arange(p.classes), len(counts)))
    return np.vstack(classes).astype(float), labels, np.tile(chance, p.classes) / p.classes


def empirical(index: np.ndarray, y: np.ndarray, patterns: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The rows of a training set of pattern numbers `index` (N, n) with labels `y` (N,), with equal samples merged."""
    counts = np.stack([(index == z).sum(axis=1) for z in range(patterns)], axis=1)
    rows, repeats = np.unique(np.hstack([counts, y[:, None]]), axis=0, return_counts=True)
    return rows[:, :-1].astype(float), rows[:, -1].astype(float), repeats / len(y)

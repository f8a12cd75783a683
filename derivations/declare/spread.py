"""Starts on inputs with several eigenspaces: one Gram matrix for the parts of all vectors in each of them."""

import itertools
from typing import Any

import numpy as np

from derivations.contract import UsageError
from derivations.declare import spectra
from derivations.declare.declaration import Declaration
from derivations.vectors import root

ZERO = 1e-12
"""Eigenvalues of a Gram matrix below this part of the largest are 0."""


def teacher_blocks(parameters: Any, gram: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the Gram matrices (L, t, t) of the parts of the teacher's vectors, whose sum is `gram` (t, t).

    They are parts of it as the declaration spreads them, or those of directions drawn with `rng`.
    """
    blocks = spectra.blocks(parameters)
    assert blocks is not None
    if blocks.content is not None:
        return blocks.content[:, None, None] * gram
    t = len(gram)
    drawn = np.array([(x := _below(t, int(m), rng)) @ x.T for m in blocks.dimension])
    turn = root(gram) @ np.linalg.inv(np.linalg.cholesky(drawn.sum(0)))
    return turn @ drawn @ turn.T


def draw(
    parameters: Any, teachers: np.ndarray, norms: np.ndarray, partners: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Return Gram matrices (L, n, n) of students and teachers, in dimensions d_l without a d-vector.

    Students are random directions of the given `norms`, or have the declared overlap with the teachers numbered by
    `partners`, and a rest that is orthogonal to all else and spread in proportion to the shares.
    """
    blocks = spectra.blocks(parameters)
    assert blocks is not None
    s, overlap = len(norms), parameters.overlap
    own = [factor(gram) for gram in teachers]
    if overlap is None:
        parts = [_random(s, w.shape[1], int(m), rng) for w, m in zip(own, blocks.dimension, strict=True)]
        length = np.sqrt(sum((part**2).sum(1) for part in parts))
    else:
        size = np.sqrt(np.einsum("lii->i", teachers))
        rest = np.sqrt((1 - overlap**2) * blocks.share)
        parts = [
            np.hstack([overlap * (w / size[:, None])[partners], x * np.eye(s)]) for w, x in zip(own, rest, strict=True)
        ]
        length = np.ones(s)
    made = []
    for part, w in zip(parts, own, strict=True):
        whole = np.hstack([w, np.zeros((len(w), part.shape[1] - w.shape[1]))])
        every = np.vstack([part * (norms / length)[:, None], whole])
        made.append(every @ every.T)
    found = np.array(made)
    found[:, s:, s:] = teachers
    return found


def factor(gram: np.ndarray) -> np.ndarray:
    """Return vectors (n, rank) with a Gram matrix (n, n), in as few dimensions as they have."""
    values, vectors = np.linalg.eigh(gram)
    kept = values > ZERO * max(values[-1], 0.0)
    return vectors[:, kept] * np.sqrt(values[kept])


def _random(s: int, rank: int, m: int, rng: np.random.Generator) -> np.ndarray:
    """Standard normal vectors (s, rank + ..) of dimension m: along `rank` axes, then what is outside of these.

    Where m is below the rank (vectors that stand for an average over signs) the mean squared length is m all the same.
    """
    along = rng.normal(size=(s, rank)) * np.sqrt(min(1.0, m / max(rank, 1)))
    return np.hstack([along, _below(s, max(m - rank, 0), rng)])


def _below(s: int, m: int, rng: np.random.Generator) -> np.ndarray:
    """Vectors (s, min(s, m)) with the Gram matrix of s standard normal vectors of dimension m (Bartlett)."""
    r = min(s, m)
    found = np.tril(rng.normal(size=(s, r)), -1)
    found[np.arange(r), np.arange(r)] = np.sqrt(rng.chisquare(m - np.arange(r))) if r else 0.0
    return found


def of_weights(parameters: Any, rows: np.ndarray) -> np.ndarray:
    """Return the Gram matrices (L, n, n) of weights (n, d) in the coordinates of the eigenspaces, in their order."""
    blocks = spectra.blocks(parameters)
    assert blocks is not None
    ends = np.concatenate([[0], np.cumsum(blocks.dimension)]).tolist()
    return np.array([rows[:, a:b] @ rows[:, a:b].T for a, b in itertools.pairwise(ends)])


def require_declared(declared: Declaration) -> None:
    """Raise `UsageError` for a unit that has no meaning on inputs with eigenvalues."""
    for group in declared.groups:
        if group.unit.calls("wick"):
            raise UsageError(
                "wick(k, w) is a Wick power where |w|^2 is the variance of its field, which it is not on [inputs]; "
                "write the polynomial, such as w^2 - 1"
            )

"""Starts on inputs with several eigenspaces: one Gram matrix for the parts of all vectors in each of them."""

from typing import Any

import numpy as np

from derivations.declare import data, spectra
from derivations.vectors import grams_by_block, root, thin_root


def teacher_blocks(parameters: Any, gram: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the Gram matrices (L, t, t) of the parts of the teacher's vectors, whose sum is `gram` (t, t).

    They are parts of it as the declaration spreads them, or those of directions drawn with `rng`.
    """
    blocks = spectra.blocks(parameters)
    assert blocks is not None
    given = data.teacher(parameters.declaration.inputs)
    if given is not None:
        return grams_by_block(given, blocks.dimension)
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
    taught = [thin_root(gram) for gram in teachers]
    if overlap is None:
        parts = [_random(s, w.shape[1], int(m), rng) for w, m in zip(taught, blocks.dimension, strict=True)]
        length = np.sqrt(sum((part**2).sum(1) for part in parts))
    else:
        size = np.sqrt(np.einsum("lii->i", teachers))
        rest = np.sqrt((1 - overlap**2) * blocks.share)
        parts = [
            np.hstack([overlap * (w / size[:, None])[partners], x * np.eye(s)])
            for w, x in zip(taught, rest, strict=True)
        ]
        length = np.ones(s)
    grams = []
    for part, w in zip(parts, taught, strict=True):
        widened = np.hstack([w, np.zeros((len(w), part.shape[1] - w.shape[1]))])
        vectors = np.vstack([part * (norms / length)[:, None], widened])
        grams.append(vectors @ vectors.T)
    gram = np.array(grams)
    gram[:, s:, s:] = teachers
    return gram


def _random(s: int, rank: int, m: int, rng: np.random.Generator) -> np.ndarray:
    """Standard normal vectors (s, rank + ..) of dimension m: along `rank` axes, then what is outside of these.

    Where m is below the rank (vectors that stand for an average over signs) the mean squared length is m all the same.
    """
    along = rng.normal(size=(s, rank)) * np.sqrt(min(1.0, m / max(rank, 1)))
    return np.hstack([along, _below(s, max(m - rank, 0), rng)])


def _below(s: int, m: int, rng: np.random.Generator) -> np.ndarray:
    """Vectors (s, min(s, m)) with the Gram matrix of s standard normal vectors of dimension m (Bartlett)."""
    r = min(s, m)
    triangle = np.tril(rng.normal(size=(s, r)), -1)
    triangle[np.arange(r), np.arange(r)] = np.sqrt(rng.chisquare(m - np.arange(r))) if r else 0.0
    return triangle

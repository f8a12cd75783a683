"""Starts on inputs with eigenspaces or clusters: a Gram matrix for the parts of all vectors in each eigenspace.

A named mean of norm nu and cosines c with the teacher's vectors w_j is m = nu (sum_j a_j w_j + b e), P a = c |w| with
their Gram matrix P, b^2 = 1 - a.P a, and e a unit vector that is orthogonal to all teachers and to that of other means.
"""

from typing import Any

import numpy as np

from derivations.contract import UsageError
from derivations.declare import data, mixture, spectra
from derivations.declare.declaration import Mean
from derivations.vectors import grams_by_block, root, thin_root

ROUNDING = 1e-9
"""How far below 0 a squared length may be."""


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


def with_means(parameters: Any, teachers: np.ndarray) -> np.ndarray:
    """Return the Gram matrices (L, t + N, t + N) of the parts of teachers, of which (L, t, t) are given, and means.

    Raises `UsageError` for cosines or shares that belong to no vectors.
    """
    blocks, found = spectra.blocks(parameters), mixture.mixture(parameters)
    assert blocks is not None and found is not None
    means = parameters.declaration.inputs.means
    t, gram = teachers.shape[-1], teachers.sum(0)
    along = np.zeros((len(means), t))
    rest = np.zeros((len(blocks.share), len(means)))
    for k, mean in enumerate(means):
        if mean.teacher:
            along[k] = _coefficients(mean, gram)
        left = 1 - along[k] @ gram @ along[k]
        if left < -ROUNDING:
            raise UsageError(
                f"the mean {mean.name} cannot have the cosines {list(mean.teacher)} with the teacher's vectors"
            )
        rest[:, k] = _outside(mean, np.einsum("i,lij,j->l", along[k], teachers, along[k]), left, blocks.share)
    along *= found.norm[:, None]
    rows = np.vstack([np.eye(t), along])
    whole = rows @ teachers @ rows.T
    whole[:, np.arange(t, t + len(means)), np.arange(t, t + len(means))] += np.maximum(rest, 0.0) * found.norm**2
    return whole


def _coefficients(mean: Mean, gram: np.ndarray) -> np.ndarray:
    """The coefficients of the teacher's vectors in a mean of norm 1."""
    if len(mean.teacher) != len(gram):
        raise UsageError(f"the mean {mean.name} has cosines with {len(mean.teacher)} teacher vectors, but there are "
                         f"{len(gram)}")  # fmt: skip
    return np.linalg.lstsq(gram, np.array(mean.teacher) * np.sqrt(np.diag(gram)), rcond=None)[0]


def _outside(mean: Mean, inside: np.ndarray, left: float, share: np.ndarray) -> np.ndarray:
    """The squared length of a mean of norm 1 in every block that is not along the teachers, (L,)."""
    if not mean.spread:
        return max(left, 0.0) * share
    if len(mean.spread) != len(share):
        raise UsageError(f"the mean {mean.name} has {len(mean.spread)} shares, but the inputs have {len(share)} blocks")
    found = np.array(mean.spread) - inside
    if found.min() < -ROUNDING:
        raise UsageError(
            f"block {found.argmin() + 1} has {inside[found.argmin()]:.3g} of the squared norm of the mean "
            f"{mean.name} along the teacher already, more than its share {mean.spread[found.argmin()]:.3g}"
        )
    return found


def draw(
    parameters: Any, teachers: np.ndarray, norms: np.ndarray, partners: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Return Gram matrices (L, n, n) of students, teachers and means, in dimensions d_l without a d-vector.

    Students are random directions of the given `norms`, or have the declared overlap with the teachers numbered by
    `partners`, and a rest that is orthogonal to all else and spread in proportion to the shares.
    """
    blocks = spectra.blocks(parameters)
    assert blocks is not None
    s, overlap = len(norms), mixture.overlap(parameters)
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

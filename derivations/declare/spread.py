"""Starts on inputs with eigenspaces or clusters: one Gram matrix of all vectors for each eigenspace.

A named mean of norm nu and cosines c with the teacher's vectors w_j is m = nu (sum_j a_j w_j + b e), with P a = c |w|,
their Gram matrix P, b^2 = 1 - a.P a, and a unit vector e orthogonal to all teachers and to the vectors e of other
means.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract import UsageError
from derivations.declare import array_files, classes, data, mixture, spectra
from derivations.declare.array_files import ArrayFile
from derivations.declare.declaration import MEAN, Declaration, Mean
from derivations.vectors import grams_by_block, root, thin_root

ROUNDING = 1e-9
"""Tolerance for squared lengths below 0."""


def fixed_blocks(parameters: Any, gram: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the Gram matrices (L, t + N, t + N) of the parts of the teacher's vectors and the named means.

    Those of the teacher sum to `gram` (t, t). They are divided as the declaration states, or are those of directions
    drawn with `rng`. Means of a user's samples have overlaps by their coordinates with a teacher from a file or in
    random directions. Any other teacher is orthogonal to them in every block.
    """
    blocks, inputs = spectra.blocks(parameters), parameters.declaration.inputs
    assert blocks is not None
    taught, means = data.teacher(inputs), classes.named_means(inputs)
    if means is None:
        parts = _teachers(blocks, gram, taught, rng)
        return _with_means(parameters, parts) if inputs.means else parts
    if taught is not None or not len(gram):
        return grams_by_block(means if taught is None else np.vstack([taught, means]), blocks.dimension)
    mean_grams = grams_by_block(means, blocks.dimension)
    if blocks.content is None:
        return _drawn(gram, mean_grams, blocks.dimension, rng)
    t = len(gram)
    grams = np.zeros((len(mean_grams), t + len(means), t + len(means)))
    grams[:, :t, :t], grams[:, t:, t:] = blocks.content[:, None, None] * gram, mean_grams
    return grams


def _teachers(
    blocks: spectra.Blocks, gram: np.ndarray, vectors: np.ndarray | None, rng: np.random.Generator
) -> np.ndarray:
    """The Gram matrices (L, t, t) of the parts of the teacher's vectors; `vectors` (t, d) may contain the vectors."""
    if len(blocks.share) == 1:
        return gram[None]
    if vectors is not None:
        return grams_by_block(vectors, blocks.dimension)
    if blocks.content is not None:
        return blocks.content[:, None, None] * gram
    return _drawn(gram, np.zeros((len(blocks.share), 0, 0)), blocks.dimension, rng)


def _drawn(gram: np.ndarray, mean_grams: np.ndarray, dimension: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Gram matrices (L, t + N, t + N) of the parts of random vectors with Gram matrix (t, t), and of N known vectors.

    `mean_grams` (L, N, N) are those of the known vectors.
    """
    t, n = len(gram), mean_grams.shape[-1]
    parts = []
    for mean_rows, m in zip(map(thin_root, mean_grams), dimension.tolist(), strict=True):
        random_rows = _random(t, mean_rows.shape[1], m, rng)
        rows = np.vstack(
            [random_rows, np.hstack([mean_rows, np.zeros((n, random_rows.shape[1] - mean_rows.shape[1]))])]
        )
        parts.append(rows @ rows.T)
    grams, turn = np.array(parts), np.eye(t + n)
    turn[:t, :t] = root(gram) @ np.linalg.inv(np.linalg.cholesky(grams[:, :t, :t].sum(0)))
    grams = turn @ grams @ turn.T
    grams[:, t:, t:] = mean_grams
    return grams


def with_given(declared: Declaration, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the weights of an initial file, completed with the teacher and the means of other files.

    All are in the coordinates of the file; `data.rotated` converts them to those of theory.
    """
    completed, inputs = dict(arrays), declared.inputs
    has_students = any(group.named(slot) in completed for group in declared.students for slot in group.slots)
    if inputs is None or not has_students:
        return completed
    slots = [(group, slot) for group in declared.teachers for slot in group.slots]
    if isinstance(inputs.spread, ArrayFile) and len(slots) == 1:
        group, slot = slots[0]
        completed.setdefault(group.named(f"{slot}_star"), np.atleast_2d(array_files.values(inputs.spread)))
    means, basis = classes.named_means(inputs), data.basis(inputs)
    if means is not None and basis is not None:
        columns = np.zeros((len(means), len(basis.varying)))
        columns[:, basis.varying] = means @ basis.vectors.T
        completed.setdefault(f"{MEAN}_m_star", columns)
    return completed


def _with_means(parameters: Any, teachers: np.ndarray) -> np.ndarray:
    """The Gram matrices (L, t + N, t + N) of the parts of means and of teachers, whose matrices are (L, t, t).

    Raises `UsageError` for cosines or shares that no vectors can have.
    """
    blocks, law = spectra.blocks(parameters), mixture.mixture(parameters)
    assert blocks is not None and law is not None
    means = parameters.declaration.inputs.means
    t, gram = teachers.shape[-1], teachers.sum(0)
    coefficients = np.zeros((len(means), t))
    orthogonal = np.zeros((len(blocks.share), len(means)))
    for k, mean in enumerate(means):
        if mean.teacher:
            coefficients[k] = _coefficients(mean, gram)
        left = 1 - coefficients[k] @ gram @ coefficients[k]
        if left < -ROUNDING:
            raise UsageError(
                f"the mean {mean.name} cannot have the cosines {list(mean.teacher)} with the teacher's vectors"
            )
        orthogonal[:, k] = _outside(
            mean, np.einsum("i,lij,j->l", coefficients[k], teachers, coefficients[k]), left, blocks.share
        )
    coefficients *= law.norm[:, None]
    rows = np.vstack([np.eye(t), coefficients])
    grams = rows @ teachers @ rows.T
    grams[:, np.arange(t, t + len(means)), np.arange(t, t + len(means))] += np.maximum(orthogonal, 0.0) * law.norm**2
    return grams


def _coefficients(mean: Mean, gram: np.ndarray) -> np.ndarray:
    """The coefficients of the teacher's vectors in a mean of norm 1."""
    if len(mean.teacher) != len(gram):
        raise UsageError(f"the mean {mean.name} has cosines with {len(mean.teacher)} teacher vectors, but there are "
                         f"{len(gram)}")  # fmt: skip
    return np.linalg.lstsq(gram, np.array(mean.teacher) * np.sqrt(np.diag(gram)), rcond=None)[0]


def _outside(mean: Mean, parallel: np.ndarray, left: float, share: np.ndarray) -> np.ndarray:
    """The squared length (L,) of a mean of norm 1 in every block, orthogonal to the teachers."""
    if not mean.spread:
        return max(left, 0.0) * share
    if len(mean.spread) != len(share):
        raise UsageError(f"the mean {mean.name} has {len(mean.spread)} shares, but the inputs have {len(share)} blocks")
    orthogonal = np.array(mean.spread) - parallel
    if orthogonal.min() < -ROUNDING:
        raise UsageError(
            f"block {orthogonal.argmin() + 1} has {parallel[orthogonal.argmin()]:.3g} of the squared norm of the mean "
            f"{mean.name} along the teacher already, more than its share {mean.spread[orthogonal.argmin()]:.3g}"
        )
    return orthogonal


def draw(
    parameters: Any, teachers: np.ndarray, norms: np.ndarray, partners: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Return Gram matrices (L, n, n) of students, teachers and means in dimensions d_l, without vectors of dimension d.

    Students are random directions with the given `norms`, or have the declared overlap with the teachers numbered by
    `partners`. The rest of such a student is orthogonal to all other vectors and divided in proportion to the shares.
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
        orthogonal = np.sqrt((1 - overlap**2) * blocks.share)
        parts = [
            np.hstack([overlap * (w / size[:, None])[partners], x * np.eye(s)])
            for w, x in zip(taught, orthogonal, strict=True)
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
    """Standard normal vectors (s, rank + ..) of dimension m: first along `rank` axes, then outside their span.

    If m is below the rank (vectors that represent an average over signs) the mean squared length is still m.
    """
    parallel = rng.normal(size=(s, rank)) * np.sqrt(min(1.0, m / max(rank, 1)))
    return np.hstack([parallel, _below(s, max(m - rank, 0), rng)])


def _below(s: int, m: int, rng: np.random.Generator) -> np.ndarray:
    """Vectors (s, min(s, m)) with the Gram matrix of s standard normal vectors of dimension m (Bartlett)."""
    r = min(s, m)
    triangle = np.tril(rng.normal(size=(s, r)), -1)
    triangle[np.arange(r), np.arange(r)] = np.sqrt(rng.chisquare(m - np.arange(r))) if r else 0.0
    return triangle

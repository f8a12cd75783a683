"""Classes of a user's samples: clusters of the Gaussian theory with the mean and the variances of each class.

N_c of the N samples x_i have the label y_c. With V the eigenvectors of the pooled covariance C = sum_c p_c C_c, p_c =
N_c/N, and C_c the covariance of class c about its own mean, theory has the clusters

    mean m_c = V^T (mean of class c - x_0),   variances (V^T C_c V)_jj,   probability p_c

x_0 is the mean of all samples, or 0 if the mean is kept (`centre = false`). The named vectors, whose sums are the
means, are those of all classes. If x_0 is removed, sum_c p_c m_c = 0, and the last class has no named vector.
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract import UsageError
from derivations.declare import data, fields
from derivations.declare.array_files import ArrayFile
from derivations.declare.clusters import MOST_MEANS
from derivations.declare.declaration import Cluster, Inputs, Mean
from derivations.declare.grammar import Tree

Counts = tuple[tuple[float, int], ...]
"""Pairs of a label and its number of samples, by increasing labels."""


@dataclasses.dataclass(frozen=True, eq=False)
class Statistics:
    """The named vectors `mean` (N, d) of classes, and the `variance` (C, d) of every coordinate in each of them.

    `square` is sum_c p_c |C_c|^2 of their covariances, in the Frobenius norm, and `beside` the part of it off the
    diagonals in the common eigenvectors.
    """

    mean: np.ndarray
    variance: np.ndarray
    square: float
    beside: float


def of_entry(entry: Any, samples: ArrayFile, folder: Any) -> tuple[ArrayFile, Counts]:
    """Return the record of the labels of samples and their classes. Raises `fields.Mistake` for invalid labels."""
    file = data.of_entry(entry, "inputs", "label", folder)
    with fields.entry_at("inputs", "label"):
        if isinstance(entry, Mapping) and "classes" in entry:
            return file, _stored(entry)
        if file.shape[0] != samples.shape[0]:
            raise UsageError(f"{file.name} has {file.shape[0]} labels, but {samples.name} has {samples.shape[0]} "
                             "samples")  # fmt: skip
        class_counts = np.unique(data.labels(file), return_counts=True)
        return file, tuple(zip(*(part.tolist() for part in class_counts), strict=True))


def _stored(entry: Mapping[str, Any]) -> Counts:
    """Return the classes of a stored declaration. Raises `UsageError` for invalid ones."""
    stored = entry.get("classes")
    pairs = (
        stored if isinstance(stored, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in stored) else []
    )
    good = all(type(label) in (int, float) and type(count) is int and count > 1 for label, count in pairs)
    if not good or not 2 <= len(pairs) <= MOST_MEANS:
        raise UsageError("give the name of a file, or in Python an array, but not a table")
    return tuple((float(label), count) for label, count in pairs)


def nouns(classes: Counts, centre: bool) -> tuple[tuple[Mean, ...], tuple[Cluster, ...]]:
    """Return the named means and the clusters of samples; empty if they are one Gaussian of mean 0."""
    if not classes:
        centre_mean = Mean("centre", None)
        return ((), ()) if centre else ((centre_mean,), (Cluster(_number(1.0), Tree("name", "centre")),))
    total = sum(count for _, count in classes)
    means = tuple(Mean(f"class_{k}", None) for k in range(1, len(classes) + (not centre)))
    clusters = []
    for k, (label, count) in enumerate(classes):
        if k < len(means):
            mean = Tree("name", means[k].name)
        else:
            parts = [(-n / count, named_mean.name) for named_mean, (_, n) in zip(means, classes, strict=False)]
            mean = functools.reduce(lambda left, right: Tree("+", parts=(left, right)), map(_multiple, parts))
        clusters.append(Cluster(_number(count / total), mean, label=_number(label)))
    return means, tuple(clusters)


def _number(value: float) -> Tree:
    return Tree("number", value=value)


def _multiple(part: tuple[float, str]) -> Tree:
    factor, name = part
    return Tree("*", parts=(_number(factor), Tree("name", name)))


def statistics(inputs: Inputs) -> Statistics:
    """Return the named vectors and variances of samples that have classes, or whose mean is kept."""
    assert inputs.data is not None
    return _statistics(inputs.data, inputs.label, inputs.centre)


@functools.lru_cache(maxsize=4)
def _statistics(file: ArrayFile, label: ArrayFile | None, centre: bool) -> Statistics:
    rows, class_index = data.coordinates(file, label, centre), np.zeros(file.shape[0], int)
    if label is not None:
        class_index = np.unique(data.labels(label), return_inverse=True)[1]
    means, variance, square, off_diagonal = [], [], 0.0, 0.0
    for c in range(class_index.max() + 1):
        part = rows[class_index == c]
        means.append(part.mean(axis=0))
        covariance = (part - means[-1]).T @ (part - means[-1]) / len(part)
        variance.append(np.diagonal(covariance).copy())
        square += len(part) / len(rows) * float((covariance**2).sum())
        np.fill_diagonal(covariance, 0.0)
        off_diagonal += len(part) / len(rows) * float((covariance**2).sum())
    named = len(means) - (centre and label is not None)
    return Statistics(np.array(means[:named]), np.array(variance), square, off_diagonal)


def named_means(inputs: Inputs) -> np.ndarray | None:
    """Return the named means (N, d) of samples in the eigenbasis; None for declared means, or without means."""
    return statistics(inputs).mean if inputs.data is not None and inputs.means else None


def _shares(inputs: Inputs) -> np.ndarray:
    """The shares (C,) of the classes in the samples."""
    counts = np.array([count for _, count in inputs.classes])
    return counts / counts.sum()


def lost(inputs: Inputs, eigenvalue: np.ndarray, dimension: np.ndarray) -> float:
    """Return the part of the classes' covariances C_c that the theory neglects, relative to their size, in the
    Frobenius norm.

    The theory replaces C_c by Lambda_c, the eigenvalues (C, L) of the classes in blocks of `dimension` (L,). The result
    is the root of sum_c p_c |C_c - Lambda_c|^2 / sum_c p_c |C_c|^2.
    """
    sums = statistics(inputs)
    off = sums.variance - np.repeat(eigenvalue, dimension, axis=1)
    return float(np.sqrt((sums.beside + _shares(inputs) @ (off**2).sum(axis=1)) / sums.square))


def by_blocks(inputs: Inputs, eigenvalue: np.ndarray, dimension: np.ndarray) -> np.ndarray:
    """Return the eigenvalues (C, L) of the classes in blocks with the pooled `eigenvalue` (L,).

    They are proportional to the classes' mean variances in the block, and sum_c p_c lam_cl is the pooled eigenvalue.
    """
    starts = np.concatenate([[0], np.cumsum(dimension)[:-1]])
    total = np.add.reduceat(statistics(inputs).variance, starts, axis=1)
    pooled = _shares(inputs) @ total
    return eigenvalue * np.divide(total, pooled, out=np.ones_like(total), where=pooled > 0)

"""Inputs of a user: samples, covariances and teachers from files, and the eigenbasis of the theory.

The covariance of samples x_1, .., x_N is C = (1/N) sum (x - mean)(x - mean)^T = V diag(lam) V^T: the covariance of rows
that are drawn with replacement. For samples with labels it is the mean over the classes, each about its own mean. The
coordinates of the theory are V^T (x - mean of all), or V^T x if that mean is kept, in the order of decreasing
eigenvalues.
"""

import dataclasses
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from derivations.contract import UsageError
from derivations.declare import array_files, fields
from derivations.declare.array_files import ArrayFile
from derivations.declare.clusters import MOST_MEANS
from derivations.declare.declaration import Declaration, Inputs

MOST_COLUMNS = 10_000
"""Largest number of columns of samples; the eigenvectors of more take over 800 MB."""
EQUAL_SIZE = 1e-6
"""Relative difference from the largest entry of an eigenvector up to which an entry counts as largest, so that rounding
changes no sign.
"""
FILES = "(.npy, .npz with one array, .csv)"


@dataclasses.dataclass(frozen=True, eq=False)
class Eigenbasis:
    """Eigenvalues (d,) of samples from the largest on, orthonormal eigenvectors (d, d) by columns, and the mean (d,).

    `varying` (columns,) is False for constant columns, which are left out.
    """

    eigenvalue: np.ndarray
    vectors: np.ndarray
    mean: np.ndarray
    varying: np.ndarray


def of_entry(entry: Any, table: str, key: str, folder: Path | None) -> ArrayFile:
    """Return the record of an entry with the name of a file, or of an entry of a stored declaration.

    Relative names are relative to `folder`. Raises `fields.Mistake` for a file without the data that `key` needs.
    """
    check = next(function for *place, function in ARRAYS if place == [table, key])
    with fields.entry_at(table, key):
        if isinstance(entry, Mapping):
            return array_files.from_table(entry)
        path = ((folder or Path()) / entry).absolute()
        return check(array_files.read(path), path.name, str(path))


def _samples(values: np.ndarray, name: str, path: str) -> ArrayFile:
    """Check samples (N, columns) and return their record."""
    if values.ndim != 2:
        raise UsageError(f"{name} must have the shape (samples, d), but has {values.shape}")
    if len(values) < 2:
        raise UsageError(f"{name} has 1 sample, but a covariance needs at least 2 rows")
    if values.shape[1] > MOST_COLUMNS:
        raise UsageError(f"{name} has {values.shape[1]} columns, but at most {MOST_COLUMNS} are supported")
    if np.abs(values).max() > fields.MOST**0.5:
        raise UsageError(f"{name} contains numbers above {fields.MOST**0.5:g} in size, whose squares are not finite")
    if len(values) == values.shape[1] and len(values) > 2 and np.allclose(values, values.T, rtol=EQUAL_SIZE, atol=0.0):
        raise UsageError(
            f"{name} is a symmetric matrix, not a table of samples: for a covariance write covariance = '..'"
        )
    varying = int((np.ptp(values, axis=0) > 0).sum())
    if not varying:
        raise UsageError(f"every column of {name} is constant: there is nothing to learn from")
    return dataclasses.replace(array_files.remember(values, path), dimension=varying)


def _covariance(values: np.ndarray, name: str, path: str) -> ArrayFile:
    """Check a covariance (d, d) and return its record."""
    if values.ndim != 2 or values.shape[0] != values.shape[1]:
        raise UsageError(f"{name} must be a covariance, shape (d, d), but has {values.shape}")
    if len(values) > MOST_COLUMNS:
        raise UsageError(f"{name} has {len(values)} columns, but at most {MOST_COLUMNS} are supported")
    scale = float(np.abs(values).max())
    if not 1 / fields.MOST < scale < fields.MOST:
        raise UsageError(
            f"the largest entry of {name} must lie between {1 / fields.MOST:g} and {fields.MOST:g}, but is {scale:g}"
        )
    if np.abs(values - values.T).max() > EQUAL_SIZE * scale:
        row, column = np.unravel_index(np.abs(values - values.T).argmax(), values.shape)
        raise UsageError(
            f"{name} is not symmetric: row {row + 1}, column {column + 1} is {values[row, column]:g}, and row "
            f"{column + 1}, column {row + 1} is {values[column, row]:g}"
        )
    smallest = float(np.linalg.eigvalsh(values)[0])
    if smallest < -EQUAL_SIZE * scale:
        raise UsageError(f"{name} is not a covariance: its smallest eigenvalue is {smallest:.3g}")
    return array_files.remember(values, path)


def _eigenvalues(values: np.ndarray, name: str, path: str) -> ArrayFile:
    """Check eigenvalues (d,) and return their record."""
    if values.ndim != 1:
        raise UsageError(f"{name} must hold d eigenvalues, shape (d,), but has the shape {values.shape}")
    if not values.min() > 0:
        place = int(values.argmin()) + 1
        raise UsageError(f"eigenvalues must be above 0, but number {place} of {name} is {values.min():g}")
    if values.max() > fields.MOST:
        raise UsageError(f"eigenvalues must be at most {fields.MOST:g}, but {name} has {values.max():g}")
    return array_files.remember(values, path)


def _teachers(values: np.ndarray, name: str, path: str) -> ArrayFile:
    """Check the coordinates (teachers, d) of a teacher, or those (d,) of one vector, and return their record."""
    rows = np.atleast_2d(values)
    if rows.ndim != 2:
        raise UsageError(f"{name} must have the shape (teachers, d), but has {values.shape}")
    if np.abs(values).max() > fields.MOST**0.5:
        raise UsageError(f"{name} contains numbers above {fields.MOST**0.5:g} in size, whose squares are not finite")
    if not (rows != 0).any(axis=1).all():
        raise UsageError(
            f"row {int((rows != 0).any(axis=1).argmin()) + 1} of {name} is zero, but a teacher must be a nonzero vector"
        )
    return array_files.remember(values, path)


def _labels(values: np.ndarray, name: str, path: str) -> ArrayFile:
    """Check labels (N,), or (N, 1) as in tables, and return their record."""
    if values.ndim != 1 and values.shape[1:] != (1,):
        raise UsageError(f"{name} must hold one label for every sample, shape (samples,), but has {values.shape}")
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) > MOST_MEANS:
        raise UsageError(
            f"{name} has {len(distinct)} different values, and each is a class; at most {MOST_MEANS} classes are "
            "supported: give fewer classes, or leave out label and declare a teacher"
        )
    if len(distinct) < 2:
        raise UsageError(f"every entry of {name} is {distinct[0]:g}, but at least two classes are needed")
    if counts.min() < 2:
        raise UsageError(
            f"{name} has the label {distinct[counts.argmin()]:g} only once, but a class needs at least 2 samples"
        )
    return array_files.remember(values, path)


ARRAYS = (
    ("inputs", "covariance", _covariance),
    ("inputs", "data", _samples),
    ("inputs", "label", _labels),
    ("inputs", "spectrum", _eigenvalues),
    ("teacher", "spread", _teachers),
)
"""Table and key of the entries that can be arrays, with their requirements."""


def files(inputs: Inputs | None) -> tuple[ArrayFile, ...]:
    """Return the arrays of inputs."""
    if inputs is None:
        return ()
    arrays = (inputs.covariance, inputs.data, inputs.eigenvalues, inputs.spread, inputs.label)
    return tuple(file for file in arrays if isinstance(file, ArrayFile))


def in_text(tables: Mapping[str, Any], declared: Declaration) -> dict[str, Any]:
    """Return tables in which records of arrays, with their digests, replace the names of files.

    The record of a teacher has its Gram matrix and the record of labels their classes, so that a stored run is opened
    without the files.
    """
    text_tables, inputs = dict(tables), declared.inputs
    if inputs is None:
        return text_tables
    for table, key, file, extra in (
        ("inputs", "covariance", inputs.covariance, {}),
        ("inputs", "data", inputs.data, {}),
        ("inputs", "label", inputs.label, {"classes": [list(pair) for pair in inputs.classes]}),
        ("inputs", "spectrum", inputs.eigenvalues, {}),
        ("teacher", "spread", inputs.spread, {"gram": declared.gram}),
    ):
        if isinstance(file, ArrayFile):
            text_tables[table] = {**text_tables[table], key: {**file.table(), **extra}}
    return text_tables


def dimension(inputs: Inputs | None) -> int | None:
    """Return the dimension d of the arrays of inputs; None without arrays, when d is free."""
    arrays = files(inputs)
    return arrays[0].dimension if arrays else None


def columns(inputs: Inputs | None) -> int | None:
    """Return the length of weights in the user's coordinates: all columns of samples, or d."""
    arrays = files(inputs)
    return arrays[0].shape[-1] if arrays else None


def require_dimension(inputs: Inputs, d: int) -> None:
    """Raise `UsageError` if the d of a run differs from that of its arrays, or these do not fit together."""
    for file in files(inputs)[1:]:
        if file is not inputs.label and file.shape[-1] != columns(inputs):
            raise UsageError(
                f"{file.name} has vectors of {file.shape[-1]} coordinates, but the inputs in {files(inputs)[0].name} "
                f"have {columns(inputs)}"
            )
    expected = dimension(inputs)
    if expected is not None and expected != d:
        raise UsageError(f"d is {expected}, the dimension of {files(inputs)[0].name}, but d = {d} was given")


def convention(inputs: Inputs) -> str:
    """Return the meaning of the eigenvalues, in words."""
    if inputs.covariance is not None:
        return "covariance of the file; weights of files are in its columns"
    if inputs.data is None:
        ordered = inputs.eigenvalues is not None or inputs.spectrum is not None
        order = "of the eigenvalues, from the largest on" if ordered else "of the blocks"
        return (
            f"covariance by eigenvalues as written; weights of files are along its eigenvectors, in the order {order}"
        )
    mean_text = "mean removed" if inputs.centre else "mean kept as a named vector"
    of = f"covariance of the samples (1/N; {mean_text})"
    if inputs.label is not None:
        of = f"covariances of the classes of samples (1/N; {mean_text}) along the eigenvectors of the mean covariance"
    return f"{of}; weights of files are in the columns of the samples"


def told(inputs: Inputs) -> dict[str, Any]:
    """Return the entries of a summary on samples: their number, and that of the columns that were left out."""
    file = inputs.data
    if file is None:
        return {}
    constant = file.shape[1] - file.dimension
    entries: dict[str, Any] = {"samples": file.shape[0], **({"constant_columns": constant} if constant else {})}
    return {**entries, "classes": len(inputs.classes)} if inputs.classes else entries


@functools.lru_cache(maxsize=4)
def eigenbasis(file: ArrayFile, label: ArrayFile | None = None) -> Eigenbasis:
    """Return eigenvalues and eigenvectors of the covariance of samples, the mean over their classes if they have any.

    The largest entry of every eigenvector is positive, the first of equal ones. Eigenvalues within rounding of 0 are 0.
    They occur if samples are fewer than columns, or columns are linearly dependent.
    """
    samples = array_files.values(file)
    varying = np.ptp(samples, axis=0) > 0
    varying_samples = samples[:, varying]
    mean = varying_samples.mean(axis=0)
    varying_samples = varying_samples - mean
    if label is not None:
        classes = labels(label)
        for value in np.unique(classes):
            varying_samples[classes == value] -= varying_samples[classes == value].mean(axis=0)
    return Eigenbasis(
        *_diagonal(varying_samples.T @ varying_samples / len(varying_samples), max(varying_samples.shape)),
        mean,
        varying,
    )


@functools.lru_cache(maxsize=4)
def _of_covariance(file: ArrayFile) -> Eigenbasis:
    """Return the eigenbasis of a given covariance, for inputs of mean 0."""
    covariance = array_files.values(file)
    d = len(covariance)
    return Eigenbasis(*_diagonal((covariance + covariance.T) / 2, d), np.zeros(d), np.ones(d, bool))


def _diagonal(covariance: np.ndarray, terms: int) -> tuple[np.ndarray, np.ndarray]:
    """Return eigenvalues (d,) and eigenvectors (d, d) of a covariance, whose entries have the rounding of `terms`
    terms.
    """
    values, vectors = np.linalg.eigh(covariance)
    values, vectors = values[::-1], vectors[:, ::-1]
    values = np.where(values > values[0] * terms * np.finfo(float).eps, values, 0.0)
    size = np.abs(vectors)
    first = (size >= (1 - EQUAL_SIZE) * size.max(axis=0)).argmax(axis=0)
    return values, np.ascontiguousarray(vectors * np.sign(vectors[first, np.arange(len(first))]))


def basis_file(inputs: Inputs | None) -> ArrayFile | None:
    """Return the samples or the covariance whose columns are the coordinates of weights; None for declared
    eigenvalues.
    """
    return None if inputs is None else inputs.covariance or inputs.data


def basis(inputs: Inputs) -> Eigenbasis | None:
    """Return the eigenbasis of samples or of a covariance; None for inputs declared by eigenvalues."""
    if inputs.covariance is not None:
        return _of_covariance(inputs.covariance)
    return None if inputs.data is None else eigenbasis(inputs.data, inputs.label)


def eigenvalues(inputs: Inputs) -> np.ndarray | None:
    """Return the eigenvalues (d,) of a file, largest first; None if they are declared otherwise."""
    eigen = basis(inputs)
    if eigen is not None:
        return eigen.eigenvalue
    return None if inputs.eigenvalues is None else np.sort(array_files.values(inputs.eigenvalues))[::-1]


def labels(file: ArrayFile) -> np.ndarray:
    """Return the labels (N,) of samples."""
    return array_files.values(file).ravel()


def coordinates(file: ArrayFile, label: ArrayFile | None, centre: bool) -> np.ndarray:
    """Return the samples (N, d) in the eigenbasis, with their mean removed if `centre` is set.

    Raises `UsageError` if the mean is kept and has a part along columns that are left out.
    """
    basis = eigenbasis(file, label)
    fixed = np.flatnonzero(~basis.varying & (array_files.values(file)[0] != 0))
    if not centre and len(fixed):
        raise UsageError(
            f"column {fixed[0] + 1} of {file.name} is {array_files.values(file)[0, fixed[0]]:g} in every "
            "sample; odesim leaves out constant columns, but with centre = false this would change the mean: "
            "remove the column from the file"
        )
    return (array_files.values(file)[:, basis.varying] - (basis.mean if centre else 0.0)) @ basis.vectors


def rotated(inputs: Inputs | None, vectors: np.ndarray) -> np.ndarray:
    """Return vectors (.., d) in the eigenbasis, for vectors (.., columns) in the columns of samples or of a covariance.

    Without these, vectors are already in the eigenbasis. Parts along constant columns have no effect and are left out.
    """
    eigen = None if inputs is None else basis(inputs)
    if inputs is None or eigen is None:
        return vectors
    require_columns(inputs, vectors.shape[-1])
    return vectors[..., eigen.varying] @ eigen.vectors


def require_columns(inputs: Inputs, count: int) -> None:
    """Raise `UsageError` for weights of another length than a row of the samples or of the covariance."""
    file = basis_file(inputs)
    assert file is not None
    if count != file.shape[1]:
        raise UsageError(
            f"weights are in the columns of {file.name}, of which there are {file.shape[1]}, but their length is "
            f"{count}"
        )


def weights_dimension(inputs: Inputs | None, length: int) -> int:
    """Return the dimension d for weights of a given length."""
    file = basis_file(inputs)
    if inputs is None or file is None:
        return length
    require_columns(inputs, length)
    return file.dimension


def teacher(inputs: Inputs) -> np.ndarray | None:
    """Return the teacher's vectors (teachers, d) in the eigenbasis from a file; None without a file."""
    if not isinstance(inputs.spread, ArrayFile):
        return None
    return rotated(inputs, np.atleast_2d(array_files.values(inputs.spread)))


def gram_of_file(inputs: Inputs | None, table: Mapping[str, Any]) -> Any:
    """Return the Gram matrix of a teacher from a file, as a matrix of a declaration; None for any other teacher.

    A stored declaration has that matrix in its `table` of the teacher. Raises `fields.Mistake` if `gram` is given too.
    """
    if inputs is None or not isinstance(inputs.spread, ArrayFile):
        return None
    if "gram" in table:
        raise fields.Mistake("the file of spread determines the norms and overlaps of the teacher: leave out gram",
                             "teacher", "gram")  # fmt: skip
    if isinstance(table["spread"], Mapping) and "gram" in table["spread"]:
        return fields.matrix(table["spread"]["gram"], "teacher", "spread")
    with fields.entry_at("teacher", "spread"):
        require_dimension(inputs, dimension(inputs) or 0)
        rows = teacher(inputs)
        assert rows is not None
        return tuple(tuple(row) for row in (rows @ rows.T).tolist())

"""Label of a declared model as a function of independent normal numbers, one for each direction of its teacher.

    y = f*(x) = F(z_1, .., z_r),   z = frame . x ~ N(0, I_r)

The frame is orthonormal, by Gram-Schmidt from the teacher's vectors in their order; for orthonormal vectors it consists
of these vectors. A loss that depends on the sign of the label (logistic, hinge) has the gradient -s/2 or -s at an
answer of 0. Its label is therefore E[s | x] = sign(F), or erf(F/(sigma sqrt 2)) under label noise sigma.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from derivations.contract import Initial, UsageError
from derivations.declare import array_values, noise, schedules
from derivations.declare.array_values import Polynomial
from derivations.declare.declaration import Declaration, Group
from derivations.declare.grammar import Tree
from derivations.declare.initial import enter
from derivations.declare.parameter_class import rows
from derivations.declare.rows import Rows
from derivations.special import scipy_special

MOST = 4
"""Maximal number of directions for which tensors are computed."""
ALIGNED = 1e-9
"""Tolerance within which a coordinate of a vector counts as a whole number."""
DEPENDENT = 1e-6
"""A vector with a shorter remainder is linearly dependent: a Gram matrix determines norms to half its digits."""


@dataclasses.dataclass(frozen=True, eq=False)
class Summand:
    """One unit of a teacher: weight x unit of the fields `rows` z, with rows (slots, r) in the frame."""

    weight: float
    tree: Tree
    slots: tuple[str, ...]
    rows: np.ndarray
    polynomial: tuple[Polynomial, bool] | None
    known: Mapping[str, float]


@dataclasses.dataclass(frozen=True, eq=False)
class Label:
    """The label of one head in r directions: its function of r arrays, and the properties that quadrature needs.

    `names` are those of the teacher's vectors and `frame` (n, R) their coordinates. The rows of `basis` (r, R) are the
    directions of z_1 .. z_r: all R axes, or one direction for a linear label. `breaks` are the places of kinks along
    each axis. `degree` is that of a polynomial, or None. `summands` is empty if the label is not a sum of units (shares
    among units, predictions, signs). `polynomial` is that of a label of one direction. `binary` is True for the mean of
    a sign, of which every function is a multiple plus a constant.
    """

    head: str
    names: tuple[str, ...]
    frame: np.ndarray
    basis: np.ndarray
    function: Callable[..., Any]
    breaks: tuple[tuple[float, ...], ...]
    degree: int | None
    summands: tuple[Summand, ...] = ()
    polynomial: tuple[Polynomial, bool] | None = None
    binary: bool = False

    @property
    def directions(self) -> int:
        """The number r of directions."""
        return len(self.basis)


def start(parameters: Any) -> Initial:
    """Return the start of a run, which contains norms, biases, readouts and the teacher's Gram matrix."""
    return enter(parameters, None, np.random.default_rng(0))


def labels(parameters: Any) -> tuple[Label, ...]:
    """Return the label of every head in use.

    Raises `UsageError` for a teacher without computed tensors: inputs that are not isotropic, copies of students, a
    loss that compares heads or is an expression, time-dependent numbers, or more than four directions.
    """
    declared: Declaration = parameters.declaration
    _require(declared)
    changing = next(
        (schedule.name for schedule in schedules.active(parameters) if schedule.name in declared.names), None
    )
    if changing is not None:
        raise UsageError(
            f"exponents are those of one teacher and student, but {changing} changes in time: put a number in its place"
        )
    initial = start(parameters)
    return tuple(_label(parameters, initial, head) for head in declared.force)


def _require(declared: Declaration) -> None:
    """Raise `UsageError` for a model whose label has no tensors here."""
    if declared.inputs is not None:
        raise UsageError(
            "exponents are those of isotropic inputs x ~ N(0, I): on [inputs] directions of large variance are "
            "found first, independently of their order; leave [inputs] out"
        )
    if not declared.teachers:
        raise UsageError("exponents belong to a teacher, but this model has none; declare a [teacher]")
    if declared.loss == "softmax":
        raise UsageError(
            "the softmax loss depends only on the head with the largest label, which jumps where two labels "
            "are equal; use loss = 'squared', for which each head has exponents"
        )
    if declared.loss == "own":
        raise UsageError(
            "the loss is an expression, so its gradient depends on label and output in a general way; use "
            "loss = 'squared' or 'correlation' for the exponents of the label itself"
        )


def _label(parameters: Any, initial: Initial, head: str) -> Label:
    declared: Declaration = parameters.declaration
    layout = rows(parameters)
    namespace = schedules.shared(parameters)
    numbers = [k for k in range(len(declared.students), len(declared.groups)) if declared.readout(k, head) is not None]
    copied = next((declared.groups[k] for k in numbers if declared.groups[k].copied), None)
    if copied is not None:
        raise UsageError(
            f"the teacher {copied.name} is a copy of the students, which start at random: it has no exponents"
        )
    names, gram, places = _vectors(declared, layout, initial, numbers)
    frame = gram_schmidt(gram)
    coordinates = {k: {slot: frame[places[k, slot]] for slot in declared.groups[k].slots} for k in numbers}
    groups = [_GroupOfUnits(declared, initial, k, head, coordinates[k], namespace) for k in numbers]
    summands = tuple(unit for group in groups for unit in group.summands())
    prediction = declared.prediction(False, head)
    plain = prediction is None and not any(group.share for group in groups)
    basis = np.eye(frame.shape[1])
    if plain and all(_degree(unit.polynomial) in (0, 1) for unit in summands):
        basis, summands = _along_the_sum(basis, groups, summands)
    _require_few(declared, len(basis))
    function = functools.partial(_answer, groups, None if prediction is None else prediction.tree, namespace)
    label = Label(
        head=head,
        names=names,
        frame=frame,
        basis=basis,
        function=function,
        breaks=_breaks(groups, len(basis), None if prediction is None else prediction.tree, namespace),
        degree=_total_degree(groups, prediction, namespace) if not any(group.share for group in groups) else None,
        summands=summands if plain else (),
        polynomial=_of_one_direction(summands) if plain and len(basis) == 1 else None,
    )
    return _sign(parameters, label) if declared.labelled() else label


def _require_few(declared: Declaration, directions: int) -> None:
    """Raise `UsageError` for more than `MOST` directions."""
    if directions > MOST:
        single_group = len(declared.teachers) == 1
        example = f", as in -p teachers={MOST // len(declared.teachers[0].slots)}" if single_group else ""
        raise UsageError(
            f"the label depends on {directions} directions, but Hermite tensors are computed for at most "
            f"{MOST}; use fewer teachers{example}"
        )


def _vectors(
    declared: Declaration, layout: Rows, initial: Initial, numbers: Sequence[int]
) -> tuple[tuple[str, ...], np.ndarray, dict[tuple[int, str], slice]]:
    """The names of the vectors of some groups of teachers, their Gram matrix, and the index of each slot in it."""
    gram = layout.gram({**initial.constants, **initial.state})
    places: dict[tuple[int, str], slice] = {}
    names: list[str] = []
    indices: list[int] = []
    for k in numbers:
        group, size = declared.groups[k], layout.sizes[k]
        for slot in group.slots:
            places[k, slot] = slice(len(indices), len(indices) + size)
            word = group.named(slot)
            names += [word] if size == 1 else [f"{word}_{j + 1}" for j in range(size)]
            indices += range(layout.of(k, slot).start, layout.of(k, slot).stop)
    return tuple(names), gram[np.ix_(indices, indices)], places


def gram_schmidt(gram: np.ndarray) -> np.ndarray:
    """Return coordinates (n, r) of vectors with a Gram matrix (n, n) of rank r, by Gram-Schmidt in the given order.

    >>> gram_schmidt(np.array([[1.0, 0.6], [0.6, 1.0]]))
    array([[1. , 0. ],
           [0.6, 0.8]])
    """
    n = len(gram)
    values, vectors = np.linalg.eigh(gram)
    rooted = vectors * np.sqrt(np.maximum(values, 0.0))
    axes: list[np.ndarray] = []
    for row in rooted:
        residual = row.copy()
        for _ in range(2):  # the second pass removes rounding errors
            for axis in axes:
                residual -= (residual @ axis) * axis
        size = float(np.linalg.norm(residual))
        if size > DEPENDENT * float(np.linalg.norm(row)):
            axes.append(residual / size)
    coordinates = rooted @ np.array(axes).reshape(len(axes), n).T
    integers = np.round(coordinates)
    return np.where(np.abs(coordinates - integers) < ALIGNED, integers, coordinates) + 0.0


class _GroupOfUnits:
    """A group of teachers on arrays of the frame's coordinates."""

    def __init__(
        self, declared: Declaration, initial: Initial, number: int, head: str, coordinates: Mapping[str, np.ndarray],
        namespace: Mapping[str, float],
    ) -> None:  # fmt: skip
        self.group: Group = declared.groups[number]
        self.coordinates = dict(coordinates)
        self.known = namespace
        self.weights = np.asarray(initial.constants[declared.readout_name(number, head)], float)
        self.share = self.group.share
        sizes = {slot: np.linalg.norm(vectors, axis=1) for slot, vectors in coordinates.items()}
        self.trees = [
            array_values.with_norms(
                self.group.unit, {slot: _rounded(float(vectors[j])) for slot, vectors in sizes.items()}
            )
            for j in range(len(self.weights))
        ]

    def summands(self) -> list[Summand]:
        """The units of the group as terms of a sum."""
        slots = self.group.slots
        units = []
        for j, weight in enumerate(self.weights):
            tree = self.trees[j]
            polynomial = None if self.share else array_values.polynomial(tree, slots, self.known)
            rows = np.array([self.coordinates[slot][j] for slot in slots])
            units.append(Summand(float(weight), tree, slots, rows, polynomial, self.known))
        return units

    def __call__(self, *z: Any) -> Any:
        """The weighted sum of the units of the group at arrays z_1 .. z_r."""
        fields = [
            {slot: _field(vectors[j], z) for slot, vectors in self.coordinates.items()}
            for j in range(len(self.weights))
        ]
        shares = self._shares(fields)
        total: Any = 0.0
        for j, weight in enumerate(self.weights):
            total = total + weight * array_values.value(self.trees[j], {**self.known, **fields[j], **shares[j]})
        return total

    def _shares(self, fields: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The share of every unit, by the word softmax or top1."""
        if self.share is None:
            return [{} for _ in fields]
        logits = np.stack(
            np.broadcast_arrays(*(array_values.value(self.share.parts[0], {**self.known, **f}) for f in fields))
        )
        if self.share.word == "softmax":
            e = np.exp(logits - logits.max(axis=0))
            return [{"softmax": share} for share in e / e.sum(axis=0)]
        first = np.argmax(logits, axis=0)
        return [{"top1": np.where(first == j, 1.0, 0.0)} for j in range(len(fields))]


def _rounded(size: float) -> float:
    return round(size) if abs(size - round(size)) < ALIGNED else size


def _field(row: np.ndarray, z: Sequence[Any]) -> Any:
    """The field of a vector with these coordinates. Axes with coordinate 0 are omitted, so that arrays stay small."""
    return sum((c * x for c, x in zip(row, z, strict=True) if c), 0.0)


def _answer(groups: Sequence[_GroupOfUnits], prediction: Tree | None, namespace: Mapping[str, float], *z: Any) -> Any:
    """F at arrays z_1 .. z_r."""
    outputs = _outputs(groups, *z)
    total = outputs["y"] if prediction is None else array_values.value(prediction, {**namespace, **outputs})
    return np.asarray(total) + sum(0.0 * x for x in z)


def _outputs(groups: Sequence[_GroupOfUnits], *z: Any) -> dict[str, Any]:
    """The outputs of groups by their names, and their sum as y."""
    outputs = {group.group.name: group(*z) for group in groups}
    return {**outputs, "y": sum(outputs.values(), 0.0)}


def _degree(polynomial: tuple[Polynomial, bool] | None) -> int | None:
    """The total degree; None unless it is a polynomial."""
    return None if polynomial is None else max(map(sum, polynomial[0]), default=0)


def _total_degree(groups: Sequence[_GroupOfUnits], prediction: Any, namespace: Mapping[str, float]) -> int | None:
    """The degree of the whole label as a polynomial; None unless it is one."""
    degrees = [_degree(unit.polynomial) for group in groups for unit in group.summands()]
    inner = max((d for d in degrees if d is not None), default=0)
    if None in degrees:
        return None
    if prediction is None:
        return inner
    names = (*(group.group.name for group in groups if group.group.name), "y")
    outer = _degree(array_values.polynomial(prediction.tree, names, namespace))
    return None if outer is None else outer * inner


def _along_the_sum(
    basis: np.ndarray, groups: list[_GroupOfUnits], summands: tuple[Summand, ...]
) -> tuple[np.ndarray, tuple[Summand, ...]]:
    """The direction sum_j b_j u*_j of a linear label; all vectors are then projected on it."""
    total = np.zeros(len(basis))
    for unit in summands:
        slopes = {powers.index(1): float(c) for powers, c in (unit.polynomial or ({}, True))[0].items() if sum(powers)}
        for slot, slope in slopes.items():
            total += unit.weight * slope * unit.rows[slot]
    size = float(np.linalg.norm(total))
    if size < DEPENDENT:
        return basis, summands
    axis = total[:, None] / size
    for group in groups:
        group.coordinates = {slot: vectors @ axis for slot, vectors in group.coordinates.items()}
    return axis.T, tuple(dataclasses.replace(unit, rows=unit.rows @ axis) for unit in summands)


def _breaks(
    groups: Sequence[_GroupOfUnits], directions: int, prediction: Tree | None, namespace: Mapping[str, float]
) -> tuple[tuple[float, ...], ...]:
    """The kinks along each axis of the units whose vector lies along it; for one axis, also those of a prediction."""
    places: list[set[float]] = [set() for _ in range(directions)]
    for group in groups:
        for unit in group.summands():
            for slot, row in zip(unit.slots, unit.rows, strict=True):
                axes = np.flatnonzero(row)
                if len(axes) == 1:
                    places[axes[0]] |= set(array_values.kinks(unit.tree, slot, group.known, float(row[axes[0]])))
    if prediction is not None and directions == 1:
        outputs = functools.partial(_outputs, groups)
        places[0] |= set(array_values.crossings(prediction, lambda z: {**namespace, **outputs(z)}))
    return tuple(tuple(sorted(axis)) for axis in places)


def _of_one_direction(summands: Sequence[Summand]) -> tuple[Polynomial, bool] | None:
    """The polynomial in z of a label of one direction: the sum of its units, whose fields are multiples of z."""
    total: Polynomial = {}
    exact = True
    for unit in summands:
        if unit.polynomial is None:
            return None
        powers, rational = unit.polynomial
        weight, plain = _fraction(unit.weight)
        scales = [_fraction(float(row[0])) for row in unit.rows]
        exact &= rational and plain and all(is_exact for _, is_exact in scales)
        for power, c in powers.items():
            factor = math.prod((scale**p for (scale, _), p in zip(scales, power, strict=True)), start=weight * c)
            total[(sum(power),)] = total.get((sum(power),), Fraction(0)) + factor
    return {power: c for power, c in total.items() if c}, exact


def _fraction(number: float) -> tuple[Fraction, bool]:
    """A number as a fraction, and True if the number is the double nearest to a simple fraction such as 1/3."""
    simple = Fraction(number).limit_denominator(10_000)
    return (simple, True) if float(simple) == number else (Fraction(number), False)


def _sign(parameters: Any, label: Label) -> Label:
    """The label in a logistic or hinge loss, E[sign(y) | x]."""
    if noise.in_force(parameters).law is not None or getattr(parameters, "noise", 0.0) is None:
        raise UsageError(
            "the loss depends on the sign of the label, so its noise must be a constant number, as in -p noise=0.1"
        )
    sigma = float(parameters.noise)
    if sigma > 0:

        def smooth(*z: Any) -> Any:
            return scipy_special().erf(label.function(*z) / (sigma * math.sqrt(2)))

        return dataclasses.replace(label, function=smooth, degree=None, summands=(), polynomial=None, binary=True)
    if label.directions > 1:
        raise UsageError(
            f"the loss depends on the sign of a label of {label.directions} directions, whose jump is too "
            "difficult for quadrature; use one teacher, or label noise, as in -p noise=0.1"
        )

    def sign(*z: Any) -> Any:
        return np.sign(label.function(*z))

    breaks = (tuple(sorted({*label.breaks[0], *array_values.zeros(label.function)})),)
    return dataclasses.replace(
        label, function=sign, breaks=breaks, degree=None, summands=(), polynomial=None, binary=True
    )

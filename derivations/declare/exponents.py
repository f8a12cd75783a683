"""Information exponent, leap exponent and generative exponent of the teacher of a declared model.

With S_n the Hermite tensors of the label F (`hermite_tensors`) and U the known directions,

    information   the least k >= 1 with S_k not 0
    step          the least k such that E[F h_alpha(z_U) He_k(z_perp)] is not 0 for some alpha, and the directions in
                  the range of the first unfolding of these tensors; it is repeated until all directions are known
    leap          the largest k of all steps
    generative    the same for the best transforms T(F) of the label

The powers y^j, j <= 3, are tried as transforms and give an upper bound. Lower bounds come from the symmetries of F,
which every T(F) has too (`label_symmetries`), and for a label of one direction from its level sets (`level_sets`).
Label noise that does not depend on x changes none of the exponents: E[y | x] is the same, and the distribution of y is
convolved.

Sources: Ben Arous, Gheissari & Jagannath 2021 (information exponent); Abbe, Boix-Adsera & Misiakiewicz 2023 (leap);
Damian, Pillaud-Vivien, Lee & Bruna 2024 (generative exponent).
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from derivations.contract import UsageError
from derivations.declare import label_symmetries, level_sets
from derivations.declare.array_values import kinks, multiply, value
from derivations.declare.hermite_tensors import HIGHEST, Tensors, of_function, of_polynomial, total
from derivations.declare.student_orders import StudentOrder, student_order
from derivations.declare.teacher_label import Label, Summand, gram_schmidt, labels

ZERO = 1e-9
"""Size of tensors, relative to the whole label, below which they are 0 unless rational arithmetic shows otherwise."""
ROUNDING = 1e-13
"""Rounding of a sum over a grid, relative to the mean of the label."""
CLEAR = 10.0
"""Ratio of a tensor to the error of its quadrature above which it is different from 0."""
LISTED = 4
"""Largest number of vectors of a combination that is written out."""
POWERS = (2, 3)
"""Powers y^j that are tried as transforms in addition to y."""


@dataclasses.dataclass(frozen=True, eq=False)
class Step:
    """Directions that are found together, at the order k: an orthonormal basis (m, r), and their names as text."""

    order: int
    basis: np.ndarray
    text: str


@dataclasses.dataclass(frozen=True)
class Exponents:
    """Exponents of the label of one head (docs/exponents.md).

    `steps` are those of the label itself, `generative_steps` those of the transforms that were tried. `exact` is True
    if `generative` and `generative_leap` are known exactly, and not only from above. `binary` is True for a loss of a
    sign.
    """

    head: str
    directions: int
    information: int
    leap: int
    steps: tuple[Step, ...]
    generative: int
    generative_leap: int
    generative_steps: tuple[Step, ...]
    exact: bool
    binary: bool
    student: StudentOrder


def exponents(parameters: Any) -> tuple[Exponents, ...]:
    """Return the exponents of the label of every head in use.

    Raises `UsageError` if the label has no tensors (`teacher_label.labels`), if it does not depend on the input up to
    the highest order, or if the error of a quadrature is too large to decide whether a tensor is 0.

    >>> from derivations.declare import reading, system
    >>> plain = {"student": {"unit": "He(3, w)"}, "training": {"loss": "correlation", "weights": "sphere"}}
    >>> (answer,) = exponents(system.system(reading.declaration(plain)).parameters())
    >>> answer.information, answer.generative, answer.exact
    (3, 1, True)
    """
    with np.errstate(over="ignore", invalid="ignore"):  # `_require_signal` raises an error for infinite values
        return tuple(_exponents(parameters, label) for label in labels(parameters))


def _exponents(parameters: Any, label: Label) -> Exponents:
    tensors = of_label(label)
    _require_signal(label, tensors)
    steps = staircase(label, (tensors,), strict=True)
    generative, exact = _generative(label, tensors, steps)
    return Exponents(
        head=label.head,
        directions=sum(len(step.basis) for step in steps),
        information=steps[0].order,
        leap=max(step.order for step in steps),
        steps=steps,
        generative=generative[0].order,
        generative_leap=max(step.order for step in generative),
        generative_steps=generative,
        exact=exact,
        binary=label.binary,
        student=student_order(parameters, label.head, tensors, _tolerance(tensors)),
    )


def of_label(label: Label) -> Tensors:
    """Return the Hermite tensors of a label: exact for polynomials, otherwise the sum of those of its units."""
    r, order = label.directions, HIGHEST[label.directions]
    if label.polynomial is not None:
        powers, exact = label.polynomial
        return of_polynomial(powers, 1, order, exact)
    if label.summands:
        return total([(unit.weight, of_unit(unit, order)) for unit in label.summands], order, r)
    return of_function(label.function, label.breaks, order, label.degree)


def of_unit(unit: Summand, order: int) -> Tensors:
    """Return the tensors of one unit, computed in the few directions of its vectors and rotated into the frame."""
    local = gram_schmidt(unit.rows @ unit.rows.T)
    if not local.shape[1]:
        return total((), order, unit.rows.shape[1])
    axes = np.linalg.pinv(local) @ unit.rows
    plain = bool((local == np.eye(len(local), local.shape[1])).all()) and local.shape[1] == len(local)
    if unit.polynomial is not None and plain:
        tensors = of_polynomial(unit.polynomial[0], len(local), order)
    else:
        breaks: list[tuple[float, ...]] = [() for _ in range(local.shape[1])]
        for slot, row in zip(unit.slots, local, strict=True):
            if len(places := np.flatnonzero(row)) == 1:
                breaks[places[0]] += tuple(kinks(unit.tree, slot, unit.known, float(row[places[0]])))

        def function(*z: Any) -> Any:
            fields = {
                s: sum(c * x for c, x in zip(row, z, strict=True)) for s, row in zip(unit.slots, local, strict=True)
            }
            return np.asarray(value(unit.tree, {**unit.known, **fields})) + sum(0.0 * x for x in z)

        degree = None if unit.polynomial is None else max(map(sum, unit.polynomial[0]), default=0)
        tensors = of_function(function, breaks, order, degree)
    return Tensors(tensors.rotated(axes.T).arrays, tensors.error)


def _require_signal(label: Label, tensors: Tensors) -> None:
    """Raise `UsageError` for a label that is not finite somewhere, or without a tensor of order 1 to the highest."""
    if not np.isfinite(tensors.size):
        raise UsageError("the label has no finite mean square: at some inputs it is not a number or grows too fast")
    rounding = 0.0 if tensors.exact else ROUNDING * (1 + abs(float(tensors.arrays[0])))
    if tensors.size <= max(CLEAR * tensors.error, rounding):
        of = f" of head {label.head}" if label.head else ""
        raise UsageError(
            f"all Hermite tensors of the label{of} up to order {tensors.order} are 0, so that it has no "
            "information exponent up to this order"
        )


def _tolerance(tensors: Tensors) -> float:
    """The size up to which a part of tensors counts as 0."""
    return 0.0 if tensors.exact else ZERO * tensors.size


def staircase(label: Label, families: Sequence[Tensors], strict: bool) -> tuple[Step, ...]:
    """Return the steps in which all directions of a label are found.

    Arguments: families, the tensors of the label, then those of its transforms; strict, raise an error if the
    quadrature of the label is not accurate enough to decide whether a tensor is 0 (otherwise it counts as 0). Raises
    `UsageError` for such a tensor, and for a direction without a tensor.
    """
    r, order = label.directions, families[0].order
    span = np.zeros((0, r))
    all_unfoldings = np.hstack([_unfolded(families[0], span, np.eye(r), n) for n in range(1, order + 1)])
    target = len(_range([(all_unfoldings, families[0])], 0.0, strict)[0])
    steps: list[Step] = []
    tilt = 0.0
    while len(span) < target:
        complement = _complement(span, r)
        for k in range(1, order + 1):
            parts = [(_unfolded(family, span, complement, k), family) for family in families]
            new, error = _range(parts, tilt, strict)
            if len(new):
                break
        else:
            raise UsageError(
                f"apart from the first {len(span)} directions, no direction has a Hermite tensor up to order {order}"
            )
        basis = _along_axes(new @ complement)
        steps.append(Step(k, basis, _named(label, span, basis)))
        span, tilt = np.vstack([span, basis]), max(tilt, error)
    return tuple(steps)


def _unfolded(family: Tensors, known_directions: np.ndarray, complement: np.ndarray, k: int) -> np.ndarray:
    """The first unfolding (len(rest), ..) of E[F h_alpha(z_known) He_k(z_rest)] for all alpha.

    A tensor of order n has binomial(n, k) equal parts with k axes in `complement`, of which one is used.
    """
    columns = []
    for n in range(k, family.order + 1 if len(known_directions) else k + 1):
        array = family.arrays[n]
        for axis in range(n):
            array = np.tensordot(array, complement if axis < k else known_directions, axes=(0, 1))
        columns.append(math.sqrt(math.comb(n, k)) * array.reshape(len(complement), -1))
    return np.hstack(columns)


def _range(parts: Sequence[tuple[np.ndarray, Tensors]], tilt: float, strict: bool) -> tuple[np.ndarray, float]:
    """An orthonormal basis (m, rows) of the sum of the ranges of matrices of tensors, and a bound of its error.

    Every matrix is divided by the size up to which its singular values may be 0, and the range has the values above 1.
    Ranges that differ by an error are therefore equal. The error is relative and tilts the basis. The known directions
    then leak into the rest by `tilt`, which also limits the size of zero tensors.
    """
    scaled = []
    for number, (matrix, family) in enumerate(parts):
        zero = _tolerance(family)
        error = max(CLEAR * math.sqrt(family.order + 1) * family.error, tilt * family.size)
        if strict and number == 0 and error > zero:
            _require_clear(np.linalg.svd(matrix, compute_uv=False), zero, error, family)
        scaled.append(matrix / max(zero, error) if max(zero, error) > 0 else np.where(matrix, 2.0, 0.0))
    left, values, _ = np.linalg.svd(np.hstack(scaled), full_matrices=False)
    nonzero = values > 1
    return left[:, nonzero].T, 1 / float(values[nonzero].min()) if nonzero.any() else 0.0


def _require_clear(values: np.ndarray, zero: float, error: float, family: Tensors) -> None:
    """Raise `UsageError` for a singular value above `zero` that cannot be distinguished from 0 because of `error`."""
    hidden = values[(values > zero) & (values <= error)]
    if hidden.size:
        raise UsageError(
            f"a Hermite tensor of the label is {hidden.max():.1e}, and the quadrature of its kinks or steep "
            f"parts has the error {family.error:.1e}, so odesim cannot decide whether the tensor is 0; use a "
            "smoother unit"
        )


def _complement(known_directions: np.ndarray, r: int) -> np.ndarray:
    """Return an orthonormal basis (r - u, r) of the complement of orthonormal rows (u, r), with axes if possible."""
    if not len(known_directions):
        return np.eye(r)
    return _along_axes(np.linalg.svd(known_directions)[2][len(known_directions) :])


def _along_axes(basis: np.ndarray) -> np.ndarray:
    """Return a basis of the same span with axes first; the other rows have a first entry above 0."""
    projector = basis.T @ basis
    axes = np.flatnonzero(np.abs(np.diag(projector) - 1) < 1e-9)
    rows = np.eye(len(projector))[axes]
    if len(axes) < len(basis):
        right = np.linalg.svd(basis - basis @ rows.T @ rows)[2]
        complement = right[: len(basis) - len(axes)]
        first = (np.abs(complement) > 1e-6).argmax(axis=1)
        complement = complement * np.sign(complement[np.arange(len(complement)), first])[:, None]
        rows = np.vstack([rows, complement])
    return rows


def _named(label: Label, known_directions: np.ndarray, basis: np.ndarray) -> str:
    """Return the names of new directions: vectors, vectors with known ones, or the rest of vectors."""
    vectors = label.frame @ label.basis.T
    if len(label.basis) < label.frame.shape[1]:
        return _combination(label, basis[0] @ label.basis)
    full = np.vstack([known_directions, basis])
    residuals = np.linalg.norm(vectors - vectors @ full.T @ full, axis=1)
    contained = (residuals < 1e-7) & (np.linalg.norm(vectors @ basis.T, axis=1) > 1e-7)
    names = [name for name, flag in zip(label.names, contained, strict=True) if flag]
    spanned = bool(names) and np.linalg.matrix_rank(vectors[contained] @ basis.T, 1e-7) == len(basis)
    if spanned and len(names) == len(basis):
        return ", ".join(names)
    if spanned and len(basis) > 1:
        return f"the rest of {', '.join(names)}"
    return "; ".join(_combination(label, row) for row in basis)


def _combination(label: Label, direction: np.ndarray) -> str:
    """A direction (R,) of the frame as a combination of vectors, up to its length, as in "w_1 - w_2"."""
    weights = np.linalg.lstsq(label.frame.T, direction, rcond=None)[0]
    terms = [(c, name) for c, name in zip(weights, label.names, strict=True) if abs(c) > 5e-3]
    alike = all(abs(abs(c) - abs(terms[0][0])) < 1e-6 for c, _ in terms)
    signed = [(" - " if c < 0 else " + ") + (name if alike else f"{abs(c):.2f} {name}") for c, name in terms]
    if len(signed) > LISTED:
        signed = [*signed[:2], " + ..", signed[-1]]
    return "".join(signed).removeprefix(" + ").strip()


def _generative(label: Label, tensors: Tensors, steps: tuple[Step, ...]) -> tuple[tuple[Step, ...], bool]:
    """Return the steps by transforms of the label, and True if no transform has lower orders."""
    if label.binary or all(step.order == 1 for step in steps):
        return steps, True  # for two values every function is linear; no order is below 1
    transformed = [_power(label, j, tensors) for j in POWERS]
    try:
        lower = staircase(label, (tensors, *transformed), strict=False)
    except UsageError:  # errors hide what transforms give for the last directions: the label itself is the bound
        lower = steps
    least_orders = label_symmetries.least_orders(label, [step.basis for step in lower])
    if any(step.order < k for step, k in zip(lower, least_orders, strict=True)):
        # A quadrature that contradicts a symmetry has a larger error than estimated, so it is not used.
        lower, least_orders = steps, label_symmetries.least_orders(label, [step.basis for step in steps])
    if least_orders == [step.order for step in lower]:
        return lower, True
    if label.directions > 1:
        return lower, False
    k = level_sets.exponent(level_sets.shares(label.function, label.breaks[0], lower[0].order))
    return (dataclasses.replace(lower[0], order=k or lower[0].order),), k > 0


def _power(label: Label, power: int, tensors: Tensors) -> Tensors:
    """The tensors of a power of the label, in units of the label's size."""
    if label.polynomial is not None:
        powers, exact = label.polynomial
        largest = max(map(abs, powers.values()))  # exponents are independent of scale, but floats have a largest number
        powers = product = {place: c / largest for place, c in powers.items()}
        for _ in range(power - 1):
            product = multiply(product, powers)
        return of_polynomial(product, 1, tensors.order, exact)
    size = tensors.size
    degree = None if label.degree is None else power * label.degree
    return of_function(lambda *z: (label.function(*z) / size) ** power, label.breaks, tensors.order, degree)


def samples(k: int) -> str:
    """Return the order of the number of samples by which SGD finds a direction of exponent k.

    >>> samples(1), samples(2), samples(3)
    ('d', 'd log d', 'd^2')
    """
    return {1: "d", 2: "d log d"}.get(k, f"d^{k - 1}")


def flow_time(k: int) -> str:
    """Return the order of the time by which gradient flow from a random start finds a direction of exponent k.

    >>> flow_time(1), flow_time(2), flow_time(3), flow_time(4)
    ('1', 'log d', 'd^0.5', 'd')
    """
    power = f"{k / 2 - 1:g}"
    return {1: "1", 2: "log d"}.get(k, "d" if power == "1" else f"d^{power}")

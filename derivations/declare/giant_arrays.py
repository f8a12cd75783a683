"""Giant steps in array operations, for tiers whose means are sampled (`giant_equations` has the formulas).

The products of velocities v, vectors u and mean gradients g of the students are one array K (3, S, 3, S).  The part of
a mean gradient within the span of all rows is D G^+ (Stein's lemma), from which its products with velocities and with
itself follow; the part outside has the Gram matrix E[c c^T] d/B.
"""

from collections.abc import Sequence
from typing import Any

from derivations.declare import velocity_arrays
from derivations.declare.arrays import Arguments, Means, View, advanced, rows_of
from derivations.declare.arrays import packed as packed_state
from derivations.declare.declaration import Declaration
from derivations.declare.values_in_time import ValuesInTime


def change(
    xp: Any, declared: Declaration, y: Any, a: Arguments, view: View, means: Means, memories: Sequence[Any] = (),
    only_noise: bool = False,
) -> Any:  # fmt: skip
    """The change of the flat state in a step; with `only_noise`, the contribution of batches to a map in closed form.

    `memories` are their rates.
    """
    layout = rows_of(declared, a.sizes)
    S, G = layout.students, view.G
    V, VV, pushes = velocity_arrays.held(xp, layout, y)
    of_u, of_v = _combinations(xp, declared, a, view, means)
    noise = a.rates[2] * means.second
    if only_noise:
        zero = xp.zeros((S, S))
        K = _products(xp, zero, zero, zero, zero, zero, noise)
        rows, on_v = xp.zeros((S, layout.total)), xp.zeros((S, layout.total))
        slopes = [0.0 * slope for slope in means.scalars]
    else:
        D = means.drift
        coordinates = D @ xp.linalg.pinv(G, hermitian=True)
        K = _products(xp, VV, V[:, :S], coordinates @ V.T, G[:S, :S], D[:, :S], coordinates @ D.T + noise)
        rows, on_v = (x[0][:, None] * V + x[1][:, None] * G[:S] + x[2][:, None] * D for x in (of_u, of_v))
        slopes = means.scalars
    second_order = xp.einsum("pa,paqb,qb->ab", of_u, K, of_u)
    student_change = rows[:, :S] + rows[:, :S].T + second_order
    teacher_change = rows[:, S:]
    if declared.weights == "sphere":
        student_change, teacher_change = _on_sphere(xp, G, S, student_change, teacher_change)
    row_change = xp.concatenate([xp.zeros((S, S)), teacher_change], axis=1)
    velocities, numbers = [], slopes
    if declared.inertial:
        pairs = xp.einsum("pa,paqb->qab", of_v, K), xp.einsum("paqb,qb->pab", K, of_u)
        crossed = xp.einsum("pa,paqb,qb->ab", of_v, K, of_u)
        on_students = on_v[:, :S] + pairs[1][0] + crossed
        between = pairs[0][0] + pairs[0][0].T + xp.einsum("pa,paqb,qb->ab", of_v, K, of_v)
        numbers, of_pushes = _numbers(declared, a, slopes, pushes, only_noise)
        on_rows = xp.concatenate([on_students, on_v[:, S:]], axis=1)
        velocities = velocity_arrays.flat(layout, on_rows, between, of_pushes)
    later = [*velocities, *memories]
    return packed_state(xp, declared, row_change, student_change, numbers, a, later, clock=0.0 if only_noise else 1.0)


def settled(
    in_time: ValuesInTime, y: Any, arguments: tuple[Arguments, Arguments], view: View, memories: Sequence[Any]
) -> Arguments:
    """Return the arguments of a step; values depend on the memories after the step.

    `arguments` are the arguments with values at the old memories, and without values.
    """
    if not memories:
        return arguments[0]
    return in_time.arguments(advanced(in_time.xp, y, memories), arguments[1], view)


def _kept(declared: Declaration, a: Arguments) -> tuple[Any, Any]:
    """Return the parts of the velocity and of the gradient in the new velocity."""
    if declared.momentum is None:
        return 0.0, 1.0
    return (1.0 - 1.0 / a.rates[4], 1.0 / a.rates[4]) if declared.timed else (a.rates[4], 1.0)


def _combinations(xp: Any, declared: Declaration, a: Arguments, view: View, means: Means) -> tuple[Any, Any]:
    """The factors (3, S) of v, u and g in the change of vectors, and in that of velocities."""
    S, eta = a.moves.shape[0], a.rates[0] * a.moves
    keep, damp = _kept(declared, a)
    pull = a.rates[1] + 0.0 * eta
    if declared.weights == "sphere":
        pull = -xp.diagonal(means.drift[:, :S]) / view.square[:S]
    of_g, of_v = damp, keep
    if declared.momentum is not None and declared.momentum.nesterov:
        of_g, of_v = damp * (1.0 + keep), keep**2
    ones = 1.0 + 0.0 * eta
    vectors = xp.stack([-eta * of_v, -eta * of_g * pull, -eta * of_g])
    return vectors, xp.stack([(keep - 1.0) * ones, damp * pull, damp * ones])


def _products(xp: Any, vv: Any, vu: Any, gv: Any, uu: Any, gu: Any, gg: Any) -> Any:
    """The array (3, S, 3, S) of the products of v, u and g."""
    rows = ([vv, vu, gv.T], [vu.T, uu, gu.T], [gv, gu, gg])
    return xp.stack([xp.stack(row, axis=1) for row in rows])


def _on_sphere(xp: Any, G: Any, S: int, student_change: Any, teacher_change: Any) -> tuple[Any, Any]:
    """Return the change of overlaps among students, and with the rest, if rows are scaled back to their norms."""
    square = xp.diagonal(G)[:S]
    w = xp.sqrt(square / (square + xp.diagonal(student_change)))
    factors = w[:, None] * w
    return factors * student_change + (factors - 1.0) * G[:S, :S], w[:, None] * teacher_change + (w - 1.0)[:, None] * G[
        :S, S:
    ]


def _numbers(
    declared: Declaration, a: Arguments, slopes: list[Any], pushes: list[Any], only_noise: bool
) -> tuple[list[Any], list[Any]]:
    """Return the changes of numbers over their steps, and the change of their velocities."""
    keep, damp = _kept(declared, a)
    steps, change = [], []
    for slope, push in zip(slopes, pushes, strict=True):
        velocity = 0.0 * push if only_noise else push
        new = keep * velocity + damp * slope[: len(push)]
        nesterov = declared.momentum is not None and declared.momentum.nesterov
        steps.append(damp * slope[: len(push)] + keep * new if nesterov else new)
        change.append(new - velocity)
    return steps, change

"""Branches of stationary points over one parameter, with their bifurcations, and bifurcations over two parameters.

Classes of points from searches at some values are continued in both directions. At every branch point the other
branches are continued too. Branches that differ only by symmetries of the field count as one.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from derivations.contract import UsageError
from odesim.request.case import Case
from odesim.study.bifurcation import SpecialPoint, classify
from odesim.study.continuation import EDGE, Branch, Curve, Steps
from odesim.study.symmetry import Symmetries
from odesim.study.vector_field import VectorField
from odesim.study.zero_curve import BranchPoint, Derivatives

INNER = 1e-3
"""Part of its width by which a range begins later if it begins at an excluded value, such as step = 0, where F
vanishes.
"""
SWITCH = 1e-2
"""Amplitude of the first point on another branch."""
SAME = 1e-5
"""Largest distance, modulo symmetry, of points that count as the same at one parameter."""
MOST = 60
"""Largest number of branches."""
AFFINE = 1e-9
"""Relative size of a second difference below which the arguments are affine in a parameter."""


@dataclasses.dataclass(frozen=True)
class Span:
    """A parameter and its range; `excluded` says that it begins just above a value that the parameter cannot have."""

    name: str
    low: float
    high: float
    excluded: bool = False

    @property
    def width(self) -> float:
        """Length of the range."""
        return self.high - self.low

    def unit(self, value: float) -> float:
        """The place in the range, from 0 to 1.

        >>> Span("step", 1.0, 5.0).unit(2.0)
        0.25
        """
        return (value - self.low) / self.width


class Family:
    """The field of a case over a parameter, whose range is scaled to 0..1, at values of other parameters."""

    def __init__(self, field: VectorField, span: Span, changes: Mapping[str, float] | None = None) -> None:
        self.field, self.span, self.changes = field, span, dict(changes or {})
        self._affine = self._slopes()
        self._known: tuple[float, Any, Any] | None = None
        self.curve = Curve(self.derivatives, self.spectrum, self.domain)

    def _slopes(self) -> tuple[Any, Any] | None:
        """Values at the lower end and their slope, if they are affine in the parameter, as most are."""
        import jax

        span = self.span
        tangents = [self._tangent(p) for p in (span.low + 0.25 * span.width, span.low + 0.75 * span.width)]
        leaves = [jax.tree.leaves(t) for t in tangents]
        if all(np.abs(a).max(initial=0.0) == 0 for t in leaves for a in t):
            raise UsageError(
                f"atlas: the equations do not depend on {span.name}, so the stationary points do not change"
            )
        size = max(np.abs(a).max(initial=0.0) for a in leaves[0])
        if any(np.abs(a - b).max(initial=0.0) > AFFINE * size for a, b in zip(*leaves, strict=True)):
            return None
        return self._values(span.low + 0.25 * span.width), tangents[0]

    def _values(self, p: float) -> Any:
        return self.field.values({**self.changes, self.span.name: p})

    def _tangent(self, p: float) -> Any:
        return self.field.derivative({**self.changes, self.span.name: p}, self.span.name)

    def arguments(self, u: float) -> tuple[Any, Any]:
        """The values at a place of the range, and their derivative by the parameter."""
        import jax

        if self._known is None or self._known[0] != u:
            p = self.span.low + self.span.width * u
            if self._affine is None:
                self._known = u, self._values(p), self._tangent(p)
            else:
                base, slope = self._affine
                offset = (u - 0.25) * self.span.width
                self._known = u, jax.tree.map(lambda a, b: a + offset * b, base, slope), slope
        return self._known[1:]

    def derivatives(self, x: np.ndarray, u: float) -> Derivatives:
        """F, dF/dx, dF/du."""
        values, tangent = self.arguments(u)
        f, jacobian = self.field.evaluate(x, values)
        slope = self.field.by_values(x, values, tangent)
        return Derivatives(np.asarray(f), np.asarray(jacobian), self.span.width * np.asarray(slope))

    def spectrum(self, x: np.ndarray, u: float, jacobian: np.ndarray) -> np.ndarray:
        """Eigenvalues of the linearisation, for a flow also those outside of the span of the teachers."""
        values = self.arguments(u)[0]
        eigenvalues = self.field.spectrum(x, values, jacobian)
        if not self.field.online and self.field.case.parameters.d > self.field.rows.teachers:
            eigenvalues = np.concatenate([eigenvalues, np.linalg.eigvals(self.field.outside(x, values))])
        return eigenvalues[np.argsort(-eigenvalues.real, kind="stable")]

    def domain(self, x: np.ndarray, u: float) -> float:
        """Least eigenvalue of the Gram matrix over the largest."""
        return self.field.least(x, self.arguments(u)[0])

    def loss(self, x: np.ndarray, u: float) -> float:
        """The loss at a point."""
        return self.field.loss(x, self.arguments(u)[0])


def span_of(field: VectorField, name: str, low: float, high: float) -> Span:
    """Return the range of a parameter, after checking it.

    Raises `UsageError` for a parameter that is unknown, an integer, or not a number, for a range outside of its domain,
    and if the equations at its ends have another form.
    """
    fields = {f.name: f for f in dataclasses.fields(field.case.parameters)}
    if name not in fields:
        raise UsageError(f"atlas: {field.case.name} has no parameter {name}; there are {', '.join(fields)}")
    value = getattr(field.case.parameters, name)
    if fields[name].type not in (float, float | None) and name != "batch":
        raise UsageError(f"atlas: {name} does not take every real value (it is {value!r} here); vary a real parameter")
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise UsageError(f"atlas: expected a range low..high with low < high for {name}, got {low:g}..{high:g}")
    excluded = low == fields[name].metadata.get("above")
    if excluded:
        low += INNER * (high - low)
    for end in (low, high):
        _require_equations(field, name, end)
    return Span(name, float(low), float(high), excluded)


def _require_equations(field: VectorField, name: str, end: float) -> None:
    """Raise `UsageError` if the equations of the case have another form at another value of a parameter."""
    from odesim.flow.problem import initial_condition, prepare

    case = field.case
    explicit = {key: value for key, value in case.by_name.items() if key in case.explicit}
    value = max(1, round(end)) if name == "batch" else end
    case_at_end = Case.build(
        case.system, {**explicit, name: value}, stage=case.stage, seed=case.seed, initial=case.initial, backend="jax"
    )
    fresh = prepare(case_at_end)
    rebuilt = field.problem.equations.arguments(initial_condition(case_at_end))
    same_form = fresh.equations.code.structure == field.problem.equations.code.structure and all(
        np.shape(a) == np.shape(b) and np.allclose(a, b, rtol=1e-14, atol=0.0)
        for a, b in zip(rebuilt, fresh.arguments, strict=True)
    )
    if not same_form:
        raise UsageError(
            f"atlas: at {name} = {end:g} the equations of the model have another form; choose a range in "
            "which the form does not change"
        )


@dataclasses.dataclass(frozen=True, eq=False)
class ParameterBranch:
    """A branch over a parameter: values p (N,), states x (N, n), losses, numbers of growing directions, and its points.

    `index` counts growing directions, for a flow within and outside of the span of the teachers. `origin` is the number
    of the special point at which the branch begins, None for a branch from a search; `end` gives the reasons for its
    ends.
    """

    p: np.ndarray
    x: np.ndarray
    loss: np.ndarray
    index: np.ndarray
    origin: int | None
    end: tuple[str, str]


@dataclasses.dataclass(frozen=True, eq=False)
class Bifurcation:
    """A special point at the value p: its kind, state x, loss, multiplicity, the branch it lies on, and the crossing.

    `order` is the number of the crossing eigenvalue among all by falling real part.
    """

    kind: str
    p: float
    x: np.ndarray
    loss: float
    multiplicity: int
    branch: int
    order: int
    frequency: float


def _with_special(branch: Branch) -> list[BranchPoint]:
    """The points of a branch with its special points among them; the eigenvalues that cross there are 0."""
    points = list(branch.points)
    for special in branch.special:
        earlier = [point for point in branch.points if point.arc <= special.arc]
        later = [point for point in branch.points if point.arc > special.arc]
        neighbour = min((earlier[-1], *later[:1]), key=lambda point: point.index)
        points.append(BranchPoint(special.y, special.p, special.tangent, neighbour.eigenvalues, special.arc))
    return sorted(points, key=lambda point: point.arc)


class Continuation:
    """All branches of a family that can be reached from some points."""

    def __init__(self, family: Family, group: Symmetries, steps: Steps | None = None) -> None:
        self.family, self.group = family, group
        self.steps = Steps((0.0, 1.0)) if steps is None else steps
        self.branches: list[ParameterBranch] = []
        self.special: list[Bifurcation] = []
        self._units: list[np.ndarray] = []

    def add(self, x: np.ndarray, p: float) -> None:
        """Continue the branch of a point in both directions, and all branches from its branch points.

        Known branches and manifolds of zeros are skipped.
        """
        u = self.family.span.unit(p)
        curve = self._curve(x)
        start = curve.at_parameter(x, u)
        if start is None or len(self.branches) >= MOST or not curve.is_regular(start, u):
            return
        first = curve.point(np.append(start, u), None, 0.0)
        if self._is_known(first):
            return
        back = curve.follow_on(dataclasses.replace(first, tangent=-first.tangent), self.steps)
        on = Branch([first], [], "closed") if back.end == "closed" else curve.follow_on(first, self.steps)
        if back.end == on.end == "manifold":
            return
        points = [*_with_special(back)[::-1], *_with_special(on)[1:]]
        self._record(points, [*back.special[::-1], *on.special], None, (back.end, on.end))

    def _record(
        self, points: Sequence[BranchPoint], specials: Sequence[SpecialPoint], origin: int | None, end: tuple[str, str]
    ) -> None:
        """Store a branch and its special points, then continue the branches from these points."""
        span, number = self.family.span, len(self.branches)
        self._units.append(np.array([point.z for point in points]))
        self.branches.append(
            ParameterBranch(
                p=np.array([span.low + span.width * point.p for point in points]),
                x=np.array([point.y for point in points]),
                loss=np.array([self.family.loss(point.y, point.p) for point in points]),
                index=np.array([point.index for point in points]),
                origin=origin,
                end=end,
            )
        )
        for special in specials:
            recorded_number = self._recorded(special)
            if recorded_number is None:
                self._leave(special, number)
            elif self.special[recorded_number].kind == "pitchfork" and special.kind == "branch point":
                # Its mirror images were found first. The branch on which an eigenvalue crosses is continued.
                self.special[recorded_number] = self._bifurcation(special, number, "pitchfork")

    def _curve(self, x: np.ndarray) -> Curve:
        """Return the curve of the branch through a point, which keeps the symmetries of the point."""
        if not self.group.complete:
            return self.family.curve
        return self.family.curve.within(self.group.stabiliser(x, SAME).fixed_space())

    def _recorded(self, special: SpecialPoint) -> int | None:
        """Return the number of a special point that is known from another branch; None for a new one."""
        p = self.family.span.low + self.family.span.width * special.p
        for number, bifurcation in enumerate(self.special):
            if abs(bifurcation.p - p) < SAME * self.family.span.width and self._same(bifurcation.x, special.y):
                return number
        return None

    def _same(self, x: np.ndarray, x2: np.ndarray) -> bool:
        if self.group.complete:
            return self.group.same(x, x2, SAME)
        return bool(np.abs(x - x2).max(initial=0.0) < SAME)

    def _leave(self, special: SpecialPoint, branch: int) -> None:
        """Store a special point with its kind, and continue the branches from it."""
        number, curve = len(self.special), self.family.curve
        kind = (
            "branch point out of the span" if special.kind == "branch point" and special.null is None else special.kind
        )
        self.special.append(self._bifurcation(special, branch, kind))
        if kind not in ("branch point", "pitchfork"):
            return
        starts: list[BranchPoint] = []
        for direction in self._directions(special):
            shifts = {}
            shifted_curve = self._curve(special.y + SWITCH * direction[:-1])
            for point in shifted_curve.switch(special, direction, SWITCH):
                shifts[float(direction[:-1] @ (point.y - special.y))] = point.p - special.p
                starts.append(point)
            if self.special[number].kind == "branch point":
                self.special[number] = dataclasses.replace(self.special[number], kind=classify(special, shifts))
        for point in starts:
            if len(self.branches) < MOST and curve.domain(point.y, point.p) >= EDGE and not self._is_known(point):
                branch_beyond = self._curve(point.y).follow_on(point, self.steps)
                origin_point = curve.point(np.append(special.y, special.p), point.tangent, 0.0)
                ends = self.special[number].kind, branch_beyond.end
                self._record([origin_point, *_with_special(branch_beyond)], branch_beyond.special, number, ends)

    def _directions(self, special: SpecialPoint) -> list[np.ndarray]:
        """Directions (n + 1,) in which branches leave a special point."""
        assert special.null is not None
        if special.kind == "pitchfork":
            return [] if special.other is None else list(special.other)
        axes = list(special.null.T)
        if special.multiplicity > 1 and self.group.complete:
            axes = self.group.stabiliser(special.y, SAME).axes(special.null) or axes
        return [np.append(axis, 0.0) for axis in axes]

    def _bifurcation(self, special: SpecialPoint, branch: int, kind: str) -> Bifurcation:
        span = self.family.span
        return Bifurcation(
            kind=kind,
            p=span.low + span.width * special.p,
            x=special.y,
            loss=self.family.loss(special.y, special.p),
            multiplicity=special.multiplicity,
            branch=branch,
            order=special.order,
            frequency=special.frequency,
        )

    def _is_known(self, point: BranchPoint) -> bool:
        """Return True if a branch passes through a point, or through an image of it."""
        x, u = point.y, point.p
        for z in self._units:
            crossed = np.flatnonzero((z[:-1, -1] - u) * (z[1:, -1] - u) <= 0)
            for k in crossed:
                width = z[k + 1, -1] - z[k, -1]
                share = (u - z[k, -1]) / width if width else 0.0
                interpolated = z[k, :-1] + share * (z[k + 1, :-1] - z[k, :-1])
                images = self.group.images(interpolated) if self.group.complete else interpolated[None]
                if np.abs(images - x).max(axis=1).min() > 0.1 * (1 + np.abs(x).max()):
                    continue
                zero = self._curve(interpolated).at_parameter(interpolated, u)
                if zero is not None and self._same(zero, x):
                    return True
        return False

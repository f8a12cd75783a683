"""The answer of `atlas`: classes of stationary points, branches over a parameter, and curves over two."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from derivations.contract import UsageError
from odesim.machine.device import in_double
from odesim.request.answer import Answer, Question, Table
from odesim.request.case import Case
from odesim.request.parse import shortened
from odesim.request.trajectory import Variable
from odesim.study.branches import Continuation, Family, Span, span_of
from odesim.study.critical_curves import critical_curve
from odesim.study.stationary import Search, StationaryPoint, stationary_points
from odesim.study.symmetry import Symmetries, symmetries
from odesim.study.vector_field import VectorField

STARTS = 400
"""Number of random starts of a search, of which half have a symmetry. Slow points of flows and neighbours are added."""
MOST_STARTS = 1_000_000
FEWER = 150
"""Number of random starts of a search at an end of a range."""
ROUND = 1e-13
"""Losses below this are zero up to rounding."""
CLASS, BRANCH, POINT, SPECIAL = "class", "branch", "point", "special"


class Atlas(Answer):
    """Stationary points of a declared model: classes modulo symmetry, branches over a parameter, special points.

    For every class the arrays are `loss`, `index`, `null`, `index_outside`, `null_outside`, `orbit`, `count`,
    `residual` (class,), `eigenvalues` (class, direction), and the components of the state (class, ..).  Over a
    parameter they are `parameter`, `branch_loss`, `branch_index` (branch, point) and components `branch_NAME`, with NaN
    after the end of a branch.  Special points have `special_parameter`, `special_loss`, `special_multiplicity` and
    `special_branch` (special,).  Over two parameters there is `curve` (critical_curve, curve_point, coordinate).
    """

    def tables(self) -> Mapping[str, Table]:
        """Return the table of classes and, for an atlas over a parameter, the table of special points.

        Returns:
            Tables by the names `classes` and `special`, each a header and rows.
        """
        tables: dict[str, Table] = {"classes": self._classes()}
        if "special" in self.numbers:
            header = [str(self.numbers["over"]), "kind", "multiplicity", "loss", "branch"]
            rows = [
                [f"{s['parameter']:.12g}", s["kind"], s["multiplicity"], _loss(s["loss"]), s["branch"]]
                for s in self.numbers["special"]
            ]
            tables["special"] = header, rows
        return tables

    def _classes(self) -> Table:
        """Return the table of classes; those of a flow have directions within and outside of the span of the
        teachers.
        """
        has_outside = "index_outside" in self.variables
        header = [
            "loss",
            "index",
            "null",
            *(["index outside", "null outside"] if has_outside else []),
            "orbit",
            "found",
        ]
        rows = []
        for k in range(len(self["loss"])):
            outside_counts = [int(self[name][k]) for name in ("index_outside", "null_outside")] if has_outside else []
            orbit = self["orbit"][k]
            rows.append(
                [_loss(self["loss"][k]), int(self["index"][k]), int(self["null"][k]), *outside_counts,
                 "manifold" if orbit < 0 else "not counted" if orbit == 0 else int(orbit), int(self["count"][k]),
                 self.numbers["units"][k]]
            )  # fmt: skip
        return [*header, "units"], rows


RESULT = Atlas


def _loss(value: float) -> str:
    return "0" if abs(value) < ROUND else f"{value:.12g}"


@in_double
def atlas(
    case: Case, *, over: Mapping[str, Any] | None = None, map: Mapping[str, Any] | None = None,
    starts: int = STARTS,
) -> Atlas:  # fmt: skip
    """The stationary points of a case, and their branches over one parameter (`over`) and bifurcations over two.

    Raises `UsageError` for a model without stationary points of vectors, and for an invalid range.
    """
    if not 1 <= starts <= MOST_STARTS:
        raise UsageError(f"--starts must be a number from 1 to {MOST_STARTS}, but {starts} was given")
    field = VectorField(case)
    spans = _spans(field, over, map)
    changes = {spans[0].name: _inside(field, spans[0])} if spans else {}
    values = field.values(changes)
    group = symmetries(field, values)
    points, search = stationary_points(field, values, starts=starts, seed=case.seed, group=group)
    variables, numbers = _of_classes(field, points, search, group)
    sentences = [_sentence(field, points, search, changes)]
    if spans:
        continuation = _continued(field, group, points, spans[0], changes[spans[0].name])
        arrays, headlines = _of_branches(field, continuation, spans[0])
        variables |= arrays
        numbers |= headlines
        sentences += _special_sentences(continuation, spans[0])
        if len(spans) == 2:
            variables |= _of_curves(field, group, continuation, spans)
            numbers["map"] = spans[1].name
            sentences.append(_curve_sentence(variables["curve"].values, spans))
    return Atlas(question(case, over, map, starts), variables, numbers, tuple(sentences))


def question(case: Case, over: Mapping[str, Any] | None, map: Mapping[str, Any] | None, starts: int) -> Question:
    """The question of an atlas about a case."""
    named = {key: case.request()[key] for key in ("stage", "tier", "parameters", "initial", "seed")}
    ranges = {key: _plain(value) for key, value in (("over", over), ("map", map)) if value is not None}
    return Question.about("atlas", case.system, {**named, **ranges, "starts": starts})


def _plain(ranges: Mapping[str, Any]) -> dict[str, list[float]]:
    return {name: [float(low), float(high)] for name, (low, high) in ranges.items()}


def _spans(field: VectorField, over: Any, map: Any) -> list[Span]:
    """The ranges of one or two parameters, checked."""
    if map is not None and over is None:
        raise UsageError(
            "--map names a second parameter, but the first is missing: give it by --over, such as --over step=0..6"
        )
    spans = []
    for option, ranges in (("over", over), ("map", map)):
        if ranges is None:
            continue
        if not isinstance(ranges, Mapping) or len(ranges) != 1:
            raise UsageError(f"--{option} takes one parameter and its range, such as step=0..6")
        ((name, ends),) = ranges.items()
        try:
            low, high = (float(end) for end in ends)
        except (TypeError, ValueError):
            raise UsageError(
                f"--{option} takes a range of two numbers, such as step=0..6, but got {shortened(ends)}"
            ) from None
        spans.append(span_of(field, str(name), low, high))
    if len(spans) == 2 and spans[0].name == spans[1].name:
        raise UsageError(f"--over and --map both name {spans[0].name}: give two parameters")
    return spans


def _inside(field: VectorField, span: Span) -> float:
    """Return the value of the parameter, or the nearest end of the range."""
    value = getattr(field.case.parameters, span.name)
    return min(max(float(span.low if value is None else value), span.low), span.high)


def _continued(
    field: VectorField, group: Symmetries, points: Sequence[StationaryPoint], span: Span, base: float
) -> Continuation:
    """The branches through the classes at the base and at the ends of the range."""
    continuation = Continuation(Family(field, span), group)
    for point in points:
        if not point.manifold:
            continuation.add(point.x, base)
    for end in dict.fromkeys((span.high, span.low)):
        if end == base or (end == span.low and span.excluded):
            continue
        points_at_end, _ = stationary_points(
            field, field.values({span.name: end}), starts=FEWER, seed=field.case.seed, group=group
        )
        for point in points_at_end:
            if not point.manifold:
                continuation.add(point.x, end)
    return continuation


def _of_classes(
    field: VectorField, points: Sequence[StationaryPoint], search: Search, group: Symmetries
) -> tuple[dict[str, Variable], dict[str, Any]]:
    """Arrays and headline numbers of the classes."""
    has_outside = not field.online
    directions = max((len(p.eigenvalues) for p in points), default=0)
    eigenvalues = np.array([p.eigenvalues for p in points]).reshape(len(points), directions)
    variables = {
        "loss": Variable((CLASS,), np.array([p.loss for p in points]), "loss L"),
        "index": Variable((CLASS,), np.array([p.index for p in points], int), "number of growing directions"),
        "null": Variable((CLASS,), np.array([p.null for p in points], int), "number of null directions"),
        "orbit": Variable((CLASS,), np.array([_orbit(p) for p in points], int),
                          "images under the symmetries; 0: not counted, -1: a manifold"),
        "count": Variable((CLASS,), np.array([p.count for p in points], int), "starts that ended here"),
        "residual": Variable((CLASS,), np.array([p.residual for p in points]), "norm of F"),
        "eigenvalues": Variable((CLASS, "direction"), eigenvalues.real, "real parts of the eigenvalues"),
        "frequencies": Variable((CLASS, "direction"), eigenvalues.imag, "imaginary parts of the eigenvalues"),
    }  # fmt: skip
    if has_outside:
        scope = "for every dimension outside of the span of the teachers"
        variables |= {
            "index_outside": Variable((CLASS,), np.array([p.index_outside for p in points], int),
                                      f"number of growing directions {scope}"),
            "null_outside": Variable((CLASS,), np.array([p.null_outside for p in points], int),
                                     f"number of null directions {scope}"),
            "eigenvalues_outside": Variable((CLASS, "vector"), np.array([p.outside for p in points]).reshape(
                len(points), field.rows.students), f"eigenvalues {scope}"),
        }  # fmt: skip
    for component in field.problem.equations.state:
        if points and component.name in points[0].state:
            stacked = np.array([p.state[component.name] for p in points])
            variables[component.name] = Variable((CLASS, *component.dims), stacked, component.meaning)
    stable = sum(p.stable for p in points)
    return variables, {
        "classes": len(points), "stable": stable, "starts": search.starts, "arrived": search.arrived,
        "outside_cone": search.outside_cone, "symmetries": group.order, "units": [p.units for p in points],
        "least_loss": float(min((p.loss for p in points), default=np.nan)),
    }  # fmt: skip


def _orbit(point: StationaryPoint) -> int:
    return -1 if point.manifold else point.orbit or 0


def _of_branches(
    field: VectorField, continuation: Continuation, span: Span
) -> tuple[dict[str, Variable], dict[str, Any]]:
    """Arrays and headline numbers of the branches."""
    branches, length = continuation.branches, max((len(b.p) for b in continuation.branches), default=0)

    def padded(rows: Sequence[np.ndarray]) -> np.ndarray:
        shape = np.shape(rows[0])[1:] if rows else ()
        array = np.full((len(rows), length, *shape), np.nan)
        for k, row in enumerate(rows):
            array[k, : len(row)] = row
        return array

    variables = {
        "parameter": Variable((BRANCH, POINT), padded([b.p for b in branches]), f"{span.name} along a branch"),
        "branch_loss": Variable((BRANCH, POINT), padded([b.loss for b in branches]), "loss L along a branch"),
        "branch_index": Variable((BRANCH, POINT), padded([b.index for b in branches]), "growing directions"),
    }
    for component in field.problem.equations.state:
        rows = [
            np.array([field.state(x, continuation.family.arguments(span.unit(p))[0])[component.name]
                      for p, x in zip(b.p, b.x, strict=True)])
            for b in branches
        ]  # fmt: skip
        name = f"branch_{component.name}"
        variables[name] = Variable((BRANCH, POINT, *component.dims), padded(rows), component.meaning)
    special = sorted(continuation.special, key=lambda s: (s.p, s.kind))
    for name, values, meaning in (
        ("special_parameter", [s.p for s in special], f"{span.name} at a special point"),
        ("special_loss", [s.loss for s in special], "loss L at a special point"),
        ("special_multiplicity", [s.multiplicity for s in special], "eigenvalues that cross"),
        ("special_branch", [s.branch + 1 for s in special], "branch on which it was found"),
    ):
        variables[name] = Variable((SPECIAL,), np.array(values, float), meaning)
    numbers = {
        "over": span.name,
        "range": [span.low, span.high],
        "branches": len(branches),
        "ends": [list(b.end) for b in branches],
        "special": [
            {"parameter": s.p, "kind": s.kind, "multiplicity": s.multiplicity, "loss": s.loss, "branch": s.branch + 1}
            for s in special
        ],
    }
    return variables, numbers


def _of_curves(
    field: VectorField, group: Symmetries, continuation: Continuation, spans: Sequence[Span]
) -> dict[str, Variable]:
    """The curves on which special points lie over two parameters."""
    curves = [critical_curve(field, group, s, spans[0], spans[1]) for s in continuation.special]
    curves = _distinct([curve for curve in curves if len(curve) > 1])
    length = max(map(len, curves), default=0)
    array = np.full((len(curves), length, 2), np.nan)
    for k, curve in enumerate(curves):
        array[k, : len(curve)] = curve
    meaning = f"({spans[0].name}, {spans[1].name}) at which an eigenvalue crosses zero"
    return {"curve": Variable(("critical_curve", "curve_point", "coordinate"), array, meaning)}


def _distinct(curves: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Remove curves with the ends of an earlier one, because points of several branches lie on one curve."""
    distinct_curves: list[np.ndarray] = []
    for curve in curves:
        ends = curve[np.lexsort((curve[:, 0], curve[:, 1]))][[0, -1]]
        known_ends = [
            known_curve[np.lexsort((known_curve[:, 0], known_curve[:, 1]))][[0, -1]] for known_curve in distinct_curves
        ]
        if not any(np.allclose(ends, known_curve, rtol=1e-6, atol=1e-9) for known_curve in known_ends):
            distinct_curves.append(curve)
    return distinct_curves


def _sentence(
    field: VectorField, points: Sequence[StationaryPoint], search: Search, changes: Mapping[str, float]
) -> str:
    """The number of classes and of stable ones."""
    place = "".join(f" at {name} = {value:g}" for name, value in changes.items())
    stable = sum(p.stable for p in points)
    space = "of the vectors in the span of the teachers" if not field.online else "of the overlaps"
    classes = "class" if len(points) == 1 else "classes"
    return (
        f"{len(points)} {classes} of stationary points {space}{place}, {stable} stable; {search.arrived} of "
        f"{search.starts} starts converged; the list may be incomplete"
    )


def _special_sentences(continuation: Continuation, span: Span) -> list[str]:
    """The special points in words, those of one kind and place once."""
    sentences: dict[str, None] = {}
    for special in sorted(continuation.special, key=lambda s: s.p):
        times = f", {special.multiplicity} eigenvalues" if special.multiplicity > 1 else ""
        sentences[f"{special.kind} at {span.name} = {special.p:.12g}{times}"] = None
    return list(sentences) or [f"no bifurcation for {span.name} between {span.low:g} and {span.high:g}"]


def _curve_sentence(curves: np.ndarray, spans: Sequence[Span]) -> str:
    """Return the number of curves and their ranges in words."""
    if not len(curves):
        return f"no bifurcation could be followed over {spans[1].name}"
    parts = []
    for curve in curves:
        finite_points = curve[np.isfinite(curve[:, 0])]
        parts.append(
            f"from ({spans[0].name}, {spans[1].name}) = ({finite_points[0, 0]:.6g}, {finite_points[0, 1]:.6g}) "
            f"to ({finite_points[-1, 0]:.6g}, {finite_points[-1, 1]:.6g})"
        )
    return "bifurcations over two parameters: " + "; ".join(parts)


def read_range(text: str | None, option: str) -> dict[str, tuple[float, float]] | None:
    """The parameter and the range of a text such as "step=0..6"; None without one.

    >>> read_range("step=0..6", "over")
    {'step': (0.0, 6.0)}
    """
    if text is None:
        return None
    name, _, ends = text.partition("=")
    low, dots, high = ends.partition("..")
    try:
        if not (name and dots):
            raise ValueError
        return {name: (float(low), float(high))}
    except ValueError:
        raise UsageError(f"--{option} takes a parameter and its range, such as step=0..6, but got {text!r}") from None

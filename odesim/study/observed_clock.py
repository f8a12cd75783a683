"""Speed of a user's training run relative to the flow, and the convention that explains it.

A log is cut into segments of equal motion. The flow starts from the first snapshot of every segment, and predicts the
overlaps at its last one. Given their starts, the deviations of segments are independent, because their samples are.
Therefore the speed s that minimises

    sum over segments |overlaps at the end - flow(s)|^2

has the variance sum (J r)^2 / (sum J^2)^2 (J the derivative of the flow in log s, r the deviation), and a Student
distribution with the effective number of segments. A speed is a factor of the clock (the flow at s times the time) or,
in an online limit, whose equations contain the size of a step, a factor of the learning rate (the flow with the step s
eta).
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from derivations.contract import UsageError, load
from derivations.declare.declaration import Declaration
from odesim.flow import solve
from odesim.machine import streams
from odesim.request.case import Case
from odesim.study.conventions import Convention, conventions

SEGMENTS, FEWEST = (12, 6, 4), 3
"""Numbers of segments of a log over all replicas. They are tried in turn until the flow explains enough of the motion,
because longer segments have relatively less noise. The last number is that of the snapshots that a log must have after
the first.
"""
MARGIN = 0.1
"""Relative error of a speed in addition to its interval, from terms of the next order in 1/d and the step. Conventions
differ by far more.
"""
WIDEST = 1.5
"""Largest ratio of the ends of an interval from which a convention is named."""
EXPLAINED = 0.5
"""Smallest part of the squared motion that the flow must explain at its best speed."""
ALIKE = 1.05
"""Ratio of the misfits of two kinds of speed below which both are possible, and conventions of both are named."""
LEVEL = 0.95
AROUND = tuple(2.0 ** (k / 2) for k in range(-6, 7))
"""Speeds that are tried in addition to those of conventions."""
FASTEST = 1e3
"""Largest speed, and inverse of the smallest, that is tried. At such a speed a run is over before its first snapshot,
or does not move.
"""
RTOL = 1e-6
"""Relative tolerance of the flow, which is far below the fluctuations of SGD."""
NUDGE = 0.02
"""Change of log s for derivatives."""


@dataclasses.dataclass(frozen=True)
class Speed:
    """Speed of a log relative to the flow with its interval, the kind of speed, and a sentence.

    `explained` is the part of the squared motion that the flow at this speed explains; `fits` are the conventions whose
    factor lies in the interval.
    """

    value: float
    low: float
    high: float
    kind: str
    explained: float
    fits: tuple[Convention, ...]

    @property
    def agrees(self) -> bool:
        """True if the interval, with `MARGIN`, contains 1."""
        return self.contains(1.0)

    @property
    def known(self) -> bool:
        """True if the flow explains the motion and the interval is narrow enough for a conclusion."""
        return self.explained >= EXPLAINED and self.high <= WIDEST * self.low

    def contains(self, factor: float) -> bool:
        """Return True if the interval, with `MARGIN`, contains a factor."""
        return self.low / (1 + MARGIN) <= factor <= self.high * (1 + MARGIN)

    def sentence(self) -> str:
        """Return the sentence for the reader: agreement, a likely mismatch of conventions, or no explanation."""
        interval = f"{self.value:.3g} ({self.low:.3g} to {self.high:.3g})"
        if self.explained < EXPLAINED:
            share = f"{max(self.explained, 0.0):.0%}"
            return (
                f"not judged: even at the best speed the flow explains only {share} of the motion, so chance "
                "or another model must cause the rest; compare at a larger d or a smaller step"
            )
        if not self.known:
            return f"not judged: a speed of {interval} is too uncertain; take more snapshots, a larger d or replicas"
        if self.agrees:
            return f"as fast as the flow, a speed of {interval}"
        subject = "your clock runs" if self.kind == "clock" else "your run learns"
        statement = f"{subject} {interval} times as fast as the flow"
        if not self.fits:
            return f"{statement}, which no convention of this model explains"
        return f"{statement}: {' Or: '.join(convention.question for convention in self.fits)}"


@dataclasses.dataclass(frozen=True, eq=False)
class _Segment:
    """A piece of a log: the arrays at its start, its length on the clock, and the overlaps (n,) at both ends.

    `names` are the order parameters whose entries the overlaps are, one after another.
    """

    names: tuple[str, ...]
    arrays: Any
    length: float
    before: np.ndarray
    after: np.ndarray


def speed(
    case: Case, snapshots: Sequence[Sequence[Any]], times: np.ndarray, observed: Mapping[str, np.ndarray]
) -> Speed:
    """Fit the speed of a log.

    Args:
        case: the case of the log; its equations are the flow.
        snapshots: the arrays of an initial file, by replica and time.
        times: (time,) on the user's clock.
        observed: the order parameters (replica, time, ..) by name.

    Raises `UsageError` with the reason if no speed can be fitted.
    """
    _require(case, times)
    table = [row for row in conventions(case).rows if row.factor is not None]
    fits: list[Speed] = []
    for count in SEGMENTS:
        segments = _segments(snapshots, times, observed, count)
        candidates = [
            _fit(kind, case, segments, [row for row in table if _kind(case, row) == kind]) for kind in _kinds(case)
        ]
        fits = sorted((fit for fit in candidates if fit is not None), key=lambda fit: -fit.explained)
        if fits and fits[0].explained >= EXPLAINED:
            break
    if not fits:
        raise UsageError("the flow from its snapshots cannot be integrated")
    best, *later_fits = fits
    alike = [fit for fit in later_fits if 1 - fit.explained <= ALIKE * (1 - best.explained)]
    if any(fit.agrees and fit.known for fit in alike):
        return next(fit for fit in alike if fit.agrees and fit.known)
    return dataclasses.replace(best, fits=(*best.fits, *(row for fit in alike for row in fit.fits)))


def _require(case: Case, times: np.ndarray) -> None:
    declared = getattr(case.parameters, "declaration", None)
    if not isinstance(declared, Declaration) or declared.limit == "batch":
        raise UsageError("the speed is fitted for declared models of the flow and the online limit")
    if declared.clocked or declared.inertial:
        raise UsageError(
            "values depend on time, or the state contains velocities, so the flow cannot start in the middle of the log"
        )
    if len(times) <= FEWEST:
        raise UsageError(f"at least {FEWEST + 1} snapshots are needed, and there are {len(times)}")


def _kinds(case: Case) -> tuple[str, ...]:
    return ("clock", "rate") if case.parameters.declaration.limit == "online" else ("clock",)


def _kind(case: Case, row: Convention) -> str:
    """Return the kind of speed by which a convention is detected; in a flow a learning rate is a factor of the clock
    too.
    """
    return row.kind if row.kind in _kinds(case) else "clock"


def _segments(
    snapshots: Sequence[Sequence[Any]], times: np.ndarray, observed: Mapping[str, np.ndarray], limit: int
) -> list[_Segment]:
    """Return segments of equal motion, at most `limit` in all replicas together."""
    names = tuple(sorted(observed))
    overlaps = np.concatenate([np.asarray(observed[n]).reshape(*observed[n].shape[:2], -1) for n in names], axis=2)
    replicas = overlaps[:limit]
    count = max(1, min(limit // len(replicas), len(times) - 1))
    segments = []
    for arrays, path in zip(snapshots, replicas, strict=False):
        motion = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(path, axis=0), axis=1))])
        ends = np.unique([0, *np.searchsorted(motion, motion[-1] * np.arange(1, count) / count), len(times) - 1])
        for first, last in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
            segments.append(_Segment(names, arrays[first], float(times[last] - times[first]), path[first], path[last]))
    return segments


def _fit(kind: str, case: Case, segments: list[_Segment], table: list[Convention]) -> Speed | None:
    """Return the best speed of a kind with its interval; None if the flow could not be integrated at any speed."""
    flow = _clocked(case, segments, table) if kind == "clock" else _rated(case, segments)
    misfits = [(_misfit(segments, flow(s)), s) for s in sorted({*AROUND, *_tried(table)})]
    best_misfit, value = min(misfits)
    if not math.isfinite(best_misfit):
        return None
    for _ in range(8):
        slope, r = _slope(flow, value), _deviations(segments, flow(value))
        size = float(np.sum(slope * slope))
        if not size > 0 or not np.isfinite(size):
            break
        move = float(np.clip(np.sum(slope * r) / size, -0.5, 0.5))
        while abs(move) > 1e-4 and _misfit(segments, flow(value * math.exp(move))) > best_misfit:
            move /= 2
        value *= math.exp(move)
        best_misfit = _misfit(segments, flow(value))
        if abs(move) <= 1e-3:
            break
    half = _half_width(_slope(flow, value), _deviations(segments, flow(value)))
    motion = sum(float(np.sum((segment.after - segment.before) ** 2)) for segment in segments)
    fit = Speed(
        value, value * math.exp(-half), value * math.exp(half), kind, 1 - best_misfit / motion if motion else 0.0, ()
    )
    if fit.agrees or not fit.known:
        return fit
    matching = [row for row in table if row.factor is not None and fit.contains(row.factor)]
    matching.sort(key=lambda row: abs(math.log(row.factor / value)))  # type: ignore[operator]
    return dataclasses.replace(fit, fits=tuple(matching[:3]))


def _tried(table: list[Convention]) -> list[float]:
    return [row.factor for row in table if row.factor is not None and 1 / FASTEST <= row.factor <= FASTEST]


def _half_width(slope: np.ndarray, r: np.ndarray) -> float:
    """Half of the interval of log s, from segments (segment, n) as independent clusters."""
    from scipy.stats import t

    weight, score = (slope * slope).sum(1), (slope * r).sum(1)
    total = float(weight.sum())
    if not total > 0 or not np.isfinite(total):
        return math.inf
    freedom = max(total**2 / float((weight**2).sum()) - 1, 1.0)
    variance = float((score**2).sum()) / total**2 * (freedom + 1) / freedom
    return min(float(t.ppf(0.5 + LEVEL / 2, freedom)) * math.sqrt(variance), 50.0)


def _deviations(segments: list[_Segment], predicted: np.ndarray) -> np.ndarray:
    return np.array([segment.after for segment in segments]) - predicted


def _misfit(segments: list[_Segment], predicted: np.ndarray) -> float:
    """Return the sum of squared deviations; infinite if the flow has no value."""
    total = float(np.sum(_deviations(segments, predicted) ** 2))
    return total if math.isfinite(total) else math.inf


def _slope(flow: Callable[[float], np.ndarray], value: float) -> np.ndarray:
    """The derivative (segment, n) of the prediction in log s."""
    faster, slower = (flow(value * math.exp(sign * NUDGE)) for sign in (1, -1))
    return (faster - slower) / (2 * NUDGE)


def _clocked(case: Case, segments: list[_Segment], table: list[Convention]) -> Callable[[float], np.ndarray]:
    """Return the flow at s times the length of every segment, from one dense solution for each."""
    from scipy.interpolate import CubicSpline

    tried = [*AROUND, *_tried(table)]
    grid = np.unique([*np.geomspace(min(tried) / 2, max(tried) * 2, 200), *tried])
    curves = [CubicSpline(np.log(grid), _overlaps(case, segment, grid * segment.length)) for segment in segments]

    def flow(s: float) -> np.ndarray:
        return np.array([curve(np.clip(math.log(s), math.log(grid[0]), math.log(grid[-1]))) for curve in curves])

    return flow


def _rated(case: Case, segments: list[_Segment]) -> Callable[[float], np.ndarray]:
    """The flow with the step s eta."""

    @functools.cache
    def flow(s: float) -> np.ndarray:
        faster = dataclasses.replace(
            case, parameters=dataclasses.replace(case.parameters, step=s * case.parameters.step)
        )
        overlaps = [_overlaps(faster, segment, np.array([segment.length]))[-1] for segment in segments]
        return np.array(overlaps)

    return flow


def _overlaps(case: Case, segment: _Segment, times: np.ndarray) -> np.ndarray:
    """Return the overlaps (time, n) of the flow from the start of a segment; NaN if the integration fails."""
    stage = case.system.dynamics(case.stage)
    initial = load(stage.enter)(case.parameters, segment.arrays, streams.generator(case.seed, "initial"))
    run = solve.solve(dataclasses.replace(case, until=float(times[-1]), rtol=RTOL), times=times, initial=initial)
    overlaps = np.full((len(times), segment.after.size), np.nan)
    parts = [np.asarray(run.state[name].values).reshape(len(run.time), -1) for name in segment.names]
    overlaps[: len(run.time)] = np.concatenate(parts, axis=1)[: len(times)]
    return overlaps

"""Answer of `odesim bands`: where SGD of a given dimension is around the flow, and when it passes a level."""

import dataclasses
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from derivations.contract import Initial
from odesim.errors import UsageError
from odesim.flow.problem import Problem, prepare
from odesim.machine.device import in_double
from odesim.request.answer import Answer, Question, Table
from odesim.request.parse import real_number
from odesim.request.saved_times import saved_times
from odesim.request.trajectory import Variable
from odesim.sgd import increments as steps
from odesim.sgd import simulation as sgd
from odesim.sgd.increments import Increments
from odesim.sgd.simulation import Simulation
from odesim.study import bands, escape, fluctuations, quantities, rebuild
from odesim.study.bands import Band, Part, Setting
from odesim.study.escape import HittingTimes
from odesim.study.fluctuations import Clock, Fluctuations
from odesim.study.fresh_starts import fresh_start
from odesim.study.quantities import Quantity

COARSE_POINTS = 10
"""Sobol points of the parts of a mixture as a power of two."""
RARE = 0.1
"""A sum over a relaxation time counts as Gaussian while the kurtosis of a step is below this part of its samples."""
BIASED = 6.0
"""Standard errors of the points by which the mean increment may differ from the flow of an exact tier."""
VERB = "bands"


@dataclasses.dataclass(frozen=True, repr=False)
class Bands(Answer):
    """Bands of SGD around its mean path, with the law of hitting times.

    `answer["time"]` (time,), and for a component or quantity NAME the arrays NAME (on the flow), NAME_centre, NAME_sd,
    NAME_low and NAME_high; `covariance` (time, entry, entry_) is Sigma times the time of a step, `shift` (time, entry)
    the difference of mean and flow, and `entry` names the entries of the state.  Behind a saddle covariance and shift
    are no numbers, because there the law is a mixture.

    Example:
        >>> import odesim
        >>> training = {"limit": "online", "step": 0.5}
        >>> model = odesim.declare(student={"unit": "w"}, teacher={"noise": 0.5}, training=training)
        >>> answer = odesim.bands(model, d=400, until=6)
        >>> answer["error_low"].shape
        (101,)
    """

    def tables(self) -> dict[str, Table]:
        """Return the table "hitting" of quantiles of hitting times, where these were asked for."""
        hitting = self.numbers.get("hitting", [])
        if not hitting:
            return {}
        header = ["measure", *(f"{p:.0%}" for p in escape.LEVELS), "rate", "directions", "on the flow"]
        rows = [
            [one["measure"], *one["quantiles"], one["rate"], one["directions"], one["flow"]] for one in hitting
        ]  # fmt: skip
        return {"hitting": (header, rows)}


RESULT = Bands


@in_double
def answer(
    simulation: Simulation, *, level: Any = 0.9, of: Sequence[str] = (),
    progress: Callable[[float, float], object] | None = None,
) -> Bands:  # fmt: skip
    """Return the bands of compressed or explicit SGD as a simulation has it.

    Arguments:
        simulation: Step size, batch, dimension, start (`fresh_initial`) and times of SGD.
        level: Probability of the bands, between 0 and 1.
        of: Measures, "final R" or "first time R >= c"; bands of R are added, and the law of the time.
        progress: Called with the part that is done and 1.

    Raises `UsageError` for a model whose increments are not known by sample, and for measures that cannot be read.
    """
    asked = question(simulation, level=level, of=of)
    level = float(asked.details["level"])
    readings = [quantities.read(text) for text in of]
    tell = progress or (lambda done, whole: None)
    setting, source = _setting(simulation)
    problem = setting.problem
    wanted = [quantities.of_measure(problem, reading) for reading in readings]
    times = _times(simulation)
    tell(0.05, 1.0)
    course = fluctuations.solve(
        problem, setting.increments, setting.clock, times, start=setting.start, shifted=setting.shifted
    )
    if course.bias > BIASED:
        setting = dataclasses.replace(setting, shifted=False)
        course = dataclasses.replace(course, shift=np.zeros_like(course.shift))
    tell(0.5, 1.0)
    rare = _rare(setting, course)
    at = None if rare else bands.split_time(setting, course)
    parts: list[Part] = []
    directions = 0
    if at is not None and at + 1 < len(times):
        parts, directions = bands.split(setting, course, at, times[at + 1 :])
    tell(0.8, 1.0)
    every = {quantity.name: quantity for quantity in (*_usual(problem), *wanted)}
    drawn = [bands.band(setting, course, quantity, level, parts, at if parts else None) for quantity in every.values()]
    hitting = [
        escape.hitting_times(problem, course, quantity, str(reading.sign), float(reading.level or 0.0))
        for reading, quantity in zip(readings, wanted, strict=True)
        if reading.sign is not None and not rare
    ]
    variables = _variables(setting, course, drawn, level, parts, at)
    if rare:
        variables = {name: v for name, v in variables.items() if not name.endswith(("_low", "_high"))}
    told = _Told(simulation, setting, course, level, source, rare, at if parts else None, len(parts), directions)
    return Bands(asked, variables, _numbers(told, drawn, hitting), _sentences(told, drawn, hitting))


def question(simulation: Simulation, *, level: Any = 0.9, of: Sequence[str] = ()) -> Question:
    """Return the question that `answer` answers.  Raises `UsageError` for a level that is no probability."""
    level = real_number(level, "--level") if isinstance(level, str) else float(level)
    if not 0 < level < 1:
        raise UsageError(f"--level must be between 0 and 1, but {level:g} was given")
    return Question.about(VERB, simulation.system, {**_details(simulation), "level": level, "of": list(of)})


def _details(simulation: Simulation) -> dict[str, Any]:
    """The request of the simulation without what belongs to random numbers."""
    left_out = ("system", "declaration", "seeds", "stream", "precision", "method", "backend")
    return {name: value for name, value in simulation.request().items() if name not in left_out}


def _times(simulation: Simulation) -> np.ndarray:
    """The times of the bands: those that were asked for, with the start."""
    case = simulation.case
    if case.save_at is not None:
        return np.union1d([0.0], np.array(case.save_at))
    return np.asarray(saved_times(case, case.until, case.save_points), float)


def _setting(simulation: Simulation) -> tuple[Setting, str]:
    """The flow, the increments and the start of a simulation, and where the law of the start comes from."""
    case = simulation.case
    stage = case.system.dynamics(case.stage)
    if not stage.model:
        raise UsageError(f"stage {stage.name} of {case.system.name} has no finite-sample model, and no bands")
    model: Any = stage.truth(case.parameters)
    steps.refuse(model, simulation.batch)
    if simulation.changes:
        raise UsageError("bands of a batch that changes are not derived: give --batch")
    sgd.refuse_tier(case)
    flow = dataclasses.replace(case, backend="numba")
    initial: Initial = sgd.condition_of(dataclasses.replace(simulation, case=flow))
    problem = prepare(flow, initial)
    d = float(case.parameters.d)
    points = steps.points_of(model, case.parameters)
    increments = Increments(model, case.parameters, points, float(simulation.batch))
    fewer = steps.points_of(model, case.parameters, COARSE_POINTS)
    coarse = dataclasses.replace(increments, points=fewer)
    eps = simulation.tick
    online = stage.tick(case.parameters, 2 * simulation.step_size) == eps  # a flow's step takes longer, if it is longer
    clock = Clock(d, simulation.step_size, simulation.batch, eps, online)
    sigma, source = np.zeros((problem.start.size,) * 2), "one start"
    if simulation.fresh_initial:
        mean, covariance, source = fresh_start(problem, increments, d)
        problem = dataclasses.replace(
            problem, initial=dataclasses.replace(problem.initial, state=problem.equations.unpack(mean))
        )
        sigma = covariance / (d * eps)
    return Setting(problem, increments, coarse, clock, sigma, not problem.smooth.rough), source


def _usual(problem: Problem) -> list[Quantity]:
    """The quantities that every answer has: the loss, and what the flow watches."""
    scalars = ["loss"] if "loss" in problem.functions else []
    scalars += [component.name for component in problem.equations.watched if not component.dims]
    return [quantities.of_measure(problem, quantities.read(f"final {name}")) for name in scalars]


def _rare(setting: Setting, course: Fluctuations) -> float:
    """Largest ratio of the kurtosis of a step to the samples that decide about it, 0 where sums are Gaussian.

    The samples are those of a relaxation time 1/|J_ii|, or of the whole run where that is shorter.
    """
    speed = np.abs(np.diagonal(course.jacobians, axis1=1, axis2=2)).max(axis=0)
    span = float(course.time[-1])
    relaxation = np.minimum(span, 1 / np.maximum(speed, 1 / span))
    samples = setting.clock.batch * relaxation / course.eps
    ratio = float((course.kurtosis / (RARE * samples)).max(initial=0.0))
    return ratio if ratio > 1 else 0.0


def _variables(
    setting: Setting, course: Fluctuations, drawn: Sequence[Band], level: float, parts: Sequence[Part], at: int | None
) -> dict[str, Variable]:
    """The labelled arrays of an answer."""
    found = {"time": Variable(("time",), course.time, f"time, {_clock(setting)}")}
    for band in drawn:
        name, meaning = _plain(band.quantity.name), band.quantity.meaning
        found[name] = Variable(("time",), band.flow, f"{meaning} on the flow")
        for suffix, values, text in (
            ("centre", band.centre, "its mean over runs of SGD"), ("sd", band.deviation, "its standard deviation"),
            ("low", band.low, f"lower end of the {level:.0%} band"),
            ("high", band.high, f"upper end of the {level:.0%} band"),
            ("bent", band.bent, "part of the standard deviation by which it bends within the spread"),
        ):  # fmt: skip
            found[f"{name}_{suffix}"] = Variable(("time",), values, f"{meaning}: {text}")
    found |= _components(setting, course, level, parts, at)
    names = entries(setting.problem)
    inside = np.ones(len(course.time), bool)
    if parts and at is not None:
        inside[at + 1 :] = False
    covariance = np.where(inside[:, None, None], course.eps * course.sigma, np.nan)
    shift = np.where(inside[:, None], course.eps * course.shift, np.nan)
    found["covariance"] = Variable(("time", "entry", "entry_"), covariance, "covariance of the entries of the state")
    found["shift"] = Variable(("time", "entry"), shift, "mean over runs of SGD less the flow")
    found["entry"] = Variable(("entry",), np.array(names), "entries of the state")
    return found


def _components(
    setting: Setting, course: Fluctuations, level: float, parts: Sequence[Part], at: int | None
) -> dict[str, Variable]:
    """Flow, centre, standard deviation and band of every component of the state."""
    from scipy.special import ndtri

    reach, last = ndtri((1 + level) / 2), len(course.time) if not parts or at is None else at + 1
    centre = course.states[:last] + course.eps * course.shift[:last]
    deviation = np.sqrt(np.maximum(course.eps * np.diagonal(course.sigma[:last], axis1=1, axis2=2), 0.0))
    low, high = centre - reach * deviation, centre + reach * deviation
    if parts:
        means = np.array([part.course.states[1:] for part in parts])
        own = np.array([np.diagonal(part.course.sigma[1:], axis1=1, axis2=2) for part in parts])
        widths = np.sqrt(np.maximum(course.eps * own, 0.0))
        ends = np.array([
            [bands.mixture_quantiles(means[:, t, k], widths[:, t, k], level) for k in range(means.shape[2])]
            for t in range(means.shape[1])
        ])  # fmt: skip
        centre = np.concatenate([centre, means.mean(0)])
        deviation = np.concatenate([deviation, np.sqrt((widths**2).mean(0) + means.var(0))])
        low, high = np.concatenate([low, ends[..., 0]]), np.concatenate([high, ends[..., 1]])
    problem = setting.problem
    known = {component.name: component for component in problem.equations.state}
    found: dict[str, Variable] = {}
    for name, place in rebuild.places(problem.equations, course.states.shape[1]).items():
        if name == problem.smooth.clock:
            continue
        dims, meaning = ("time", *known[name].dims), known[name].meaning
        for suffix, values, text in (
            ("", course.states, "on the flow"), ("_centre", centre, "its mean over runs of SGD"),
            ("_sd", deviation, "its standard deviation"), ("_low", low, f"lower end of the {level:.0%} band"),
            ("_high", high, f"upper end of the {level:.0%} band"),
        ):  # fmt: skip
            constant = 0.0 if suffix == "_sd" else _constants(problem, name)
            entry = np.where(place >= 0, values[:, np.maximum(place, 0)], constant)
            found[f"{name}{suffix}"] = Variable(dims, entry, f"{meaning}, {text}")
    return found


def _constants(problem: Problem, name: str) -> np.ndarray:
    """A component at the start, for its entries that never move."""
    return np.asarray(problem.equations.unpack(problem.start)[name], float)


def entries(problem: Problem) -> list[str]:
    """Names of the entries of the flat state, such as "M_ww[1,2]"."""
    names = [""] * problem.start.size
    for name, place in rebuild.places(problem.equations, problem.start.size).items():
        for index in reversed(list(np.ndindex(place.shape))):
            if place[index] >= 0:
                numbers = ",".join(str(k + 1) for k in index)
                names[int(place[index])] = f"{name}[{numbers}]" if index else name
    return names


def _plain(name: str) -> str:
    """A name as files can hold it."""
    return re.sub(r"\W+", "_", name).strip("_")


def _clock(setting: Setting) -> str:
    """What a unit of time is."""
    return "d steps" if setting.clock.online else "1 / step size steps"


@dataclasses.dataclass(frozen=True)
class _Told:
    """What sentences and headline numbers are made of."""

    simulation: Simulation
    setting: Setting
    course: Fluctuations
    level: float
    source: str
    rare: float
    split_at: int | None
    flows: int
    directions: int


def _numbers(told: _Told, drawn: Sequence[Band], hitting: Sequence[HittingTimes]) -> dict[str, Any]:
    """Headline numbers: the setting, the bands at the end, and the quantiles of hitting times."""
    clock, course = told.setting.clock, told.course
    numbers: dict[str, Any] = {
        "d": clock.d, "step_size": clock.step_size, "batch": clock.batch, "level": told.level,
        "time": float(course.time[-1]), "start": told.source, "gaussian": not told.rare,
        "kurtosis": float(course.kurtosis.max(initial=0.0)), "shifted": told.setting.shifted, "bias": course.bias,
        "nodes": course.nodes,
        "linear_until": float(course.time[-1 if told.split_at is None else told.split_at]),
        "flows": told.flows,
    }  # fmt: skip
    for band in drawn:
        name = _plain(band.quantity.name)
        numbers |= {f"{name}_flow": float(band.flow[-1]), f"{name}_centre": float(band.centre[-1])}
        numbers |= {f"{name}_sd": float(band.deviation[-1])}
        if not told.rare:
            numbers |= {f"{name}_low": float(band.low[-1]), f"{name}_high": float(band.high[-1])}
    numbers["hitting"] = [
        {
            "measure": f"first time {one.name} {one.sign} {one.level:g}", "kind": one.kind,
            "quantiles": [float(q) for q in one.quantiles], "rate": one.rate, "directions": one.directions,
            "flow": one.mean_path,
        }
        for one in hitting
    ]  # fmt: skip
    return numbers


def _sentences(told: _Told, drawn: Sequence[Band], hitting: Sequence[HittingTimes]) -> tuple[str, ...]:
    """The answer in words."""
    end, level, d = told.course.time[-1], told.level, told.setting.clock.d
    if told.rare:
        return (
            f"no band at d = {d:g}: a few rare samples decide the spread of SGD (the kurtosis of one step is "
            f"{told.course.kurtosis.max():.2g}, {told.rare:.2g} times what sums over a relaxation time level out); "
            "simulate instead, or take a larger d",
        )
    lines = []
    for band in drawn:
        lines.append(
            f"at t = {end:g}, d = {d:g}: {band.quantity.name} {band.low[-1]:.4g} .. {band.high[-1]:.4g} ({level:.0%}), "
            f"mean {band.centre[-1]:.4g}, on the flow {band.flow[-1]:.4g}"
        )
    for one in hitting:
        lines.append(_hitting_sentence(one))
    if told.split_at is not None:
        since, many = told.course.time[told.split_at], told.directions
        ways = "one growing direction" if many == 1 else f"{many} growing directions"
        lines.append(f"linear until t = {since:g}, then a mixture of {told.flows} flows along {ways}")
    if not told.setting.shifted:
        name = told.setting.problem.equations.about.name
        lines.append(f"tier {name} is not exact: the centre is that of the flow, without its shift of order 1/d")
    if told.setting.clock.batch > 0.1 * d:
        lines.append("the batch is above d/10: terms of order B/d are left out")
    return tuple(lines)


def _hitting_sentence(one: HittingTimes) -> str:
    """One hitting time in words."""
    values = [f"{one.quantiles[k]:.4g}" if np.isfinite(one.quantiles[k]) else "later" for k in (0, 2, 4)]
    text = f"first time {one.name} {one.sign} {one.level:g}: {' .. '.join(values)} (5, 50, 95 %)"
    if one.kind == "escape":
        ways = "one growing direction" if one.directions == 1 else f"{one.directions} growing directions"
        return f"{text}, an escape at the rate {one.rate:.4g} along {ways}"
    return text

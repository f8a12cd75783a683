"""Answer of `odesim bands`: distribution of SGD around the flow at a given dimension, and of its hitting times."""

import dataclasses
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from odesim.errors import UsageError
from odesim.flow.problem import Problem
from odesim.machine.device import in_double
from odesim.request.answer import Answer, Question, Table
from odesim.request.parse import real_number
from odesim.request.trajectory import Variable
from odesim.sgd.simulation import Simulation
from odesim.study import band_question, band_solution, bands, escape, fluctuations, quantities, rebuild
from odesim.study.band_solution import Solution
from odesim.study.bands import Band
from odesim.study.escape import HittingTimes
from odesim.study.quantities import Quantity

VERB = "bands"


@dataclasses.dataclass(frozen=True, repr=False)
class Bands(Answer):
    """Bands of SGD around its mean, and the distribution of hitting times.

    For every component or quantity NAME the arrays are NAME (value on the flow), NAME_centre (mean), NAME_sd, NAME_low
    and NAME_high, at the times `time`.  `covariance` (time, entry, entry) is Sigma times the time of a step, `shift`
    (time, entry) is the difference between mean and flow, and `entry` has the names of the entries of the state.  After
    a saddle the distribution is a mixture, and covariance and shift are NaN.

    Example:
        >>> import odesim
        >>> training = {"limit": "online", "step": 0.5}
        >>> model = odesim.declare(student={"unit": "w"}, teacher={"noise": 0.5}, training=training)
        >>> answer = odesim.bands(model, d=400, until=6)
        >>> answer["error_low"].shape
        (101,)
    """

    def place(self, quantity: str) -> str:
        """Return the name of the arrays of a quantity.

        Arguments:
            quantity: A quantity as measures write it, such as "max(abs(M_ww))".

        Returns:
            The name of its array; those of its band end in "_centre", "_sd", "_low" and "_high".
        """
        name = _plain(quantity)
        bare = name.removeprefix("max_")
        return name if name in self.variables else bare

    def tables(self) -> dict[str, Table]:
        """Return the table "hitting" of quantiles of hitting times, if these were requested."""
        hitting = self.numbers.get("hitting", [])
        if not hitting:
            return {}
        header = ["measure", *(f"{p:.0%}" for p in escape.LEVELS), "rate", "directions", "without noise"]
        rows = [
            [entry["measure"], *entry["quantiles"], entry["rate"], entry["directions"], entry["centre"]]
            for entry in hitting
        ]  # fmt: skip
        return {"hitting": (header, rows)}


RESULT = Bands


@in_double
def answer(
    simulation: Simulation, *, level: Any = 0.9, of: Sequence[str] = (),
    progress: Callable[[float, float], object] | None = None,
) -> Bands:  # fmt: skip
    """Return the bands of compressed or explicit SGD with the setting of a simulation.

    Arguments:
        simulation: Step size, batch, dimension, start (`fresh_initial`) and times of SGD.
        level: Probability of the bands, between 0 and 1.
        of: Measures, "final R" or "first time R >= c"; bands of R are added, and the distribution of the time.
        progress: Function called with the finished part and 1.

    Raises `UsageError` for a model whose increments are not known by sample, and for invalid measures.
    """
    asked_question = question(simulation, level=level, of=of)
    level = float(asked_question.details["level"])
    readings = [quantities.read(text) for text in of]
    tell = progress or (lambda finished_part, total: None)
    ready = band_question.prepared(simulation)
    problem = ready.setting.problem
    measured_quantities = [quantities.of_measure(problem, reading) for reading in readings]
    times = band_question.times_of(simulation) / ready.scale
    solution = band_solution.solve(ready.setting, times, tell)
    by_name = {quantity.name: quantity for quantity in (*_usual(problem), *measured_quantities)}
    drawn_bands = [solution.band(quantity, level) for quantity in by_name.values()]
    hitting = [
        escape.hitting_times(problem, solution.course, quantity, str(reading.sign), float(reading.level or 0.0))
        for reading, quantity in zip(readings, measured_quantities, strict=True)
        if reading.sign is not None and not solution.rare
    ]
    result = _Result(simulation, ready, solution, level, drawn_bands, hitting)
    return Bands(asked_question, _variables(result), _numbers(result), _sentences(result))


@dataclasses.dataclass(frozen=True)
class _Result:
    """Data for arrays, headline numbers and sentences, on the clock of the equations."""

    simulation: Simulation
    ready: band_question.Asked
    solution: Solution
    level: float
    bands: Sequence[Band]
    hitting: Sequence[HittingTimes]

    def user_time(self, time: float) -> float:
        """A time on the clock of the user."""
        return float(time) * self.ready.scale


def question(simulation: Simulation, *, level: Any = 0.9, of: Sequence[str] = ()) -> Question:
    """Return the question that `answer` answers. Raises `UsageError` for a level that is not a probability."""
    level = real_number(level, "--level") if isinstance(level, str) else float(level)
    if not 0 < level < 1:
        raise UsageError(f"--level must be between 0 and 1, but {level:g} was given")
    return Question.about(VERB, simulation.system, {**_details(simulation), "level": level, "of": list(of)})


def _details(simulation: Simulation) -> dict[str, Any]:
    """Return the request of the simulation without the entries for random numbers."""
    left_out = ("system", "declaration", "seeds", "stream", "precision", "method", "backend")
    return {name: value for name, value in simulation.request().items() if name not in left_out}


def _usual(problem: Problem) -> list[Quantity]:
    """Return the quantities of every answer: the loss, and the observables of the flow."""
    return [
        quantities.of_measure(problem, quantities.read(f"final {name}")) for name in quantities.scalars(problem)
    ]  # fmt: skip


def _variables(result: _Result) -> dict[str, Variable]:
    """The labelled arrays of an answer."""
    course, level = result.solution.course, result.level
    clock = result.simulation.system.dynamics(result.simulation.case.stage).clock
    arrays = {"time": Variable(("time",), course.time * result.ready.scale, clock)}
    flow = _flow_states(result)
    for band in result.bands:
        name, meaning = _plain(band.quantity.name), band.quantity.meaning
        values = band.flow if flow is None else _along_flow(result, band.quantity, flow)
        arrays[name] = Variable(("time",), values, f"{meaning} on the flow")
        for suffix, part, text in (
            ("centre", band.centre, "its mean over runs of SGD"), ("sd", band.deviation, "its standard deviation"),
            ("low", band.low, f"lower end of the {level:.0%} band"),
            ("high", band.high, f"upper end of the {level:.0%} band"),
            ("bent", band.bent, "nonlinearity of the quantity within the spread, relative to its standard deviation"),
        ):  # fmt: skip
            if not (result.solution.rare and suffix in ("low", "high")):
                arrays[f"{name}_{suffix}"] = Variable(("time",), part, f"{meaning}: {text}")
    arrays |= _components(result, course.states if flow is None else flow)
    linear = np.arange(len(course.time)) <= (
        len(course.time) if result.solution.split_at is None else result.solution.split_at
    )
    covariance = np.where(linear[:, None, None], course.eps * course.sigma, np.nan)
    shift = np.where(linear[:, None], course.eps * course.shift, np.nan)
    arrays["covariance"] = Variable(("time", "entry", "entry_"), covariance, "covariance of the entries of the state")
    arrays["shift"] = Variable(("time", "entry"), shift, "mean over runs of SGD minus the solution of the equations")
    arrays["entry"] = Variable(("entry",), np.array(entries(result.solution.setting.problem)), "entries of the state")
    return arrays


def _flow_states(result: _Result) -> np.ndarray | None:
    """Return the states of the gradient flow at the saved times; None if the equations are those of the flow."""
    ready = result.ready
    if ready.scale == 1.0 and ready.flow.equations is ready.setting.problem.equations:
        return None
    start = None
    if result.simulation.fresh_initial:
        start = result.solution.course.states[0]
    return fluctuations.states_along(ready.flow, result.solution.course.time * ready.scale, start)[0]


def _along_flow(result: _Result, quantity: Quantity, states: np.ndarray) -> np.ndarray:
    """Values of a quantity on the gradient flow."""
    flow_quantity = quantities.of_measure(result.ready.flow, quantity.measure)
    return np.array([flow_quantity.value(y) for y in states])


def _components(result: _Result, flow: np.ndarray) -> dict[str, Variable]:
    """Flow, centre, standard deviation and band of every component of the state."""
    problem, level = result.solution.setting.problem, result.level
    centre, deviation, low, high = _entry_bands(result)
    by_name = {component.name: component for component in problem.equations.state}
    arrays: dict[str, Variable] = {}
    for name, place in rebuild.places(problem.equations, flow.shape[1]).items():
        if name == problem.smooth.clock:
            continue
        dims, meaning = ("time", *by_name[name].dims), by_name[name].meaning
        for suffix, values, text in (
            ("", flow, "on the flow"), ("_centre", centre, "its mean over runs of SGD"),
            ("_sd", deviation, "its standard deviation"), ("_low", low, f"lower end of the {level:.0%} band"),
            ("_high", high, f"upper end of the {level:.0%} band"),
        ):  # fmt: skip
            if not (result.solution.rare and suffix in ("_low", "_high")):
                constant = 0.0 if suffix == "_sd" else _constants(problem, name)
                entry = np.where(place >= 0, values[:, np.maximum(place, 0)], constant)
                arrays[f"{name}{suffix}"] = Variable(dims, entry, f"{meaning}, {text}")
    return arrays


def _entry_bands(result: _Result) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Centre, standard deviation, low and high (T, P) of the entries of the state."""
    from scipy.special import ndtri

    course, level, split_index = result.solution.course, result.level, result.solution.split_at
    reach, last = ndtri((1 + level) / 2), len(course.time) if split_index is None else split_index + 1
    centre = course.states[:last] + course.eps * course.shift[:last]
    deviation = np.sqrt(np.maximum(course.eps * np.diagonal(course.sigma[:last], axis1=1, axis2=2), 0.0))
    low, high = centre - reach * deviation, centre + reach * deviation
    if not result.solution.parts:
        return centre, deviation, low, high
    means = np.array([part.states[1:] for part in result.solution.parts])
    variances = np.array([np.diagonal(part.sigma[1:], axis1=1, axis2=2) for part in result.solution.parts])
    widths = np.sqrt(np.maximum(course.eps * variances, 0.0))
    ends = np.array([
        [bands.mixture_quantiles(means[:, t, k], widths[:, t, k], level) for k in range(means.shape[2])]
        for t in range(means.shape[1])
    ])  # fmt: skip
    spread = np.sqrt((widths**2).mean(0) + means.var(0))
    mixture_part = (means.mean(0), spread, ends[..., 0], ends[..., 1])
    linear_part = (centre, deviation, low, high)
    first, second, third, fourth = (np.concatenate(pair) for pair in zip(linear_part, mixture_part, strict=True))
    return first, second, third, fourth


def _constants(problem: Problem, name: str) -> np.ndarray:
    """Return a component at the start, for its constant entries."""
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
    """Return a name without characters that files do not allow."""
    return re.sub(r"\W+", "_", name).strip("_")


def _numbers(result: _Result) -> dict[str, Any]:
    """Headline numbers: the setting, the bands at the end, and the quantiles of hitting times."""
    solution = result.solution
    clock, course = solution.setting.clock, solution.course
    last = course.time[-1 if solution.split_at is None else solution.split_at]
    numbers: dict[str, Any] = {
        "d": clock.d, "step_size": clock.step_size, "batch": clock.batch, "level": result.level,
        "time": result.user_time(course.time[-1]), "start": result.ready.source, "gaussian": not solution.rare,
        "rare": solution.rare,
        "kurtosis": float(course.kurtosis.max(initial=0.0)), "shifted": solution.setting.shifted, "bias": course.bias,
        "nodes": course.nodes, "linear_until": result.user_time(last), "flows": len(solution.parts),
    }  # fmt: skip
    for band in result.bands:
        name = _plain(band.quantity.name)
        numbers |= {f"{name}_centre": float(band.centre[-1]), f"{name}_sd": float(band.deviation[-1])}
        if not solution.rare:
            numbers |= {f"{name}_low": float(band.low[-1]), f"{name}_high": float(band.high[-1])}
    numbers["hitting"] = [
        {
            "measure": f"first time {law.name} {law.sign} {law.level:g}", "kind": law.kind,
            "quantiles": [result.user_time(q) for q in law.quantiles], "rate": law.rate / result.ready.scale,
            "directions": law.directions, "centre": result.user_time(law.mean_path),
        }
        for law in result.hitting
    ]  # fmt: skip
    return numbers


def _sentences(result: _Result) -> tuple[str, ...]:
    """The answer in words."""
    solution = result.solution
    course, level, d = solution.course, result.level, solution.setting.clock.d
    end = result.user_time(course.time[-1])
    if solution.rare:
        return (band_solution.rare_sentence(solution),)
    lines = [
        f"at t = {end:g}, d = {d:g}: {band.quantity.name} {band.low[-1]:.4g} .. {band.high[-1]:.4g} ({level:.0%}), "
        f"mean {band.centre[-1]:.4g}"
        for band in result.bands
    ]
    lines += [_hitting_sentence(result, hitting_time) for hitting_time in result.hitting]
    if solution.split_at is not None:
        since = result.user_time(course.time[solution.split_at])
        lines.append(
            f"linear until t = {since:g}, then a mixture of {len(solution.parts)} flows {_ways(solution.directions)}"
        )
    if not solution.setting.shifted:
        lines.append(_unshifted(solution))
    if solution.setting.clock.batch > 0.1 * d:
        lines.append("the batch is above d/10: terms of order B/d are neglected")
    return tuple(lines)


def _unshifted(solution: Solution) -> str:
    """Return the reason why the centre of the band is the flow, without the shift of order 1/d."""
    bias = solution.course.bias
    if bias > band_solution.BIASED:
        reason = f"the mean step of SGD differs from the flow by {bias:.2g} standard errors"
    else:
        reason = f"tier {solution.setting.problem.equations.about.name} is not exact"
    return f"{reason}: the centre is that of the flow, without its shift of order 1/d"


def _ways(count: int) -> str:
    """The growing directions in words."""
    return "along one growing direction" if count == 1 else f"along {count} growing directions"


def _hitting_sentence(result: _Result, hitting: HittingTimes) -> str:
    """One hitting time in words."""
    quantile_times = [result.user_time(hitting.quantiles[k]) for k in (0, 2, 4)]
    values = [f"{value:.4g}" if np.isfinite(value) else "later" for value in quantile_times]
    text = f"first time {hitting.name} {hitting.sign} {hitting.level:g}: {' .. '.join(values)} (5, 50, 95 %)"
    if hitting.kind == "escape":
        return f"{text}, an escape at the rate {hitting.rate / result.ready.scale:.4g} {_ways(hitting.directions)}"
    return text

"""Answer of `odesim optimise`: the schedule of the step, decay or noise with the least final value or hitting time."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from odesim.errors import UsageError
from odesim.machine.device import in_double
from odesim.request.answer import Answer, Question, Table
from odesim.request.case import Case, plain
from odesim.request.parse import real_number, shortened, whole_number
from odesim.request.trajectory import Variable
from odesim.study import control, optimal_schedule, quantities
from odesim.study import parameter_dependence as dependence
from odesim.study.answers.sensitivity import LEFT_OUT
from odesim.study.control import Optimum, Task
from odesim.study.controlled_flow import ControlledFlow
from odesim.study.traced_quantities import traced_quantity

VERB = "optimise"
VARIED = ("step", "decay", "noise")
"""Parameters whose schedules are optimised."""
MODEL, RUN = "optimum.toml", "run.toml"
"""Files of a folder: the model with the schedule, and the options of a run."""
LARGEST = 5.0
"""Default upper bound in units of the present value."""
GREEDY = 1e-3
"""Relative excess up to which the greedy schedule counts as optimal."""
MOST_KNOTS = 500


@dataclasses.dataclass(frozen=True, repr=False)
class OptimalSchedule(Answer):
    """Best schedule, compared with the best constant and the greedy schedule.

    The schedule is linear between the times `knot` (knot,), where it has the values `schedule` (knot,). `time` and
    `quantity` are the run with this schedule. `constant_*`, `greedy_*` and `polished_*` are the same arrays for the
    best constant, the greedy schedule and the optimum in continuous time. `alignment` is cos(p, grad h) at the times
    `polished_time` if these exist, otherwise `time`.

    Example:
        >>> import odesim
        >>> training = {"limit": "online", "step": 0.3}
        >>> start = {"norm": 1.0, "overlap": 0.5}
        >>> model = odesim.declare(student={"unit": "w"}, teacher={"noise": 0.5}, training=training, start=start)
        >>> answer = odesim.optimise(model, vary="step", minimise="final error", until=1, knots=5, between=(0, 2))
        >>> round(answer.value, 6), round(answer.summary()["constant_value"], 6)
        (0.481519, 0.48253)
    """

    @property
    def value(self) -> float:
        """Final value or hitting time with the best schedule."""
        return float(self.numbers["value"])

    def tables(self) -> Mapping[str, Table]:
        """Return the schedule as a table.

        Returns:
            The table "schedule": times and values at the knots.
        """
        name = str(self.asked.details["vary"])
        rows = list(zip(self["knot"].tolist(), self["schedule"].tolist(), strict=True))
        return {"schedule": (["time", name], [list(row) for row in rows])}

    def files(self) -> Mapping[str, str]:
        """Return the files for a run with the schedule: `odesim integrate --system optimum.toml --config run.toml`.

        Returns:
            Texts by name: the model with the schedule instead of a number, and the options and parameters of the run,
            including the schedule. The second file alone does the same with the original model.
        """
        return {MODEL: _model_text(self), RUN: _run_text(self)}

    def model(self) -> Any:
        """Return the model with the schedule instead of a number.

        Returns:
            A declared `System`. `parameters()` returns its other parameters.
        """
        from derivations.declare import written_systems

        return written_systems.of_text(_model_text(self), "")

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of the model, without the one that varies.

        Returns:
            Only parameters that differ from their defaults.
        """
        return dict(self.asked.details["changed"])


RESULT = OptimalSchedule


def _model_text(answer: OptimalSchedule) -> str:
    """Return the declaration with the schedule."""
    from derivations.declare import restated, written_systems

    known = answer.asked.known
    model = written_systems.of_text(known.declaration if known is not None else answer.asked.declaration, "")
    pairs = schedule_pairs(answer["knot"], answer["schedule"])
    return restated.text(model, {str(answer.asked.details["vary"]): pairs})


def schedule_pairs(times: np.ndarray, values: np.ndarray) -> list[list[Any]]:
    """Return a piecewise linear schedule in the form of a declaration: pairs of a time and an expression in t.

    Each expression is a mean of two values with weights of one sign, so that rounding makes none of them negative.

    >>> schedule_pairs(np.array([0.0, 2.0]), np.array([1.0, 0.5]))
    [[0.0, '(1.0*(2.0 - t) + 0.5*(t - 0.0))/2.0'], [2.0, 0.5]]
    """
    pairs: list[list[Any]] = []
    for begin, end, first, last in zip(times[:-1], times[1:], values[:-1], values[1:], strict=True):
        begin, end, first, last = map(float, (begin, end, first, last))
        text = f"({first!r}*({end!r} - t) + {last!r}*(t - {begin!r}))/{end - begin!r}"
        pairs.append([begin, text])
    return [*pairs, [float(times[-1]), float(values[-1])]]


def _run_text(answer: OptimalSchedule) -> str:
    """Return options and parameters of a run with the schedule, for the model with or without the schedule."""
    import tomli_w

    details = answer.asked.details
    changed = {name: value for name, value in details["changed"].items() if value is not None}
    changed[str(details["vary"])] = schedule_pairs(answer["knot"], answer["schedule"])
    return tomli_w.dumps({"until": float(answer["knot"][-1]), "seed": details["seed"], "parameters": changed})


@dataclasses.dataclass(frozen=True)
class Wish:
    """Task of `optimise`: the parameter, the measure, the bounds, the number of knots, and a budget."""

    vary: str
    minimise: str
    knots: int
    bounds: tuple[float, float]
    budget: float | None


def wish(case: Case, vary: str, minimise: str, knots: Any = 20, between: Any = None, budget: Any = None) -> Wish:
    """Return the task of `optimise`, after checking it.

    `between` are two numbers, or text as "0,5"; by default 0 and five times the present value.

    Raises `UsageError` for a model or a parameter without schedules, the step of a flow, and invalid bounds.
    """
    if not hasattr(case.parameters, "declaration") or len(case.system.stages) > 1:
        raise UsageError(f"optimise takes only declared models with one stage, but {case.name} is not one")
    if vary not in VARIED:
        raise UsageError(f"--vary must be one of {', '.join(VARIED)}, but {shortened(vary)} was given")
    if case.parameters.declaration.limit == "flow" and vary == "step":
        raise UsageError(
            f"{case.name} is a gradient flow, the limit of small steps: it has no step to optimise; declare "
            "limit = 'online'"
        )
    dependence.require(case, [vary], "--vary")
    quantities.read(minimise, "--minimise")
    count = whole_number(knots, "--knots")
    if not 1 <= count <= MOST_KNOTS:
        raise UsageError(f"--knots must be between 1 and {MOST_KNOTS}, but {count} was given")
    limit = None if budget is None else real_number(budget, "--budget")
    return Wish(vary, minimise, count, _bounds(between, float(case.by_name[vary])), limit)


def _bounds(between: Any, value: float) -> tuple[float, float]:
    """Return the bounds of a schedule. Raises `UsageError` unless they are two increasing numbers of at least 0."""
    if between is None:
        if value <= 0:
            raise UsageError("--between is missing: give the smallest and the largest value, such as --between 0,1")
        return 0.0, LARGEST * value
    parts = between.split(",") if isinstance(between, str) else between
    if not isinstance(parts, list | tuple) or len(parts) != 2:
        raise UsageError(f"--between must be two numbers such as 0,5, but {shortened(between)} was given")
    low, high = (real_number(part, "--between") for part in parts)
    if not 0 <= low < high:
        raise UsageError(f"--between must be two increasing numbers of at least 0, but {low:g},{high:g} was given")
    return low, high


def question(case: Case, asked: Wish) -> Question:
    """Return the question that `answer` answers."""
    details = {name: value for name, value in case.request().items() if name not in LEFT_OUT}
    default = {f.name: f.default for f in dataclasses.fields(case.system.parameters)}
    changed = {
        name: plain(value) for name, value in case.by_name.items() if value != default[name] and name != asked.vary
    }
    return Question.about(
        VERB, case.system,
        {
            **details, "changed": changed, "vary": asked.vary, "minimise": asked.minimise, "knots": asked.knots,
            "between": list(asked.bounds), "budget": asked.budget,
        },
    )  # fmt: skip


@in_double
def answer(case: Case, asked: Wish, progress: Callable[[float, float], object] | None = None) -> OptimalSchedule:
    """Return the best schedule of a flow.

    Raises `UsageError` for a level that is not reached and for equations without schedules, `NumericalError` if no grid
    resolves the optimum.
    """
    measure = quantities.read(asked.minimise, "--minimise")
    base = dependence.inputs_of(case)
    quantity = traced_quantity(base.problem, measure, "--minimise")
    # A step must begin above 0, because with a schedule that begins at 0 there is no SGD.
    low = max(asked.bounds[0], 1e-9 * asked.bounds[1])
    flow = ControlledFlow(case, base, asked.vary, quantity, (low, asked.bounds[1]))
    task = Task(case.until, asked.knots, measure.sign, float(measure.level or 0.0), asked.budget)
    found = optimal_schedule.optimise(flow, task, progress)
    numbers = _numbers(found, asked, flow.quadratic)
    sentences = [*_sentences(found, asked, numbers), _how_to_run(case)]
    return OptimalSchedule(question(case, asked), _variables(found, asked), numbers, tuple(sentences))


def _variables(found: Optimum, asked: Wish) -> dict[str, Variable]:
    """Schedules, and the quantity along each."""
    what, quantity = asked.vary, asked.minimise
    variables = {
        "knot": Variable(("knot",), found.knots.time, "times of the knots"),
        "schedule": Variable(("knot",), found.knots.value, f"best {what} at the knots, linear in between"),
        "time": Variable(("time",), found.knots.course, "time of the run with the best schedule"),
        "quantity": Variable(("time",), found.knots.quantity, f"quantity of {quantity!r} with the best schedule"),
    }
    for name, schedule, words in (
        ("constant", found.constant, "the best constant"), ("greedy", found.greedy, "the greedy schedule"),
        ("polished", found.polished, "the optimum in continuous time"),
    ):  # fmt: skip
        if schedule is not None:
            dims = (f"{name}_time",)
            values = np.interp(schedule.course, schedule.time, schedule.value)
            variables[f"{name}_time"] = Variable(dims, schedule.course, f"time of the run with {words}")
            variables[f"{name}_schedule"] = Variable(dims, values, f"{what}, {words}")
            variables[f"{name}_quantity"] = Variable(dims, schedule.quantity, f"quantity with {words}")
    dims = ("time",) if found.polished is None else ("polished_time",)
    variables["alignment"] = Variable(dims, found.alignment, "cosine between the costate and the gradient of h")
    return variables


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _numbers(found: Optimum, asked: Wish, quadratic: bool) -> dict[str, Any]:
    """The headline numbers."""
    greedy, polished = found.greedy, found.polished
    return {
        "vary": asked.vary, "minimise": asked.minimise, "between": list(asked.bounds), "knots": asked.knots,
        "value": found.knots.result, "end": float(found.knots.time[-1]),
        "constant": float(found.constant.value[0]), "constant_value": found.constant.result,
        "greedy_value": None if greedy is None else _finite(greedy.result),
        "polished_value": None if polished is None else polished.result,
        "stationarity": _finite(found.stationarity), "alignment": float(found.alignment.min()),
        "integral": float(control.integral_weights(found.knots.time) @ found.knots.value),
        "quadratic": quadratic, "gradients": found.evaluations, "grid": found.steps,
    }  # fmt: skip


def _how_to_run(case: Case) -> str:
    """Return the command that runs the schedule; initial arrays are not part of the two files."""
    arrays = "" if case.initial is None else " and the same initial arrays (--initial)"
    return f"to run it: odesim integrate --system {MODEL} --config {RUN}, both in the folder{arrays}"


def _sentences(found: Optimum, asked: Wish, numbers: Mapping[str, Any]) -> list[str]:
    """The answer in words."""
    best = found.knots.result
    head = f"{asked.minimise}: {best:.6g} with {asked.vary} on {asked.knots} knots"
    constant = f"best constant {asked.vary} {numbers['constant']:.6g}: {found.constant.result:.6g}"
    lines = [f"{head}; {constant}"]
    if found.greedy is not None:
        lines.append(_greedy_sentence(found, found.greedy.result))
    if found.polished is not None:
        lines.append(
            f"optimum in continuous time: {found.polished.result:.6g}, stationary to {found.stationarity:.1e} of "
            f"the upper bound; the schedule on knots is worse by {best / found.polished.result - 1:.1e}, "
            "relative to it"
        )
    if asked.budget is not None:
        lines.append(f"integral of the schedule: {numbers['integral']:.6g} of a budget of {asked.budget:g}")
    edge = asked.bounds[1] * (1 - 1e-6)
    if (found.knots.value >= edge).any():
        lines.append(f"the schedule touches its upper bound {asked.bounds[1]:g}")
    return lines


def _greedy_sentence(found: Optimum, result: float) -> str:
    """The greedy schedule in words."""
    least = float(found.alignment.min())
    value = f"{result:.6g}" if math.isfinite(result) else "not reached"
    best = min(found.knots.result, found.polished.result if found.polished else np.inf)
    said, cosine = f"the greedy schedule gives {value} and", "the cosine of costate and gradient"
    if math.isfinite(result) and result <= best + GREEDY * abs(best):
        return f"{said} is optimal: {cosine} is at least {least:.4g}"
    return f"{said} is not optimal: {cosine} falls to {least:.3g}"

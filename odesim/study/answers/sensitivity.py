"""Answer of `odesim sensitivity`: derivatives of final values and hitting times with respect to parameters."""

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

from odesim.errors import UsageError
from odesim.machine.device import in_double
from odesim.request.answer import Answer, Question, Table
from odesim.request.case import Case
from odesim.request.trajectory import Variable
from odesim.study import parameter_dependence as dependence
from odesim.study import sensitivity as theory
from odesim.study.quantities import read

VERB = "sensitivity"
LEFT_OUT = ("method", "system", "declaration", "save_points", "save_at", "early_times", "backend", "solver", "step")
"""Entries of a request that derivatives do not depend on."""


@dataclasses.dataclass(frozen=True, repr=False)
class Gradient(Answer):
    """Derivatives of measures with respect to parameters.

    Arrays: `value` and `time` (measure,), `derivative` and `elasticity` (measure, parameter), `at` (parameter,).
    The elasticity is p/h dh/dp, the change of h in per cent when p grows by one per cent.

    Example:
        >>> import odesim
        >>> answer = odesim.gradient("arnaboldi_2023", of="final error", to=["noise"], until=400)
        >>> round(answer.value["final error"], 6), round(answer.of("final error")["noise"], 6)
        (0.045, 0.3)
    """

    @property
    def value(self) -> dict[str, float]:
        """Values of the measures by their text."""
        return dict(zip(self["measure"].tolist(), self["value"].tolist(), strict=True))

    def of(self, measure: str) -> dict[str, float]:
        """Return the derivatives of a measure by parameter.

        Raises:
            UsageError: The measure is not in this answer.
        """
        measures = self["measure"].tolist()
        if measure not in measures:
            raise UsageError(f"{measure!r} is not in this answer, which has {', '.join(measures)}")
        row = self["derivative"][measures.index(measure)]
        return dict(zip(self["parameter"].tolist(), row.tolist(), strict=True))

    def tables(self) -> Mapping[str, Table]:
        """Return the derivatives as a table, the largest elasticity of a measure first.

        Returns:
            The table "derivatives": a row for every measure and parameter.
        """
        header = ["measure", "value", "parameter", "at", "derivative", "elasticity"]
        rows = []
        for m, measure in enumerate(self["measure"].tolist()):
            for k in _order(self["elasticity"][m], self["derivative"][m]):
                numbers = [self["at"][k], self["derivative"][m, k], self["elasticity"][m, k]]
                value, parameter = float(self["value"][m]), str(self["parameter"][k])
                parameter_value, slope, elasticity = map(float, numbers)
                rows.append([measure, value, parameter, parameter_value, slope, elasticity])
        return {"derivatives": (header, rows)}


RESULT = Gradient


def _order(elasticities: np.ndarray, slopes: np.ndarray) -> list[int]:
    """Return the indices of the parameters, the largest elasticity first, then the largest derivative."""
    sizes = np.nan_to_num(np.abs(elasticities), nan=-1.0)
    return sorted(range(len(slopes)), key=lambda k: (-sizes[k], -np.nan_to_num(abs(slopes[k]), nan=-1.0)))


def question(case: Case, of: Sequence[str], to: Sequence[str]) -> Question:
    """Return the question that `answer` answers. Without names in `to` it has all parameters with a derivative.

    Raises `UsageError` for a missing or invalid measure, and parameters without a derivative.
    """
    if not of:
        raise UsageError("--of is missing: give a measure such as --of 'final error'")
    for name in of:
        read(name)
    names = list(dict.fromkeys(to)) or dependence.differentiable(case)
    if not names:
        raise UsageError(f"{case.name} has no parameter with respect to which its flow is differentiable")
    dependence.require(case, names)
    details = {name: value for name, value in case.request().items() if name not in LEFT_OUT}
    return Question.about(VERB, case.system, {**details, "of": list(dict.fromkeys(of)), "to": names})


@in_double
def answer(case: Case, of: Sequence[str], to: Sequence[str] = ()) -> Gradient:
    """Return the derivatives of measures with respect to parameters.

    Arguments:
        case: The flow, its start and its horizon.
        of: Measures, "final R" or "first time R >= c".
        to: Names of parameters; by default all that have a derivative.

    Raises `UsageError` as `question` and `odesim.study.sensitivity.derivatives` do.
    """
    asked_question = question(case, of, to)
    measures, names = list(asked_question.details["of"]), list(asked_question.details["to"])
    rows = theory.derivatives(case, measures, names)
    parameter_values = np.array([float(case.by_name[name]) for name in names])
    values, slopes = np.array([row.value for row in rows]), np.array([row.slopes for row in rows])
    with np.errstate(divide="ignore", invalid="ignore"):
        elasticities = np.where(values[:, None] != 0.0, slopes * parameter_values / values[:, None], np.nan)
    elasticities[~np.isfinite(elasticities)] = np.nan
    dims = ("measure", "parameter")
    variables = {
        "measure": Variable(("measure",), np.array(measures), "measures"),
        "parameter": Variable(("parameter",), np.array(names), "parameters"),
        "value": Variable(("measure",), values, "value of the measure, infinite for a level that is not reached"),
        "time": Variable(("measure",), np.array([row.time for row in rows]), "time at which the measure is evaluated"),
        "at": Variable(("parameter",), parameter_values, "value of the parameter"),
        "derivative": Variable(dims, slopes, "derivative of the measure with respect to the parameter"),
        "elasticity": Variable(dims, elasticities, "p/h dh/dp, of a measure h and a parameter p"),
    }
    numbers = {
        row.measure: {"value": _number(row.value), **dict(zip(names, map(_number, row.slopes), strict=True))}
        for row in rows
    }
    sentences = tuple(_sentence(row, names, part, case.until) for row, part in zip(rows, elasticities, strict=True))
    return Gradient(asked_question, variables, {"until": case.until, "derivatives": numbers}, sentences)


def _number(value: float) -> float | None:
    """Return a number as a JSON value; None for infinity and NaN."""
    return float(value) if math.isfinite(value) else None


def _sentence(row: theory.Derivatives, names: Sequence[str], elasticities: np.ndarray, until: float) -> str:
    """A measure with its value and its derivatives, the largest elasticity first."""
    if not math.isfinite(row.value):
        return f"{row.measure}: not reached until t = {until:g}, so there are no derivatives"
    order = _order(elasticities, row.slopes)
    slopes = ", ".join(f"{names[k]} {row.slopes[k]:+.6g}" for k in order)
    return f"{row.measure} = {row.value:.8g}; derivatives: {slopes}"

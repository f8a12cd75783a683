"""Claims on the leading law: growth of the time to find the teacher as the initial overlap decreases.

At information exponent k the time from an overlap m0 is, to lowest order, a power m0^(2-k) (k > 2), log(1/m0) (k = 2),
or does not grow (k = 1); m0 = 1/sqrt(d) makes that d^(k/2-1), log d and 1. The claim of a logarithm uses the property
that distinguishes it from every power: a start four times farther away adds the same time everywhere.
"""

import functools
import math
from collections.abc import Mapping
from typing import Any

from derivations.broken import break_measure, grid
from derivations.claim import Claim
from derivations.contract import System, UsageError
from derivations.declare import leading
from derivations.declare.claims import measurements
from derivations.declare.declaration import Declaration
from derivations.declare.parameter_class import rows
from derivations.declare.tiers import settled
from derivations.laws import Power, Vanishes
from derivations.scaling import Form

LEVEL = 0.5
FARTHER = 4.0
"""Ratio of the starts whose times are compared if the law is a logarithm."""
DECADES = 4.0
"""Decades of the start. For the farthest starts of high exponents times are about 1e4, and an explicit method takes as
many steps at rest.
"""


def claims(system: System) -> tuple[Claim, ...]:
    """Return the claims on the leading law, if there is one and students do not disturb each other before the
    escape.
    """
    parameters = system.parameters()
    declared: Declaration = parameters.declaration
    try:
        k, gain = leading.growth(parameters)
    except UsageError:
        return ()
    independent = declared.loss == "correlation" or rows(parameters).students == 1
    plain = all(group.output in ("sum", "mean", "root") for group in declared.groups)
    if (
        settled(parameters) != "exact"
        or not independent
        or not plain
        or gain <= 0
        or getattr(parameters, "gram", 1.0) != 0
    ):
        return ()
    return _law(system, k), _rate(system, k)


def _law(system: System, k: int) -> Claim:
    farthest = max(1e-4, 10 ** (-DECADES / max(k - 2, 1)))
    points = [{"overlap": farthest * x} for x in (1.0, 3.0, 10.0, 30.0)]
    if farthest * 30 > 0.1:
        points = [{"overlap": farthest * x} for x in (1.0, 1.4, 2.0, 2.8)]
    power = float(min(0, 2 - k))
    text = f"{leading.law(k)}. As the initial overlap m0 = 1/sqrt(d) falls, this time is "
    descriptions = {1: "constant", 2: f"longer by the same amount for every division of m0 by {FARTHER:g}"}
    rivals = [power - 0.5, power + 0.5] if k < 3 else [power - 1.0, power + 1.0]
    law = Power(
        power, over="overlap", margin=0.05, error=1e-4, toward="small", meaning="time" if k != 2 else "added time",
        rivals=tuple(Form(f"overlap^{r:g}", 0.0, r) for r in rivals), short="the time grows like the law itself",
        no_log_rival="the flow is an expansion in powers of the overlap",
    )  # fmt: skip
    measure = added if k == 2 else time
    return Claim(
        id="leading-law", statement=text + descriptions.get(k, f"proportional to m0^{power:g}"),
        source=system.source.at("generated"), measure=measure, law=law, sweep={"quick": grid(*points)},
        control=break_measure(functools.partial(measure, twist=1.0)), rungs=(3,), derived=True,
    )  # fmt: skip


def _rate(system: System, k: int) -> Claim:
    farthest = max(1e-3, 10 ** (-DECADES / max(k - 2, 1)))
    text = "Near the start the overlap doubles in the time that the leading order predicts"
    return Claim(
        id="leading-rate", statement=text, source=system.source.at("generated"), measure=rate,
        law=Vanishes(2e-2, meaning="relative difference"), sweep={"quick": grid({"overlap": farthest})},
        control=break_measure(functools.partial(rate, twist=0.3)), rungs=(3,), derived=True,
    )  # fmt: skip


def first(lab: Any, start: float, level: float, seed: int) -> float:
    """The time at which the overlap of a student with its teacher goes from `start` to `level`, by the exact flow."""
    parameters = lab.system.parameters()
    k, gain = leading.growth(parameters)
    expected = leading.time_of(k, gain * factor(parameters), start, level)
    measure_options = {
        "engine": "flow", "variable": rows(parameters).teacher_overlaps,
        "entry": None, "reduction": "max", "absolute": False, "sign": ">=",
        "level": level, "until": 1.5 * expected, "step": None, "batch": None,
        "parameters": {"tier": "exact", "rtol": 1e-9},
    }  # fmt: skip
    return measurements.measured(lab, {"overlap": start}, seed, measure_options)


def factor(parameters: Any) -> float:
    """a b of a student with a teacher."""
    product = 1.0
    for group, size in zip(parameters.declaration.groups, rows(parameters).units, strict=True):
        product *= {"sum": 1.0, "mean": 1.0 / size, "root": size**-0.5}[group.output]
    return product


def time(lab: Any, point: Mapping[str, Any], seed: int, twist: float = 0.0) -> float:
    """Return the time from the overlap of the point to 1/2; the control makes it grow faster."""
    return first(lab, point["overlap"], LEVEL, seed) * point["overlap"] ** -twist


def added(lab: Any, point: Mapping[str, Any], seed: int, twist: float = 0.0) -> float:
    """Return the difference of the times from the overlap of the point and from one four times as large."""
    start = point["overlap"]
    longer = first(lab, start, LEVEL, seed) - first(lab, FARTHER * start, LEVEL, seed)
    return longer * start**-twist


def rate(lab: Any, point: Mapping[str, Any], seed: int, twist: float = 0.0) -> float:
    """Return the relative difference between the doubling time of the overlap and the prediction of the leading
    order.
    """
    parameters, start = lab.system.parameters(), point["overlap"]
    k, gain = leading.growth(parameters)
    expected = leading.time_of(k, gain * factor(parameters), start, 2 * start)
    return abs(first(lab, start, 2 * start, seed) * (1 + twist) / expected - 1) if math.isfinite(expected) else math.inf

"""Every parameter at the ends of its domain, and far from its default: `python -m tests.faults.extremes`.

One parameter at a time, by `odesim integrate` and `odesim simulate` of every system and tier, for a short time; then
step sizes that diverge.  A fault is what `tests.faults.inputs` calls one, or a run that ends well (exit code 0) with a
state that is no number or lies outside the bounds that its system declares.
"""

import argparse
import collections
import dataclasses
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import derivations
import odesim
from derivations.contract import Dynamics, Recursion, System, load
from odesim.flow.problem import prepare
from odesim.request.case import Case
from tests.faults.inputs import outcome

FACTORS = (1e-3, 1e3)
HUGE = 10**15
STEPS = (1.0, 1e3, 1e9)
"""Step sizes far above what any system allows."""
PATIENCE = 90.0
"""Seconds: every command compiles first, as a fork keeps nothing in memory for the next."""
SLACK = 1e-3
"""By how much a state may leave its bounds: tolerances of a flow, rounding of SGD."""


def main() -> int:
    """Try every end, and print a line for every tier."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.extremes", description=__doc__)
    parser.add_argument("--system", action="append", choices=derivations.names())
    parser.add_argument("--only", action="append", help="STAGE/TIER (all)")
    parser.add_argument("-p", dest="given", action="append", default=[], help="NAME=VALUE, for tiers that need it")
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        place = Path(name) / "case"
        os.chdir(name)
        for system in map(derivations.system, options.system or derivations.names()):
            for stage in (stage for stage in system.stages if isinstance(stage, Dynamics)):
                for tier in stage.tiers:
                    if options.only is None or f"{stage.name}/{tier}" in options.only:
                        given = dict(word.split("=", 1) for word in options.given)
                        wrong += attacked(system, stage, tier, given, place)
    return 1 if wrong else 0


def attacked(system: System, stage: Dynamics, tier: str, given: dict[str, Any], place: Path) -> int:
    """Try one tier; gives the number of faults."""
    found: collections.Counter[str] = collections.Counter()
    for words in asked(system, stage, tier, given):
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        what = outcome([*words, "--out", str(place / "run"), "--no-figures", "--quiet"], place, PATIENCE)
        if what == "exit code 0":
            what = judged(place / "run", system, stage.name)
        found[what] += 1
        if what.isupper():
            print(f"    {what}: {' '.join(words)}\n    {(place / 'stderr').read_text()[-600:]}", flush=True)
    print(
        f"{system.name} {stage.name} {tier}: " + ", ".join(f"{n} {what}" for what, n in found.most_common()), flush=True
    )
    return sum(n for what, n in found.items() if what.isupper())


def asked(system: System, stage: Dynamics, tier: str, given: dict[str, Any]) -> Iterator[list[str]]:
    """The commands: every numeric parameter at its ends for the flow and, once a stage, for SGD; steps that diverge.

    Horizons are those of about twenty steps, of a recursion and of SGD, whatever their clock says at these parameters.
    """
    own = {"tier": tier} if any(field.name == "tier" for field in dataclasses.fields(system.parameters)) else {}
    chosen = given or needed(system, stage, own)
    flow = ["integrate", "--save-points", "3"]
    sgd = ["simulate", "--method", "compressed", "--batch", "8", "--save-points", "3"]
    changes: list[dict[str, Any]] = [{}]
    changes += [{field.name: value} for field in dataclasses.fields(system.parameters) for value in ends(field)]
    for change in changes:
        yield [
            *flow,
            *words(system, stage, {**own, **chosen, **change}),
            "--until",
            lasting(system, stage, own | chosen | change),
        ]
    if tier != stage.tiers[0]:
        return
    for change in changes:
        step = 1e-5 * Case.build(system, {}, stage=stage.name).until
        until = ticks(system, stage, chosen | change, step)
        yield [*sgd, *words(system, stage, chosen | change), "--step-size", f"{step:g}", "--until", until]
    for step in STEPS:
        until = ticks(system, stage, chosen, step)
        yield [*sgd, *words(system, stage, chosen), "--step-size", f"{step:g}", "--until", until]


def words(system: System, stage: Dynamics, values: dict[str, Any]) -> list[str]:
    """The options of a stage and of parameters."""
    given = [word for name, value in values.items() for word in ("-p", f"{name}={value}")]
    return ["--system", system.name, "--stage", stage.name, *given]


def needed(system: System, stage: Dynamics, own: dict[str, Any]) -> dict[str, Any]:
    """The first choice of a parameter with which a tier can be asked for, where it needs one."""
    choices = [{field.name: choice} for field in dataclasses.fields(system.parameters) if field.name not in own
               for choice in field.metadata.get("choices") or ()]  # fmt: skip
    for change in ({}, *choices):
        try:
            load(stage.equations)(Case.build(system, own | change, stage=stage.name).parameters, own.get("tier"))
        except (ValueError, KeyError):
            continue
        return change
    return {}


def lasting(system: System, stage: Dynamics, values: dict[str, Any]) -> str:
    """The end of a flow: a thousandth of its horizon, and twenty steps of a recursion."""
    try:
        case = Case.build(system, values, stage=stage.name)
        advance = load(stage.equations)(case.parameters, values.get("tier", stage.tiers[0])).advance
    except (ValueError, KeyError):
        return f"{1e-3 * Case.build(system, {}, stage=stage.name).until:g}"
    recursion = advance if isinstance(advance, Recursion) else getattr(advance, "map", None)
    if recursion is not None:
        return f"{20 * getattr(case.parameters, recursion.step):.17g}"
    return f"{1e-3 * case.until:g}"


def ticks(system: System, stage: Dynamics, values: dict[str, Any], step: float) -> str:
    """The time of twenty steps of SGD."""
    try:
        parameters = Case.build(system, values, stage=stage.name).parameters
        parameters = stage.stepped(parameters, step, frozenset(values))
    except ValueError:
        parameters = Case.build(system, {}, stage=stage.name).parameters
    return f"{20 * stage.tick(parameters, step):.17g}"


def ends(field: Any) -> list[Any]:
    """The ends of the domain of a parameter that is a number, and values far from its default."""
    default, domain = field.default, field.metadata
    if isinstance(default, bool | str | tuple) or default is None:
        return []
    wanted = [domain[end] for end in ("minimum", "maximum") if domain.get(end) is not None]
    if isinstance(default, int):
        wanted += [1, 2, HUGE]
    else:
        wanted += [factor * (default or 1.0) for factor in FACTORS] + [-default]
        wanted += [domain["above"] + 1e-9] if domain.get("above") is not None else []
    return sorted({type(default)(value) for value in wanted})


def judged(folder: Path, system: System, stage: str) -> str:
    """Return True if a run stored as finished contains only numbers within their bounds."""
    run = odesim.load(folder)
    outcome_, state = run.trajectory.outcome.kind, run.trajectory.state
    if any(not np.isfinite(v.values).all() for v in state.values()):
        return f"NOT FINITE, {outcome_.upper()}"
    parameters = run.trajectory.origin.parameters
    try:
        components = prepare(Case.build(system, parameters, stage=stage)).equations.state
    except ValueError:  # a stage after another starts from its end
        return outcome_
    for component in components:
        low, high = component.bounds
        values = state[component.name].values if component.name in state else np.zeros(1)
        room = SLACK * max([1.0, *(abs(end) for end in (low, high) if np.isfinite(end))])
        if values.size and not (low - room <= values.min() and values.max() <= high + room):
            return f"{component.name.upper()} OUTSIDE ITS BOUNDS"
    return outcome_


if __name__ == "__main__":
    sys.exit(main())

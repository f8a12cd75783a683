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
from derivations.contract import Dynamics, System
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
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        place = Path(name) / "case"
        os.chdir(name)
        for system in map(derivations.system, options.system or derivations.names()):
            for stage in system.stages:
                for tier in stage.tiers if isinstance(stage, Dynamics) else ():
                    if options.only is None or f"{stage.name}/{tier}" in options.only:
                        wrong += attacked(system, stage.name, tier, place)
    return 1 if wrong else 0


def attacked(system: System, stage: str, tier: str, place: Path) -> int:
    """Try one tier; gives the number of faults."""
    found: collections.Counter[str] = collections.Counter()
    for words in asked(system, stage, tier):
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        what = outcome([*words, "--out", str(place / "run"), "--no-figures", "--quiet"], place, PATIENCE)
        if what == "exit code 0":
            what = judged(place / "run", system, stage)
        found[what] += 1
        if what.isupper():
            print(f"    {what}: {' '.join(words)}\n    {(place / 'stderr').read_text()[-600:]}", flush=True)
    print(f"{system.name} {stage} {tier}: " + ", ".join(f"{n} {what}" for what, n in found.most_common()), flush=True)
    return sum(n for what, n in found.items() if what.isupper())


def asked(system: System, stage: str, tier: str) -> Iterator[list[str]]:
    """The commands: every numeric parameter at its ends for the flow and for SGD, then steps that diverge."""
    first = system.stages[0].name
    tiers = ["-p", f"tier={tier}"] if any(f.name == "tier" for f in dataclasses.fields(system.parameters)) else []
    named = ["--system", system.name, *(["--stage", stage] if stage != first else []), *tiers]
    try:
        horizon = 1e-3 * Case.build(system, {"tier": tier} if tiers else {}, stage=first).until
    except ValueError:  # a tier that needs more than its name
        horizon = 1e-3 * Case.build(system, {}, stage=first).until
    flow = ["integrate", *named, "--until", f"{horizon:g}", "--save-points", "3"]
    sgd = ["simulate", *named, "--method", "compressed", "--batch", "8", "--save-points", "3"]
    yield flow
    for field in dataclasses.fields(system.parameters):
        for value in ends(field):
            yield [*flow, "-p", f"{field.name}={value}"]
            yield [*sgd, "--step-size", f"{horizon / 100:g}", "--until", f"{horizon:g}", "-p", f"{field.name}={value}"]
    for step in STEPS:
        yield [*sgd, "--step-size", f"{step:g}", "--until", f"{20 * step:g}"]


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
    """Whether what was stored as done holds numbers within their bounds."""
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

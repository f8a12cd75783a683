"""Generated claim on the law of the time in which SGD leaves a saddle, from random starts."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.broken import once
from derivations.claim import Claim
from derivations.contract import System, UsageError
from derivations.declare import leading, schedules
from derivations.declare.claims import measurements
from derivations.declare.claims.states import FLOW_RATE, generated_claim, horizon
from derivations.declare.declaration import Declaration
from derivations.declare.system import rows
from derivations.laws import Agrees
from derivations.laws.agreement import Score, score

DIMENSION, RUNS = 300, 1000
FOUND = 0.5
"""Overlap at which a teacher is found."""
PATIENCE, SAVED = 2.0, 401
"""How long runs are followed, in units of the time of the flow from an overlap of 1/sqrt(d), and how finely."""
HORIZONS, DOUBLINGS = 10.0, 8
"""How long that flow is followed, in units of the time in which the state moves, and how often it is given longer."""
PROBABILITIES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Those of the quantiles of a hitting time that bands tell."""


def from_a_saddle(parameters: Any) -> bool:
    """True where random starts lie at a saddle: the lowest degree that student and teacher share is two."""
    declared: Declaration = parameters.declaration
    if declared.weights == "free" or declared.loss not in ("squared", "correlation") or declared.rules:
        return False
    if declared.look is not None or declared.several or declared.predicted or schedules.active(parameters):
        return False
    try:
        return leading.shared_degree(parameters)[0] == 2
    except UsageError:
        return False


def escape_claim(system: System) -> Claim:
    text = "The time in which SGD from random starts finds the teacher has the predicted distribution of escape times"
    law = Agrees(0.1, "share of runs", "times that are a quarter longer differ by more")
    return generated_claim(system, "escape", text, escapes, law, once({"d": DIMENSION, "seeds": RUNS}), 0.25, (8,))


def escapes(lab: Any, point: Mapping[str, Any], seed: int, twist: float = 0.0) -> Score:
    """The share of fresh runs of SGD that have found the teacher by the quantiles of the law of escapes."""
    parameters: Any = lab.system.parameters()
    name, until = rows(parameters).teacher_overlaps, patience(lab, point["d"], seed)
    asked = {"d": point["d"], "overlap": None, "seed": seed, "until": until, "fresh_initial": True}
    asked |= {"step_size": FLOW_RATE / point["d"]} if parameters.declaration.limit == "flow" else {}
    measure = f"first time max(abs({name})) >= {FOUND}"
    quantiles = np.array(lab.bands(of=[measure], **asked).summary()["hitting"][0]["quantiles"]) / (1 + twist)
    times = found_at(lab.simulate(method="compressed", seeds=point["seeds"], save_points=SAVED, **asked), name)
    seen = np.isfinite(quantiles)
    if not seen.any():  # SGD never finds the teacher
        return score(np.isfinite(times).mean(), np.sqrt(0.25 / len(times)), 0.0, size=1.0)
    probabilities = np.array(PROBABILITIES)[seen]
    shares = (times[:, None] <= quantiles[seen]).mean(axis=0)
    return score(shares, np.sqrt(probabilities * (1 - probabilities) / len(times)), probabilities, size=1.0)


def found_at(run: Any, name: str) -> np.ndarray:
    """The times (replica,) at which a student first has the overlap `FOUND` with a teacher, infinite where never."""
    overlaps = np.abs(np.asarray(run[name]))
    largest = overlaps.max(axis=(-2, -1)).reshape(-1, SAVED)
    return np.array([measurements.crossed(np.asarray(run.time), path - FOUND) for path in largest])


def patience(lab: Any, d: int, seed: int) -> float:
    """The end of fresh runs, some times as late as the flow finds the teacher from an overlap of 1/sqrt(d)."""
    until, name = HORIZONS * horizon(lab.system), rows(lab.system.parameters()).teacher_overlaps
    for _ in range(DOUBLINGS):
        (time,) = found_at(lab.integrate(overlap=d**-0.5, seed=seed, until=until, save_points=SAVED), name)
        if np.isfinite(time):
            return PATIENCE * float(time)
        until *= 2
    return until

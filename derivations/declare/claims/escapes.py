"""Generated claim on the distribution of the time in which SGD leaves a saddle, from random starts."""

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
from derivations.declare.parameter_class import rows
from derivations.laws import Agrees
from derivations.laws.agreement import Score, score

DIMENSION, RUNS = 300, 1000
FOUND = 0.5
"""Overlap at which a teacher counts as found."""
PATIENCE, SAVED = 2.0, 401
"""Duration of runs, in units of the time of the flow from an overlap of 1/sqrt(d), and number of saved points."""
HORIZONS, DOUBLINGS = 10.0, 8
"""Duration of that flow, in units of the time in which the state changes, and the number of times it is doubled."""
PROBABILITIES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Probabilities of the quantiles of a hitting time."""


def from_a_saddle(parameters: Any) -> bool:
    """Return True if random starts lie at a saddle: the lowest common degree of student and teacher is two."""
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
    """Return the share of new runs of SGD that have found the teacher by the quantiles of the escape time."""
    parameters: Any = lab.system.parameters()
    name, until = rows(parameters).teacher_overlaps, patience(lab, point["d"], seed)
    run_options = {"d": point["d"], "overlap": None, "seed": seed, "until": until, "fresh_initial": True}
    run_options |= {"step_size": FLOW_RATE / point["d"]} if parameters.declaration.limit == "flow" else {}
    measure = f"first time max(abs({name})) >= {FOUND}"
    quantiles = np.array(lab.bands(of=[measure], **run_options).summary()["hitting"][0]["quantiles"]) / (1 + twist)
    times = found_at(lab.simulate(method="compressed", seeds=point["seeds"], save_points=SAVED, **run_options), name)
    finite = np.isfinite(quantiles)
    if not finite.any():  # SGD never finds the teacher
        return score(np.isfinite(times).mean(), np.sqrt(0.25 / len(times)), 0.0, size=1.0)
    probabilities = np.array(PROBABILITIES)[finite]
    shares = (times[:, None] <= quantiles[finite]).mean(axis=0)
    return score(shares, np.sqrt(probabilities * (1 - probabilities) / len(times)), probabilities, size=1.0)


def found_at(run: Any, name: str) -> np.ndarray:
    """Return the times (replica,) at which a student first has the overlap `FOUND` with a teacher, infinite if
    never.
    """
    overlaps = np.abs(np.asarray(run[name]))
    largest = overlaps.max(axis=(-2, -1)).reshape(-1, SAVED)
    return np.array([measurements.crossed(np.asarray(run.time), path - FOUND) for path in largest])


def patience(lab: Any, d: int, seed: int) -> float:
    """Return the end of new runs, a multiple of the time in which the flow finds the teacher from an overlap of
    1/sqrt(d).
    """
    until, name = HORIZONS * horizon(lab.system), rows(lab.system.parameters()).teacher_overlaps
    for _ in range(DOUBLINGS):
        (time,) = found_at(lab.integrate(overlap=d**-0.5, seed=seed, until=until, save_points=SAVED), name)
        if np.isfinite(time):
            return PATIENCE * float(time)
        until *= 2
    return until

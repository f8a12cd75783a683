"""Common functions of several claims: sources, experts with known constants, runs at the rates of the theory."""

import dataclasses
import functools
from typing import Any

import numpy as np

from derivations.broken import claim_of
from derivations.contract import Initial
from derivations.pruning import SOURCE, initial
from derivations.pruning.parameters import Parameters

ERRATA = "derivations/pruning/README.md"


claim = functools.partial(claim_of, SOURCE)
"""A claim of this paper."""


def at(place: str) -> Any:
    """Return the paper as a source, at the given place."""
    return SOURCE.at(place)


def theory(lab: Any, seed: int, **parameters: Any) -> Any:
    """Run the flow of experts of given kinds at the rates of the theory, to the time T; both ends are saved."""
    given = {"save_points": 2, "tier": "flow", **parameters}
    return lab.integrate(seed=seed, **given)


def width(d: int) -> dict[str, int]:
    """Return sizes with k = O(sqrt d) experts.

    In each sign group at least a share 0.6 of the experts is unimportant (Theorem 4.3).
    """
    half = round(np.sqrt(d) / 2)
    return {"d": d, "k": 2 * half, "important": max(1, int(0.4 * half)), "missigned": 1, "weak": 1}


def final(run: Any) -> Initial:
    """Return the initial condition that continues a run."""
    arrays = {name: v.values[-1] for name, v in run.state.items() if v.dims[0] == "time"}
    arrays |= {name: v.values for name, v in run.extras.items()}
    known = {f.name for f in dataclasses.fields(Parameters)}
    given = {name: value for name, value in run.origin.parameters.items() if name in known}
    return initial.from_stage(Parameters(**given), arrays)


def alike(
    N: int, gap: float, delta: float, active: int = 10, alive: bool = True, other: float = -60.0, **parameters: Any
) -> Initial:
    """Return one expert of head sign +1 for which all irrelevant patterns are alike.

    h_1 - h_q = gap, sigma_1 - sigma_q = delta, with `active` neurons on o_1. If the neurons are `alive`, they are far
    above zero on the irrelevant patterns, and as far on o_1. Otherwise they are switched off on the irrelevant patterns
    (then delta >= 0). The other task logit is h_q + `other`.
    """
    p = Parameters(d=N + 2, k=1, m=active, **parameters)
    h = np.zeros((1, N + 2))
    h[0, 0], h[0, 1] = gap, other
    u = np.full((1, active, N + 2), 50.0 if alive else -1.0)
    u[0, :, 0] = (50.0 if alive else 0.0) + delta / active
    return initial.from_alignments(p, h, u, np.array([1.0]))


def random_expert(rng: np.random.Generator, d: int, m: int = 6, spread: float = 0.6, **parameters: Any) -> Initial:
    """Return one expert of head sign +1 with random alignments and random probabilities of the patterns."""
    p = Parameters(d=d, k=1, m=m, **parameters)
    h, u = spread * rng.standard_normal((1, d)), 0.4 * rng.standard_normal((1, m, d))
    return initial.from_alignments(p, h, u, np.array([1.0]), pi=rng.dirichlet(np.full(d - 2, 3.0)))


def slopes(lab: Any, start: Initial) -> tuple[np.ndarray, np.ndarray, float]:
    """Return (dh/dt, du/dt, loss) of the recursion at a start."""
    functions = lab.functions(start, "recursion")
    found = functions.flow(start.state)
    return found["h"], found["u"], functions.loss(start.state)


def once_run(lab: Any, start: Initial, until: float, tier: str = "flow", **options: Any) -> Any:
    """Run from a start; both ends are saved."""
    return lab.integrate(start=start, tier=tier, until=until, **{"save_points": 2, **options})

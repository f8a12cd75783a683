"""Common parts of several claims: ways to write them, small worlds, and flow times read off runs."""

import functools
from typing import Any

import numpy as np

from derivations.broken import claim_of
from derivations.pmoe import SOURCE

ERRATA = "derivations/pmoe/README.md"


claim = functools.partial(claim_of, SOURCE)
"""A claim of this paper."""


def at(place: str) -> Any:
    """The paper, at a place in it."""
    return SOURCE.at(place)


def stream(seed: int, purpose: int, lab: Any = None) -> np.random.Generator:
    """The random numbers of one measurement."""
    return np.random.default_rng([seed, purpose, 0 if lab is None else lab.seed])


def mean_v(run: Any) -> np.ndarray:
    """v averaged over both classes along a flow."""
    return (run["v1"] + run["v2"]) / 2


def flow_to(lab: Any, goal: float, guess: float, seed: int = 0, what: str = "v", **request: Any) -> float:
    """The flow after which v (or the error, or the loss) has fallen to `goal`: between saved points in the logarithm.

    The horizon is raised fourfold from `guess` until the goal is inside; infinite after eight times.
    """
    until = guess
    for _ in range(8):
        run = lab.integrate(seed=seed, until=until, save_points=401, rtol=1e-6, **request)
        values = mean_v(run) if what == "v" else np.asarray(run[what])
        below = np.flatnonzero(values <= goal)
        if below.size:
            return crossing(run.time, values, int(below[0]), goal)
        until *= 4
    return np.inf


def crossing(time: np.ndarray, values: np.ndarray, k: int, goal: float) -> float:
    """The time at which `values` passes `goal` before index k, log-linear between the two points."""
    if k == 0:
        return float(time[0])
    if values[k] <= 0:
        return float(time[k])
    share = np.log(values[k - 1] / goal) / np.log(values[k - 1] / values[k])
    return float(time[k - 1] + share * (time[k] - time[k - 1]))

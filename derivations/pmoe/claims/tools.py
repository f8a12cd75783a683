"""Common functions of several claims: sources, random numbers, and flow times read off runs."""

import functools
from typing import Any

import numpy as np

from derivations.broken import claim_of
from derivations.pmoe import SOURCE

ERRATA = "derivations/pmoe/README.md"


claim = functools.partial(claim_of, SOURCE)
"""A claim of this paper."""


def at(place: str) -> Any:
    """Return the paper as a source, at the given place."""
    return SOURCE.at(place)


def stream(seed: int, purpose: int, lab: Any = None) -> np.random.Generator:
    """Return the random number generator of one measurement."""
    return np.random.default_rng([seed, purpose, 0 if lab is None else lab.seed])


def mean_v(run: Any) -> np.ndarray:
    """Mean of v over both classes along a flow."""
    return (run["v1"] + run["v2"]) / 2


def flow_to(lab: Any, goal: float, guess: float, seed: int = 0, what: str = "v", **request: Any) -> float:
    """Return the flow time at which v (or the error, or the loss) has fallen to `goal`.

    The time is interpolated between saved points in the logarithm of the value. The end of the run starts at `guess`,
    and is multiplied by four until the goal is reached; after eight runs the result is infinite.
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
    """Return the time before index k at which `values` passes `goal`, by log-linear interpolation."""
    if k == 0:
        return float(time[0])
    if values[k] <= 0:
        return float(time[k])
    share = np.log(values[k - 1] / goal) / np.log(values[k - 1] / values[k])
    return float(time[k - 1] + share * (time[k] - time[k - 1]))

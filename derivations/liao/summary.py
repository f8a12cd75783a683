"""Quantities of a run of system `liao`: observables along it, and its headline numbers."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract import Initial, Labelled

DEAD = -0.9
"""A student pair whose expert overlap is below this value is counted as anti-aligned: it outputs almost nothing."""


def observe(initial: Initial, state: Mapping[str, np.ndarray]) -> Labelled:
    """The smallest student-student overlap and the number of anti-aligned pairs at each saved time."""
    i2 = state["I2"]
    upper = np.triu_indices(i2.shape[-1], 1)
    pairs = i2[..., upper[0], upper[1]]
    smallest = pairs.min(axis=-1, initial=1.0)
    return {
        "min_I2": (("time",), smallest, "smallest overlap of two student experts"),
        "anti_aligned": (("time",), (pairs < DEAD).sum(axis=-1), f"number of student pairs with I2 < {DEAD}"),
    }


def summarise(initial: Initial, run: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Recovered teachers, sorted recovery times, anti-alignment and loss; times are in units of the clock.

    `run` holds the state along the run and the arrays of hitting times (infinite where not reached).
    """
    first2 = _sorted_times(run["T_gamma2"].min(axis=0, initial=np.inf))
    first1 = _sorted_times(run["T_gamma1"].min(axis=0, initial=np.inf))
    both = _sorted_times(np.maximum(run["T_gamma1"], run["T_gamma2"]).min(axis=0, initial=np.inf))
    summary = {
        "teachers": int(initial.parameters.m_star),
        "recovered": len(both),
        "expert_recovery_times": first2,
        "router_recovery_times": first1,
        "pair_recovery_times": both,
    }
    if "T_I2" in run:
        anti = run["T_I2"].min(initial=np.inf)
        summary |= {
            "first_anti_alignment_time": float(anti) if np.isfinite(anti) else None,
            "anti_aligned_pairs": int(run["anti_aligned"][-1]),
            "min_I2": float(run["min_I2"][-1]),
        }
    if "loss" in run:
        summary |= {"loss_initial": float(run["loss"][0]), "loss_final": float(run["loss"][-1])}
    return summary


def _sorted_times(times: np.ndarray) -> list[float]:
    return [float(t) for t in np.sort(times[np.isfinite(times)])]

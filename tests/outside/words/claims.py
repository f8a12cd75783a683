"""One claim of the flow, one of its training."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.special

from derivations.broken import break_measure, claim_of, grid
from derivations.laws import Vanishes

from . import SOURCE, Parameters, chances

STATEMENTS = {"Lemma 1": "", "Lemma 2": ""}


def exact(start: np.ndarray, times: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Margins (times, words) from those at the start, s' = rate / (1 + e^s), by Lambert's W."""
    return np.log(scipy.special.lambertw(np.exp(start + np.exp(start) + np.outer(times, rates))).real)


def distance(run: Any, factor: float) -> float:
    """The largest distance of the margins from those of the flow, with wrong rates where `factor` is not 1."""
    p = Parameters(**run.origin.parameters)
    start = run["margin"][..., 0, :]
    expected = exact(start.reshape(-1, p.N)[0], run.time, factor * p.m * chances(p))
    return float(np.abs(run["margin"] - expected).max())


def flow(lab: Any, point: Mapping[str, Any], seed: int, factor: float = 1.0) -> float:
    """Of a flow."""
    return distance(lab.integrate(seed=seed, until=20.0, save_points=5), factor)


def training(lab: Any, point: Mapping[str, Any], seed: int, factor: float = 1.0) -> float:
    """Of large batches and small steps."""
    options = {"method": "compressed", "step_size": 0.02, "batch": 10_000, "until": 2.0, "save_points": 3}
    return distance(lab.simulate(seed=seed, seeds=1, **options), factor)


CLAIMS = (
    claim_of(
        SOURCE, "lemma-1", "s + exp(s) grows linearly.", "Lemma 1", flow, Vanishes(1e-5), grid(seeds=2),
        break_measure(lambda lab, point, seed: flow(lab, point, seed, 1.01)), rungs=(7,),
    ),
    claim_of(
        SOURCE, "lemma-2", "Training follows the flow.", "Lemma 2", training, Vanishes(0.02), grid(seeds=2),
        break_measure(lambda lab, point, seed: training(lab, point, seed, 1.5)), rungs=(7,),
    ),
)  # fmt: skip

"""Quantities of a run of system `kawata`: hitting times with their horizon, and numbers of neurons by task."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract import Initial, Labelled

LABELS = {
    "iota": (("expert", "cluster"), "gate overlaps theta_m . v_c"),
    "strength": (("expert", "cluster"), "e[m,c] = E[y f_m | c], how well an expert predicts a cluster's labels"),
    "routing": (("expert", "cluster"), "probability that expert m is active on a sample of cluster c"),
    "gate_norm": (("expert",), "norm of the gate vector theta_m"),
    "theta": (("expert", "frame"), "overlaps of the gate vectors with the frame"),
    "gate_gram": (("expert", "expert_"), "Gram matrix of the gate vectors"),
    "gate_direction": (("expert", "neuron"), "overlaps of the gates with the neurons' directions off the frame"),
}


def extra_constants(constants: Mapping[str, np.ndarray]) -> Labelled:
    """The gate's numbers, if a run has them."""
    return {n: (dims, constants[n], text) for n, (dims, text) in LABELS.items() if n in constants}


def summarise(initial: Initial, run: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Numbers of neurons by recovered task, quantiles of the hitting times, and the horizon that censors them.

    A neuron without an event up to the horizon is counted as censored. Medians and quartiles are those of all neurons;
    if the horizon is too early for them they are infinite (then `None`).
    """
    horizon = float(run.get("horizon", np.nan))
    found: dict[str, Any] = {"neurons": int(initial.parameters.neurons), "threshold": initial.parameters.threshold}
    if "T_kappa" in run:
        found |= times("local", run["T_kappa"].min(axis=1))
    if "T_xi" in run:
        found |= times("global", run["T_xi"])
    if "T_kappa" in run and "T_xi" in run:
        first = np.minimum(run["T_kappa"].min(axis=1), run["T_xi"])
        found["censored"] = int(np.isinf(first).sum())
    if "kappa" in run:
        found["largest_local"] = float(np.abs(run["kappa"][-1]).max())
        found["median_local"] = float(np.median(np.abs(run["kappa"][-1]).max(axis=-1)))
    if "xi" in run:
        found["largest_global"] = float(np.abs(run["xi"][-1]).max())
        found["median_global"] = float(np.median(np.abs(run["xi"][-1])))
    if "loss" in run:
        found |= {"loss_initial": float(run["loss"][0]), "loss_final": float(run["loss"][-1])}
    return found if np.isnan(horizon) else {**found, "horizon": horizon}


def times(name: str, hits: np.ndarray) -> dict[str, Any]:
    """Return the numbers of neurons that reached a task and of censored ones, and the quartiles of the time."""
    ordered = np.sort(hits)
    quartiles = [ordered[min(int(q * ordered.size), ordered.size - 1)] for q in (0.25, 0.5, 0.75)]
    return {
        f"{name}_reached": int(np.isfinite(hits).sum()),
        f"{name}_censored": int(np.isinf(hits).sum()),
        f"{name}_time_quartiles": [float(t) if np.isfinite(t) else None for t in quartiles],
    }

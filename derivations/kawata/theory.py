"""Theoretical predictions in the figures of a run of `kawata`: the threshold, and the first recovery."""

from typing import Any

import numpy as np

from derivations.drawing import Reference, colour, parameters
from derivations.kawata.parameters import ACTIVATIONS, Parameters, exponent, links
from derivations.kawata.shifted import shifted

SMALL = 0.3
"""Largest initial overlap of the prediction, which is the leading order in small overlaps."""


def references(run: Any) -> list[Reference]:
    """The threshold of recovery, and per cluster the time at which the fastest neuron recovers its local task.

    To leading order in small overlaps, with activation a relu(z + b), or another one without motion along the means,
    and random routing, kappa' = k alpha_k beta_k kappa^(k-1)/(C J M^2), which blows up at

        C J M^2/(k (k - 2) alpha_k beta_k kappa(0)^(k-2))

    (k > 2; alpha_k of the neuron at its bias, beta_k of the link). A neuron with a negative product never recovers it.
    """
    given = parameters(run)
    if not given or "xi" not in run or run.sizes.get("time", 0) < 2:
        return []
    threshold = float(given["threshold"])
    found = [
        Reference(panel, f"recovered: {threshold:g}", level=threshold) for panel in ("kappa", "xi") if panel in run
    ]
    return found + _first(run, given)


def _first(run: Any, given: dict[str, Any]) -> list[Reference]:
    """The earliest predicted recovery of every cluster's task, if the run is Phase I from small overlaps."""
    p = Parameters(**given)
    k, kappa = exponent(p), run["kappa"].values[0] if "kappa" in run else None
    if kappa is None or run.attrs.get("stage") != "phase1" or k <= 2 or np.abs(kappa).max() > SMALL or "b" not in run:
        return []
    beta = np.array([row[k] for row in links(p)[: p.C]], float)
    t = p.rho * (run["nu"].values[0] if "nu" in run else np.zeros_like(kappa)) + run["b"].values[:, None]
    sigma = np.asarray(run["sigma"].values if "sigma" in run else np.zeros((len(kappa), 1)), float)
    alpha = shifted(
        np, ACTIVATIONS.index(p.activation), run["a"].values[:, None] + 0.0 * t, t, sigma[:, None, :], k + 1
    )
    pull = k * (k - 2) * alpha[k] * beta * np.sign(kappa) ** k * np.abs(kappa) ** (k - 2) / (p.C * p.J * p.M**2)
    return [
        Reference("kappa", "predicted: the first", at=float(1 / pull[:, c].max()), colour=colour(c))
        for c in range(kappa.shape[1])
        if pull[:, c].max() > 0
    ]

"""Ours: how many samples SGD needs in Phase I, against d."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from figures.kawata._shared import COLOURS
from odesim.show.figures import Table

CAPTION = (
    "Number of samples until an overlap of 0.5 by compressed SGD (exact in law), k* = 3, student and teacher h_3, "
    "step 0.1 d^{-3/2}, from 2 d^{-1/2}: median and 10-90 % band of the replicas. Crosses also include 2/(3h), the "
    "number of samples from 0.5 to the divergence in the leading order."
)
CLAIMS = ("weak-time",)


def measure(dimensions: Sequence[int], seeds: int) -> Mapping[str, Any]:
    """10, 50 and 90 % of the number of samples at every dimension."""
    import odesim

    rows = []
    for d in dimensions:
        step = 0.1 * float(d) ** -1.5
        arrays = {"kappa": np.array([[2 * float(d) ** -0.5]]), "xi": np.zeros(1), "nu": np.zeros((1, 1)),
                  "a": np.ones(1), "b": np.zeros(1)}  # fmt: skip
        run = odesim.simulate(
            "kawata", method="compressed", step_size=step, batch=1, seeds=seeds, initial=arrays, C=1, k_star=3, d=d,
            activation="polynomial", sigma=(0.0, 0.0, 0.0, 1.0), rho=0.0, s=(0.0,), until=step * 3.2 * d**2,
            save_points=400,
        )  # fmt: skip
        rows.append(np.quantile(run["T_kappa"][:, 0, 0] / step, (0.1, 0.5, 0.9)).tolist())
    return {"d": list(dimensions), "samples": rows}


def needs(quick: bool = False) -> list[Table]:
    """Four dimensions, 20 replicas each (half a minute)."""
    arguments = {"dimensions": [20, 30, 40], "seeds": 4} if quick else {"dimensions": [30, 60, 120, 300], "seeds": 20}
    return [Table("kawata-samples", measure, arguments)]


def draw(stored: Sequence[Any]) -> Any:
    """Medians with bands, and the power d^{k*-1}."""
    from matplotlib.figure import Figure

    d, samples = stored[0]["d"].astype(float), stored[0]["samples"]
    low, middle, high = samples.T
    corrected = middle + 2 / 3 / (0.1 * d**-1.5)
    figure = Figure(figsize=(5.2, 3.4), layout="constrained")
    axis = figure.subplots()
    axis.fill_between(d, low, high, color=COLOURS[0], alpha=0.2, linewidth=0)
    axis.plot(d, middle, "o", color=COLOURS[0], label="samples until 0.5")
    slope = np.polyfit(np.log(d), np.log(corrected), 1)[0]
    axis.plot(d, corrected, "x", color=COLOURS[1], label=f"to the blow-up: slope {slope:.3f}")
    axis.plot(d, corrected[-1] * (d / d[-1]) ** 2, "-", color=COLOURS[1], linewidth=0.8, label="$d^{k^*-1} = d^2$")
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("dimension $d$")
    axis.set_ylabel("samples")
    axis.legend()
    return figure

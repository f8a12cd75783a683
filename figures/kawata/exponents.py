"""Ours: the hitting time of the global task against d, at information exponents k, k + 1 and k + 2."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from figures.kawata._shared import COLOURS
from odesim.show.figures import Request

CAPTION = (
    "The 25 % quantile (with the band from 10 to 40 %) of the time at which neurons recover the global task, k* "
    "= 4, no local task: not cancelled, cancelled between two clusters, cancelled and ReLU without bias. Lines: "
    "predicted powers."
)
CLAIMS = ("hidden-ie",)
FORMS = (
    ("not cancelled", (1.0, 1.0), -0.5, 1.0),
    ("cancelled", (1.0, -1.0), -0.5, 1.5),
    ("biasless", (1.0, -1.0), 0.0, 2.0),
)
NOTHING = (0.0, 0.0, 0.0, 0.0, 0.0)


def needs(quick: bool = False) -> list[Request]:
    """Fifteen runs of 300 neurons (a second each)."""
    exponents, N = ((2, 3), 30) if quick else ((2, 3, 4, 5, 6), 300)
    link = (NOTHING, NOTHING, (0.0, 0.0, 0.0, 0.0, 1.0))
    return [
        Request("kawata", {"C": 2, "d": 10**e, "link": link, "s": s, "bias": (b,), "neurons": N},
                {"save_points": 2, "rtol": 1e-6, "until": 1e3 * float(10**e) ** 2.5})
        for _, s, b, _ in FORMS
        for e in exponents
    ]  # fmt: skip


def draw(stored: Sequence[Any]) -> Any:
    """Quantiles among the neurons that find it, with the slope of a straight fit."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.6, 3.8), layout="constrained")
    axis = figure.subplots()
    each = len(stored) // len(FORMS)
    for k, (name, _, _, power) in enumerate(FORMS):
        runs = stored[k * each : (k + 1) * each]
        d = np.array([run.manifest["origin"]["parameters"]["d"] for run in runs], float)
        times = [run["T_xi"][np.isfinite(run["T_xi"])] for run in runs]
        low, middle, high = np.array([np.quantile(t, (0.1, 0.25, 0.4)) for t in times]).T
        slope = np.polyfit(np.log(d), np.log(middle), 1)[0]
        axis.fill_between(d, low, high, color=COLOURS[k], alpha=0.2, linewidth=0)
        axis.plot(d, middle, "o", color=COLOURS[k], label=f"{name}: slope {slope:.3f}, predicted {power:g}")
        axis.plot(d, middle[-1] * (d / d[-1]) ** power, "-", color=COLOURS[k], linewidth=0.8)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("dimension $d$")
    axis.set_ylabel("hitting time of the global task")
    axis.legend()
    return figure

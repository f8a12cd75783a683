"""Ours: the share of exceptional neurons of Theorem 4.3 against d."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from figures.kawata._shared import COLOURS
from odesim.show.figures import Request

CAPTION = (
    "Share of vanilla neurons that align with the cancelled global task, k* = 4, with 95 % intervals. The lines "
    "are d^{-|C_j|/(2(k*-2))} through the last point. According to Theorem 4.3 this share is zero."
)
CLAIMS = ("thm43-frac", "thm-4.3")


def needs(quick: bool = False) -> list[Request]:
    """Neurons at d = 1e2 to 1e7 (a few seconds each)."""
    exponents, N = ((2, 3), 200) if quick else ((2, 3, 4, 5, 6, 7), 4000)
    found = []
    for beta, s in (((1.0, -1.0), (1.0, -1.0)), ((1.0, -1.0, 1.0, -1.0), (1.0, -1.0, 0.0, 0.0))):
        link = tuple((0.0, 0.0, 0.0, 0.0, v) for v in (*beta, 1.0))
        for e in exponents[: len(exponents) if len(s) == 2 else 4]:
            parameters = {"C": len(s), "d": 10**e, "link": link, "s": s, "bias": (-0.5,), "neurons": N}
            options = {"save_points": 2, "rtol": 1e-6, "until": 1e3 * float(10**e) ** 1.5}
            found.append(Request("kawata", parameters, options))
    return found


def draw(stored: Sequence[Any]) -> Any:
    """Shares with Clopper-Pearson intervals."""
    from matplotlib.figure import Figure

    from derivations import intervals

    figure = Figure(figsize=(5.6, 3.6), layout="constrained")
    axis = figure.subplots()
    for k, C in enumerate((2, 4)):
        runs = [run for run in stored if run.manifest["origin"]["parameters"]["C"] == C]
        d = np.array([run.manifest["origin"]["parameters"]["d"] for run in runs], float)
        hits = [np.isfinite(run["T_xi"]) for run in runs]
        share = np.array([h.mean() for h in hits])
        bounds = np.array([intervals.share(int(h.sum()), h.size) for h in hits])
        error = np.abs(bounds.T - share)
        power = -(C // 2) / 4
        axis.errorbar(d, share, error, fmt="o", color=COLOURS[k], capsize=2, label=f"$|C_j|$ = {C // 2}, C = {C}")
        axis.plot(d, share[-1] * (d / d[-1]) ** power, "-", color=COLOURS[k], linewidth=0.8, label=f"$d^{{{power:g}}}$")
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("dimension $d$")
    axis.set_ylabel("share aligned with $w_g^*$")
    axis.legend()
    return figure

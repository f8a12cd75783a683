"""Ours: the hidden global task, found by neurons behind a gate and not by a vanilla network."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from derivations import intervals
from figures.kawata._shared import COLOURS
from odesim.show.figures import Request

CAPTION = (
    "Share of neurons whose overlap with a task has reached 0.5 by time t, k* = 4, s = (1, -1), beta = (1, 1). "
    "With a (perfect) gate the global task takes as long as a local task. Without a gate it takes far longer. "
    "Bands are 95 % intervals."
)
CLAIMS = ("sep", "lem-C.21", "thm-4.3")


def needs(quick: bool = False) -> list[Request]:
    """A vanilla network and experts behind perfect routing, the same number of neurons (seconds each)."""
    N, d = (60, 10**3) if quick else (2000, 10**5)
    options = {"save_points": 2, "rtol": 1e-6}
    common = {"C": 2, "k_star": 4, "d": d, "bias": (-0.5,)}
    return [
        Request("kawata", {**common, "neurons": N}, {**options, "until": 1e3 * d**1.5}),
        Request("kawata", {**common, "M": 2, "J": 1, "neurons": N, "routing": "perfect"},
                {**options, "stage": "phase3", "until": 1e3 * d**1.5}),
    ]  # fmt: skip


def draw(stored: Sequence[Any]) -> Any:
    """Empirical distribution functions of the hitting times; neurons beyond the horizon are counted as censored."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.0, 3.6), layout="constrained")
    axis = figure.subplots()
    for k, (run, name) in enumerate(zip(stored, ("vanilla", "behind a gate"), strict=True)):
        d = run.manifest["origin"]["parameters"]["d"]
        for hits, task, style in ((run["T_kappa"].min(axis=1), "local", "-"), (run["T_xi"], "global", "--")):
            finite = np.sort(hits[np.isfinite(hits)]) / d
            label = f"{name}, {task} ({finite.size} of {hits.size})"
            ends = np.array([intervals.share(found, hits.size) for found in range(1, finite.size + 1)]).reshape(-1, 2)
            axis.fill_between(finite, *ends.T, step="post", color=COLOURS[k], alpha=0.12, linewidth=0)
            axis.step(
                finite, np.arange(1, finite.size + 1) / hits.size, style, color=COLOURS[k], where="post", label=label
            )
    axis.set_xscale("log")
    axis.set_xlabel(r"time $t / d^{(k^*-2)/2}$ (width 1)")
    axis.set_ylabel("share of neurons")
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), title="network, task (reached)")
    return figure

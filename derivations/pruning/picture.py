"""The pictures of a pruning run: router norms, proficiency, test error; or the curves of pruning by each score."""

from typing import Any

import numpy as np

COLOURS = ("#0072B2", "#D55E00")
"""Experts of head sign +1 and -1 (Okabe-Ito)."""
LINES = ("#0072B2", "#999999", "#E69F00", "#F0E442", "#56B4E9", "#009E73", "#CC79A7", "#D55E00", "#000000")


def draw(run: Any) -> dict[str, Any]:
    """Figures by name for an `xarray.Dataset` of a run: `trajectories`, and `pruning` where experts were scored."""
    found = {}
    if "time" in run.sizes and run.sizes["time"] > 1:
        found["trajectories"] = trajectories(run)
    if "pruned_error" in run:
        found["pruning"] = pruning(run)
    return found


def trajectories(run: Any) -> Any:
    """Growth of router norms (or gaps), own proficiency and error against time, one line per expert."""
    from matplotlib.figure import Figure

    panels = [name for name in ("Delta", "x", "p1", "f_error") if name in run]
    figure = Figure(figsize=(6.4, 0.8 + 1.8 * len(panels)), layout="constrained")
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axis, name in zip(axes, panels, strict=True):
        if name == "f_error":
            axis.plot(run["time"], run[name], color="black")
            axis.set_ylabel("test error")
            continue
        values = run[name].values
        sign = run["a"].values
        if name == "p1":
            values = np.where(sign > 0, values, run["p2"].values)
        for s in range(values.shape[1]):
            axis.plot(run["time"], values[:, s], color=COLOURS[int(sign[s] < 0)], linewidth=1.0)
        axis.set_ylabel({"Delta": r"$\Delta_s$", "x": r"gap $x$", "p1": "own proficiency"}[name])
    for sign, colour in ((r"$a=+1$", COLOURS[0]), (r"$a=-1$", COLOURS[1])):
        axes[0].plot([], [], color=colour, label=sign)
    axes[0].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes[0].set_title(f"pruning, {run.attrs.get('method', '')} {run.attrs.get('tier', '')}")
    axes[-1].set_xlabel("SGD steps")
    return figure


def pruning(run: Any) -> Any:
    """The error after pruning to 1, 2, .. experts of each sign, by every criterion."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 3.6), layout="constrained")
    axis = figure.subplots()
    curves = run["pruned_error"].values
    most = curves.shape[1]
    for k, name in enumerate(run["criterion"].values):
        axis.plot(
            1 - np.arange(1, most + 1) / most, curves[k], "o-", ms=3, color=LINES[k % len(LINES)], label=str(name)
        )
    axis.set_xlabel("share of experts pruned")
    axis.set_ylabel("test error")
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure

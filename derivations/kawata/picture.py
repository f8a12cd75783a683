"""The pictures of a kawata run: overlaps against time, the distribution of hitting times, and the gate."""

from typing import Any

import numpy as np

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
"""The Okabe-Ito colours."""
MOST = 60
"""Neurons drawn as lines; more would hide each other."""


def draw(run: Any) -> dict[str, Any]:
    """Figures by name for an `xarray.Dataset`: `overlaps` where time goes on, `gate` where there is one."""
    figures = {}
    if run.sizes["time"] > 1 and "xi" in run:
        figures["overlaps"] = overlaps(run)
    if "routing" in run:
        figures["gate"] = gate(run)
    return figures


def overlaps(run: Any) -> Any:
    """|kappa|, |xi| and |nu| of up to 60 neurons, from all experts alike, against time, on a logarithmic scale."""
    from matplotlib.figure import Figure

    names = [name for name in ("kappa", "xi", "nu", "dn") if name in run]
    figure = Figure(figsize=(7.0, 1.0 + 1.5 * len(names)), layout="constrained")
    axes = figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0]
    labels = {"kappa": r"local $|\kappa|$", "xi": r"global $|\xi|$", "nu": r"means $|\nu|$", "dn": r"$|\nu_1-\nu_2|$"}
    time, neurons = run["time"].values, run["xi"].shape[-1]
    chosen = np.unique(np.linspace(0, neurons - 1, min(MOST, neurons)).round().astype(int))
    for axis, name in zip(axes, names, strict=True):
        values = np.abs(run[name].values[:, chosen])
        for c in range(values.shape[2] if values.ndim == 3 else 1):
            lines = values[:, :, c] if values.ndim == 3 else values
            # Values at zero (a task that is not there) have no place on a logarithmic scale.
            axis.plot(time, np.where(lines > 1e-12, lines, np.nan), color=COLOURS[c % 7], linewidth=0.6, alpha=0.7)
            if values.ndim == 3:
                axis.plot([], [], color=COLOURS[c % 7], label=f"cluster {c + 1}")
        axis.set_yscale("log")
        axis.set_ylabel(labels[name])
        if values.ndim == 3:
            axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes[-1].set_xlabel("time (steps times step size)")
    shown = f"{neurons} neurons" if chosen.size == neurons else f"{chosen.size} of {neurons} neurons, evenly spread"
    axes[0].set_title(f"kawata {run.attrs.get('stage', '')}, tier {run.attrs.get('tier', '')}: {shown}")
    return figure


def gate(run: Any) -> Any:
    """The probability that each expert is active on each cluster."""
    from matplotlib.figure import Figure

    values = run["routing"].values
    figure = Figure(figsize=(1.6 + 0.45 * values.shape[0], 2.2 + 0.2 * values.shape[1]), layout="constrained")
    axis = figure.subplots()
    image = axis.imshow(values.T, vmin=0, vmax=1, cmap="Blues", aspect="auto")
    axis.set_xlabel("expert")
    axis.set_ylabel("cluster")
    axis.set_xticks(range(values.shape[0]), [str(m + 1) for m in range(values.shape[0])])
    axis.set_yticks(range(values.shape[1]), [str(c + 1) for c in range(values.shape[1])])
    figure.colorbar(image, ax=axis, label="P(active)")
    return figure

"""The pictures of a kawata run: overlaps against time, the distribution of hitting times, and the gate."""

from typing import Any

import numpy as np

from derivations.drawing import BLACK, colour, spread

MOST = 60
"""Neurons drawn as lines; more would hide each other."""
EARLIEST = 4
"""A logarithmic time axis begins at most so many decades before the end."""
LABELS = {
    "kappa": r"local $|\kappa|$", "xi": r"global $|\xi|$", "nu": r"means $|\nu|$", "dn": r"$|\nu_1-\nu_2|$",
    "reached": "share of\nneurons",
}  # fmt: skip


def draw(run: Any) -> dict[str, Any]:
    """Figures by name for an `xarray.Dataset`: `overlaps` where time goes on, `gate` where there is one."""
    figures = {}
    if run.sizes["time"] > 1 and "xi" in run:
        figures["overlaps"] = overlaps(run)
    if "routing" in run:
        figures["gate"] = gate(run)
    return figures


def overlaps(run: Any) -> Any:
    """|kappa|, |xi| and |nu| of up to 60 neurons, from all experts alike, and the share of all that recovered."""
    from matplotlib.figure import Figure

    names = [name for name in ("kappa", "xi", "nu", "dn") if name in run]
    recovered = [name for name in ("T_kappa", "T_xi") if name in run]
    panels = [*names, *(["reached"] if recovered else [])]
    figure = Figure(figsize=(7.4, 1.2 + 1.5 * len(panels)), layout="constrained")
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    chosen = spread(np.moveaxis(run["xi"].values, -1, 0), MOST)
    for axis, name in zip(axes, panels, strict=True):
        axis.set_label(name)
        axis.set_ylabel(LABELS[name])
        _reached(axis, run) if name == "reached" else _neurons(axis, run, name, chosen)
    axes[-1].set_xlabel("time (steps times step size)")
    _clock(axes[0], run)
    neurons = run["xi"].shape[-1]
    every = "1 neuron" if neurons == 1 else f"{neurons} neurons"
    shown = every if chosen.size == neurons else f"{chosen.size} of {neurons} neurons, evenly spread"
    axes[0].set_title(shown, fontsize=8, color="0.35")
    return figure


def _clock(axis: Any, run: Any) -> None:
    """Logarithmic time for a run from 0, whose neurons' times are spread over decades."""
    time = run["time"].values
    after = time[time > 0]
    if time[0] == 0 and len(after) > 20 and run["xi"].shape[-1] > 1:
        axis.set_xscale("log")
        axis.set_xlim(max(after[0], after[-1] / 10**EARLIEST), after[-1])


def _neurons(axis: Any, run: Any, name: str, chosen: np.ndarray) -> None:
    """One line per neuron and cluster; a cluster has its colour in every panel, what belongs to none is black."""
    values, time = np.abs(run[name].values[:, chosen]), run["time"].values
    several = values.ndim == 3
    for c in range(values.shape[2] if several else 1):
        lines, shade = (values[:, :, c], colour(c)) if several else (values, BLACK)
        # Values at zero (a task that is not there) have no place on a logarithmic scale.
        axis.plot(time, np.where(lines > 1e-12, lines, np.nan), color=shade, linewidth=0.6, alpha=0.7)
        if several:
            axis.plot([], [], color=shade, label=f"cluster {c + 1}")
    positive = values[values > 1e-12]
    if positive.size and positive.max() > 10 * positive.min():
        axis.set_yscale("log")
        axis.set_ylim(max(positive.min(), 1e-4 * positive.max()) / 1.5, max(1.0, positive.max()) * 1.3)
    if several:
        axis.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))


def _reached(axis: Any, run: Any) -> None:
    """The share of all neurons that recovered a local task, or the global one, by each time."""
    end = float(run["time"][-1])
    for name, word, shade in (("T_kappa", "a local task", colour(0)), ("T_xi", "the global task", BLACK)):
        if name not in run:
            continue
        hits = run[name].values
        hits = np.sort(hits.min(axis=1) if hits.ndim == 2 else hits)
        found = hits[np.isfinite(hits) & (hits <= end)]
        steps = np.r_[float(run["time"][0]), found, end]
        share = np.r_[np.arange(found.size + 1), found.size] / max(hits.size, 1)
        axis.plot(
            steps, share, color=shade, drawstyle="steps-post", label=f"recovered {word}:\n{found.size} of {hits.size}"
        )
    axis.set_ylim(bottom=0)
    axis.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))


def gate(run: Any) -> Any:
    """The probability that each expert is active on each cluster, written into its place."""
    from matplotlib.figure import Figure

    values = run["routing"].values
    figure = Figure(figsize=(2.6 + 0.45 * values.shape[0], 2.4 + 0.2 * values.shape[1]), layout="constrained")
    axis = figure.subplots()
    image = axis.imshow(values.T, vmin=0, vmax=1, cmap="Blues", aspect="auto")
    axis.set_xlabel("expert")
    axis.set_ylabel("cluster")
    axis.set_xticks(range(values.shape[0]), [str(m + 1) for m in range(values.shape[0])])
    axis.set_yticks(range(values.shape[1]), [str(c + 1) for c in range(values.shape[1])])
    for m, c in np.ndindex(*values.shape) if values.size <= 64 else ():
        axis.text(m, c, f"{values[m, c]:.2f}", ha="center", va="center", fontsize=6,
                  color="white" if values[m, c] > 0.6 else "black")  # fmt: skip
    figure.colorbar(image, ax=axis, label="P(active)")
    return figure

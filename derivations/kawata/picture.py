"""The figures of a kawata run: overlaps against time, the distribution of hitting times, and the gate."""

from typing import Any

import numpy as np

from derivations.drawing import BLACK, COLUMN, GREY, at_plateau, colours, gap, in_rows, log_time, name_of, spread

NOTHING = 1e-12
"""An overlap below this is zero."""
FEW = 12
"""Up to this number of neurons each is a line; of more there are bands, and `SOME` lines."""
SOME = 5
BAND = (0.1, 0.9)
"""Lower and upper quantile of the neurons in a band."""
FACTOR = 1.5
"""A panel is constant if all its large entries move by less than this factor."""
LABELS = {
    "kappa": r"local overlap $|\kappa|$", "xi": r"global overlap $|\xi|$", "nu": r"means $|\nu|$",
    "dn": r"$|\nu_1-\nu_2|$", "reached": "share of neurons",
    "gap kappa": r"$1-|\kappa|$", "gap xi": r"$1-|\xi|$",
}  # fmt: skip


def draw(run: Any) -> dict[str, Any]:
    """Figures by name for an `xarray.Dataset`: `overlaps` for a time series, `gate` if there is a gate."""
    figures = {}
    if run.sizes["time"] > 1 and "xi" in run:
        figures["overlaps"] = overlaps(run)
    if "routing" in run:
        figures["gate"] = gate(run)
    return figures


def overlaps(run: Any) -> Any:
    """|kappa|, |xi| and |nu| of the neurons of all experts, and the share of recovered neurons.

    More than twelve neurons are bands with a few of their lines. Constant quantities have no panel. For overlaps with a
    final plateau at 1, a separate panel shows the distance from it.
    """
    from matplotlib.figure import Figure

    names = [name for name in ("kappa", "xi", "nu", "dn") if name in run]
    names = [name for name in names if _moves(run[name].values)] or names[:1]
    recovered = [name for name in ("T_kappa", "T_xi") if name in run and _hits(run, name).size]
    near = {name: _near(run, name) for name in names if name in ("kappa", "xi")}
    panels = [panel for name in names for panel in (name, *(["gap " + name] if near.get(name) else []))]
    panels += ["reached"] if recovered else []
    figure = Figure(layout="constrained")
    for axis, name in zip(in_rows(figure, len(panels)), panels, strict=True):
        axis.set_label(name)
        axis.set_ylabel(LABELS[name])
        if name.startswith("gap "):
            close = near[name.removeprefix("gap ")]
            gap(axis, run["time"].values, [curve for curve, _ in close], [shade for _, shade in close])
        else:
            _reached(axis, run, recovered) if name == "reached" else _neurons(axis, run, name)
        axis.set_xlabel(r"time $t$ = $\eta\,\times$ steps")
        if run["xi"].shape[-1] > 1:
            log_time(axis, run["time"].values, [run[name].values for name in names])
    return figure


def _near(run: Any, name: str) -> list[tuple[np.ndarray, str]]:
    """Neurons that reach the plateau at 1, a few of each cluster, with the colour of the cluster."""
    values = run[name].values
    several = values.ndim == 3
    found = []
    for c, shade in enumerate(colours(values.shape[2]) if several else (BLACK,)):
        lines = values[:, :, c] if several else values
        close = [i for i in np.argsort(-np.abs(lines[-1]), kind="stable") if at_plateau([lines[:, i]])]
        found += [(lines[:, close[k]], shade) for k in spread(np.array(close), SOME)]
    return found


def _moves(values: np.ndarray) -> bool:
    """Return True if a large entry (time, ...) changes its absolute value by `FACTOR`."""
    size = np.abs(values).reshape(len(values), -1)
    low, high = size.min(axis=0), size.max(axis=0)
    return bool(((high > FACTOR * low) & (high > max(0.1 * high.max(initial=0.0), NOTHING))).any())


def _neurons(axis: Any, run: Any, name: str) -> None:
    """The neurons on each cluster; a cluster has the same colour in every panel, and other neurons are black."""
    values, time = np.abs(run[name].values), run["time"].values
    several = values.ndim == 3
    count = values.shape[2] if several else 1
    shades = colours(count) if several else (BLACK,)
    for c in range(count):
        lines = values[:, :, c] if several else values
        # Zero values (an absent task) cannot be drawn on a logarithmic scale.
        lines = np.where(lines > NOTHING, lines, np.nan)
        if lines.shape[1] <= FEW:
            axis.plot(time, lines, color=shades[c], linewidth=0.8)
        elif np.isfinite(lines).any():
            _band(axis, time, lines, shades[c])
        axis.plot([], [], color=shades[c], label=name_of("cluster", c, count) if several else None)
    positive = values[values > NOTHING]
    if positive.size and positive.max() > 10 * positive.min():
        axis.set_yscale("log")
        axis.set_ylim(max(positive.min(), 1e-4 * positive.max()) / 1.5, max(1.0, positive.max()) * 1.3)


def _band(axis: Any, time: np.ndarray, lines: np.ndarray, shade: str) -> None:
    """The middle quantiles of many neurons, and a few of them, evenly spread by their final value."""
    known = np.isfinite(lines).any(axis=1)
    low, high = np.nanquantile(lines[known], BAND, axis=1)
    axis.fill_between(time[known], low, high, color=shade, alpha=0.2, linewidth=0)
    ranks = np.argsort(np.nan_to_num(lines[-1]), kind="stable")
    for i in ranks[spread(ranks, SOME)]:
        axis.plot(time, lines[:, i], color=shade, linewidth=0.8)
    words = f"{lines.shape[1]} neurons, {100 * BAND[0]:.0f} to {100 * BAND[1]:.0f} %"
    axis.fill_between([], [], [], color=GREY, alpha=0.4, linewidth=0, label=f"{words} and {SOME} of them")


def _hits(run: Any, name: str) -> np.ndarray:
    """The times at which neurons recovered a task (any local one), in order, up to the end of the run."""
    hits = run[name].values
    hits = np.sort(hits.min(axis=1) if hits.ndim == 2 else hits)
    return hits[np.isfinite(hits) & (hits <= float(run["time"][-1]))]


def _reached(axis: Any, run: Any, names: list[str]) -> None:
    """The share of all neurons that recovered a local task, or the global one, by each time."""
    words = {"T_kappa": ("a local task", GREY), "T_xi": ("the global task", BLACK)}
    total = run["xi"].shape[-1]
    for name in names:
        found = _hits(run, name)
        steps = np.r_[float(run["time"][0]), found, float(run["time"][-1])]
        share = np.r_[np.arange(found.size + 1), found.size] / total
        word, shade = words[name]
        label = f"recovered {word}: {found.size} of {total}"
        axis.plot(steps, share, color=shade, drawstyle="steps-post", label=label)
    axis.set_ylim(bottom=0)


def gate(run: Any) -> Any:
    """The probability that each expert is active on each cluster, printed in its cell."""
    from matplotlib.figure import Figure

    values = run["routing"].values
    figure = Figure(figsize=(COLUMN, 1.2 + 0.18 * values.shape[1]), layout="constrained")
    axis = figure.subplots()
    image = axis.imshow(values.T, vmin=0, vmax=1, cmap="Blues", aspect="auto")
    axis.set_xlabel("expert")
    axis.set_ylabel("cluster")
    axis.set_xticks(range(values.shape[0]), [str(m + 1) for m in range(values.shape[0])])
    axis.set_yticks(range(values.shape[1]), [str(c + 1) for c in range(values.shape[1])])
    for m, c in np.ndindex(*values.shape) if values.size <= 64 else ():
        axis.text(m, c, f"{values[m, c]:.2f}", ha="center", va="center", fontsize=6,
                  color="white" if values[m, c] > 0.6 else "black")  # fmt: skip
    figure.colorbar(image, ax=axis, label="probability that it is active")
    return figure

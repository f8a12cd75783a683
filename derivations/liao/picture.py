"""The pictures of a liao run: alignment, loss and anti-alignment against time, and the final heat maps."""

from typing import Any

import numpy as np

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
"""The Okabe-Ito colours, which readers with any colour vision can tell apart; teachers beyond seven repeat them."""


def draw(run: Any) -> dict[str, Any]:
    """Figures by name for an `xarray.Dataset` of a run: `trajectories`, and `alignment` where it has all pairs."""
    figures = {"trajectories": trajectories(run)} if run.sizes["time"] > 1 else {}
    if run["gamma2"].dims == ("time", "expert", "teacher") and run.sizes["expert"]:
        figures["alignment"] = alignment(run)
    return figures


def matched_pairs(run: Any) -> list[tuple[int, int]]:
    """(expert, teacher) pairs to show: for each teacher the expert nearest to it at the end of the run."""
    final = np.abs(run["gamma2"].values[-1])
    return [(int(final[:, j].argmax()), j) for j in range(final.shape[1])]


def trajectories(run: Any) -> Any:
    """Matched alignments (experts dashed, routers solid), the loss, and student-student anti-alignment over time."""
    from matplotlib.figure import Figure

    panels = 1 + ("loss" in run) + ("min_I2" in run)
    ratios = [2.2] + [1.0] * (panels - 1)
    figure = Figure(figsize=(6.4, 1.5 + 1.55 * sum(ratios) / 1.4), layout="constrained")
    axes = figure.subplots(panels, 1, sharex=True, squeeze=False, height_ratios=ratios)[:, 0]
    _alignments(axes[0], run)
    rest = iter(axes[1:])
    if "loss" in run:
        axis = next(rest)
        axis.plot(run["time"], run["loss"], color=COLOURS[6])
        axis.set_ylabel("loss $L$")
        axis.set_ylim(bottom=0)
    if "min_I2" in run:
        _anti_alignment(next(rest), run)
    axes[-1].set_xlabel("time $t$")
    axes[-1].set_xlim(float(run["time"][0]), float(run["time"][-1]))
    return figure


def _alignments(axis: Any, run: Any) -> None:
    pairs = matched_pairs(run) if run["gamma2"].ndim == 3 else [(j, j) for j in range(run["gamma2"].shape[1])]
    for k, (i, j) in enumerate(pairs):
        colour = COLOURS[k % 6]
        at = (slice(None), i, j) if run["gamma2"].ndim == 3 else (slice(None), j)
        axis.plot(run["time"], run["gamma1"].values[at], "-", color=colour, label=f"teacher {j + 1}")
        axis.plot(run["time"], run["gamma2"].values[at], "--", color=colour)
    axis.axhline(0.9, color="0.6", linewidth=0.8, linestyle=":")
    axis.set_ylabel("alignment of the matched pair")
    axis.plot([], [], "-", color="0.3", label=r"router $\gamma^{(1)}$")
    axis.plot([], [], "--", color="0.3", label=r"expert $\gamma^{(2)}$")
    axis.legend(ncols=2, loc="center left", bbox_to_anchor=(1.0, 0.5)) if len(pairs) > 8 else axis.legend(
        loc="center left", bbox_to_anchor=(1.01, 0.5)
    )
    axis.set_title(title(run))


def _anti_alignment(axis: Any, run: Any) -> None:
    axis.plot(run["time"], run["min_I2"], color=COLOURS[1])
    axis.set_ylabel(r"min $I^{(2)}_{ij}$")
    axis.set_ylim(-1.05, 0.05)
    if "anti_aligned" in run:
        count = axis.twinx()
        count.plot(run["time"], run["anti_aligned"], color=COLOURS[0], linestyle="-.")
        count.set_ylabel("anti-aligned pairs", color=COLOURS[0])
        count.set_ylim(bottom=0)
        count.tick_params(axis="y", colors=COLOURS[0])
        axis.yaxis.label.set_color(COLOURS[1])
        axis.tick_params(axis="y", colors=COLOURS[1])


def alignment(run: Any) -> Any:
    """Heat maps of the final alignments, experts sorted by the teacher they found (the paper's Figure 1)."""
    from matplotlib.figure import Figure

    gamma1, gamma2 = run["gamma1"].values[-1], run["gamma2"].values[-1]
    order = sort_experts(gamma2)
    figure = Figure(figsize=(5.4, 1.6 + 0.16 * len(order)), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    names = (r"routers $\bar v_i\cdot\bar v^*_j$", r"experts $\bar w_i\cdot\bar w^*_j$")
    image: Any = None
    for axis, values, name in zip(axes, (gamma1, gamma2), names, strict=True):
        image = axis.imshow(values[order], vmin=-1, vmax=1, cmap="RdBu_r", aspect="auto", interpolation="nearest")
        axis.set_title(name)
        axis.set_xlabel("teacher $j$")
        axis.set_xticks(range(values.shape[1]), [str(j + 1) for j in range(values.shape[1])])
    axes[0].set_ylabel("student $i$ (sorted by match)")
    step = max(1, len(order) // 25)
    axes[0].set_yticks(range(0, len(order), step), [str(order[k] + 1) for k in range(0, len(order), step)], fontsize=6)
    figure.colorbar(image, ax=axes, label=f"alignment at $t$ = {float(run['time'][-1]):g}", shrink=0.8)
    return figure


def sort_experts(gamma2: np.ndarray) -> list[int]:
    """Experts in the order of the teachers they are nearest to, the unused ones after them."""
    best = [int(i) for i in np.abs(gamma2).argmax(axis=0)]
    used = list(dict.fromkeys(best))
    return used + [i for i in range(gamma2.shape[0]) if i not in used]


def title(run: Any) -> str:
    """One line that says which run this is."""
    attributes = run.attrs
    name = f"liao, tier {attributes.get('tier', 'exact')}"
    if "expert" in run.sizes:
        name += f", m = {run.sizes['expert']}"
    if "teacher" in run.sizes:
        name += f", m* = {run.sizes['teacher']}"
    return name

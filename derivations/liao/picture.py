"""The figures of a liao run: alignment, loss and anti-alignment against time, the final heat maps, and pruning."""

from typing import Any

import numpy as np

from derivations.drawing import (
    BLACK,
    COLUMN,
    PALETTE,
    at_plateau,
    colours,
    gap,
    is_still,
    moved,
    name_of,
    parameters,
    spread,
)

LEAST = {"loss": 0.0, "min_I2": 0.05, "anti_aligned": 0.5}
"""Curves with smaller movements are constant on their axes, which show overlaps from -1 and whole pairs."""

TICKS = 8
"""Maximal number of teachers with a number below a heat map."""


def draw(run: Any) -> dict[str, Any]:
    """Figures by name for an `xarray.Dataset` of a run.

    `trajectories` for a time series, `alignment` for a run with all pairs, `pruning` for a run with removed experts.
    """
    figures = {"trajectories": trajectories(run)} if run.sizes["time"] > 1 else {}
    if run["gamma2"].dims == ("time", "expert", "teacher") and run["gamma2"].size:
        figures["alignment"] = alignment(run)
    if "pruning_loss" in run and run.attrs.get("stage") == "prune":
        figures["pruning"] = pruning(run)
    return figures


def matched_pairs(run: Any) -> list[tuple[int, int]]:
    """(expert, teacher) pairs in the figure: for each teacher the expert nearest to it at the end of the run."""
    final = np.abs(run["gamma2"].values[-1])
    return [(int(final[:, j].argmax()), j) for j in range(final.shape[1])]


def trajectories(run: Any) -> Any:
    """Matched alignments (experts dashed, routers solid), the loss, and student-student anti-alignment over time.

    For alignments with a final plateau at 1, the distance from it is shown below them. The upper axis is the time in
    units of sqrt(d), in which recovery and anti-alignment do not depend on the dimension.
    """
    from matplotlib.figure import Figure

    pairs = _curves(run)
    names = ["alignment", *(["gap"] if at_plateau([curve for both in pairs for curve in both]) else [])]
    names += [
        name for name in ("loss", "min_I2", "anti_aligned") if name in run and _moves(run[name].values, LEAST[name])
    ]
    ratios = [1.8 if name == "alignment" else 1.0 for name in names]
    figure = Figure(figsize=(COLUMN, 0.6 + 0.75 * sum(ratios)), layout="constrained")
    axes = figure.subplots(len(names), 1, sharex=True, squeeze=False, height_ratios=ratios)[:, 0]
    for axis, name in zip(axes, names, strict=True):
        axis.set_label(name)
        if name == "alignment":
            _alignments(axis, run, pairs)
        elif name == "gap":
            for k, style in ((0, "-"), (1, "--")):
                gap(axis, run["time"].values, [both[k] for both in pairs], colours(len(pairs)), style)
            axis.set_ylabel("1 - alignment")
        else:
            _scalar(axis, run, name)
    axes[-1].set_xlabel("time $t$")
    axes[-1].set_xlim(float(run["time"][0]), float(run["time"][-1]))
    root = parameters(run).get("d", 0) ** 0.5
    if root:
        above = axes[0].secondary_xaxis("top", functions=(lambda t: t / root, lambda s: s * root))
        above.set_xlabel(r"$t/\sqrt{d}$")
    return figure


def _moves(values: np.ndarray, least: float) -> bool:
    """Return True for a curve that moves by more than `least`, and is not constant."""
    return moved(values) > least and not is_still(values)


def _curves(run: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """Router and expert alignment of the matched pair of every teacher."""
    both = run["gamma1"].values, run["gamma2"].values
    if run["gamma2"].ndim == 3:
        return [(both[0][:, i, j], both[1][:, i, j]) for i, j in matched_pairs(run)]
    return [(both[0][:, j], both[1][:, j]) for j in range(both[1].shape[1])]


def _alignments(axis: Any, run: Any, pairs: list[tuple[np.ndarray, np.ndarray]]) -> None:
    """The alignments of the matched pairs, in the colours of their teachers."""
    time, shades = run["time"].values, colours(len(pairs))
    for j, (router, expert) in enumerate(pairs):
        axis.plot(time, router, "-", color=shades[j], label=name_of("teacher", j, len(pairs)))
        axis.plot(time, expert, "--", color=shades[j])
    axis.set_ylabel("alignment of the\nmatched pair")
    axis.plot([], [], "-", color="0.3", label=r"router $v_i\cdot v^*_j$ ($\gamma^{(1)}$)")
    axis.plot([], [], "--", color="0.3", label=r"expert $w_i\cdot w^*_j$ ($\gamma^{(2)}$)")


def _scalar(axis: Any, run: Any, name: str) -> None:
    """The loss, the smallest overlap of two students, or the number of anti-aligned pairs, a step function."""
    steps = {"drawstyle": "steps-post"} if name == "anti_aligned" else {}
    axis.plot(run["time"], run[name], color=BLACK, **steps)
    label = {
        "loss": "loss $L$", "min_I2": r"$\min\;w_i\cdot w_j$", "anti_aligned": "pairs\nanti-aligned",
    }[name]  # fmt: skip
    axis.set_ylabel(label)
    if name == "min_I2":
        axis.set_ylim(-1.05, 0.05)
    else:
        axis.set_ylim(0, 1.08 * float(np.nanmax(run[name].values)))
    if name == "anti_aligned":
        axis.yaxis.get_major_locator().set_params(integer=True)


def alignment(run: Any) -> Any:
    """Heat maps of the final alignments, with experts sorted by their recovered teacher (the paper's Figure 1)."""
    from matplotlib.figure import Figure

    gamma1, gamma2 = run["gamma1"].values[-1], run["gamma2"].values[-1]
    order = sort_experts(gamma2)
    figure = Figure(figsize=(COLUMN, 0.9 + 0.11 * len(order)), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    names = (r"routers $\bar v_i\cdot\bar v^*_j$", r"experts $\bar w_i\cdot\bar w^*_j$")
    image: Any = None
    for axis, values, name in zip(axes, (gamma1, gamma2), names, strict=True):
        image = axis.imshow(values[order], vmin=-1, vmax=1, cmap="RdBu_r", aspect="auto", interpolation="nearest")
        axis.set_title(name)
        axis.set_xlabel("teacher $j$")
        teachers = spread(np.arange(values.shape[1]), TICKS)
        axis.set_xticks(teachers, [str(j + 1) for j in teachers])
    axes[0].set_ylabel("student $i$ (sorted by match)")
    step = max(1, len(order) // 25)
    numbers = numbers_before(run)
    axes[0].set_yticks(range(0, len(order), step), [str(numbers[k]) for k in order[::step]], fontsize=6)
    figure.colorbar(image, ax=axes, label=f"alignment at $t$ = {float(run['time'][-1]):g}", shrink=0.8)
    return figure


def numbers_before(run: Any) -> list[int]:
    """The number of every expert from 1, in the order before pruning."""
    kept = run["kept"].values if "kept" in run and run.sizes["kept_expert"] == run.sizes["expert"] else None
    return [int(k) + 1 for k in (kept if kept is not None else range(run.sizes["expert"]))]


def pruning(run: Any) -> Any:
    """The loss along greedy pruning, with the name of each removed expert; below, the removed and the remaining
    experts.
    """
    from matplotlib.figure import Figure

    losses, removed, kept = run["pruning_loss"].values, run["removed"].values, run["kept"].values
    figure = Figure(figsize=(COLUMN, 2.7), layout="constrained")
    top, below = figure.subplots(2, 1, height_ratios=(3, 1))
    top.set_label("pruning")
    top.plot(range(len(losses)), losses, "o-", color=BLACK, markersize=3.5)
    if (losses > 0).all() and losses.max() > 20 * losses.min():
        top.set_yscale("log")
    top.set_ylabel("squared error\n$E(f_S-f^*)^2$")
    top.set_xlabel("expert removed, in order" if len(removed) else "no removal makes the loss smaller: all are kept")
    top.set_xticks(range(len(losses)), ["none", *(str(int(r) + 1) for r in removed)], fontsize=7)
    for numbers, mark, word, shade in ((kept, "s", "kept", PALETTE[0]), (removed, "x", "removed", PALETTE[1])):
        below.plot(numbers + 1, np.full(len(numbers), word == "kept", float), mark, color=shade, markersize=5)
    below.set_yticks([1.0, 0.0], [f"{len(kept)} kept", f"{len(removed)} removed"])
    below.set_ylim(-0.6, 1.6)
    below.set_xlabel("expert")
    below.xaxis.get_major_locator().set_params(integer=True)
    return figure


def sort_experts(gamma2: np.ndarray) -> list[int]:
    """Experts in the order of their nearest teachers, followed by the unused ones, sorted in the same way.

    An unused expert is listed with the teacher of its largest alignment, the most aligned first.

    >>> sort_experts(np.array([[0.1, 0.3], [0.9, 0.0], [0.2, 0.0], [0.0, 0.8], [0.0, -0.4]]))
    [1, 3, 2, 4, 0]
    """
    size = np.abs(gamma2)
    best = [int(i) for i in size.argmax(axis=0)]
    used = list(dict.fromkeys(best))
    rest = [i for i in range(gamma2.shape[0]) if i not in used]
    return used + sorted(rest, key=lambda i: (int(size[i].argmax()), -size[i].max()) if size[i].size else (0, 0.0))

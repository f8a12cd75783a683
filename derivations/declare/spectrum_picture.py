"""The figure of a run on inputs with several eigenvalues: learning block by block, alignment, and the spectrum."""

from typing import Any

import numpy as np

from derivations.declare.rows import SPACE
from derivations.drawing import BLACK, COLUMN, GREY, colours, log_time

FEW = 2
"""Up to this number of blocks a legend lists all eigenvalues; otherwise the smallest and the largest."""


def is_drawn(run: Any) -> bool:
    """Return True for a time series of a run with blocks whose units have one kind of vector."""
    names = [name for name in run.data_vars if name.startswith("M_") and SPACE in run[name].dims]
    return len(names) == 1 and f"P_{names[0][2:]}" in run and run[names[0]].ndim == 4


def by_eigenvalue(run: Any, decades: bool, online: bool) -> Any:
    """Return the figure `blocks`: learned part of the teacher in every block, alignment of whole vectors, the spectrum.

    The learned part is sum_j u_i(j) . u*_j / sum_j |u*_j|^2 in the block, in the colour of its eigenvalue. Here i(j) is
    the unit with the largest final overlap with teacher j. Alignments are the largest cosine and the largest
    correlation of fields between a unit and each teacher.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(COLUMN, 3.0), layout="constrained")
    upper_cell, lower_cell = figure.add_gridspec(2, 1, height_ratios=(6, 5))
    learned_axis = figure.add_subplot(upper_cell)
    lower = [figure.add_subplot(cell) for cell in lower_cell.subgridspec(1, 1 + _is_aligned(run))]
    curves, value = parts(run), eigenvalues(run)
    shades = colours_of(value)
    order = np.argsort(-value)
    named = range(len(value)) if len(value) <= FEW else (0, len(value) - 1)
    for rank, k in enumerate(order):
        label = f"eigenvalue {value[k]:.3g}" if rank in named else None
        learned_axis.plot(run["time"], curves[:, k], color=shades[k], label=label)
    learned_axis.axhline(1.0, color=GREY, linewidth=0.5, zorder=1)
    learned_axis.set_label("found")
    learned_axis.set_ylabel("part of the teacher\nfound in a block")
    time_axes = [learned_axis]
    if _is_aligned(run):
        _alignment(lower[0], run)
        time_axes.append(lower[0])
    for axis in time_axes:
        axis.set_xlabel("time $t$ = steps$/d$" if online else "time $t$")
        if decades:
            log_time(axis, run["time"].values, [curves[:, k] for k in order])
        else:
            axis.set_xlim(float(run["time"][0]), float(run["time"][-1]))
    _spectrum(lower[-1], value[order], run["dimension"].values[order], [shades[k] for k in order])
    learned_axis.legend(frameon=False)
    return figure


def _is_aligned(run: Any) -> bool:
    """Return True for a run that contains cosines and correlations with the teachers."""
    return all(name in run and "time" in run[name].dims for name in ("best_cosine", "best_correlation"))


def _alignment(axis: Any, run: Any) -> None:
    """Draw correlations of fields, which weigh coordinates by eigenvalues, and cosines, which do not."""
    names = {"best_correlation": ("-", "correlation of fields"), "best_cosine": ((0, (4, 1.5)), "cosine")}
    count = run["best_cosine"].shape[1]
    shades = colours(count) if count > 1 else (BLACK,)
    for name, (style, label) in names.items():
        for j, shade in enumerate(shades):
            axis.plot(run["time"], run[name].values[:, j], linestyle=style, color=shade)
        axis.plot([], [], linestyle=style, color=BLACK, label=label)
    axis.set_label("alignment")
    axis.set_ylabel("alignment with\na teacher")


def parts(run: Any) -> np.ndarray:
    """The learned part of the teacher (time, block)."""
    overlaps = run[_overlaps(run)].values
    final = overlaps[-1].sum(0)
    best = np.abs(final).argmax(axis=0)
    matched = sum(overlaps[:, :, i, j] for j, i in enumerate(best))
    with np.errstate(divide="ignore", invalid="ignore"):
        return matched / content(run)


def eigenvalues(run: Any) -> np.ndarray:
    """The eigenvalue (block,) of every block; for clusters, the mean over their probabilities."""
    value = run["eigenvalue"].values
    return value if value.ndim == 1 else run["probability"].values @ value


def content(run: Any) -> np.ndarray:
    """The squared norm (block,) of all teachers' vectors in every block."""
    return np.diagonal(run[f"P_{_overlaps(run)[2:]}"].values, axis1=-2, axis2=-1).sum(-1)


def _overlaps(run: Any) -> str:
    """The name of the overlaps with teachers by blocks."""
    (name,) = (n for n in run.data_vars if n.startswith("M_") and SPACE in run[n].dims)
    return name


def colours_of(value: np.ndarray) -> list[Any]:
    """A colour for every eigenvalue, uniform in its logarithm, dark for the largest."""
    from matplotlib import colormaps

    size = np.log(np.maximum(value, 1e-300))
    place = (size - size.min()) / max(float(np.ptp(size)), 1e-300)
    return [colormaps["viridis"](0.9 * (1 - x)) for x in place]


def _spectrum(axis: Any, value: np.ndarray, dimension: np.ndarray, shades: list[Any]) -> None:
    """The eigenvalues over the coordinate number in decreasing order: each block is a line as long as its dimension."""
    ends = np.concatenate([[0], np.cumsum(dimension)])
    for lam, low, high, shade in zip(value, ends[:-1] + 1, ends[1:], shades, strict=True):
        axis.plot([low, high], [lam, lam], color=shade, marker="." if low == high else "", markersize=3)
    axis.set_label("spectrum")
    axis.set_xscale("log")
    if (value > 0).all():
        axis.set_yscale("log")
    axis.set_xlabel("coordinate $j$")
    axis.set_ylabel("eigenvalue")

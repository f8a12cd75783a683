"""The picture of a run on inputs with several eigenvalues: what is learned in each block of coordinates, and when."""

from typing import Any

import numpy as np

from derivations.declare.rows import SPACE
from derivations.drawing import GREY, log_time

FEW = 2
"""Up to so many blocks a legend names their eigenvalues; of more, the smallest and the largest."""


def is_drawn(run: Any) -> bool:
    """Return True for a run with blocks whose units have one kind of vector, along time."""
    names = [name for name in run.data_vars if name.startswith("M_") and SPACE in run[name].dims]
    return len(names) == 1 and f"P_{names[0][2:]}" in run and run[names[0]].ndim == 4


def by_eigenvalue(run: Any, decades: bool, online: bool) -> Any:
    """A panel with the part of the teacher that is found in every block, in the colour of its eigenvalue; the spectrum.

    The part is sum_j u_i(j) . u*_j / sum_j |u*_j|^2 in the block, where i(j) is the unit that ends nearest to teacher j
    as a whole.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.8, 2.6), layout="constrained")
    found, spectrum = figure.subplots(1, 2, width_ratios=(3, 2))
    curves, value = parts(run), run["eigenvalue"].values
    shades = colours_of(value)
    named = range(len(value)) if len(value) <= FEW else (0, len(value) - 1)
    order = np.argsort(-value)
    for rank, k in enumerate(order):
        label = f"eigenvalue {value[k]:.3g}" if rank in named else None
        found.plot(run["time"], curves[:, k], color=shades[k], label=label)
    found.axhline(1.0, color=GREY, linewidth=0.5, zorder=1)
    found.set_label("found")
    found.set_ylabel("part of the teacher\nfound in a block")
    found.set_xlabel("time $t$ = steps$/d$" if online else "time $t$")
    if decades:
        log_time(found, run["time"].values, [curves[:, k] for k in order])
    else:
        found.set_xlim(float(run["time"][0]), float(run["time"][-1]))
    _spectrum(spectrum, value[order], run["dimension"].values[order], [shades[k] for k in order])
    found.legend(frameon=False)
    return figure


def parts(run: Any) -> np.ndarray:
    """The part of the teacher (time, block) that is found."""
    (name,) = (n for n in run.data_vars if n.startswith("M_") and SPACE in run[n].dims)
    overlaps, square = run[name].values, np.diagonal(run[f"P_{name[2:]}"].values, axis1=-2, axis2=-1)
    best = np.abs(overlaps[-1].sum(0)).argmax(axis=0)
    matched = sum(overlaps[:, :, i, j] for j, i in enumerate(best))
    with np.errstate(divide="ignore", invalid="ignore"):
        return matched / square.sum(-1)


def colours_of(value: np.ndarray) -> list[Any]:
    """A colour for every eigenvalue, even in its logarithm, dark for the largest."""
    from matplotlib import colormaps

    size = np.log(np.maximum(value, 1e-300))
    place = (size - size.min()) / max(float(np.ptp(size)), 1e-300)
    return [colormaps["viridis"](0.9 * (1 - x)) for x in place]


def _spectrum(axis: Any, value: np.ndarray, dimension: np.ndarray, shades: list[Any]) -> None:
    """The eigenvalues over the number of the coordinate, largest first: every block a line as long as it has some."""
    ends = np.concatenate([[0], np.cumsum(dimension)])
    for lam, low, high, shade in zip(value, ends[:-1] + 1, ends[1:], shades, strict=True):
        axis.plot([low, high], [lam, lam], color=shade, marker="." if low == high else "", markersize=3)
    axis.set_label("spectrum")
    axis.set_xscale("log")
    if (value > 0).all():
        axis.set_yscale("log")
    axis.set_xlabel("coordinate, by eigenvalue")
    axis.set_ylabel("eigenvalue")

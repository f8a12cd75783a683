"""The pictures of a run of a declared model: its overlaps and readouts against time, with loss and error."""

from typing import Any

import numpy as np

from derivations.drawing import BLACK, PALETTE, colour

MOST = 8
"""Panels; more are left out, the overlaps with the teachers first kept."""


STILL = 1e-6
"""Norms that change by less than this part of themselves are those of a sphere, and no panel is given to them."""


def draw(run: Any) -> dict[str, Any]:
    """The figure `order_parameters` of an `xarray.Dataset`, where time goes on."""
    return {"order_parameters": order_parameters(run)} if run.sizes.get("time", 0) > 1 else {}


def order_parameters(run: Any) -> Any:
    """One panel for each overlap with the teachers, readout, and diagonal of overlaps among students; then the error.

    A line is an entry: its colour the teacher (or unit), solid for the largest of its teacher at the end.
    """
    from matplotlib.figure import Figure

    names = [n for n in run.data_vars if "M_" in n and n.split("_")[-2:-1] == ["M"]]
    names += [n for n in run.data_vars if _has_norms(run, n)]
    names += [n for n in run.data_vars if "time" in run[n].dims and run[n].dims[-1].endswith("unit")
              and n not in names and "Q_" not in n]  # fmt: skip
    names = names[: MOST - 1]
    panels = [*names, *(["error"] if "error" in run or "loss" in run else [])]
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(3.6 * columns + 0.4, 2.7 * rows + 0.5), layout="constrained")
    axes = np.atleast_1d(figure.subplots(rows, columns, sharex=True)).ravel()
    for axis, name in zip(axes, panels, strict=False):
        axis.set_label(name)
        _error(axis, run) if name == "error" else _entries(axis, run, name)
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    for axis in axes[max(0, len(panels) - columns) : len(panels)]:
        axis.set_xlabel("time")
        axis.xaxis.set_tick_params(labelbottom=True)
    return figure


def _has_norms(run: Any, name: str) -> bool:
    """Whether an array has squared norms on its diagonal, overlaps of one slot of one group with itself, that move."""
    words, dims = name.split("_"), run[name].dims
    own = len(dims) > 1 and dims[-1] == f"{dims[-2]}_" and words[-2:-1] == ["Q"]
    if not own or words[-1][: len(words[-1]) // 2] * 2 != words[-1]:
        return False
    norms = np.diagonal(run[name].values, axis1=-2, axis2=-1)
    return bool(np.ptp(norms, axis=0).max(initial=0.0) > STILL * np.abs(norms).max(initial=0.0))


def _entries(axis: Any, run: Any, name: str) -> None:
    """All entries of one array (the diagonal of a symmetric one)."""
    values = run[name].values
    letter = name.split("_")[-2] if "_" in name else ""
    if letter == "M":
        best = np.abs(values[-1]).argmax(axis=0)
        units, teachers = values.shape[1:]
        for j in range(teachers):
            for i in range(units):
                width, alpha = (1.2, 1.0) if i == best[j] else (0.5, 0.45)
                line = axis.plot(run["time"], values[:, i, j], color=colour(j), linewidth=width, alpha=alpha)
                if i == best[j] and teachers <= 8:
                    line[0].set_label(f"teacher {j + 1}")
        if 1 < teachers <= 8:
            axis.legend(fontsize=7, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    else:
        lines = np.diagonal(values, axis1=-2, axis2=-1) if letter == "Q" else values
        for i in range(lines.shape[-1]):
            said = f"unit {i + 1}" if 1 < lines.shape[-1] <= 8 else None
            axis.plot(run["time"], lines[..., i], color=colour(i), linewidth=1.2, alpha=0.8, label=said)
        if 1 < lines.shape[-1] <= 8:
            axis.legend(fontsize=7, frameon=False)
    letters = name.split("_")[-1]
    group = "".join(f"{part} " for part in name.split("_")[:-2])
    labels = {"M": rf"{group}${letters[0]}_i\cdot {letters[-1]}^*_j$", "Q": rf"{group}$|{letters[0]}_i|^2$"}
    axis.set_ylabel(labels.get(letter, name.replace("_", " ")))
    axis.axhline(0.0, color="0.8", linewidth=0.6, zorder=0)


def _error(axis: Any, run: Any) -> None:
    """Loss, mean squared error and share of wrong labels, as far as a run has them; logarithmic where positive."""
    shades = {"loss": BLACK, "error": PALETTE[0], "classification_error": PALETTE[1]}
    said = {"loss": "loss", "error": r"$E(f-f^*)^2$", "classification_error": "wrong labels"}
    for name, shade in shades.items():
        if name not in run:
            continue
        values = run[name].values
        shown = np.where(values > 1e-12, values, np.nan) if values[0] > 0 else values
        axis.plot(run["time"], shown, color=shade, linewidth=1.0)
        axis.plot([], [], color=shade, label=said[name])
    if all(run[name].values[0] > 0 for name in shades if name in run):
        axis.set_yscale("log")
    axis.legend(fontsize=7, frameon=False)

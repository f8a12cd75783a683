"""The pictures of a run of a declared model: its overlaps and readouts against time, with loss and error."""

from typing import Any

import numpy as np

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
"""The Okabe-Ito colours, one for a teacher."""
MOST = 8
"""Panels; more are left out, the overlaps with the teachers first kept."""


def draw(run: Any) -> dict[str, Any]:
    """The figure `order_parameters` of an `xarray.Dataset`, where time goes on."""
    return {"order_parameters": order_parameters(run)} if run.sizes.get("time", 0) > 1 else {}


def order_parameters(run: Any) -> Any:
    """One panel for each overlap with the teachers, readout, and diagonal of overlaps among students; then the error.

    A line is an entry: its colour the teacher (or unit), solid for the largest of its teacher at the end.  Of several
    replicas every one is drawn, thin.
    """
    from matplotlib.figure import Figure

    names = [n for n in run.data_vars if "M_" in n and n.split("_")[-2:-1] == ["M"]]
    names += [n for n in run.data_vars if n.split("_")[-2:-1] == ["Q"] and n.split("_")[-1][0] == n.split("_")[-1][-1]]
    names += [n for n in run.data_vars if "time" in run[n].dims and run[n].dims[-1].endswith("unit")
              and n not in names and "Q_" not in n]  # fmt: skip
    names = names[: MOST - 1]
    panels = [*names, *(["error"] if "error" in run or "loss" in run else [])]
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(3.6 * columns + 0.4, 2.7 * rows + 0.5), layout="constrained")
    axes = np.atleast_1d(figure.subplots(rows, columns, sharex=True)).ravel()
    for axis, name in zip(axes, panels, strict=False):
        _error(axis, run) if name == "error" else _entries(axis, run, name)
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    for axis in axes[max(0, len(panels) - columns) : len(panels)]:
        axis.set_xlabel("time")
        axis.xaxis.set_tick_params(labelbottom=True)
    figure.suptitle(_title(run), fontsize=10)
    return figure


def _title(run: Any) -> str:
    tier = run.attrs.get("tier", "")
    method = run.attrs.get("method", "")
    said = (
        f"tier {tier}" if method in ("", "flow") else f"SGD, {method}" if method != "observed" else "observed weights"
    )
    replicas = f", {run.sizes['seed']} replicas" if run.sizes.get("seed", 1) > 1 else ""
    name = str(run.attrs.get("system", "")).rsplit("/", 1)[-1].removesuffix(".toml")
    return f"{name}: {said}{replicas}"


def _entries(axis: Any, run: Any, name: str) -> None:
    """All entries of one array (the diagonal of a symmetric one)."""
    values = np.moveaxis(run[name].values, run[name].dims.index("time"), 0)
    if run[name].dims[0] == "seed" or "seed" in run[name].dims:
        values = values.reshape(len(values), run.sizes["seed"], -1)
    letter = name.split("_")[-2] if "_" in name else ""
    shape = [run.sizes[dim] for dim in run[name].dims if dim not in ("time", "seed")]
    values = values.reshape(len(values), -1, *shape)
    thin = 0.6 if values.shape[1] > 1 else 1.2
    if letter == "Q":
        values = np.diagonal(values, axis1=-2, axis2=-1)
    if letter == "M":
        last = np.abs(values[-1].mean(0))
        for j in range(shape[1]):
            for i in range(shape[0]):
                best = i == int(last[:, j].argmax())
                line = axis.plot(run["time"], values[:, :, i, j], color=COLOURS[j % 7], linewidth=thin if best else 0.5,
                                 alpha=1.0 if best else 0.45)  # fmt: skip
                if best and shape[1] <= 6:
                    line[0].set_label(f"teacher {j + 1}")
    else:
        for i in range(values.shape[-1]):
            axis.plot(run["time"], values[..., i], color=COLOURS[i % 7], linewidth=thin, alpha=0.8)
    letters = name.split("_")[-1]
    group = "".join(f"{part} " for part in name.split("_")[:-2])
    labels = {"M": rf"{group}${letters[0]}_i\cdot {letters[-1]}^*_j$", "Q": rf"{group}$|{letters[0]}_i|^2$"}
    axis.set_ylabel(labels.get(letter, name.replace("_", " ")))
    axis.axhline(0.0, color="0.8", linewidth=0.6, zorder=0)
    if letter == "M" and 1 < shape[1] <= 6:
        axis.legend(fontsize=7, frameon=False)


def _error(axis: Any, run: Any) -> None:
    """Loss, and the mean squared error where it is another number, on a logarithmic axis while they are positive."""
    for name, colour in (("loss", "#000000"), ("error", "#0072B2")):
        if name not in run:
            continue
        values = np.moveaxis(run[name].values, run[name].dims.index("time"), 0).reshape(run.sizes["time"], -1)
        positive = np.where(values > 1e-12, values, np.nan)
        axis.plot(run["time"], positive if (values[0] > 0).all() else values, color=colour, linewidth=1.0)
        axis.plot([], [], color=colour, label={"loss": "loss", "error": r"$E(f-f^*)^2$"}[name])
    if all((run[name].values.ravel()[:1] > 0).all() for name in ("loss", "error") if name in run):
        axis.set_yscale("log")
    axis.legend(fontsize=7, frameon=False)

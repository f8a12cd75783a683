"""The pictures of a chen run: strengths and routers by feature, load, entropy and accuracy against time."""

from typing import Any

import numpy as np

from derivations.drawing import BLACK, marked, row_of_panels

MOST = 8
"""Features with a column of their own."""
LABELS = {
    "feat": r"$\max_{j,k}\langle w_{mj}, v_k\rangle$",
    "gcen": r"router on the" "\n" r"centre $\langle\theta_m, c_k\rangle$",
    "entropy": "dispatch\nentropy",
}


def draw(run: Any) -> dict[str, Any]:
    """Figures by name for an `xarray.Dataset` of a run: `trajectories`.

    A column holds the experts that end with its feature, so that no expert hides another group's; below them what the
    whole mixture does.
    """
    from matplotlib.figure import Figure

    experts = [name for name in ("feat", "gcen") if name in run]
    whole = [name for name in ("entropy", "accuracy") if name in run or f"{name}_noisy" in run]
    home = _home(run, experts)
    columns = min(MOST, run.sizes.get("feature", 1)) if experts else 1
    figure = Figure(
        figsize=(max(7.2, 1.9 * columns + 1.2), 1.2 + 1.7 * (len(experts) + len(whole))), layout="constrained"
    )
    grid = figure.add_gridspec(len(experts) + len(whole), columns)
    for row, name in enumerate(experts):
        for k, axis in enumerate(row_of_panels(figure, grid, row, columns)):
            axis.set_label(name)
            _experts(axis, run, name, k, np.flatnonzero(home == k))
            axis.set_ylabel(LABELS[name] if k == 0 else "")
            axis.set_title(f"feature {k + 1}" if row == 0 else "", fontsize=8)
            axis.tick_params(labelleft=k == 0)
            if row == len(experts) - 1:
                axis.set_xlabel(r"$\tau = \eta t$")
    for row, name in enumerate(whole, len(experts)):
        axis = figure.add_subplot(grid[row, :], sharex=figure.axes[0] if figure.axes else None)
        axis.set_label(name)
        _scalars(axis, run, name)
    figure.axes[-1].set_xlabel(r"time $\tau = \eta t$")
    return {"trajectories": figure}


def _home(run: Any, experts: list[str]) -> np.ndarray:
    """The feature with which every expert ends: that of its strongest filter, or of its router without filters."""
    if not experts:
        return np.zeros(0, int)
    final = run[experts[0]].values[-1]
    return (final.max(axis=1) if experts[0] == "feat" else final).argmax(axis=1)


def _experts(axis: Any, run: Any, name: str, k: int, members: np.ndarray) -> None:
    """The experts of one feature: the strongest alignment with any, or the router on the centre of this one."""
    time = run["time"].values
    for place, m in enumerate(members):
        values = run["feat"].values[:, m].max(axis=(1, 2)) if name == "feat" else run[name].values[:, m, k]
        axis.plot(
            time, values, label=f"expert {int(m) + 1}", **{**marked(int(m), len(time)), **_marks(place, members, time)}
        )
    if not len(members):
        axis.text(0.5, 0.5, "no expert", transform=axis.transAxes, ha="center", color="0.5", fontsize=7)
    elif name == "feat" and len(members) <= 8:
        axis.legend(loc="upper left", fontsize=6, handlelength=1.2)


def _marks(place: int, members: np.ndarray, time: np.ndarray) -> dict[str, Any]:
    """Marks of the experts of one panel, shifted against each other."""
    return {"markevery": marked(place, len(time), len(members))["markevery"]}


def _scalars(axis: Any, run: Any, name: str) -> None:
    for label, line in ((name, "-"), (f"{name}_noisy", "--")):
        if label in run:
            noisy = "with noise" if label.endswith("noisy") else "without noise"
            axis.plot(run["time"], run[label], line, color=BLACK, label=f"{noisy} in the routing")
    axis.set_ylabel(LABELS.get(name, name))
    axis.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))

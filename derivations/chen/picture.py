"""The figures of a chen run: strengths and routers by feature, load, entropy and accuracy against time."""

import itertools
from typing import Any

import numpy as np

from derivations.drawing import BLACK, colours, in_blocks, is_still, name_of

MOST = 6
"""Number of features with a separate column."""
LABELS = {
    "feat": r"expert $\max_{j,k}\,w_{mj}\cdot v_k$",
    "gcen": r"router $\theta_m\cdot c_k$",
    "entropy": "dispatch entropy",
    "accuracy": "accuracy",
}
STYLES = {"": ("-", "without noise in the routing"), "_noisy": ("--", "with noise in the routing")}


def draw(run: Any) -> dict[str, Any]:
    """Figures by name for an `xarray.Dataset` of a run: `trajectories`.

    A column contains the experts that end with its feature, so that no expert hides another group's; features without
    experts have no column. Below them are the numbers of the whole mixture. An expert has the same colour in every
    panel.
    """
    from matplotlib.figure import Figure

    whole = [name for name in ("entropy", "accuracy") if any(_moves(run, name + end) for end in STYLES)]
    present = [name for name in ("feat", "gcen") if name in run]
    experts = [name for name in present if _moves(run, name)] or ([] if whole else present[:1])
    home = _home(run, experts)
    features = [int(k) for k in np.unique(home)][:MOST]
    figure = Figure(layout="constrained")
    blocks, below = in_blocks(figure, [len(features)] * len(experts), len(whole))
    for rows, name in zip(blocks, experts, strict=True):
        for k, axis in zip(features, itertools.chain(*rows), strict=True):
            axis.set_label(f"{name} {k + 1}")
            _experts(axis, run, name, k, np.flatnonzero(home == k))
            axis.set_title(f"feature $v_{{{k + 1}}}$")
        for row in rows:
            row[0].set_ylabel(LABELS[name])
    for axis, name in zip(below, whole, strict=True):
        axis.set_label(name)
        _scalars(axis, run, name)
    for axis in [*(blocks[-1][-1] if blocks else []), *below]:
        axis.set_xlabel(r"time $\tau = \eta t$")
    for axis in figure.axes:
        axis.set_xlim(float(run["time"][0]), float(run["time"][-1]))
    return {"trajectories": figure}


def _moves(run: Any, name: str) -> bool:
    """Return True for a variable of a run that moves."""
    return name in run and not is_still(run[name].values)


def _home(run: Any, experts: list[str]) -> np.ndarray:
    """The final feature of every expert: that of its strongest filter, or of its router without filters."""
    if not experts:
        return np.zeros(0, int)
    final = run[experts[0]].values[-1]
    return (final.max(axis=1) if experts[0] == "feat" else final).argmax(axis=1)


def _experts(axis: Any, run: Any, name: str, k: int, members: np.ndarray) -> None:
    """The experts of one feature: their largest alignment with any feature, or the router on the centre of this one."""
    time, count = run["time"].values, run[name].shape[1]
    shades = colours(count)
    for m in map(int, members):
        values = run["feat"].values[:, m].max(axis=(1, 2)) if name == "feat" else run[name].values[:, m, k]
        axis.plot(time, values, color=shades[m], label=name_of("expert", m, count))


def _scalars(axis: Any, run: Any, name: str) -> None:
    """A number of the whole mixture, with and without noise in the routing."""
    for end, (line, label) in STYLES.items():
        if name + end in run:
            axis.plot(run["time"], run[name + end], line, color=BLACK, label=label)
    axis.set_ylabel(LABELS[name])

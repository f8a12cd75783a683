"""The figures of a pruning run: router norms, proficiency, test error; or the curves of pruning by each score."""

from typing import Any

import numpy as np

from derivations.drawing import (
    BLACK,
    COLOURED,
    COLUMN,
    GREY,
    colour,
    in_blocks,
    is_still,
    log_time,
    marked,
)

LABELS = {"Delta": r"router growth $\Delta_s$", "x": "gap $x_s$", "p1": "own proficiency"}
OTHER = {"color": GREY, "linewidth": 0.6, "alpha": 0.7, "zorder": 1.5}


def draw(run: Any) -> dict[str, Any]:
    """Figures by name for an `xarray.Dataset` of a run: `trajectories`, and `pruning` if experts were scored."""
    found = {}
    if "time" in run.sizes and run.sizes["time"] > 1:
        found["trajectories"] = trajectories(run)
    if "pruned_error" in run:
        found["pruning"] = pruning(run)
    return found


def trajectories(run: Any) -> Any:
    """Growth of router norms (or gaps), proficiency and error against time, one line per expert.

    There is a column for each head sign if a run has signs. The eight experts with the largest growth have a colour,
    the same in all panels. Constant quantities have no row.
    """
    from matplotlib.figure import Figure

    names = [name for name in ("Delta", "x", "p1") if name in run]
    names = [name for name in names if not is_still(run[name].values)] or names[:1]
    error = "f_error" in run and not is_still(run["f_error"].values)
    signs = (1, -1) if "a" in run else (0,)
    figure = Figure(layout="constrained")
    blocks, below = in_blocks(figure, [len(signs)] * len(names), int(error))
    shades = _shades(run)
    for place, (name, (panels,)) in enumerate(zip(names, blocks, strict=True)):
        for sign, axis in zip(signs, panels, strict=True):
            axis.set_label(f"{name}{sign:+d}" if sign else name)
            _experts(axis, run, name, sign, shades)
            axis.set_title(f"experts of sign $a = {sign:+d}$" if place == 0 and sign else "")
        panels[0].set_ylabel(LABELS[name])
    for axis in below:
        axis.set_label("f_error")
        axis.plot(run["time"], run["f_error"], color=BLACK, drawstyle="steps-post")
        axis.set(ylabel="test error", ylim=(0, None))
    moving = [run[name].values for name in (*names, *(["f_error"] if error else []))]
    for axis in (figure.axes[0], *below):
        log_time(axis, run["time"].values, moving)
    for axis in [*(blocks[-1][-1] if blocks else []), *below]:
        axis.set_xlabel("SGD steps")
    return figure


def _shades(run: Any) -> dict[int, str]:
    """The colours of the experts with the largest growth, in the order of their numbers."""
    name = next((name for name in ("Delta", "x", "p1") if name in run), "")
    if not name:
        return {}
    values = run[name].values
    chosen = np.sort(np.argsort(-np.abs(values[-1] - values[0]), kind="stable")[:COLOURED])
    return {int(s): colour(k) for k, s in enumerate(chosen)}


def _experts(axis: Any, run: Any, name: str, sign: int, shades: dict[int, str]) -> None:
    """The lines of the experts of one head sign."""
    values = run[name].values if name != "p1" else run["p1" if sign >= 0 else "p2"].values
    chosen = np.flatnonzero(run["a"].values * sign > 0) if sign else np.arange(values.shape[1])
    for s in map(int, chosen):
        style = {"color": shades[s], "label": f"expert {s + 1}"} if s in shades else OTHER
        axis.plot(run["time"], values[:, s], **style)
    if len(shades) < values.shape[1]:
        axis.plot([], [], **OTHER, label="other experts")


def pruning(run: Any) -> Any:
    """The error after pruning to 1, 2, .. experts of each sign, by every criterion.

    Criteria with equal curves share one label.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(COLUMN, 2.2), layout="constrained")
    axis = figure.subplots()
    axis.set_label("pruning")
    curves = run["pruned_error"].values
    most = curves.shape[1]
    share = 1 - np.arange(1, most + 1) / most
    together: dict[bytes, list[str]] = {}
    for k, name in enumerate(run["criterion"].values):
        together.setdefault(curves[k].tobytes(), []).append(str(name).replace("_", " "))
    for k, (curve, names) in enumerate(together.items()):
        style = {**marked(k, most), "markevery": 1}
        axis.plot(share, np.frombuffer(curve), label=", ".join(names), zorder=3 + k, **style)
    axis.set_xlabel("share of experts pruned, of each sign")
    axis.set_ylabel("test error after pruning")
    return figure

"""The pictures of a pmoe run: responses to o1 and o2, route values, and loss, error and v against time.

With an output per class a colour is a class: its pattern in every expert, the irrelevant patterns grey.
"""

from typing import Any

import numpy as np

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
"""The Okabe-Ito colours: one for each expert."""
GREY = "0.75"
SMALL = 0.05
"""Below this a linear axis shows nothing of what is left."""


def draw(run: Any) -> dict[str, Any]:
    """Figures by name for an `xarray.Dataset` of a run: `trajectories`."""
    from matplotlib.figure import Figure

    panels = [name for name in ("response", "route") if name in run]
    panels += ["scalars"] if "loss" in run or "error" in run else []
    figure = Figure(figsize=(6.8, 1.0 + 1.9 * len(panels)), layout="constrained")
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axis, name in zip(axes, panels, strict=True):
        if name == "scalars":
            _scalars(axis, run)
        elif several(run):
            _classes(axis, run, name)
        else:
            _patterns(axis, run, name)
    axes[0].set_title(title(run))
    axes[-1].set_xlabel(r"flow $\eta m t$" if run.attrs.get("stage") != "router" else r"$\eta_r t$")
    return {"trajectories": figure}


def _patterns(axis: Any, run: Any, name: str) -> None:
    """o1 (solid) and o2 (dashed) in the colour of the expert, irrelevant patterns in grey."""
    values = run[name].values
    shown = min(values.shape[1], 6)
    for s in range(shown):
        if values.shape[2] > 2:
            axis.plot(run["time"], values[:, s, 2:], color=GREY, linewidth=0.5)
    for s in range(shown):
        axis.plot(run["time"], values[:, s, 0], "-", color=COLOURS[s], label=f"expert {s + 1}")
        axis.plot(run["time"], values[:, s, 1], "--", color=COLOURS[s])
    axis.plot([], [], "-", color="0.3", label=r"$o_1$")
    axis.plot([], [], "--", color="0.3", label=r"$o_2$")
    if values.shape[2] > 2:
        axis.plot([], [], "-", color=GREY, label="irrelevant")
    axis.set_ylabel({"response": r"response $\phi_s(z)$", "route": r"route value $\langle w_s, z\rangle$"}[name])
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


def several(run: Any) -> bool:
    """Whether there is an output per class."""
    return "class" in run.sizes or "pair" in run.sizes


def _classes(axis: Any, run: Any, name: str) -> None:
    """The patterns of the first classes in the colour of the class, one line per expert; other outputs dashed."""
    values = run[name].values
    count = run.sizes["class"] if "class" in run.sizes else 2 * run.sizes["pair"]
    shown, experts = min(count, len(COLOURS) - 1), range(min(values.shape[1], 6))
    for s in experts:
        rest = values[:, s, count:] if name == "route" else values[:, s, :shown, count:].reshape(len(values), -1)
        if rest.shape[1]:
            axis.plot(run["time"], rest, color=GREY, linewidth=0.5)
    for i in range(shown):
        for s in experts:
            label = f"$o_{{{i + 1}}}$" if s == 0 else None
            line = values[:, s, i] if name == "route" else values[:, s, i, i]
            axis.plot(run["time"], line, "-", color=COLOURS[i], label=label)
            if name == "response":
                others = np.delete(values[:, s, :, i], i, axis=1).mean(axis=1)
                axis.plot(run["time"], others, "--", color=COLOURS[i], linewidth=0.8)
    if name == "response":
        axis.plot([], [], "--", color="0.3", label="mean of the other outputs")
    if values.shape[-1] > count:
        axis.plot([], [], "-", color=GREY, label="irrelevant")
    axis.set_ylabel({"response": r"response $\phi_{s,i}(o_i)$", "route": r"route value $\langle w_s, z\rangle$"}[name])
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


def _scalars(axis: Any, run: Any) -> None:
    for name, colour in (("loss", 6), ("error", 1), ("v1", 0), ("v2", 2)):
        if name in run:
            axis.plot(run["time"], run[name], color=COLOURS[colour], label=name)
    if "v" in run:
        axis.plot(run["time"], run["v"].mean("class"), color=COLOURS[0], label="v, mean over classes")
    if any(float(run[name][-1]) < SMALL for name in ("loss", "v1", "v2") if name in run):
        axis.set_yscale("symlog", linthresh=1e-3)
    axis.set_ylim(bottom=0)
    axis.set_ylabel("population")
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


def title(run: Any) -> str:
    """One line that says which run this is."""
    sizes = ", ".join(
        f"{k} = {run.sizes[d]}" for k, d in (("k", "expert"), ("c", "class"), ("P", "pattern")) if d in run.sizes
    )
    return f"pmoe, {run.attrs.get('method', '')} {run.attrs.get('tier', '')}, {sizes}"

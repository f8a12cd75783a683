"""The pictures of a chen run: strengths, routers on the centres, load, entropy and accuracy against time."""

from typing import Any

import numpy as np

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
"""The Okabe-Ito colours; an expert has the colour of the feature it ends with."""


def draw(run: Any) -> dict[str, Any]:
    """Figures by name for an `xarray.Dataset` of a run: `trajectories`."""
    from matplotlib.figure import Figure

    panels = [name for name in ("feat", "gcen", "entropy", "accuracy") if name in run or f"{name}_noisy" in run]
    figure = Figure(figsize=(6.4, 1.0 + 1.7 * len(panels)), layout="constrained")
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axis, name in zip(axes, panels, strict=True):
        if name in ("feat", "gcen"):
            _experts(axis, run, name)
        else:
            _scalars(axis, run, name)
    axes[0].set_title(title(run))
    axes[-1].set_xlabel(r"time $\tau = \eta t$")
    return {"trajectories": figure}


def _experts(axis: Any, run: Any, name: str) -> None:
    """The largest alignment of every expert with a feature, or of its router with the centre of that feature."""
    feat = run["feat"].values if "feat" in run else None
    home = feat[-1].max(axis=1).argmax(axis=1) if feat is not None else run[name].values[-1].argmax(axis=1)
    for m, k in enumerate(home):
        values = run["feat"].values[:, m].max(axis=(1, 2)) if name == "feat" else run[name].values[:, m, k]
        axis.plot(run["time"], values, color=COLOURS[int(k) % 6], linewidth=1.0)
    for k in np.unique(home)[:6]:
        axis.plot([], [], color=COLOURS[int(k) % 6], label=f"feature {int(k) + 1}")
    axis.set_ylabel(r"$\max_{j,k}\langle w_{mj}, v_k\rangle$" if name == "feat" else r"$\langle\theta_m, c_k\rangle$")
    if name == "feat":
        axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


def _scalars(axis: Any, run: Any, name: str) -> None:
    for label, line in ((name, "-"), (f"{name}_noisy", "--")):
        if label in run:
            noisy = "with noise" if label.endswith("noisy") else "without noise"
            axis.plot(run["time"], run[label], line, color=COLOURS[6], label=noisy)
    axis.set_ylabel({"entropy": "dispatch entropy"}.get(name, name))
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


def title(run: Any) -> str:
    """One line that says which run this is."""
    sizes = ", ".join(f"{k} = {run.sizes[d]}" for k, d in (("M", "expert"), ("K", "feature")) if d in run.sizes)
    return f"chen, {run.attrs.get('method', '')} {run.attrs.get('tier', '')}, {sizes}"

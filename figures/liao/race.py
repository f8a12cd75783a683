"""Ours: the race between capture and annihilation along the flow, with the event times that the race predicts."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from derivations.drawing import colour
from derivations.liao.race import Event, race
from figures.liao._shared import COLOURS, INITS, label, parameters, sizes
from odesim.show.figures import Request

CAPTION = (
    "Best expert overlap with each teacher, and smallest overlap of two students, with time in units of sqrt(d). "
    "Vertical lines are the times of captures (solid) and annihilations (dotted) that the race in the limit of "
    "large d predicts."
)
CLAIMS = ("own-2", "own-5", "thm-1a")


def needs(quick: bool = False) -> list[Request]:
    """One run for each initialisation until 0.4 sqrt(d) at d = 1e8 (seconds each)."""
    size = {"m": 5, "m_star": 2, "d": 10**4} if quick else {"m": 10, "m_star": 3, "d": 10**8}
    options = {"seed": 0, "until": 0.4 * size["d"] ** 0.5, "save_points": 801}
    return [Request("liao", {**size, "init": init}, options) for init in INITS]


def draw(stored: Sequence[Any]) -> Any:
    """Captures above, annihilations below, one column for each initialisation."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    axes = figure.subplots(2, len(stored), sharex=True, sharey="row")
    for column, run in enumerate(stored):
        root = float(parameters(run)["d"]) ** 0.5
        top, bottom = axes[:, column]
        time = run.trajectory.time / root
        for j in range(run["gamma2"].shape[2]):
            top.plot(time, run["gamma2"][:, :, j].max(axis=1), color=colour(j), label=f"teacher {j + 1}")
        missed = [str(j + 1) for j in range(run["gamma2"].shape[2]) if run["gamma2"][-1, :, j].max() < 0.9]
        if missed:
            words = f"not found:\nteacher{'s' if len(missed) > 1 else ''} {', '.join(missed)}"
            top.text(0.98, 0.45, words, transform=top.transAxes, ha="right", fontsize=8)
        bottom.plot(time, run["min_I2"], color=COLOURS[6])
        for event in predicted(run, root):
            if event.time > time[-1]:
                continue
            if event.kind == "capture":
                top.axvline(event.time, color=colour(event.second), linewidth=0.9, alpha=0.7)
            else:
                bottom.axvline(event.time, color=COLOURS[1], linewidth=0.9, linestyle=":")
        top.set_title(label(run))
        bottom.set_xlabel(r"time $t/\sqrt{d}$")
        bottom.set_xlim(0, time[-1])
    axes[0, 0].set_ylabel(r"$\max_i\ \gamma^{(2)}_{ij}$")
    axes[1, 0].set_ylabel(r"$\min_{i<j}\ I^{(2)}_{ij}$")
    axes[0, -1].legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    axes[1, -1].plot([], [], ":", color=COLOURS[1], label="predicted\nannihilation")
    axes[1, -1].plot([], [], "-", color="0.5", linewidth=0.9, label="predicted\ncapture (above)")
    axes[1, -1].legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    figure.suptitle(sizes(stored[0]), fontsize=8, color="0.35")
    return figure


def predicted(run: Any, root: float) -> list[Event]:
    """The events of the race from the initial overlaps of a run, its norms included."""
    rate = run["norm_w"] ** -2.0
    u = root * run["gamma2"][0] * rate[:, None]
    z = root * run["I2"][0] * (rate[:, None] + rate) / 2
    return race(u, z - np.diag(np.diag(z)))

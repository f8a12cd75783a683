"""Figures 4 and 5: overlaps of every expert and its router, cubic and linear mixtures, setting 1."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from derivations.drawing import colour
from figures.chen._shared import STEP, released
from odesim.show.figures import Table

CAPTION = (
    "Largest overlaps of the filters and of the routers with features (solid) and centres (dashed), one colour for "
    "each expert. Cubic experts learn features and their routers learn centres. Linear experts and their routers "
    "learn both."
)
CLAIMS = ("prop-E.9", "lem-E.14")
KINDS = ("cubic", "linear")


def measure(n: int) -> dict[str, list[Any]]:
    """Curves (time, expert) of the four overlaps for both activations."""
    found: dict[str, list[Any]] = {"epoch": []}
    for activation in KINDS:
        run = released(1, activation, n, 1, save_points=51, early_stop=False, n_test=200)
        found["epoch"].append((run.time / STEP).tolist())
        for name, axes in (("feat", (2, 3)), ("cen", (2, 3)), ("gfeat", 2), ("gcen", 2)):
            found.setdefault(name, []).append(np.abs(run[name][0]).max(axis=axes).tolist())
    return found


def needs(quick: bool = False) -> list[Table]:
    """Two runs."""
    return [Table("chen-fig45", measure, {"n": 1000 if quick else 16000})]


def draw(stored: Sequence[Any]) -> Any:
    """Filters above, routers below; cubic left, linear right."""
    from matplotlib.figure import Figure

    table = stored[0]
    figure = Figure(figsize=(7.4, 4.6), layout="constrained")
    axes = figure.subplots(2, 2, sharex=True)
    for column, kind in enumerate(KINDS):
        for row, names in enumerate((("feat", "cen"), ("gfeat", "gcen"))):
            for name, line in zip(names, ("-", "--"), strict=True):
                values = np.asarray(table[name][column])
                for m in range(values.shape[1]):
                    axes[row, column].plot(table["epoch"][column], values[:, m], line, color=colour(m), linewidth=0.9)
        axes[0, column].set_title(f"{kind} experts")
        axes[1, column].set_xlabel("epoch")
    axes[0, 0].set_ylabel(r"$\max_{j,k}|\langle w_{mj}, \cdot\rangle|$")
    axes[1, 0].set_ylabel(r"$\max_k|\langle\theta_m, \cdot\rangle|$")
    for m in range(np.asarray(table["feat"][0]).shape[1]):
        axes[0, 1].plot([], [], color=colour(m), label=f"expert {m + 1}")
    axes[0, 1].plot([], [], "-", color="0.3", label="features")
    axes[0, 1].plot([], [], "--", color="0.3", label="centres")
    axes[0, 1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure

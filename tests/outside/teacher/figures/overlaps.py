"""The overlap against time, for two seeds."""

from collections.abc import Sequence
from typing import Any

from odesim.show.figures import Request

from .. import SYSTEM

CAPTION = "The overlap with the teacher."
CLAIMS = ("lemma-1",)


def needs(quick: bool = False) -> list[Request]:
    """Two short runs."""
    return [Request(SYSTEM, {"d": 20}, {"seed": seed, "until": 1.0, "save_points": 5}) for seed in (0, 1)]


def draw(stored: Sequence[Any]) -> Any:
    """One line for each seed."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4, 3), layout="constrained")
    axes = figure.subplots()
    for run in stored:
        axes.plot(run.trajectory.time, run["rho"])
    return figure

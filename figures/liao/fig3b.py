"""Figure 3, right: the inequality between E pi^2 and E pi'^2 that the proof needs."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from figures.liao._shared import COLOURS
from odesim.show.figures import Table

CAPTION = (
    "E pi^2 and E pi'^2 of the logistic gate. The caption in the paper tests E pi^2 >= 1.1 E pi'^2. The proof "
    "needs 2 E pi^2 >= 1.1 (6 E pi'^2), which also holds (the paper's Figure 3, right, with the inequality of the "
    "proof)."
)
CLAIMS = ("fig-3b",)


def measure(samples: int, seed: int) -> Mapping[str, Any]:
    """Exact values of E pi^2 = 1/2 - c_1 and E pi'^2 = (c_1 - c_3)/6, and estimates with standard errors."""
    from hermite.functions import logistic

    c = logistic(9).derivative_means
    p = 1 / (1 + np.exp(-np.random.default_rng(seed).standard_normal(samples)))
    values = (p**2, (p * (1 - p)) ** 2)
    return {
        "exact": [0.5 - c[1], (c[1] - c[3]) / 6],
        "mean": [float(v.mean()) for v in values],
        "error": [float(v.std() / np.sqrt(samples)) for v in values],
    }


def needs(quick: bool = False) -> list[Table]:
    """One table; the paper's 1e6 samples."""
    return [Table("gate-squares", measure, {"samples": 10**4 if quick else 10**6, "seed": 0})]


def draw(stored: Sequence[Any]) -> Any:
    """Two panels of bars: the quantities as printed, and the two sides of the inequality that is needed."""
    from matplotlib.figure import Figure

    table = stored[0]
    figure = Figure(figsize=(6.4, 3.2), layout="constrained")
    printed, needed = figure.subplots(1, 2)
    _bars(printed, table, (1.0, 1.0), (r"$E\,\pi^2$", r"$E\,\pi'^2$"))
    _bars(needed, table, (2.0, 6.6), (r"$2\,E\,\pi^2$", r"$1.1\cdot 6\,E\,\pi'^2$"))
    printed.set_title("as the paper's caption compares them")
    needed.set_title("the inequality that the proof needs")
    printed.set_ylabel(f"bars exact, points {table.arguments['samples']:,} samples")
    return figure


def _bars(axis: Any, table: Any, factors: tuple[float, float], names: tuple[str, str]) -> None:
    scale = np.array(factors)
    heights = scale * table["exact"]
    bars = axis.bar(names, heights, width=0.55, color=COLOURS[:2])
    axis.bar_label(bars, [f"{height:.4f}" for height in heights], padding=3, fontsize=8)
    axis.errorbar([0, 1], scale * table["mean"], 2 * scale * table["error"], fmt="o", ms=3, color="black", capsize=3)
    axis.set_ylim(0, 1.15 * heights.max())

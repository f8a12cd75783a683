"""Ours: the fraction of teachers recovered against the number of students, in the race limit."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from derivations import intervals
from derivations.liao import race
from figures.liao._shared import COLOURS, INITS
from odesim.show.figures import Table

CAPTION = (
    "Probability that all teachers are captured, with 95 % Clopper-Pearson bands, and mean fraction of captured "
    "teachers (thin lines), as functions of the number m of students, in the limit of large d, for both "
    "initialisations."
)
CLAIMS = ("claim-m",)
WIDTHS = (5, 7, 10, 14, 20, 28, 40, 56, 80, 112)


def measure(widths: Sequence[int], m_star: int, draws: int, seed: int) -> Mapping[str, Any]:
    """Number of draws of the race that capture all teachers, and mean number of captured teachers, for each width."""
    columns: dict[str, list[float]] = {f"{what} {init}": [] for what in ("all", "mean") for init in INITS}
    for init in INITS:
        for m in widths:
            rng = np.random.default_rng([seed, m, INITS.index(init)])
            captured = []
            for _ in range(draws):
                u, z = rng.normal(size=(m, m_star)), np.zeros((m, m))
                if init == "random":
                    z = np.tril(rng.normal(size=(m, m)), -1)
                captured.append(len(race.capture_times(u, z + z.T)))
            columns[f"all {init}"].append(sum(count == m_star for count in captured))
            columns[f"mean {init}"].append(float(np.mean(captured)))
    return columns


def needs(quick: bool = False) -> list[Table]:
    """One table of 400 draws of the race at each of ten widths (some seconds)."""
    widths, draws = (WIDTHS[:5], 50) if quick else (WIDTHS, 400)
    return [Table("race-width", measure, {"widths": list(widths), "m_star": 5, "draws": draws, "seed": 0})]


def draw(stored: Sequence[Any]) -> Any:
    """One curve with its band for each initialisation."""
    from matplotlib.figure import Figure

    table = stored[0]
    widths, m_star, draws = (table.arguments[name] for name in ("widths", "m_star", "draws"))
    figure = Figure(figsize=(5.0, 3.4), layout="constrained")
    axis = figure.subplots()
    for init, colour, marker in zip(INITS, (COLOURS[1], COLOURS[0]), "so", strict=True):
        successes = table[f"all {init}"]
        bands = np.array([intervals.share(int(count), draws) for count in successes])
        axis.fill_between(widths, bands[:, 0], bands[:, 1], color=colour, alpha=0.2, linewidth=0)
        axis.plot(widths, successes / draws, marker=marker, ms=4, color=colour, label=f"all captured, {init}")
        mean = table[f"mean {init}"] / m_star
        axis.plot(widths, mean, "--", linewidth=0.9, color=colour, label=f"mean fraction, {init}")
    axis.set_xscale("log")
    axis.set_xticks(widths, [str(m) for m in widths])
    axis.minorticks_off()
    axis.set_ylim(-0.02, 1.02)
    axis.set_xlabel("number of student experts $m$")
    axis.set_ylabel(f"teachers captured (m* = {m_star})")
    axis.set_title(f"race limit $d\\to\\infty$, {draws} draws at each width")
    axis.legend(loc="center right", bbox_to_anchor=(1.0, 0.36))
    return figure

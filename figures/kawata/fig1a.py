"""The paper's Figure 1(a): how many neurons of each expert recovered each task in Phase I."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from figures.kawata._shared import PUBLISHED, TASKS, by_expert, experiment, heat

CAPTION = (
    "Figure 1(a): number of neurons of each expert whose overlap with a task exceeds the largest initial overlap, "
    "after Phase I."
)
__all__ = ["CAPTION", "CLAIMS", "PUBLISHED", "draw", "needs"]
CLAIMS = ("lem-4.9", "lem-C.6", "t1-common")


def needs(quick: bool = False) -> list[Any]:
    """The paper's experiment."""
    return experiment(quick)


def draw(stored: Sequence[Any]) -> Any:
    """Tasks in rows, experts in columns, counts in the cells."""
    from matplotlib.figure import Figure

    table = stored[0]
    level = np.abs(table["kappa0"]).max()
    kappa, xi = by_expert(table, "kappa1"), by_expert(table, "xi1")
    counts = np.concatenate([(np.abs(kappa) > level).sum(axis=1).T, (np.abs(xi) > level).sum(axis=1)[None]])
    figure = Figure(figsize=(6.4, 2.3), layout="constrained")
    axis = figure.subplots()
    image = heat(axis, counts, TASKS, "Blues", max(1, counts.max()))
    for (i, j), value in np.ndenumerate(counts):
        axis.text(
            j, i, str(value), ha="center", va="center", color="w" if value > counts.max() / 2 else "k", fontsize=8
        )
    axis.set_xticks(range(counts.shape[1]), [str(m + 1) for m in range(counts.shape[1])])
    axis.set_xlabel("expert")
    figure.colorbar(image, ax=axis, label=f"neurons of {kappa.shape[1]}")
    return figure

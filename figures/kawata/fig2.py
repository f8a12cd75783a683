"""The paper's Figure 2: overlaps of the neurons of two experts after Phase III."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from figures.kawata._shared import PUBLISHED, TASKS, by_expert, experiment, heat

CAPTION = (
    "Figure 2: |overlap| of the neurons of one expert per cluster with the three tasks after Phase III. In the "
    "paper no neuron of these experts is aligned with the task of the other cluster. Here some neurons are aligned "
    "with it, because the gate of the expert is sometimes active on the other cluster. The number above each panel "
    "is the share of these neurons."
)
__all__ = ["CAPTION", "CLAIMS", "PUBLISHED", "draw", "needs"]
CLAIMS = ("lem-C.21", "sep")

FOUND = 0.5
"""An overlap of this size counts as found."""


def needs(quick: bool = False) -> list[Any]:
    """The paper's experiment."""
    return experiment(quick)


def draw(stored: Sequence[Any]) -> Any:
    """The experts whose gates separate the clusters best, with neurons sorted by their recovered task."""
    from matplotlib.figure import Figure

    table = stored[0]
    routing = table["routing"]
    kappa, xi = np.abs(by_expert(table, "kappa3")), np.abs(by_expert(table, "xi3"))
    figure = Figure(figsize=(6.8, 3.6), layout="constrained")
    axes = figure.subplots(2, 1)
    image: Any = None
    for c, axis in enumerate(axes):
        m = int(np.argmax(routing[:, c] - routing[:, 1 - c]))
        values = np.concatenate([kappa[m].T, xi[m][None]])
        order = np.lexsort((-values.max(axis=0), values.argmax(axis=0)))
        image = heat(axis, values[:, order], TASKS, "magma", 1.0)
        other = (
            float((values.argmax(axis=0)[values.max(axis=0) > FOUND] == 1 - c).mean()) if values.max() > FOUND else 0.0
        )
        axis.set_title(
            f"expert {m + 1}: active on cluster 1, 2 with {routing[m, 0]:.2f}, {routing[m, 1]:.2f}; "
            f"{other:.0%} of its neurons that found a task found the other cluster's",
            fontsize=7,
        )
    for axis in axes:
        axis.xaxis.get_major_locator().set_params(integer=True)
    axes[-1].set_xlabel("neuron (sorted by task and size)")
    figure.colorbar(image, ax=axes, label="|overlap|")
    return figure

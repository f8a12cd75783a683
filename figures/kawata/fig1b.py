"""The paper's Figure 1(b): overlaps of each gate vector after Phase II."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from figures.kawata._shared import PUBLISHED, experiment, heat

CAPTION = (
    "Figure 1(b): cosines of the gate vectors with tasks and means after one population step, and the probability "
    "that an expert is active, by cluster. A dot marks the mean to which the gate of an expert points, if the "
    "expert is active for at least half of the samples of some cluster."
)
__all__ = ["CAPTION", "CLAIMS", "PUBLISHED", "draw", "needs"]
CLAIMS = ("lem-4.10", "lem-C.15", "lem-C.14")

ACTIVE = 0.5
"""An expert that is active less often than this on every cluster is not one that a cluster has found."""


def needs(quick: bool = False) -> list[Any]:
    """The paper's experiment."""
    return experiment(quick)


def draw(stored: Sequence[Any]) -> Any:
    """Cosines above, routing probabilities below."""
    from matplotlib.figure import Figure

    table = stored[0]
    cosines = (table["theta"] / table["gate_norm"][:, None]).T
    routing = table["routing"].T
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(5, 2))
    names = [r"$w_1^*$", r"$w_2^*$", r"$w_g^*$", "$v_1$", "$v_2$"]
    image = heat(top, cosines, names, "RdBu_r", 1.0, -1.0)
    for m in range(cosines.shape[1]):
        if routing[:, m].max() < ACTIVE:
            continue  # an expert that sees no cluster points away from all of them, and nowhere in particular
        best = 3 + int(np.argmax(cosines[3:, m]))
        top.text(m, best, r"$\bullet$", ha="center", va="center", fontsize=9)
    figure.colorbar(image, ax=top, label="cosine with the gate")
    image = heat(bottom, routing, ["cluster 1", "cluster 2"], "Blues", 1.0)
    figure.colorbar(image, ax=bottom, label="P(active)")
    bottom.set_xticks(range(routing.shape[1]), [str(m + 1) for m in range(routing.shape[1])])
    bottom.set_xlabel("expert")
    return figure

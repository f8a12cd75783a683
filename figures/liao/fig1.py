"""Figure 1: final alignments of routers and experts with the teachers, in both initialisations."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from derivations.liao.picture import sort_experts
from figures.liao._shared import experiment, label, sizes
from odesim.show.figures import Request

CAPTION = (
    "Final overlaps of every student with every teacher. In each pair of panels routers are left and experts "
    "right. Students are sorted by their nearest teacher (the paper's Figure 1, both initialisations)."
)
CLAIMS = ("fig-1",)


def needs(quick: bool = False) -> list[Request]:
    """The paper's experiment in both initialisations (about 10 s each)."""
    return experiment(quick)


def draw(stored: Sequence[Any]) -> Any:
    """Four heat maps on one scale from -1 to 1."""
    from matplotlib.figure import Figure

    m = stored[0]["gamma2"].shape[1]
    figure = Figure(figsize=(7.2, 1.7 + 0.15 * m), layout="constrained")
    parts = figure.subfigures(
        1, len(stored), wspace=0.04, squeeze=False, width_ratios=[1] * (len(stored) - 1) + [1.25]
    )[0]
    image: Any = None
    for part, run in zip(parts, stored, strict=True):
        part.suptitle(label(run), fontsize=10)
        image = _pair(part, run)
    figure.colorbar(image, ax=parts[-1].axes, label=f"overlap at $t$ = {stored[0].trajectory.time[-1]:g}")
    figure.suptitle(sizes(stored[0]), fontsize=8, color="0.35")
    return figure


def _pair(part: Any, run: Any) -> Any:
    order = np.array(sort_experts(run["gamma2"][-1]))
    axes = part.subplots(1, 2, sharey=True)
    names = (r"routers $\bar v_i\cdot\bar v^*_j$", r"experts $\bar w_i\cdot\bar w^*_j$")
    image: Any = None
    for axis, component, name in zip(axes, ("gamma1", "gamma2"), names, strict=True):
        values = run[component][-1][order]
        image = axis.imshow(values, vmin=-1, vmax=1, cmap="RdBu_r", aspect="auto", interpolation="nearest")
        axis.set_title(name)
        axis.set_xlabel("teacher $j$")
        axis.set_xticks(range(values.shape[1]), [str(j + 1) for j in range(values.shape[1])])
    axes[0].set_yticks(range(len(order)), [str(i + 1) for i in order], fontsize=6)
    axes[0].set_ylabel("student $i$")
    return image

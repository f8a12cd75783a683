"""Figure 3 (and 7): the synthetic experiment, norms of the routers and projections of two routers on the patterns."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from figures.pruning._shared import COLOURS
from odesim.show.figures import Request

CAPTION = (
    "Synthetic experiment (tiny random weights; rates of our own, the exact recursion). Left: router norms, head sign "
    "+1 in blue and -1 in orange. Right: the router of the largest norm and that of the smallest, projected on all "
    "patterns."
)
PUBLISHED = (
    "The paper's sizes: d = 200, n = 100, k = 20, l = 5, 300 steps. Few routers grow, along the task pattern of their "
    "sign or the other."
)
CLAIMS = ("lem-4.1-iv", "lem-4.2-ii")


def needs(quick: bool = False) -> list[Request]:
    """One population run of the paper's sizes (a minute); a small one for `quick`."""
    size = {"d": 40, "n": 12, "k": 6, "l": 3, "T": 100.0, "nodes": 48} if quick else {"nodes": 80}
    return [Request("pruning", {**size, "n_test": 200}, {"preset": "paper-synthetic", "save_points": 4, "seed": 1})]


def draw(stored: Sequence[Any]) -> Any:
    """Bars of the norms, and two routers as stems."""
    from matplotlib.figure import Figure

    run = stored[0]
    h, sign = run["h"][-1], run["a"]
    norms = np.linalg.norm(h, axis=1)
    figure = Figure(figsize=(8.4, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.bar(np.arange(1, norms.size + 1), norms, color=[COLOURS[int(s < 0)] for s in sign])
    left.set_xticks(np.arange(1, norms.size + 1, max(1, norms.size // 10)))
    left.set_xlabel("expert")
    left.set_ylabel(r"$\|w_s\|$")
    for s, colour in ((int(norms.argmax()), COLOURS[2]), (int(norms.argmin()), COLOURS[7])):
        right.plot(np.arange(1, h.shape[1] + 1), h[s], color=colour, linewidth=0.9, label=f"router {s + 1}")
    right.axvline(1, color="0.8", linewidth=0.8, zorder=0)
    right.axvline(2, color="0.8", linewidth=0.8, zorder=0)
    right.set_xlabel("pattern (1: $o_1$, 2: $o_2$)")
    right.set_ylabel("projection")
    right.set_xlim(-3, h.shape[1] + 3)
    right.legend(loc="upper right")
    return figure

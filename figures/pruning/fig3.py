"""Figure 3 (and 7): the synthetic experiment, norms of the routers and projections of two routers on the patterns."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from figures.pruning._shared import COLOURS
from odesim.show.figures import Request

CAPTION = (
    "Synthetic experiment (tiny random weights, rates chosen by odesim, the exact recursion). Left: router norms, "
    "head sign +1 in blue and -1 in orange. Right: the routers with the largest and the smallest norm as images. "
    "Each cell is the projection on one pattern, and the two task patterns come first."
)
PUBLISHED = (
    "The paper's sizes: d = 200, n = 100, k = 20, l = 5, 300 steps. Few routers grow, and each of them grows along "
    "one of the two task patterns."
)
CLAIMS = ("lem-4.1-iv", "lem-4.2-ii")


def needs(quick: bool = False) -> list[Request]:
    """One population run of the paper's sizes (a minute); a small one for `quick`."""
    size = {"d": 40, "n": 12, "k": 6, "l": 3, "T": 100.0, "nodes": 48} if quick else {"nodes": 80}
    return [Request("pruning", {**size, "n_test": 200}, {"preset": "paper-synthetic", "save_points": 4, "seed": 1})]


def draw(stored: Sequence[Any]) -> Any:
    """Norms by expert, and two routers as images of their projections on all patterns (the paper's Figure 3b, 3c)."""
    from matplotlib.figure import Figure

    run = stored[0]
    h, sign = run["h"][-1], run["a"]
    norms = np.linalg.norm(h, axis=1)
    figure = Figure(figsize=(8.4, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.4))
    left.vlines(np.arange(1, norms.size + 1), 0, norms, color=[COLOURS[int(s < 0)] for s in sign], linewidth=1.0)
    for value, name, mark in ((1, "$a = +1$", "o"), (-1, "$a = -1$", "s")):
        own = np.flatnonzero(sign == value)
        left.plot(own + 1, norms[own], mark, color=COLOURS[int(value < 0)], markersize=4.5, label=name)
    left.set_xticks(np.arange(1, norms.size + 1, max(1, norms.size // 10)))
    left.set_ylim(0, 1.25 * norms.max())
    left.set_xlabel("expert")
    left.set_ylabel(r"$\|w_s\|$")
    left.legend(loc="upper center", ncols=2)
    chosen = [int(norms.argmax()), int(norms.argmin())]
    size = float(np.abs(h).max())
    columns = 20 if h.shape[1] > 60 else 10
    rows = -(-h.shape[1] // columns)
    gap = np.full((1, columns), np.nan)
    images = [np.append(h[s], np.full(rows * columns - h.shape[1], np.nan)).reshape(rows, columns) for s in chosen]
    shown = np.concatenate([images[0], gap, images[1]])
    image = right.imshow(shown, cmap="RdBu_r", vmin=-size, vmax=size, interpolation="nearest")
    right.set_yticks([(rows - 1) / 2, rows + 1 + (rows - 1) / 2], [f"router {s + 1}" for s in chosen])
    right.set_xticks([0, 1], ["$o_1$", "$o_2$"])
    right.set_xlabel("patterns, row by row from $o_1$, $o_2$")
    figure.colorbar(image, ax=right, label="projection", shrink=0.7)
    return figure

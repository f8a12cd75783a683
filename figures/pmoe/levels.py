"""The levels of description against each other: gaps at fixed flow against the width."""

from collections.abc import Sequence
from typing import Any

from odesim.show.figures import Stored, Table

CAPTION = (
    "Root mean square difference of the responses of the experts between two tiers along the flow time 60, as a "
    "function of the number of neurons m (separate training, n = 12, p = 6, l = 3, random patterns): network and "
    "pseudo network (L0-L1), and pseudo network and infinite width (L1-L2). Medians and 10-90 % bands over seeds; "
    "the line is m^(-1/2)."
)
CLAIMS = ("kernel-limit", "lem-G.1-width")


def measure(widths: list[int], seeds: int) -> dict[str, Any]:
    """Gaps by pair of levels, width and seed."""
    from derivations.pmoe.claims.descent import level_gap
    from figures.pmoe._shared import laboratory

    lab = laboratory()
    rows: dict[str, list[Any]] = {"levels": [], "m": [], "gap": []}
    for levels in ("L0-L1", "L1-L2"):
        for m in widths:
            for seed in range(seeds):
                rows["levels"].append(levels)
                rows["m"].append(m)
                rows["gap"].append(level_gap(lab, {"levels": levels, "m": m}, seed))
    return rows


def needs(quick: bool = False) -> list[Table]:
    """Widths from 40 to 10240, six seeds."""
    widths = [40, 160, 640] if quick else [40, 160, 640, 2560, 10_240]
    return [Table("pmoe-levels", measure, {"widths": widths, "seeds": 2 if quick else 6})]


def draw(stored: Sequence[Stored]) -> Any:
    """Two bands and the reference slope."""
    import numpy as np
    from matplotlib.figure import Figure

    (table,) = stored
    figure = Figure(figsize=(5.2, 3.5), layout="constrained")
    axis = figure.subplots()
    widths = np.unique(table["m"]).astype(float)
    for levels, colour, marker in (("L0-L1", "#0072B2", "o"), ("L1-L2", "#D55E00", "s")):
        values = [table["gap"][(table["levels"] == levels) & (table["m"] == m)].astype(float) for m in widths]
        low, middle, high = np.quantile(values, [0.1, 0.5, 0.9], axis=1)
        axis.loglog(widths, middle, marker + "-", color=colour, label=levels)
        axis.fill_between(widths, low, high, color=colour, alpha=0.2, linewidth=0)
        if levels == "L0-L1":
            axis.loglog(widths, middle[0] * (widths / widths[0]) ** -0.5, ":", color="0.5", label="$m^{-1/2}$")
    axis.set_xlabel("neurons m")
    axis.set_ylabel("difference of responses")
    axis.legend()
    return figure

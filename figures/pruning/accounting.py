"""Section 5 and appendix A: parameters and multiply-adds of the vision models, the paper's numbers beside ours."""

from collections.abc import Sequence
from typing import Any

from figures.pruning._shared import COLOURS
from odesim.show.figures import Table

CAPTION = (
    "Parameters (millions), share of parameters in three quarters of the experts and multiply-adds saved by "
    "pruning them, "
    "counted from the published sizes, beside the paper's numbers (which mix variants of 8 and 32 experts)."
)
CLAIMS = ("parameter-count", "flops-linear")


def measure(share: float) -> dict[str, list[Any]]:
    """Ours and the paper's numbers."""
    from derivations.pruning.accounting import E3_MOE, V_MOE

    rows: dict[str, list[Any]] = {"quantity": [], "ours": [], "paper": []}
    for name, model, total, part, saved in (
        ("V-MoE", V_MOE, 979.0, 60.0, 40.0),
        ("E3-MoE", E3_MOE, 167.0, 45.0, 15.0),
    ):
        rows["quantity"] += [
            f"{name}: million parameters",
            f"{name}: % of parameters",
            f"{name}: % multiply-adds saved",
        ]
        rows["ours"] += [model.parameters / 1e6, 100 * model.pruned_share(share), 100 * model.saved(share)]
        rows["paper"] += [total, part, saved]
    return rows


def needs(quick: bool = False) -> list[Table]:
    """Counting only."""
    return [Table("pruning-accounting", measure, {"share": 0.75})]


def draw(stored: Sequence[Any]) -> Any:
    """Ours beside the paper's, one pair of bars per quantity."""
    from matplotlib.figure import Figure

    table = stored[0]
    figure = Figure(figsize=(6.8, 3.4), layout="constrained")
    axis = figure.subplots()
    for k, name in enumerate(("ours", "paper")):
        values = [float(v) for v in table[name]]
        places = [i + 0.38 * (k - 0.5) for i in range(len(values))]
        bars = axis.barh(places, values, height=0.36, color=COLOURS[k], label=name)
        axis.bar_label(bars, fmt="%.1f", padding=2, fontsize=7)
    axis.set_yticks(range(len(table["quantity"])), [str(v) for v in table["quantity"]], fontsize=8)
    axis.invert_yaxis()
    axis.set_xscale("log")
    axis.set_xlim(5, 3000)
    axis.legend(loc="lower right")
    return figure

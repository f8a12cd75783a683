"""Section 5 and appendix A: parameters and multiply-adds of the vision models, the paper's numbers beside ours."""

from collections.abc import Sequence
from typing import Any

from odesim.show.figures import Table

CAPTION = (
    "Parameters (millions), share of parameters in three quarters of the experts, and multiply-adds saved by "
    "pruning these experts. The numbers follow from the published sizes and are shown with those of the paper "
    "(which mix variants of 8 and 32 experts)."
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
    """A table, ours beside the paper's: millions and shares have no axis in common."""
    from matplotlib.figure import Figure

    table = stored[0]
    figure = Figure(figsize=(5.6, 2.1), layout="constrained")
    axis = figure.subplots()
    axis.axis("off")
    rows = [
        [str(name), f"{float(ours):.1f}", f"{float(paper):.0f}", f"{float(ours) / float(paper):.2f}"]
        for name, ours, paper in zip(table["quantity"], table["ours"], table["paper"], strict=True)
    ]
    made = axis.table(rows, colLabels=["", "ours", "paper", "ratio"], colWidths=[0.55, 0.15, 0.15, 0.15], loc="center")
    made.auto_set_font_size(False)
    made.set_fontsize(9)
    made.scale(1, 1.35)
    for (row, column), cell in made.get_celld().items():
        cell.visible_edges = "B"
        cell.set_edgecolor("0.4" if row == 0 else "0.85")
        cell.get_text().set_ha("left" if column == 0 else "right")
    return figure

"""Table 9: load balancing does not bring linear mixtures to the accuracy of cubic ones."""

from collections.abc import Sequence
from typing import Any

from figures.chen._shared import columns, label_bars, pair, released, spread
from odesim.show.figures import Table

CAPTION = (
    "Test accuracy of linear mixtures with load balancing (coefficient 1e-4) and of cubic mixtures without load "
    "balancing. The values of odesim and of the paper are means and standard deviations over seeds."
)
CLAIMS = ("lb-not-key",)
PAPER = {"linear": ((93.81, 1.02), (89.20, 2.20), (95.12, 0.58), (92.50, 1.55)),
         "cubic": ((99.46, 0.55), (98.09, 1.27), (99.99, 0.02), (98.92, 1.18))}  # fmt: skip


def measure(settings: list[int], n: int, seeds: int) -> dict[str, list[Any]]:
    """One row for each setting and activation."""
    rows = []
    for setting in settings:
        for activation, theirs in PAPER.items():
            run = released(setting, activation, n, seeds, balance=1e-4 if activation == "linear" else 0.0)
            mean, deviation = spread(100 * run["accuracy_noisy"][:, -1])
            paper, paper_deviation = theirs[setting - 1]
            rows.append({"setting": setting, "activation": activation, "accuracy": mean, "deviation": deviation,
                         "paper": paper, "paper_deviation": paper_deviation})  # fmt: skip
    return columns(rows)


def needs(quick: bool = False) -> list[Table]:
    """Eight rows of ten seeds."""
    small = {"settings": [3], "n": 1000, "seeds": 2}
    return [Table("chen-table9", measure, small if quick else {"settings": [1, 2, 3, 4], "n": 16000, "seeds": 10})]


def draw(stored: Sequence[Any]) -> Any:
    """Dots with their deviation over seeds, ours and the paper's side by side."""
    from matplotlib.figure import Figure

    table = stored[0]
    figure = Figure(figsize=(6.4, 3.2), layout="constrained")
    axis = figure.subplots()
    names = [f"S{s} {a}" for s, a in zip(table["setting"], table["activation"], strict=True)]
    for i in range(len(names)):
        ours, paper = ((table[a][i], table[b][i]) for a, b in (("accuracy", "deviation"), ("paper", "paper_deviation")))
        pair(axis, i, ours, paper, named=i == 0)
    axis.set_ylabel("test accuracy (%)")
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    label_bars(axis, names)
    return figure

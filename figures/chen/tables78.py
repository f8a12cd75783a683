"""Tables 7 and 8: single experts of six activations, setting 3 and settings 1, 2, beside the ceiling of theory."""

from collections.abc import Sequence
from typing import Any

from figures.chen._shared import CEILINGS, COLOURS, columns, label_bars, pair
from odesim.show.figures import Table

CAPTION = (
    "Test accuracy of single experts (128 filters, Adam) by activation: values of odesim, values of the paper, and "
    "the largest possible accuracy. There is one training run for each value, and the paper gives no deviation."
)
CLAIMS = ("thm-4.1", "thm-4.1-overlap", "moe-vs-single")
PAPER = {
    "linear": (68.71, 60.59, 74.81),
    "cubic": (79.48, 72.29, 72.69),
    "relu": (72.28, 80.12, 73.45),
    "celu": (81.75, 78.99, 76.91),
    "gelu": (79.04, 82.01, 74.01),
    "tanh": (81.72, 81.03, 74.76),
}
"""Settings 1, 2 (Table 8) and 3 (Table 7)."""


def measure(settings: list[int], n: int, epochs: int) -> dict[str, list[Any]]:
    """One row for each setting and activation."""
    from derivations.chen.parameters import Parameters
    from derivations.chen.singles import train

    rows = []
    for setting in settings:
        laws: dict[str, Any] = {"gamma": (0.5, 3.0 if setting < 3 else 2.0), "sigma_p": 1.0 if setting % 2 else 2.0}
        for activation, theirs in PAPER.items():
            found = train(Parameters(P=4, J=128, activation=activation, **laws), n, epochs)
            row = {"setting": setting, "activation": activation, "accuracy": 100 * found.test}
            rows.append({**row, "train": 100 * found.train, "paper": theirs[setting - 1], "ceiling": CEILINGS[setting]})
    return columns(rows)


def needs(quick: bool = False) -> list[Table]:
    """Eighteen trainings of 300 epochs."""
    small = {"settings": [3], "n": 1000, "epochs": 60}
    return [Table("chen-tables78", measure, small if quick else {"settings": [1, 2, 3], "n": 16000, "epochs": 300})]


def draw(stored: Sequence[Any]) -> Any:
    """Dots, ours and the paper's side by side, below the ceiling."""
    from matplotlib.figure import Figure

    table = stored[0]
    figure = Figure(figsize=(7.6, 3.4), layout="constrained")
    axis = figure.subplots()
    names = [f"S{s} {a}" for s, a in zip(table["setting"], table["activation"], strict=True)]
    for i in range(len(names)):
        pair(axis, i, (table["accuracy"][i], None), (table["paper"][i], None), named=i == 0)
        axis.plot([i - 0.45, i + 0.45], [table["ceiling"][i]] * 2, color=COLOURS[6], label="" if i else "ceiling")
    axis.set_ylabel("test accuracy (%)")
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    label_bars(axis, names)
    return figure

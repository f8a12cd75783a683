"""Tables 1 and 3: test accuracy and dispatch entropy of mixtures and single experts, beside the paper's numbers."""

from collections.abc import Sequence
from typing import Any

from figures.chen._shared import CEILINGS, COLOURS, columns, label_bars, released, spread
from odesim.figures import Table

CAPTION = (
    "Test accuracy (with routing noise, as in the released code) and dispatch entropy in the four settings: ours with "
    "the standard deviation over seeds, the paper's beside it, and the ceiling of single experts as a line."
)
CLAIMS = ("thm-4.1", "thm-4.1-overlap", "moe-vs-single", "lin-vs-nonlin")
PAPER = {
    ("mixture", "cubic"): ((99.46, 0.55, 0.098), (98.09, 1.27, 0.171), (99.99, 0.02, 0.008), (98.92, 1.18, 0.089)),
    ("mixture", "linear"): ((92.99, 2.11, 1.300), (88.48, 1.96, 1.294), (95.93, 1.34, 1.160), (93.30, 1.48, 1.160)),
    ("single", "cubic"): ((79.48, 0, 0), (72.29, 0, 0), (72.69, 0, 0), (68.60, 0, 0)),
    ("single", "linear"): ((68.71, 0, 0), (60.59, 0, 0), (74.81, 0, 0), (74.63, 0, 0)),
}
"""Accuracy in per cent, its standard deviation, entropy; single experts have 128 filters."""


def measure(settings: list[int], n: int, seeds: int, singles: int, epochs: int) -> dict[str, list[Any]]:
    """One row for each setting, kind and activation."""
    from derivations.chen.parameters import Parameters
    from derivations.chen.singles import train

    rows: list[dict[str, Any]] = []
    for setting in settings:
        for kind, activation in PAPER:
            row: dict[str, Any] = {"setting": setting, "kind": kind, "activation": activation}
            if kind == "mixture":
                run = released(setting, activation, n, seeds)
                row["accuracy"], row["deviation"] = spread(100 * run["accuracy_noisy"][:, -1])
                row["entropy"] = spread(run["entropy_noisy"][:, -1])[0]
            else:
                laws: dict[str, Any] = {
                    "gamma": (0.5, 3.0 if setting < 3 else 2.0),
                    "sigma_p": 1.0 if setting % 2 else 2.0,
                }
                p = Parameters(P=4, J=128, activation=activation, **laws)
                found = [100 * train(p, n, epochs, seed).test for seed in range(singles)]
                row["accuracy"], row["deviation"] = spread(found)
                row["entropy"] = 0.0
            theirs = PAPER[kind, activation][setting - 1]
            rows.append({**row, "paper": theirs[0], "paper_deviation": theirs[1], "paper_entropy": theirs[2],
                         "ceiling": CEILINGS[setting]})  # fmt: skip
    return columns(rows)


def needs(quick: bool = False) -> list[Table]:
    """All settings at the paper's sizes, or two settings at 2000 examples."""
    small = {"settings": [1, 3], "n": 2000, "seeds": 2, "singles": 1, "epochs": 100}
    full = {"settings": [1, 2, 3, 4], "n": 16000, "seeds": 10, "singles": 1, "epochs": 300}
    return [Table("chen-table1", measure, small if quick else full)]


def draw(stored: Sequence[Any]) -> Any:
    """Accuracy above, entropy of the mixtures below."""
    from matplotlib.figure import Figure

    table = stored[0]
    figure = Figure(figsize=(7.6, 5.4), layout="constrained")
    top, bottom = figure.subplots(2, 1, height_ratios=(2, 1))
    names = [f"S{s} {a} {k}" for s, a, k in zip(table["setting"], table["activation"], table["kind"], strict=True)]
    for i in range(len(names)):
        top.bar(
            i - 0.2, table["accuracy"][i], 0.4, yerr=table["deviation"][i], color=COLOURS[0], label="" if i else "ours"
        )
        top.bar(i + 0.2, table["paper"][i], 0.4, yerr=table["paper_deviation"][i], color=COLOURS[5],
                label="" if i else "paper")  # fmt: skip
        top.plot(
            [i - 0.45, i + 0.45], [table["ceiling"][i]] * 2, color=COLOURS[6], label="" if i else "ceiling of singles"
        )
    top.set_ylim(50, 103)
    top.set_ylabel("test accuracy (%)")
    top.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    label_bars(top, names)
    mixed = [i for i, kind in enumerate(table["kind"]) if kind == "mixture"]
    for at, i in enumerate(mixed):
        bottom.bar(at - 0.2, table["entropy"][i], 0.4, color=COLOURS[0])
        bottom.bar(at + 0.2, table["paper_entropy"][i], 0.4, color=COLOURS[5])
    bottom.axhline(1.386, color="0.6", linestyle=":", linewidth=0.8)
    bottom.set_ylabel("dispatch entropy")
    label_bars(bottom, [names[i] for i in mixed])
    return figure

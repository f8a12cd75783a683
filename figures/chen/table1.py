"""Tables 1 and 3: test accuracy and dispatch entropy of mixtures and single experts, beside the paper's numbers."""

from collections.abc import Sequence
from typing import Any

from figures.chen._shared import CEILINGS, COLOURS, columns, label_bars, pair, released, spread
from odesim.show.figures import Table

CAPTION = (
    "Test accuracy (with routing noise, as in the released code) and dispatch entropy in the four settings. The "
    "values of odesim have the standard deviation over seeds. The values of the paper are next to them (for single "
    "experts without a deviation). The solid line is the largest possible accuracy of a single expert. The dotted "
    "line is the accuracy of a linear single expert without weights on the centres, 65 % in settings 1 and 2 and "
    "75 % in settings 3 and 4. Mixtures have 8 experts of 16 filters, single experts have 128 or 512 filters."
)
CLAIMS = ("thm-4.1", "thm-4.1-overlap", "moe-vs-single", "lin-vs-nonlin", "lin-75")
FILTERS = 128
"""The filters of a mixture, all experts together."""
PAPER = {
    ("mixture", "cubic", 128): (
        (99.46, 0.55, 0.098, 0.087), (98.09, 1.27, 0.171, 0.103),
        (99.99, 0.02, 0.008, 0.011), (98.92, 1.18, 0.089, 0.120),
    ),
    ("mixture", "linear", 128): (
        (92.99, 2.11, 1.300, 0.044), (88.48, 1.96, 1.294, 0.036),
        (95.93, 1.34, 1.160, 0.100), (93.30, 1.48, 1.160, 0.155),
    ),
    ("single", "cubic", 128): (79.48, 72.29, 72.69, 68.60),
    ("single", "cubic", 512): (78.18, 52.09, 67.78, 61.65),
    ("single", "linear", 128): (68.71, 60.59, 74.81, 74.63),
    ("single", "linear", 512): (67.63, 63.04, 74.54, 72.98),
}  # fmt: skip
"""By setting: accuracy in per cent with its standard deviation, entropy with its; of single experts the accuracy."""
CENTRELESS = {1: 65.0, 2: 65.0, 3: 75.0, 4: 75.0}
"""1/2 + P(alpha > gamma)/2: the accuracy of sign(y alpha + epsilon gamma)."""


def mixture(setting: int, activation: str, n: int, seeds: int) -> dict[str, list[Any]]:
    """Mean and deviation of accuracy and entropy of one mixture, as columns of length one."""
    run = released(setting, activation, n, seeds)
    accuracy, entropy = spread(100 * run["accuracy_noisy"][:, -1]), spread(run["entropy_noisy"][:, -1])
    return columns([{"accuracy": accuracy[0], "deviation": accuracy[1], "entropy": entropy[0], "wide": entropy[1]}])


def single(setting: int, activation: str, filters: int, n: int, seeds: int, epochs: int) -> dict[str, list[Any]]:
    """Mean and deviation of the accuracy of single experts, as columns of length one."""
    from derivations.chen.parameters import Parameters
    from derivations.chen.singles import train

    laws: dict[str, Any] = {"gamma": (0.5, 3.0 if setting < 3 else 2.0), "sigma_p": 1.0 if setting % 2 else 2.0}
    p = Parameters(P=4, J=filters, activation=activation, **laws)
    found = [train(p, n, epochs, seed) for seed in range(seeds)]
    accuracy, fitted = spread([100 * each.test for each in found]), spread([100 * each.train for each in found])
    return columns([{"accuracy": accuracy[0], "deviation": accuracy[1], "train": fitted[0]}])


def needs(quick: bool = False) -> list[Table]:
    """A table for each row and setting, so that a long computation can be continued after an interruption.

    All settings at the paper's sizes, with two seeds for single experts of 128 filters and one for 512; or settings 1
    and 3 with 2000 examples.
    """
    n, seeds, epochs = (2000, 2, 100) if quick else (16000, 10, 801)
    made = []
    for setting in (1, 3) if quick else (1, 2, 3, 4):
        for kind, activation, filters in PAPER:
            arguments: dict[str, Any] = {"setting": setting, "activation": activation, "n": n}
            if kind == "mixture":
                made.append(Table("chen-table1-mixture", mixture, {**arguments, "seeds": seeds}))
                continue
            count = 1 if quick or filters > FILTERS else 2
            arguments |= {"filters": filters, "seeds": count, "epochs": epochs}
            made.append(Table("chen-table1-single", single, arguments))
    return made


def rows(stored: Sequence[Any]) -> list[dict[str, Any]]:
    """The stored rows: setting, kind, activation, filters, numbers of odesim and of the paper."""
    found = []
    for each in stored:
        setting, activation = int(each.arguments["setting"]), str(each.arguments["activation"])
        filters = int(each.arguments.get("filters", FILTERS))
        kind = "single" if "filters" in each.arguments else "mixture"
        theirs: Any = PAPER[kind, activation, filters][setting - 1]
        theirs = theirs if isinstance(theirs, tuple) else (theirs, 0.0, 0.0, 0.0)
        ours = {name: float(each[name][0]) for name in each.columns}
        found.append({"setting": setting, "kind": kind, "activation": activation, "filters": filters, **ours,
                      "paper": theirs})  # fmt: skip
    return found


def draw(stored: Sequence[Any]) -> Any:
    """A panel of accuracies for each setting, and the entropies of the mixtures."""
    from matplotlib.figure import Figure

    table = rows(stored)
    settings = sorted({row["setting"] for row in table})
    figure = Figure(figsize=(2.2 * len(settings) + 2.2, 5.6), layout="constrained")
    panels = figure.subplots(2, len(settings), squeeze=False, height_ratios=(2, 1), sharey="row")
    for column, setting in enumerate(settings):
        top, bottom = panels[0][column], panels[1][column]
        mine = [row for row in table if row["setting"] == setting]
        for i, row in enumerate(mine):
            pair(top, i, (row["accuracy"], row["deviation"]), row["paper"][:2], named=i == 0)
        singles = [i for i, row in enumerate(mine) if row["kind"] == "single"]
        edges = [min(singles) - 0.45, max(singles) + 0.45]
        top.plot(edges, [CEILINGS[setting]] * 2, color=COLOURS[6], label="ceiling of singles")
        top.plot(edges, [CENTRELESS[setting]] * 2, ":", color=COLOURS[6], label="linear, no centres")
        top.set_title(f"setting {setting}")
        names = [f"{row['kind']} {row['activation']} {row['filters']}" for row in mine]
        top.set_xticks(range(len(mine)), names, rotation=90, fontsize=7)
        mixed = [row for row in mine if row["kind"] == "mixture"]
        for at, row in enumerate(mixed):
            pair(bottom, at, (row["entropy"], row["wide"]), row["paper"][2:])
        bottom.axhline(1.386, color="0.6", linestyle=":", linewidth=0.8, label="log 4: every expert\nsees all clusters")
        bottom.set_xlim(-0.6, len(mixed) - 0.4)
        bottom.set_ylim(bottom=-0.06)  # dots at zero are whole
        label_bars(bottom, [row["activation"] for row in mixed])
    panels[0][0].set_ylim(45, 103)
    panels[0][0].set_ylabel("test accuracy (%)")
    panels[1][0].set_ylabel("dispatch entropy")
    for row in panels:
        row[-1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=7)
    return figure

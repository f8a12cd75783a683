"""Stand-ins for tables 2 and 10: turned digits and synthetic languages, single experts against mixtures of four."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from figures.chen._shared import COLOURS
from odesim.show.figures import Table

CAPTION = (
    "Other data replace the data of the paper. Left, for table 2: is a digit of scikit-learn rotated by 30 "
    "degrees? Right, for table 10: three synthetic languages with contradictory rules for the label. The upper "
    "panels show the test accuracy of one expert and of four experts by the protocol of the paper, one point per "
    "seed and their mean. The lower panels show the dispatch entropy of the mixture over digits (at most 2.30) and "
    "languages (1.05). The paper has 76.78 and 79.60 % (CNN on rotated CIFAR-10), and 74.13 and 76.22 % "
    "(multilingual sentiment)."
)
CLAIMS = ("moe-vs-single", "lin-vs-nonlin")
TASKS = {"rotated": 60, "languages": 15}
"""The substitute tasks and their epochs."""
KINDS = ("cubic", "linear")


def measure(seeds: int, epochs: float) -> dict[str, list[Any]]:
    """One row for each task, activation and number of experts: accuracies and entropies by seed."""
    from derivations.chen import standins

    rows: dict[str, list[Any]] = {name: [] for name in ("task", "activation", "experts", "accuracy", "entropy")}
    for task, full in TASKS.items():
        for activation in KINDS:
            for experts in (1, 4):
                found = []
                for seed in range(seeds):
                    rng = np.random.default_rng(seed)
                    train, test = getattr(standins, task)(rng)
                    net = standins.train(train, experts, activation, rng, max(1, round(epochs * full)))
                    found.append(standins.measured(net, test, activation))
                values = (task, activation, experts, [f["accuracy"] for f in found], [f["entropy"] for f in found])
                for name, value in zip(rows, values, strict=True):
                    rows[name].append(value)
    return rows


def needs(quick: bool = False) -> list[Table]:
    """Ten seeds (two minutes)."""
    return [Table("chen-standins", measure, {"seeds": 2, "epochs": 0.2} if quick else {"seeds": 10, "epochs": 1.0})]


def draw(stored: Sequence[Any]) -> Any:
    """A panel for each task."""
    from matplotlib.figure import Figure

    table = stored[0]
    figure = Figure(figsize=(6.6, 3.2), layout="constrained")
    titles = ("turned digits (for table 2)", "synthetic languages (for table 10)")
    for axis, task, title in zip(figure.subplots(1, 2), TASKS, titles, strict=True):
        places = [k for k, name in enumerate(table["task"]) if name == task]
        labels = []
        for at, k in enumerate(places):
            values, single = 100 * np.asarray(table["accuracy"][k], float), table["experts"][k] == 1
            spread = at + 0.2 * (np.arange(values.size) / max(values.size - 1, 1) - 0.5)
            axis.plot(spread, values, "o", color=COLOURS[0 if single else 1], markersize=3.5)
            axis.plot([at - 0.3, at + 0.3], [values.mean()] * 2, "-", color=COLOURS[0 if single else 1])
            entropy = "" if single else f"\nentropy {np.mean(table['entropy'][k]):.2f}"
            labels.append(f"{table['activation'][k]}\n{'one expert' if single else 'four'}{entropy}")
        axis.set_xticks(range(len(places)), labels, fontsize=7)
        axis.set_xlim(-0.6, len(places) - 0.4)
        axis.set_title(title)
        axis.set_ylabel("test accuracy (%)")
    return figure

"""Figure 3: dispatch entropy against epochs, cubic and linear mixtures, settings 1 and 2, without early stopping."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from figures.chen._shared import COLOURS, STEP, released
from odesim.show.figures import Table

CAPTION = (
    "Dispatch entropy under routing noise during training (released protocol, no early stopping). The noise is new "
    "in every epoch, but fixed in the paper. Lines are means over seeds with 1.96 standard errors. Dots are the "
    "released records."
)
CLAIMS = ("lin-vs-nonlin",)
EPOCHS = (0, 10, 25, 50, 75, 100, 150, 200, 300, 400, 500)
RECORDS = {
    ("cubic", 1): (1.386, 1.386, 1.376, 0.705, 0.347, 0.234, 0.118, 0.120, 0.130, 0.133, 0.135),
    ("cubic", 2): (1.385, 1.385, 1.377, 0.720, 0.405, 0.278, 0.215, 0.220, 0.237, 0.248, 0.257),
    ("linear", 1): (1.386, 1.367, 1.258, 1.188, 1.204, 1.219, 1.240, 1.254, 1.270, 1.278, 1.285),
    ("linear", 2): (1.385, 1.369, 1.214, 1.123, 1.129, 1.135, 1.145, 1.154, 1.168, 1.180, 1.191),
}


def measure(n: int, seeds: int) -> dict[str, list[Any]]:
    """Mean and standard error of the entropy at 51 epochs, for the four curves."""
    rows = []
    for activation, setting in RECORDS:
        run = released(setting, activation, n, seeds, save_points=51, early_stop=False, n_test=2000)
        error = run["entropy_noisy"].std(axis=0) / np.sqrt(seeds)
        rows.append([run["entropy_noisy"].mean(axis=0).tolist(), error.tolist(), (run.time / STEP).tolist()])
    return {"mean": [r[0] for r in rows], "error": [r[1] for r in rows], "epoch": [r[2] for r in rows]}


def needs(quick: bool = False) -> list[Table]:
    """Four curves."""
    return [Table("chen-fig3", measure, {"n": 1000, "seeds": 2} if quick else {"n": 16000, "seeds": 10})]


def draw(stored: Sequence[Any]) -> Any:
    """The four curves."""
    from matplotlib.figure import Figure

    table = stored[0]
    figure = Figure(figsize=(6.4, 3.4), layout="constrained")
    axis = figure.subplots()
    for i, ((activation, setting), record) in enumerate(RECORDS.items()):
        mean, error, epoch = (np.asarray(table[name][i]) for name in ("mean", "error", "epoch"))
        axis.plot(epoch, mean, color=COLOURS[i], label=f"{activation}, setting {setting}")
        axis.fill_between(epoch, mean - 1.96 * error, mean + 1.96 * error, color=COLOURS[i], alpha=0.2, linewidth=0)
        axis.plot(EPOCHS, record, "o", color=COLOURS[i], markersize=3)
    axis.plot([], [], "o", color="0.3", markersize=3, label="released records")
    axis.set_xlabel("epoch")
    axis.set_ylabel("dispatch entropy")
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure

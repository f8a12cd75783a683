"""Tables 4 to 6: how the clusters are dispatched to the experts before and after training, setting 1."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from figures.chen._shared import released
from odesim.show.figures import Table

CAPTION = (
    "Share of the test examples of each cluster (rows) at each expert (columns), under routing noise: before "
    "training, after training of cubic experts (one expert for each cluster), and after training of linear experts "
    "(mixed). Setting 1, released protocol."
)
CLAIMS = ("lin-vs-nonlin", "thm-4.2-router", "starve")


def measure(n: int) -> dict[str, list[Any]]:
    """The three tables, rows by cluster, with their entropies and accuracies."""
    cubic, linear = (released(1, activation, n, 1) for activation in ("cubic", "linear"))
    runs = ((cubic, 0), (cubic, -1), (linear, -1))
    return {
        "dispatch": [run["dispatch"][0, t].tolist() for run, t in runs],
        "entropy": [float(run["entropy_noisy"][0, t]) for run, t in runs],
        "accuracy": [float(run["accuracy_noisy"][0, t]) for run, t in runs],
    }


def needs(quick: bool = False) -> list[Table]:
    """Two runs of 501 epochs."""
    return [Table("chen-tables456", measure, {"n": 2000 if quick else 16000})]


def draw(stored: Sequence[Any]) -> Any:
    """Three heat maps."""
    from matplotlib.figure import Figure

    table = stored[0]
    figure = Figure(figsize=(8.0, 2.6), layout="constrained")
    axes = figure.subplots(1, 3, sharey=True)
    image: Any = None
    for i, (axis, name) in enumerate(zip(axes, ("before", "cubic, after", "linear, after"), strict=True)):
        counts = np.asarray(table["dispatch"][i])
        image = axis.imshow(4 * counts, vmin=0, vmax=1, cmap="Blues", aspect="auto")
        words = f"entropy {table['entropy'][i]:.3f}, accuracy {100 * table['accuracy'][i]:.1f} %"
        axis.set_title(f"{name}\n{words}", fontsize=7)
        axis.set_xticks(range(counts.shape[1]), [str(m + 1) for m in range(counts.shape[1])])
        axis.set_xlabel("expert")
    axes[0].set_yticks(range(4), [str(k + 1) for k in range(4)])
    axes[0].set_ylabel("cluster")
    figure.colorbar(image, ax=axes, label="share of the cluster")
    return figure

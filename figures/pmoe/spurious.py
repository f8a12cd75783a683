"""Figure 11 in pattern space: a pattern that agrees with the label in training, and not at test time."""

from collections.abc import Sequence
from typing import Any

from odesim.show.figures import Stored, Table

CAPTION = (
    "Accuracy on tests in which a spurious pattern is independent of the label, as a function of its agreement "
    "with the label in training (2000 samples, n = 16, p = 8, flow time 2000, pseudo network): CNN, separate "
    "training with l = 1, joint training with l = 6. Patterns replace CelebA. The separate router learns the "
    "spurious pattern in proportion to its agreement, but at l = 1 it selects only o1 and o2."
)
CLAIMS = ("spur-1", "spur-2")


def measure(agree: list[float], seeds: int) -> dict[str, Any]:
    """Accuracies by agreement and seed."""
    from derivations.pmoe.claims.images import spurious
    from figures.pmoe._shared import laboratory

    lab = laboratory()
    rows: dict[str, list[Any]] = {"agree": [], "cnn": [], "separate": [], "joint": [], "rank": []}
    for share in agree:
        for seed in range(seeds):
            found = spurious(lab, {"agree": share, "flow": 2000.0}, seed)
            rows["agree"].append(share)
            for name in ("cnn", "separate", "joint", "rank"):
                rows[name].append(found[name])
    return rows


def needs(quick: bool = False) -> list[Table]:
    """Six agreements, four seeds."""
    agree = [0.5, 0.95] if quick else [0.5, 0.7, 0.8, 0.9, 0.95, 0.99]
    return [Table("pmoe-spurious", measure, {"agree": agree, "seeds": 1 if quick else 4})]


def draw(stored: Sequence[Stored]) -> Any:
    """Bands of accuracy, and the pull on the separate router."""
    import numpy as np
    from matplotlib.figure import Figure

    from figures.pmoe._shared import band

    (table,) = stored
    figure = Figure(figsize=(7.4, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    agree = np.unique(table["agree"]).astype(float)
    for mode in ("separate", "joint", "cnn"):
        band(left, agree, [table[mode][table["agree"] == a] for a in agree], mode)
    left.set_xlabel("agreement in training")
    left.set_ylabel("test accuracy, agreement broken")
    left.legend()
    pull = [np.median(table["rank"][table["agree"] == a].astype(float)) for a in agree]
    right.plot(agree, pull, "o-", color="#0072B2", label="measured")
    right.plot(agree, 2 * agree - 1, ":", color="0.4", label="2 agreement - 1")
    right.set_xlabel("agreement in training")
    right.set_ylabel("pull on router 1, over that of $o_1$")
    right.legend()
    return figure

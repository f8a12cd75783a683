"""Figures 4, 8 and 9 on labelled substitute data: grids of scikit-learn digits in place of MNIST."""

from collections.abc import Sequence
from typing import Any

from odesim.show.figures import Stored, Table

CAPTION = (
    "Figure 4's experiment with scikit-learn's 8 x 8 digits in place of MNIST (16 raw patches, digit 1 against 0, 40 "
    "neurons, "
    "step 0.2, batches of 20): test accuracy against training samples, mean and standard deviation over data sets. "
    "Right: "
    "share of test samples whose discriminative digit has the largest gate of one jointly trained expert (Figure 9; "
    "the paper "
    "has 95 % and 92 % at 300 samples of MNIST)."
)
CLAIMS = ("fig-4-digits", "disc-1-digits")


def measure(sizes: list[int], seeds: int, steps: int) -> dict[str, Any]:
    """Accuracies by mode, size and seed; joint training also has the shares of Figure 9."""
    import numpy as np

    from derivations.pmoe import digits
    from odesim.errors import MissingError

    try:
        pixels, targets = digits.images()
    except ModuleNotFoundError:
        raise MissingError("this figure needs scikit-learn: install the extra digits") from None
    rows: dict[str, list[Any]] = {"mode": [], "N": [], "accuracy": [], "o1": [], "o2": []}
    cut = digits.TRAINED_ON
    for seed in range(seeds):
        for size in sizes:
            rng = np.random.default_rng([seed, size])
            x, labels = digits.grids(pixels[:cut], targets[:cut], size, rng)
            tests = digits.grids(pixels[cut:], targets[cut:], 1000, rng)
            for mode in ("cnn", "separate", "joint"):
                net = digits.train(mode, x, labels, np.random.default_rng(seed), max(1, steps * 20 // size))
                first, second = digits.top_gate(net, *tests)
                row = {"mode": mode, "N": size, "accuracy": digits.accuracy(net, *tests), "o1": first, "o2": second}
                for name, value in row.items():
                    rows[name].append(value)
    return rows


def needs(quick: bool = False) -> list[Table]:
    """The released code's sample sizes, five data sets."""
    sizes = [100, 300] if quick else [100, 300, 500, 700, 900, 1000]
    return [Table("pmoe-fig4", measure, {"sizes": sizes, "seeds": 1 if quick else 5, "steps": 300 if quick else 2000})]


def draw(stored: Sequence[Stored]) -> Any:
    """Accuracy of the three networks, and the routers' shares."""
    import numpy as np
    from matplotlib.figure import Figure

    from figures.pmoe._shared import COLOURS, LABELS, MARKERS

    (table,) = stored
    figure = Figure(figsize=(7.4, 3.3), layout="constrained")
    left, right = figure.subplots(1, 2)
    sizes = np.unique(table["N"])

    def of(mode: str, name: str) -> list[Any]:
        return [table[name][(table["mode"] == mode) & (table["N"] == size)].astype(float) for size in sizes]

    for mode in ("separate", "joint", "cnn"):
        values = of(mode, "accuracy")
        mean, spread = np.array([v.mean() for v in values]), np.array([v.std() for v in values])
        left.errorbar(sizes, mean, spread, color=COLOURS[mode], marker=MARKERS[mode], capsize=2, label=LABELS[mode])
    left.set_xlabel("training samples N")
    left.set_ylabel("test accuracy")
    left.legend()
    for name, colour, text in (("o1", "#0072B2", "digit 1"), ("o2", "#D55E00", "digit 0")):
        values = of("joint", name)
        mean, spread = [v.mean() for v in values], [v.std() for v in values]
        right.errorbar(sizes, mean, spread, fmt="o-", color=colour, capsize=2, label=text)
    right.set_xlabel("training samples N")
    right.set_ylabel("share with the largest gate")
    right.set_ylim(0, 1.02)
    right.legend()
    return figure

"""Common parts of several figures of chen: the paper's settings, its numbers, and runs of the released protocol."""

from collections.abc import Mapping
from typing import Any

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
"""The Okabe-Ito colours."""
CEILINGS = {1: 92.5, 2: 92.5, 3: 87.5, 4: 87.5}
"""What no single expert passes (Theorem 4.1, and its form for general laws), in per cent."""
EPOCHS, STEP = 501, 1e-3


def released(setting: int, activation: str, n: int, seeds: int, seed: int = 0, **more: Any) -> Any:
    """The released protocol at the paper's sizes on one data set; replicas differ in weights and noise."""
    import odesim

    size = {"K": 4, "M": 8, "J": 16, "P": 4, "d": 50, "rho": 100.0, "variant": "released", "early_stop": True}
    size |= {"gamma": (0.5, 3.0) if setting < 3 else (0.5, 2.0), "sigma_p": 1.0 if setting % 2 else 2.0}
    options = {"save_points": 2, "n_test": n, **more}
    return odesim.simulate(
        "chen", method="explicit", step_size=STEP, batch=n, until=EPOCHS * STEP, seeds=seeds, seed=seed,
        fresh_initial=True, activation=activation, **{**size, **options},
    )  # fmt: skip


def spread(values: Any) -> tuple[float, float]:
    """Mean and population standard deviation, the paper's convention."""
    import numpy as np

    found = np.asarray(values, float)
    return float(found.mean()), float(found.std())


def pair(axis: Any, at: float, ours: tuple[float, Any], theirs: tuple[float, Any], named: bool = False) -> None:
    """Our and the paper's number side by side, as dots with their deviation if there is one.

    Dots and no bars: accuracies are between 45 and 100 %, and a bar that does not begin at zero is misleading.
    """
    for shift, (value, error), name, colour, mark in (
        (-0.15, ours, "ours", COLOURS[0], "o"), (0.15, theirs, "paper", COLOURS[1], "D"),
    ):  # fmt: skip
        style = {"markersize": 4.5, "capsize": 2, "elinewidth": 1.0, "color": colour}
        axis.errorbar(at + shift, value, yerr=error or None, fmt=mark, label=name if named else None, **style)


def label_bars(axis: Any, names: list[str]) -> None:
    """Tick labels below groups."""
    axis.set_xticks(range(len(names)), names, rotation=20, ha="right", fontsize=7)


def columns(rows: list[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Rows as columns."""
    return {name: [row[name] for row in rows] for name in rows[0]}

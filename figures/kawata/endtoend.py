"""Ours: the four phases end to end, against a vanilla network with as many neurons."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from figures.kawata._shared import COLOURS
from odesim.figures import Table

CAPTION = (
    "Test error E|F - f*| over E|f*| after Phase IV, one point per seed with the median (population flow, "
    "Phase IV from "
    "20,000 samples; d = 1e6, k* = 4, C = 2, 8 experts of 60 neurons; vanilla: 480 neurons, the time of Phase "
    "III), and "
    "the routing of Phase II: how often the cluster of an expert, and the other one, activate it."
)
CLAIMS = ("thm-4.6", "lem-4.10")


def measure(width: int, d: int, seeds: int) -> Mapping[str, Any]:
    """Relative test errors of both networks and routing probabilities, by seed."""
    import dataclasses

    from odesim import pipeline

    common = {"C": 2, "d": d, "k_star": 4, "rho": 8.0, "bias": (-0.5,), "ridge_bias": (-4.0, 4.0), "ridge": 1e-6}
    found: dict[str, list[Any]] = {"mixture": [], "vanilla": [], "right": [], "wrong": [], "global": []}
    for seed in range(seeds):
        options = {"seed": seed, "save_points": 2, "rtol": 1e-6}
        request = {**common, "M": 8, "J": 8, "width3": width}
        built = pipeline.build("kawata", request, "all", until=10.0 * 8 * 64 * d, **options)
        third = dataclasses.replace(built.cases[2], until=60.0 * width * d)
        runs = pipeline.run(dataclasses.replace(built, cases=(*built.cases[:2], third, built.cases[3])))
        found["mixture"].append(runs[3].summary["relative_error"])
        found["right"].append(runs[1].summary["right_active"])
        found["wrong"].append(runs[1].summary["wrong_active"])
        found["global"].append(runs[2].summary["global_reached"] / runs[2].summary["neurons"])
        alone = {**common, "M": 1, "J": 8 * width}
        both = pipeline.run(pipeline.build("kawata", alone, "phase1,phase4", until=60.0 * 8 * width * d, **options))
        found["vanilla"].append(both[1].summary["relative_error"])
    return found


def needs(quick: bool = False) -> list[Table]:
    """Eight seeds of both networks (a minute)."""
    size = {"width": 12, "d": 10**4, "seeds": 2} if quick else {"width": 60, "d": 10**6, "seeds": 8}
    return [Table("kawata-endtoend", measure, size)]


def draw(stored: Sequence[Any]) -> Any:
    """Errors on the left, routing on the right."""
    from matplotlib.figure import Figure

    table = stored[0]
    figure = Figure(figsize=(6.6, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    panels = (
        (left, ("mixture", "vanilla"), ("four phases", "vanilla")),
        (
            right,
            ("right", "wrong", "global"),
            ("own cluster\nactivates", "other cluster\nactivates", "neurons on\n$w_g^*$"),
        ),
    )
    for axis, names, labels in panels:
        for k, name in enumerate(names):
            values = table[name]
            spread = k + 0.16 * (np.arange(values.size) / max(values.size - 1, 1) - 0.5)
            axis.plot(spread, values, "o", color=COLOURS[k], markersize=4)
            axis.plot([k - 0.2, k + 0.2], [np.median(values)] * 2, "-", color=COLOURS[k])
        axis.set_xticks(range(len(names)), labels, fontsize=7)
        axis.set_xlim(-0.5, len(names) - 0.5)
        axis.set_ylim(0, 1.05)
    left.axhline(1.0, color="0.6", linewidth=0.8, linestyle=":")
    left.set_ylabel("test error / error of zero")
    right.set_ylabel("share")
    return figure

"""Ours: the four phases end to end, against a vanilla network with as many neurons."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from figures.kawata._shared import COLOURS
from odesim.show.figures import Table

CAPTION = (
    "Left: test error E(F - f*)^2 over E f*^2 after Phase IV, one point per seed with the median and its 95 % "
    "interval (population flow, Phase IV from 40,000 samples). The vanilla network has as many neurons and trains "
    "for the time of Phase III. The dotted line is the share of the global task. A network that does not learn the "
    "global task stays above this line. Right: how often, after Phase II, a sample of its own cluster and a sample "
    "of the other cluster activate an expert, and the share of neurons that learn the global task in Phase III."
)
PUBLISHED = "d = 1e12, k* = 4, C = 2, 12 experts of 80 neurons."
QUICK = False  # with few neurons and small d the routed network has not separated the clusters, and vanilla wins
CLAIMS = ("thm-4.6", "lem-4.10")


def measure(width: int, experts: int, d: int, seeds: int) -> Mapping[str, Any]:
    """Relative squared test errors of both networks and routing probabilities, by seed."""
    from odesim.flow import pipeline

    common = {"C": 2, "d": d, "k_star": 4, "rho": 8.0, "bias": (-0.5,), "ridge_bias": (-4.0, 4.0), "ridge": 1e-9}
    common["ridge_samples"] = 40_000
    found: dict[str, list[Any]] = {"mixture": [], "vanilla": [], "right": [], "wrong": [], "global": []}

    def error(run: Any) -> float:
        return run.summary["test_squared_error"] / run.summary["squared_error_of_zero"]

    for seed in range(seeds):
        options = {"seed": seed, "save_points": 2, "rtol": 1e-6}
        request = {**common, "M": experts, "J": 8, "width3": width}
        first = 10.0 * 8 * experts**2 * d
        ends = {"phase1": first, "phase3": first + 60.0 * width * d}
        runs = pipeline.run(pipeline.build("kawata", request, "all", until=ends, **options))
        found["mixture"].append(error(runs[3]))
        found["right"].append(runs[1].summary["right_active"])
        found["wrong"].append(runs[1].summary["wrong_active"])
        found["global"].append(runs[2].summary["global_reached"] / runs[2].summary["neurons"])
        alone = {**common, "M": 1, "J": experts * width}
        until = 60.0 * experts * width * d
        found["vanilla"].append(
            error(pipeline.run(pipeline.build("kawata", alone, "phase1,phase4", until=until, **options))[1])
        )
    return found


def needs(quick: bool = False) -> list[Table]:
    """Ten seeds of both networks (some minutes)."""
    return [Table("kawata-endtoend", measure, {"width": 80, "experts": 12, "d": 10**12, "seeds": 10})]


def draw(stored: Sequence[Any]) -> Any:
    """Errors on the left, routing on the right."""
    from matplotlib.figure import Figure

    from derivations import intervals

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
            values = np.asarray(table[name], float)
            spread = k + 0.16 * (np.arange(values.size) / max(values.size - 1, 1) - 0.5)
            axis.fill_between([k - 0.25, k + 0.25], *intervals.median(values), color=COLOURS[k], alpha=0.2, linewidth=0)
            axis.plot(spread, values, "o", color=COLOURS[k], markersize=4)
            axis.plot([k - 0.25, k + 0.25], [np.median(values)] * 2, "-", color=COLOURS[k])
        axis.set_xticks(range(len(names)), labels, fontsize=7)
        axis.set_xlim(-0.5, len(names) - 0.5)
    left.axhline(0.5, color="0.4", linewidth=0.8, linestyle=":")
    left.set_yscale("log")
    left.set_ylabel("squared test error / that of zero")
    right.set_ylim(0, 1.05)
    right.set_ylabel("share")
    return figure

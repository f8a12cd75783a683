"""Figure 3, left: E pi'(z1) pi'''(z2) against the covariance, exact and by Monte Carlo."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from figures.liao._shared import COLOURS
from odesim.show.figures import Table

CAPTION = (
    "E pi'(z1) pi'''(z2) of the logistic gate as a function of the covariance of z1 and z2: the exact curve, and "
    "Monte Carlo estimates with two standard errors. The value is negative everywhere (the paper's Figure 3, left)."
)
CLAIMS = ("fig-3a",)


def measure(points: int, samples: int, seed: int) -> Mapping[str, Any]:
    """The exact curve on 201 covariances, and estimates with standard errors at `points` of them."""
    from derivations.liao.gate import gate_table
    from derivations.liao.pairs import correlation_pairs

    table, k = gate_table("logistic", 1.0, 3), correlation_pairs(3).index((1, 3))
    rho = np.linspace(-1, 1, 201)
    series = np.polynomial.polynomial.polyval(rho**2, table.series[k])
    exact = table.shift[k] + series * rho ** table.odd[k]
    rng = np.random.default_rng(seed)
    at, mean, error = np.linspace(-1, 1, points), [], []
    for value in at:
        z1, other = rng.standard_normal((2, samples))
        p1, p2 = (1 / (1 + np.exp(-z)) for z in (z1, value * z1 + np.sqrt(1 - value**2) * other))
        first, second = p1 * (1 - p1), p2 * (1 - p2)
        product = first * second * (1 - 6 * second)
        mean.append(product.mean())
        error.append(product.std() / np.sqrt(samples))
    return {"rho": rho, "exact": exact, "at": at, "mean": mean, "error": error}


def needs(quick: bool = False) -> list[Table]:
    """One table; the paper's 1e5 samples at each of 21 covariances."""
    return [Table("gate-correlation", measure, {"points": 21, "samples": 10**4 if quick else 10**5, "seed": 0})]


def draw(stored: Sequence[Any]) -> Any:
    """A curve with error bars; the whole curve lies below zero."""
    from matplotlib.figure import Figure

    table = stored[0]
    figure = Figure(figsize=(4.6, 3.2), layout="constrained")
    axis = figure.subplots()
    axis.plot(table["rho"], table["exact"], color=COLOURS[0], label="exact series")
    label = f"Monte Carlo, {table.arguments['samples']:,} samples each, 2 s.e."
    axis.errorbar(table["at"], table["mean"], 2 * table["error"], fmt="o", ms=3, color=COLOURS[1], label=label)
    axis.set_xlabel("covariance of $z_1$ and $z_2$")
    axis.set_ylabel(r"$S_{13} = E\,\pi'(z_1)\,\pi'''(z_2)$")
    axis.legend(loc="lower center")
    return figure

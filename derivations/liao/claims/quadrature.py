"""Claim on the kernel: compiled flow and loss of two students, compared with a tensor quadrature in R^4."""

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.broken import break_measure, once
from derivations.claim import Claim
from derivations.laws import Vanishes
from derivations.liao.claims import tools
from derivations.liao.claims.tools import at

NODES = 40
"""Per axis; the logistic factors are integrated to 1e-10 at these overlaps (30 nodes differ by 1e-8)."""


@functools.cache
def rule() -> tuple[np.ndarray, np.ndarray]:
    """Return points (4, NODES^4) and weights of the tensor Gauss-Hermite rule for N(0, I_4)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    points = np.stack(np.meshgrid(*[nodes] * 4, indexing="ij")).reshape(4, -1)
    products = np.stack(np.meshgrid(*[weights / weights.sum()] * 4, indexing="ij")).prod(0).reshape(-1)
    keep = products > 1e-22  # the rest adds less than 1e-15 in all
    return points[:, keep], products[keep]


@functools.cache
def reference(seed: int) -> tuple[np.ndarray, float, np.ndarray]:
    """Return unit rows [v1, v2, w1, w2] (4, 4), loss, and d(Gram)/dt (4, 4) of two students without teacher.

    They are computed by quadrature.
    """
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(4, 4)) + 0.7 * rng.normal(size=4)  # a common part makes every overlap sizeable
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    points, weights = rule()
    fields = rows @ points
    gate, h = 1 / (1 + np.exp(-fields[:2])), fields[2:] ** 3 - 3 * fields[2:]
    output = (gate * h).sum(0)
    slopes = np.concatenate([gate * (1 - gate) * h, gate * 3 * (fields[2:] ** 2 - 1)])
    gradient = (weights * output * slopes) @ points.T
    moving = -(gradient - (gradient * rows).sum(1, keepdims=True) * rows)
    rate = moving @ rows.T
    return rows, float(0.5 * (weights * output**2).sum()), rate + rate.T


def discrepancy(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the largest difference of the compiled loss and overlap rates from the quadrature.

    The two students are random.
    """
    rows, loss, rate = reference(seed)
    start = tools.from_rows(rows, 2, 0)
    evaluator = lab.functions(start)
    found = evaluator.flow(start.state)
    differences = [
        abs(evaluator.loss(start.state) - loss),
        abs(found["I1"][0, 1] - rate[0, 1]),
        abs(found["I2"][0, 1] - rate[2, 3]),
        *np.abs(found["I3"] - rate[:2, 2:]).ravel(),
    ]
    return float(max(differences))


def without_repulsion(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return `discrepancy` with the opposite sign of the expert-expert rate."""
    rows, _, rate = reference(seed)
    start = tools.from_rows(rows, 2, 0)
    return float(abs(-lab.functions(start).flow(start.state)["I2"][0, 1] - rate[2, 3]))


CLAIMS = (
    Claim(
        id="own-8",
        statement="The compiled loss and flow of two students equal their definition as expectations, by quadrature.",
        source=at("Section 3, equations (1) to (3)"),
        measure=discrepancy,
        law=Vanishes(1e-8, refuted_above=1e-7, meaning="difference from quadrature"),
        sweep=once({}, seeds=3),
        control=break_measure(without_repulsion),
        rungs=(2, 3, 9),
    ),
)

"""Claims on auxiliary lemmas and the geometry of the data: couplings, separability, distances of inputs."""

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.broken import break_measure, grid, over
from derivations.claim import Variant
from derivations.laws import Bounded, Proven, Vanishes
from derivations.pmoe.claims.tools import claim, stream
from derivations.pmoe.separability import beta_star, margin, tilted


def convex(x: np.ndarray, knots: np.ndarray, jumps: np.ndarray, tilt: float) -> np.ndarray:
    """Convex function tilt x + sum_i jumps_i ReLU(x - knots_i), with jumps >= 0, at points x."""
    return tilt * x + (jumps * np.maximum(x[:, None] - knots, 0.0)).sum(axis=1)


def slope_range(knots: np.ndarray, jumps: np.ndarray, low: float, high: float) -> float:
    """Return the largest subgradient at `high` minus the smallest subgradient at `low`."""
    return float(jumps[knots <= high].sum() - jumps[knots < low].sum())


def convex_gap(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the smallest P(|psi - zeta| >= tau gap/512) over pairs of convex functions, x ~ U(-tau, tau).

    The gap is the slope range of psi on [-tau/2, tau/2] less that of zeta on [-tau, tau]; as printed, both are taken on
    [-tau/2, tau/2]. Pairs with a gap that is not positive do not count; the result is 1 if no pair counts.
    """
    tau, rng = 1.0, stream(seed, 61, lab)
    x = np.linspace(-tau, tau, 4001)  # 1/64 of it are 62 points
    wide = tau if point["zeta"] == "tau" else tau / 2
    pairs = [((np.array([tau / 2]), np.ones(1), 0.0), (np.array([tau / 2 + 1e-3]), np.ones(1), 0.0))]
    for _ in range(200):
        made = []
        for count in (4, 3):
            made.append((rng.uniform(-1.5, 1.5, count), rng.exponential(rng.choice([0.1, 1.0]), count), rng.normal()))
        pairs.append((made[0], made[1]))
    least = 1.0
    for psi, zeta in pairs:
        gap = slope_range(*psi[:2], -tau / 2, tau / 2) - slope_range(*zeta[:2], -wide, wide)
        if gap > 1e-9:
            apart = np.abs(convex(x, *psi) - convex(x, *zeta)) >= point.get("factor", 1.0) * tau * gap / 512
            least = min(least, float(apart.mean()))
    return least


def smooth_excess(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the largest excess of smooth coupling over its bound, over L^2 rho.

    The excess is g(sum h(w + xi)) - g(sum h(w)) - sum <df/dw, xi> - (L^3 m^2 rho^2 + L^2 r rho). Here h_i(w) = L sin(w
    + a_i) for i <= m - r (smooth) and L |w + a_i| for the others; g(u) = L u or L log cosh u. There are 150 draws for
    each of 40 choices of m, r, rho.
    """
    rng, worst = stream(seed, 62, lab), -math.inf
    L = point["L"]
    for group in range(40):
        m = int(rng.integers(1, 12)) if L >= 1 else int(point["m"])
        r = int(rng.integers(0, m + 1)) if L >= 1 else 0
        rho = float(10 ** rng.uniform(-3, 0))
        w, a = rng.uniform(-2, 2, (2, 150, m))
        xi = rho * rng.choice([-1.0, 1.0], (150, m))
        smooth = np.arange(m) < m - r
        before, after = (L * np.where(smooth, np.sin(u + a), np.abs(u + a)).sum(axis=1) for u in (w, w + xi))
        if group % 2:
            change, slope = L * (after - before), np.full(150, L)
        else:
            change = L * (np.logaddexp(after, -after) - np.logaddexp(before, -before))
            slope = L * np.tanh(before)
        first = slope * np.where(smooth, L * np.cos(w + a) * xi, 0.0).sum(axis=1)
        bound = point.get("factor", 1.0) * (L**3 * m**2 * rho**2 + L**2 * r * rho)
        worst = max(worst, float((change - first - bound).max()) / (L * L * rho))
    return worst


def separable(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return 0 if linear programming on the patch sums agrees with the criterion n - 1 < beta*, else 1.

    With `printed`, return 0 if there is no positive margin, else 1.
    """
    angle, n = point["angle"], point["n"]
    if angle is None:  # linearly independent patterns: l* = n, yet separable
        o, q = np.eye(6)[:2], np.eye(6)[2:4] * 0.8 + 0.6 * np.array([np.eye(6)[0], np.eye(6)[1]])
    else:
        o, q = tilted(angle)
    found = margin(o, q, n) > 1e-9
    if point.get("printed"):
        return float(found)
    return float(found != (n - 1 + point.get("shift", 0) < beta_star(o, q)))


def distances(lab: Any, point: Mapping[str, Any], seed: int) -> dict[str, float]:
    """Compare the smallest distance of two inputs of opposite class, found by brute force, with theory.

    Returns its difference from the exact form, and the violation of the lower bound.
    """
    rng = stream(seed, 63, lab)
    n, d = 2, 5
    x = rng.standard_normal((5, d))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    o, q = x[:2], x[2:]
    inputs = []
    for own in o:
        bags = [np.array(parts) for parts in itertools.product(q, repeat=n - 1)]
        inputs.append([np.insert(bag, at, own, axis=0) for bag in bags for at in range(n)])
    brute = min(np.linalg.norm(a - b) for a in inputs[0] for b in inputs[1])
    delta_d, delta_r = float(o[0] @ o[1]), float(np.abs(o @ q.T).max())
    exact = min(math.sqrt(2 * (1 - delta_d)), math.sqrt(4 - 2 * (o[0] @ q.T).max() - 2 * (o[1] @ q.T).max()))
    bound = min(math.sqrt(2 * (1 - delta_d)), 2 * math.sqrt(1 - delta_r))
    return {"exact": float(brute - exact * point.get("factor", 1.0)), "bound": float(max(bound - brute, 0.0))}


def distance_part(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the larger of two numbers: the deviation from the exact form, and the violation of the bound."""
    return max(map(abs, distances(lab, point, seed).values()))


CASES = (
    *({"angle": 0.05, "n": n} for n in (4, 12, 16)),
    *({"angle": 0.1, "n": n} for n in (7, 8, 9)),
    *({"angle": 0.3, "n": n} for n in (2, 3, 5)),
    *({"angle": None, "n": n} for n in (4, 32)),
)
CLAIMS = (
    claim(
        "lem-J.1",
        "Convex psi, zeta: if the slopes of psi range more on [-tau/2, tau/2] than those of zeta on [-tau, tau], by "
        "gap, then "
        "|psi - zeta| >= tau gap/512 with probability 1/64 under U(-tau, tau).",
        "Lemma J.1",
        convex_gap,
        Bounded(low=1 / 64, meaning="least probability"),
        grid(seeds=60),
        break_measure(lambda lab, point, seed: convex_gap(lab, {"zeta": "tau", "factor": 512.0}, seed)),
        rungs=(2, 9),
        variants=(
            Variant("corrected", {"zeta": "tau"}, expected="consistent"),
            Variant("printed", {"zeta": "tau/2"}, "The lemma with the slopes of zeta on [-tau/2, tau/2].", "refuted"),
        ),
        erratum="errata-18",
    ),
    claim(
        "lem-J.2",
        "Smooth coupling: g(sum h(w + xi)) - g(sum h(w)) <= sum <df/dw, xi> + L^3 m^2 rho^2 + L^2 r rho, for L m >= 1.",
        "Lemma J.2",
        smooth_excess,
        Bounded(high=1e-9, meaning="largest excess"),
        over("L", 1.0, 2.0, seeds=30),
        break_measure(lambda lab, point, seed: smooth_excess(lab, {**point, "factor": 0.05}, seed)),
        rungs=(2, 9),
        variants=(
            Variant("corrected", expected="consistent"),
            Variant(
                "printed",
                statement="The lemma without a condition on L m, measured at L m = 1/10.",
                expected="refuted",
                sweep={"quick": over("L", 0.1, m=1, seeds=2)},
            ),
        ),
        erratum="errata-19",
    ),
    claim(
        "lem-K.1",
        "The data are linearly separable if and only if n - 1 < beta* = min |b|_1/2 over sum b q = o1 - o2, sum "
        "b = 0 (ours, if every composition is possible).",
        "Lemma K.1",
        separable,
        Proven("the criterion"),
        grid(*CASES),
        break_measure(lambda lab, point, seed: separable(lab, {**point, "shift": 2}, seed)),
        rungs=(1, 9),
        variants=(
            Variant("corrected"),
            Variant(
                "printed",
                {"printed": True},
                "The data are not linearly separable as soon as l* > 1.",
                "refuted",
                sweep={"quick": grid({"angle": None, "n": 8}, {"angle": None, "n": 32})},
            ),
        ),
        erratum="errata-20",
    ),
    claim(
        "class-sep",
        "The distance of inputs of opposite classes is min(sqrt(2 (1 - delta_d)), sqrt(4 - 2 max <o1, q> - 2 max "
        "<o2, q>)) (ours). It is at least min(sqrt(2 (1 - delta_d)), 2 sqrt(1 - delta_r)), the bound of the "
        "paper.",
        "Section 4.1",
        distance_part,
        Vanishes(1e-9, 1e-6, "deviation of the exact form or violation of the bound"),
        grid(seeds=20),
        break_measure(lambda lab, point, seed: distance_part(lab, {"factor": 0.99}, seed)),
        rungs=(1, 9),
    ),
)

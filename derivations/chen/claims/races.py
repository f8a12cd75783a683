"""Races of overlaps inside an expert until T_1, by the closed form and in the exact flow (Lemmas E.3 to E.8, 5.2)."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.chen.nodes import moment
from derivations.chen.parameters import Parameters
from derivations.chen.reduced import closed_form

SIZE: dict[str, Any] = {"M": 4, "J": 4, "K": 4, "d": 8, "rho": 16.0}


def end_of_race(lab: Any, point: Mapping[str, Any], seed: int) -> dict[str, np.ndarray]:
    """The exact flow at T_1 = sqrt(sigma_0)."""
    s = point["sigma_0"]
    run = lab.integrate(seed=seed, until=math.sqrt(s), save_points=2, sigma_0=s, nodes=4, **SIZE)
    return {name: run[name][-1] for name in ("feat", "cen", "gcen", "gfeat")}


def rise_time(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """When an expert's gradient reaches sigma_0^1.8, by the closed form's clock, M = 8, J = 8, K = 4; over the law's
    prefactor where `ratio` is asked."""
    from scipy.optimize import brentq

    if point.get("flow"):
        return rise_in_flow(lab, point, seed)
    s, m, k = point["sigma_0"], 8, 4
    start = s * np.random.default_rng(seed).standard_normal((8, k))
    c = 3 * moment(Parameters(), "alpha", 3) / (2 * k * m**2)

    def excess(tau: float) -> float:
        return float(np.log(c * np.sqrt((closed_form(start, np.array([tau]))[0] ** 4).sum())) - 1.8 * np.log(s))

    tau = float(brentq(excess, 1e-3 * s, 1e3 * s**0.9, xtol=1e-4 * s))  # type: ignore[arg-type]
    return tau * math.sqrt(c) / s**0.9 if point.get("ratio") else tau


def rise_in_flow(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """In the exact flow: when the first expert's gradient reaches sigma_0^1.8, over the closed form's time, or
    (`cosine`) how far the winner's part of the gradient exceeds 1 - sigma_0^0.1 between then and T_1, at least."""
    from scipy.optimize import brentq

    s, m, k = point["sigma_0"], SIZE["M"], SIZE["K"]
    size = {"seed": seed, "sigma_0": s, "nodes": 4, **SIZE}
    start = lab.initial(**size).state["feat"][0]
    c = 3 * moment(Parameters(), "alpha", 3) / (2 * k * m**2)

    def excess(x: np.ndarray) -> float:
        return float(np.log(c * np.sqrt((x**4).sum())) - 1.8 * np.log(s))

    closed = float(
        brentq(lambda t: excess(closed_form(start, np.array([t]))[0]), 1e-3 * s, 1e3 * s**0.9, xtol=1e-4 * s)
    )  # type: ignore[arg-type]
    run = lab.integrate(until=2 * closed, save_points=201, **size)
    over = np.array([excess(x) for x in run["feat"][:, 0]])
    found = float(np.interp(0.0, over, run.time))
    if point["flow"] == "time":
        return found / closed
    late = lab.integrate(until=math.sqrt(s), save_points=41, **size)
    x = np.concatenate([run["feat"][run.time >= found, 0], late["feat"][late.time >= found, 0]])
    cosine = (x**2).max(axis=(1, 2)) / np.sqrt((x**4).sum(axis=(1, 2)))
    return float(cosine.min() - (1 - s**0.1))


def lead(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """|x* - tau| at T_1, the largest over the experts: by the closed form (J = 8, K = 4), or in the exact flow."""
    s = point["sigma_0"]
    tau = math.sqrt(s)
    if point.get("flow"):
        return float(np.abs(end_of_race(lab, point, seed)["feat"].max(axis=(1, 2)) - tau).max())
    rng = np.random.default_rng(seed)
    found = [closed_form(s * rng.standard_normal((8, 4)), np.array([tau]))[0].max() - tau for _ in range(8)]
    return float(np.abs(found).max())


def error_matrix(lab: Any, point: Mapping[str, Any], seed: int) -> dict[str, float]:
    """Errors at T_1, signals only, of 16 experts (closed form) or of those of the exact flow (`flow`).

    The mean on their own cluster, and the least on another one times 2 (K - 1), the lemma's 1/K with its constant.
    """
    s, k = point.get("sigma_0", 1e-8), point["K"]
    rng = np.random.default_rng([seed, lab.seed])
    if point.get("flow"):
        size = {"seed": seed, "sigma_0": s, "nodes": 4, "M": 4, "J": 8, "K": k, "d": 2 * k, "rho": 16.0}
        first, last = lab.integrate(until=math.sqrt(s), save_points=2, **size)["feat"]
    else:
        first = s * rng.standard_normal((16, 16, k))
        last = np.array([closed_form(x, np.array([math.sqrt(s)]))[0] for x in first])
    own, others = [], []
    for begun, feat in zip(first, last, strict=True):
        home = int(begun.max(axis=0).argmax())
        for cluster in range(k):
            noise = (cluster + rng.integers(1, k, 20_000)) % k
            alpha, gamma, sign = *rng.uniform(0.5, 2, (2, 20_000)), rng.choice([-1.0, 1.0], 20_000)
            cubes = (feat**3).sum(axis=0)
            margin = alpha**3 * cubes[cluster] + sign * gamma**3 * cubes[noise]
            (own if cluster == home else others).append(float((margin <= 0).mean()))
    return {"own": float(np.mean(own)), "others": float(min(others)) * 2 * (k - 1)}

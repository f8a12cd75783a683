"""Claims on the race of overlaps in the exact flow: rise of a gradient, dominance, errors elsewhere (E.7, 5.2)."""

import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.broken import break_measure, break_number, break_setting, over
from derivations.chen.claims.tools import claim
from derivations.chen.nodes import moment
from derivations.chen.parameters import Parameters
from derivations.chen.tiers.explore import closed_form
from derivations.claim import Grid, Variant
from derivations.laws import Bounded, Equals

SIZE: dict[str, Any] = {"M": 4, "J": 4, "K": 4, "d": 8, "rho": 16.0, "nodes": 4}


def excess(x: np.ndarray, sigma: float) -> float:
    """Return log of the gradient of an expert, (3 E[alpha^3]/(2 K M^2)) |x^2| (equation (E.5)), over sigma_0^1.8."""
    c = 3 * moment(Parameters(), "alpha", 3) / (2 * SIZE["K"] * SIZE["M"] ** 2)
    return float(np.log(c * np.sqrt((x**4).sum())) - 1.8 * np.log(sigma))


def risen(lab: Any, sigma: float, seed: int) -> tuple[float, float, Any]:
    """Return the rise time of the first expert in the exact flow, the rise time by the closed form, and the run.

    The rise time is the time at which the gradient of the first expert reaches sigma_0^1.8. The run is saved at the
    start, around that time, and from then to T_1.
    """
    from scipy.optimize import brentq

    start = lab.initial(seed=seed, sigma_0=sigma, **SIZE).state["feat"][0]

    def late(t: float) -> float:
        return excess(closed_form(start, np.array([t]))[0], sigma)

    closed = float(brentq(late, 1e-3 * sigma, 1e3 * sigma**0.9, xtol=1e-4 * sigma))  # type: ignore[arg-type]
    near = closed * np.linspace(0.8, 1.2, 21)  # a saved state costs as much as five evaluations
    times = [0.0, *near, *np.geomspace(near[-1], math.sqrt(sigma), 12)[1:]]
    run = lab.integrate(seed=seed, sigma_0=sigma, save_at=times, **SIZE)
    over_it = np.array([excess(x, sigma) for x in run["feat"][:, 0]])
    return float(np.interp(0.0, over_it, run.time)), closed, run


def rise(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the rise time in the flow over the rise time by the closed form."""
    found, closed, _ = risen(lab, point["sigma_0"], seed)
    return found / closed


def dominance(lab: Any, point: Mapping[str, Any], seed: int, early: float = 1.0) -> float:
    """Return the smallest share of the winner in the norm of the gradient, less 1 - sigma_0^0.1.

    The minimum is over times from the rise of the gradient to T_1. `early` multiplies the first of these times
    (control).
    """
    s = point["sigma_0"]
    found, _, run = risen(lab, s, seed)
    x = run["feat"][run.time >= early * found, 0]
    part = (x**2).max(axis=(1, 2)) / np.sqrt((x**4).sum(axis=(1, 2)))
    return float(part.min() - (1 - s**0.1))


def wrong_elsewhere(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the error on other clusters if the feature noise is the own feature of the expert against y.

    It is the mean over 64 experts and the other clusters, at T_1, with signals only. This event has the probability
    1/(2 (K - 1)), so that the error elsewhere is Omega(1/K). With `third` the feature noise is that of a third cluster
    (control).
    """
    s, k = 1e-8, int(point["K"])
    rng, found = np.random.default_rng([seed, lab.seed, 9]), []
    for _ in range(64):
        start = s * rng.standard_normal((16, k))
        cubes = (closed_form(start, np.array([math.sqrt(s)]))[0] ** 3).sum(axis=0)
        home = int(start.max(axis=0).argmax())
        for cluster in set(range(k)) - {home}:
            alpha, gamma = rng.uniform(0.5, 2, (2, 2000))
            noise = min(set(range(k)) - {home, cluster}) if point.get("third") else home
            found.append(float((alpha**3 * cubes[cluster] <= gamma**3 * cubes[noise]).mean()))
    return float(np.mean(found))


SIZES = over("sigma_0", 1e-5, 1e-4, 1e-3, seeds=20)
CLAIMS = (
    claim(
        "lem-E.7-flow",
        "In the exact flow the gradient reaches sigma_0^1.8 at the time of the closed form in lem-E.7.",
        "Lemma E.7",
        rise,
        Equals(1.0, absolute=0.02, meaning="time in the flow over that of the closed form"),
        Grid(SIZES.points, 6),
        break_number(),
        rungs=(4, 8, 9),
    ),
    claim(
        "lem-E.7-winner",
        "From the time at which the gradient reaches sigma_0^1.8 until T_1, the winning feature has at least a "
        "part 1 - sigma_0^0.1 of the norm of the gradient of its expert.",
        "Lemma E.7",
        dominance,
        Bounded(low=0.0, visible=0.05, meaning="part less 1 - sigma_0^0.1", because="a tenth of it"),
        SIZES,
        break_measure(functools.partial(dominance, early=0.0)),
        rungs=(4, 8, 9),
        variants=(Variant("main", expected="consistent"),),
    ),
    claim(
        "lem-5.2-event",
        "An expert is wrong on another cluster if the feature noise is its own feature with the wrong sign. This "
        "has the probability 1/(2 (K - 1)), so the error on other clusters is Omega(1/K).",
        "Lemma 5.2",
        wrong_elsewhere,
        Equals(1.0, absolute=0.02, meaning="P(wrong | that event)", because="1 - 1/d at d = 50"),
        over("K", 3, 4, 6, 8, 12, seeds=6),
        break_setting(third=True),
        rungs=(8, 9),
    ),
)

"""Finite-sample SGD (compressed, exact in law): sample complexity, the critical step size, noise and its limits."""

import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.broken import break_law, break_measure, once
from derivations.claim import Claim, Grid
from derivations.kawata import model
from derivations.kawata.claims.phase3 import nu_growth
from derivations.kawata.claims.tools import at, neuron, rng_of
from derivations.kawata.finite_step import recovery_chance
from derivations.kawata.initial import full_gram, root
from derivations.laws import Bounded, Equals, Power, Vanishes
from derivations.scaling import Form

CUBIC = dict(C=1, k_star=3, activation="polynomial", sigma=(0.0, 0.0, 0.0, 1.0), rho=0.0, s=(0.0,))
"""Student and teacher h_3, one cluster."""


def chains(lab: Any, seed: int, x: float, d: int, a: float, until: float, replicas: int, **request: Any) -> Any:
    """Replicas of SGD from kappa = x/sqrt(d) with step a d^{-3/2}, until steps/d^2 = `until`."""
    step = a * d**-1.5
    arrays = neuron([x * d**-0.5])
    return lab.simulate(
        method="compressed", step_size=step, batch=1, seeds=replicas, seed=seed, initial=arrays, d=d,
        until=step * max(1, round(until * d**2)), save_points=request.pop("save_points", 300), **CUBIC, **request,
    )  # fmt: skip


def samples_needed(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """The median over replicas of the number of samples to the blow-up of the leading order, from kappa = 2 d^{-1/2}.

    That is the number until kappa = .5 and the 2/(3 h) which kappa' = 3 kappa^2 takes from there: without it the
    threshold would shorten small dimensions more than large ones.  Infinite where most replicas miss it.  The seeds of
    the sweep are groups of replicas, so that the exponent has an interval.
    """
    d = point["d"]
    run = chains(lab, seed, 2.0, d, 0.1, 3.2, 5 if lab.effort == "quick" else 10)
    return float((np.median(run["T_kappa"][:, 0, 0]) + 2 / 3) / (0.1 * d**-1.5))


def slowed_by_experts(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """The same in flow time for M experts: a routed sample moves a neuron with 1/M, and one in M is routed to it."""
    M, d = point["M"], 40
    step = 0.1 * d**-1.5
    run = lab.simulate(method="compressed", step_size=step, batch=1, seeds=12, seed=seed, M=M, d=d, save_points=200,
                       initial=neuron([2 * d**-0.5]), until=step * 4 * d**2 * M**2, **CUBIC)  # fmt: skip
    return float(np.median(run["T_kappa"][:, 0, 0]))


def success(lab: Any, point: Mapping[str, Any], seed: int, d: int) -> float:
    """The share of replicas at kappa >= .5 by s = steps/d^2 = 1.2/a."""
    a = point["a"]
    run = chains(lab, seed, 2.0, d, a, 1.0 / a, 48, save_points=50)
    return float(np.isfinite(run["T_kappa"][:, 0, 0]).mean())


def collapse(lab: Any, point: Mapping[str, Any], seed: int, scale: float = 1.0) -> float:
    """|success at d = 24 - success at d = 64| at one a = h d^{k/2}."""
    return abs(success(lab, point, seed, 24) - success(lab, {**point, "a": scale * point["a"]}, seed, 64))


def against_diffusion(lab: Any, point: Mapping[str, Any], seed: int, F: float = 3.0) -> float:
    """Success of SGD at d = 48 minus that of the critical equation (S = E[h_3^2 Z^2] E[h_3'^2] = 21, F = 3)."""
    a = point["a"]
    run = chains(lab, seed, 2.0, 48, a, 0.5 / a, 192, save_points=50)
    found = float(np.isfinite(run["T_kappa"][:, 0, 0]).mean())
    return found - recovery_chance(a, 2.0, 3, 1.0, F, 21.0, 0.5 / a, 4000, rng_of(lab, seed))


def stationary(lab: Any, point: Mapping[str, Any], seed: int, factor: float = 1.0) -> float:
    """The mean of 1 - kappa in the stationary state over h D/(4 c) = 93 h (d - 1)/12."""
    d, h = point["d"], point["h"]
    run = lab.simulate(method="compressed", step_size=h, batch=1, seeds=8, seed=seed, d=d, initial=neuron([0.97]),
                       until=h * 60_000, save_points=200, **CUBIC)  # fmt: skip
    return float((1 - run["kappa"][:, 60:, 0, 0]).mean() / (factor * h * (d - 1) * 93 / 12))


def noise_of_mean(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """The standard deviation of nu after d^{k-1} steps of size .2 d^{-k/2}, k = 3, from zero overlap."""
    d = point["d"]
    step = 0.2 * d**-1.5
    request = {**CUBIC, "rho": 1.0}
    run = lab.simulate(method="compressed", step_size=step, batch=1, seeds=96, seed=seed, d=d, initial=neuron([0.0]),
                       until=step * d**2, save_points=3, **request)  # fmt: skip
    return float(run["nu"][:, -1, 0, 0].std())


def contraction(lab: Any, point: Mapping[str, Any], seed: int, factor: float = 1.0) -> float:
    """E|g|^2 / (d F), g the one-sample spherical gradient, F = E[y^2 sigma'^2], ReLU with bias -1, C = 2."""
    rng, d = rng_of(lab, seed), point["d"]
    start = lab.initial(C=2, k_star=3, d=d, neurons=1, bias=(-1.0,), seed=seed)
    p, c = start.parameters, start.constants
    gram = full_gram(start.state, c)
    args: Any = (*model.numbers(p, gram), c["a"], c["b"], c["sigma"])
    frame, top, bottom = root(gram), 0.0, 0.0
    n = 100_000
    labels = model.draw(rng.random((2, n)), rng.standard_normal((1, n)), *args)
    y = rng.standard_normal((frame.shape[1], n)) + frame[1:].T @ model.mean(labels, *args)
    fields = frame @ y
    coef = model.coefficients(fields, labels, *args)[0]
    top = float((coef**2 * ((y**2).sum(axis=0) + d - len(frame) - fields[0] ** 2)).mean())
    bottom = float((coef**2).mean())
    return top / (factor * d * bottom)


def sandwich(lab: Any, point: Mapping[str, Any], seed: int, slack: float = 0.2) -> float:
    """The share of replicas whose winner stays above P+ = P + (1 - slack) K P^{k-1}, P_0 = (1 - slack) kappa_0, to
    .3.
    """
    d, a, x = 40, 0.02, 2.5
    run = chains(lab, seed, x, d, a, 0.45 / a, 24, save_points=100)
    step = a * d**-1.5
    kappa = run["kappa"][:, :, 0, 0]
    P, bound, at_step = (1 - slack) * x * d**-0.5, [], 0
    for target in run.step:
        for _ in range(int(target) - at_step):
            P = min(P + (1 - slack) * 3 * step * P**2, 0.3)
        at_step = int(target)
        bound.append(P)
    return float((np.maximum.accumulate(kappa, axis=1) >= np.array(bound)).all(axis=1).mean())


def finite_step(lab: Any, point: Mapping[str, Any], seed: int, factor: float = 1.0) -> float:
    """z-score of the mean one-step change of |w|-contraction: E[1/sqrt(1 + h^2 |g|^2)] - 1 against -h^2 D/2, h^2 d
    <= 1e-4.
    """
    rng, d = rng_of(lab, seed), 50
    h = math.sqrt(1e-6 / d)
    n = 400_000
    x = rng.standard_normal((2, n))
    kappa = 0.2
    t, u = x[0], kappa * x[0] + math.sqrt(1 - kappa**2) * x[1]
    he = np.polynomial.hermite_e.hermeval(u, [0, 0, 0, 1]) / math.sqrt(6)
    slope = np.polynomial.hermite_e.hermeval(t, [0, 0, 1]) * 3 / math.sqrt(6)
    square = (he * slope) ** 2 * (x[1] ** 2 + rng.chisquare(d - 2, n))
    change = 1 / np.sqrt(1 + h * h * square) - 1
    expected = -factor * h * h / 2 * square
    return float(abs(change.mean() / expected.mean() - 1))


SIZES = {
    "quick": Grid(tuple({"d": d} for d in (30, 60, 120, 300)), 4),
    "full": Grid(tuple({"d": d} for d in (30, 100, 300, 1000, 3000)), 6),
}
CLAIMS = (
    Claim(
        "weak-time", "SGD at step a d^{-k/2} needs d^{k-1} samples for weak recovery (k = 3, student = teacher = h_3).",
        at("Lemma 4.9"), samples_needed,
        Power(2.0, margin=0.1, rivals=(Form("d^1.5", exponent=1.5), Form("d^2.5", exponent=2.5)), meaning="samples"),
        SIZES, break_law(exponent=1.5), (7, 8, 9),
    ),
    Claim(
        "M-scaling", "M experts slow Phase I by M^2: one sample in M is routed to a neuron, with weight 1/M.",
        at("Lemma 4.9"), slowed_by_experts,
        Power(2.0, over="M", margin=0.12, rivals=(Form("M", exponent=1.0),), meaning="time"),
        {"quick": Grid(tuple({"M": m} for m in (1, 2, 4)), 2)}, break_law(exponent=1.0), (7, 8, 9),
    ),
    Claim(
        "crit-step", "The chance of recovery depends on step size and dimension through a = h d^{k/2}.",
        at("Lemma C.7 (ours)"), collapse, Bounded(high=0.2, meaning="difference of success between d = 24 and 64"),
        once({"a": 0.25}, {"a": 1.0}), break_measure(functools.partial(collapse, scale=8.0)), (7, 9),
    ),
    Claim(
        "crit-sde", "At h = a d^{-k/2} the overlap follows an equation with contraction (a^2/2) F X and "
                    "diffusion a^2 S.",
        at("Lemma C.7 (ours)"), against_diffusion, Vanishes(0.12, refuted_above=0.15, meaning="difference of success"),
        once({"a": 0.25}, {"a": 0.5}), break_measure(functools.partial(against_diffusion, F=60.0)), (7, 9),
    ),
    Claim(
        "stationary", "At a constant step the error at strong recovery is h D/(4c): it needs h ~ eps/d, not eps^2.",
        at("Lemma C.26 (ours)"), stationary, Equals(1.0, relative=0.15, meaning="1 - kappa over h D/(4c)"),
        once({"d": 32, "h": 1e-4}, {"d": 64, "h": 1e-4}, seeds=2), break_law(value=2.0), (7, 9), erratum="errata-13",
    ),
    Claim(
        "lem-C.8", "The martingale part of nu is O(d^{-1/2}) after d^{k-1} steps of size d^{-k/2}.", at("Lemma C.8"),
        noise_of_mean, Power(-0.5, margin=0.1, meaning="standard deviation of nu"),
        {"quick": Grid(tuple({"d": d} for d in (16, 40, 100)), 3)}, break_law(exponent=0.0), (7, 8, 9),
    ),
    Claim(
        "lem-C.7-noise", "The contraction is (h^2/2) D with D = d F (1 + O(1/d)).", at("Lemma C.7"), contraction,
        Equals(1.0, relative=0.06, meaning="E|g|^2 / (d F)"), once({"d": 200}, {"d": 2000}),
        break_measure(functools.partial(contraction, factor=2.0)), (2, 9),
    ),
    Claim(
        "lem-C.7-step", "One step shrinks overlaps by (h^2/2) E|g|^2 to leading order, at h^2 d = 1e-6.",
        at("Lemma C.7"), finite_step, Vanishes(0.03, refuted_above=0.2, meaning="relative difference"), once(seeds=2),
        break_measure(functools.partial(finite_step, factor=2.0)), (2, 9),
    ),
    Claim(
        "lem-C.9", "The mean of a growing neuron moves in the direction of "
                   "alpha_{k+1} beta.", at("Lemma C.9"), nu_growth,
        Vanishes(0.01, refuted_above=0.1, meaning="share of wrong signs"), once(),
        break_measure(functools.partial(nu_growth, sign=-1.0)), (2, 9),
    ),
    Claim(
        "lem-C.12", "The winner stays above P+ = P + (1 - a_2) K P^{k-1} (a_2 = "
                    ".2), k = 3.", at("Lemma C.12"), sandwich,
        Bounded(low=0.9, margin=0.1, meaning="share of replicas"), once(seeds=2),
        break_measure(functools.partial(sandwich, slack=-0.6)), (7, 9), erratum="errata-11",
    ),
    Claim(
        "lem-C.13", "By induction the bound holds up to weak recovery.", at("Lemma C.13"), sandwich,
        Bounded(low=0.9, margin=0.1, meaning="share of replicas"), once(),
        break_measure(functools.partial(sandwich, slack=-0.6)), (7, 9),
    ),
)  # fmt: skip

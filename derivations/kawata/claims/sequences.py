"""Claims on discrete comparison lemmas, exact enumerations and exponents of the proofs."""

import functools
import itertools
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from derivations.broken import break_law, break_measure, once
from derivations.claim import Claim, Variant
from derivations.kawata.claims.tools import at, coefficient, orthonormal, rng_of
from derivations.laws import Bounded, Equals, Proven, Vanishes


def bihari(lab: Any, point: Mapping[str, Any], seed: int, exponent: int = 0) -> float:
    """Return the largest relative violation of the lower and upper bound of A_t while A_s <= 1.

    It is max over t of (lower bound - A_t)/A_t and (A_t - upper bound)/A_t, for A_{t+1} = A_t + B A_t^{k-1}. The
    printed pair uses the expression without (1+B) as the lower bound, the corrected pair uses it as the upper bound.
    """
    rng = rng_of(lab, seed)
    k, B = int(rng.integers(3, 8)), float(rng.uniform(0.01, 0.3))
    value = first = float(rng.uniform(0.05, 0.5))
    worst = -math.inf

    def bound(t: int, factor: float) -> float:
        inside = 1 - B * factor * (k - 2) * first ** (k - 2) * t
        return first * inside ** (-1 / (k - 2)) if inside > 0 else math.inf

    shrink = (1 + B) ** (-(k - 1) + exponent)
    for t in range(1, 4000):
        before, value = value, value + B * value ** (k - 1)
        if before > 1 or not math.isfinite(value):
            break
        lower, upper = (1.0, 1 / shrink) if point["form"] == "printed" else (shrink, 1.0)
        if math.isfinite(bound(t, lower)):
            worst = max(worst, (bound(t, lower) - value) / value)
        worst = max(worst, (value - bound(t, upper)) / value)
    return worst


def amplification(lab: Any, point: Mapping[str, Any], seed: int, power: int = 2) -> float:
    """Return the second sequence over its bound, when the first sequence is at 1.

    The bound is lambda A_0 (1 - (1+B)^{k-1} lambda^{k-2})^{-1/(k-2)}.
    """
    k, ratio, B = point["k"], point["ratio"], 1e-3
    start = {3: 0.02, 4: 0.1, 6: 0.3}[k]  # the number of steps to order one grows like start^{-(k-2)}
    first, second = start, start * ratio
    while first < 1:
        first, second = first + B * first ** (k - 1), second + B * second ** (k - 1)
    bound = start * ratio * (1 - (1 + B) ** (k - 1) * ratio ** (k - power)) ** (-1 / (k - 2))
    return second / bound


def positive_share(lab: Any, point: Mapping[str, Any], seed: int, reach: float = 1.0) -> float:
    """Return P(all ReLU coefficients of degrees k..p positive) minus its bound, for b uniform, by exact roots.

    The bound is (1 - z_max/C_b)/2.
    """
    k, p = point["k"], point["p"]
    roots = sorted({float(r) for i in range(k, p + 1) for r in _hermite_roots(i - 2)})
    largest = float(max(_hermite_roots(p - 2)))
    C_b = reach * point["reach"] * largest
    edges = [-C_b, *[r for r in roots if abs(r) < C_b], C_b]
    good = 0.0
    for low, high in itertools.pairwise(edges):
        middle = (low + high) / 2
        if all(float(coefficient("relu", i, middle)) > 0 for i in range(k, p + 1)):
            good += high - low
    return good / (2 * C_b) - (1 - largest / (point["reach"] * largest)) / 2


def _hermite_roots(n: int) -> np.ndarray:
    return np.polynomial.hermite_e.hermeroots([0] * n + [1]).real if n > 0 else np.array([])


def sign_patterns(lab: Any, point: Mapping[str, Any], seed: int, low: int = 0) -> float:
    """Return 1 if each sign pattern of (alpha_k..alpha_p) at b = 0 has exactly one choice of eps = +-1, else 0."""
    k, p = point["k"], point["p"]
    found: dict[tuple[float, ...], int] = {}
    for eps in itertools.product((-1.0, 1.0), repeat=p - k + 1):
        series = (0.0,) * k + eps
        signs = tuple(float(np.sign(coefficient("polynomial", i, 0.0, series))) for i in range(k + low, p + 1))
        found[signs] = found.get(signs, 0) + 1
    patterns = 2 ** (p - k + 1)
    return 1.0 if len(found) == patterns and set(found.values()) == {1} else 0.0


def learnable(lab: Any, point: Mapping[str, Any], seed: int, both: bool = True) -> float:
    """Return 1 if C_j = {c: alpha_k beta_c > 0} is empty or full although both signs of beta are present, else 0."""
    rng = rng_of(lab, seed)
    beta = rng.choice([-1.0, 1.0], 5)
    if both:
        beta[:2] = (1.0, -1.0)
    alpha = float(rng.choice([-1.0, 1.0])) * rng.uniform(0.5, 1, 5)
    size = int((alpha * beta > 0).sum())
    return float(size in (0, 5))


def bootstrap_rounds(lab: Any, point: Mapping[str, Any], seed: int, shift: int = 0) -> float:
    """Return 0 if two statements on the bootstrap hold exactly, else 1.

    They are A_l - 1/4 = ((k-2)/k)^l / 4, and that 1/4 + 1/(8k) is reached in ceil(ln(1/2k)/ln(1-2/k)) rounds.
    """
    k = point["k"]
    value, rounds = Fraction(1, 2), 0
    exact = True
    while value > Fraction(1, 4) + Fraction(1, 8 * k):
        value = Fraction(k - 2, k) * value + Fraction(1, 2 * k)
        rounds += 1
        exact &= value - Fraction(1, 4) == Fraction(k - 2, k) ** rounds / 4
    predicted = math.ceil(math.log(1 / (2 * k)) / math.log(1 - 2 / k)) + shift
    return float(not exact or rounds != predicted)


def blocker(lab: Any, point: Mapping[str, Any], seed: int, least: int = 5) -> float:
    """Return 0 if (k-2)(1/2 - 1/(6k)) > k(1/4 + 1/(8k)) holds exactly for k >= 5, else 1."""
    k = Fraction(point["k"])
    left = (k - 2) * (Fraction(1, 2) - 1 / (6 * k))
    right = k * (Fraction(1, 4) + 1 / (8 * k))
    return float((left > right) != (k >= least))


def gate_sum(lab: Any, point: Mapping[str, Any], seed: int, weight: float = 1.0) -> float:
    """Return |sum_m grad theta_m| over its largest term, for one sample and softmax top-1 gates of any size."""
    rng = rng_of(lab, seed)
    M, d = 7, 12
    theta, x, f = rng.normal(size=(M, d)), rng.normal(size=d), rng.normal(size=M)
    pi = np.exp(theta @ x - (theta @ x).max())
    pi /= pi.sum()
    k = int(np.argmax(theta @ x))
    gradients = (pi[k] * f[k] * (weight * (np.arange(M) == k) - pi))[:, None] * x
    return float(np.abs(gradients.sum(axis=0)).max() / np.abs(gradients).max())


def cross_check(lab: Any, point: Mapping[str, Any], seed: int, power: int = 1) -> float:
    """Return the largest error of the finite sum for the moment E[h_i(u.z) h_j(w.z) 1(g.z >= -tau)].

    i, j <= 3; the reference is quadrature.
    """
    tau, r_ut, r_ug, r_tg = 0.4, 0.3, -0.2, 0.5
    gram = np.array([[1, r_ug, r_tg], [r_ug, 1, r_ut], [r_tg, r_ut, 1]])
    root = np.linalg.cholesky(gram)
    x, w = np.polynomial.legendre.leggauss(120)
    g = (x + 1) / 2 * (12 + tau) - tau
    wg = w * (12 + tau) / 2 * np.exp(-g * g / 2) / math.sqrt(2 * math.pi)
    y, v = np.polynomial.hermite_e.hermegauss(12)
    v = v / v.sum()
    G, a, b = np.meshgrid(g, y, y, indexing="ij")
    weight = wg[:, None, None] * v[None, :, None] * v[None, None, :]
    u = root[1, 0] * G + root[1, 1] * a
    t = root[2, 0] * G + root[2, 1] * a + root[2, 2] * b
    worst = 0.0
    for i, j in itertools.product(range(1, 4), repeat=2):
        exact = float((weight * orthonormal(i, u) * orthonormal(j, t)).sum())
        found = sum(_psi(n, tau) * _triple(i, j, n, r_ut, r_ug, r_tg) for n in range(i + j + power))
        worst = max(worst, abs(found - exact))
    return worst


def _psi(n: int, tau: float) -> float:
    """Return E[1(Z >= -tau) h_n(Z)]."""
    if n == 0:
        return 0.5 * math.erfc(-tau / math.sqrt(2))
    density = math.exp(-tau * tau / 2) / math.sqrt(2 * math.pi)
    return (-1.0) ** (n - 1) * float(orthonormal(n - 1, tau)) * density / math.sqrt(n)


def _triple(i: int, j: int, n: int, r_ut: float, r_ug: float, r_tg: float) -> float:
    """Return E[h_i h_j h_n] of three correlated normal numbers."""
    if (i + j + n) % 2 or max(i, j, n) > (i + j + n) // 2:
        return 0.0
    n1, n2, n3 = (i + j - n) // 2, (i + n - j) // 2, (j + n - i) // 2
    size = math.sqrt(math.factorial(i) * math.factorial(j) * math.factorial(n))
    return size / math.prod(map(math.factorial, (n1, n2, n3))) * r_ut**n1 * r_ug**n2 * r_tg**n3


KS = tuple({"k": k} for k in (4, 5, 6, 8, 10, 12))
CLAIMS = (
    Claim(
        "lem-A.4", "A sequence A + B A^{k-1} lies between two explicit blow-up curves while it is at most 1.",
        at("Lemma A.4"), bihari,
        Bounded(high=0.0, margin=1e-9, meaning="violation of the bounds"), once(seeds=60),
        break_measure(functools.partial(bihari, exponent=2)), (2, 9),
        variants=(
            Variant("printed", {"form": "printed"}, "The uncorrected expression is the lower bound.", "refuted"),
            Variant("corrected", {"form": "corrected"}, "The uncorrected expression is the upper bound, and the "
                                                        "lower bound has the factor (1+B)^{-(k-1)}.",
                    "consistent"),
        ),
        control_variant="corrected", erratum="errata-1",
    ),
    Claim(
        "lem-A.4-sep", "When the faster of two sequences reaches order one, the slower sequence has grown by a "
                       "bounded factor.",
        at("Lemma A.4"), amplification, Bounded(high=1.0 + 1e-9, meaning="second sequence over its bound"),
        once(*({"k": k, "ratio": r} for k, r in itertools.product((3, 4, 6), (0.5, 0.8, 0.95)))),
        break_law(high=0.9), (2, 9),
    ),
    Claim(
        "lem-A.5", "P(all ReLU coefficients of degrees k..p are positive) >= 1/4 for biases of range C_b >= 2 z_max.",
        at("Lemma A.5"), positive_share,
        Bounded(low=-1e-9, visible=1e-8, because="rounding", meaning="probability minus (1 - z_max/C_b)/2"),
        once(*({"k": k, "p": p, "reach": r} for k, p in ((3, 5), (4, 6), (4, 8), (3, 10), (4, 5)) for r in (2, 4, 10))),
        break_measure(functools.partial(positive_share, reach=0.8)), (2, 9),
    ),
    Claim(
        "lem-A.6", "A random-sign polynomial activation has every sign pattern of coefficients with probability "
        "2^{-(p-k+1)} at b = 0.", at("Lemma A.6"), sign_patterns,
        Equals(1.0, absolute=1e-9, error=1e-12, meaning="even patterns"),
        once({"k": 3, "p": 6}, {"k": 4, "p": 8}), break_measure(functools.partial(sign_patterns, low=1)), (1, 9),
    ),
    Claim(
        "lem-B.7", "With both signs among the beta_c and equal signs of alpha_{k,c}, C_j is neither empty nor full.",
        at("Lemma B.7"), learnable, Proven("C_j is a proper subset:"), once(seeds=60),
        break_measure(functools.partial(learnable, both=False)), (1, 9),
        (Variant("main", identity="the measurement draws both signs of beta and one of alpha"),),
    ),
    Claim(
        "def-B.8", "C_j = {c: alpha_{k,c} beta_{c,k} > 0} is neither empty nor full (the measurement of lem-B.7).",
        at("Definition B.8"), learnable, Proven("C_j is a proper subset:"), once(seeds=60),
        break_measure(functools.partial(learnable, both=False)), (1, 9),
        (Variant("main", identity="the measurement draws both signs of beta and one of alpha"),),
    ),
    Claim(
        "lem-B.13-rec", "The recursion A_{l+1} = (k-2)/k A_l + 1/(2k) with the initial value 1/2 falls "
                        "geometrically to 1/4.", at("Lemma B.13"),
        bootstrap_rounds, Proven("the closed form and the number of rounds"), once(*KS),
        break_measure(functools.partial(bootstrap_rounds, shift=1)), (1, 9),
    ),
    Claim(
        "lem-B.15-exp", "The blocking term dominates at kappa = d^{-1/4-1/(8k)} if and only if k >= 5.",
        at("Lemma B.15"),
        blocker, Proven("the inequality of exponents, with its sign corrected,"), once({"k": 3}, *KS),
        break_measure(functools.partial(blocker, least=4)), (1, 9), erratum="errata-11",
    ),
    Claim(
        "lem-C.16", "The gate's gradients of one sample add up to zero (an identity of the softmax).", at("Lemma C.16"),
        gate_sum, Vanishes(1e-13),
        once(seeds=10), break_measure(functools.partial(gate_sum, weight=1.001)), (1, 9),
        (Variant("main", identity="the derivatives of a softmax add up to zero, and the measurement uses our own "
                                  "formula of the gradient"),),
    ),
    Claim(
        "triple", "E[h_i(u.z) h_j(w.z) 1(g.z >= -tau)] is a finite sum of triple moments (Phase III with a gate).",
        at("Section 4.3 (ours)"), cross_check, Vanishes(1e-10), once(),
        break_measure(functools.partial(cross_check, power=-1)), (2, 9),
    ),
)  # fmt: skip

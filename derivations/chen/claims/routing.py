"""Claims on routing probabilities: exactness, smoothness, starvation; comparison with softmax; coupon collecting."""

import functools
import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.broken import break_measure, break_setting, grid, over
from derivations.chen import route
from derivations.chen.claims.smoothness import (
    NOISES,
    any_noise,
    chosen_gate,
    gate_spread,
    narrow,
    per_square,
    softmax,
    spread,
    steepness,
)
from derivations.chen.claims.tools import claim
from derivations.claim import Variant
from derivations.laws import Agrees, All, Bounded, Proven, Vanishes
from derivations.laws.agreement import score

SHARP = "improvement-1"
SIZES = tuple({"M": m} for m in (2, 4, 8))


def exactness(lab: Any, point: Mapping[str, Any], seed: int, law: Any = route.probabilities) -> dict[str, Any]:
    """Return three tests of the routing probabilities p.

    They are the sum of p minus one, the Jacobian against central differences, and p against the shares of 1e6 draws.
    """
    rng = np.random.default_rng(seed + 10_007 * lab.seed)
    h = rng.uniform(-0.7, 0.7, point["M"])
    p, draws, step = law(h), 10**6, 1e-5
    counts = np.zeros(h.size)
    for _ in range(10):
        noisy = h + rng.random((draws // 10, h.size))
        counts += np.bincount(noisy.argmax(axis=1), minlength=h.size)
    numeric = np.array([(law(h + step * e) - law(h - step * e)) / (2 * step) for e in np.eye(h.size)]).T
    return {
        "sum": float(abs(p.sum() - 1)),
        "slope": float(np.abs(numeric - route.jacobian(h)).max()),
        "draws": score(counts / draws, np.sqrt(np.maximum(p * (1 - p), 1e-12) / draws), p),
    }


def starved(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return 0 if experts starve exactly at a gap of 1 in the logits, else 1.

    An expert 1 or more below the largest logit must have probability 0, and an expert 0.8 below must not.
    """
    rng = np.random.default_rng(seed)
    for _ in range(50):
        h = rng.uniform(-0.3, 0.3, point["M"])
        out, inside = h.copy(), h.copy()
        out[0] = h[1:].max() - 1 - 0.5 * rng.random()
        inside[0] = h[1:].max() - 1 + 0.2
        if route.probabilities(out)[0] != 0 or route.probabilities(inside)[0] <= 0:
            return 1.0
    return 0.0


def starved_early(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return 0 if an expert 0.9 below the largest logit has probability 0, else 1: the noise still reaches it."""
    h = np.zeros(point["M"])
    h[0] = -0.9
    return float(route.probabilities(h)[0] != 0)


def coverage(lab: Any, point: Mapping[str, Any], seed: int, exact: Any = None) -> dict[str, Any]:
    """Test the probability that all K groups are nonempty.

    Returns the comparison of 2e5 draws with inclusion-exclusion, and the bound of the paper less this probability.
    """
    k, m = point["K"], point["M"]
    rng = np.random.default_rng(seed + 10_007 * lab.seed)
    draws = rng.integers(k, size=(200_000, m))
    hit = np.ones(200_000, bool)
    for feature in range(k):
        hit &= (draws == feature).any(axis=1)
    chance = (exact or covered)(k, m)
    error = math.sqrt(max(chance * (1 - chance), 1e-9) / 200_000)
    return {"draws": score(hit.mean(), error, chance), "bound": 1 - k * (1 - 1 / k) ** m - chance}


def covered(k: int, m: int) -> float:
    """Return sum_i (-1)^i C(K, i) (1 - i/K)^M."""
    return sum((-1) ** i * math.comb(k, i) * (1 - i / k) ** m for i in range(k + 1))


def near_ties(lab: Any, point: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Return P(a2 >= (1 - G) a1) for the two largest of N normal numbers, over G N^2 and against its integral."""
    from scipy.integrate import quad
    from scipy.stats import norm

    n, gap, rng = point["N"], 0.01, np.random.default_rng(seed + 10_007 * lab.seed)
    draws = 400_000
    top = np.sort(np.partition(rng.standard_normal((draws, n)), n - 2, axis=1)[:, -2:], axis=1)
    found = float((top[:, 0] >= (1 - gap) * top[:, 1]).mean())

    def density(a: float) -> float:
        return n * norm.pdf(a) * (norm.cdf(a) ** (n - 1) - norm.cdf((1 - gap) * a) ** (n - 1))

    # A negative maximum (N = 2 in a quarter of the draws) has a2 <= a1 < (1 - G) a1.
    exact = quad(density, 0, 12)[0]
    error = math.sqrt(exact * (1 - exact) / draws)
    return {"bound": found / (gap * n**2), "integral": score(found, error, exact)}


def near_ties_without_square(lab: Any, point: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Return `near_ties` against G alone: the bound without its factor N^2."""
    found = near_ties(lab, point, seed)
    return {**found, "bound": found["bound"] * point["N"] ** 2}


def tensor_race(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return y at the hitting time of the winner over y_0 (1 + 1/G), with the largest step that the lemma allows."""
    gap, s, x, goal = point["G"], point["S"], 0.05, 1.0
    y0 = x / (s * (1 + point.get("lead", 1.0) * gap))
    step = min(gap**2 * x / math.log(goal / x), gap**2 * y0 / math.log(1 / gap))
    y = y0
    while x < goal:
        x, y = x + step * x * x, y + s * step * y * y
    return y / (y0 * (1 + 1 / gap))


def symbolic_identity(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return 0 if the mean of +-z q(+-z) over the sign is -(z/2) tanh(z/2), else 1."""
    import sympy

    from derivations.chen.kernels import q_of

    z = sympy.Symbol("z", real=True)
    factor = sympy.Rational(1, 2) if not point.get("wrong") else 1
    mean = (z * q_of(z) - z * q_of(-z)) / 2
    return float(sympy.simplify((mean + z * factor * sympy.tanh(z / 2)).rewrite(sympy.exp)) != 0)


def cubic_identity(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return 0 if y f_m of the feature patches is sum_j alpha^3 x_jk^3 +- gamma^3 x_jk'^3 for eps = +-y, else 1."""
    import sympy

    from derivations.chen.kernels import Z, activation

    sigma = sympy.Lambda(Z, activation(point.get("activation", "cubic")))
    a, c, x, z = sympy.symbols("alpha gamma x_k x_k'", real=True)
    for y, eps in itertools.product((-1, 1), repeat=2):
        margin = y * (sigma(y * a * x) + sigma(eps * c * z))
        if sympy.expand(margin - (a**3 * x**3 + y * eps * c**3 * z**3)) != 0:
            return 1.0
    return 0.0


RATIO = "largest |p(h) - p(h')|/|h - h'|"
TANH = "largest |pi_m - pi_m'|/tanh(|h_m - h_m'|/2)"
CLAIMS = (
    claim(
        "route-exact",
        "With routing noise uniform on [0, 1], the routing probabilities and their Jacobian are integrals of a "
        "piecewise polynomial.",
        "Section 3, Algorithm 1",
        exactness,
        All(
            {
                "sum": Vanishes(1e-12),
                "slope": Vanishes(1e-8),
                "draws": Agrees(0.01, "probability", "far below the distance to a softmax"),
            }
        ),
        grid({"M": 2}, {"M": 4}, {"M": 8}),
        break_measure(lambda *a: exactness(*a, law=softmax)),
        rungs=(1, 2, 9),
    ),
    claim(
        "lem-5.1",
        "The routing probabilities p are Lipschitz in the logits h: |p - p'|_inf <= kappa M^2 |h - h'|_inf, with "
        "kappa = 1.",
        "Lemma 5.1",
        per_square(steepness),
        Bounded(high=1.0, meaning=RATIO + "/M^2"),
        grid(*SIZES),
        break_measure(per_square(functools.partial(steepness, law=narrow))),
        rungs=(2, 9),
        variants=(Variant("main", expected="consistent"),),
    ),
    claim(
        "lem-C.1",
        "The bound of lem-5.1 holds for noise of any density at most kappa, here for normal and exponential noise.",
        "Lemma C.1",
        any_noise,
        Bounded(high=1.0, meaning=RATIO + "/(kappa M^2)"),
        grid(*({"noise": noise, **size} for noise in NOISES for size in SIZES)),
        break_setting(narrow=True),
        rungs=(2, 9),
        variants=(Variant("main", expected="consistent"),),
    ),
    claim(
        "lem-5.1-sharp",
        "The Lipschitz constant is 2 kappa for every M, and is attained.",
        "Lemma 5.1",
        steepness,
        Bounded(2 - 1e-9, 2 + 1e-9, meaning=RATIO, because="at equal logits, to rounding"),
        grid(*SIZES),
        break_measure(functools.partial(steepness, law=softmax)),
        rungs=(2, 9),
        erratum=SHARP,
        variants=(
            Variant("corrected"),
            Variant(
                "M^2 attained",
                statement="The constant M^2 is attained up to a factor (the paper does not say so).",
                expected="refuted",
                law=Bounded(low=3.9, meaning=RATIO),
                sweep={"quick": over("M", 8)},
            ),
        ),
    ),
    claim(
        "lem-C.3",
        "|p_m - p_m'| <= M^2 |h_m - h_m'|.",
        "Lemma C.3",
        per_square(spread),
        Bounded(high=1.0, meaning="largest |p_m - p_m'|/(M^2 |h_m - h_m'|)"),
        grid(*SIZES),
        break_measure(per_square(functools.partial(spread, law=narrow))),
        rungs=(2, 9),
        variants=(Variant("main", expected="consistent"),),
    ),
    claim(
        "lem-C.3-sharp",
        "|p_m - p_m'| <= 2 |h_m - h_m'|, and the bound is attained.",
        "Lemma C.3",
        spread,
        Bounded(2 - 1e-9, 2 + 1e-9, meaning="largest |p_m - p_m'|/|h_m - h_m'|", because="to rounding"),
        grid(*SIZES),
        break_measure(functools.partial(spread, law=softmax)),
        rungs=(2, 9),
        erratum=SHARP,
    ),
    claim(
        "lem-C.4",
        "An expert whose logit is 1 or more below the largest is never chosen.",
        "Lemma C.4",
        starved,
        Proven("p_m = 0 at a gap of 1 or more, p_m > 0 within it,"),
        grid(*SIZES),
        break_measure(starved_early),
        rungs=(2, 9),
    ),
    claim(
        "lem-E.10b",
        "The gate of a chosen expert is at least 1/(e M). The sharp bound is 1/(1 + e (M - 1)).",
        "Lemma E.10",
        chosen_gate,
        Bounded(1 - 1e-12, 1 + 1e-12, meaning="smallest gate times 1 + e (M - 1)", because="attained, to rounding"),
        grid(*SIZES),
        break_measure(functools.partial(chosen_gate, reach=1.1)),
        rungs=(2, 9),
    ),
    claim(
        "lem-E.11",
        "Softmax gates are Lipschitz: |pi - pi'|_inf <= (1/2) |h - h'|_inf, and the bound is attained.",
        "Lemma E.11",
        functools.partial(steepness, law=softmax),
        Bounded(0.5 - 1e-9, 0.5 + 1e-9, meaning="largest |pi - pi'|/|h - h'|", because="attained, to rounding"),
        over("M", 2),
        break_measure(steepness),
        rungs=(2, 9),
    ),
    claim(
        "lem-E.15",
        "|pi_m - pi_m'| <= tanh(|h_m - h_m'|/2) <= |h_m - h_m'|/2.",
        "Lemma E.15",
        gate_spread,
        Bounded(1 - 1e-7, 1 + 1e-9, meaning=TANH, because="attained, but for the other gates, of order e^-20"),
        grid(*SIZES),
        break_setting(scale=1.1),
        rungs=(2, 9),
    ),
    claim(
        "lem-D.4c",
        "All K groups are nonempty with probability at least 1 - K (1 - 1/K)^M.",
        "Lemma D.4",
        coverage,
        All(
            {
                "draws": Agrees(0.03, "probability", "far below what independent groups give"),
                "bound": Bounded(high=1e-12),
            }
        ),
        grid({"K": 4, "M": 4}, {"K": 4, "M": 8}, {"K": 4, "M": 16}, {"K": 8, "M": 32}),
        break_measure(lambda *a: coverage(*a, exact=lambda k, m: (1 - (1 - 1 / k) ** m) ** k)),
        rungs=(1, 2, 9),
        variants=(Variant("main", expected="consistent"),),
    ),
    claim(
        "lem-F.1",
        "Among N normal numbers the two largest are within a factor 1 - G of each other with probability at most "
        "G N^2.",
        "Lemma F.1",
        near_ties,
        All(
            {"bound": Bounded(high=1.0), "integral": Agrees(0.2, "probability", "far below the factors N of the lemma")}
        ),
        over("N", 2, 8, 32),
        break_measure(near_ties_without_square),
        rungs=(2, 9),
        variants=(Variant("main", expected="consistent"),),
    ),
    claim(
        "lem-F.2",
        "In the normalised tensor-power iteration a losing coordinate with the initial value y_0 ends below y_0 "
        "(1 + 1/G), where G is the relative lead of the winning coordinate.",
        "Lemma F.2",
        tensor_race,
        Bounded(high=1.0, meaning="y_T/(y_0 (1 + 1/G))"),
        grid({"G": 0.1, "S": 0.3}, {"G": 0.1, "S": 1.0}, {"G": 0.3, "S": 3.0}),
        break_setting(lead=0.0),
        rungs=(2, 9),
        variants=(Variant("main", expected="consistent"),),
        erratum="errata-8",
    ),
    claim(
        "tanh-id",
        "The mean of +-z q(+-z) over the sign is -(z/2) tanh(z/2).",
        "Lemma E.17",
        symbolic_identity,
        Proven("E[+-z q(+-z)] = -(z/2) tanh(z/2)"),
        grid(),
        break_measure(lambda lab, point, seed: symbolic_identity(lab, {"wrong": True}, seed)),
        rungs=(1, 9),
    ),
    claim(
        "lem-E.13",
        "For samples with eps = +-y a cubic expert has y f = sum_j alpha^3 <w_j, v_k>^3 +- gamma^3 <w_j, v_k'>^3.",
        "Lemma E.13",
        cubic_identity,
        Proven("the cubic identity"),
        grid(),
        break_measure(lambda lab, point, seed: cubic_identity(lab, {"activation": "linear"}, seed)),
        rungs=(1, 9),
    ),
)

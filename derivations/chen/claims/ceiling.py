"""Claims on Theorem 4.1: patchwise additive functions reach at most 7/8 if alpha and gamma are equally distributed."""

import itertools
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from derivations.broken import break_law, break_measure, break_number, break_setting, grid, over
from derivations.chen import model
from derivations.chen.claims.tools import claim, laws_of
from derivations.chen.parameters import Parameters
from derivations.claim import Variant
from derivations.laws import All, Bounded, Equals, Proven


def four_points(lab: Any, point: Mapping[str, Any], seed: int) -> dict[str, float]:
    """Return two tests of the upper bound: signed margins, and the smallest error of random additive functions.

    The first number is 0 if the signed margins of the four coupled examples cancel for symbolic f. The coupled examples
    are: (alpha y v_k, beta c_k, -gamma y v_k'; y); the same with the label flipped; with k and k' (and alpha and gamma)
    exchanged; and with both changes.
    """
    import sympy

    a, c, b = sympy.symbols("alpha gamma beta", positive=True)
    f = sympy.Function("f")
    first, second, centre = sympy.symbols("v_k v_k' c_k")
    total = sympy.Integer(0)
    for y, swapped in itertools.product((1, -1), (False, True)):
        feature, noise = ((c, second), (a, first)) if swapped else ((a, first), (c, second))
        where = sympy.Symbol("c_k'") if swapped else centre
        coupled = f(y * feature[0], feature[1]) + f(b, where) + f(-y * noise[0], noise[1])
        if point.get("equal"):  # a broken coupling: the feature noise keeps the sign of the label
            coupled = f(y * feature[0], feature[1]) + f(b, where) + f(y * noise[0], noise[1])
        total += y * coupled
    return {"margins": float(sympy.expand(total) != 0), "error": random_error(lab, seed)}


def random_error(lab: Any, seed: int) -> float:
    """Return the smallest error of 30 random additive functions (odd, even and offset parts at every atom), K = 4."""
    p = Parameters(K=4)
    rng = np.random.default_rng(seed + 10_007 * lab.seed)
    atoms, strengths, labels, _ = model.draw(rng.random((7, 40_000)), *model.numbers(p))
    errors = []
    for _ in range(30):
        slope, cube, even = rng.normal(size=(3, 2 * p.K)) * np.array([[1.0], [0.5], [0.5]])
        parts = slope[atoms] * strengths + cube[atoms] * strengths**3 + even[atoms] * strengths**2
        errors.append(float((labels * parts.sum(axis=0) <= 0).mean()))
    return min(errors)


def tight_function(k: int, lift: int = 0) -> tuple[list[Fraction], list[Fraction]]:
    """Return G_1 > ... > G_K > 0 and B_k of a function that reaches the bound.

    The function is f(z v_k) = sign(z) G_k, f(b c_k) = B_k. The gaps g_k = G_k - G_(k+1) satisfy g_k > sum of the
    earlier ones, B_1 = 0, G_1 - G_k < B_k < g_k, B_K > G_1 - G_K.
    """
    gaps = [Fraction(3**i) for i in range(k - 1)]
    base = sum(gaps, Fraction(0)) * 2 + 2 + lift
    g = [base + sum(gaps[i:], Fraction(0)) for i in range(k)]
    b = [Fraction(0)]
    b += [(g[0] - g[i] + gaps[i]) / 2 for i in range(1, k - 1)]
    return g, [*b, g[0] - g[-1] + Fraction(1, 2)]


def tight_error(lab: Any, point: Mapping[str, Any], seed: int, centres: bool = True) -> float:
    """Return the exact error of the extremal function, by enumeration of pairs and signs."""
    g, b = tight_function(point["K"])
    if not centres:
        b = [Fraction(0)] * point["K"]
    wrong, cases = 0, 0
    for k, other in itertools.permutations(range(point["K"]), 2):
        for y, eps in itertools.product((1, -1), repeat=2):
            cases += 1
            wrong += y * (y * g[k] + b[k] + eps * g[other]) <= 0
    return float(Fraction(wrong, cases))


def overlap_error(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the exact error of the function that ignores strengths above 2.

    The strengths are alpha ~ U(0.5, 2) and gamma ~ U(0.5, 3). gamma exceeds 2 with probability 0.4. Then the function
    ignores the feature noise, and only y G_k + B_k remains.
    """
    if point.get("integral"):
        return overlap_integral(point.get("of", "min"))
    g, b = tight_function(point["K"])
    alone = [y * (y * g[k] + b[k]) <= 0 for k in range(point["K"]) for y in (1, -1)]
    return 0.6 * tight_error(lab, point, seed) + 0.4 * sum(alone) / len(alone)


def overlap_integral(of: str) -> float:
    """Return (1/8) double integral of min(f_a(s) f_g(t), f_a(t) f_g(s)) on a grid.

    f_a and f_g are the uniform densities of setting 1. With `of` "first" the minimum is replaced by its first argument
    (control).
    """
    s = np.linspace(0.5, 3.0, 1001)[:-1] + 0.00125
    fa, fg = np.where(s < 2, 1 / 1.5, 0.0), np.full(s.size, 1 / 2.5)
    both = np.outer(fa, fg) if of == "first" else np.minimum(np.outer(fa, fg), np.outer(fg, fa))
    return float(both.sum() * (s[1] - s[0]) ** 2 / 8)


def linear_accuracy(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the accuracy of a linear f without centre weights on 4e5 examples.

    The weights are positive and random, or equal.
    """
    p = Parameters(**{k: v for k, v in laws_of(point).items() if k != "sigma_p"})
    rng = np.random.default_rng(seed + 10_007 * lab.seed)
    weights = np.ones(2 * p.K) if point["weights"] == "equal" else rng.uniform(0.2, 3.0, 2 * p.K)
    weights[p.K :] = point.get("centre", 0.0)
    if point["weights"] == "unequal centres":
        weights = np.array([1.0, 1.0, 1.0, 0.4, 0.0, 0.0, 0.0, 0.8])
    atoms, strengths, labels, _ = model.draw(rng.random((7, 400_000)), *model.numbers(p))
    return float((labels * (weights[atoms] * strengths).sum(axis=0) > 0).mean())


CLAIMS = (
    claim(
        "thm-4.1",
        "If alpha and gamma have the same distribution, every patchwise additive F has error at least 1/8.",
        "Theorem 4.1",
        four_points,
        All(
            {
                "margins": Proven("the cancellation of the four coupled margins"),
                "error": Bounded(low=0.125, margin=0.005, visible=math.inf, because="the cancellation is the proof"),
            }
        ),
        grid(seeds=60),
        break_measure(lambda lab, point, seed: four_points(lab, {"equal": True}, seed)),
        rungs=(1, 2, 9),
        seconds=12.0,
    ),
    claim(
        "thm-4.1-tight",
        "The bound 1/8 is attained for every K.",
        "Theorem 4.1",
        tight_error,
        Equals(0.125, absolute=1e-15, meaning="exact error of the extremal function", error=0.0),
        over("K", 2, 3, 4, 5, 6),
        break_measure(lambda *a: tight_error(*a, centres=False)),
        rungs=(1, 9),
    ),
    claim(
        "thm-4.1-overlap",
        "For general distributions the bound is (1/8) int int min(f_a(s) f_g(t), f_a(t) f_g(s)). In settings 1 "
        "and 2 this is 0.075, so the largest accuracy is 92.5 %. The bound is attained.",
        "Theorem 4.1",
        overlap_error,
        Equals(0.075, absolute=1e-12, meaning="error", error=1e-14),
        over("K", 2, 3, 4, 6),
        break_law(value=0.0751),
        rungs=(1, 2, 9),
        variants=(
            Variant("attained"),
            Variant(
                "integral",
                law=Equals(0.075, absolute=2e-4, meaning="integral / 8", error=1e-3),
                sweep={"quick": over("K", 4)},
                settings={"integral": True},
                control=break_setting(of="first"),
            ),
        ),
    ),
    claim(
        "lin-75",
        "A linear single expert without centre weights has accuracy 3/4 if alpha and gamma have the same "
        "distribution. With equal weights its accuracy is 1/2 + P(alpha > gamma)/2 in general.",
        "Section 6",
        linear_accuracy,
        Equals(0.75, absolute=0.004, meaning="accuracy"),
        grid({"setting": 3}, seeds=6),
        break_number(),
        rungs=(2, 9),
        variants=(
            Variant("any weights", {"weights": "random"}),
            Variant("setting 1", {"setting": 1, "weights": "equal"}, law=Equals(0.65, absolute=0.004)),
            Variant(
                "with centres",
                {"weights": "unequal centres"},
                "No linear f exceeds 3/4.",
                "refuted",
                law=Bounded(high=0.752, meaning="accuracy"),
            ),
        ),
        control_variant="any weights",
        erratum="improvement-3",
    ),
)

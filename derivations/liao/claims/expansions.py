"""Claims on Lemmas 21, 24 and 25: every line of the expansions of four-node expectations, and error orders."""

import functools
import itertools
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from derivations.broken import break_measure
from derivations.claim import Claim, Grid, Variant
from derivations.laws import All, Power, Proven
from derivations.liao.claims import expectations
from derivations.liao.claims.algebra import draw
from derivations.liao.claims.tools import at

ERRATUM = "errata-7"
Overlaps = tuple[Fraction, ...]
Line = Callable[[int, Overlaps], Fraction]
"""E[He_k He_l He_p He_q] / k! for k = l + offset, as a function of l and (g1, g2, z11, z12, z21, z22)."""


def falling(n: int, a: int) -> int:
    """Return P(n, a) = n! / (n - a)!, zero for n < a (the permutation number of the paper)."""
    return math.perm(n, a)


def power(base: Fraction, exponent: int) -> Fraction:
    """Return base^exponent, or 0 if a permutation number vanishes before a negative power."""
    return base**exponent if exponent >= 0 else Fraction(0)


def cubes_equal(n: int, x: Overlaps) -> Fraction:
    """Display (26), k = l."""
    g1, g2, z11, z12, z21, z22 = x
    direct, cross = z11 * z22, z12 * z21
    return (
        6 * power(g1, n) * g2**3
        + 18 * falling(n, 1) * power(g1, n - 1) * g2**2 * (direct + cross)
        + 9 * falling(n, 2) * power(g1, n - 2) * g2 * (direct**2 + 4 * direct * cross + cross**2)
        + falling(n, 3) * power(g1, n - 3) * (direct**3 + cross**3 + 9 * direct**2 * cross + 9 * direct * cross**2)
    )


def cubes_two(n: int, x: Overlaps) -> Fraction:
    """Display (26), k = l + 2."""
    g1, g2, z11, z12, z21, z22 = x
    direct, cross = z11 * z22, z12 * z21
    last = falling(n, 2) * power(g1, n - 2)
    return (
        18 * power(g1, n) * g2**2 * z11 * z12
        + 18 * falling(n, 1) * power(g1, n - 1) * g2 * z11 * z12 * (direct + cross)
        + 3 * last * z11 * z12 * (direct**2 + cross**2)
        + 9 * last * z11**2 * z12**2 * z21 * z22
    )


def cubes_four(n: int, x: Overlaps) -> Fraction:
    """Display (26), k = l + 4."""
    g1, g2, z11, z12, z21, z22 = x
    both = z11**2 * z12**2
    return 9 * power(g1, n) * g2 * both + 3 * falling(n, 1) * power(g1, n - 1) * both * (z11 * z22 + z21 * z12)


def cubes_six(n: int, x: Overlaps, printed: bool = False) -> Fraction:
    """Display (26), k = l + 6; the printed form has an additional factor g2."""
    g1, g2, z11, z12, _, _ = x
    return power(g1, n) * (g2 if printed else 1) * z11**3 * z12**3


def squares_equal(n: int, x: Overlaps, cross_factor: int = 4) -> Fraction:
    """Display (27), k = l."""
    g1, g2, z11, z12, z21, z22 = x
    direct, cross = z11 * z22, z12 * z21
    return (
        2 * power(g1, n) * g2**2
        + cross_factor * falling(n, 1) * power(g1, n - 1) * g2 * (direct + cross)
        + falling(n, 2) * power(g1, n - 2) * (direct**2 + cross**2 + 4 * direct * cross)
    )


def squares_two(n: int, x: Overlaps) -> Fraction:
    """Display (27), k = l + 2."""
    g1, g2, z11, z12, z21, z22 = x
    second = 2 * falling(n, 1) * power(g1, n - 1) * z11 * z12 * (z11 * z22 + z12 * z21)
    return 4 * power(g1, n) * g2 * z11 * z12 + second


def squares_four(n: int, x: Overlaps) -> Fraction:
    """Display (27), k = l + 4."""
    return power(x[0], n) * x[2] ** 2 * x[3] ** 2


def mixed_one(n: int, x: Overlaps, printed: bool = False) -> Fraction:
    """Display (28), k = l + 1; the printed form has 12 in the place of 6."""
    g1, g2, z11, z12, z21, z22 = x
    middle = (12 if printed else 6) * falling(n, 1) * power(g1, n - 1) * g2 * z12 * (2 * z11 * z22 + z12 * z21)
    last = z12**2 * z21**2 + 3 * z11**2 * z22**2 + 6 * z11 * z12 * z21 * z22
    return 6 * power(g1, n) * g2**2 * z12 + middle + falling(n, 2) * power(g1, n - 2) * z12 * last


def mixed_three(n: int, x: Overlaps, printed: bool = False) -> Fraction:
    """Display (28), k = l + 3; the printed form has 6 (3 z21 + 2 z22) in the place of 2 z12 z21 + 3 z11 z22."""
    g1, g2, z11, z12, z21, z22 = x
    bracket = 6 * (3 * z21 + 2 * z22) if printed else 2 * z12 * z21 + 3 * z11 * z22
    return 6 * power(g1, n) * g2 * z11 * z12**2 + falling(n, 1) * power(g1, n - 1) * z11 * z12**2 * bracket


def mixed_five(n: int, x: Overlaps) -> Fraction:
    """Display (28), k = l + 5."""
    return power(x[0], n) * x[2] ** 2 * x[3] ** 3


PRINTED_SIX, PRINTED_ONE, PRINTED_THREE = (
    functools.partial(f, printed=True) for f in (cubes_six, mixed_one, mixed_three)
)
LINES: dict[str, dict[str, dict[int, Line]]] = {
    "lem-21a": {
        "corrected": {0: cubes_equal, 2: cubes_two, 4: cubes_four, 6: cubes_six},
        "printed": {0: cubes_equal, 2: cubes_two, 4: cubes_four, 6: PRINTED_SIX},
    },
    "lem-21b": {"printed": {0: squares_equal, 2: squares_two, 4: squares_four}},
    "lem-21c": {
        "corrected": {1: mixed_one, 3: mixed_three, 5: mixed_five},
        "printed": {1: PRINTED_ONE, 3: PRINTED_THREE, 5: mixed_five},
    },
}
ORDERS = {"lem-21a": (0, 0, 3, 3), "lem-21b": (0, 0, 2, 2), "lem-21c": (1, 0, 2, 3)}


def mismatches(degrees: tuple[int, int], lines: Mapping[int, Line], rng: np.random.Generator) -> int:
    """Return the number of lines, l = 0..3, in which the display differs from the exact pairing at random fractions."""
    wrong = 0
    for offset, line in lines.items():
        for n in range(4):
            x = tuple(Fraction(int(v), 10) for v in rng.choice([-9, -7, -5, -4, -3, 3, 4, 6, 7, 8], 6))
            g1, g2, z11, z12, z21, z22 = x
            one = Fraction(1)
            matrix = [[one, g1, z11, z12], [g1, one, z21, z22], [z11, z21, one, g2], [z12, z22, g2, one]]
            exact = expectations.pairing((n + offset, n, *degrees), matrix)
            wrong += exact != math.factorial(n + offset) * line(n, x)
    return wrong


def small_gram(delta: float, g2: float, rng: np.random.Generator) -> np.ndarray:
    """Gram matrix of v1, v2, w1, w2 with v1.v2 = 0.4, w1.w2 = g2 and mis-alignments of size delta."""
    z = delta * rng.choice([-1, 1], size=(2, 2)) * rng.uniform(0.5, 1, size=(2, 2))
    gram = np.eye(4)
    gram[0, 1] = gram[1, 0] = 0.4
    gram[2, 3] = gram[3, 2] = g2
    gram[:2, 2:], gram[2:, :2] = z, z.T
    return gram


def remainder(claim: str, delta: float, g2: float, rng: np.random.Generator) -> float:
    """Return the distance of the four-node expectation from the leading terms of the lemma.

    The expectation is computed by quadrature.
    """
    gram = small_gram(delta, g2, rng)
    rho, orders = 0.4, ORDERS[claim]
    exact = expectations.moments(gram, [orders])[0]
    if claim == "lem-21a":
        return abs(exact - 6 * expectations.correlation(0, 0, rho) * g2**3)
    if claim == "lem-21b":
        return abs(exact - 2 * expectations.correlation(0, 0, rho) * g2**2)
    first, second = expectations.correlation(2, 0, rho), expectations.correlation(1, 1, rho)
    return abs(exact - 6 * g2**2 * (first * gram[0, 3] + second * gram[1, 3]))


def expansion(
    lab: Any, point: Mapping[str, Any], seed: int, claim: str, lines: Mapping[int, Line] | None = None
) -> dict[str, float]:
    """Return the number of wrong lines of the display, and the remainders of the statement at w1.w2 = 0.6 and 0."""
    used = LINES[claim][point["form"]] if lines is None else lines
    rng = draw(seed, lab)
    wrong = mismatches(ORDERS[claim][2:], used, rng)
    shape = rng.integers(2**31)
    at_six, at_zero = (remainder(claim, point["delta"], g2, np.random.default_rng(shape)) for g2 in (0.6, 0.0))
    return {"lines": float(wrong > 0), "remainder": at_six, "remainder at w1.w2 = 0": at_zero}


ROUNDING = "below .005 remainders of order delta^6 drown in rounding"


def orders_law(aligned: float, orthogonal: float) -> All:
    """Return the law that every line is exact and that the remainders have at least the stated orders."""
    orders = {"remainder": aligned, "remainder at w1.w2 = 0": orthogonal}
    powers = {
        n: Power(p, over="delta", bound="at least", margin=0.1, meaning=n, short=ROUNDING) for n, p in orders.items()
    }
    return All({"lines": Proven("agreement of every displayed line with the exact pairing", exceptions=None), **powers})


def factor(b: int) -> int:
    """Return sigma^(b) = 3! / (3 - b)! He_{3-b}."""
    return math.perm(3, b)


def four_factors(gram: np.ndarray, wanted: list[tuple[int, int, int, int]]) -> dict[tuple[int, int, int, int], float]:
    """Return E[pi^(a1) pi^(a2) sigma^(b1) sigma^(b2)] for each (a1, a2, b1, b2)."""
    found = expectations.moments(gram, [(a1, a2, 3 - b1, 3 - b2) for a1, a2, b1, b2 in wanted])
    return {key: factor(key[2]) * factor(key[3]) * value for key, value in zip(wanted, found, strict=True)}


def nearly_orthogonal(eps: float, rng: np.random.Generator) -> np.ndarray:
    """Gram matrix of four unit vectors with all inner products of size eps."""
    upper = np.triu(eps * rng.choice([-1, 1], size=(4, 4)) * rng.uniform(0.5, 1, size=(4, 4)), 1)
    return np.eye(4) + upper + upper.T


def lemma_25(lab: Any, point: Mapping[str, Any], seed: int, total: tuple[int, ...] = (0, 1, 2, 3, 4, 5)) -> float:
    """Return the largest |E[pi^(a1) pi^(a2) sigma^(b1) sigma^(b2)]| over a1 <= a2 <= 2 and b1 + b2 in `total`."""
    gram = nearly_orthogonal(point["eps"], draw(seed, lab))
    gates = ((0, 0), (0, 1), (1, 1), (1, 2), (2, 2))
    experts = [(b1, b2) for b1 in range(4) for b2 in range(4) if b1 + b2 in total]
    wanted = [(*a, *b) for a in gates for b in experts]
    return max(abs(value) for value in four_factors(gram, wanted).values())


def lemma_24(lab: Any, point: Mapping[str, Any], seed: int, allowed: tuple[int, ...] = (2, 3)) -> float:
    """Return the largest norm of the four quantities over b1 + b2 in `allowed`.

    The quantities are the value, two Hessians, and the product of gradients.
    """
    gram = nearly_orthogonal(point["eps"], draw(seed, lab))
    vectors = expectations.triangular(gram)[[0, 2, 1, 3]]  # v1, w1, v2, w2
    largest = 0.0
    for a1, a2, b1, b2 in ((1, 1, 1, 1), (1, 1, 1, 2), (1, 2, 2, 1), (2, 1, 1, 2), (1, 1, 2, 2)):
        if b1 + b2 in allowed:
            largest = max(largest, *_norms(gram, vectors, (a1, a2, b1, b2)))
    return largest


def _norms(gram: np.ndarray, vectors: np.ndarray, orders: tuple[int, int, int, int]) -> list[float]:
    """Return |E[f1 f2]|, |E[hess(f1) f2]|, |E[f1 hess(f2)]| and |E[grad f1 grad f2^T]|, f_k = pi^(a_k) sigma^(b_k)."""
    a1, a2, b1, b2 = orders
    steps = [key for key in itertools.product(range(3), repeat=4) if sum(key) <= 2]
    keys = {key: (a1 + key[0], a2 + key[2], b1 + key[1], b2 + key[3]) for key in steps}
    found = four_factors(gram, [key for key in keys.values() if max(key[2:]) <= 3])
    e = {step: found.get(key, 0.0) for step, key in keys.items()}  # sigma has no derivative beyond the third
    v1, w1, v2, w2 = vectors
    first = _hessian(e[2, 0, 0, 0], e[1, 1, 0, 0], e[0, 2, 0, 0], v1, w1)
    last = _hessian(e[0, 0, 2, 0], e[0, 0, 1, 1], e[0, 0, 0, 2], v2, w2)
    product = np.zeros_like(first)
    for i, left in ((1, v1), (0, w1)):
        for k, right in ((1, v2), (0, w2)):
            product += e[i, 1 - i, k, 1 - k] * np.outer(left, right)
    return [abs(e[0, 0, 0, 0]), *(float(np.linalg.norm(matrix, 2)) for matrix in (first, last, product))]


def _hessian(twice_v: float, mixed: float, twice_w: float, v: np.ndarray, w: np.ndarray) -> np.ndarray:
    return twice_v * np.outer(v, v) + mixed * (np.outer(v, w) + np.outer(w, v)) + twice_w * np.outer(w, w)


DELTAS: Mapping[str, Grid | None] = {
    "quick": Grid(tuple({"delta": v} for v in (0.005, 0.01, 0.02, 0.04, 0.08)), 6),
    "full": Grid(tuple({"delta": v} for v in (0.005, 0.01, 0.02, 0.04, 0.08)), 12),
}
SMALL: Mapping[str, Grid | None] = {
    "quick": Grid(tuple({"eps": v} for v in (0.0003, 0.001, 0.003, 0.01, 0.03)), 6),
    "full": Grid(tuple({"eps": v} for v in (0.0003, 0.001, 0.003, 0.01, 0.03)), 12),
}
FORMS = (
    Variant("printed", {"form": "printed"}, expected="refuted"),
    Variant("corrected", {"form": "corrected"}, expected="consistent"),
)
"""At w1.w2 = 0 the remainders are two orders smaller than stated: 6 for 4 and 5 for 3."""


def broken(claim: str, offset: int, line: Line, form: str) -> Callable[[Claim], Claim]:
    """Return a control whose display has one wrong line."""
    lines = {**LINES[claim][form], offset: line}
    return break_measure(functools.partial(expansion, claim=claim, lines=lines))


CLAIMS = (
    Claim(
        id="lem-21a",
        statement="E[He_k He_l He_3 He_3] has the displayed form for k = l, l + 2, l + 4, l + 6, and the sum is "
        "6 S g2^3 +- O(delta^2 g2^2 + delta^4). At k = l + 6 the printed line has one factor g2 too "
        "many.",
        source=at("Lemma 21, equation (26)"),
        measure=functools.partial(expansion, claim="lem-21a"),
        law=orders_law(2, 4),
        sweep=DELTAS,
        control=broken("lem-21a", 4, lambda n, x: cubes_four(n, x) / 2, "corrected"),
        rungs=(1, 2, 8, 9),
        variants=FORMS,
        control_variant="corrected",
        erratum=ERRATUM,
    ),
    Claim(
        id="lem-21b",
        statement="E[He_k He_l He_2 He_2] has the displayed form for k = l, l + 2, l + 4, and the sum is "
        "2 S g2^2 +- O(delta^2 |g2| + delta^4).",
        source=at("Lemma 21, equation (27)"),
        measure=functools.partial(expansion, claim="lem-21b"),
        law=orders_law(2, 4),
        sweep=DELTAS,
        control=broken("lem-21b", 0, functools.partial(squares_equal, cross_factor=2), "printed"),
        rungs=(1, 2, 8, 9),
        variants=(Variant("printed", {"form": "printed"}),),
    ),
    Claim(
        id="lem-21c",
        statement="E[He_k He_l He_2 He_3] has the displayed form for k = l + 1, l + 3, l + 5, and the sum is its "
        "two linear terms +- O(delta^3). Two printed lines are wrong: 12 instead of 6 at l + 1, and "
        "the bracket at l + 3.",
        source=at("Lemma 21, equation (28)"),
        measure=functools.partial(expansion, claim="lem-21c"),
        law=orders_law(3, 3),
        sweep=DELTAS,
        control=broken("lem-21c", 5, lambda n, x: -mixed_five(n, x), "corrected"),
        rungs=(1, 2, 8, 9),
        variants=FORMS,
        control_variant="corrected",
        erratum=ERRATUM,
    ),
    Claim(
        id="lem-24",
        statement="For four nearly orthogonal unit vectors and b1 + b2 <= 3, the mean of f1 f2, of each Hessian times "
        "the other factor, and of the product of the gradients are O(eps), f_k = pi^(a_k) sigma^(b_k).",
        source=at("Lemma 24"),
        measure=lemma_24,
        law=Power(1.0, over="eps", bound="at least", margin=0.1, meaning="largest norm"),
        sweep=SMALL,
        control=break_measure(functools.partial(lemma_24, allowed=(4,))),
        rungs=(2, 8, 9),
    ),
    Claim(
        id="lem-25",
        statement="For four nearly orthogonal unit vectors and b1 + b2 <= 5, E[pi^(a1) pi^(a2) sigma^(b1) sigma^(b2)] "
        "is O(eps).",
        source=at("Lemma 25"),
        measure=lemma_25,
        law=Power(1.0, over="eps", bound="at least", margin=0.1, meaning="largest expectation"),
        sweep=SMALL,
        control=break_measure(functools.partial(lemma_25, total=(6,))),
        rungs=(2, 8, 9),
    ),
)

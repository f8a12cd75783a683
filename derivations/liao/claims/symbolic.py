"""Claims on Lemmas 18, 26, 27 and 28: matrix identities, proven symbolically if the difference is exactly zero."""

import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import sympy

from derivations.broken import break_measure, break_setting, once
from derivations.claim import Claim, Grid, Variant
from derivations.laws import All, Equals, Proven, Vanishes
from derivations.liao.claims import expectations
from derivations.liao.claims.algebra import draw
from derivations.liao.claims.tools import at

Form = Mapping[str, Any]


def gaussian_mean(polynomial: Any, variables: tuple[Any, ...]) -> Any:
    """Return E[polynomial(x)] for independent standard normal variables, monomial by monomial."""
    total = sympy.Integer(0)
    for powers, value in sympy.Poly(polynomial, *variables).terms():
        if all(p % 2 == 0 for p in powers):
            total += value * math.prod(int(sympy.factorial2(p - 1)) for p in powers)
    return sympy.expand(total)


@functools.cache
def stein_fails(degree: int, drop: bool) -> int:
    """Return the number of pairs g = u^j, h = u^k, j, k <= degree, that violate the second-order Stein identity.

    The identity is that of Lemma 18. Both sides are bilinear in (g, h) and rotate with the axes. Therefore powers, and
    v = (v1, 0, 0), w = (w1, w2, 0), cover all polynomials and all vectors; the third axis represents the complement.
    """
    x = sympy.symbols("x1:4")
    v1, w1, w2, u = sympy.symbols("v1 w1 w2 u")
    v, w, column = sympy.Matrix([v1, 0, 0]), sympy.Matrix([w1, w2, 0]), sympy.Matrix(x)
    inner = {"g": v.dot(column), "h": w.dot(column)}
    wrong = 0
    for j in range(degree + 1):
        for k in range(degree + 1):
            g, h = u**j, u**k

            def e(a: int, b: int, factor: Any = 1, g: Any = g, h: Any = h) -> Any:
                left = sympy.diff(g, u, a).subs(u, inner["g"]) * sympy.diff(h, u, b).subs(u, inner["h"])
                return gaussian_mean(sympy.expand(left * factor), x)

            right = e(0, 0) * sympy.eye(3) + e(1, 1) * (v * w.T + w * v.T) + e(2, 0) * v * v.T
            if not drop:
                right += e(0, 2) * w * w.T
            wrong += any(sympy.expand(e(0, 0, x[a] * x[b]) - right[a, b]) != 0 for a in range(3) for b in range(a + 1))
    return wrong


def stein_quadrature(rng: np.random.Generator, drop: bool) -> float:
    """Return the largest entry of the difference for g = pi, h = He_3 at random vectors in three dimensions."""
    v, w = rng.normal(size=(2, 3)) * 0.7
    nodes, weights = expectations.outer(expectations.COARSE)
    x = np.array([axis.ravel() for axis in np.meshgrid(nodes, nodes, nodes, indexing="ij")])
    weight = np.einsum("i,j,k->ijk", weights, weights, weights).ravel()
    z, y = v @ x, w @ x
    h = (y**3 - 3 * y, 3 * y**2 - 3, 6 * y)
    left = (weight * expectations.gate(0, z) * h[0] * x) @ x.T

    def e(a: int, b: int) -> float:
        return float(weight @ (expectations.gate(a, z) * h[b]))

    cross = np.outer(v, w) + np.outer(w, v)
    right = e(0, 0) * np.eye(3) + e(1, 1) * cross + e(2, 0) * np.outer(v, v)
    if not drop:
        right += e(0, 2) * np.outer(w, w)
    return float(np.abs(left - right).max())


def lemma_18(lab: Any, point: Form, seed: int, drop: bool = False) -> dict[str, float]:
    """Return the violations of the identity.

    They are the number of failures for polynomials (symbolic), and the error for the gate and the expert (quadrature).
    """
    return {"symbolic": float(stein_fails(3, drop) > 0), "quadrature": stein_quadrature(draw(seed, lab), drop)}


@functools.cache
def jacobian_difference(correction: int, d: int) -> bool:
    """Return True if Jf(v), f(v) = (I - v v^T / s^2) w / s, differs from the display plus correction (v.w) v v^T / s^5.

    s is |v|: d/dv_i acts on it by v_i / s, and s^2 is replaced by v.v at the end.
    """
    v, w = (sympy.Matrix(sympy.symbols(f"{name}1:{d + 1}")) for name in "vw")
    s = sympy.Symbol("s", positive=True)
    inner, square = v.dot(w), v.dot(v)
    f = w / s - v * inner / s**3
    jacobian = sympy.Matrix(d, d, lambda i, k: sympy.diff(f[i], v[k]) + sympy.diff(f[i], s) * v[k] / s)
    display = -inner / s**3 * (sympy.eye(d) - v * v.T / s**2) - (v * w.T + w * v.T) / s**3
    display += correction * inner * v * v.T / s**5
    entries = [sympy.expand(s**5 * entry) for entry in jacobian - display]
    return any(sympy.expand(sympy.rem(entry, s**2 - square, s)) != 0 for entry in entries)


def lemma_26(lab: Any, point: Form, seed: int, sign: int = 1) -> float:
    """Return 0 if the display equals the Jacobian exactly in 2 and 3 dimensions, else 1.

    The display has the correction of the variant.
    """
    correction = {"printed": 0, "corrected": 2}[point["form"]] * sign
    return float(any(jacobian_difference(correction, d) for d in (2, 3)))


def lemma_27(lab: Any, point: Form, seed: int, beta: Any = 1, shift: int = 0) -> dict[str, float]:
    """Return max |pi'''| exactly, and the number of failures of two symmetries.

    They are pi(-x) = 1 - pi(x), and the oddness of pi'', pi'''', ... up to order 12. In y = pi(x) the derivatives of
    pi(beta x) are polynomials, and x -> -x is y -> 1 - y (`shift` breaks it).
    """
    y = sympy.Symbol("y")
    derivatives: list[Any] = [y]
    for _ in range(12):
        derivatives.append(sympy.expand(beta * sympy.diff(derivatives[-1], y) * (y - y**2)))
    third = derivatives[3]
    critical = [root for root in sympy.Poly(sympy.diff(third, y), y).real_roots() if 0 <= root <= 1]
    largest = max(abs(third.subs(y, root)) for root in (*critical, 0, 1))
    mirrored = 1 - y + shift
    even = [p for k, p in enumerate(derivatives) if k >= 2 and k % 2 == 0]
    odd = all(sympy.expand(p.subs(y, mirrored) + p) == 0 for p in even) and sympy.expand(mirrored + y) == 1
    return {"largest": float(largest), "symmetry": float(not odd), "mean": abs(expectations.coefficient(0) - 0.5)}


LETTERS = sympy.symbols("a1:4 b1:4 c1:4")


@functools.cache
def routh_hurwitz() -> dict[str, Any]:
    """Return S = det(A) - Tr(A) M of the matrix of Lemma 28, and the lines of the paper.

    M is the sum of the principal minors.
    """
    a1, a2, a3, b1, b2, b3, c1, c2, c3 = LETTERS
    matrix = sympy.Matrix([[-a1, b1, c1], [-a2, -b2, c2], [-a3, b3, -c3]])
    minors = sum(matrix.minor_submatrix(i, i).det() for i in range(3))
    condition = (
        a1**2 * (b2 + c3) + a1 * a2 * b1 + a1 * a3 * c1 + a1 * (b2**2 + c3**2) + a2 * b1 * b2 + a3 * c1 * c3
    ) - (a2 * b3 * c1 + a3 * b1 * c2)
    printed = condition + 2 * a1 * b2 * c3 - 2 * a1 * b3 * c2 + b2**2 * c3 - b2 * b3 * c2 + b2 * c3**2 - b3 * c2 * c3
    exact = sympy.expand(matrix.det() - matrix.trace() * minors)
    return {"exact": exact, "printed": printed, "condition": condition, "det": sympy.expand(matrix.det())}


def stability_statement(rng: np.random.Generator, condition: bool) -> bool:
    """Return True if the lemma holds: an identity shows S > 0 and det < 0, and no unstable matrix is found.

    S = condition + 2 a1 b2 c3 + (b2 + c3)(b2 c3 - b3 c2), and det = -a1 (b2 c3 - b3 c2) - positive terms.
    """
    a1, a2, a3, b1, b2, b3, c1, c2, c3 = LETTERS
    forms = routh_hurwitz()
    gap = b2 * c3 - b3 * c2
    evident = forms["condition"] + 2 * a1 * b2 * c3 + (b2 + c3) * gap
    positive = a2 * (b1 * c3 + b3 * c1) + a3 * (b1 * c2 + b2 * c1)
    proven = sympy.expand(forms["exact"] - evident) == 0 and sympy.expand(forms["det"] + a1 * gap + positive) == 0
    x = np.exp(rng.normal(size=(9, 4000)))
    holds = sympy.lambdify(LETTERS, forms["condition"])(*x) > 0
    if condition:
        holds &= x[4] * x[8] > x[5] * x[7]
    signs = np.array([[-1, 1, 1], [-1, -1, 1], [-1, 1, -1]])
    matrices = np.stack([[x[0], x[3], x[6]], [x[1], x[4], x[7]], [x[2], x[5], x[8]]]).transpose(2, 0, 1) * signs
    stable = np.linalg.eigvals(matrices[holds]).real.max(axis=1) < 0
    return proven and bool(stable.all()) and int(holds.sum()) > 100


def lemma_28(lab: Any, point: Form, seed: int, condition: bool = True) -> float:
    """Return 0 if the form holds, else 1.

    A form is the display of S in the proof (printed or corrected), or the lemma itself.
    """
    if point["form"] == "statement":
        return float(not stability_statement(draw(seed, lab), condition))
    a1, b3, c2 = LETTERS[0], LETTERS[5], LETTERS[7]
    missing = {"printed": 0, "corrected": 2 * a1 * b3 * c2}[point["form"]]
    forms = routh_hurwitz()
    return float(sympy.expand(forms["exact"] - forms["printed"] - missing) != 0)


CLAIMS = (
    Claim(
        id="lem-18",
        statement="E[g(v.x) h(w.x) x x^T] = E[g h] I + E[g' h'] (v w^T + w v^T) + E[g'' h] v v^T + E[g h''] w w^T.",
        source=at("Lemma 18"),
        measure=lemma_18,
        law=All(
            {
                "symbolic": Proven("the identity for all powers g, h up to 3 and symbolic vectors"),
                "quadrature": Vanishes(1e-11, meaning="error for g = pi, h = He_3"),
            }
        ),
        sweep={"quick": Grid(seeds=1), "full": Grid(seeds=9)},
        control=break_measure(functools.partial(lemma_18, drop=True)),
        rungs=(1, 2, 9),
    ),
    Claim(
        id="lem-26",
        statement="The Jacobian of v -> (I - v v^T / |v|^2) w / |v|.",
        source=at("Lemma 26"),
        measure=lemma_26,
        law=Proven("the displayed Jacobian in two and three dimensions"),
        sweep=once(),
        control=break_measure(functools.partial(lemma_26, sign=-1)),
        rungs=(1, 9),
        variants=(
            Variant("printed", {"form": "printed"}, "The Jacobian as printed.", "refuted"),
            Variant("corrected", {"form": "corrected"}, "The Jacobian with the additional term 2 (v.w) v v^T / |v|^5."),
        ),
        control_variant="corrected",
        erratum="errata-6",
    ),
    Claim(
        id="lem-27",
        statement="|pi'''| <= 1 (its maximum is exactly 1/8), E[pi(z)] = 1/2, and even derivatives of pi have mean 0.",
        source=at("Lemma 27"),
        measure=lemma_27,
        law=All(
            {
                "largest": Equals(0.125, absolute=1e-12, error=1e-15, meaning="max |pi'''|"),
                "symmetry": Proven("the symmetry pi(-x) = 1 - pi(x), and oddness of the even derivatives up to 12,"),
                "mean": Vanishes(1e-14, meaning="distance of E[pi] from 1/2"),
            }
        ),
        sweep=once(),
        control=break_measure(functools.partial(lemma_27, beta=sympy.Rational(10**11 + 1, 10**11))),
        rungs=(1, 2, 9),
    ),
    Claim(
        id="lem-28",
        statement="A 3 x 3 system with the sign pattern of the lemma is stable under its two conditions.",
        source=at("Lemma 28"),
        measure=lemma_28,
        law=Proven("the lemma's form"),
        sweep=once(),
        control=break_measure(functools.partial(lemma_28, condition=False)),
        rungs=(1, 2, 9),
        variants=(
            Variant("printed", {"form": "printed"}, "The proof's display of S = det - Tr M.", "refuted"),
            Variant(
                "corrected",
                {"form": "corrected"},
                "The display of S with 2 a1 b3 c2 added.",
                control=break_setting(form="printed"),
            ),
            Variant("statement", {"form": "statement"}, "The conclusion: both conditions make the matrix stable."),
        ),
        control_variant="statement",
        erratum="errata-6",
    ),
)

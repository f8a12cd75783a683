"""Claims on Hermite polynomials, information exponents and shifted coefficients: identities and bounds."""

import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.broken import break_law, break_measure, once
from derivations.claim import Claim, Variant
from derivations.kawata.claims.tools import at, coefficient, gauss, half_line, orthonormal, rng_of
from derivations.kawata.parameters import ACTIVATIONS, information_exponent
from derivations.laws import All, Bounded, Proven, Vanishes

ROUND = 1e-10


def exponent_mismatch(lab: Any, point: Mapping[str, Any], seed: int, off: int = 0) -> float:
    """Return 0 if the first Hermite coefficient of a random polynomial is where its series begins, else 1.

    The coefficients are computed by quadrature.
    """
    rng = rng_of(lab, seed)
    first = int(rng.integers(1, 5))
    series = [0.0] * first + list(rng.uniform(0.5, 2, 3) * rng.choice([-1, 1], 3))
    x, w = gauss(20)
    values = 7.0 * np.polynomial.hermite_e.hermeval(x, series)
    found = next(i for i in range(8) if abs((w * values * orthonormal(i, x)).sum()) > 1e-9)
    return float(found != first + off or information_exponent(tuple(series)) != first)


def orthonormality(lab: Any, point: Mapping[str, Any], seed: int, scale: float = 1.0) -> float:
    """Return max |E[h_i h_j] - delta_ij| for i, j <= 12, with 40 nodes."""
    x, w = gauss(40)
    h = np.array([scale**i * orthonormal(i, x) for i in range(13)])
    return float(np.abs((h * w) @ h.T - np.eye(13)).max())


def derivative(lab: Any, point: Mapping[str, Any], seed: int, off: int = 0) -> float:
    """Return the number of coefficients in which He_i' and i He_{i-1} differ.

    The polynomials have exact integer coefficients, from the recurrence.
    """
    he: list[list[int]] = [[1], [0, 1]]
    for n in range(1, 12):
        lower = [-n * c for c in he[n - 1]] + [0, 0]
        he.append([a + b for a, b in zip([0, *he[n]], lower, strict=True)])
    wrong = 0
    for i in range(1, 12):
        slope = [m * c for m, c in enumerate(he[i])][1:]
        wrong += sum(a != (i + off) * b for a, b in zip(slope, he[i - 1], strict=True))
    return float(wrong)


def correlated(degree: int, f: Any, r: float, count: int = 24) -> float:
    """Return E[He_degree(z) f(z')] for standard normal z, z' of correlation r."""
    x, w = gauss(count)
    z, other = np.meshgrid(x, x, indexing="ij")
    weight = np.outer(w, w)
    he = np.polynomial.hermite_e.hermeval(z, [0] * degree + [1])
    return float((weight * he * f(r * z + math.sqrt(1 - r * r) * other)).sum())


def stein(lab: Any, point: Mapping[str, Any], seed: int, power: int = 1) -> float:
    """Return the relative violation of E[He_i(z) f(z')] = r E[He_{i-1}(z) f'(z')], for a random f of degree 7."""
    rng, worst = rng_of(lab, seed), 0.0
    f = np.polynomial.Polynomial(rng.normal(size=8))
    for i in range(1, 7):
        r = float(rng.uniform(-0.9, 0.9))
        left, right = correlated(i, f, r), r**power * correlated(i - 1, f.deriv(), r)
        worst = max(worst, abs(left - right) / (1 + abs(left)))
    return worst


def pairing(lab: Any, point: Mapping[str, Any], seed: int, power: int = 0) -> float:
    """Return the relative violation of E[He_i(z) He_j(z')] = delta_ij i! r^i."""
    rng, worst = rng_of(lab, seed), 0.0
    for i in range(7):
        for j in range(7):
            r = float(rng.uniform(-0.9, 0.9))
            found = correlated(i, lambda v, j=j: np.polynomial.hermite_e.hermeval(v, [0] * j + [1]), r)
            expected = math.factorial(i) * r ** (i + power) if i == j else 0.0
            worst = max(worst, abs(found - expected) / math.factorial(max(i, j)))
    return worst


def expansion(lab: Any, point: Mapping[str, Any], seed: int, scale: float = 1.0) -> float:
    """Return the largest coefficient of f - sum <f, He_i> He_i / i! for a random polynomial of degree 8."""
    from numpy.polynomial import hermite_e

    f = rng_of(lab, seed).normal(size=9)
    x, w = gauss(30)
    values = np.polynomial.polynomial.polyval(x, f)
    projections = [(w * values * hermite_e.hermeval(x, [0] * i + [1])).sum() for i in range(9)]
    rebuilt = hermite_e.herme2poly([scale * p / math.factorial(i) for i, p in enumerate(projections)])
    return float(np.abs(rebuilt - f).max())


def shift_rules(lab: Any, point: Mapping[str, Any], seed: int, off: int = 1) -> dict[str, float]:
    """Return the largest violations of two properties of shifted coefficients.

    The closed forms are compared with quadrature, and d alpha_i/dt = sqrt(i+1) alpha_{i+1} with central differences.
    """
    name, series = point["activation"], (0.1, 0.3, -0.4, 0.7, 0.5)
    worst = {"quadrature": 0.0, "rule": 0.0}
    for t in np.linspace(-2.5, 2.5, 9):
        z, w = half_line(-t) if name == "relu" else gauss(80)
        sigma = {
            "relu": lambda u: u,
            "polynomial": lambda u: sum(c * orthonormal(n, u) for n, c in enumerate(series)),
            "erf": lambda u: np.vectorize(math.erf)(u / math.sqrt(2)),
            "exp": np.exp,
            "cos": np.cos,
            "probit": lambda u: 0.5 + 0.5 * np.vectorize(math.erf)(u / math.sqrt(2)),
        }[name]
        for i in range(8):
            found = float(coefficient(name, i, t, series))
            exact = float((w * sigma(z + t) * orthonormal(i, z)).sum())
            worst["quadrature"] = max(worst["quadrature"], abs(found - exact) / (1 + abs(exact)))
            step = 1e-4
            difference = float(coefficient(name, i, t + step, series) - coefficient(name, i, t - step, series)) / (
                2 * step
            )
            rule = math.sqrt(i + off) * float(coefficient(name, i + 1, t, series))
            worst["rule"] = max(worst["rule"], abs(difference - rule) / (1 + abs(rule)))
    return worst


def tilde(lab: Any, point: Mapping[str, Any], seed: int, order: int | None = None) -> float:
    """Return the largest |shifted coefficient of the paper - alpha_i(s + b)| for ReLU, i = 2..6.

    `form` selects one of the forms in which the paper gives this coefficient.
    """
    worst, form = 0.0, point["form"]
    for s, b in ((0.4, -0.3), (0.2, 0.5), (-0.35, -0.8)):
        for i in range(2, 7):
            exact = float(coefficient("relu", i, s + b))
            if form == "series":
                found = 0.0
                for upper in range(i, i + 60):
                    alpha = float(coefficient("relu", upper + (order or 0), b))
                    log = 0.5 * (math.lgamma(i + 1) - math.lgamma(upper + 1))
                    binomial = math.comb(upper - 1, upper - i)
                    found += upper / i * alpha * math.exp(log) * binomial * s ** (upper - i)
            else:
                z, w = half_line(-(s + b))
                degree = i if form == "printed" else i - 1
                degree = degree if order is None else degree + order
                he = np.polynomial.hermite_e.hermeval(z, [0] * degree + [1])
                found = float((w * he).sum()) / math.sqrt(math.factorial(i))
            worst = max(worst, abs(found - exact))
    return worst


def bounded_coefficients(lab: Any, point: Mapping[str, Any], seed: int, power: float = 0.5) -> float:
    """Return max over t of i^power |alpha_i(t)| for ReLU."""
    return float(point["i"] ** power * np.abs(coefficient("relu", point["i"], np.linspace(-12, 12, 20001))).max())


CLAIMS = (
    Claim(
        "def-3.1", "The information exponent is the degree of the first Hermite coefficient that is not zero.",
        at("Definition 3.1"), exponent_mismatch, Proven("the first coefficient by quadrature"), once(seeds=60),
        break_measure(functools.partial(exponent_mismatch, off=1)), (1, 2, 9),
    ),
    Claim(
        "lem-A.2", "E[h_i h_j] = delta_ij for the normalised Hermite polynomials.", at("Lemma A.2"), orthonormality,
        Vanishes(1e-11), once(), break_measure(functools.partial(orthonormality, scale=1.01)), (2, 9),
    ),
    Claim(
        "lem-A.3.1", "He_i' = i He_{i-1}.", at("Lemma A.3 (1)"), derivative, Proven("He_i' = i He_{i-1}, i < 12,"),
        once(), break_measure(functools.partial(derivative, off=1)), (1, 9),
    ),
    Claim(
        "lem-A.3.2", "E[He_i(z) f(z')] = r E[He_{i-1}(z) f'(z')] for standard normal numbers of correlation r.",
        at("Lemma A.3 (2)"), stein, Vanishes(ROUND), once(seeds=4), break_measure(functools.partial(stein, power=2)),
        (2, 9), erratum="errata-14",
    ),
    Claim(
        "lem-A.3.3", "E[He_i(z) He_j(z')] = delta_ij i! r^i.", at("Lemma A.3 (3)"), pairing, Vanishes(ROUND),
        once(seeds=2), break_measure(functools.partial(pairing, power=1)), (2, 9),
    ),
    Claim(
        "lem-A.3.4", "f = sum_i <f, He_i> He_i / i!.", at("Lemma A.3 (4)"), expansion, Vanishes(1e-8), once(seeds=4),
        break_measure(functools.partial(expansion, scale=1.01)), (2, 9),
    ),
    Claim(
        "alpha-shift",
        "alpha_i(t) = E[sigma(Z + t) h_i(Z)] has d alpha_i/dt = sqrt(i+1) alpha_{i+1} and the closed forms in use.",
        at("Appendix B.1"), shift_rules,
        All({"quadrature": Vanishes(1e-10), "rule": Vanishes(1e-5)}),
        once(*({"activation": name} for name in ACTIVATIONS)), break_measure(functools.partial(shift_rules, off=2)),
        (1, 2, 9),
    ),
    Claim(
        "alpha-tilde", "The coefficient of Appendix C equals alpha_i(rho nu + b) of Appendix B.", at("Appendix C.1"),
        tilde, Vanishes(1e-9, refuted_above=1e-3), once(), break_measure(functools.partial(tilde, order=1)), (1, 2, 9),
        variants=(
            Variant("series", {"form": "series"}, "The coefficient is the series over the unshifted coefficients."),
            Variant("printed", {"form": "printed"}, "The coefficient is (1/sqrt i!) E[sigma' He_i].", "refuted"),
            Variant("corrected", {"form": "corrected"}, "The coefficient is (1/sqrt i!) E[sigma' He_{i-1}]."),
        ),
        control_variant="corrected", erratum="errata-2",
    ),
    Claim(
        "lem-C.10", "|alpha_i(t)| <= 1/sqrt(i) for ReLU, at every t.", at("Lemma C.10"), bounded_coefficients,
        Bounded(high=1.0 + 1e-12, meaning="sqrt(i) |alpha_i|"), once(*({"i": i} for i in range(1, 10))),
        break_law(high=0.9), (2, 9),
    ),
)  # fmt: skip

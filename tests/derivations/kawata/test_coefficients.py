"""Shifted Hermite coefficients: symbolic, of the statements, as arrays, the Hermite engine and quadrature agree."""

import dataclasses
import math

import numpy as np
import pytest
import sympy

from derivations.equations.interpreter import Evaluator
from derivations.kawata.parameters import ACTIVATIONS, Parameters
from derivations.kawata.shifted import shifted
from derivations.kawata.tiers import coefficients, flow
from hermite import functions

SERIES = (0.3, -0.2, 0.5, 0.7, 0.4, 0.2)
ENGINE = {
    "relu": lambda order, t: functions.relu(order, shift=t),
    "erf": lambda order, t: functions.erf(order, math.sqrt(0.5), shift=t),
    "exp": lambda order, t: functions.exponential(order, shift=t),
    "cos": lambda order, t: functions.cosine(order, shift=t),
    "probit": lambda order, t: functions.probit(order, shift=t),
}
POINTS = (-4.9, -1.0, -0.3, 0.0, 0.7, 3.1)


def by_arrays(name, t, a=1.0, top=10):
    values = shifted(np, ACTIVATIONS.index(name), np.array([a]), np.array([t]), np.array([SERIES]), top)
    return np.array(values)[:, 0]


@pytest.mark.parametrize("t", POINTS)
@pytest.mark.parametrize("name", sorted(ENGINE))
def test_closed_forms_equal_the_hermite_engine(name, t):
    expected = ENGINE[name](10, t).orthonormal
    np.testing.assert_allclose(by_arrays(name, t), expected, rtol=1e-11, atol=1e-14)


T = sympy.Symbol("t", real=True)
DENSITY = sympy.exp(-(T**2) / 2) / sympy.sqrt(2 * sympy.pi)


def normal(t):
    """Phi(t)."""
    return (1 + sympy.erf(t / sympy.sqrt(2))) / 2


SMOOTHED = {
    "relu": T * normal(T) + DENSITY,
    "polynomial": sum(c * T**n / sympy.sqrt(sympy.factorial(n)) for n, c in enumerate(SERIES)),
    "erf": sympy.erf(T / 2),
    "exp": sympy.exp(T + sympy.Rational(1, 2)),
    "cos": sympy.exp(-sympy.Rational(1, 2)) * sympy.cos(T),
    "probit": normal(T / sympy.sqrt(2)),
}
"""alpha_0(t) = E[sigma(Z + t)]; by Stein's identity alpha_i = (d/dt)^i alpha_0 / sqrt(i!)."""


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_derivatives_of_the_smoothed_activation_are_the_coefficients(name):
    exact = [sympy.diff(SMOOTHED[name], T, i) / sympy.sqrt(sympy.factorial(i)) for i in range(8)]
    for t in POINTS:
        values = [float(e.subs(T, sympy.Float(t, 40)).evalf(30)) if e != 0 else 0.0 for e in exact]
        np.testing.assert_allclose(by_arrays(name, t, top=7), values, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("low", [0, 3])
def test_the_kernel_of_the_statements_has_the_values_of_the_arrays(name, low):
    extra = {"sigma": SERIES} if name == "polynomial" else {}
    link = ((0.0,) * max(low, 1) + (1.0,) + (0.5,) * (6 - max(low, 1)),) * 3
    p = Parameters(C=2, d=100, activation=name, link=link, orthogonal=low > 0, **extra)
    statement = flow.statement(p, "exact")
    values = {"sigma": coefficients.padded(np.array(SERIES)), "width": len(SERIES)}
    kernels = coefficients.coefficients(p, low)
    evaluator = Evaluator(dataclasses.replace(statement, definitions=kernels, state=()), values)
    for t in POINTS:
        found = [float(evaluator.value(coefficients.alpha(i, sympy.Float(t, 17)))) for i in range(low, 8)]
        np.testing.assert_allclose(found, by_arrays(name, t, 1.0, 7)[low:], rtol=1e-12, atol=1e-15)


def test_polynomial_coefficients_equal_a_quadrature_of_the_definition(tools):
    x, w = np.polynomial.hermite_e.hermegauss(30)
    w = w / w.sum()
    for t in POINTS:
        expected = [np.sum(w * tools.series(SERIES, x + t) * tools.series([0] * i + [1], x)) for i in range(8)]
        np.testing.assert_allclose(by_arrays("polynomial", t, top=7), expected, rtol=1e-11, atol=1e-11)


def test_the_paper_s_closed_form_of_the_shifted_coefficient_is_off_by_one_index():
    # (1/sqrt(4!)) E[sigma'(Z + s + b) He_4(Z)] for ReLU at s + b = 0.1 is sqrt(5) alpha_5, not alpha_4.
    t, top = 0.1, 6
    alpha = by_arrays("relu", t, top=top)
    x, w = np.polynomial.legendre.leggauss(200)
    z = (x + 1) * 6 - t
    density = np.exp(-z * z / 2) / math.sqrt(2 * math.pi) * 6 * w
    printed = np.sum(density * np.polynomial.hermite_e.hermeval(z, [0, 0, 0, 0, 1])) / math.sqrt(24)
    corrected = np.sum(density * np.polynomial.hermite_e.hermeval(z, [0, 0, 0, 1])) / math.sqrt(24)
    assert printed == pytest.approx(math.sqrt(5) * alpha[5], abs=1e-10)
    assert corrected == pytest.approx(alpha[4], abs=1e-10)
    assert printed == pytest.approx(0.024227, abs=1e-6) and alpha[4] == pytest.approx(-0.080217, abs=1e-6)

"""Shifted Hermite coefficients: symbolic, compiled, array form, the Hermite engine and quadrature agree."""

import math

import numpy as np
import pytest
import sympy

from derivations.kawata import kernels, loops
from derivations.kawata.arrays import shifted
from derivations.kawata.parameters import ACTIVATIONS
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


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_derivatives_of_the_smoothed_activation_are_the_coefficients(name):
    exact = [kernels.shifted_coefficient(name, i, SERIES if name == "polynomial" else ()) for i in range(8)]
    for t in POINTS:
        values = [float(e.subs(kernels.T, sympy.Float(t, 40)).evalf(30)) if e != 0 else 0.0 for e in exact]
        np.testing.assert_allclose(by_arrays(name, t, top=7), values, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("low", [0, 3])
def test_loops_and_arrays_agree(name, low):
    top = 9
    for t in POINTS:
        table = np.zeros((top + 1, 1))
        loops.shifted(ACTIVATIONS.index(name), -0.8, t, np.array(SERIES), low, top, table, 0)
        np.testing.assert_allclose(table[low:, 0], by_arrays(name, t, -0.8, top)[low:], rtol=1e-12, atol=1e-15)


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

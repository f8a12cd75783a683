"""Correlation functions against quadrature in the plane, closed forms and long series."""

import math
from functools import cache
from itertools import product

import jax
import numpy as np
import pytest

from hermite import functions, quadrature
from hermite.correlation import Correlations, CorrelationTable, for_gate
from hermite.errors import DegreeError, DomainError, NotReached, ShapeError

jax.config.update("jax_enable_x64", True)

PAIRS = [(a, b) for s in (0, 2, 4, 6, 8) for a in range(s + 1) for b in [s - a] if a <= b and (a, b) != (0, 8)]
GATE = Correlations(functions.logistic(129))
# Computed outside this package.
VALUES = {
    (0, 0, 1.0): 0.293379035858093,
    (1, 1, 1.0): 0.0448362413501944,
    (1, 3, 0.5): -0.0134161014432132,
    (4, 4, 1.0): 0.00830617228823688,
    (2, 6, 0.9): 0.0108345021981198,
    (1, 7, 1.0): -0.0419528724808289,
    (3, 5, 0.9): -0.00891744744734948,
}


def logistic_derivative(j, x, beta=1.0):
    """The j-th derivative of the logistic function, by its polynomial in p."""
    return beta**j * in_p(j)(1 / (1 + np.exp(-beta * x)))


@cache
def in_p(j):
    """The polynomial with dp/dx = p (1 - p)."""
    return np.polynomial.Polynomial([0, 1, -1]) * in_p(j - 1).deriv() if j else np.polynomial.Polynomial([0, 1])


def plane(a, b, rho, beta=1.0, nodes=150):
    """E[f^(a) f^(b)] by a two-dimensional Gauss-Hermite rule."""

    def integrand(x):
        return logistic_derivative(a, x[0], beta) * logistic_derivative(b, x[1], beta)

    return quadrature.expectation(integrand, [[1.0, rho], [rho, 1.0]], nodes=nodes)


@pytest.mark.parametrize("key", VALUES)
def test_reference_values_are_reproduced(key):
    a, b, rho = key
    assert abs(float(GATE.evaluate(a, b, rho)) - VALUES[key]) < 1e-13


@pytest.mark.parametrize("pair", PAIRS)
def test_correlations_agree_with_quadrature_in_the_plane(pair):
    for rho in (-0.8, 0.35, 1.0):
        # the poles at +-i pi limit 150 nodes to about 1e-12 for eight derivatives
        assert float(GATE.evaluate(*pair, rho)) == pytest.approx(plane(*pair, rho), abs=3e-11)


def test_values_at_one_have_closed_forms():
    c = functions.logistic(9).derivative_means
    # p (1-p) = p'; p'^2 = (p' - p''') / 6 for the logistic function
    assert float(GATE.evaluate(0, 0, 1.0)) == pytest.approx(0.5 - c[1], abs=1e-13)
    assert float(GATE.evaluate(1, 1, 1.0)) == pytest.approx((c[1] - c[3]) / 6, abs=1e-13)
    assert float(GATE.evaluate(0, 0, -1.0)) == pytest.approx(c[1], abs=1e-13)


def test_the_probit_gate_gives_the_arcsine():
    rho = np.linspace(-1, 1, 41)
    table = for_gate("probit", 1.0, [(0, 0), (1, 1)])
    values = table.evaluate(rho)
    assert np.abs(values[:, 0] - (0.25 + np.arcsin(rho / 2) / (2 * np.pi))).max() < 1e-13
    assert np.abs(values[:, 1] - 1 / (2 * np.pi * np.sqrt(4 - rho**2))).max() < 1e-13


def test_the_error_function_gives_its_arcsine_at_any_scale():
    rho = np.linspace(-1, 1, 21)
    values = for_gate("erf", 0.6, [(0, 0)]).evaluate(rho)[:, 0]
    assert np.abs(values - 2 / np.pi * np.arcsin(0.72 * rho / 1.72)).max() < 1e-13


def test_sixty_odd_terms_suffice_for_the_logistic_gate():
    table = GATE.table(PAIRS)
    assert table.coefficients.shape == (14, table.coefficients.shape[1])
    assert 55 <= table.coefficients.shape[1] <= 70
    assert table.pairs == tuple(PAIRS)
    assert np.all(table.truncation <= 1e-13)


def test_hotter_gates_choose_a_longer_expansion():
    table = for_gate("logistic", 1.7, PAIRS)
    assert table.coefficients.shape[1] > 150
    x = np.arange(-14, 14, 0.02)
    weight = 0.02 * np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
    for i, (a, b) in enumerate(PAIRS):
        exact = math.fsum(weight * logistic_derivative(a, x, 1.7) * logistic_derivative(b, x, 1.7))
        # the polynomials in p cancel a few digits where the derivative is small
        assert table.evaluate(1.0)[i] == pytest.approx(exact, rel=2e-12, abs=2e-13)
    for a, b in [(0, 0), (1, 1), (0, 2)]:
        # the rule in the plane limits this: its error halves every ten nodes for poles at i pi / 1.7
        assert float(table.correlations.evaluate(a, b, 0.6)) == pytest.approx(plane(a, b, 0.6, 1.7), abs=1e-8)


def test_a_gate_too_sharp_is_refused_with_the_bound_reached():
    with pytest.raises(NotReached, match="order 1200"):
        for_gate("logistic", 12.0, [(0, 0)])
    with pytest.raises(DomainError, match="logistic"):
        for_gate("relu", 1.0, [(0, 0)])


@pytest.mark.parametrize("pair", [(0, 0), (1, 1), (0, 2), (1, 3), (3, 3)])
def test_prices_rule_holds_coefficient_by_coefficient(pair):
    a, b = pair
    lower = GATE.coefficients(a, b, 60)
    upper = GATE.coefficients(a + 1, b + 1, 59)
    # each coefficient is a product of a + b + 2 roots, so a few ulp
    assert np.allclose(lower[1:] * np.arange(1, 60), upper, rtol=5e-15, atol=0)


@pytest.mark.parametrize("pair", [(0, 0), (0, 2), (2, 2), (1, 3)])
def test_prices_rule_holds_by_finite_differences(pair):
    a, b = pair
    step = 1e-3
    rho = np.array([-2, -1, 1, 2]) * step + 0.4
    slope = GATE.evaluate(a, b, rho) @ np.array([1, -8, 8, -1]) / (12 * step)
    # fourth order: step^4 times a fifth derivative below 1, and 1e-13 / step of rounding
    assert slope == pytest.approx(float(GATE.evaluate(a + 1, b + 1, 0.4)), abs=1e-10)


@pytest.mark.parametrize(("make", "order"), [(functions.logistic, 45), (functions.probit, 31), (functions.tanh, 60)])
def test_the_truncation_bound_bounds(make, order):
    short, long = Correlations(make(order, 1.0)), Correlations(make(701, 1.0))
    for (a, b), rho in product([(0, 0), (1, 1), (0, 2), (1, 3), (4, 4), (1, 7)], (0.7, 1.0)):
        exact = long.coefficients(a, b, 690)
        power = rho ** np.arange(690)
        for terms in (0, 5, 12, order - max(a, b) + 1):
            error = abs(math.fsum(exact[terms:] * power[terms:]))
            bound = short.truncation(a, b, terms, rho)
            assert error <= bound * (1 + 1e-12) + 1e-300
            # a bound of use: within a factor of the sum of absolute values where it is finite
            absolute = math.fsum(np.abs(exact[terms:] * power[terms:]))
            assert bound <= 60 * absolute or a + b >= 6


def test_terms_needed_are_the_least_that_meet_the_bound():
    for a, b in [(0, 0), (1, 3), (4, 4)]:
        terms = GATE.terms_needed(a, b, 1e-10)
        assert GATE.truncation(a, b, terms) <= 1e-10 < GATE.truncation(a, b, terms - 1)
        assert GATE.terms_needed(a, b, 1e-10, rho=0.5) < terms


def test_two_different_functions_correlate():
    pair = Correlations(functions.exponential(60, 0.4), functions.cosine(60, 0.9, 0.3))
    # E[e^{a x} cos(w y + p)] = e^{(a^2 - w^2) / 2} cos(p + a w rho)
    rho = np.linspace(-1, 1, 9)
    expected = math.exp((0.16 - 0.81) / 2) * np.cos(0.3 + 0.36 * rho)
    assert np.abs(pair.evaluate(0, 0, rho) - expected).max() < 1e-13
    slope = 0.4 * -0.9 * math.exp((0.16 - 0.81) / 2) * np.sin(0.3 + 0.36 * rho)
    assert np.abs(pair.evaluate(1, 1, rho) - slope).max() < 1e-13


def test_polynomials_give_finite_series():
    cubic = Correlations(functions.polynomial([0, 0, 0, 1]), functions.polynomial([0, 1, 0, 2]))
    # x^3 = He_3 + 3 He_1; 2 x^3 + x = 2 He_3 + 7 He_1
    assert np.allclose(cubic.coefficients(0, 0, 6), [0, 21, 0, 12, 0, 0], rtol=1e-15, atol=0)
    assert cubic.truncation(0, 0, 4) == 0.0
    assert float(cubic.evaluate(5, 0, 0.3)) == 0.0


def test_rectifiers_correlate_to_the_arc_cosine_kernel_away_from_one():
    gate = Correlations(functions.relu(400))
    rho = np.array([-0.6, 0.1, 0.8])
    theta = np.arccos(rho)
    kernel = (np.sin(theta) + (np.pi - theta) * rho) / (2 * np.pi)
    assert np.abs(gate.evaluate(0, 0, rho) - kernel).max() < 1e-13
    assert np.abs(gate.evaluate(1, 1, rho) - (np.pi - theta) / (2 * np.pi)).max() < 1e-13
    with pytest.raises(NotReached):
        gate.evaluate(1, 1, 1.0)


def test_parity_tells_even_odd_and_neither():
    assert GATE.table([(0, 0), (1, 1), (0, 2), (1, 3), (0, 1)]).parity == (1, 0, 1, 0, 0)
    mixed = Correlations(functions.exponential(60, 0.5)).table([(0, 0)])
    assert mixed.parity == (-1,)
    table = GATE.table(PAIRS)
    rho = np.linspace(0, 1, 7)
    forward, backward = table.evaluate(rho) - table.constants, table.evaluate(-rho) - table.constants
    signs = np.where(np.array(table.parity) == 1, -1, 1)
    assert np.abs(forward - signs * backward).max() < 1e-16


@pytest.mark.parametrize("which", ["gate", "hot", "mixed"])
def test_the_three_evaluators_agree(which):
    table = {
        "gate": lambda: GATE.table(PAIRS),
        "hot": lambda: for_gate("logistic", 1.7, [(0, 0), (1, 1), (0, 2)]),
        "mixed": lambda: Correlations(functions.exponential(60, 0.5), functions.logistic(101)).table([(0, 0), (1, 0)]),
    }[which]()
    rho = np.linspace(-1, 1, 23).reshape(1, 23)
    expected = table.evaluate_numpy(rho)
    assert expected.shape == (1, 23, len(table.pairs))
    compiled, out = table.numba(), np.full(len(table.pairs), np.nan)
    for i, value in enumerate(rho[0]):
        compiled(value, out)
        assert np.abs(out - expected[0, i]).max() <= 1e-15
    assert np.abs(np.asarray(jax.jit(table.jax())(rho)) - expected).max() <= 1e-15
    powers = rho[..., None] ** np.arange(table.coefficients.shape[1])
    assert np.abs(powers @ table.coefficients.T - expected).max() <= 1e-14


def test_jax_differentiates_to_the_next_pair():
    table = GATE.table([(0, 0), (1, 1)])
    f = table.jax()
    assert float(jax.grad(lambda r: f(r)[0])(0.37)) == pytest.approx(float(f(0.37)[1]), abs=1e-13)


def test_correlations_outside_the_unit_interval_are_refused():
    for value in (1.0 + 1e-12, -1.5, math.nan):
        with pytest.raises(DomainError, match="-1 <= rho <= 1"):
            GATE.evaluate(0, 0, value)
        with pytest.raises(DomainError):
            GATE.table([(0, 0)]).evaluate([0.0, value])
    with pytest.raises(DomainError):
        GATE.truncation(0, 0, 3, rho=1.5)


def test_short_expansions_and_empty_requests_are_refused():
    short = Correlations(functions.logistic(15))
    with pytest.raises(NotReached, match="expand further"):
        short.coefficients(1, 3, 40)
    with pytest.raises(NotReached, match="got"):
        short.evaluate(0, 0, 1.0)
    with pytest.raises(DegreeError):
        short.table([])
    with pytest.raises(DegreeError):
        short.coefficients(-1, 0, 3)
    with pytest.raises(ShapeError):
        GATE.table([(0, 0)]).index(1, 1)
    with pytest.raises(ShapeError):
        CorrelationTable(((0, 0),), np.zeros((2, 3)), (0,), np.zeros(1))


@pytest.mark.parametrize("name", ["silu", "softplus"])
def test_gates_without_parity_agree_with_panels(name):
    from hermite.means import factor, mean

    pairs = [(0, 0), (1, 1), (0, 2)]
    table = for_gate(name, 1.3, pairs)
    for rho in (0.0, 0.3, -0.9, 1.0):
        values = table.evaluate(rho)
        for i, orders in enumerate(pairs):
            factors = [factor(name, scale=1.3, order=order) for order in orders]
            expected = 1.3 ** sum(orders) * mean(factors, [[1.0, rho], [rho, 1.0]]).value
            assert values[i] == pytest.approx(expected, rel=0, abs=2e-13)

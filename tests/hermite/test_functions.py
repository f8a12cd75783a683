"""The catalogue against mpmath quadrature, moment by moment and coefficient by coefficient."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy

from hermite import functions, quadrature
from hermite.errors import DomainError, ShapeError, TooLarge
from hermite.quadrature import coefficient_mpmath

# Computed with 40 digits outside this package.
LOGISTIC = {
    1: 0.20662096414190703726,
    3: -0.062396483959259193493,
    5: 0.064379973249044120669,
    7: -0.12258043626292642735,
    21: 30534.587091214230787,
    41: 78895798404797903.069,
    65: 2.0438646870964952067e35,
}


def reference(f, k, breakpoints=None):
    """a_k by mpmath."""
    c = coefficient_mpmath(f, k, 20, breakpoints, depth=30)
    return float(c / mpmath.sqrt(mpmath.factorial(k)))


def check(e, f, orders, relative=1e-13, breakpoints=None):
    """Every order within its error bound, and within the relative accuracy unless it is tiny."""
    for k in orders:
        expected = reference(f, k, breakpoints)
        gap = abs(e.orthonormal[k] - expected)
        # one ulp for rounding the reference
        assert gap <= e.error[k] + 2.3e-16 * abs(expected) + 1e-25, (k, gap, e.error[k])
        assert gap <= relative * max(abs(expected), 1e-3), (k, gap, expected)


def test_logistic_reproduces_the_reference_values():
    c = functions.logistic(65).derivative_means
    for k, value in LOGISTIC.items():
        assert c[k] == pytest.approx(value, rel=1e-14), k
    assert np.count_nonzero(c[2::2]) == 0 and c[0] == 0.5


@pytest.mark.parametrize(
    ("beta", "orders"), [(1.0, (1, 3, 21, 65, 129)), (1.7, (1, 65)), (0.5, (3, 41)), (4.0, (1, 65))]
)
def test_logistic_agrees_with_mpmath_to_thirteen_digits(beta, orders):
    e = functions.logistic(129, beta)
    for k in orders:
        expected = reference(lambda x: 1 / (1 + mpmath.exp(-mpmath.mpf(beta) * x)), k)
        assert e.orthonormal[k] == pytest.approx(expected, rel=1e-13, abs=0)
        assert abs(e.orthonormal[k] - expected) <= e.error[k] <= 1e-13 * abs(expected)


@pytest.mark.parametrize("beta", [0.05, 20.0])
def test_logistic_holds_at_the_ends_of_the_temperature_range(beta):
    check(functions.logistic(31, beta), lambda x: 1 / (1 + mpmath.exp(-mpmath.mpf(beta) * x)), (1, 3))
    e = functions.logistic(31, beta)
    expected = reference(lambda x: 1 / (1 + mpmath.exp(-mpmath.mpf(beta) * x)), 9)
    assert e.orthonormal[9] == pytest.approx(expected, rel=1e-13, abs=0)


def test_logistic_satisfies_parseval_at_order_one_thousand():
    e = functions.logistic(1001, 2.0)
    for j in (0, 1, 4):
        k = np.arange(j, 1002)
        falling = np.array([float(math.perm(int(i), j)) for i in k])
        assert math.fsum(e.orthonormal[k] ** 2 * falling) == pytest.approx(e.moment(j), rel=1e-13)


CATALOGUE = [
    (functions.probit(24, 1.3), lambda x: mpmath.ncdf(mpmath.mpf(1.3) * x), None),
    (
        functions.probit(24, 0.8, shift=0.6),
        lambda x: mpmath.ncdf(mpmath.mpf(0.8) * (x + mpmath.mpf(0.6))),
        None,
    ),
    (functions.erf(24, 0.9), lambda x: mpmath.erf(mpmath.mpf(0.9) * x), None),
    (functions.erf(24, 0.7, shift=-0.4), lambda x: mpmath.erf(mpmath.mpf(0.7) * (x - mpmath.mpf(0.4))), None),
    (functions.tanh(24, 0.8), lambda x: mpmath.tanh(mpmath.mpf(0.8) * x), None),
    (functions.relu(24, 0.35), lambda x: max(x + mpmath.mpf(0.35), mpmath.mpf(0)), [-mpmath.mpf(0.35)]),
    (functions.relu(24, 0.5, shift=-3.0), lambda x: max(x - mpmath.mpf(2.5), mpmath.mpf(0)), [2.5]),
    (
        functions.exponential(24, 0.9, shift=-0.7),
        lambda x: mpmath.exp(mpmath.mpf(0.9) * (x - mpmath.mpf(0.7))),
        None,
    ),
    (
        functions.cosine(24, 1.2, 0.4, shift=0.5),
        lambda x: mpmath.cos(mpmath.mpf(1.2) * (x + mpmath.mpf(0.5)) + mpmath.mpf(0.4)),
        None,
    ),
    (
        functions.sine(24, 1.2, 0.4, shift=0.5),
        lambda x: mpmath.sin(mpmath.mpf(1.2) * (x + mpmath.mpf(0.5)) + mpmath.mpf(0.4)),
        None,
    ),
    (functions.step(24, shift=0.5), lambda x: mpmath.mpf(x > -0.5), [-0.5]),
    (functions.sign(24, shift=0.25), lambda x: mpmath.sign(x + 0.25), [-0.25]),
    (functions.absolute(24, shift=-1.5), lambda x: abs(x - mpmath.mpf(1.5)), [1.5]),
    (functions.gelu(24, 1.5, shift=-0.5), lambda x: 1.5 * (x - 0.5) * mpmath.ncdf(1.5 * (x - 0.5)), None),
    (functions.softplus(24, 0.8), lambda x: mpmath.log(1 + mpmath.exp(mpmath.mpf(0.8) * x)), None),
    (functions.silu(24, 1.3), lambda x: mpmath.mpf(1.3) * x / (1 + mpmath.exp(-mpmath.mpf(1.3) * x)), None),
]


@pytest.mark.parametrize(("e", "f", "breakpoints"), CATALOGUE, ids=lambda x: getattr(x, "name", ""))
def test_closed_forms_agree_with_mpmath(e, f, breakpoints):
    check(e, f, (0, 1, 2, 3, 6, 11, 24), relative=2e-13, breakpoints=breakpoints)


@pytest.mark.parametrize(("e", "f", "breakpoints"), CATALOGUE, ids=lambda x: getattr(x, "name", ""))
def test_moments_of_derivatives_agree_with_quadrature(e, f, breakpoints):
    # 100 nodes of Gauss and Legendre on either side of a cut: mpmath's rule refines where a derivative is noisy.
    nodes, weights = np.polynomial.legendre.leggauss(100)
    cuts = [-14.0, *map(float, breakpoints or [0]), 14.0]
    halves = [(high - low) / 2 for low, high in itertools.pairwise(cuts)]
    x = np.concatenate([low + half * (1 + nodes) for low, half in zip(cuts, halves, strict=False)])
    weights = np.concatenate([half * weights for half in halves]) * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    with mpmath.workdps(25):
        for j in {"relu": (0, 1), "abs": (0, 1), "step": (0,), "sign": (0,)}.get(e.name, (0, 1, 3)):
            derivative = (lambda x, j=j: mpmath.diff(f, x, j)) if j else f
            if e.name == "relu" and j == 1:
                edge = breakpoints[0]
                derivative = lambda x, edge=edge: mpmath.mpf(x > edge)  # noqa: E731
            value = weights @ [float(derivative(mpmath.mpf(point))) ** 2 for point in x]
            # numerical derivatives keep about 12 digits at third order
            assert e.moment(j) == pytest.approx(value, rel=1e-11)


def test_every_function_agrees_with_direct_gauss_hermite_sums():
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / math.sqrt(2 * math.pi)
    f = 0.5 - 1.5 * (nodes + 0.25) + 2 * (nodes + 0.25) ** 4
    e = functions.polynomial([Fraction(1, 2), sympy.Rational(-3, 2), 0, 0, 2.0], shift=0.25)
    for k in range(5):
        he = np.polynomial.hermite_e.HermiteE.basis(k)(nodes)
        assert e.derivative_means[k] == pytest.approx(float(np.sum(weights * f * he)), rel=1e-12)
    assert e.moment(0) == pytest.approx(float(np.sum(weights * f * f)), rel=1e-12)
    slope = -1.5 + 8 * (nodes + 0.25) ** 3
    assert e.moment(1) == pytest.approx(float(np.sum(weights * slope**2)), rel=1e-12)


def test_moments_of_the_catalogue_obey_parseval():
    for e in [
        functions.probit(600, 1.5),
        functions.probit(600, 1.5, shift=0.8),
        functions.erf(600, 1.0, shift=0.8),
        functions.tanh(900, 1.0),
        functions.exponential(80, 1.3, shift=0.2),
        functions.cosine(80, 2.0, 0.3),
        functions.hermite_series([0.1, -2.0, 0.3, 1.1]),
    ]:
        for j in (0, 1, 2):
            falling = np.array([float(math.perm(k, j)) for k in range(e.order + 1)])
            assert math.fsum(e.orthonormal**2 * falling) == pytest.approx(e.moment(j), rel=1e-11), (e.name, j)


def test_remainders_bound_the_coefficients_left_out_without_cancellation():
    for make in (functions.logistic, functions.tanh, functions.probit, functions.erf):
        for order in (20, 61):
            short, long = make(order, 1.2), make(901, 1.2)
            for j in (0, 1, 4, 7):
                left = math.sqrt(sum(long.orthonormal[k] ** 2 * math.perm(k, j) for k in range(order + 1, 902)))
                assert left <= short.remainder(j) * (1 + 1e-12)
                # a bound that is of use: infinite only where the argument does not apply
                assert short.remainder(j) <= 6 * left or short.remainder(j) == math.inf
    assert math.isfinite(functions.logistic(61, 1.2).remainder(7))


def test_remainders_of_softplus_and_silu_follow_from_the_logistic_function():
    for make, widest in ((functions.softplus, 2), (functions.silu, 20)):
        for order in (20, 61):
            short, long = make(order, 1.2), make(901, 1.2)
            for j in (0, 1, 4, 7):
                left = math.sqrt(sum(long.orthonormal[k] ** 2 * math.perm(k, j) for k in range(order + 1, 902)))
                assert left <= short.remainder(j) <= widest * left


def test_parities_are_those_of_the_functions():
    assert functions.logistic(4).parity == functions.probit(4).parity == "odd+constant"
    assert functions.tanh(4).parity == functions.erf(4).parity == "odd"
    assert functions.cosine(4).parity == functions.absolute(4).parity == "even"
    assert functions.sine(4).parity == functions.sign(4).parity == "odd" and functions.step(4).parity == "odd+constant"
    assert functions.relu(4).parity is None and functions.erf(4, shift=0.1).parity is None
    assert functions.polynomial([0, 1, 0, 5]).parity == "odd"


def test_zeros_of_a_biased_rectifier_are_marked_exactly():
    # He_2(1) = 0 and He_3(0) = 0
    assert functions.relu(6, 1.0).zero.tolist() == [False, False, False, False, True, False, False]
    assert functions.relu(6).zero.tolist() == [False, False, False, True, False, True, False]
    assert not functions.relu(6, 0.5).zero.any()


def test_a_polynomial_may_be_padded_or_cut():
    padded = functions.polynomial([0, 0, 1], 4)
    assert padded.order == 4 and padded.exact and padded.orthonormal[4] == 0
    cut = functions.polynomial([0, 0, 0, 1], 1)
    assert not cut.exact and cut.tail() == pytest.approx(math.sqrt(6), rel=1e-14)


def test_a_zero_rate_or_frequency_is_an_exact_constant():
    assert functions.exponential(3, 0.0).orthonormal.tolist() == [1.0, 0.0, 0.0, 0.0]
    assert functions.exponential(3, 0.0).exact and functions.cosine(3, 0.0).exact


@pytest.mark.parametrize("name", sorted(set(functions.NAMES) - {"polynomial", "hermite_series"}))
@pytest.mark.parametrize("order", [0, 1, 2, 5])
def test_every_name_gives_the_order_asked_as_a_prefix_of_a_longer_one(name, order):
    short, long = functions.NAMES[name](order), functions.NAMES[name](12)
    assert short.order == order
    assert np.allclose(short.orthonormal, long.orthonormal[: order + 1], rtol=1e-14, atol=0)


def test_bad_parameters_are_refused():
    for make in (functions.logistic, functions.probit, functions.erf, functions.tanh):
        for value in (0.0, -1.0, math.nan, math.inf):
            with pytest.raises(DomainError, match="> 0"):
                make(3, value)
    with pytest.raises(DomainError):
        functions.cosine(3, math.nan)
    with pytest.raises(TooLarge):
        functions.exponential(3, 30.0)
    with pytest.raises(ShapeError):
        functions.polynomial([])
    with pytest.raises(DomainError):
        functions.logistic(100_000)


def test_monte_carlo_sees_the_same_constant():
    mean, standard_error = quadrature.monte_carlo(lambda x: np.maximum(x[0] + 0.3, 0), [[1.0]], 200_000, seed=1)
    assert abs(mean - functions.relu(0, 0.3).orthonormal[0]) < 4 * standard_error

"""Gaussian means of every row of the table against independent references; bounds that hold on random covariances."""

import math

import mpmath
import numpy as np
import pytest

from hermite import means, quasi
from hermite.errors import DomainError, NotReached, ShapeError
from hermite.means import factor

from . import means_reference as reference
from .means_rows import ROWS

# of the costly references fewer
FEW = {"plackett": 10, "smooth": 8, "rough": 8, "gates": 10, "unit_gates": 15}
MANY = 10_000
"""Random covariances of every row, nearly and wholly singular ones among them: one to ten minutes a row on one core."""
METHODS = {
    "polynomials": {"lemma"},
    "single": {"derivative means", "closed form"},
    "pairs": {"closed form", "derivative means"},
    "waves": {"closed form", "derivative means"},
    "gates": {"panels", "correlation", "correlation + panels"},
    "unit_gates": {"correlation", "panels"},
    "error_functions": {"closed form"},
    "kinks": {"closed form"},
    "plackett": {"plackett", "closed form"},
    "smooth": {"tensor", "series", "quasi-random", "closed form", "plackett"},
    "rough": {"series", "quasi-random"},
}


UNMET = 1e-70
"""Errors count what stands up to 18 deviations away: a step that opens beyond, once in 10^72, is 0 without an error."""


def bounds_hold(row: str, count: int, seed: int) -> None:
    """Every answer within its error of the reference (and the rounding of the latter), by a method of the row."""
    for i in range(count):
        arguments, truth, slack = ROWS[row](np.random.default_rng([seed, i]))
        answer = means.mean(*arguments)
        gap = float(abs(answer.value - truth))
        assert gap <= answer.error + slack + UNMET, (
            i,
            [f.name for f in arguments[0]],
            answer,
            float(truth),
            gap,
            slack,
        )
        assert answer.method in METHODS[row]


@pytest.mark.parametrize("row", ROWS)
def test_the_error_bound_holds_on_random_covariances(row):
    bounds_hold(row, FEW.get(row, 200), 0)


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS)
def test_the_error_bound_holds_on_many_random_covariances(row):
    bounds_hold(row, MANY, 1)


@pytest.mark.parametrize("number", [3083, 9890])
def test_a_variable_that_hardly_varies_keeps_its_bound(number):
    # Two of 10,000 random cases: a deviation of 1e-3 beside one of 1.4, which rounding moves by ulps of the latter.
    arguments, truth, slack = ROWS["smooth"](np.random.default_rng([1, number]))
    answer = means.mean(*arguments)
    assert answer.method == "tensor"
    assert abs(answer.value - truth) <= answer.error + slack
    assert answer.error <= 1e-10 * abs(truth)  # and stays of use


@pytest.mark.parametrize("number", [461, 955])
def test_a_mean_that_no_point_has_met_keeps_its_bound(number):
    # Of the order 1e-10 and below: steps and rectifiers that are hardly ever all open.
    arguments, truth, slack = ROWS["rough"](np.random.default_rng([1, number]))
    answer = means.mean(*arguments)
    assert answer.method == "quasi-random" and 0 < truth < 1e-9
    assert abs(answer.value - truth) <= answer.error + slack


@pytest.mark.parametrize("mean", [-9.8, -11.0, -14.0])
@pytest.mark.parametrize("count", [2, 3])
def test_a_step_that_opens_beyond_the_panels_is_in_the_error(mean, count):
    """P(all of independent normals > -mean) is some 1e-44 or less, and 0 to panels of 9.75 deviations."""
    factors = [means.factor("step")] * 2 + [means.factor("logistic")] * (count - 2)
    answer = means.mean(factors, np.eye(count), [mean, mean, 0.0][:count])
    truth = float(mpmath.ncdf(mean)) ** 2 * 0.5 ** (count - 2)
    assert 0 < truth <= answer.value + answer.error


MP = {
    "relu": lambda u: max(u, mpmath.mpf(0)),
    "step": lambda u: mpmath.mpf(u > 0),
    "gelu": lambda u: u * mpmath.ncdf(u),
    "erf": mpmath.erf,
    "tanh": mpmath.tanh,
    "logistic": lambda u: 1 / (1 + mpmath.exp(-u)),
    "silu": lambda u: u / (1 + mpmath.exp(-u)),
    "softplus": lambda u: mpmath.log(1 + mpmath.exp(u)),
    "cos": mpmath.cos,
}


def double_integral(names, covariance, mean):
    """E[f(z1) g(z2)] by mpmath, pieces cut where either argument crosses zero."""
    with mpmath.workdps(22):
        (v1, c), (_, v2) = [[mpmath.mpf(x) for x in row] for row in covariance]
        s1, rest = mpmath.sqrt(v1), mpmath.sqrt(v2 - c * c / v1)

        def inner(x):
            m = mean[1] + c / s1 * x
            cuts = sorted({-11, min(max(-m / rest, -10), 10), 11})
            return mpmath.quad(lambda t: MP[names[1]](m + rest * t) * mpmath.npdf(t), cuts, maxdegree=6)

        cuts = sorted({-11, -4, mpmath.mpf(-mean[0]) / s1, 4, 11})
        return mpmath.quad(lambda x: MP[names[0]](mean[0] + s1 * x) * inner(x) * mpmath.npdf(x), cuts, maxdegree=6)


@pytest.mark.slow
@pytest.mark.parametrize(("names", "rho"), [(("relu", "gelu"), 0.3), (("tanh", "silu"), -0.75)])
def test_two_factors_agree_with_integrals_in_twenty_digits(names, rho):
    covariance, mean = np.array([[1.5, rho], [rho, 0.75]]), np.array([0.25, -0.5])
    answer = means.mean([factor(name) for name in names], covariance, mean)
    assert abs(answer.value - double_integral(names, covariance, mean)) <= answer.error + 1e-16


@pytest.mark.parametrize("order", [0, 1, 2, 3])
@pytest.mark.parametrize("name", ["relu", "erf", "tanh", "silu", "gelu", "cos", "softplus", "abs", "exp"])
def test_derivatives_are_those_of_the_mean_in_the_shift(name, order):
    # d/dm E[f(z + m) g(y)] = E[f'(z + m) g(y)], by differences of the order below
    covariance, step = [[1.0, 0.6], [0.6, 2.0]], 1e-4

    def at(m, r):
        return means.mean([factor(name, shift=m, order=r), factor("probit")], covariance).value

    slope = (
        8 * (at(0.3 + step, order) - at(0.3 - step, order)) - at(0.3 + 2 * step, order) + at(0.3 - 2 * step, order)
    ) / (12 * step)
    assert at(0.3, order + 1) == pytest.approx(slope, rel=1e-8, abs=1e-9)


def test_price_holds_for_four_rectifiers():
    c = np.eye(4) + 0.25 * (np.ones((4, 4)) - np.eye(4))
    step, moved = 1e-5, []
    for side in (1, -1):
        other = c.copy()
        other[0, 1] += side * step
        other[1, 0] += side * step
        moved.append(means.mean([factor("relu")] * 4, other).value)
    slopes = means.mean([factor("relu", order=1)] * 2 + [factor("relu")] * 2, c)
    assert slopes.value == pytest.approx((moved[0] - moved[1]) / (2 * step), rel=1e-8)


def test_the_sum_of_the_table_that_a_tensor_rule_got_wrong():
    # steps, linear functions and rectifiers at unit variances and correlations 0.3 (models.md, section 3)
    factors = [factor("step"), factor("power", coefficients=[0, 1]), factor("relu")]
    answer = means.mean(factors, 0.7 * np.eye(3) + 0.3)
    c, pi = 0.3, math.pi
    assert (
        abs(answer.value - (c * math.sqrt(1 - c * c) / (2 * pi) + c * math.asin(c) / (2 * pi) + c / 4)) <= answer.error
    )


def test_factors_on_one_variable_are_the_same_as_a_singular_covariance():
    for names in (("relu", "tanh"), ("step", "erf", "gelu"), ("abs", "relu", "sign"), ("silu", "silu")):
        factors = [factor(name, shift=0.25 * i) for i, name in enumerate(names)]
        one = means.mean(factors, [[2.0]], [0.5], slots=[0] * len(names))
        all_equal = means.mean(factors, np.full((len(names),) * 2, 2.0), np.full(len(names), 0.5))

        def product(x, names=names):
            z = 0.5 + math.sqrt(2) * x
            return math.prod(reference.FUNCTIONS[name][0](z + 0.25 * i) for i, name in enumerate(names))

        cuts = (-0.25 * np.arange(len(names)) - 0.5) / math.sqrt(2)
        truth = reference.integrate(product, cuts)[0]
        for answer in (one, all_equal):
            assert abs(answer.value - truth) <= answer.error + 1e-14


def test_softmax_and_other_functions_of_the_fields_are_sampled_honestly():
    c = np.array([[1.0, 0.5, 0.1], [0.5, 1.0, 0.3], [0.1, 0.3, 2.0]])

    def gate(z):
        return z[2] ** 2 / (1 + np.exp(z[1] - z[0]))  # softmax of two: the logistic function of the difference

    sampled = means.mean_of(gate, c)
    turn = np.array([[1.0, -1.0, 0.0], [0.0, 0.0, 1.0]])
    exact = means.mean([factor("logistic"), factor("power", coefficients=[0, 0, 1])], turn @ c @ turn.T)
    assert abs(sampled.value - exact.value) <= sampled.error < 1e-3 and sampled.method == "quasi-random"
    z = [
        (quasi.evaluate(gate, c, log2_points=8, seed=seed)[0] - exact.value)
        / (quasi.evaluate(gate, c, log2_points=8, seed=seed)[1] / quasi.WIDEN)
        for seed in range(1, 30)
    ]
    # z-scores of independent seeds: neither too wide nor biased
    assert 0.5 < np.std(z) < 2 and abs(np.mean(z)) < 1 and np.abs(z).max() < quasi.WIDEN


def test_what_is_beyond_the_tolerance_is_said_or_refused():
    factors = [factor("relu"), factor("tanh"), factor("silu")]
    covariance = 0.2 * np.eye(3) + 0.8
    answer = means.mean(factors, covariance)
    assert answer.method == "quasi-random" and answer.error > 1e-10
    with pytest.raises(NotReached, match="quasi-random"):
        means.mean(factors, covariance, strict=True)
    assert means.mean(factors, covariance, strict=True, tolerance=1e-2).error <= 1e-2


def test_infinite_means_and_bad_arguments_are_refused():
    delta = factor("step", order=1)
    with pytest.raises(DomainError, match="infinite"):
        means.mean([delta, delta], np.ones((2, 2)))
    with pytest.raises(DomainError, match="eigenvalue"):
        means.mean([delta, delta], [[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(DomainError, match="no values"):
        delta(0.0)
    with pytest.raises(ShapeError):
        means.mean([delta], np.eye(2))
    with pytest.raises(ShapeError):
        means.mean([delta], np.eye(1), [0.0, 1.0])
    with pytest.raises(DomainError, match="expected one of"):
        factor("swish")
    with pytest.raises(ShapeError, match="coefficients"):
        factor("power")
    with pytest.raises(DomainError):
        factor("relu", scale=math.inf)


def test_every_function_has_the_values_and_derivatives_of_its_definition():
    z = np.array([-1.3, 0.4, 2.2])
    for name, (f, _) in reference.FUNCTIONS.items():
        made = factor(name, scale=0.75, shift=-0.25)
        assert np.allclose(made(z), f(0.75 * z - 0.25), rtol=1e-14, atol=1e-15)
        sloped = factor(name, scale=0.75, shift=-0.25, order=1)
        if not sloped.singular:
            differences = (f(0.75 * z - 0.25 + 1e-6) - f(0.75 * z - 0.25 - 1e-6)) / 2e-6
            assert np.allclose(sloped(z), differences, rtol=0, atol=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_gram_matrices_that_rounding_left_singular_or_indefinite_lose_little(seed):
    # rank 2 in four variables: E[prod relu] of the exact matrix, by the angle in the plane
    rng = np.random.default_rng(seed)
    w = rng.standard_normal((4, 2))
    answer = means.mean([factor("relu")] * 4, w @ w.T)
    kinks = np.sort(np.mod(np.arctan2(w[:, 1], w[:, 0])[:, None] + [-math.pi / 2, math.pi / 2], 2 * math.pi).ravel())
    x, weight = np.polynomial.legendre.leggauss(20)
    total = 0.0
    for a, b in zip(kinks, [*kinks[1:], kinks[0] + 2 * math.pi], strict=True):
        angle = (a + b) / 2 + (b - a) / 2 * x
        fields = np.maximum(w @ np.array([np.cos(angle), np.sin(angle)]), 0)
        total += (b - a) / 2 * weight @ np.prod(fields, axis=0)
    truth = total / (2 * math.pi) * 8  # E[r^4] = 8
    assert abs(answer.value - truth) <= answer.error + 1e-13 * (1 + truth)
    assert answer.error < 1e-6 * (1 + truth)


def test_delta_functions_are_conditioned_on_before_anything_else():
    c = np.array([[2.0, 0.5, 0.25], [0.5, 1.0, 0.125], [0.25, 0.125, 1.5]])
    answer = means.mean([factor("step", order=1), factor("tanh"), factor("relu")], c)
    rest = c[1:, 1:] - np.outer(c[0, 1:], c[0, 1:]) / c[0, 0]
    expected = means.mean([factor("tanh"), factor("relu")], rest).value / math.sqrt(2 * math.pi * c[0, 0])
    assert answer.value == pytest.approx(expected, rel=1e-13)


def test_an_event_that_no_point_meets_has_an_error_above_its_mean():
    factors = [factor("relu", shift=-8), factor("step", shift=-6), factor("tanh")]
    answer = means.mean(factors, 2.0**-10 * np.eye(3) + 0.5)
    assert answer.value == 0 and answer.error > 0

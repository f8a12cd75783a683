"""Phase IV and the finite step: closed forms against samples."""

import dataclasses
import math

import numpy as np
import pytest

from derivations.contract import UsageError
from derivations.kawata import finite_step, initial, model, ridge
from derivations.kawata.parameters import Parameters


def trained(M=1, samples=0, **parameters):
    """Neurons aligned with both tasks of their cluster, biases spread out."""
    p = Parameters(C=2, M=M, J=12 // M, d=100, k_star=3, rho=2.0, ridge=1e-4, ridge_samples=samples,
                   test_samples=600_000, bias=(-3, 3), **parameters)  # fmt: skip
    start = initial.draw(p, np.random.default_rng(0))
    rng = np.random.default_rng(1)
    start.state["kappa"][:] = np.where(rng.random((12, 2)) < 0.5, 0.6, -0.1)
    start.state["xi"][:] = 0.5 * rng.choice([-1, 1], 12)
    return start


@pytest.mark.parametrize("M", [1, 2])
def test_the_population_regression_is_the_limit_of_many_samples(M):
    start = trained(M, routing="perfect")
    exact = ridge.population(start)
    many = dataclasses.replace(start, parameters=dataclasses.replace(start.parameters, ridge_samples=400_000))
    sampled = ridge.fit(many, np.random.default_rng(2))["summary"]
    error = ridge.fit(start, np.random.default_rng(3))["summary"]["test_squared_error"]
    # The error of 600,000 heavy-tailed samples is known to 2 %.
    assert exact["squared_error"] == pytest.approx(sampled["test_squared_error"], rel=0.05)
    assert error == pytest.approx(exact["squared_error"], rel=0.05)
    assert exact["squared_error"] < exact["squared_error_of_zero"] == pytest.approx(2.0)


def test_the_population_regression_is_refused_behind_gates():
    start = trained(1)
    gated = dataclasses.replace(start, constants={**start.constants, "theta": np.zeros((1, 5))})
    with pytest.raises(UsageError, match="ridge_samples"):
        ridge.population(gated)


@pytest.mark.parametrize("activation", ["relu", "erf"])
def test_the_strength_of_the_noise_is_that_of_samples(activation):
    p = Parameters(C=2, d=10**6, k_star=3, zeta=0.5, s=(1.0, -0.5), activation=activation, neurons=3, bias=(-1, 1))
    start = initial.draw(p, np.random.default_rng(0))
    c, rng, n = start.constants, np.random.default_rng(1), 400_000
    args = (*model.numbers(p, np.eye(2)), c["a"], c["b"], c["sigma"])
    labels = model.draw(rng.random((2, n)), rng.standard_normal((1, n)), *args)
    coef = model.coefficients(rng.standard_normal((3 + 5, n)), labels, *args)
    squares = coef**2
    error = squares.std(axis=1) / math.sqrt(n)
    assert (np.abs(squares.mean(axis=1) - finite_step.noise_strength(start)) < 4.5 * error).all()


def test_at_the_critical_step_drift_and_contraction_are_equal():
    p = Parameters(C=2, d=10**6, k_star=4, neurons=40, bias=(-0.5,), J=3, M=2)
    start = initial.draw(p, np.random.default_rng(0))
    step = finite_step.critical_step(start)
    grows = step > 0
    assert 0 < grows.sum() < 40
    h = step / (p.J * p.M)
    best = np.abs(start.state["kappa"]).max(axis=1)
    alpha4 = 0.75 * math.exp(-0.125) / math.sqrt(2 * math.pi) / math.sqrt(24)  # |1 - b^2| phi(b) / sqrt(4!)
    drift = 4 * alpha4 * best**3 / 2
    contraction = h / 2 * p.d * finite_step.noise_strength(start) * best
    np.testing.assert_allclose(drift[grows], contraction[grows], rtol=1e-10)


def test_without_noise_the_critical_equation_blows_up_at_its_closed_time():
    # dX = a 3 X^2 ds from 2: infinite at s = 1/(6 a).
    a, rng = 0.5, np.random.default_rng(0)
    late = finite_step.recovery_chance(a, 2.0, 3, 1.0, 0.0, 0.0, until=1.1 / (6 * a), replicas=3, rng=rng)
    early = finite_step.recovery_chance(a, 2.0, 3, 1.0, 0.0, 0.0, until=0.5 / (6 * a), replicas=3, rng=rng)
    assert late == 1.0 and early == 0.0

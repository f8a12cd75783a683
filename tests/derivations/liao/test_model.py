"""The microscopic model: one source for NumPy, numba and JAX, and its gradient is that of the squared error."""

import math

import numpy as np
import pytest

from derivations.liao import model
from derivations.liao.initial import enter
from derivations.liao.parameters import Parameters


def numbers_of(rows, **parameters):
    given = Parameters(m=3, m_star=2, d=rows.shape[1], **parameters)
    return model.numbers(given, rows @ rows.T)


def random_rows(seed=0, d=10):
    rng = np.random.default_rng(seed)
    teacher = np.linalg.qr(rng.normal(size=(d, 4)))[0].T
    return np.vstack([rng.normal(size=(6, d)), teacher])


def squared_error(rows, x, degree, gate, temperature):
    """(f(x) - f*(x))^2 / 2 of raw rows, with NumPy's Hermite polynomials and the library's gates."""
    from scipy.special import expit, ndtr

    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    pi = {"logistic": expit, "probit": ndtr}[gate]
    hermite = np.polynomial.hermite_e.HermiteE.basis(degree)
    fields = unit @ x
    student = (pi(temperature * fields[:3]) * hermite(fields[3:6])).sum()
    teacher = (pi(temperature * fields[6:8]) * hermite(fields[8:])).sum()
    return 0.5 * (student - teacher) ** 2


@pytest.mark.parametrize("gate", ["logistic", "probit"])
@pytest.mark.parametrize("degree", [2, 3, 4, 6])
def test_the_step_follows_the_gradient_of_the_squared_error(degree, gate):
    # new = a vector + b gradient with a step of one is the vector minus the gradient of the loss of the raw rows.
    rows = random_rows(degree)
    x = np.random.default_rng(1).normal(size=10)
    numbers = numbers_of(rows, degree=degree, gate=gate, temperature=1.3)
    unit = rows[:6] / np.linalg.norm(rows[:6], axis=1, keepdims=True)
    c = model.coefficients(np.concatenate([unit @ x, rows[6:] @ x]), np.zeros(0), *numbers)
    g = c[:, None] * x
    a, b = model.update((rows[:6] ** 2).sum(1), (rows[:6] * g).sum(1), (g * g).sum(1), 1.0, *numbers)
    step = rows[:6] - (a[:, None] * rows[:6] + b[:, None] * g)
    h = 1e-5  # central differences: h^2 times third derivatives of order 1e2, against gradients of order 1e2
    for k in range(6):
        for j in range(10):
            up, down = rows.copy(), rows.copy()
            up[k, j] += h
            down[k, j] -= h
            slope = (squared_error(up, x, degree, gate, 1.3) - squared_error(down, x, degree, gate, 1.3)) / (2 * h)
            assert step[k, j] == pytest.approx(slope, rel=1e-6, abs=1e-6 * np.abs(step).max())


def compiled(name):
    """A function of the model, compiled as steps of SGD have it."""
    from odesim.code import compile
    from odesim.sgd import bind

    text = compile.numba_module("a test", bind.numba_sources(model.MODEL))
    return compile.functions_of("liao_model", text, [name])[name]


@pytest.mark.parametrize("shape", [(), (7,)])
@pytest.mark.parametrize(
    ("degree", "gate", "renormalise"), [(2, "logistic", False), (3, "probit", True), (4, "logistic", True)]
)
def test_the_model_is_the_same_function_in_numpy_and_jax(shape, degree, gate, renormalise):
    from odesim.sgd.bind import bind_jax

    rows = random_rows()
    numbers = numbers_of(rows, degree=degree, gate=gate, renormalise=renormalise)
    rng = np.random.default_rng(2)
    fields, labels = rng.normal(size=(10, *shape)), np.zeros((0, *shape))
    traced = bind_jax(model.MODEL)
    expected = model.coefficients(fields, labels, *numbers)
    assert np.allclose(traced["coefficients"](fields, labels, *numbers), expected, rtol=1e-12, atol=1e-12)
    vv, gg = rng.uniform(0.5, 2, 6), rng.uniform(1, 9, 6)
    vg = rng.uniform(-1, 1, 6) * np.sqrt(vv * gg)
    for ours, theirs in zip(
        model.update(vv, vg, gg, 0.1, *numbers), traced["update"](vv, vg, gg, 0.1, *numbers), strict=True
    ):
        assert np.allclose(theirs, ours, rtol=1e-13)


@pytest.mark.parametrize("shape", [(), (7,)])
@pytest.mark.parametrize(("degree", "gate"), [(2, "logistic"), (3, "probit"), (4, "logistic")])
def test_the_model_is_the_same_function_in_numpy_and_numba(shape, degree, gate):
    numbers = numbers_of(random_rows(), degree=degree, gate=gate, renormalise=True)
    rng = np.random.default_rng(2)
    fields, labels = rng.normal(size=(10, *shape)), np.zeros((0, *shape))
    expected = model.coefficients(fields, labels, *numbers)
    assert np.allclose(compiled("coefficients")(fields, labels, *numbers), expected, rtol=1e-12, atol=1e-12)
    vv, vg, gg = rng.uniform(1, 2, (3, 6))
    ours, theirs = model.update(vv, vg, gg, 0.1, *numbers), compiled("update")(vv, vg, gg, 0.1, *numbers)
    assert np.allclose(theirs, ours, rtol=1e-13)


def test_the_tangent_step_adds_the_squared_tangent_gradient_to_the_norm():
    # |v'|^2 = |v|^2 + step^2 |g_tangent|^2 / |v|^2, because the gradient on the unit vector acts through 1/|v|.
    vv, vg, gg = np.array([1.7]), np.array([0.6]), np.array([2.5])
    numbers = (model.Numbers(1, 1, 3, 0, 1.0, 0, np.array([1.3])),)
    a, b = model.update(vv, vg, gg, 0.2, *numbers)
    after = a * a * vv + 2 * a * b * vg + b * b * gg
    assert after[0] == pytest.approx(1.7 + 0.04 * (2.5 - 0.36 / 1.7) / 1.7, rel=1e-14)


def test_restored_norms_are_the_first_ones():
    vv, vg, gg = np.array([1.7]), np.array([0.6]), np.array([2.5])
    numbers = (model.Numbers(1, 1, 3, 0, 1.0, 1, np.array([1.3])),)
    a, b = model.update(vv, vg, gg, 0.2, *numbers)
    assert math.sqrt((a * a * vv + 2 * a * b * vg + b * b * gg)[0]) == pytest.approx(1.3, rel=1e-15)


def test_the_gram_matrix_is_that_of_the_raw_rows(vectors):
    made = vectors()
    start = enter(made.parameters, made.arrays, np.random.default_rng(0))
    rows = model.weights(made.arrays)
    assert np.abs(model.place(start) - rows @ rows.T).max() < 1e-14
    seen = model.observe(made.parameters, rows @ rows.T)
    assert np.allclose(seen["norm_w"][1], np.linalg.norm(made.arrays["W"], axis=1), rtol=1e-14)
    unit = made.arrays["W"] / np.linalg.norm(made.arrays["W"], axis=1, keepdims=True)
    assert np.allclose(seen["gamma2"][1], unit @ made.arrays["W_star"].T, atol=1e-14)

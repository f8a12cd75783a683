"""The written coefficients of a declaration against automatic differentiation of the loss that its text states."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from models import TABLES, made

from odesim.sgd.bind import bind_jax, module_of
from odesim.sgd.compressed import factor


@pytest.fixture(scope="module", autouse=True)
def double():
    """JAX in float64, as the commands have it."""
    from odesim.machine import device

    device.configure("cpu", 1)


def rows_and_samples(name, samples=7):
    """The rows (n, d) of a start, samples (samples, d) and labels of one declared model."""
    model, parameters, start = made(name)
    gram = model.place(start)
    rows = np.zeros((len(gram), parameters.d))
    rows[:, : len(gram)] = factor(gram, model.sizes(parameters)[0])
    rng = np.random.default_rng(7)
    numbers = model.bound(start, gram)
    labels = module_of(model).draw(np.empty((0, samples)), rng.normal(size=(1, samples)), *numbers)
    return model, parameters, start, rows, rng.normal(size=(samples, parameters.d)), labels, numbers


@pytest.mark.parametrize("name", TABLES)
def test_coefficients_are_the_gradient_of_the_stated_loss(name):
    import jax

    model, parameters, start, rows, x, labels, numbers = rows_and_samples(name)
    trained, _ = model.sizes(parameters)
    scalars = model.scalars(start)
    found = module_of(model).coefficients(rows @ x.T, labels, (rows[:trained] ** 2).sum(1), scalars, *numbers)
    further = model.further(parameters)
    assert found.shape == (trained + further, len(x))

    def loss(v, s, k):
        vectors = jax.numpy.concatenate([v, rows[trained:]])
        return model.losses(vectors, s, x[k : k + 1], labels[:, k : k + 1], *numbers)[0]

    for k in range(len(x)):
        v, s = jax.grad(loss, (0, 1))(rows[:trained], scalars, k)
        along = np.outer(found[:trained, k], x[k])
        if further > scalars.size:
            along += found[trained : 2 * trained, k][:, None] * rows[:trained]
        scale = max(1.0, np.abs(v).max())
        assert np.abs(along - v).max() < 2e-13 * scale
        assert np.abs(found[trained + further - scalars.size :, k] - s).max(initial=0.0) < 2e-13 * scale


@pytest.mark.parametrize("name", TABLES)
def test_one_text_serves_arrays_of_both_kinds_and_single_samples(name):
    model, parameters, start, rows, x, labels, numbers = rows_and_samples(name)
    trained, _ = model.sizes(parameters)
    vv, scalars = (rows[:trained] ** 2).sum(1), model.scalars(start)
    plain = module_of(model)
    batch = plain.coefficients(rows @ x.T, labels, vv, scalars, *numbers)
    traced = bind_jax(model)["coefficients"](rows @ x.T, labels, vv, scalars, *numbers)
    assert np.abs(np.asarray(traced) - batch).max() < 1e-12 * np.abs(batch).max()
    single = plain.coefficients(rows @ x[0], labels[:, 0], vv, scalars, *numbers)
    assert np.abs(single - batch[:, 0]).max() < 1e-12 * np.abs(batch).max()

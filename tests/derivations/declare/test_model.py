"""The written coefficients of a declaration against automatic differentiation of the loss that its text states."""

import numpy as np
import pytest

from odesim.sgd.bind import bind_jax, module_of
from odesim.sgd.compressed import factor
from tests.derivations.declare.models import TABLES, made


@pytest.fixture(scope="module", autouse=True)
def double():
    """JAX in float64, as the commands have it."""
    from odesim.machine import device

    device.configure("cpu")


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


FEW = ("erf with biases", "softmax of four", "two groups", "normalised")
EACH = [name if name in FEW else pytest.param(name, marks=pytest.mark.slow) for name in TABLES]
"""JAX takes seconds to trace and compile the loss of each."""


@pytest.mark.parametrize("name", EACH)
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


@pytest.mark.parametrize("name", EACH)
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


def test_a_function_of_a_number_is_written_as_a_number():
    from derivations.declare import grammar, symbols

    text = symbols.function("g", [], [symbols.build(grammar.read("probit(erf(0.5))*step(2) + gelu(-1)"), ())])
    assert "erf" not in text and "gelu" not in text
    space = {}
    exec(text, {}, space)
    # 0.5 (1 + erf(erf(0.5) / sqrt 2)) - 0.5 (1 + erf(-1 / sqrt 2)), from tables of the normal distribution
    assert abs(space["g"]()[0] - (0.6986538 - 0.1586553)) < 1e-4


@pytest.mark.parametrize("name", ["lambda", "np", "z_w", "x_0", "q_w"])
def test_a_parameter_cannot_have_a_name_of_the_written_functions(name):
    from derivations.declare import reading

    with pytest.raises(reading.fields.Mistake, match="cannot be the name of a parameter"):
        reading.declaration({"student": {"unit": "tanh(w)"}, "parameters": {name: 1.0}})


def test_the_text_and_its_name_follow_what_is_stated_and_not_its_sizes():
    from derivations.declare import reading
    from derivations.declare.model import of_declaration

    def stated(**student):
        tables = {"student": {"unit": "tanh(w)", **student}, "title": "anything"}
        return of_declaration(reading.declaration(tables))

    plain = stated()
    assert stated(units=7).stem == plain.stem and stated(units=7).written() == plain.written()
    assert stated(output="mean").stem == plain.stem
    for other in (stated(unit="erf(w)"), stated(output="trained")):
        assert other.stem != plain.stem and other.written() != plain.written()


def test_the_functions_are_read_from_the_cache_without_being_written_again(monkeypatch):
    from derivations.declare import written

    model, _, _ = made("wick")
    first = module_of(model)
    monkeypatch.setattr(written, "_coefficients", lambda declared: 1 / 0)
    assert module_of(model) is first

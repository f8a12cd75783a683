"""The laboratory's drift on inputs with eigenvalues and clusters: fresh samples against the equations."""

import numpy as np
import pytest

import odesim
from derivations.declare import exact, initial, parameter_class, sampled
from derivations.declare.model import model
from odesim.evidence.laboratory import Laboratory
from odesim.flow.problem import compile_functions
from odesim.sgd.drift import state_drift, step_change
from tests.derivations.declare.test_inputs import parameters_of
from tests.derivations.declare.test_mixtures import TEACHER, XOR

SAMPLES, LARGEST_Z = 200_000, 5.0
TABLES = {
    "teacher on three clusters": TEACHER,
    "labels, trained readouts": {**XOR, "start": {"norm": 0.5}},
    "sphere": {**TEACHER, "training": {"weights": "sphere"}, "start": {"overlap": 0.3}},
    "normalised": {**TEACHER, "training": {"weights": "normalised"}},
    "one block with a mean": {
        **TEACHER, "inputs": {**TEACHER["inputs"], "blocks": [[0.7, "rest"]]}, "training": {"decay": 0.3},
    },
}  # fmt: skip


def start_of(name, **numbers):
    return initial.enter(parameters_of(TABLES[name], **{"d": 60, **numbers}), None, np.random.default_rng(2))


def rates_of(start):
    """The rates of all order parameters by closed forms."""
    equations = exact.equations(start.parameters)
    y = equations.start(start)
    return equations.unpack(compile_functions(equations, "numpy")["flow"](0.0, y, *equations.arguments(start)))


@pytest.mark.parametrize("name", list(TABLES))
def test_the_mean_of_fresh_samples_in_every_eigenspace_is_the_drift(name):
    start = start_of(name)
    at, wanted = parameter_class.rows(start.parameters), rates_of(start)
    (mean, error), (scalars, scalar_error) = state_drift(model(start.parameters), start, SAMPLES, seed=4)
    found, spread = at.components(mean), at.components(error)
    for block in at.moving:
        z = (found[block.name] - wanted[block.name]) / np.maximum(spread[block.name], 1e-7)  # of a step of 1e-7
        assert np.abs(z).max() < LARGEST_Z, (block.name, z)
    if "a" in wanted and len(scalars):
        assert (np.abs(scalars - wanted["a"]) < LARGEST_Z * scalar_error).all()


def test_samples_of_another_eigenvalue_are_told_from_the_drift():
    """The control: a drift at a tenth more variance in the first block."""
    start, other = (
        initial.enter(
            parameters_of({**TEACHER, "inputs": {**TEACHER["inputs"], "blocks": [[first, 0.3], [0.5, "rest"]]}}, d=60),
            None, np.random.default_rng(2),
        )
        for first in (1.5, 1.65)
    )  # fmt: skip
    at, wanted = parameter_class.rows(start.parameters), rates_of(other)
    (mean, error), _ = state_drift(model(start.parameters), start, SAMPLES, seed=4)
    found, spread = at.components(mean), at.components(error)
    assert max(np.abs((found[b.name] - wanted[b.name]) / spread[b.name]).max() for b in at.moving) > 2 * LARGEST_Z


def test_the_laboratory_measures_drift_and_descent_by_eigenspaces():
    system_ = odesim.declare(**TEACHER)
    lab = Laboratory(system_)
    start = initial.enter(system_.parameters(d=60), None, np.random.default_rng(2))
    mean, error = lab.drift(start, SAMPLES)
    descent = lab.descent(start, 20_000, 10)
    n, trained = 5, 2  # two students, a teacher, two means
    assert mean.shape == error.shape == (2, n, n) and descent.shape == (10, 2, trained, n)
    spread = np.hypot(descent.std(0, ddof=1)[:, :, trained:] / 10**0.5, error[:, :trained, trained:])
    # Free weights without decay: what moves an overlap with a fixed vector is minus the gradient along it.
    assert (np.abs(descent.mean(0)[:, :, trained:] - mean[:, :trained, trained:]) < LARGEST_Z * spread).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["teacher on three clusters", "labels, trained readouts"])
def test_one_step_changes_the_overlaps_by_its_drift(name):
    """Batches of 1000 at a step of 1e-3: squares of gradients are a part of 1e-3 of the change, seen in no overlap."""
    start, step = start_of(name), 1e-3
    at, wanted = parameter_class.rows(start.parameters), rates_of(start)
    (mean, error), (scalars, scalar_error) = step_change(model(start.parameters), start, step, 1000, 200)
    found, spread = at.components(mean / step), at.components(error / step)
    for block in at.moving:
        if block.columns.start >= at.students:
            assert (np.abs(found[block.name] - wanted[block.name]) < LARGEST_Z * spread[block.name]).all()
    if len(scalars):
        assert (np.abs(scalars / step - wanted["a"]) < LARGEST_Z * scalar_error / step).all()


def test_sampled_means_agree_with_fresh_samples_of_a_loss_without_closed_forms():
    tables = {**TEACHER, "student": {"unit": "tanh(w)", "units": 2}, "training": {"loss": "logistic"}}
    start = initial.enter(parameters_of(tables, d=60, points=2**13), None, np.random.default_rng(2))
    at = parameter_class.rows(start.parameters)
    derivative, known = map(at.layout.unpack, sampled.scatter(None, start, start.state))
    (mean, error), _ = state_drift(model(start.parameters), start, SAMPLES, seed=4)
    found, spread = at.components(mean), at.components(error)
    for block in at.moving:
        both = np.maximum(np.hypot(spread[block.name], known[block.name]), 1e-7)
        assert (np.abs(found[block.name] - derivative[block.name]) < LARGEST_Z * both).all(), block.name

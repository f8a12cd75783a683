"""`sampling_error` in the summary against the true error of sampled means, on inputs with eigenvalues and clusters."""

import dataclasses

import numpy as np
import pytest

import odesim
from derivations.declare import exact, initial, sampled, system
from derivations.declare.parameter_class import rows
from odesim.flow.problem import compile_functions
from tests.derivations.declare.test_inputs import ERF
from tests.derivations.declare.test_mixtures import LOGISTIC, TEACHER, XOR

OTHERS = 24
"""Randomisations whose error is measured, none of which is one of the program's own."""
MODELS = {
    "committee on two eigenvalues": (
        {"student": {"unit": ERF, "units": 2}, "teacher": {"units": 2}, "inputs": {"blocks": [[1.6, 0.5], [0.4, 0.5]]}},
        2**14,
    ),
    "teacher on three clusters": (TEACHER, 2**14),
    "labels of four clusters": ({**XOR, "start": {"norm": 0.5}}, 2**14),
    "few points": (TEACHER, 2**10),
}
LABELLED = {
    **{key: value for key, value in LOGISTIC.items() if key != "start"},
    "student": {"unit": "tanh(w)", "units": 3},
}


def derivatives(start, seeds, points):
    """The sampled rates (seeds, ..) by independent randomisations."""
    start = dataclasses.replace(start, parameters=dataclasses.replace(start.parameters, points=points))
    flow = sampled.in_numpy(start.parameters, None)["flow"]
    y = rows(start.parameters).layout.pack(start.state)
    return np.array([flow(0.0, y, *sampled.arguments(None, start, seed)) for seed in seeds])


def told(tables, start, points):
    """The message of a run about its initial derivative."""
    run = odesim.integrate(
        odesim.declare(**tables), tier="sampled", points=points, until=1e-6, save_points=2, initial={**start.state},
        d=start.parameters.d,
    )  # fmt: skip
    return run.summary["sampling_error"][0]


def start_of(tables):
    parameters = system.system(odesim.declare(**tables).parameters().declaration).parameters(d=60)
    return initial.enter(parameters, None, np.random.default_rng(2))


def relative(rates, truth):
    return float(np.sqrt(np.mean((rates - truth) ** 2) / np.mean(truth**2)))


@pytest.mark.parametrize("name", list(MODELS))
def test_the_error_of_sampled_means_is_that_which_is_told(name):
    """It is of the size of the true error, of which the bias that all randomisations share is a part, and not less."""
    tables, points = MODELS[name]
    start = start_of(tables)
    equations = exact.equations(start.parameters)
    y = equations.start(start)
    truth = compile_functions(equations, "numpy")["flow"](0.0, y, *equations.arguments(start))
    error = relative(derivatives(start, range(500, 500 + OTHERS), points), truth)
    # Four randomisations know their spread to 40 % at worst, and it is widened by half.
    assert error < told(tables, start, points) < 3 * error


def test_of_a_loss_without_closed_forms_it_is_that_of_far_more_points():
    """Three units and labels of clusters: means over three fields, for which there is no grid."""
    start = start_of(LABELLED)
    truth = derivatives(start, range(600, 608), 2**17).mean(0)
    error = relative(derivatives(start, range(500, 500 + OTHERS), 2**12), truth)
    assert 0.5 * error < told(LABELLED, start, 2**12) < 4 * error


def test_the_bias_of_all_randomisations_is_seen():
    """Means of 24 randomisations are off by more than their spread allows, and by no more than is told."""
    tables, points = MODELS["committee on two eigenvalues"]
    start = start_of(tables)
    equations = exact.equations(start.parameters)
    truth = compile_functions(equations, "numpy")["flow"](0.0, equations.start(start), *equations.arguments(start))
    found = derivatives(start, range(500, 500 + OTHERS), points)
    bias = relative(found.mean(0), truth)
    spread = float(np.sqrt(found.var(0, ddof=1).mean() / np.mean(truth**2)))
    assert bias > 3 * spread / OTHERS**0.5
    assert bias < told(tables, start, points)

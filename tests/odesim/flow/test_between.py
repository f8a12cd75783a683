"""Many states within one step: few evaluations, the same states."""

import numpy as np
import pytest

import odesim
from odesim.flow.between import FEW, states_between

MODEL = {
    "student": {"units": 2, "unit": "erf(w/sqrt(2))"},
    "teacher": {"units": 2},
    "training": {"limit": "online", "step": 0.5},
    "start": {"norm": 0.5, "overlap": 0.2},
}


def counted(function):
    asked = []

    def dense(t):
        asked.append(t)
        return function(t)

    return dense, asked


def test_few_states_are_the_dense_output_itself():
    dense, asked = counted(lambda t: np.array([np.sin(t), t]))
    times = np.linspace(0.0, 1.0, FEW)
    found = states_between(dense, 0.0, 1.0, times)
    assert asked == times.tolist()
    assert (found == np.stack([np.sin(times), times], axis=1)).all()


@pytest.mark.parametrize(
    "function",
    [
        lambda t: np.array([np.exp(5 * t), 1e-20 * np.exp(8 * t), np.cos(40 * t)]),
        lambda t: np.array([1.0 / (1.02 - t)]),
    ],
    ids=["scales apart", "a pole nearby"],
)
def test_many_states_are_as_accurate_as_the_dense_output(function):
    dense, asked = counted(function)
    times = np.linspace(0.0, 1.0, 20_001)
    found, exact = states_between(dense, 0.0, 1.0, times), np.array([function(t) for t in times])
    assert (np.abs(found - exact).max(axis=0) <= 1e-11 * np.abs(exact).max(axis=0)).all()
    assert len(asked) < 1_000


def test_a_kink_is_found_by_halves():
    dense, asked = counted(lambda t: np.array([abs(t - 0.3712)]))
    times = np.linspace(0.0, 1.0, 100_001)
    found = states_between(dense, 0.0, 1.0, times)[:, 0]
    assert np.abs(found - np.abs(times - 0.3712)).max() < 1e-12
    assert len(asked) < 1_000


@pytest.mark.parametrize("solver", ["DOP853", "RK45", "CVODE"])
def test_a_hundred_thousand_saved_states_cost_no_more_evaluations_than_a_few_hundred(solver):
    model = odesim.declare(**MODEL)
    few = odesim.integrate(model, until=3, save_points=201, solver=solver)
    many = odesim.integrate(model, until=3, save_points=100_001, solver=solver)
    assert many.statistics["evaluations"] < 4 * few.statistics["evaluations"] + 1_000
    assert np.abs(many["time"][::500] - few["time"]).max() < 1e-14
    for name in ("M_ww", "Q_ww", "loss"):
        assert np.abs(np.asarray(many[name])[::500] - np.asarray(few[name])).max() < 1e-11

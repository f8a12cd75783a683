"""Long horizons of declared models: the strongly coupled blocks are found from the state, and change no answer."""

import numpy as np
import pytest

import odesim
from derivations import clusters
from odesim.flow.problem import prepare
from odesim.request.case import Case

GATED = {"unit": "logistic(v)*He(3, w)"}
MODELS = {
    "normalised": {
        "student": {**GATED, "units": 4},
        "teacher": {**GATED, "units": 3},
        "training": {"weights": "normalised"},
        "start": {"norm": 1.0},
    },
    "readouts": {
        "student": {"unit": "wick(2, w)", "units": 4, "output": "trained"},
        "teacher": {"unit": "wick(2, w)", "units": 3},
        "start": {"norm": 0.7},
    },
    "two groups": {
        "student": {"first": {"unit": "wick(3, w)", "units": 2}, "second": {"unit": "wick(2, w)", "units": 2}},
        "teacher": {"unit": "He(2, w)", "units": 2},
        "start": {"norm": 0.5},
    },
}


SLOW = ("normalised", "two groups")
"""Models whose integration takes longer than that of the others, which say the same."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in MODELS]
)
@pytest.mark.parametrize("solver", ["NDF", "CVODE"])
def test_implicit_solvers_agree_with_an_explicit_one(name, solver):
    system = odesim.declare(**MODELS[name])
    explicit = odesim.integrate(system, until=30, solver="DOP853", rtol=1e-10)
    implicit = odesim.integrate(system, until=30, solver=solver, rtol=1e-7)
    for component, values in explicit.state.items():
        assert np.abs(values - implicit.state[component]).max() < 2e-5, component


@pytest.mark.parametrize("name", MODELS)
def test_what_feels_another_strongly_shares_its_label(name):
    """On a state of separate clusters the Jacobian between entries of different labels is of the size of the overlaps.

    Two of the students have found teachers; all other overlaps are `small`.
    """
    small = 1e-4
    problem = prepare(Case.build(odesim.declare(**MODELS[name]), {}, until=1.0))
    y, slope = problem.start.copy(), problem.slope()
    coupled = problem.smooth.coupled
    assert coupled is not None
    layout = problem.equations.layout
    state = {key: np.array(value) for key, value in layout.unpack(y).items()}
    for key, value in state.items():
        letter = key.rpartition("_")[2] if "Q" not in key and "M" not in key else "QM"["M" in key]
        if letter == "M":
            value[:] = small
            for k in range(min(2, *value.shape)):
                value[k, k] = 0.97 if name == "normalised" else 0.6
        elif letter == "Q":
            value[:] = np.where(value == np.diag(np.diag(value)), value, small) if value.ndim == 2 else value
    y = layout.pack(state)
    found = coupled(problem.initial)(y)
    step, jacobian = 1e-6, np.empty((y.size, y.size))
    for k in range(y.size):
        move = np.zeros(y.size)
        move[k] = step
        jacobian[:, k] = (slope(0.0, y + move) - slope(0.0, y - move)) / (2 * step)
    across = np.abs(jacobian)[found[:, None] != found]
    assert len(set(found)) > 1
    assert across.max() < 0.1 * np.abs(jacobian).max()


def test_clusters_rise_with_the_level_until_they_are_small():
    """Twenty vectors of overlap .4 are one cluster at the lowest level: too many, so that a higher one parts them."""
    n = clusters.LARGEST + 4
    overlaps = np.full((n, n), 0.4)
    np.fill_diagonal(overlaps, 1.0)
    overlaps[0, 1] = overlaps[1, 0] = -0.9
    cluster = clusters.clusters(overlaps)
    assert cluster[0] == cluster[1] and len(set(cluster)) == n - 1


DENSE = {
    "erf(w/sqrt(2))": True, "relu(w)": True, "He(2, w)": True, "wick(2, w)": False, "wick(3, w)": False,
    "He(3, w)": True, "abs(w)": True, "logistic(v)*He(2, w)": False, "logistic(v)*w": True,
    "He(2, w + b)": True,
}  # fmt: skip


BIAS = {"b": {"default": 0.5, "per": "unit"}}


@pytest.mark.parametrize("unit", DENSE)
def test_units_with_a_linear_part_or_a_mean_that_moves_have_no_blocks(unit):
    """He_3 has the first and He_2 the second as soon as free norms leave 1, and a bias makes one of He_2."""
    sized = {"weights": "sphere"} if "logistic" in unit else {}
    system = odesim.declare(
        student={"unit": unit, "units": 2}, teacher={"unit": "He(2, w)", "units": 1}, training=sized,
        start={"norm": 1.0}, parameters=BIAS if "+ b" in unit else {},
    )  # fmt: skip
    assert (prepare(Case.build(system, {}, until=1.0)).smooth.coupled is None) is DENSE[unit]


def test_an_online_limit_has_no_blocks():
    system = odesim.declare(**{**MODELS["readouts"], "training": {"limit": "online"}})
    assert prepare(Case.build(system, {}, until=1.0)).smooth.coupled is None

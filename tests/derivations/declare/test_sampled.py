"""Means over points against the mean of one step of SGD and, where there are closed forms, against these."""

import dataclasses

import numpy as np
import pytest
from scipy import special

from derivations.declare import exact, initial, parameter_class, reading, sampled
from derivations.declare.model import model
from derivations.declare.parameter_class import rows
from odesim.flow import solve
from odesim.flow.problem import compile_functions
from odesim.request.case import Case
from odesim.sgd.drift import state_drift
from tests.derivations.declare.closed import EXACT, each
from tests.derivations.declare.closed import made as closed_system
from tests.derivations.declare.models import TABLES

SAMPLES = 200_000
LARGEST_Z = 5.0


@pytest.mark.parametrize("name", TABLES)
def test_the_sampled_drift_is_the_mean_of_one_step_of_sgd(name):
    # The microscope draws samples of its own and knows its derivatives from the declaration alone.
    kind = parameter_class.parameters_of(reading.declaration(TABLES[name]))
    parameters = dataclasses.replace(kind(), d=60, overlap=None, batch=10**9, points=2**13)
    found = initial.enter(parameters, None, np.random.default_rng(2))
    at = rows(parameters)
    derivative, error = sampled.scatter(None, found, found.state)
    rate = parameters.step if parameters.declaration.limit == "online" else 1.0
    (mean, spread), (own, own_spread) = state_drift(model(parameters), found, SAMPLES, seed=4)
    gram, moving = at.components(mean), at.components(spread)
    flow, noise = at.layout.unpack(derivative / rate), at.layout.unpack(error / rate)
    for block in at.moving:
        both = np.sqrt(moving[block.name] ** 2 + noise[block.name] ** 2)
        z = (gram[block.name] - flow[block.name]) / np.maximum(both, 1e-7)
        assert np.abs(z).max() < LARGEST_Z, (block.name, z)
    place = 0
    for number, word, count in at.scalars:
        label = at.declaration.students[number].named(word)
        both = np.sqrt(own_spread[place : place + count] ** 2 + noise[label] ** 2)
        z = (own[place : place + count] - flow[label]) / np.maximum(both, 1e-7)
        assert np.abs(z).max() < LARGEST_Z, (label, z)
        place += count


@pytest.mark.parametrize("name", each(EXACT))
def test_sampled_and_exact_agree_within_the_scatter(name):
    parameters = closed_system(EXACT[name]).parameters(d=50, points=2**13)
    found = initial.enter(parameters, None, np.random.default_rng(0))
    equations = exact.equations(parameters)
    y, arguments = equations.start(found), equations.arguments(found)
    closed = compile_functions(equations, "numpy")["flow"](0.0, y, *arguments)
    mean, error = sampled.scatter(None, found, found.state)
    # Rounding where the points have every moment of a polynomial right.
    scale = np.maximum(error, 1e-9 * np.abs(closed).max())
    assert np.abs((mean - closed) / scale).max() < LARGEST_Z


def test_points_have_their_low_moments_right():
    from derivations.declare.points import degree, hermite_rows, points

    x, weights = points(4, 2**10, 7)
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)
    moments = hermite_rows(x, degree(4, 2**10)) @ weights
    assert moments == pytest.approx(np.eye(len(moments))[0], abs=1e-11)


@pytest.mark.parametrize(("variables", "count"), [(1, 128), (2, 2**13)])
def test_a_grid_has_means_of_analytic_functions_to_rounding(variables, count):
    from derivations.declare.points import grid

    found = []
    for seed in range(3):
        x, weights = grid(variables, count, seed)
        assert 0.7 * count < x.shape[1] <= count
        assert weights @ np.prod(x**4, axis=0) == pytest.approx(3.0**variables, rel=1e-12)
        assert weights @ np.exp(1.5 * x).prod(axis=0) == pytest.approx(np.exp(1.125 * variables), rel=1e-11)
        # erf(x) of x ~ N(0, 1) has the second moment (2/pi) asin(2/3).
        mean = weights @ np.prod([special.erf(each) ** 2 for each in x], axis=0)
        assert mean == pytest.approx((2 / np.pi * np.arcsin(2 / 3)) ** variables, rel=1e-11)
        found.append(x[0, 0])
    assert len(set(found)) == 3  # every seed has a shift of its own


def test_two_fields_without_kinks_have_no_sampling_error():
    import odesim

    smooth = odesim.declare(student={"unit": "tanh(w)"}, teacher={"noise": 0.0}, start={"norm": 1.5, "overlap": 0.2})
    run = odesim.integrate(smooth, tier="sampled", until=2, save_points=3)
    assert max(run.summary["sampling_error"]) < 1e-11
    sampled_points = odesim.integrate(smooth, tier="sampled", until=2, save_points=3, sample_seed=5)
    assert sampled_points["M_ww"] == pytest.approx(run["M_ww"], abs=1e-7)  # the tolerance of both
    other = {"kink": {"student": {"unit": "relu(w)"}}, "noise": {"teacher": {"noise": 0.1}},
             "sign": {"training": {"loss": "logistic"}}, "growth": {"student": {"unit": "exp(0.5*w)"}}}  # fmt: skip
    for change in other.values():
        rough = odesim.declare(**{"student": {"unit": "tanh(w)"}, "teacher": {}, "start": {"overlap": 0.2}, **change})
        assert max(odesim.integrate(rough, tier="sampled", until=0.5, save_points=2).summary["sampling_error"]) > 1e-9


def test_a_frame_has_its_gram_matrix_also_where_it_is_singular():
    from derivations.declare.frames import frame

    rng = np.random.default_rng(1)
    rows_ = rng.normal(size=(6, 4))
    gram = rows_ @ rows_.T
    U = frame(np, gram, 4)
    assert U @ U.T == pytest.approx(gram, abs=1e-10)


def test_a_start_that_the_points_cannot_tell_is_refused():
    import odesim

    weak = odesim.declare(
        student={"unit": "logistic(v)*He(3, w)", "units": 4}, teacher={"units": 2}, training={"weights": "normalised"}
    )
    with pytest.raises(odesim.UsageError, match="does not exceed"):
        odesim.integrate(weak, d=10_000, tier="sampled", until=1.0)


@pytest.mark.slow
def test_jax_and_numpy_follow_the_same_sampled_flow():
    import odesim

    system_ = odesim.declare(
        student={"unit": "softmax(v)*tanh(w)", "units": 2, "output": "trained"}, teacher={"units": 1, "noise": 0.1},
        training={"limit": "online", "step": 0.3}, start={"norm": 1.0},
    )  # fmt: skip
    runs = [
        odesim.integrate(system_, d=30, until=2.0, points=2**10, save_points=3, backend=backend, rtol=1e-8)
        for backend in ("numba", "jax")
    ]
    for label in ("Q_vv", "Q_vw", "Q_ww", "M_vv", "M_ww", "a", "error"):
        assert runs[0][label] == pytest.approx(runs[1][label], abs=1e-7), label


def test_an_escape_from_small_overlaps_is_followed_as_accurately_as_the_means_are_known():
    """Errors at the start grow with the overlaps: CVODE, which begins with steps of order 1, ends 0.05 off."""
    asked = {"tier": "sampled", "points": 4096}
    exact, found = (
        solve.solve(Case.build("ben_arous_2021", asked, until=20, **options))
        for options in ({"solver": "DOP853", "rtol": 1e-10}, {})
    )
    assert found.outcome.kind == "completed"
    for name, one in found.state.items():
        assert np.abs(one.values - exact.state[name].values).max() < 1e-3, name

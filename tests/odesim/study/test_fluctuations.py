"""Fluctuations of SGD around its mean path against closed forms, an independent program, and simulated steps."""

import dataclasses

import numpy as np
import pytest

import odesim
from odesim.request.case import Case
from odesim.sgd.engines import NumbaChains
from odesim.sgd.increments import Increments, points_of, sobol_points
from odesim.sgd.simulation import Simulation
from odesim.study import band_question, fluctuations
from odesim.study.fresh_starts import fresh_start
from odesim.study.local_dynamics import local

ERF = "erf(w/sqrt(2))"
COMMITTEE = odesim.declare(
    student={"unit": ERF, "units": 2}, teacher={"units": 2, "noise": 0.3}, training={"limit": "online", "step": 0.5}
)
BATCHES = odesim.declare(
    student={"unit": ERF, "units": 2}, teacher={"units": 2, "noise": 0.3},
    training={"limit": "online", "step": 0.5, "batch": 4},
)  # fmt: skip
START = {"Q_ww": 0.25 * np.eye(2), "M_ww": np.array([[0.12, 0.02], [-0.03, 0.10]])}


def line(eta, noise):
    training = {"limit": "online", "step": eta}
    return odesim.declare(student={"unit": "w"}, teacher={"noise": noise}, training=training)


def ready(system, until, **given):
    initial = given.pop("initial", None)
    step = {name: given.pop(name) for name in ("step_size", "batch", "fresh_initial") if name in given}
    case = Case.build(system, given, until=until, initial=initial)
    return band_question.prepared(Simulation.build(case, method="compressed", **step))


def solved(asked, times, accuracy=1e-4):
    own = asked.setting
    return fluctuations.solve(own.problem, own.increments, own.clock, np.asarray(times), own.start, accuracy)


@pytest.mark.parametrize(("eta", "noise"), [(0.5, 0.5), (1.0, 0.0)])
def test_least_squares_has_the_variance_of_its_closed_equation(eta, noise):
    # E' = -2 eta E + eta^2 R, R = E + s^2, V' = -2 eta (2 - eta) V + 4 eta^2 (E R + E^2) + 2 eta^4 R^2 - 8 eta^3 E R.
    from scipy.integrate import solve_ivp

    times = np.array([0.0, 0.5, 1.0, 2.0, 3.0, 6.0])
    start = {"Q_ww": [[1.0]], "M_ww": [[0.0]]}
    # D is that of the dimension: at d = 10^8 its terms of order 1/d are below 1e-7.
    course = solved(ready(line(eta, noise), 6.0, d=10**8, initial=start), times, accuracy=1e-8)
    gradient = np.array([1.0, -2.0])

    def closed(t, y):
        error, variance = y
        risk = error + noise**2
        return [
            -2 * eta * error + eta**2 * risk,
            -2 * eta * (2 - eta) * variance + 4 * eta**2 * (error * risk + error**2)
            + 2 * eta**4 * risk**2 - 8 * eta**3 * error * risk,
        ]  # fmt: skip

    exact = solve_ivp(closed, (0, 6), [2.0, 0.0], t_eval=times, rtol=1e-12, atol=1e-14).y[1]
    measured = np.einsum("i,tij,j->t", gradient, course.sigma, gradient)
    assert np.abs(measured[1:] / exact[1:] - 1).max() < 1e-6


def test_least_squares_has_the_mean_of_its_chain():
    # E_(k+1) = E_k (1 - 2 eta/d + eta^2 (d + 2)/d^2) + eta^2 s^2/d exactly, in any dimension.
    eta, noise, d = 0.5, 0.5, 10**5
    times = np.array([0.0, 0.5, 1.0, 2.0, 6.0])
    start = {"Q_ww": [[1.0]], "M_ww": [[0.0]]}
    course = solved(ready(line(eta, noise), 6.0, d=d, initial=start), times, accuracy=1e-7)
    factor = -2 * eta / d + eta**2 * (d + 2) / d**2
    rest = -(eta**2 * noise**2 / d) / factor
    chain = rest + (2 - rest) * np.exp(np.round(times * d) * np.log1p(factor))
    flow = course.states @ np.array([1.0, -2.0]) + 1
    shift = course.shift @ np.array([1.0, -2.0])
    assert np.abs(d * (chain - flow) - shift)[1:].max() < 2e-4 * np.abs(shift).max()


def test_a_committee_has_the_covariance_of_another_program():
    # An independent program: the increment of one sample by automatic differentiation, b and J from 2^16 points.
    other = {
        10.0: [0.04049737, 0.03664211, 0.03784003, 0.02545581, 0.02943234, 0.03010589, 0.0264428],
        20.0: [0.05051461, 0.03893055, 0.046997, 0.03263531, 0.03748989, 0.03759168, 0.03340248],
    }
    asked = ready(COMMITTEE, 20.0, d=10**6, initial=START)
    points = sobol_points(None, 4, asked.setting.increments.model.noise, 16)
    finer = dataclasses.replace(asked.setting.increments, points=points)
    asked = dataclasses.replace(asked, setting=dataclasses.replace(asked.setting, increments=finer))
    course = solved(asked, [0.0, *other])
    for k, (time, values) in enumerate(other.items(), 1):
        assert course.time[k] == time
        assert np.abs(np.diag(course.sigma[k]) / values - 1).max() < 0.01
    assert course.bias < 1


CASES = {
    "free": (COMMITTEE, {"initial": START}),
    "batch": (BATCHES, {"initial": START}),
    "sphere": (
        odesim.declare(
            student={"unit": "He(2, w)", "units": 2}, teacher={"noise": 0.3}, start={"overlap": 0.3},
            training={"limit": "online", "step": 0.05, "weights": "sphere"},
        ),
        {},
    ),
    "normalised": (
        odesim.declare(
            student={"unit": "He(2, w)", "units": 2}, teacher={"noise": 0.3}, start={"overlap": 0.3},
            training={"limit": "online", "step": 0.05, "weights": "normalised"},
        ),
        {},
    ),
    "readouts": (
        odesim.declare(
            student={"unit": ERF, "units": 2, "output": "trained"}, teacher={"units": 2},
            training={"limit": "online", "step": 0.5}, start={"overlap": 0.2},
        ),
        {},
    ),
}  # fmt: skip


def increments_of(name, d, points=None):
    system, given = CASES[name]
    own = ready(system, 1.0, d=d, **given).setting
    if points is not None:
        own = dataclasses.replace(own, increments=dataclasses.replace(own.increments, points=points(own.increments)))
    return own


@pytest.mark.parametrize("name", CASES)
def test_one_step_has_mean_and_covariance_of_many_chains(name):
    d, replicas = 60.0, 40_000
    own = increments_of(name, d, lambda inc: sobol_points(None, inc.points.span.shape[1], inc.model.noise, 15))
    initial, clock = own.problem.initial, own.clock
    node = local(own.problem, own.increments, clock, 0.0, own.problem.start)
    changes, mean = own.increments.of_step(initial, d, clock.step_size, 0.0)
    packed = own.increments.packed(initial)
    gram = own.increments.model.place(initial)
    chains = NumbaChains(
        own.increments.model, initial.parameters, np.array([gram] * replicas), int(d), clock.batch, clock.step_size, 3,
        threads=1, initials=[initial] * replicas,
    )  # fmt: skip
    chains.advance(1)
    seen = chains.grams() - packed
    moving = seen.std(0) > 1e-12
    z = (seen.mean(0) - mean)[moving] / (seen.std(0)[moving] / np.sqrt(replicas))
    assert np.abs(z).max() < 4.5
    variance = own.increments.points.weights @ (changes - own.increments.points.weights @ changes) ** 2 / clock.batch
    # In 40 batches of replicas the variance has an error that heavy tails cannot hide; x.x of d = 60 adds 2/d.
    parts = seen.reshape(40, -1, seen.shape[1]).var(axis=1)[:, moving]
    error = np.hypot(parts.std(0) / np.sqrt(40), 4 / d * variance[moving])
    assert np.abs((parts.mean(0) - variance[moving]) / error).max() < 4.5
    assert np.isfinite(node.covariance).all() and node.bias < 6


def test_a_wrong_step_is_noticed():
    own = increments_of("free", 1000.0)
    wrong = dataclasses.replace(own.clock, step_size=1.05 * own.clock.step_size)
    assert local(own.problem, own.increments, own.clock, 0.0, own.problem.start).bias < 1
    assert local(own.problem, own.increments, wrong, 0.0, own.problem.start).bias > 1.5


@pytest.mark.parametrize(("name", "given"), [("liao", {"m": 2, "m_star": 1}), ("kawata", {})])
def test_the_flows_of_papers_are_the_means_of_their_steps(name, given):
    asked = ready(name, 1.0, d=500, step_size=1e-4, batch=8, **given)
    own = asked.setting
    assert local(own.problem, own.increments, own.clock, 0.0, own.problem.start).bias < 6


def test_units_of_a_polynomial_have_exact_points():
    model = CASES["sphere"][0]
    own = ready(model, 1.0, d=1000).setting
    weights = own.increments.points.weights
    assert len(weights) == 13**3 * 3 and own.increments.model.degree == 2
    assert points_of(increments_of("free", 100.0).increments.model, own.increments.parameters).weights.std() == 0


def test_fresh_starts_have_the_covariance_of_drawn_ones():
    asked = ready(COMMITTEE, 1.0, d=1000)
    own = asked.setting
    mean, covariance, source = fresh_start(own.problem, own.increments, 1000.0)
    assert source == "directions uniform on the sphere"
    runs = odesim.simulate(COMMITTEE, method="compressed", d=1000, save_at=[0.001], seeds=4000, fresh_initial=True)
    drawn = np.sqrt(1000) * np.asarray(runs["M_ww"])[:, 0].reshape(4000, -1)
    z = (drawn.var(0) / np.diag(covariance)[3:] - 1) / np.sqrt(2 / 4000)
    assert np.abs(z).max() < 4.5 and np.abs(mean[3:]).max() == 0


def test_a_jump_of_the_step_is_kept():
    changing = {"limit": "online", "step": [[0, 1.0], [2, 0.2]]}
    system = odesim.declare(student={"unit": "w"}, teacher={"noise": 0.5}, training=changing)
    start = {"Q_ww": [[1.0]], "M_ww": [[0.0]]}
    course = solved(ready(system, 4.0, d=10**6, initial=start), [0.0, 2.0, 4.0], accuracy=1e-7)
    first = solved(ready(line(1.0, 0.5), 2.0, d=10**6, initial=start), [0.0, 2.0], accuracy=1e-7)
    assert np.allclose(course.sigma[1][:2, :2], first.sigma[1], rtol=1e-6)
    assert course.nodes < 200
    assert isinstance(ready(line(1.0, 0.5), 2.0, d=10**6).setting.increments, Increments)

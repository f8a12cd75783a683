"""A flow at a stable fixed point is followed to any horizon, and to no other point is it held."""

import numpy as np
import pytest

import odesim
from odesim.flow.solvers.automatic import ENDLESS, MANY, patient
from odesim.flow.solvers.rest import AWAY, LOOK, at_rest, until_rest
from odesim.flow.solvers.step import Segment, Statistics, StepFailure

TIGHT = np.full(2, 1e-12)


def linear(matrix):
    return lambda t, y: np.array(matrix) @ (y - [1.0, 0.0])


@pytest.mark.parametrize(
    ("matrix", "rests"),
    [
        ([[-1.0, 0.0], [0.0, -2.0]], True),
        ([[-1.0, 30.0], [0.0, -0.5]], True),  # far from symmetric
        ([[-1.0, 2.0], [-2.0, -1.0]], True),  # a spiral
        ([[-1.0, 0.0], [0.0, 1e-3]], False),  # a saddle
        ([[-1.0, 0.0], [0.0, 0.0]], False),  # a direction without a restoring force
        ([[0.0, 1.0], [-1.0, 0.0]], False),  # a centre
    ],
)
def test_only_a_point_to_which_every_direction_returns_is_a_rest(matrix, rests):
    assert at_rest(linear(matrix), 0.0, np.array([1.0, 1e-14]), TIGHT) == rests


def test_the_distance_counts_and_not_the_slope():
    slow = linear([[-1e-9, 0.0], [0.0, -1e-9]])  # 1e-6 from the point the slope is 1e-15
    assert not at_rest(slow, 0.0, np.array([1.0 + 1e-6, 0.0]), TIGHT)
    assert at_rest(slow, 0.0, np.array([1.0, 0.0]), TIGHT)


def test_a_half_stable_point_is_no_rest():
    def escape(t, y):  # 1e-20 escapes at time 1e20
        return np.array([y[0] ** 2])

    assert not at_rest(escape, 0.0, np.array([1e-20]), np.array([1e-12]))


def crawling(t, y):
    """Steps of length 1 for ever."""
    while True:
        yield Segment(t, y, t + 1.0, y, lambda _: y, lambda entries: (np.empty(0), np.empty((0, 2))))
        t += 1.0


def test_the_rest_is_one_step_and_only_where_the_horizon_is_far():
    y, sink, statistics = np.array([1.0, 0.0]), linear([[-1.0, 0.0], [0.0, -2.0]]), Statistics("it")
    far = until_rest(crawling, sink, 3 * AWAY, lambda y: TIGHT, statistics)
    found = list(far(0.0, y))
    assert len(found) == LOOK + 1 and found[-1].t1 == 3 * AWAY
    assert (found[-1].dense(2 * AWAY) == y).all()
    assert statistics.solver == f"it, at rest from time {LOOK}"
    near = until_rest(crawling, sink, 0.5 * AWAY, lambda y: TIGHT, statistics)(0.0, y)
    assert all(next(near).t1 < 0.5 * AWAY for _ in range(5 * LOOK))


def test_the_last_method_gives_up_where_its_steps_would_take_hours():
    statistics = Statistics("it")

    def counted(t, y):
        for segment in crawling(t, y):
            statistics.steps += 1
            yield segment

    steps = patient(counted, 1e300, statistics, ENDLESS)(0.0, np.ones(2))
    with pytest.raises(StepFailure, match="the steps do not grow: at their pace 1e"):
        for _ in steps:
            pass
    assert statistics.steps == MANY + 1


@pytest.mark.parametrize("until", [1e15, 1e300])
def test_a_trained_model_is_followed_to_any_horizon(until):
    model = odesim.declare(
        student={"units": 2, "unit": "erf(w/sqrt(2))"},
        teacher={"units": 2},
        training={"limit": "online", "step": 0.5},
        start={"norm": 0.5, "overlap": 0.2},
    )
    run = odesim.integrate(model, until=until, save_points=3)
    assert run.outcome.kind == "completed" and run["time"][-1] == until
    assert run.statistics["steps"] < 2_000 and "at rest" in run.statistics["solver"]
    assert np.abs(np.asarray(run["M_ww"])[-1] - np.eye(2)).max() < 1e-9  # the teacher, exactly

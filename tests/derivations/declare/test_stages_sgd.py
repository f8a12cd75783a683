"""SGD of several stages: against the flow, explicit against compressed, and the clock of values that change."""

import numpy as np
import pytest

import odesim
from odesim.sgd.beginning import Beginning
from tests.derivations.declare.test_stages import ONLINE, TEACHERS

STAGES = [
    {"name": "first", "teacher": ["one"], "until": 1},
    {"name": "second", "teacher": ["two"], "until": 2, "step": [[0, 0.8], [1.5, 0.3]], "noise": 0.2, "batch": 2},
]


def small():
    return odesim.declare(**TEACHERS, training={**ONLINE, "decay": 0.05}, stage=STAGES)


def vectors(run, k=-1):
    """The order parameters of all replicas at a saved time, (seed, n)."""
    names = ("Q_ww", "one_M_ww", "two_M_ww", "a")
    return np.concatenate([np.asarray(run[name])[:, k].reshape(len(run["Q_ww"]), -1) for name in names], axis=1)


@pytest.mark.parametrize("backend", ["numba", "jax"])
def test_compressed_sgd_follows_the_flow(backend):
    model, d, seeds = small(), 400, 60
    runs = odesim.simulate(model, stage="all", method="compressed", d=d, seeds=seeds, save_points=3, backend=backend)
    flows = odesim.integrate(model, stage="all", d=d, save_points=3)
    for run, flow in zip(runs, flows, strict=True):
        assert run.time == pytest.approx(flow.time, abs=1e-9)
        for name in ("error_first", "error_second"):
            values, expected = np.asarray(run[name]), np.asarray(flow[name])
            z = (values.mean(0) - expected)[1:] / (values.std(0, ddof=1) / seeds**0.5)[1:]
            assert np.abs(z).max() < 4.5
    assert vectors(runs[1], 0) == pytest.approx(vectors(runs[0]), abs=1e-12)  # every replica goes on where it was


@pytest.mark.slow
def test_explicit_and_compressed_sgd_have_one_law():
    count, ends = 4000, {}
    for method in ("explicit", "compressed"):
        runs = odesim.simulate(small(), stage="all", method=method, d=7, seeds=count, save_points=2, seed=5)
        ends[method] = [vectors(run) for run in runs]
    for one, two in zip(ends["explicit"], ends["compressed"], strict=True):
        moving = one.std(0) > 1e-12
        one, two = one[:, moving], two[:, moving]
        z = (one.mean(0) - two.mean(0)) / np.sqrt((one.var(0) + two.var(0)) / count)
        assert np.abs(z).max() < 4.5
        squares = [(x - x.mean(0)) ** 2 for x in (one, two)]
        z = (squares[0].mean(0) - squares[1].mean(0)) / np.sqrt((squares[0].var(0) + squares[1].var(0)) / count)
        assert np.abs(z).max() < 4.5


@pytest.mark.parametrize("method", ["explicit", "compressed"])
def test_sgd_reads_the_clock_of_the_stages(method):
    # The step is 0 from 4 on: a later stage that began its clock at 0 would move until 7.
    model = odesim.declare(
        name="stops", student={"unit": "w"}, teacher={}, start={"overlap": 0.2},
        training={"limit": "online", "step": [[0, 0.5], [4, 0.0]]},
        stage=[{"name": "one", "until": 3}, {"name": "two", "until": 6}],
    )  # fmt: skip
    _, two = odesim.simulate(model, stage="all", method=method, d=20, seeds=2, save_points=61)
    M = np.asarray(two["M_ww"])[:, :, 0, 0]
    after = two.time >= 4
    assert two.time[0] == 3 and np.ptp(M[:, after], axis=1) == pytest.approx(0.0, abs=1e-12)
    assert (np.abs(np.diff(M[:, ~after], axis=1)) > 0).all()


def test_sgd_goes_on_from_a_run():
    model = small()
    whole = odesim.simulate(model, stage="all", method="compressed", d=30, seeds=3)
    (second,) = odesim.simulate(after=whole[0], stage="second", method="compressed")
    assert np.array_equal(vectors(second), vectors(whole[1])) and second.origin.parameters["second_noise"] == 0.2
    flow = odesim.integrate(model, d=30)
    (other,) = odesim.simulate(after=flow, stage="second", method="compressed", seeds=2)
    assert other.time[0] == 1 and vectors(other, 0)[1] == pytest.approx(
        np.concatenate([np.asarray(flow[n])[-1].ravel() for n in ("Q_ww", "one_M_ww", "two_M_ww", "a")]), abs=1e-12
    )
    with pytest.raises(odesim.UsageError, match="the continued run has 3 replicas"):
        odesim.simulate(after=whole[0], stage="second", method="compressed", seeds=2)


def test_samples_of_stages_are_independent():
    # Of the same stream a second stage would draw the samples of the first again.
    begin = Beginning(2.0)
    assert begin.seed(0, 0.1) != 0 and begin.seed(0, 0.1) != Beginning(2.1).seed(0, 0.1)


def test_steps_that_miss_the_beginning_are_refused():
    model = odesim.declare(
        name="flows", student={"unit": "erf(w)"}, teacher={}, training={"limit": "flow", "step": 0.01},
        stage=[{"name": "one", "until": 1}, {"name": "two", "until": 2, "rates": "1/(1 + t)"}],
    )  # fmt: skip
    with pytest.raises(
        odesim.UsageError, match=r"must begin at a multiple of its step: stage two begins at 1, .* step is 0.03"
    ):
        odesim.simulate(model, stage="all", method="compressed", step_size=0.03, d=50)
    runs = odesim.simulate(model, stage="all", method="compressed", step_size=0.02, d=50)
    assert runs[1].time[[0, -1]].tolist() == [1, 2]

"""Batches that change in time: against stages with batches of their own, and SGD against its limit."""

import numpy as np
import pytest

import odesim
from odesim.sgd.phases import Phases
from tests.derivations.declare.judged import root_mean_square, z_of_runs

TABLES = {
    "student": {"units": 2, "unit": "erf(w/sqrt(2))", "output": "trained"},
    "teacher": {"units": 2, "noise": 0.5},
    "start": {"Q_ww": [[0.5, 0.05], [0.05, 0.5]], "M_ww": [[0.2, 0.0], [0.0, 0.1]], "a": [0.5, 0.9]},
}
PAIRS = [[0, 1], [2, 4], [4, 16]]
ONLINE = {"limit": "online", "step": 0.8}
MEMORY = {"memory": {"b2": {"start": 0.5, "rate": "g2"}}}


def changing(training=ONLINE, pairs=PAIRS, **more):
    return odesim.declare(**TABLES, training={**training, "batch": pairs, "until": 6}, **more)


def in_stages(training=ONLINE, **more):
    stages = [{"name": f"s{k}", "until": 2 * (k + 1), "batch": batch} for k, (_, batch) in enumerate(PAIRS)]
    return odesim.declare(**TABLES, training=training, stage=stages, **more)


@pytest.mark.parametrize("backend", ["numba", "jax"])
@pytest.mark.parametrize("tier", ["exact", "sampled"])
@pytest.mark.parametrize(
    ("training", "more"), [({**ONLINE, "step": "0.8/(1 + t/4)"}, {}), ({**ONLINE, "step": "0.5/sqrt(b2)"}, MEMORY)]
)
def test_a_batch_that_changes_is_that_of_stages(training, more, tier, backend):
    asked = {"d": 1000, "tier": tier, "backend": backend, "rtol": 1e-9}
    whole = odesim.integrate(changing(training, **more), save_at=[0, 2, 4, 6], **asked)
    parts = odesim.integrate(in_stages(training, **more), stage="all", **asked)
    for k, part in enumerate(parts, 1):
        for name in ("Q_ww", "M_ww", "a"):
            assert np.asarray(whole[name])[k] == pytest.approx(np.asarray(part[name])[-1], abs=2e-7)


@pytest.mark.parametrize(("method", "backend"), [("compressed", "numba"), ("compressed", "jax"), ("explicit", "jax")])
def test_sgd_follows_its_limit(method, backend):
    model, times = changing(), [0, 2, 4, 6]
    flow = odesim.integrate(model, d=600, save_at=times)
    run = odesim.simulate(model, method=method, d=600, seeds=40, save_at=times, backend=backend)
    assert run.origin.options["batches"] == [[0, 1], [1200, 4], [2400, 16]]
    assert root_mean_square(z_of_runs(run, flow, ("Q_ww", "M_ww", "a"))) < 2.0
    # A batch of 1 for all times ends at another error.
    other = odesim.simulate(model, method=method, d=600, seeds=40, save_at=times, backend=backend, batch=1)
    assert "batches" not in other.origin.options
    assert root_mean_square(z_of_runs(other, flow, ("Q_ww", "a"))[-6:]) > 4.0


@pytest.mark.parametrize("backend", ["numba", "jax"])
def test_the_change_is_at_its_step_however_the_steps_are_divided(backend):
    model = changing(pairs=[[0, 2], [0.25, 1]])
    one = odesim.simulate(model, method="compressed", d=40, until=1, seeds=2, backend=backend, save_points=2)
    two = odesim.simulate(model, method="compressed", d=40, until=1, seeds=2, backend=backend, save_points=14)
    assert np.array_equal(np.asarray(one["Q_ww"])[:, -1], np.asarray(two["Q_ww"])[:, -1])


def test_a_stored_state_belongs_to_the_batch_of_its_step():
    made = []

    class Engine:
        def __init__(self, batch):
            self.batch, self.steps = batch, 0
            made.append(batch)

        def advance(self, steps):
            self.steps += steps
            return True

        def state(self):
            return {"steps": np.array(self.steps)}

        def restore(self, arrays):
            self.steps = int(arrays["steps"])

    phases = Phases(((0, 1), (5, 3), (9, 2)), Engine, 0)
    assert phases.advance(7) and phases.batch == 3 and phases.engine.steps == 7 and made == [1, 3]
    phases.restore({"steps": np.array(2)})
    assert phases.batch == 1 and phases.engine.steps == 2
    assert phases.advance(20) and phases.batch == 2 and phases.at == 22


def test_a_number_takes_the_place_of_the_pairs():
    fixed = odesim.declare(**TABLES, training={**ONLINE, "batch": 3, "until": 2})
    one, two = odesim.integrate(changing(), until=2, batch=3), odesim.integrate(fixed)
    assert np.asarray(one["Q_ww"])[-1] == pytest.approx(np.asarray(two["Q_ww"])[-1], abs=1e-8)


def test_a_stage_may_have_pairs():
    model = odesim.declare(**TABLES, training=ONLINE, stage=[
        {"name": "one", "until": 3, "batch": [[0, 1], [2, 4]]}, {"name": "two", "until": 6, "batch": [[0, 4], [4, 16]]},
    ])  # fmt: skip
    *_, end = odesim.integrate(model, stage="all", d=1000, rtol=1e-9)
    whole = odesim.integrate(changing(), d=1000, rtol=1e-9)
    assert np.asarray(end["Q_ww"])[-1] == pytest.approx(np.asarray(whole["Q_ww"])[-1], abs=1e-7)
    runs = odesim.simulate(model, stage="all", method="compressed", d=40, seeds=2)
    assert runs[1].origin.options["batches"] == [[0, 4], [160, 16]] and runs[1].origin.options["batch"] == 4


def test_a_flow_has_batches_in_sgd_alone():
    model = changing({"limit": "flow", "step": 0.01}, [[0, 5], [1, 50]])
    fixed = odesim.declare(**TABLES, training={"limit": "flow", "until": 6})
    one, two = (odesim.integrate(each, rtol=1e-9) for each in (model, fixed))
    assert np.asarray(one["Q_ww"]) == pytest.approx(np.asarray(two["Q_ww"]), abs=1e-7)
    run = odesim.simulate(model, method="compressed", d=50, until=2)
    assert run.origin.options["batches"] == [[0, 5], [100, 50]]


@pytest.mark.parametrize(
    ("batch", "sentence"),
    [
        ([[0, 1.5]], "batch is a whole number, or a list of pairs of a time and a whole number"),
        ([[0, "3*d"]], "batch is a whole number, or a list of pairs of a time and a whole number"),
        ([[0, 0]], "batch is a whole number, or a list of pairs of a time and a whole number"),
        ([0, 1], "batch is a whole number, or a list of pairs of a time and a whole number"),
        ([[1, 4]], "times of batch must increase from 0, but the first is 1"),
        ([[0, 4], [3, 5], [3, 6]], "times of batch must increase from 0, but 3 follows 3"),
        ([], "batch is a number, an expression in t, or a list of pairs"),
    ],
)
def test_what_is_refused(batch, sentence):
    with pytest.raises(odesim.UsageError, match=sentence):
        changing(pairs=batch)


def test_giant_steps_have_one_batch():
    with pytest.raises(odesim.UsageError, match="limit 'batch' and a time-dependent batch cannot be combined yet"):
        changing({"limit": "batch"}, [[0, 100], [2, 200]])


def test_a_batch_without_room_is_refused_before_the_run():
    with pytest.raises(odesim.UsageError, match="compressed SGD needs d >="):
        odesim.simulate(changing(pairs=[[0, 1], [2, 2]]), method="compressed", d=5, seeds=1)

"""Ctrl-C in Python: what there is by then is in the exception, whole and ready to go on from."""

import numpy as np
import pytest

import derivations
import odesim
from odesim.ask import progress
from odesim.store import read

RUNS = {"liao": {"m": 5, "m_star": 2}, "kawata": {"neurons": 3000}}
"""Parameters of the systems that are too quick, or too slow, at their defaults."""


@pytest.fixture
def stopping(monkeypatch):
    """Ctrl-C at the given call of the progress of a notebook, which otherwise shows nothing."""

    def at(count):
        seen = []

        def note(self, reached, end):
            seen.append(reached)
            if len(seen) == count:
                raise KeyboardInterrupt

        monkeypatch.setattr(progress.Progress, "__call__", note)
        return seen

    monkeypatch.setattr(progress, "in_notebook", lambda: True)
    monkeypatch.setattr(progress, "DELAY", 1e6)
    return at


@pytest.mark.parametrize("system", derivations.names())
def test_every_way_of_stepping_gives_what_it_has(system, stopping):
    stopping(2)
    with pytest.raises(KeyboardInterrupt) as caught:
        odesim.integrate(system, **RUNS.get(system, {}))
    if system == "kawata":  # whose neurons are taken to the end one after another
        assert not isinstance(caught.value, odesim.InterruptedRun)
        return
    run = caught.value.result
    assert run.outcome.kind == "interrupted" and run.outcome.time == run.time[-1] > 0
    assert "stopped.result" in str(caught.value)
    assert all(np.isfinite(v.values[-1]).all() for v in run.state.values() if v.dtype.kind == "f")


def test_an_interrupted_flow_goes_on_to_where_it_would_have_come(stopping, tmp_path):
    asked = {"m": 5, "m_star": 2, "d": 400, "seed": 3, "until": 20.0, "rtol": 1e-10}
    whole = odesim.integrate("liao", **asked)
    stopping(40)
    with pytest.raises(odesim.InterruptedRun) as caught:
        odesim.integrate("liao", **asked)
    part = caught.value.result
    assert 0 < part.time[-1] < 20.0
    stopping(10**9)
    rest = part.continue_(until=20.0, rtol=1e-10)
    assert rest.time[-1] == 20.0
    assert np.allclose(rest["gamma2"][-1], whole["gamma2"][-1], atol=1e-7)
    stored = read.load(part.save(tmp_path / "part", pictures=False))
    assert stored.outcome.kind == "interrupted" and stored.digest != whole.asked.digest


def test_an_interrupted_stage_leaves_the_stages_before_it_and_its_own_beginning(stopping):
    stopping(10**9)
    quick = {"m": 4, "m_star": 2, "d": 100, "until": {"train": 8.0, "tune": 30.0}}
    runs = odesim.integrate("liao", stage="train,prune,tune", **quick)
    count = len(stopping(10**9))
    assert count == 0 and len(runs) == 3
    seen = stopping(10**9)
    odesim.integrate("liao", stage="train,prune,tune", **quick)
    stopping(len(seen) - 2)
    with pytest.raises(odesim.InterruptedRun) as caught:
        odesim.integrate("liao", stage="train,prune,tune", **quick)
    stages = caught.value.result
    assert [run.origin.stage for run in stages] == ["train", "prune", "tune"]
    assert [run.outcome.kind for run in stages][::2] == ["completed", "interrupted"]


def test_interrupted_sgd_keeps_the_states_that_were_saved(stopping):
    asked = {"m": 3, "m_star": 2, "d": 200, "step_size": 1e-3, "batch": 32, "seeds": 2, "seed": 1, "save_points": 11}
    whole = odesim.simulate("liao", method="compressed", until=5.0, **asked)
    stopping(4)
    with pytest.raises(odesim.InterruptedRun) as caught:
        odesim.simulate("liao", method="compressed", until=5.0, **asked)
    part = caught.value.result
    saved = len(part.time)
    assert 1 <= saved < 11 and part.outcome.kind == "interrupted"
    assert np.array_equal(part["gamma2"], whole["gamma2"][:, :saved])


def test_interrupted_verdicts_and_sweeps(stopping, tmp_path):
    stopping(1)
    with pytest.raises(odesim.InterruptedRun, match="1 of 2 verdicts are kept") as caught:
        odesim.verify("liao", "eq-5-sol")
    assert [verdict.answer for verdict in caught.value.result] == ["refuted"]
    grid = {"seed": [0, 1, 2]}
    small = {"m": 2, "m_star": 1, "d": 50, "until": 1.0}
    stopping(2)
    with pytest.raises(odesim.InterruptedRun, match="with folder= finished runs are stored"):
        odesim.sweep("liao", grid, **small)
    stopping(2)
    with pytest.raises(odesim.InterruptedRun, match="repeat the call to continue"):
        odesim.sweep("liao", grid, folder=tmp_path, **small)
    seen = stopping(10**9)
    odesim.sweep("liao", grid, folder=tmp_path, **small)
    assert seen == [3]

"""Stages on one clock: which can start alone, where they end, and what is told of the ones before."""

import numpy as np
import pytest

import derivations
import odesim
from odesim import store
from odesim.cli import _run as command
from odesim.errors import Unfinished, UsageError
from odesim.flow import pipeline
from odesim.request.trajectory import Trajectory

LIAO = {"m": 5, "m_star": 2, "d": 10**5, "init": "orthogonal"}
WORDS = ["-p", "m=5", "-p", "m_star=2", "-p", "d=1e5", "-p", "init=orthogonal", "--no-figures", "--quiet"]
MAPS = [
    (name, stage.name)
    for name in derivations.names()
    for stage in derivations.system(name).stages
    if stage.kind == "map"
]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A stored run of the training stage, on the clock until 250."""
    folder = tmp_path_factory.mktemp("stages") / "train"
    assert command(["integrate", "--system", "liao", *WORDS, "--until", "250", "--out", str(folder)]) == 0
    return folder


@pytest.mark.parametrize(("system", "stage"), MAPS)
def test_a_stage_without_a_clock_is_never_integrated(system, stage, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="by after=run"):
        odesim.integrate(system, stage=stage)
    assert command(["integrate", "--system", system, "--stage", stage]) == 2
    assert "--from RUN_DIR" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_a_stage_is_run_once():
    with pytest.raises(UsageError, match="each stage runs once"):
        pipeline.build("kawata", {}, "phase1,phase1")


def test_a_tier_of_the_flow_is_refused_by_sgd_and_kept_for_the_flow_beside_it(capsys):
    sgd = ["--system", "liao", "--step-size", "0.1", "--batch", "10", "-p", "tier=riccati"]
    assert command(["simulate", "--method", "compressed", *sgd]) == 2
    assert "tier=riccati is an approximation of the flow" in capsys.readouterr().err
    with pytest.raises(UsageError, match="no meaning for SGD"):
        odesim.simulate("liao", method="compressed", step_size=0.1, batch=10, tier="riccati")


def test_end_times_are_given_by_stage_on_one_clock():
    with pytest.raises(UsageError, match=r"does not say which stage it ends \(train or tune\)"):
        pipeline.build("liao", LIAO, "all", until=50)
    with pytest.raises(UsageError, match=r"40 leaves no time for stage tune, because stage train ends at 50"):
        pipeline.build("liao", LIAO, "all", until="train=50,tune=40")
    with pytest.raises(UsageError, match="no meaning here"):
        pipeline.build("liao", LIAO, "all", until="prune=50")
    train, prune, tune = pipeline.run(pipeline.build("liao", LIAO, "all", until="train=250,tune=300", save_points=3))
    assert train.time.tolist() == [0.0, 125.0, 250.0]
    assert prune.time.tolist() == [250.0] and prune.outcome.time == 250.0
    assert tune.time.tolist() == [250.0, 275.0, 300.0]
    assert tune.outcome.time == 300.0 and tune.outcome.reason == "reached time 300"
    assert train.clock == prune.clock == tune.clock


def test_hitting_times_are_kept_along_the_stages_and_by_the_experts_that_are_left():
    train, prune, tune = pipeline.run(pipeline.build("liao", LIAO, "all", until="train=250,tune=300", save_points=3))
    kept = prune["kept"]
    for later in (prune, tune):
        np.testing.assert_array_equal(later["T_gamma2"], train["T_gamma2"][kept])
    assert tune.summary["pair_recovery_times"] == train.summary["pair_recovery_times"]
    assert min(tune.summary["pair_recovery_times"]) > 100


def test_a_run_is_continued_to_an_end_time_as_one_run_is(trained, tmp_path):
    out = tmp_path / "on"
    words = ["--from", str(trained), "--stage", "train", "--until", "300", "--no-figures", "--quiet"]
    assert command(["integrate", *words, "--out", str(out)]) == 0
    on = store.load(out).trajectory
    once = odesim.integrate("liao", **LIAO, until=300, save_points=7)
    assert on.time[0] == 250.0 and on.time[-1] == 300.0
    np.testing.assert_allclose(on["gamma2"][-1], once["gamma2"][-1], atol=1e-8)
    np.testing.assert_allclose(on["T_gamma2"], once["T_gamma2"], rtol=1e-8)


def test_an_end_before_the_start_is_refused(trained, capsys, tmp_path):
    words = ["--from", str(trained), "--stage", "train", "--until", "100", "--out", str(tmp_path / "x")]
    assert command(["integrate", *words]) == 2
    assert "the run of --from ends at 250" in capsys.readouterr().err


def test_the_system_follows_from_the_run_that_is_continued(trained, tmp_path, capsys):
    out = tmp_path / "prune"
    assert command(["integrate", "--from", str(trained), "--stage", "prune", "--out", str(out), "--no-figures"]) == 0
    assert store.load(out).trajectory.origin.system == "liao"
    assert command(["integrate", "--from", str(trained), "--system", "kawata", "--stage", "phase2"]) == 2
    assert "the run belongs to liao, but --system is kawata" in capsys.readouterr().err


def test_pruning_that_keeps_nothing_is_a_result_and_keeps_what_was_before_it(tmp_path, capsys):
    out = tmp_path / "none"
    words = ["--stage", "all", "--until", "train=5", "--out", str(out)]
    assert command(["integrate", "--system", "liao", *WORDS, *words]) == 0
    run = store.load(out)
    assert [stage.trajectory.origin.stage for stage in run.stages] == ["train", "prune"]
    assert run.outcome.kind == "stopped" and "removed every expert" in run.outcome.reason
    last = run.stages[1].trajectory
    assert last["gamma2"].shape == (1, 0, 2) and last.summary["removed"] == 5


def test_what_was_finished_is_kept_where_a_later_stage_cannot_start(monkeypatch, tmp_path, capsys):
    whole = pipeline._staged

    def fails(case, *others, **options):
        if case.stage == "prune":
            raise UsageError("no room")
        return whole(case, *others, **options)

    monkeypatch.setattr(pipeline, "_staged", fails)
    with pytest.raises(Unfinished, match="stage prune could not start: no room") as caught:
        pipeline.run(pipeline.build("liao", LIAO, "all", until={"train": 5}, save_points=2))
    assert [type(run) for run in caught.value.finished] == [Trajectory]
    out = tmp_path / "kept"
    words = ["--stage", "all", "--until", "train=5", "--out", str(out)]
    assert command(["integrate", "--system", "liao", *WORDS, *words]) == 2
    assert "no room" in capsys.readouterr().err
    assert store.load(out).trajectory.time[-1] == 5.0


def test_ctrl_c_in_a_later_stage_keeps_the_stages_before_it(monkeypatch, tmp_path, capsys):
    whole = pipeline.solve.solve

    def stopped(case, *others, **named):
        if case.stage == "tune":
            raise KeyboardInterrupt
        return whole(case, *others, **named)

    monkeypatch.setattr(pipeline.solve, "solve", stopped)
    out = tmp_path / "kept"
    words = ["--stage", "all", "--until", "train=250", "--out", str(out)]
    assert command(["integrate", "--system", "liao", *WORDS, *words]) == 130
    assert "interrupted in stage tune; the stages before it are stored: --from" in capsys.readouterr().err
    assert [stage.trajectory.origin.stage for stage in store.load(out).stages] == ["train", "prune"]
    assert command(["integrate", "--system", "liao", *WORDS, *words, "--resume"]) == 2
    monkeypatch.undo()
    on = ["--from", str(out), "--stage", "tune", "--until", "300", "--out", str(tmp_path / "on"), "--no-figures"]
    assert command(["integrate", *on]) == 0
    assert store.load(tmp_path / "on").trajectory.time[0] == 250.0


def test_a_pruning_run_from_weights_of_any_size_is_continued(tmp_path):
    rng = np.random.default_rng(0)
    k, m, d = 9, 4, 12
    np.savez(tmp_path / "w.npz", w=rng.normal(size=(k, d)), W=rng.normal(size=(k, m, d)), a=np.sign(rng.normal(size=k)))
    first = ["--system", "pruning", "--initial", str(tmp_path / "w.npz"), "--until", "3", "--quiet", "--no-figures"]
    assert command(["integrate", *first, "--out", str(tmp_path / "tune")]) == 0
    later = ["--from", str(tmp_path / "tune"), "--stage", "score,prune", "--quiet", "--no-figures"]
    assert command(["integrate", *later, "--out", str(tmp_path / "prune")]) == 0
    assert len(store.load(tmp_path / "prune").trajectory["kept"]) < k

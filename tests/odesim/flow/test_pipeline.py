"""Train, prune, fine-tune: stages one by one and in one command, and what greedy pruning removes."""

import json

import numpy as np
import pytest

from derivations.liao import initial, pruning
from derivations.liao.parameters import Parameters
from odesim import store
from odesim.cli import _run as command
from odesim.errors import UsageError
from odesim.flow import pipeline

SIZES = {"m": 5, "m_star": 2, "d": 10**5, "init": "orthogonal"}


def found_state(m=6, m_star=2, d=300, seed=0, dead=False):
    """Used experts near their teachers, unused ones random, optionally one pair (v, w), (v, -w)."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(2 * m + 2 * m_star, d))
    rows[2 * m :] = np.linalg.qr(rng.normal(size=(d, 2 * m_star)))[0].T
    for k in range(m_star):
        rows[k] = rows[2 * m + k] + 0.01 * rng.normal(size=d) / np.sqrt(d)
        rows[m + k] = rows[2 * m + m_star + k] + 0.01 * rng.normal(size=d) / np.sqrt(d)
    if dead:
        rows[m - 1], rows[2 * m - 1] = rows[m - 2], -rows[2 * m - 2]
    names = ("V", "W", "V_star", "W_star")
    arrays = dict(zip(names, np.split(rows, np.cumsum([m, m, m_star])), strict=True))
    arrays["V_star"] = arrays["V_star"] / np.linalg.norm(arrays["V_star"], axis=1, keepdims=True)
    return initial.from_weights(Parameters(m=m, m_star=m_star, d=d), arrays)


def test_kernel_matrix_is_the_mean_of_expert_products_by_monte_carlo():
    start = found_state()
    exact = pruning.kernel_matrix(start)
    blocks = [pruning.sample_matrix(start, 20_000, np.random.default_rng(k)) for k in range(30)]
    error = np.std(blocks, axis=0, ddof=1) / np.sqrt(len(blocks))
    assert (np.abs(np.mean(blocks, axis=0) - exact) < 5 * error + 1e-12).all()


def test_pruning_removes_exactly_the_unused_experts_and_never_a_dead_pair():
    pruned = pruning.greedy_prune(pruning.kernel_matrix(found_state()), 6)
    assert pruned.kept.tolist() == [0, 1]
    assert np.diff(pruned.losses).max() < 0
    # a removal of an unused expert lowers the loss by 3 - 6 c_1
    assert -np.diff(pruned.losses) == pytest.approx(np.full(4, 1.7602742), rel=0.05)
    with_pair = pruning.greedy_prune(pruning.kernel_matrix(found_state(dead=True)), 6)
    assert {4, 5} <= set(with_pair.kept.tolist())


def test_losses_of_pruning_equal_the_squared_error_recomputed():
    matrix = pruning.kernel_matrix(found_state())
    pruned = pruning.greedy_prune(matrix, 6)
    keep = list(range(6))
    for step, loss in enumerate(pruned.losses):
        student = matrix[np.ix_(keep, keep)].sum()
        cross, teacher = matrix[np.ix_(keep, [6, 7])].sum(), matrix[6:, 6:].sum()
        assert loss == pytest.approx(student - 2 * cross + teacher, abs=1e-10)
        if step < len(pruned.removed):
            keep.remove(int(pruned.removed[step]))


def test_whole_pipeline_recovers_prunes_and_tunes():
    train, prune, tune = pipeline.run(pipeline.build("liao", SIZES, "all", until={"train": 250.0}, save_points=5))
    assert train.summary["recovered"] == 2
    assert prune.summary["removed"] == 3
    assert prune["gamma2"].shape == (1, 2, 2)
    assert tune.summary["loss_final"] < 1e-6
    assert sorted(np.abs(tune["gamma2"][-1]).max(axis=0)) == pytest.approx([1.0, 1.0], abs=1e-6)


def test_stages_continue_a_stored_run(tmp_path):
    options = ["-p", "m=5", "-p", "m_star=2", "-p", "d=1e5", "-p", "init=orthogonal", "--until", "250"]
    train = tmp_path / "train"
    common = ["--no-figures", "--quiet", "--save-points", "5"]
    assert command(["integrate", "--system", "liao", *options, "--out", str(train), *common]) == 0
    later = ["--from", str(train), "--stage", "prune,tune", "--out", str(tmp_path / "rest"), "--no-figures", "--quiet"]
    assert command(["integrate", "--system", "liao", *later]) == 0
    run = store.load(tmp_path / "rest")
    assert [stage.trajectory.origin.stage for stage in run.stages] == ["prune", "tune"]
    assert (tmp_path / "rest" / "stages" / "02-tune" / "trajectory.nc").is_file()
    manifest = json.loads((tmp_path / "rest" / "manifest.json").read_text())
    assert manifest["stages"] == ["01-prune", "02-tune"]


def test_stages_out_of_order_and_orphans_are_refused():
    with pytest.raises(UsageError, match="order train, prune, tune"):
        pipeline.build("liao", SIZES, "tune,train")
    with pytest.raises(UsageError, match="starts from the end of an earlier run"):
        pipeline.build("liao", SIZES, "prune")

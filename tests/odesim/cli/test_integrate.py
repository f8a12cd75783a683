"""`odesim integrate`: a run folder, or one sentence, the right exit code, and nothing that looks finished."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from odesim import store

TINY = ("integrate", "--system", "tiny")


def test_a_run_leaves_a_folder_that_can_be_read_back(odesim_command):
    answer = odesim_command(*TINY, "-p", "size=4", "--save-points", "1e1", "--json")
    assert answer.code == 0
    assert set(answer.json) == {"folder", "outcome", "summary"}
    assert answer.json["outcome"] == {"kind": "completed", "time": 4.0, "reason": ""}
    assert answer.json["summary"]["never"] is None
    run = store.load(answer.json["folder"])
    np.testing.assert_allclose(run["y"][-1], np.exp(-4.0) * np.arange(1, 5), rtol=1e-15)  # exact but for rounding
    assert run["y"].shape == (10, 4)


def test_the_human_answer_names_outcome_numbers_and_folder(odesim_command):
    answer = odesim_command(*TINY)
    assert "tiny decay (exact): completed at time 4" in answer.out
    assert "final" in answer.out
    folder = next(Path("runs").iterdir())
    assert f"run folder {folder}" in answer.out
    assert answer.err == ""


def test_quiet_prints_the_folder_alone(odesim_command):
    assert odesim_command(*TINY, "--quiet", "--out", "here").out == "here\n"


def test_a_dry_run_computes_and_writes_nothing(odesim_command, solve_as):
    solve_as(None)
    answer = odesim_command(*TINY, "-p", "rate=1/2", "--dry-run", "--json")
    assert answer.code == 0
    assert answer.json["request"]["parameters"]["rate"] == 0.5
    assert answer.json["request"]["until"] == 8.0
    assert answer.json["folder"] == f"runs/tiny-{answer.json['digest']}"
    assert list(Path().iterdir()) == []


def test_no_figures_draws_none(odesim_command):
    odesim_command(*TINY, "--no-figures", "--out", "here")
    assert sorted(path.name for path in Path("here").iterdir()) == [
        "manifest.json",
        "summary.json",
        "trajectory.nc",
    ]


def test_a_repeated_request_replaces_its_default_folder(odesim_command):
    first, second = odesim_command(*TINY, "--json"), odesim_command(*TINY, "--json")
    assert first.json["folder"] == second.json["folder"]
    assert second.code == 0


def test_resume_returns_the_stored_run_without_computing(odesim_command, solve_as):
    odesim_command(*TINY, "--out", "here")
    solve_as(None)
    answer = odesim_command(*TINY, "--out", "here", "--resume", "--json")
    assert answer.code == 0
    assert answer.json["outcome"]["kind"] == "completed"


USAGE = [
    (("integrate", "--system", "laio"), "unknown system 'laio'; did you mean 'liao'?"),
    ((*TINY, "-p", "sise=3"), "unknown parameter 'sise'; did you mean 'size'?"),
    ((*TINY, "-p", "size"), "-p expects NAME=VALUE such as m=25, but 'size' was given."),
    ((*TINY, "-p", "size=13"), "size must not be 13; try 12 or 14."),
    ((*TINY, "-p", "size=0"), "parameter size must be at least 1, but 0 was given."),
    ((*TINY, "-p", "tier=exactly"), "must be one of exact, coarse"),
    ((*TINY, "--preset", "fast"), "tiny has no preset 'fast'"),
    ((*TINY, "--stage", "grow"), "tiny has no stage 'grow'"),
    ((*TINY, "--rtol", "-1e-8"), "--rtol must lie between 0 and 1"),
    ((*TINY, "--atol", "-1"), "--atol must be at least 0"),
    ((*TINY, "--until", "-1"), "--until must be above 0"),
    ((*TINY, "--save-points", "1"), "--save-points must be at least 2"),
    ((*TINY, "--seed", "1.5"), "--seed must be a whole number"),
    ((*TINY, "--backend", "torch"), "--backend must be one of numba, jax"),
    ((*TINY, "--threads", "0"), "the number of threads must be at least 1"),
    ((*TINY, "--config", "none.toml"), "cannot read the file none.toml of --config"),
    ((*TINY, "--initial", "none.npz"), "cannot read the file none.npz of --initial"),
    ((*TINY, "--overwrite", "--resume"), "exclude each other"),
    ((*TINY, "--nonsense"), "No such option: --nonsense"),
    (("integrate",), "Missing option '--system'"),
    (("integrat",), "No such command 'integrat'"),
    (("show", "nowhere"), "there is no run folder nowhere"),
    (("plot", "."), "has no manifest.json"),
    (("systems", "liao0"), "unknown system 'liao0'"),
    (("cite", "--system", "x"), "unknown system 'x'"),
    (("derive", "--system", "liao", "--format", "word"), "--format must be one of text, latex, latex-fragment, python"),
]


@pytest.mark.parametrize(("words", "sentence"), USAGE, ids=[" ".join(words) for words, _ in USAGE])
def test_each_mistake_of_the_caller_is_one_sentence_and_exit_code_2(odesim_command, words, sentence):
    answer = odesim_command(*words)
    assert answer.code == 2
    assert sentence in answer.err
    assert answer.err.startswith("odesim: ")
    assert answer.err.count("\n") == 1
    assert answer.out == ""
    assert list(Path().iterdir()) == []


def test_the_system_has_to_be_known_by_its_exact_name(odesim_command):
    assert odesim_command("integrate", "--system", "../tiny").code == 2


def test_a_finished_folder_is_not_overwritten_unasked(odesim_command):
    odesim_command(*TINY, "--out", "here")
    before = Path("here/manifest.json").read_bytes()
    refused = odesim_command(*TINY, "--out", "here")
    assert (refused.code, Path("here/manifest.json").read_bytes()) == (2, before)
    assert "give --overwrite to replace it" in refused.err
    assert odesim_command(*TINY, "--out", "here", "--overwrite").code == 0


def test_a_numerical_failure_is_stored_with_its_last_good_state_and_exit_code_3(odesim_command, solve_as, tiny_run):
    solve_as(lambda case, **options: tiny_run(case, kind="failed", **options))
    answer = odesim_command(*TINY, "--out", "here")
    assert answer.code == 3
    assert "odesim: a reason; the run up to there is in here.\n" in answer.err
    assert store.load("here").outcome.kind == "failed"


def test_a_stop_by_an_event_is_no_failure(odesim_command, solve_as, tiny_run):
    solve_as(lambda case, **options: tiny_run(case, kind="stopped", **options))
    answer = odesim_command(*TINY)
    assert answer.code == 0
    assert "a reason." in answer.out


def test_a_full_disk_is_one_sentence_and_exit_code_3(odesim_command, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    answer = odesim_command(*TINY, "--out", "here")
    assert answer.code == 3
    assert "the disk is full" in answer.err
    assert answer.err.count("\n") == 1
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize("way", ["exception", "outcome"])
def test_ctrl_c_is_one_sentence_and_exit_code_130_without_a_manifest(odesim_command, solve_as, tiny_run, way):
    def interrupted(case, progress=None, checkpoint=None):
        if way == "outcome":
            return tiny_run(case, kind="interrupted")
        checkpoint.write({"y": np.ones(3)}, {"time": 1.0})
        raise KeyboardInterrupt

    solve_as(interrupted)
    answer = odesim_command(*TINY, "--out", "here")
    assert answer.code == 130
    assert answer.err.startswith("odesim: interrupted; no result was written")
    assert answer.err.count("\n") == 1
    assert ("--resume continues" in answer.err) == (way == "exception")
    assert not Path("here/manifest.json").exists()


def test_ctrl_c_while_writing_leaves_nothing(odesim_command, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    answer = odesim_command(*TINY, "--out", "here")
    assert (answer.code, answer.err) == (130, "odesim: interrupted; no result was written.\n")
    assert list(Path().iterdir()) == []


def test_an_interrupted_run_is_resumed_from_its_checkpoint(odesim_command, solve_as, tiny_run):
    seen = []

    def interrupted(case, progress=None, checkpoint=None):
        checkpoint.write({"y": np.ones(3)}, {"time": 1.0})
        raise KeyboardInterrupt

    def resumed(case, progress=None, checkpoint=None):
        seen.append(checkpoint.read()[1])
        return tiny_run(case)

    solve_as(interrupted)
    odesim_command(*TINY, "--out", "here")
    solve_as(resumed)
    assert odesim_command(*TINY, "--out", "here", "--seed", "1", "--resume").code == 2  # another request
    assert odesim_command(*TINY, "--out", "here", "--resume").code == 0
    assert seen == [{"time": 1.0}]
    assert not Path("here/checkpoint.npz").exists()


def test_a_missing_device_is_exit_code_4(odesim_command, solve_as):
    from odesim.errors import MissingError

    def missing(case, **_):
        raise MissingError("there is no GPU here.")

    solve_as(missing)
    answer = odesim_command(*TINY)
    assert (answer.code, answer.err) == (4, "odesim: there is no GPU here.\n")


def test_a_mistake_of_ours_is_told_apart_and_traced_only_on_request(odesim_command, solve_as):
    def broken(case, **_):
        raise ZeroDivisionError("division by zero")

    solve_as(broken)
    silent, traced = odesim_command(*TINY), odesim_command(*TINY, "--debug")
    assert (silent.code, traced.code) == (70, 70)
    assert "internal error, ZeroDivisionError: division by zero" in silent.err
    assert "Traceback" not in silent.err
    assert "Traceback" in traced.err


def test_initial_arrays_set_the_sizes(odesim_command):
    np.savez("start.npz", y=np.ones(6))
    assert odesim_command(*TINY, "--initial", "start.npz", "--out", "here").code == 0
    assert store.load("here").manifest["request"]["parameters"]["size"] == 6
    answer = odesim_command(*TINY, "--initial", "start.npz", "-p", "size=3", "--out", "there")
    assert (answer.code, "the file has size 6" in answer.err) == (2, True)

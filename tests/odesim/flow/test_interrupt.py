"""Ctrl-C where it meets compiled code: the run is stopped as anywhere else, and what there is is kept."""

import os
import signal
import subprocess
import sys

import pytest

import derivations
from odesim.cli import _run as command
from odesim.errors import interruptible


def swallowed():
    """The error that numba's dispatcher raises for a signal: a `SystemError` caused by Ctrl-C."""
    raise SystemError("returned a result with an exception set") from KeyboardInterrupt()


def test_ctrl_c_inside_a_compiled_function_is_ctrl_c():
    with pytest.raises(KeyboardInterrupt), interruptible():
        swallowed()
    with pytest.raises(SystemError, match="other"), interruptible():
        raise SystemError("other")


RUNS = {"liao": ["m=5", "m_star=2"], "kawata": ["neurons=3000"]}
"""Parameters of the systems that are too quick, or too slow, at their defaults."""


@pytest.mark.parametrize("system", derivations.names())
def test_every_way_of_stepping_is_stopped_with_130(system, monkeypatch, tmp_path, capsys):
    steps = 0

    def progress(self, reached, end):
        nonlocal steps
        steps += 1
        if steps == 2:
            swallowed()

    monkeypatch.setattr("odesim.ask.progress.Progress.__call__", progress)
    chosen = [word for pair in RUNS.get(system, []) for word in ("-p", pair)]
    words = ["integrate", "--system", system, *chosen, "--no-figures", "--quiet", "--out", str(tmp_path / "run")]
    assert command(words) == 130
    assert "interrupted" in capsys.readouterr().err and not (tmp_path / "run" / "manifest.json").exists()


@pytest.mark.slow
def test_a_signal_stops_chen_in_the_middle_and_the_run_is_resumed(tmp_path):
    words = ["integrate", "--system", "chen", "--no-figures", "-p", "K=4", "--until", "1"]
    words += ["--out", str(tmp_path / "run")]
    process = subprocess.Popen([sys.executable, "-m", "odesim", *words], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    heard = ""
    while "integrating chen: " not in heard:  # it has begun, and has some seconds to go
        said = process.stderr.read(1)
        assert said, f"ended before it was stopped: {heard}"
        heard += said
    os.kill(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130 and "--resume continues from" in said
    assert (tmp_path / "run" / "checkpoint.npz").is_file()
    assert command([*words, "--resume"]) == 0

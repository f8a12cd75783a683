"""The process that draws: the same pictures as here, its failures as exceptions, and no process left behind."""

import dataclasses
import io
import json
import os
import pickle
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from odesim import store
from odesim.cli import painter as process
from odesim.cli.painter import Painter
from odesim.flow import solve
from odesim.machine import processes
from odesim.request.case import Case
from odesim.show import plot

DRAWN = ("alignment.png", "trajectories.png")


@pytest.fixture(scope="module")
def run():
    """A short run of liao, with the request that it answers."""
    case = Case.build("liao", {"m": 3, "m_star": 1, "d": 100}, until=1.0, save_points=5)
    return dataclasses.replace(solve.solve(case), asked=case)


@pytest.fixture(scope="module")
def stored(run, tmp_path_factory):
    """The run with its pictures, drawn in this process."""
    return store.save(run, run.asked, tmp_path_factory.mktemp("runs") / "run", {}, plot.drawn)


def ask(painter, run, folder):
    """Have a run drawn, with nothing to do meanwhile."""
    with painter.drawn(run, folder):
        pass


def pixels(path):
    """The picture as numbers."""
    from matplotlib.image import imread

    return imread(path)


def test_it_draws_what_this_process_draws(run, stored, tmp_path):
    with Painter() as painter:
        drawn = store.save(run, run.asked, tmp_path / "run", {}, painter.drawn)
    assert sorted(path.name for path in drawn.glob("*.png")) == list(DRAWN)
    for name in DRAWN:
        np.testing.assert_array_equal(pixels(drawn / name), pixels(stored / name))


def test_it_starts_when_others_are_done_or_when_something_is_to_be_drawn(run, tmp_path):
    done = threading.Event()
    with Painter([done.wait]) as painter:
        assert painter._process is None
        done.set()
        began = time.monotonic()
        while painter._process is None:
            assert time.monotonic() - began < 10.0
            time.sleep(0.01)
    with Painter([threading.Event().wait]) as painter:
        ask(painter, run, tmp_path)
    assert (tmp_path / DRAWN[0]).exists()
    late = threading.Event()
    with Painter([late.wait]) as painter:
        pass
    late.set()
    assert painter._start() is None  # nobody would end it


def test_a_missing_folder_is_an_os_error_and_a_run_that_cannot_be_drawn_is_not(run, tmp_path):
    with Painter() as painter:
        with pytest.raises(FileNotFoundError):
            ask(painter, run, tmp_path / "none")
        with pytest.raises(RuntimeError, match="gamma"):
            ask(painter, dataclasses.replace(run, state={}), tmp_path)
        ask(painter, run, tmp_path)
    assert (tmp_path / DRAWN[0]).exists()


def test_what_fails_meanwhile_is_raised_when_the_pictures_are_there(run, tmp_path):
    with Painter() as painter:
        with pytest.raises(ZeroDivisionError), painter.drawn(run, tmp_path):
            raise ZeroDivisionError
        assert sorted(path.name for path in tmp_path.glob("*.png")) == list(DRAWN)


def test_one_that_has_ended_says_so_and_costs_no_numbers(run, tmp_path, capsys):
    with Painter() as painter:
        painter._process.kill()
        painter._process.wait()
        with pytest.raises(RuntimeError, match="has ended"):
            ask(painter, run, tmp_path)
        folder = store.save(run, run.asked, tmp_path / "run", {}, painter.drawn)
    assert "could not be drawn (the process that draws has ended)" in capsys.readouterr().err
    assert store.load(folder).trajectory.outcome == run.outcome


def test_a_run_that_cannot_be_sent_costs_no_numbers(run, tmp_path):
    with Painter() as painter, pytest.raises(RuntimeError, match="has ended"):
        ask(painter, dataclasses.replace(run, statistics={"held": threading.Lock()}), tmp_path)


def test_none_is_left_behind():
    with Painter() as painter:
        number = painter._process.pid
    deadline = time.monotonic() + 10
    while Path(f"/proc/{number}").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert painter._process.returncode is not None
    assert not Path(f"/proc/{number}").exists()


def test_what_it_does_while_it_waits_leaves_nothing_to_import(run, tmp_path):
    (tmp_path / "run").write_bytes(pickle.dumps(dataclasses.replace(run, asked=None)))
    code = f"""
import pickle
import sys
from pathlib import Path
from odesim.cli import painter
import matplotlib.backends.backend_agg, matplotlib.figure, xarray
from odesim.show import plot
painter._label_nothing()
painter._draw_nothing()
before = {{name.split(".")[0] for name in sys.modules}}
folder = Path({str(tmp_path)!r})
plot.draw(pickle.loads((folder / "run").read_bytes()), folder)
print(*({{name.split(".")[0] for name in sys.modules}} - before))
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert set(done.stdout.split()) <= sys.stdlib_module_names and (tmp_path / DRAWN[0]).exists()


def test_who_is_asked_already_does_nothing_before(run, tmp_path, monkeypatch, capsys):
    wanted = pickle.dumps((str(tmp_path), dataclasses.replace(run, asked=None)))
    exercised = []
    monkeypatch.setattr(sys, "stdout", sys.stdout)  # which it sets
    for name in ("_label_nothing", "_draw_nothing"):
        monkeypatch.setattr(process, name, lambda name=name: exercised.append(name))
    monkeypatch.setattr(processes, "in_copies", plot.in_turn)  # a copy of this process would be one of all tests
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(wanted)))
    process.serve()
    assert exercised == [] and json.loads(capsys.readouterr().out) is None and (tmp_path / DRAWN[0]).exists()

    reader, writer = (os.fdopen(end, mode) for end, mode in zip(os.pipe(), "rw", strict=True))
    monkeypatch.setattr(sys, "stdin", reader)
    serving = threading.Thread(target=process.serve)
    serving.start()
    deadline = time.monotonic() + 20
    while len(exercised) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    writer.close()
    serving.join(20)
    reader.close()
    assert exercised == ["_label_nothing", "_draw_nothing"] and not serving.is_alive()

"""The process that draws: the same pictures as here, its failures as exceptions, and no process left behind."""

import io
import json
import os
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
from odesim.request.case import Case
from odesim.show import plot

DRAWN = ("alignment.png", "trajectories.png")


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A short run of liao with its pictures, drawn in this process."""
    case = Case.build("liao", {"m": 3, "m_star": 1, "d": 100}, until=1.0, save_points=5)
    return store.save(solve.solve(case), case, tmp_path_factory.mktemp("runs") / "run", {}, plot.draw_stored)


def pixels(path):
    """The picture as numbers."""
    from matplotlib.image import imread

    return imread(path)


def test_it_draws_what_this_process_draws(stored, tmp_path):
    (tmp_path / "trajectory.nc").write_bytes((stored / "trajectory.nc").read_bytes())
    with Painter() as painter:
        painter.draw(tmp_path)
    assert sorted(path.name for path in tmp_path.glob("*.png")) == list(DRAWN)
    for name in DRAWN:
        np.testing.assert_array_equal(pixels(tmp_path / name), pixels(stored / name))


def test_it_starts_when_others_are_done_or_when_something_is_to_be_drawn(stored, tmp_path):
    done = threading.Event()
    with Painter([done.wait]) as painter:
        assert painter._process is None
        done.set()
        began = time.monotonic()
        while painter._process is None:
            assert time.monotonic() - began < 10.0
            time.sleep(0.01)
    (tmp_path / "trajectory.nc").write_bytes((stored / "trajectory.nc").read_bytes())
    with Painter([threading.Event().wait]) as painter:
        painter.draw(tmp_path)
    assert (tmp_path / DRAWN[0]).exists()
    late = threading.Event()
    with Painter([late.wait]) as painter:
        pass
    late.set()
    assert painter._start() is None  # nobody would end it


def test_a_missing_file_is_an_os_error_and_a_broken_one_is_not(stored, tmp_path):
    with Painter() as painter:
        with pytest.raises(FileNotFoundError):
            painter.draw(tmp_path)
        (tmp_path / "trajectory.nc").write_bytes((stored / "trajectory.nc").read_bytes()[:2000])
        with pytest.raises((RuntimeError, OSError)):
            painter.draw(tmp_path)
        (tmp_path / "trajectory.nc").write_bytes((stored / "trajectory.nc").read_bytes())
        painter.draw(tmp_path)
    assert (tmp_path / DRAWN[0]).exists()


def test_one_that_has_ended_says_so(stored):
    with Painter() as painter:
        painter._process.kill()
        painter._process.wait()
        with pytest.raises(RuntimeError, match="has ended"):
            painter.draw(stored)


def test_none_is_left_behind():
    with Painter() as painter:
        number = painter._process.pid
    deadline = time.monotonic() + 10
    while Path(f"/proc/{number}").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert painter._process.returncode is not None
    assert not Path(f"/proc/{number}").exists()


def test_what_it_does_while_it_waits_leaves_nothing_to_import(stored, tmp_path):
    (tmp_path / "trajectory.nc").write_bytes((stored / "trajectory.nc").read_bytes())
    code = f"""
import sys
from pathlib import Path
from odesim.cli import painter
import matplotlib.backends.backend_agg, matplotlib.figure, xarray
from odesim.show import plot
painter._read_nothing()
painter._draw_nothing()
before = {{name.split(".")[0] for name in sys.modules}}
plot.draw_stored(Path({str(tmp_path)!r}))
print(*({{name.split(".")[0] for name in sys.modules}} - before))
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert set(done.stdout.split()) <= sys.stdlib_module_names and (tmp_path / DRAWN[0]).exists()


def test_who_is_asked_already_does_nothing_before(stored, tmp_path, monkeypatch, capsys):
    (tmp_path / "trajectory.nc").write_bytes((stored / "trajectory.nc").read_bytes())
    exercised = []
    monkeypatch.setattr(sys, "stdout", sys.stdout)  # which it sets
    for name in ("_read_nothing", "_draw_nothing"):
        monkeypatch.setattr(process, name, lambda name=name: exercised.append(name))
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(str(tmp_path)) + "\n"))
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
    assert exercised == ["_read_nothing", "_draw_nothing"] and not serving.is_alive()

"""The process that draws: the same pictures as here, its failures as exceptions, and no process left behind."""

import time
from pathlib import Path

import numpy as np
import pytest

from odesim import store
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

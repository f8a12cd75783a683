"""Long sweeps are asked for, and processes that cannot be started are refused with what to write."""

import json
import multiprocessing
import subprocess
import sys

import numpy as np
import pytest

from odesim.cli import _run as command
from odesim.cli.waiting import Wait
from odesim.errors import UsageError
from odesim.machine.processes import require_processes
from odesim.request.parse import parse_ranges


def test_nine_values_on_a_logarithmic_grid():
    values = parse_ranges(["d=1e3..1e5:9", "step=1e-3..1:4"], (), ["step"])
    assert [int(v) for v in values["d"]] == np.round(np.geomspace(1e3, 1e5, 9)).astype(int).tolist()
    assert [float(v) for v in values["step"]] == pytest.approx(np.geomspace(1e-3, 1.0, 4).tolist(), rel=1e-12)
    assert parse_ranges(["d=2..5:10"])["d"] == ["2", "3", "4", "5"]  # every whole number once
    for wrong in ("1e5..1e3:9", "0..10:3", "1..10:1", "1..10:x", "1..2:1e9"):
        with pytest.raises(UsageError):
            parse_ranges([f"d={wrong}"])


def test_a_sweep_of_99001_cells_is_asked_for(capsys):
    assert command(["sweep", "--system", "liao", "--over", "d=1e3..1e5"]) == 2
    said = capsys.readouterr().err
    assert "99,001 cells" in said and "--yes" in said and "1e3..1e5:9" in said


def test_the_grid_of_the_message_is_a_sweep_of_nine_cells(capsys):
    words = ["sweep", "--system", "liao", "-p", "m=2", "-p", "m_star=1", "--over", "d=1e3..1e5:9", "--dry-run"]
    assert command(words) == 0
    assert len(json.loads(capsys.readouterr().out)["over"]["d"]) == 9


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("odesim.cli.waiting.time.monotonic", lambda: now[0])
    return now


def test_the_time_left_is_said_at_the_pace_of_the_cells_that_ended(clock, tmp_path, capsys):
    wait = Wait(100, agreed=False)
    wait.begin(tmp_path, 1, quiet=False)
    report = wait.watching(lambda done, cells: None)
    for done, at in enumerate((20.0, 22.0, 24.0, 26.0), 1):  # the first was compiled
        clock[0] = at
        report(done, 100)
    assert capsys.readouterr().err == "odesim: 100 cells, about 3.23 minutes left\n"  # 97 cells of 2 s


def test_more_than_an_hour_is_asked_for_and_agreed_to(clock, tmp_path):
    for agreed in (False, True):
        wait = Wait(100, agreed)
        clock[0] = 0.0
        wait.begin(tmp_path, 2, quiet=True)
        report = wait.watching(lambda done, cells: None)
        clock[0] = 160.0  # 100 s beyond what may have been compiled, for 99 cells by two workers: 4,950 s
        if agreed:
            report(1, 100)
            continue
        with pytest.raises(UsageError, match=r"about 1\.38 hours more: give --yes .* --resume"):
            report(1, 100)


SCRIPT = """
import odesim

print("computes")
{guard}data = odesim.sweep("liao", {{"d": [100, 200]}}, m=2, m_star=1, until=0.1, workers=2)
{guard}print(data.sizes["d"])
"""


def run_script(tmp_path, guard):
    path = tmp_path / "01_sweep.py"
    text = SCRIPT.format(guard="    " if guard else "")
    path.write_text(
        text.replace('print("computes")', 'if __name__ == "__main__":\n    print("computes")') if guard else text
    )
    return subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=240)


def test_a_script_without_a_main_guard_is_told_what_to_write(tmp_path):
    answer = run_script(tmp_path, guard=False)
    assert answer.returncode == 1 and answer.stdout == "computes\n"  # nothing ran twice
    last = answer.stderr.strip().splitlines()[-1]
    assert 'if __name__ == "__main__":' in last and "line 5 of 01_sweep.py" in last and "workers=1" in last
    assert answer.stderr.count("Traceback") == 1 and "fewer workers" not in answer.stderr


@pytest.mark.slow
def test_a_script_with_a_main_guard_computes(tmp_path):
    answer = run_script(tmp_path, guard=True)
    assert answer.returncode == 0 and answer.stdout == "computes\n2\n"


def refused_in_a_pool(workers):
    try:
        require_processes(workers)
    except UsageError as error:
        return str(error)
    return ""


def test_a_worker_of_a_pool_is_told_that_it_cannot_start_processes():
    with multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn").Pool(1) as pool:
        said = pool.apply(refused_in_a_pool, (2,))
    assert "inside a worker process" in said and "--workers 1" in said
    assert refused_in_a_pool(2) == ""

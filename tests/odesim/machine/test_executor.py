"""Long work on a real dask scheduler with workers as processes: the answers of one machine, also when a worker dies."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import xarray

import odesim
from odesim.cli import _run as command
from odesim.sweeps import sweep

pytest.importorskip("distributed")


def distributed(*words, **more):
    """A process of dask's command line, in an environment with this odesim."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = [sys.executable, "-m", *words]
    return subprocess.Popen(run, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more)


def worker(address, folder):
    """A worker of one thread, without the nanny that would start it again."""
    words = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(folder)]
    return distributed("distributed.cli.dask_worker", address, *words)


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory):
    """The address of a scheduler, and its workers so far."""
    described = tmp_path_factory.mktemp("scheduler") / "scheduler.json"
    words = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(described)]
    process = distributed("distributed.cli.dask_scheduler", *words)
    for _ in range(300):
        if described.is_file() and described.stat().st_size:
            break
        time.sleep(0.1)
    workers = []
    yield json.loads(described.read_text())["address"], workers
    for one in [*workers, process]:
        one.kill()
        one.wait()


@pytest.fixture
def cluster(scheduler, tmp_path):
    """The address of a scheduler with two living workers; those that a test before this one killed are replaced."""
    address, workers = scheduler
    workers[:] = [one for one in workers if one.poll() is None]
    while len(workers) < 2:
        workers.append(worker(address, tmp_path / f"worker{len(workers)}"))
    return address, workers


def small(count=6):
    over = {"d": (150, 1000), "seed": tuple(range(count // 2))}
    return sweep.Sweep.build("liao", over, {"m": 4, "m_star": 2}, until="0.5*sqrt(d)", save_points=2, rtol=1e-6)


def test_a_scheduler_gives_the_dataset_of_this_machine(cluster, tmp_path):
    address, _ = cluster
    here = sweep.run(small(), tmp_path / "here", workers=2)
    there = sweep.run(small(), tmp_path / "there", scheduler=address)
    xarray.testing.assert_allclose(*(data.drop_vars("evaluations") for data in (here, there)), rtol=1e-7)
    assert (there["outcome"] == "completed").all()


def test_a_worker_that_is_killed_costs_nothing(cluster, tmp_path):
    address, workers = cluster
    killed = []

    def kill(done, cells):
        if done == 3 and not killed:
            os.kill(workers[0].pid, signal.SIGKILL)
            killed.append(workers[0].wait())

    there = sweep.run(small(16), tmp_path / "there", scheduler=address, report=kill)
    assert killed == [-signal.SIGKILL]
    assert there["outcome"].size == 16 and (there["outcome"] == "completed").all()


def test_a_model_made_in_python_is_sent_as_its_declaration(cluster, tmp_path):
    address, _ = cluster
    model = odesim.declare(student={"unit": "relu(w)", "units": 2}, teacher={"units": 2}, start={"overlap": 0.3})
    over = sweep.Sweep.build(model, {"step": (0.001, 0.002)}, until=1.0, save_points=2)
    there = sweep.run(over, tmp_path / "there", scheduler=address)
    assert np.array_equal(there["final_M_ww"], sweep.run(over, tmp_path / "here")["final_M_ww"])


def test_the_only_worker_may_die_and_another_take_over(cluster, tmp_path):
    address, workers = cluster
    other = workers.pop()
    other.kill()
    other.wait()

    def replace(done, cells):
        if done == 2 and len(workers) == 1:
            workers[0].kill()
            workers[0].wait()
            workers.append(worker(address, tmp_path / "another"))

    there = sweep.run(small(), tmp_path / "there", scheduler=address, report=replace)
    assert len(workers) == 2 and (there["outcome"] == "completed").all()


def test_the_commands_take_a_scheduler(cluster, tmp_path, capsys):
    address, _ = cluster
    words = ["--scheduler", address, "--quiet", "--json"]
    over = ["--over", "seed=0..1", "-p", "m=3", "-p", "m_star=1", "-p", "d=100", "--until", "1"]
    assert command(["sweep", "--system", "liao", *over, *words, "--out", str(tmp_path / "sweep")]) == 0
    assert json.loads(capsys.readouterr().out)["outcomes"] == {"completed": 2}
    claims = ["--claim", "eq-5-sol", "--claim", "lem-29"]
    assert command(["verify", "--system", "liao", *claims, *words, "--out", str(tmp_path / "far")]) == 0
    far = json.loads(capsys.readouterr().out)["verdicts"]
    assert command(["verify", "--system", "liao", *claims, "--quiet", "--json", "--out", str(tmp_path / "near")]) == 0
    near = json.loads(capsys.readouterr().out)["verdicts"]
    same = ("claim", "variant", "answer", "estimate", "reason")
    assert [[v[name] for name in same] for v in far] == [[v[name] for name in same] for v in near]

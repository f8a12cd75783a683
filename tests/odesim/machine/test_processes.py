"""Workers end with the process that sent them to work, however that ends."""

import os
import signal
import subprocess
import sys
import time

import pytest

PARENT = """
import sys, time
from odesim.machine.executor import completed

def slow(number):
    import os
    return os.getpid() if number < 2 else time.sleep(600)

if __name__ == "__main__":
    for _, pid in completed(slow, [(0,), (1,), (2,), (3,)], "local", 2):
        print(pid, flush=True)
"""


def lives(pid):
    """Whether a process is there, and no zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_workers_of_a_killed_command_end(tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True, env=environment) as parent:
        workers = {int(parent.stdout.readline()) for _ in range(2)}
        assert all(map(lives, workers))
        parent.send_signal(signal.SIGKILL)
    for _ in range(200):
        if not any(map(lives, workers)):
            break
        time.sleep(0.05)
    assert not any(map(lives, workers))


COPIES = """
import functools, os, sys
from pathlib import Path
from odesim.machine import processes

folder, cores = Path(sys.argv[1]), int(sys.argv[2])
processes._cores = lambda: cores

def write(name):
    (folder / name).write_text(str(os.getpid()))

def fail(name):
    write(name)
    raise ValueError(name)

processes.in_copies([])
tasks = [functools.partial(write, str(k)) for k in range(5)]
processes.in_copies(tasks)
print(os.getpid(), len(os.listdir(folder)), len({path.read_text() for path in folder.iterdir()}))
for k in (0, 1):
    chosen = list(tasks)
    chosen[k] = functools.partial(fail, "failed")
    try:
        processes.in_copies(chosen)
    except ValueError as error:
        print(error, (folder / "failed").read_text() == str(os.getpid()))
try:
    os.waitpid(-1, 0)
except ChildProcessError:
    print("none left")

def refuse():
    raise OSError

os.fork = refuse
processes.in_copies(tasks)
print({(folder / str(k)).read_text() for k in range(5)} == {str(os.getpid())})
"""


@pytest.mark.skipif(sys.platform != "linux", reason="copies of a process are made on Linux alone")
@pytest.mark.parametrize("cores", [1, 2, 8])
def test_copies_share_tasks_and_hand_their_errors_on(cores, tmp_path):
    made = subprocess.run([sys.executable, "-c", COPIES, tmp_path, str(cores)], capture_output=True, text=True)
    assert made.stderr == ""
    first, *others = made.stdout.splitlines()
    assert first.split()[1:] == ["5", str(min(cores, 5))]
    assert others == ["failed True"] * 2 + ["none left", "True"]

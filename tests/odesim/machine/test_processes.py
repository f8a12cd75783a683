"""Workers end with the process that sent them to work, however that ends."""

import os
import signal
import subprocess
import sys
import time

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
    """Return True if a process exists and is not a zombie."""
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

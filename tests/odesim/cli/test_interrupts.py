"""Ctrl-C that Python cannot hear, and the end of a process whose threads still work."""

import signal
import subprocess
import sys
import time

DEAF = """
import hashlib
from odesim.cli import interrupts
interrupts.PATIENCE = 0.3
with interrupts.noting([]):
    print("at work", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"word", b"salt", 2**31 - 1)  # half an hour of C, in which other threads run
"""
HEARD = """
import time
from odesim.cli import interrupts
interrupts.PATIENCE = 0.3
try:
    with interrupts.noting([]):
        print("at work", flush=True)
        time.sleep(60)
except KeyboardInterrupt:
    time.sleep(1.0)  # longer than the patience: what was heard is left to its end
    print("heard", flush=True)
"""
HEARING = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
"""A suite that was started in the background hands on that Ctrl-C is ignored."""
LEFT = """
import atexit, threading
from odesim.cli import interrupts
atexit.register(print, "the end of the interpreter")
threading.Thread(target=threading.Event().wait).start()  # which the interpreter would wait for
interrupts.leave(3)
print("still here")
interrupts.leave(130)
print("never")
"""


def interrupted(program: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a program that gets Ctrl-C when it says that it is at work."""
    process = subprocess.Popen(
        [sys.executable, "-c", HEARING + program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "at work\n"
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    told, said = process.communicate(timeout=60)
    return process.returncode, told, said


def test_ctrl_c_ends_a_compiled_step_that_never_returns():
    code, _, said = interrupted(DEAF)
    assert code == 130
    assert said == "odesim: interrupted inside a long compiled step; results that were saved before it are kept.\n"


def test_what_hears_ctrl_c_is_left_to_its_end():
    assert interrupted(HEARD) == (0, "heard\n", "")


def test_an_interrupted_process_waits_for_no_thread():
    done = subprocess.run([sys.executable, "-c", LEFT], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (130, "still here\n")

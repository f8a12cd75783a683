"""Output that cannot be written: one sentence, and nothing from the interpreter when it ends."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_output_to_a_full_disk_is_one_sentence():
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "odesim", "cite", "--system", "liao"]
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120)
    assert ended.returncode == 3
    assert ended.stderr.startswith("odesim: the disk is full") and ended.stderr.count("\n") == 1

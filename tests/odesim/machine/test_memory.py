"""Limits of memory that can be requested."""

from pathlib import Path

import pytest

from odesim.errors import UsageError
from odesim.machine.memory import free_memory, require_memory

MEMINFO = Path("/proc/meminfo")


@pytest.mark.skipif(not MEMINFO.exists(), reason="the system has no /proc/meminfo to compare with")
def test_memory_that_holds_copies_of_files_is_free():
    numbers = dict(line.split(":") for line in MEMINFO.read_text().splitlines())
    available = 1024 * int(numbers["MemAvailable"].split()[0])
    assert free_memory() == pytest.approx(available, rel=0.1)


def test_what_does_not_fit_is_refused():
    require_memory(1e3, "A table", "the size")
    with pytest.raises(UsageError, match=r"A table would take 8e\+09 GB, but .* GB are free: lower the size"):
        require_memory(1e18, "A table", "the size")

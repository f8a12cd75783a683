"""Compiled functions called by the addresses of their machine code."""

import concurrent.futures
import os
import subprocess
import sys
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from numba.core.errors import TypingError
from numba.core.runtime import _nrt_python, rtsys

from odesim.code import compile
from odesim.code.addressed import address, borrower, by_address, lent

TEXTS = (
    """def added(values, step):
    if step < 0:
        raise ValueError("the step is negative")
    for k in range(values.size):
        values[k] += step
""",
)
GIVEN = "f8[::1], f8"


@numba.njit
def through(at, values, step):
    by_address(GIVEN, at, (values, step))
    return values.sum()


@pytest.fixture
def added(tmp_path, monkeypatch):
    """A function compiled into an empty cache."""
    monkeypatch.setenv("ODESIM_CACHE", str(tmp_path))
    return compile.generated("added", (), lambda: compile.numba_module("a test", TEXTS)).added


def test_one_caller_calls_whatever_it_is_given(added) -> None:
    @numba.njit
    def scaled(values, factor):
        for k in range(values.size):
            values[k] *= factor

    values = np.array([1.0, 2.0])
    assert through(address(added, GIVEN), values, 0.5) == 4.0
    assert through(address(scaled, GIVEN), values, 2.0) == 8.0
    assert len(through.overloads) == 1


def test_what_is_called_by_its_address_raises_as_any_other(added) -> None:
    values = np.zeros(1)
    with pytest.raises(ValueError, match="the step is negative"):
        through(address(added, GIVEN), values, -1.0)
    assert values[0] == 0.0


@pytest.mark.parametrize("given", ["(values, 1)", "(values,)", "(step, values)"])
def test_arguments_of_other_types_are_refused_when_the_caller_is_compiled(added, given) -> None:
    space = {"by_address": by_address, "GIVEN": GIVEN}
    exec(f"def wrong(at, values, step):\n    by_address(GIVEN, at, {given})", space)
    with pytest.raises(TypingError, match="what is called by its address takes"):
        numba.njit(space["wrong"])(address(added, GIVEN), np.zeros(1), 1.0)


def test_a_later_process_finds_the_machine_code_at_another_address(tmp_path) -> None:
    caller = f"""def through(at, values, step):
    by_address("{GIVEN}", at, (values, step))
"""
    script = f"""
import numpy as np
from odesim.code import compile
from odesim.code.addressed import address
module = compile.generated("added", (), lambda: compile.numba_module("a test", {(*TEXTS, caller)!r}))
values = np.ones(2)
module.through(address(module.added, {GIVEN!r}), values, 2.0)
print(values)
"""
    (tmp_path / "script.py").write_text(script, encoding="utf-8")
    found = []
    for _ in range(2):
        given = {**os.environ, "ODESIM_CACHE": str(tmp_path / "cache")}
        ran = subprocess.run([sys.executable, str(tmp_path / "script.py")], env=given, capture_output=True, text=True)
        assert ran.stdout == "[3. 3.]\n", ran.stderr
        found.append({path.name: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nbc")})
    assert found[0] == found[1] and len(found[0]) == 2


MADE = "f8, i8 -> f8[:,::1]"


@numba.njit
def row(value, count):
    if count == 0:
        raise ValueError("nothing to make")
    return np.full((1, count), value)


@numba.njit
def twice(at, value, count):
    one, two = by_address(MADE, at, (value, count)), by_address(MADE, at, (value + 1.0, count))
    return one + two


@pytest.fixture
def unfreed():
    """How many pieces of memory of compiled code are alive."""
    _nrt_python.memsys_enable_stats()

    def count():
        stats = rtsys.get_allocation_stats()
        return stats.mi_alloc - stats.mi_free

    yield count
    _nrt_python.memsys_disable_stats()


def test_a_result_is_the_callers_and_freed_when_nobody_needs_it(unfreed) -> None:
    at = address(row, MADE)
    assert twice(at, 1.0, 3).tolist() == [[3.0, 3.0, 3.0]]
    before = unfreed()
    for _ in range(10):
        twice(at, 1.0, 3)
    assert unfreed() == before
    with pytest.raises(ValueError, match="nothing to make"):
        twice(at, 1.0, 0)


def test_a_result_of_another_type_than_the_signature_says_is_refused() -> None:
    for signature in ("f8, i8", "f8, i8 -> f8[::1]"):
        with pytest.raises(TypingError, match="returns"):
            address(row, signature)


class Lent(NamedTuple):
    count: int
    rows: Any
    rest: tuple


def test_what_is_lent_is_found_again_and_stays_with_its_owner(unfreed) -> None:
    values = Lent(3, np.arange(6.0).reshape(2, 3), (np.array([7, 8]), 0.5, True))
    borrowed = borrower(numba.typeof(values))

    @numba.njit
    def read(at, k):
        found = borrowed(at)
        numbers, half, yes = found.rest
        return found.rows[k].sum() * found.count + numbers[1] * half + yes

    @numba.njit(nogil=True)
    def through(values, times):
        at, total = lent(values), 0.0
        for k in range(times):
            total += read(at, k % 2)
        return total

    assert through(values, 2) == 3.0 * 15.0 + 2 * 4.0 + 2.0
    before = unfreed(), sys.getrefcount(values.rows)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found = set(pool.map(lambda _: through(values, 1000), range(40)))
    assert found == {through(values, 1000)} and (unfreed(), sys.getrefcount(values.rows)) == before
    assert values.rows.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]

"""Compiled functions called by the addresses of their machine code."""

import os
import subprocess
import sys

import numba
import numpy as np
import pytest
from numba.core.errors import TypingError

from odesim.code import compile
from odesim.code.addressed import address, by_address

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

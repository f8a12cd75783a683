"""Functions that are linked into their compiled callers, beside the same functions called from Python."""

import os
import subprocess
import sys

import numba
import numpy as np
import pytest
from numba.core.cpu import CPUContext

from odesim.code import addressed, compile

TEXTS = (
    """def power(x, n):
    found = 1.0
    for _ in range(n):
        found *= x
    return found
""",
    """def scaled(values, n):
    for k in range(values.size):
        values[k] = power(values[k], n)
    return values.sum()
""",
    """def both(values, n):
    return scaled(values, 2) + scaled(values, n)
""",
)


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Three functions that call each other, compiled into an empty cache."""
    monkeypatch.setenv("ODESIM_CACHE", str(tmp_path))
    return compile.generated("linked", (), lambda: compile.numba_module("a test", TEXTS))


def test_a_function_gives_the_same_when_python_calls_it_after_a_compiled_caller_has_linked_it(module) -> None:
    assert module.both(np.array([1.0, 2.0]), 3) == 1 + 4 + 1 + 64
    assert module.power(2.0, 3) == 8.0
    assert module.scaled(np.array([1.0, 2.0]), 2) == 5.0
    assert module.both(np.array([1.0, 2.0]), 3) == 1 + 4 + 1 + 64


def test_what_only_compiled_code_calls_has_no_machine_code_of_its_own(module, tmp_path) -> None:
    module.both(np.array([1.0, 2.0]), 3)
    assert not module.power.overloads and not module.scaled.overloads
    assert [path.name.split(".")[1].split("-")[0] for path in tmp_path.rglob("*.nbc")] == ["both"]


def test_a_constant_argument_makes_no_second_form_of_a_function(module) -> None:
    module.both(np.array([1.0, 2.0]), 3)
    assert len(module.scaled.part().overloads) == 1


ROOM = """def room(values):
    found = np.empty(values.size, np.float32)
    for k in range(values.size):
        found[k] = values[k]
    return found.reshape((1, values.size))
"""


def test_what_numba_itself_is_written_in_has_no_machine_code_either_and_serves_others(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("ODESIM_CACHE", str(tmp_path))
    made, inherited = [], CPUContext.get_executable

    def counted(self, library, described, environment):
        made.append(described.qualname)
        return inherited(self, library, described, environment)

    monkeypatch.setattr(CPUContext, "get_executable", counted)
    ours = compile.generated("room", (), lambda: compile.numba_module("a test", [ROOM]))
    values = np.arange(3.0)
    assert ours.room(values).tolist() == [[0.0, 1.0, 2.0]]
    assert made == ["room"]

    @numba.njit
    def theirs(values):
        return np.empty(values.size, np.float32).reshape((1, values.size)).shape

    assert theirs(values) == (1, 3)  # linked to the form that ours made, which cannot be called


ALGEBRA = """import sys
import numpy as np
from odesim.code import compile

TEXTS = ("def half(x): return 0.5 * x", "def product(a, b): return np.dot(a, b)")


def write():
    return compile.numba_module("a test", TEXTS)


made = compile.generated("plain", (), write)
assert made.half(3.0) == 1.5 and "scipy.linalg" not in sys.modules
assert (made.product(np.eye(2), np.eye(2)) == np.eye(2)).all() and "scipy.linalg" in sys.modules
"""


def test_nobody_waits_for_linear_algebra_that_is_not_called(tmp_path) -> None:
    (tmp_path / "algebra.py").write_text(ALGEBRA)
    environment = {**os.environ, "ODESIM_CACHE": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path)}
    subprocess.run([sys.executable, "-c", "import algebra"], check=True, env=environment)


def test_what_is_called_by_its_address_has_no_entries(module) -> None:
    values = np.array([1.0, 2.0])
    assert addressed.address(module.scaled, "f8[::1], i8 -> f8") > 0
    assert not module.scaled.overloads
    (made,) = module.scaled.bare().overloads.values()
    assert made.library.get_pointer_to_function(made.fndesc.llvm_cpython_wrapper_name) == 0
    assert module.scaled(values, 2) == 5.0

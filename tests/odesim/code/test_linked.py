"""Functions that are linked into their compiled callers, beside the same functions called from Python."""

import numpy as np
import pytest

from odesim.code import compile

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

"""Four numbers at a time: the numbers of NumPy, in any place of a row, inside functions that allow fast arithmetic."""

import re

import numba
import numpy as np
import pytest

from odesim.code import compile

OPERATIONS = {
    "x + y": lambda x, y: x + y,
    "x - y": lambda x, y: x - y,
    "x * y": lambda x, y: x * y,
    "x / y": lambda x, y: x / y,
    "2.5 - x": lambda x, y: 2.5 - x,
    "1.0 / x": lambda x, y: 1.0 / x,
    "y * 3": lambda x, y: 3 * y,
    "larger(x, y)": np.maximum,
    "larger(0.5, y)": lambda x, y: np.maximum(0.5, y),
    "where_positive(x, y, 1.0)": lambda x, y: np.where(x > 0, y, 1.0),
    "root_of_four(x * x)": lambda x, y: np.sqrt(x * x),
    "raised(x)": lambda x, y: np.exp(x),
    "log_above_one(y / (y + 1.0))": lambda x, y: np.log1p(y / (y + 1.0)),
    "alike(2.0)": lambda x, y: np.full(x.shape, 2.0),
}
ROWS = "\n".join(f"    put_four(found, {4 * k}, {text})" for k, text in enumerate(OPERATIONS))


@pytest.fixture(scope="module")
def all_of(tmp_path_factory):
    """`all_of(first, second, at, found)` as generated modules have it: every operation on four numbers of two rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ODESIM_CACHE", str(tmp_path_factory.mktemp("cache")))
        text = f"def all_of(first, second, at, found):\n    x, y = four(first, at), four(second, at)\n{ROWS}\n"
        yield compile.generated("fours", (), lambda: compile.numba_module("a test", [text])).all_of


@pytest.mark.parametrize("at", [0, 1, 7])
def test_they_are_the_numbers_of_numpy(all_of, at) -> None:
    rng = np.random.default_rng(at)
    first, second, found = rng.standard_normal((4, 3)), rng.uniform(0.1, 2.0, 12), np.empty((len(OPERATIONS), 4))
    first.flat[at] = 0.0
    second_part, first_part = second[at : at + 4], first.ravel()[at : at + 4]
    with np.errstate(divide="ignore"):
        expected = [operation(first_part, second_part) for operation in OPERATIONS.values()]
    all_of(first, second, at, found)
    np.testing.assert_allclose(found, expected, rtol=1e-15)


def test_they_are_single_instructions(all_of) -> None:
    all_of(np.ones(4), np.ones(4), 0, np.empty(4 * len(OPERATIONS)))
    text = "".join(all_of.inspect_llvm().values())
    assert "@llvm.sqrt.v4f64" in text and "fdiv" in text
    numbers = [line for line in text.splitlines() if re.search(r" (fadd|fsub|fmul|fdiv) ", line)]
    assert numbers and all("<4 x double>" in line for line in numbers)


def test_what_they_do_not_go_with_is_refused() -> None:
    from odesim.code.fours import alike, four, put_four, sum_of_four

    with pytest.raises(numba.TypingError):
        numba.njit(lambda text: alike(1.0) + text)("one")
    read = numba.njit(lambda row: sum_of_four(four(row, 0)))
    write = numba.njit(lambda row: put_four(row, 0, alike(1.0)))
    assert read(np.arange(4.0)) == 6.0
    for row in (np.arange(16.0)[::2], np.arange(4), np.ones(8, np.float32), np.ones((4, 4), order="F"), (1.0, 2.0)):
        for function in (read, write):
            with pytest.raises(numba.TypingError):
                function(row)

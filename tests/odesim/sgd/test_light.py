"""The array functions that numba compiles fast, beside NumPy's."""

import numpy as np
import pytest

from odesim.code import compile
from odesim.sgd import light

TEXT = """def all_of(z, values):
    chosen = np.argmax(z, axis=0)
    rows = np.multiply(values, values[0, 1]), np.subtract(z, z[1])
    sums = z.sum(0), values.sum(1), np.where(values < 0, 0.0, 1.0).sum(1).sum(0)
    return *rows, *sums, chosen, np.where(z > 0, z, -1.0)
"""


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The same text as Python runs it and as numba compiles it."""
    namespace = {"np": np}
    exec(TEXT, namespace)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ODESIM_CACHE", str(tmp_path_factory.mktemp("light")))
        texts = [*light.SOURCES, light.lightened(TEXT)]
        functions = compile.functions_of("light", compile.numba_module("a test", texts), ["all_of"])
        yield namespace["all_of"], functions["all_of"]


@pytest.mark.parametrize("special", [0.5, np.nan, np.inf, -np.inf])
def test_they_give_what_numpy_gives_to_the_last_bit(both, special) -> None:
    rng = np.random.default_rng(0)
    z, values = rng.standard_normal((5, 7)), rng.standard_normal((3, 4, 6))
    z[2, 3], z[4, 3], z[:, 5] = special, special, 1.0  # ties too
    python, compiled = both
    for expected, found in zip(python(z, values), compiled(z, values), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_no_call_of_numpy_that_takes_seconds_to_compile_is_left() -> None:
    assert not any(
        slow in light.lightened(TEXT) for slow in ("np.where", "np.argmax", ".sum(", "np.multiply", "np.subtract")
    )


def test_calls_that_are_written_otherwise_stay_as_they_are() -> None:
    text = "def f(a):\n    return a.sum() + a.sum(axis=0) + np.argmax(a) + np.sum(a)"
    assert light.lightened(text) == text

"""Exponentials and logarithms as plain instructions, against 40 digits, inside functions that allow fast arithmetic."""

import mpmath
import numba
import numpy as np
import pytest

from odesim.code import compile, elementary

TEXTS = {
    "raised": "def all_of(x, y):\n    for i in range(x.size):\n        y[i] = raised(x[i])\n",
    "log_above_one": "def all_of(x, y):\n    for i in range(x.size):\n        y[i] = log_above_one(x[i])\n",
}


@pytest.fixture(params=TEXTS)
def function(request, tmp_path, monkeypatch):
    """A loop over one of the two as generated modules have it, and its name."""
    monkeypatch.setenv("ODESIM_CACHE", str(tmp_path))
    text = TEXTS[request.param]
    return compile.generated(request.param, (), lambda: compile.numba_module("a test", [text])).all_of, request.param


def places(found: np.ndarray, exact: list[mpmath.mpf]) -> float:
    """The largest error in units of the last place."""
    return max(float(abs(mpmath.mpf(a) - b)) / np.spacing(float(b)) for a, b in zip(found, exact, strict=True))


def test_they_are_exact_to_the_last_places(function) -> None:
    loop, name = function
    rng = np.random.default_rng(0)
    wide = np.concatenate([rng.uniform(-707.0, 709.7, 2000), rng.uniform(-1.0, 1.0, 2000), [0.0, 709.78, -707.0]])
    x = (
        wide
        if name == "raised"
        else np.concatenate([np.abs(wide) % 1.0, [0.5, 1.0], 10.0 ** rng.uniform(-300, 0, 500)])
    )
    x = x[x != 0.0] if name == "log_above_one" else x
    found = np.empty_like(x)
    loop(x, found)
    with mpmath.workdps(40):
        exact = [mpmath.exp(float(v)) if name == "raised" else mpmath.log1p(float(v)) for v in x]
        assert places(found, exact) <= (1.01 if name == "raised" else 3.01)


def test_their_loops_are_vectorised(function) -> None:
    loop, _ = function
    loop(np.zeros(3), np.zeros(3))
    (text,) = loop.inspect_llvm().values()
    assert "x double> " in text and "@llvm.exp" not in text and "@log1p" not in text


def test_what_lies_beyond() -> None:
    raised, log = (numba.njit(lambda x, f=f: f(x)) for f in (elementary.raised, elementary.log_above_one))
    assert [raised(x) for x in (-np.inf, -708.0, np.inf, 709.79, 0.0)] == [0.0, 0.0, np.inf, np.inf, 1.0]
    assert np.isnan(raised(np.nan)) and np.isnan(log(np.nan)) and log(0.0) == 0.0

"""Kernels as instructions: the numbers that Python makes of the same text, and nothing but straight lines."""

import math

import numba
import numpy as np
import pytest
import sympy

from derivations.contract import Kernel
from odesim.code.printer import scalar_source
from odesim.code.straight import straight

g, z, S_0, S_1 = sympy.symbols("g z S_0 S_1")
OUTPUTS = {
    "polynomial": sympy.Rational(2, 3) * S_0 * g**5 * z - S_1 * (g - z) ** 3 + 1,
    "quotient": S_1 / (1 + g**2) - z**-3,
    "functions": sympy.exp(-g) * sympy.tanh(z) + sympy.erf(g) * sympy.sqrt(S_1) + sympy.pi * sympy.sign(z),
    "others": sympy.log(S_1) * sympy.cosh(z) + sympy.sin(g) * sympy.cos(z) + sympy.asin(z) + sympy.sinh(g),
}
TEXT = "def kernel(S, lane, x):\n{}\n"


def inputs():
    rng = np.random.default_rng(0)
    return rng.uniform(0.5, 1.5, (2, 4)), rng.uniform(-0.9, 0.9, (10, 2))


def interpreted(text):
    space = {name: getattr(math, name) for name in ("exp", "tanh", "erf", "sqrt", "log", "cosh", "sin", "cos", "asin")}
    exec(text, {**space, "sinh": math.sinh, "pi": math.pi, "sign": np.sign}, space)
    return space["kernel"]


@pytest.mark.parametrize("lanes", [0, 4])
def test_numbers_are_those_of_the_text(lanes):
    text = scalar_source("kernel", Kernel(("S_0", "S_1"), ("g", "z"), OUTPUTS, lanes))
    compiled, python = straight(text), interpreted(text)
    called = numba.njit(lambda S, lane, g, z: compiled(S, lane, g, z))
    table, points = inputs()
    given = table.reshape(-1) if lanes else table
    for lane in range(4):
        for point in points:
            expected = python(given, lane, *map(float, point))
            assert called(given, lane, *point) == pytest.approx(expected, rel=1e-14, abs=1e-14)


def test_powers_are_products():
    kernel = straight(TEXT.format("    return (x**1, x**2, x**7, (1.0/(x)**3),)"))
    assert numba.njit(lambda S, x: kernel(S, 0, x))(np.zeros(1), 3.0) == (3.0, 9.0, 2187.0, 1.0 / 27.0)


@pytest.mark.parametrize(
    "line",
    [
        "    return x", "    x += 1\n    return (x,)", "    for k in range(3):\n        x = x\n    return (x,)",
        "    return (open(x),)", "    return (x if x > 0 else -x,)", "    return (x**0.5,)", "    return (x[0],)",
        "    y = [x]\n    return (y,)", "    return (x and x,)",
        "    return (x // 2,)", "    return (x % 2,)", "    return (~x,)",
    ],
)  # fmt: skip
def test_what_is_no_straight_line_is_refused(line):
    with pytest.raises(ValueError, match="kernel"):
        straight(TEXT.format(line))


def test_other_types_are_refused_where_it_is_called():
    kernel = straight(TEXT.format("    return (x,)"))
    with pytest.raises(numba.TypingError):
        numba.njit(lambda S, x: kernel(S, 0, x))(np.zeros(1, np.float32), 1.0)

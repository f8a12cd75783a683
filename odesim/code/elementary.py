"""Exponentials and logarithms as plain instructions: the library's are called for one number at a time, which keeps a
loop from being vectorised.

Every instruction says itself what it may be changed by: numba adds to others what a whole function may be changed by
(`kept.FAST`), and sums that are taken apart to be exact would be put together again.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from odesim.code.fours import COUNT, DOUBLE, FOUR, VECTOR

WORD = ir.IntType(64)
EXACT, FUSED = ("nsz",), ("contract",)
"""Instructions that stay as they are, and those of which a product and a sum may be one."""
ROUND = 1.5 * 2.0**52
"""A number added to this one is rounded to a whole number, which stands in the lowest bits."""
HIGH, LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
"""log 2 in two parts, of which the first has 33 bits: its products with whole numbers of exponents are exact."""
SMALLEST, LARGEST = -707.0, math.log(np.finfo(float).max)


@intrinsic
def raised(typing: Any, x: Any) -> Any:
    """e^x to a unit in the last place; 0 below e^-707.

    x = n log 2 + r with |r| <= log(2)/2, and e^r by its series.

    >>> from numba import njit
    >>> import numpy as np
    >>> njit(lambda x: raised(x))(1.0) == np.e, njit(lambda x: raised(x))(-800.0)
    (True, 0.0)
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        (x,) = values
        number, whole = _constants(x)
        shifted = builder.fadd(builder.fmul(x, number(1.0 / math.log(2.0)), flags=EXACT), number(ROUND), flags=EXACT)
        n = builder.fsub(shifted, number(ROUND), flags=EXACT)
        rest = builder.fsub(x, builder.fmul(n, number(HIGH), flags=FUSED), flags=FUSED)
        rest = builder.fsub(rest, builder.fmul(n, number(LOW), flags=FUSED), flags=FUSED)
        found = _polynomial(builder, rest, [1.0 / math.factorial(k) for k in range(14)])
        # 2^(n - 1) has an exponent of its own for every n that is left; the lowest bits of `shifted` are those of n.
        bits = builder.bitcast(shifted, whole(0).type)
        exponent = builder.bitcast(builder.shl(builder.add(bits, whole(1022)), whole(52)), x.type)
        found = builder.fmul(builder.fadd(found, found, flags=EXACT), exponent, flags=EXACT)
        found = builder.select(builder.fcmp_ordered("<", x, number(SMALLEST), flags=EXACT), number(0.0), found)
        return builder.select(builder.fcmp_ordered(">", x, number(LARGEST), flags=EXACT), number(math.inf), found)

    return _of_a_number(x, generate)


@intrinsic
def log_above_one(typing: Any, x: Any) -> Any:
    """log(1 + x) for 0 <= x <= 1, to three units in the last place: 2 artanh(z) with z = x / (2 + x).

    >>> from numba import njit
    >>> round(njit(lambda x: log_above_one(x))(1.0), 15)
    0.693147180559945
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        (x,) = values
        z = builder.fdiv(x, builder.fadd(x, _constants(x)[0](2.0), flags=EXACT), flags=EXACT)
        square = builder.fmul(z, z, flags=EXACT)
        series = [2.0 / (2 * k + 1) for k in range(17)]  # for z <= 1/3
        return builder.fmul(_polynomial(builder, square, series), z, flags=EXACT)

    return _of_a_number(x, generate)


def _of_a_number(x: Any, generate: Callable[..., Any]) -> Any:
    """What numba is told of a function of one number, or of four; whole ones are made floating point."""
    if x == FOUR:
        return FOUR(FOUR), generate
    return (types.float64(types.float64), generate) if isinstance(x, types.Number) else None


def _constants(x: Any) -> tuple[Callable[[float], Any], Callable[[int], Any]]:
    """Floating point constants, and whole ones, for a number or for four."""
    if x.type == DOUBLE:
        return DOUBLE, WORD
    words = ir.VectorType(WORD, COUNT)
    return lambda value: ir.Constant(VECTOR, [value] * COUNT), lambda value: ir.Constant(words, [value] * COUNT)


def _polynomial(builder: Any, x: Any, coefficients: Sequence[float]) -> Any:
    """sum_k coefficients[k] x^k: the first two by Horner's rule, which rounds least, and all others two by two, so that
    one does not wait for all that come after it.
    """
    number, _ = _constants(x)
    last, power = [number(c) for c in coefficients[2:]], x
    while len(last) > 1:
        joined = [_joined(builder, low, power, high) for low, high in zip(last[::2], last[1::2], strict=False)]
        last, power = joined + last[2 * len(joined) :], builder.fmul(power, power, flags=EXACT)
    (found,) = last
    for c in coefficients[1::-1]:
        found = _joined(builder, number(c), x, found)
    return found


def _joined(builder: Any, low: Any, x: Any, high: Any) -> Any:
    """low + x high."""
    return builder.fadd(builder.fmul(high, x, flags=FUSED), low, flags=FUSED)

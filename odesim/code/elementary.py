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

DOUBLE, WORD = ir.DoubleType(), ir.IntType(64)
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
        shifted = builder.fadd(builder.fmul(x, DOUBLE(1.0 / math.log(2.0)), flags=EXACT), DOUBLE(ROUND), flags=EXACT)
        n = builder.fsub(shifted, DOUBLE(ROUND), flags=EXACT)
        rest = builder.fsub(x, builder.fmul(n, DOUBLE(HIGH), flags=FUSED), flags=FUSED)
        rest = builder.fsub(rest, builder.fmul(n, DOUBLE(LOW), flags=FUSED), flags=FUSED)
        found = _polynomial(builder, rest, [1.0 / math.factorial(k) for k in range(14)])
        # 2^(n - 1) has an exponent of its own for every n that is left; the lowest bits of `shifted` are those of n.
        exponent = builder.shl(builder.add(builder.bitcast(shifted, WORD), WORD(1022)), WORD(52))
        found = builder.fmul(builder.fadd(found, found, flags=EXACT), builder.bitcast(exponent, DOUBLE), flags=EXACT)
        found = builder.select(builder.fcmp_ordered("<", x, DOUBLE(SMALLEST), flags=EXACT), DOUBLE(0.0), found)
        return builder.select(builder.fcmp_ordered(">", x, DOUBLE(LARGEST), flags=EXACT), DOUBLE(math.inf), found)

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
        z = builder.fdiv(x, builder.fadd(x, DOUBLE(2.0), flags=EXACT), flags=EXACT)
        square = builder.fmul(z, z, flags=EXACT)
        series = [2.0 / (2 * k + 1) for k in range(17)]  # for z <= 1/3
        return builder.fmul(_polynomial(builder, square, series), z, flags=EXACT)

    return _of_a_number(x, generate)


def _of_a_number(x: Any, generate: Callable[..., Any]) -> Any:
    """What numba is told of a function of one number; whole ones are made floating point."""
    return (types.float64(types.float64), generate) if isinstance(x, types.Number) else None


def _polynomial(builder: Any, x: Any, coefficients: Sequence[float]) -> Any:
    """sum_k coefficients[k] x^k, by Horner's rule."""
    found = DOUBLE(coefficients[-1])
    for c in coefficients[-2::-1]:
        found = builder.fadd(builder.fmul(found, x, flags=FUSED), DOUBLE(c), flags=FUSED)
    return found

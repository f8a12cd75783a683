"""Random numbers of large samples in JAX: Threefry without loops, so that a compiler makes vector code of it.

On a CPU `jax.random` runs the same rounds in a loop, with one pass over memory for every four rounds, and inverts the
error function. This takes 22 to 30 ns per normal number; the functions here take 8.7. JAX's numbers end at 5.4 standard
deviations in float32.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from odesim.machine.device import default

STREAM = "threefry2x32-20, Box-Muller (2), blocks of 256"
"""Name of the stream, stored with a run's state, so that a run is not continued with other random numbers.

Its last part is the least size of a block (`traced.FEWEST`), because each block has a key. The second version of
Box-Muller computes the logarithm in float32 by itself, which changed the last bits.
"""
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA
"""Rotations and parity of Threefry-2x32 (Salmon, Moraes, Dror and Shaw 2011, section 3.1 and table 1)."""
HALF_ROOT = 0x3F3504F3
"""Value of sqrt(1/2) in float32, as a word."""
TERMS = {"float32": 7, "float64": 11}
"""Terms of the sine's series up to pi/2, with an error below one unit in the last place of 1."""


def standard_normal(key: Any, shape: tuple[int, int], dtype: Any) -> Any:
    """Return independent standard normal numbers for a key of JAX, the same on every device and number of threads.

    Box and Muller: r = sqrt(-2 log u), (r cos(pi t), r sin(pi t)) with u uniform on (0, 1) from 32 bits (64 in float64)
    and t on [-1, 1), so that the largest numbers are 6.7 (9.4) deviations.

    Args:
        key: a key of `jax.random`.
        shape: rows and columns, fewer than 2^32 each.
        dtype: float32 or float64.

    Examples:
        >>> import jax, jax.numpy as jnp
        >>> x = standard_normal(jax.random.key(1), (2001, 50), "float32")
        >>> x.shape, x.dtype.name, abs(float(x.mean())) < 0.01, abs(float(x.std()) - 1.0) < 0.01
        ((2001, 50), 'float32', True, True)
    """
    import jax
    import jax.numpy as jnp

    both = _halves(key, shape, dtype, jax.lax.optimization_barrier)
    return jnp.concatenate(jax.lax.optimization_barrier(both))[: shape[0]]


def pieces(key: Any, shape: tuple[int, int], dtype: Any) -> list[tuple[slice, Any]]:
    """Return the rows of `standard_normal` as (rows, array), in the pieces that a device draws fastest.

    A CPU has one piece. A GPU writes two halves by one kernel (3.4 ps per number on an H100; a copy of both into one
    array takes 4.4, and the barriers 8.7).

    Examples:
        >>> import jax
        >>> [(rows, x.shape) for rows, x in pieces(jax.random.key(1), (7, 50), "float32")]
        [(slice(0, 7, None), (7, 50))]
    """

    if default().platform == "cpu":
        return [(slice(0, shape[0]), standard_normal(key, shape, dtype))]
    first, second = _halves(key, shape, dtype, lambda values: values)
    middle = first.shape[0]
    return [(slice(0, middle), first), (slice(middle, shape[0]), second[: shape[0] - middle])]


def _halves(key: Any, shape: tuple[int, int], dtype: Any, barrier: Callable[[Any], Any]) -> tuple[Any, Any]:
    """Return the two numbers of every pair, each (half of the rows, rounded up, by columns).

    Without a `barrier` XLA computes the words on a CPU once for the radius and once for each of the two numbers.
    """
    import jax
    import jax.numpy as jnp

    rows, columns = shape
    kind = jnp.dtype(dtype)
    pairs = (rows + 1) // 2
    if kind == jnp.float32:
        first, second = _words(key, 0, (pairs, columns))
        scale, bits = 2.0**-32, jnp.int32
    else:
        first, second = _long(*_words(key, 0, (pairs, columns))), _long(*_words(key, pairs, (pairs, columns)))
        scale, bits = 2.0**-64, jnp.int64
    first, second = barrier((first, second))
    uniform = (first.astype(kind) + kind.type(0.5)) * kind.type(scale)
    logarithm = _logarithm(uniform) if kind == jnp.float32 else jnp.log(uniform)
    radius = barrier(jnp.sqrt(-2.0 * logarithm))
    angle = jax.lax.bitcast_convert_type(second, bits).astype(kind) * kind.type(2.0 * scale)
    size = jnp.abs(angle)
    half = kind.type(0.5)
    folded = jnp.where(size > half, jnp.copysign(kind.type(1.0), angle) - angle, angle)
    return radius * _sine(half - size), radius * _sine(folded)


def _words(key: Any, first: int, shape: tuple[int, int]) -> tuple[Any, Any]:
    """Return two words of 32 bits for every row and column, with rows counted from `first`.

    A row and a column are the counter's two words.
    """
    import jax
    import jax.numpy as jnp

    low, high = jax.random.key_data(key)
    keys = (low, high, low ^ high ^ jnp.uint32(PARITY))
    columns = jax.lax.broadcasted_iota(jnp.uint32, shape, 1)
    rows = jax.lax.broadcasted_iota(jnp.uint32, shape, 0) + jnp.uint32(first)
    return threefry(keys, columns, rows)


def threefry(keys: tuple[Any, Any, Any], x: Any, y: Any) -> tuple[Any, Any]:
    """Return Threefry-2x32 of 20 rounds: the counter's words x, y under the two words of a key and their parity
    word.
    """
    import jax.numpy as jnp

    x, y = x + keys[0], y + keys[1]
    for group in range(5):
        for distance in ROTATIONS[group % 2]:
            x = x + y
            y = ((y << jnp.uint32(distance)) | (y >> jnp.uint32(32 - distance))) ^ x
        x = x + keys[(group + 1) % 3]
        y = y + keys[(group + 2) % 3] + jnp.uint32(group + 1)
    return x, y


def _long(high: Any, low: Any) -> Any:
    """Return one word of 64 bits from two of 32."""
    import jax.numpy as jnp

    return (high.astype(jnp.uint64) << jnp.uint64(32)) | low


def _sine(t: Any) -> Any:
    """Return sin(pi t) for |t| <= 1/2 by its series, because the library's function is called once for every number."""
    kind = t.dtype.type
    square, total = t * t, kind(0.0)
    for k in reversed(range(TERMS[t.dtype.name])):
        total = total * square + kind((-1) ** k * math.pi ** (2 * k + 1) / math.factorial(2 * k + 1))
    return total * t


def _logarithm(u: Any) -> Any:
    """Return log(u) in float32 for normal positive u, without the library's tests for other numbers.

    u = 2^e (1 + x) with sqrt(1/2) <= 1 + x < sqrt(2), and log(1 + x) = x - x^2/2 + x^3 p(x).
    """
    import jax
    import jax.numpy as jnp

    bits = jax.lax.bitcast_convert_type(u, jnp.int32) - jnp.int32(HALF_ROOT)
    exponent = bits >> jnp.int32(23)
    folded = (bits & jnp.int32((1 << 23) - 1)) + jnp.int32(HALF_ROOT)
    x = jax.lax.bitcast_convert_type(folded, jnp.float32) - jnp.float32(1.0)
    series = _coefficients()
    total = jnp.float32(series[-1])
    for c in series[-2::-1]:
        total = total * x + jnp.float32(c)
    square = x * x
    return x + (square * (x * total - jnp.float32(0.5)) + exponent.astype(jnp.float32) * jnp.float32(math.log(2.0)))


@functools.cache
def _coefficients() -> tuple[float, ...]:
    """Return the coefficients of p(x) = (log(1 + x) - x + x^2/2) / x^3, interpolated at nine Chebyshev points of its
    range.
    """
    from numpy.polynomial import Chebyshev, Polynomial

    def p(x: Any) -> Any:
        return (np.log1p(x) - x + 0.5 * x * x) / x**3

    found = Chebyshev.interpolate(p, 8, domain=[math.sqrt(0.5) - 1.0, math.sqrt(2.0) - 1.0]).convert(kind=Polynomial)
    return tuple(float(c) for c in found.coef)

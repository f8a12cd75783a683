"""Root-finding for continuous functions."""

import math
from collections.abc import Callable, Iterable


def brent(value: Callable[[float], float], low: float, high: float, xtol: float, rtol: float) -> float:
    """Return a zero of `value` between `low` and `high`, at which its signs differ, by the method of Brent (1973).

    It uses bisection, unless the secant or the inverse parabola through the last points promises more. The result is
    within `xtol` + `rtol` |x| of a change of sign. The steps are those of SciPy's `brentq`, whose package takes longer
    to import than most runs. Raises `ValueError` if the signs are the same.

    >>> round(brent(lambda x: x * x - 2.0, 0.0, 2.0, 1e-14, 1e-14), 13)
    1.4142135623731
    """
    before, x = low, high
    f_before, f = value(before), value(x)
    if f_before == 0 or f == 0:
        return before if f_before == 0 else x
    if (f_before < 0) == (f < 0):
        raise ValueError(f"the function has the same sign at {low!r} and {high!r}")
    other, f_other, last, move = 0.0, 0.0, 0.0, 0.0
    while True:
        if f_before != 0 and (f_before < 0) != (f < 0):
            other, f_other = before, f_before  # the root lies between x and this one
            last = move = x - before
        if abs(f_other) < abs(f):
            before, x, other = x, other, x
            f_before, f, f_other = f, f_other, f
        least, half = (xtol + rtol * abs(x)) / 2, (other - x) / 2
        if f == 0 or abs(half) < least:
            return x
        last, move = move, _promise((before, x, other), (f_before, f, f_other), last, half, least)
        if move == half:
            last = half
        before, f_before = x, f
        x += move if abs(move) > least else (least if half > 0 else -least)
        f = value(x)


def _promise(
    points: tuple[float, float, float], values: tuple[float, float, float], last: float, half: float, least: float
) -> float:
    """Return the step from the middle one of three points by interpolation, or `half` if that step is not reliable."""
    (before, x, other), (f_before, f, f_other) = points, values
    if abs(last) <= least or abs(f) >= abs(f_before):
        return half
    if before == other:
        step = -f * (x - before) / (f - f_before)
    else:
        rise, other_rise = (f_before - f) / (before - x), (f_other - f) / (other - x)
        below = other_rise * rise * (f_other - f_before)
        if below == 0.0 or math.isinf(below):  # for example if x is 1e200
            step = -f / (f_other - f_before) * (f_other / rise - f_before / other_rise)
        else:
            step = -f * (f_other * other_rise - f_before * rise) / below
    return step if 2 * abs(step) < min(abs(last), 3 * abs(half) - least) else half


def first_root(cubic: Iterable[float], most: float) -> float | None:
    """Return the smallest root in [0, most] of a cubic polynomial (highest power first), or None.

    A cubic is monotonic between its turning points. Each monotonic part is checked for a change of sign.

    >>> first_root([1.0, 0.0, 0.0, -0.125], 1.0), first_root([1.0, 0.0, 0.0, 1.0], 1.0)
    (0.5, None)
    """
    a, b, c, d = map(float, cubic)

    def value(x: float) -> float:
        return ((a * x + b) * x + c) * x + d

    square = b * b - 3.0 * a * c
    turns: list[float] = []
    if square > 0.0:
        q = -b - math.copysign(math.sqrt(square), b)  # of 3 a x^2 + 2 b x + c, without cancellation
        turns = [x for x in (q / (3.0 * a) if a != 0.0 else math.inf, c / q) if 0.0 < x < most]
    low = 0.0
    for high in (*sorted(turns), most):
        if value(low) == 0.0 or (value(low) < 0.0) != (value(high) < 0.0):
            return brent(value, low, high, 1e-12, 1e-15)
        low = high
    return None

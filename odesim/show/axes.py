"""Corrections of every figure after it is drawn: plain numbers on short logarithmic axes and on axes to base 2."""

import math
from typing import Any


def plain_logs(figure: Any) -> None:
    """Write 20, 50, 100 on a logarithmic axis of less than two decades, and 2, 4, 8 on one to base 2.

    By default such an axis has at most two powers of ten, and labels such as 6 x 10^1 between them. Ticks that were
    chosen by hand are unchanged.
    """
    from matplotlib.ticker import FixedLocator, LogLocator, NullFormatter, NullLocator

    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if axis.get_scale() != "log" or isinstance(axis.get_major_locator(), FixedLocator):
                continue
            low, high = sorted(axis.get_view_interval())
            base = getattr(axis.get_transform(), "base", 10)
            if low <= 0 or not math.isfinite(high) or high >= (100 * low if base == 10 else 1e4 * low):
                continue
            if base != 10:
                axis.set_major_formatter(_number)
                continue
            axis.set_minor_formatter(NullFormatter())
            axis.set_minor_locator(NullLocator())
            ratio = high / low
            subs = (
                (1, 2, 5) if ratio > 12 else (1, 2, 3, 5) if ratio > 2.5 else (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9)
            )
            axis.set_major_locator(LogLocator(base=10, subs=subs))
            axis.set_major_formatter(_number)


def _number(value: float, place: int | None = None) -> str:
    """Return a tick in plain figures; from 1e5 on and below 1e-3 as a number of one or two digits times a power of
    ten.
    """
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:.6g}"
    digits, exponent = f"{value:.1e}".split("e")
    digits = digits.removesuffix(".0")
    return f"$10^{{{int(exponent)}}}$" if digits == "1" else rf"${digits}\times10^{{{int(exponent)}}}$"

"""Distance of a number from a level, and the cubic through a step that reveals crossings inside the step.

These are plain functions. Generated modules copy them, and the loops of blocks compile them.
"""

import numpy as np


def measure(value, rule):
    """Return the distance of an entry beyond its threshold, at least 0 if it has crossed; rule = (threshold, direction,
    absolute, ..).
    """
    if rule[2] > 0.0:
        value = abs(value)
    return rule[1] * (value - rule[0])


def bump(y0, f0, y1, f1, h, x):
    """Return the cubic through the values and slopes at both ends of a step, at the fraction x of the step."""
    return (1 + 2 * x) * (1 - x) ** 2 * y0 + x**2 * (3 - 2 * x) * y1 + h * (x * (1 - x) ** 2 * f0 - x**2 * (1 - x) * f1)


def turning(y0, f0, y1, f1, h):
    """Return the turning point of that cubic, as a fraction of the step, if the slopes at the ends differ in sign; else
    0.
    """
    if not f0 * f1 < 0.0:
        return 0.0
    a, b = h * abs(f0), -h * abs(f1)
    rise = (y1 - y0) * (1.0 if f0 > 0.0 else -1.0)
    quadratic, cubic = 3.0 * rise - 2.0 * a - b, a + b - 2.0 * rise
    return a / (np.sqrt(quadratic * quadratic - 3.0 * cubic * a) - quadratic)

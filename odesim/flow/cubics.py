"""Distance of a number from a level, and the cubic through a step that reveals crossings inside the step.

These are plain functions, which generated modules copy and the loops of blocks compile.
"""

import numpy as np


def measure(value, rule):
    """How far an entry is beyond its threshold (not negative: crossed); rule = (threshold, direction, absolute, ..)."""
    if rule[2] > 0.0:
        value = abs(value)
    return rule[1] * (value - rule[0])


def bump(y0, f0, y1, f1, h, x):
    """The cubic through both ends and slopes of a step, at the fraction x of it."""
    return (1 + 2 * x) * (1 - x) ** 2 * y0 + x**2 * (3 - 2 * x) * y1 + h * (x * (1 - x) ** 2 * f0 - x**2 * (1 - x) * f1)


def turning(y0, f0, y1, f1, h):
    """Where in a step that cubic turns, as a fraction of it, if its slopes at the ends have opposite signs; else 0."""
    if not f0 * f1 < 0.0:
        return 0.0
    a, b = h * abs(f0), -h * abs(f1)
    rise = (y1 - y0) * (1.0 if f0 > 0.0 else -1.0)
    quadratic, cubic = 3.0 * rise - 2.0 * a - b, a + b - 2.0 * rise
    return a / (np.sqrt(quadratic * quadratic - 3.0 * cubic * a) - quadratic)

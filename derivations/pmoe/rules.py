"""The rule of the tiers of `pmoe` by arrays: the soft top l of tie_rule=fractional is the root of an equation."""

from typing import Any

import numpy as np


def soft_top(route: Any, count: Any, l: Any, width: Any) -> Any:  # noqa: E741
    """count sigmoid((route - theta)/width) (s, x, z), with theta such that every expert selects l patches of a
    sample.
    """
    g, copies = route[:, None, :], count[None]
    low = np.min(route) - width * (np.log(count.sum(1).max()) + 40.0) + np.zeros((len(route), len(count), 1))
    high = np.max(route) + width * (np.log(count.sum(1).max()) + 40.0) + np.zeros_like(low)
    for _ in range(64):  # each step halves the interval: at the end it is below the rounding of its ends
        middle = (low + high) / 2
        few = (copies / (1 + np.exp((middle - g) / width))).sum(2, keepdims=True) > l
        low, high = np.where(few, middle, low), np.where(few, high, middle)
    soft = copies / (1 + np.exp((low - g) / width))
    return np.where(count.sum(1)[None, :, None] <= l, copies + 0.0 * g, soft)

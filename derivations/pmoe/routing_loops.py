"""Routing of samples by plain loops, which numba compiles into the right-hand side of the tiers of `pmoe`.

Arrays of more than two indices are matrices here, with their last indices merged: route values (experts, patterns),
with shifts in front, and copies taken (experts, samples patterns).
"""

import math

import numpy as np
from numba import njit

from derivations.equations.options import OPTIONS
from derivations.ranking import rank

ordered = njit(**OPTIONS)(rank)
REACH = 40.0
"""Number of widths from all route values to a threshold at which a patch is selected, or not, up to 1e-17."""
STEPS = 200
"""Steps of Newton's method; it needs about six."""


@njit(**OPTIONS)
def top_copies(route, count, kept, taken):
    """Fill `taken`: the `kept` patches of largest route value in samples with copies `count` (samples, P)."""
    samples, patterns = count.shape
    values = route.reshape((route.size // patterns, patterns))
    filled = taken.reshape((values.shape[0], samples, patterns))
    order = np.empty(patterns, np.int64)
    for s in range(values.shape[0]):
        ordered(values[s], order)
        for x in range(samples):
            left = kept
            for i in range(patterns):
                z = order[i]
                filled[s, x, z] = min(left, count[x, z])
                left -= filled[s, x, z]


@njit(**OPTIONS)
def leading(route, count, taken, first):
    """Fill `first` with 1 at the pattern of largest route value among the selected patterns of a sample."""
    samples, patterns = count.shape
    values = route.reshape((route.size // patterns, patterns))
    filled = taken.reshape((values.shape[0], samples, patterns))
    found = first.reshape(filled.shape)
    order = np.empty(patterns, np.int64)
    for s in range(values.shape[0]):
        ordered(values[s], order)
        for x in range(samples):
            searching = True
            for i in range(patterns):
                z = order[i]
                found[s, x, z] = 1.0 if searching and filled[s, x, z] > 0.0 else 0.0
                searching = searching and filled[s, x, z] <= 0.0


@njit(**OPTIONS)
def soft_top(route, count, kept, width, taken):
    """Fill `taken`: count sigmoid((route - theta)/width), theta so that they sum to `kept`.

    In a sample with at most `kept` patches all are selected.
    """
    samples, patterns = count.shape
    for s in range(route.shape[0]):
        for x in range(samples):
            soft_row(route[s], count[x], kept, width, taken[s, x * patterns : (x + 1) * patterns])


@njit(**OPTIONS)
def soft_row(g, copies, kept, width, taken):
    """Fill `taken` (P,) of one expert and one sample, by Newton's method inside a bracket."""
    total, low, high = 0.0, np.inf, -np.inf
    for z in range(g.size):
        total += copies[z]
        if copies[z] > 0.0:
            low, high = min(low, g[z]), max(high, g[z])
    if total <= kept:
        for z in range(g.size):
            taken[z] = copies[z]
        return
    margin = width * (math.log(total) + REACH)
    low, high = low - margin, high + margin
    theta = 0.5 * (low + high)
    for _ in range(STEPS):
        excess, slope = -kept, 0.0
        for z in range(g.size):
            u = (g[z] - theta) / width
            share = 1.0 / (1.0 + math.exp(-u)) if u > 0.0 else math.exp(u) / (1.0 + math.exp(u))
            taken[z] = copies[z] * share
            excess += taken[z]
            slope -= taken[z] * (1.0 - share) / width
        if excess > 0.0:
            low = theta
        else:
            high = theta
        if abs(excess) < 1e-14 * kept or high - low < 1e-16 * (abs(low) + abs(high)):
            return
        step = theta - excess / slope if slope < 0.0 else low
        theta = step if low < step < high else 0.5 * (low + high)

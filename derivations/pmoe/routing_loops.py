"""The rule of the pmoe statements as loops, which numba compiles into the right-hand side."""

import math

from numba import njit

from derivations.equations.options import OPTIONS

HALVINGS = 64
"""Each halves the interval of the threshold: at the end it is below the rounding of its ends."""


@njit(**OPTIONS)
def soft_top(route, count, kept, width, routed):
    """Fill routed (experts, samples patterns): count sigmoid((route - theta)/width), theta so that they sum to `kept`.

    A sample of so many patches at most keeps all of them.
    """
    S, Z = route.shape
    X = count.shape[0]
    for s in range(S):
        lowest, highest = route[s, 0], route[s, 0]
        for z in range(Z):
            lowest, highest = min(lowest, route[s, z]), max(highest, route[s, z])
        for x in range(X):
            total = 0.0
            for z in range(Z):
                total += count[x, z]
            margin = width * (math.log(max(total, 1.0)) + 40.0)
            low, high = lowest - margin, highest + margin
            for _ in range(HALVINGS if total > kept else 0):
                middle, taken = 0.5 * (low + high), 0.0
                for z in range(Z):
                    taken += count[x, z] / (1.0 + math.exp((middle - route[s, z]) / width))
                if taken > kept:
                    low = middle
                else:
                    high = middle
            for z in range(Z):
                soft = count[x, z] / (1.0 + math.exp((low - route[s, z]) / width))
                routed[s, x * Z + z] = soft if total > kept else count[x, z]

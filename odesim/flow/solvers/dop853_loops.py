"""A step of DOP853 as plain loops for numba, compiled once for all flows, which they call by their address.

`flow` is a pair of addresses (`odesim.code.derivative`).  All sums over the slopes of the stages are one loop with
`weights` (14, 13): row s - 1 has those of stage s of the method, the twelfth the new state's, the last two its errors
of third and fifth order (Hairer, Norsett & Wanner 1993).  Written out one by one they take twice as long to compile.
"""

import numpy as np

from odesim.code.derivative import evaluate


def weighted_sum(weights, K, count, found):
    """found = sum_j weights_j K_j over the first `count` rows, four at a time: each pass reads and writes `found`."""
    n = found.size
    for i in range(n):
        found[i] = 0.0
    for j in range(0, count - 3, 4):
        w0, w1, w2, w3 = weights[j], weights[j + 1], weights[j + 2], weights[j + 3]
        k0, k1, k2, k3 = K[j], K[j + 1], K[j + 2], K[j + 3]
        for i in range(n):
            found[i] += w0 * k0[i] + w1 * k1[i] + w2 * k2[i] + w3 * k3[i]
    for j in range(count - count % 4, count):
        w0, k0 = weights[j], K[j]
        for i in range(n):
            found[i] += w0 * k0[i]


def in_tolerances(error, y, new, bounds, tolerances):
    """The sum of squares of an error in units of the tolerance, relative to the distance from 0 and from the bounds."""
    (low, high), (rtol, atol), total = bounds, tolerances, 0.0
    for i in range(y.size):
        before = min(abs(y[i]), min(abs(y[i] - low[i]), abs(high[i] - y[i])))
        after = min(abs(new[i]), min(abs(new[i] - low[i]), abs(high[i] - new[i])))
        total += (error[i] / (atol + rtol * max(before, after))) ** 2
    return total


def small_error(y, h, weights, K, new, measure):
    """The error of a step whose rates leave no square, like the 1e-270 of a start of 1e-90: it is h times them."""
    (bounds, tolerances), rates, squares = measure, np.empty(y.size), np.zeros(2)
    for s in range(2):
        weighted_sum(weights[12 + s], K, 13, rates)
        for i in range(y.size):
            rates[i] *= h
        squares[s] = in_tolerances(rates, y, new, bounds, tolerances)
    three, five = squares
    return 0.0 if five == 0.0 and three == 0.0 else five / np.sqrt((five + 0.01 * three) * y.size)


def attempt(y, f, h, weights, K, new, bounds, tolerances, flow):
    """The state `new` after one step of length h from y of slope f, with its slope K[12] and those on the way, K[:12].

    Returns its error in units of the tolerance.
    """
    found, five, three = np.empty(y.size), 0.0, 0.0
    for i in range(y.size):
        K[0, i] = f[i]
    for s in range(1, 15):
        weighted_sum(weights[s - 1], K, min(s, 13), found)
        if s > 12:
            three, five = five, in_tolerances(found, y, new, bounds, tolerances)
            continue
        for i in range(y.size):
            new[i] = y[i] + h * found[i]
        evaluate(new, K[s], flow)
    if five == 0.0 and three == 0.0:
        return small_error(y, h, weights, K, new, (bounds, tolerances))
    return h * five / np.sqrt((five + 0.01 * three) * y.size)

"""The numerical differentiation formulas of orders 1 to 5 as plain loops for numba, with Newton's matrix in blocks.

Klopfenstein's formulas in the quasi-constant form of Shampine & Reichelt (1997): the history is a table of backward
differences, rescaled when the step changes.  Newton's matrix I - c J is kept between strongly coupled entries only
and inverted block by block; the entries of block b are members[first[b]:first[b + 1]], its derivatives and their
inverse lie from place[b] on, row by row.
"""

from collections.abc import Callable

import numpy as np

inner_flow: Callable[..., np.ndarray]


def weighted(x, scale):
    """Root mean square of x / scale."""
    total = 0.0
    for i in range(x.size):
        total += (x[i] / scale[i]) ** 2
    return np.sqrt(total / x.size)


def derivatives(y, f, displacement, members, first, place, J, arguments):
    """Fill J with df_a/dy_b inside the blocks; the k-th evaluation displaces the k-th entry of every block."""
    largest = 0
    for b in range(first.size - 1):
        largest = max(largest, first[b + 1] - first[b])
    near = np.empty(y.size)
    for k in range(largest):
        near[:] = y
        for b in range(first.size - 1):
            if first[b] + k < first[b + 1]:
                near[members[first[b] + k]] += displacement
        slope = inner_flow(near, *arguments)
        for b in range(first.size - 1):
            size = first[b + 1] - first[b]
            if k < size:
                for i in range(size):
                    entry = members[first[b] + i]
                    J[place[b] + i * size + k] = (slope[entry] - f[entry]) / displacement
    return largest


def invert(c, first, place, J, inverse):
    """inverse = (I - c J)^-1, block by block, by Gauss-Jordan elimination with row exchanges."""
    largest = 0
    for b in range(first.size - 1):
        largest = max(largest, first[b + 1] - first[b])
    W, pivots = np.empty((largest, largest)), np.empty(largest, np.int64)
    for b in range(first.size - 1):
        n, at = first[b + 1] - first[b], place[b]
        if n == 1:
            inverse[at] = 1.0 / (1.0 - c * J[at])
            continue
        for i in range(n):
            for j in range(n):
                W[i, j] = (1.0 if i == j else 0.0) - c * J[at + i * n + j]
        for k in range(n):
            best = k
            for i in range(k + 1, n):
                if abs(W[i, k]) > abs(W[best, k]):
                    best = i
            pivots[k] = best
            if best != k:
                for j in range(n):
                    W[k, j], W[best, j] = W[best, j], W[k, j]
            pivot = 1.0 / W[k, k]
            W[k, k] = 1.0
            for j in range(n):
                W[k, j] *= pivot
            for i in range(n):
                if i != k:
                    factor = W[i, k]
                    W[i, k] = 0.0
                    for j in range(n):
                        W[i, j] -= factor * W[k, j]
        for k in range(n - 1, -1, -1):
            if pivots[k] != k:
                for i in range(n):
                    W[i, k], W[i, pivots[k]] = W[i, pivots[k]], W[i, k]
        for i in range(n):
            for j in range(n):
                inverse[at + i * n + j] = W[i, j]


def apply(members, first, place, inverse, r, x):
    """x = inverse r."""
    for b in range(first.size - 1):
        n, at = first[b + 1] - first[b], place[b]
        for i in range(n):
            total = 0.0
            for j in range(n):
                total += inverse[at + i * n + j] * r[members[first[b] + j]]
            x[members[first[b] + i]] = total


def rescale(D, order, factor):
    """The backward differences D for steps `factor` times as long: (R(factor) R(1))^T D."""
    R, U, both = np.zeros((6, 6)), np.zeros((6, 6)), np.zeros((6, 6))
    for j in range(order + 1):
        R[0, j] = U[0, j] = 1.0
        for i in range(1, order + 1):
            R[i, j] = R[i - 1, j] * (i - 1 - factor * j) / i
            U[i, j] = U[i - 1, j] * (i - 1 - j) / i
    for i in range(order + 1):
        for j in range(order + 1):
            for k in range(order + 1):
                both[j, i] += R[i, k] * U[k, j]
    old = D[: order + 1].copy()
    for j in range(order + 1):
        for i in range(D.shape[1]):
            D[j, i] = both[j, 0] * old[0, i]
        for k in range(1, order + 1):
            weight = both[j, k]
            for i in range(D.shape[1]):
                D[j, i] += weight * old[k, i]


def newton(start, psi, c, scale, tolerance, rate, members, first, place, inverse, y, d, arguments):
    """Solve d = c f(start + d) - psi; returns (evaluations, converged, rate of convergence).

    `rate` is the one known from the steps before, or 1; with it one iteration may be enough.
    """
    n = y.size
    r, change = np.empty(n), np.empty(n)
    last = 0.0
    for i in range(n):
        y[i] = start[i]
        d[i] = 0.0
    for k in range(6):
        f = inner_flow(y, *arguments)
        for i in range(n):
            r[i] = c * f[i] - psi[i] - d[i]
        apply(members, first, place, inverse, r, change)
        size = weighted(change, scale)
        if not np.isfinite(size):
            return k + 1, False, 1.0
        if k > 0:
            rate = max(size / last, 0.2 * rate if k == 1 else 0.0)
            if rate >= 1.0 or rate ** (5 - k) / (1.0 - rate) * size > tolerance:
                return k + 1, False, 1.0
        for i in range(n):
            y[i] += change[i]
            d[i] += change[i]
        if size == 0.0 or (rate < 0.9 and rate / (1.0 - rate) * size < tolerance):
            return k + 1, True, rate
        last = size
    return 6, False, 1.0


def inside(D, order, s, entry):
    """The polynomial of the method, s steps after the last state: sum_j D_j prod_{i < j} (s + i) / (i + 1)."""
    value, weight = D[0, entry], 1.0
    for j in range(1, order + 1):
        weight *= (s + j - 1) / j
        value += D[j, entry] * weight
    return value


def crossing(D, order, places, signs, levels):
    """Whether a watched entry is beyond its level at the last state, or at a quarter of the step before it."""
    for w in range(places.size):
        if signs[w] * D[0, places[w]] >= levels[w]:
            return True
    for w in range(places.size):
        for s in (-0.75, -0.5, -0.25):
            if signs[w] * inside(D, order, s, places[w]) >= levels[w]:
                return True
    return False


def choose(D, order, error, scale, safety, errors):
    """The order and the factor of the next steps: what promises the longest of orders one less, the same, one more."""
    factor = error ** (-1.0 / (order + 1)) if error > 0.0 else 10.0
    best, chosen = factor, order
    if order > 1:
        down = errors[order - 1] * weighted(D[order], scale)
        factor = down ** (-1.0 / order) if down > 0.0 else 10.0
        if factor > best:
            best, chosen = factor, order - 1
    if order < 5:
        up = errors[order + 1] * weighted(D[order + 2], scale)
        factor = up ** (-1.0 / (order + 2)) if up > 0.0 else 10.0
        if factor > best:
            best, chosen = factor, order + 1
    return chosen, min(10.0, safety * best)


def advance(
    D, control, counts, members, first, place, J, inverse, until, due, rtol, atol, most, watch, table, arguments
):
    """Take up to `most` steps; returns 0 at the end or at `due`, 1 where an entry may have crossed in the last step,
    2 where `most` is reached, 3 where the derivatives have to be renewed, 4 where the step has shrunk to round-off.

    control = (t, step, order, steps of that length, its last error, the last safety factor, rate of convergence, age of
    the derivatives, length of the last step, whether the inverse is that of this step); counts = (steps, rejected,
    evaluations).
    """
    alpha, gamma, errors = table
    places, signs, levels = watch
    n = D.shape[1]
    start, psi, scale, y, d = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for _ in range(most):
        t, order = control[0], int(control[2])
        if control[3] > order:
            for i in range(n):
                scale[i] = atol + rtol * abs(D[0, i])
            order, factor = choose(D, order, control[4], scale, control[5], errors)
            control[1] *= factor
            control[2], control[3], control[9] = order, 0.0, 0.0
            rescale(D, order, factor)
        while True:
            h = control[1]
            if h < 10 * np.spacing(t):
                return 4
            if t + h > until:
                rescale(D, order, (until - t) / h)
                h = control[1] = until - t
                control[3], control[9] = 0.0, 0.0
            c = h / alpha[order]
            if control[9] == 0.0:
                invert(c, first, place, J, inverse)
                control[9] = 1.0
            for i in range(n):
                start[i], psi[i] = D[0, i], 0.0
            for j in range(1, order + 1):
                for i in range(n):
                    start[i] += D[j, i]
                    psi[i] += gamma[j] / alpha[order] * D[j, i]
            for i in range(n):
                scale[i] = atol + rtol * abs(start[i])
            known = control[6] if control[7] % 20 != 0 else 1.0
            used, converged, control[6] = newton(
                start, psi, c, scale, 0.03, known, members, first, place, inverse, y, d, arguments
            )
            counts[2] += used
            if not converged:
                if control[7] > 0.0:
                    return 3
                rescale(D, order, 0.5)
                control[1] *= 0.5
                control[3], control[9] = 0.0, 0.0
                continue
            for i in range(n):
                scale[i] = atol + rtol * abs(y[i])
            error = errors[order] * weighted(d, scale)
            control[5] = 0.9 * 13.0 / (12.0 + used)
            if error <= 1.0:
                break
            factor = max(0.2, control[5] * error ** (-1.0 / (order + 1)))
            rescale(D, order, factor)
            control[1] *= factor
            control[3], control[9] = 0.0, 0.0
            counts[1] += 1
        for i in range(n):
            D[order + 2, i] = d[i] - D[order + 1, i]
            D[order + 1, i] = d[i]
        for j in range(order, -1, -1):
            for i in range(n):
                D[j, i] += D[j + 1, i]
        counts[0] += 1
        control[0] = until if t + h >= until else t + h
        control[3] += 1.0
        control[4] = error
        control[7] += 1.0
        control[8] = h
        if crossing(D, order, places, signs, levels):
            return 1
        if control[0] >= due or control[0] >= until:
            return 0
    return 2


def begin(y, f, h, D):
    """Backward differences of the first order from a state and its slope, for steps of length h."""
    D[:] = 0.0
    for i in range(y.size):
        D[0, i] = y[i]
        D[1, i] = h * f[i]

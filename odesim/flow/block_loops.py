"""The steps of independent blocks as plain loops for numba, compiled around the block functions of some equations.

DOP853 (Hairer, Norsett & Wanner 1993, with their error estimate) while accuracy limits the step; the Rosenbrock method
of Kaps & Rentrop (1979) with Shampine's parameters, order 4, error of order 3, once stability does.  A state between
two steps is that of a shorter step of the same method from the start of the step.

What belongs to a block goes through these functions as one tuple, `block` = (space, table, work, k, p): room for K, J,
stage, error, and K and the state of shorter steps; the coefficients of DOP853; what `block_start` made; the block's
number; the arguments of the equations.  `step` = (y, f, new, slope) is a step from (y, f) to (new, slope).
"""

from collections.abc import Callable

import numpy as np

block_start: Callable[..., np.ndarray]
block_slope: Callable[..., None]
block_jacobian: Callable[..., None]


def runge_kutta(y, f, h, K, new, block):
    """One step of DOP853 from (y, f): K (13, n) the slopes of the stages, `new` the state; the last stage is left."""
    space, table, work, k, p = block
    stage, A, B, n = space[2], table[0], table[1], y.size
    for i in range(n):
        K[0, i] = f[i]
    for s in range(1, 12):
        for i in range(n):
            total = 0.0
            for j in range(s):
                total += A[s, j] * K[j, i]
            stage[i] = y[i] + h * total
        block_slope(stage, K[s], work, k, p)
    for i in range(n):
        total = 0.0
        for j in range(12):
            total += B[j] * K[j, i]
        new[i] = y[i] + h * total


def error_norm(y, new, h, K, E3, E5, rtol, atol):
    """The error of a step of DOP853 in units of the tolerance."""
    n = y.size
    five, three, small = 0.0, 0.0, 0.0
    for i in range(n):
        e5, e3 = 0.0, 0.0
        for j in range(13):
            e5 += E5[j] * K[j, i]
            e3 += E3[j] * K[j, i]
        scale = atol + rtol * max(abs(y[i]), abs(new[i]))
        five += (e5 / scale) ** 2
        three += (e3 / scale) ** 2
        small = max(small, abs(h * e5 / scale))
    if five == 0.0 and three == 0.0:
        return small  # slopes of 1e-270, of a start at 1e-90, leave no square
    return h * five / np.sqrt((five + 0.01 * three) * n)


def factorise(W):
    """LU factors of a small matrix in place, with partial pivoting; returns the order of the rows."""
    n = W.shape[0]
    order = np.arange(n)
    for k in range(n):
        best = k
        for i in range(k + 1, n):
            if abs(W[i, k]) > abs(W[best, k]):
                best = i
        if best != k:
            for j in range(n):
                W[k, j], W[best, j] = W[best, j], W[k, j]
            order[k], order[best] = order[best], order[k]
        for i in range(k + 1, n):
            W[i, k] /= W[k, k]
            for j in range(k + 1, n):
                W[i, j] -= W[i, k] * W[k, j]
    return order


def substitute(W, order, b, x):
    """Solve with the factors of `factorise`: x = W^-1 b."""
    n = b.size
    for i in range(n):
        x[i] = b[order[i]]
        for j in range(i):
            x[i] -= W[i, j] * x[j]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            x[i] -= W[i, j] * x[j]
        x[i] /= W[i, i]


def rosenbrock(y, f, h, new, block):
    """One step of the Rosenbrock method from (y, f) with the Jacobian space[1]; its error goes to space[3]."""
    space, _, work, k, p = block
    J, stage, error, n = space[1], space[2], space[3], y.size
    W = np.empty((n, n))
    g, slope, b = np.zeros((4, n)), np.empty(n), np.empty(n)
    for i in range(n):
        b[i] = f[i]
        for j in range(n):
            W[i, j] = -J[i, j]
        W[i, i] += 2.0 / h
    order = factorise(W)
    substitute(W, order, b, g[0])
    for i in range(n):
        stage[i] = y[i] + 2.0 * g[0, i]
    block_slope(stage, slope, work, k, p)
    for i in range(n):
        b[i] = slope[i] - (8.0 / h) * g[0, i]
    substitute(W, order, b, g[1])
    for i in range(n):
        stage[i] = y[i] + 48.0 / 25.0 * g[0, i] + 6.0 / 25.0 * g[1, i]
    block_slope(stage, slope, work, k, p)
    for i in range(n):
        b[i] = slope[i] + (372.0 / 25.0 * g[0, i] + 12.0 / 5.0 * g[1, i]) / h
    substitute(W, order, b, g[2])
    for i in range(n):
        b[i] = slope[i] - (112.0 / 125.0 * g[0, i] + 54.0 / 125.0 * g[1, i] + 2.0 / 5.0 * g[2, i]) / h
    substitute(W, order, b, g[3])
    for i in range(n):
        new[i] = y[i] + 19.0 / 9.0 * g[0, i] + 0.5 * g[1, i] + 25.0 / 108.0 * g[2, i] + 125.0 / 108.0 * g[3, i]
        error[i] = 17.0 / 54.0 * g[0, i] + 7.0 / 36.0 * g[1, i] + 125.0 / 108.0 * g[3, i]


def short_step(y, f, h, stiff, block):
    """The state a time h after (y, f) by one step of the method in use, left in space[5] (space[1] its Jacobian)."""
    space = block[0]
    if stiff:
        rosenbrock(y, f, h, space[5], block)
    else:
        runge_kutta(y, f, h, space[4], space[5], block)


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


def locate(y, f, high, entry, rule, stiff, block):
    """The time after the start of a step, up to `high`, at which an entry crosses; infinity where it does not.

    Regula falsi with the Illinois weights, on states of shorter steps, until the bracket is 1e-13 of the step.
    """
    low, left, right, side = 0.0, measure(y[entry], rule), 0.0, 0
    middle, space = high, block[0]
    for trial in range(81):
        short_step(y, f, middle, stiff, block)
        value = measure(space[5][entry], rule)
        if trial == 0:
            if value < 0.0:
                return np.inf
            right = value
        elif value >= 0.0:
            high, right = middle, value
            left = 0.5 * left if side == 1 else left
            side = 1
        else:
            low, left = middle, value
            right = 0.5 * right if side == -1 else right
            side = -1
        if high - low <= 1e-13 * high:
            break
        middle = high - right * (high - low) / (right - left)
        if not (low < middle < high):
            middle = 0.5 * (low + high)
    return high


def find_crossings(t, h, step, stiff, watch, hits, block):
    """Locate the first crossing of every entry that the cubic through the step shows to be crossed in it.

    `watch` = (entries, rules) of the crossings.
    """
    (y, f, new, slope), (entries, rules) = step, watch
    for j in range(entries.size):
        e = entries[j]
        if hits[j] < np.inf or measure(y[e], rules[j]) >= 0.0:
            continue
        for x in (0.25, 0.5, 0.75, turning(y[e], f[e], new[e], slope[e], h), 1.0):
            value = new[e] if x == 1.0 else bump(y[e], f[e], new[e], slope[e], h, x)
            if x > 0.0 and measure(value, rules[j]) >= 0.0:
                hits[j] = t + locate(y, f, x * h, e, rules[j], stiff, block)
                if hits[j] < np.inf:  # or the cubic was wrong here, and it may cross later in the step
                    break
                if x == 1.0:  # the same step again, rounded otherwise, just misses the threshold
                    hits[j] = t + h


def attempt(h, step, rtol, atol, stiff, block):
    """Take one step into `new`, its derivative into `slope`; returns its error in units of the tolerance."""
    (y, f, new, slope), (space, table, work, k, p) = step, block
    K, error, n = space[0], space[3], y.size
    if stiff:
        block_jacobian(y, space[1], work, k, p)
        rosenbrock(y, f, h, new, block)
        block_slope(new, slope, work, k, p)
        total = 0.0
        for i in range(n):
            total += (error[i] / (atol + rtol * max(abs(y[i]), abs(new[i])))) ** 2
        norm = np.sqrt(total / n)
    else:
        runge_kutta(y, f, h, K, new, block)
        block_slope(new, slope, work, k, p)
        for i in range(n):
            K[12, i] = slope[i]
        norm = error_norm(y, new, h, K, table[2], table[3], rtol, atol)
    return norm if norm < np.inf else 1e10


def stability(new, slope, stage, K):
    """lambda from the last stage of DOP853 and the new state, which are both at the end (Hairer & Wanner 1996)."""
    rise, run = 0.0, 0.0
    for i in range(new.size):
        rise += (slope[i] - K[11, i]) ** 2
        run += (new[i] - stage[i]) ** 2
    return np.sqrt(rise / run) if run > 0.0 else 0.0


def first_step(y, f, until, atol, J):
    """A hundredth of the time in which the state would change by its size, at most 10 over the norm of the Jacobian J.

    At rest the speed is rounding, and says nothing about the step.  The stages of an explicit step that is a thousand
    times too long leave the region where the flow is alive; their slopes are 0, and the error estimate sees nothing.
    """
    size, speed, stiffness = 0.0, 0.0, 0.0
    for i in range(y.size):
        size = max(size, abs(y[i]))
        speed = max(speed, abs(f[i]))
        row = 0.0
        for j in range(y.size):
            row += abs(J[i, j])
        stiffness = max(stiffness, row)
    h = until if speed == 0.0 else min(until, 0.01 * (size + atol) / speed)
    return h if speed == 0.0 or h * stiffness <= 10.0 else 10.0 / stiffness


def save_states(t, end, step, at, saving, stiff, block):
    """Fill in the states at the save times up to the end of a step; returns how many are filled now.

    `saving` = (times, states), of which `at` are filled.
    """
    (y, f, new, _), (times, saved) = step, saving
    while at < times.size and times[at] <= end:
        state = new
        if times[at] != end:
            short_step(y, f, times[at] - t, stiff, block)
            state = block[0][5]
        for i in range(y.size):
            saved[at, i] = state[i]
        at += 1
    return at


def ended(hits, rules):
    """Whether a crossing is found that ends its block: rule[3] > 0."""
    for j in range(hits.size):
        if rules[j, 3] > 0.0 and hits[j] < np.inf:
            return True
    return False


def integrate_block(y, until, control, watch, saving, hits, counts, block):
    """Integrate one block from y to `until`, or to a crossing that ends it; returns its status (see `blocks.STATUS`).

    `control` = (relative and absolute tolerance, most steps, the longest step).  What would be saved in the step in
    which it ends, or later, is left as it is.
    """
    (rtol, atol, most, longest), (space, _, work, k, p), n = control, block, y.size
    f, new, slope = np.empty(n), np.empty(n), np.empty(n)
    block_slope(y, f, work, k, p)
    step = (y, f, new, slope)
    t, limited, at = 0.0, 0, 0
    stiff = limited > 0  # not the literal False, for which numba would compile every function a second time
    old_h, old = 0.0, 0.0
    at = save_states(t, t, (y, f, y, f), at, saving, stiff, block)
    block_jacobian(y, space[1], work, k, p)
    h = first_step(y, f, until, atol, space[1])
    while t < until:
        h = min(h, longest)
        last = h >= until - t
        h = min(h, until - t)
        if counts[0] >= most or h < 1e-300:
            return 3 if counts[0] >= most else 2
        norm = attempt(h, step, rtol, atol, stiff, block)
        counts[2] += 4 if stiff else 12
        factor = max(0.2, 0.9 * norm ** (-1.0 / (4.0 if stiff else 8.0))) if norm > 0.0 else 10.0
        if norm > 1.0:
            counts[1] += 1
            h *= min(factor, 0.9)
            if norm == 1e10 and h < 1e-300:
                return 1
            continue
        counts[0] += 1
        if old_h > 0.0 and norm > 0.0:  # the trend of the error (Gustafsson 1994): an escape shortens every step
            factor = min(factor, 0.9 * (h / old_h) * (old / norm**2) ** (1.0 / (4.0 if stiff else 8.0)))
        old_h, old = h, max(norm, 1e-4)
        if not stiff:
            limited = limited + 1 if h * stability(new, slope, space[2], space[0]) > 5.0 else max(0, limited - 1)
        find_crossings(t, h, step, stiff, watch, hits, block)
        if ended(hits, watch[1]):
            return 0
        end = until if last else t + h
        at = save_states(t, end, step, at, saving, stiff, block)
        t = end  # a step below the spacing of float64 at t moves the state alone: the flow does not depend on time
        for i in range(n):
            y[i], f[i] = new[i], slope[i]
        h *= min(max(factor, 0.2), 5.0)
        stiff = stiff or limited >= 8
    return 0


def integrate_blocks(start, first, times, until, control, watch, found, given):
    """Integrate block after block, the first with number `first`; `given` = (coefficients of DOP853, arguments).

    Fills `found` = (saved (blocks, times, n), hits (blocks, crossings), counts (blocks, 3), status (blocks,)).
    """
    (saved, hits, counts, status), (table, p), n = found, given, start.shape[1]
    space = (np.empty((13, n)), np.empty((n, n)), np.empty(n), np.empty(n), np.empty((13, n)), np.empty(n))
    for block in range(start.shape[0]):
        k = first + block
        own = (space, table, block_start(k, p), k, p)
        saving = (times, saved[block])
        status[block] = integrate_block(
            start[block].copy(), until, control, watch, saving, hits[block], counts[block], own
        )  # fmt: skip

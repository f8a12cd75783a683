"""Many small flows at once as plain loops for numba: eight flows side by side (lanes), each with its own steps.

`lane_step` and `lane_slope`, written out for the flow (`odesim.small.lanes`), do the arithmetic of DOP853 for all lanes
in one vectorised loop. Here every lane accepts or rejects its step, searches its crossing, and locates it by Newton's
method on shorter steps. At its end it takes the next flow.
"""

from collections.abc import Callable

import numpy as np

from odesim.flow.cubics import bump, measure, turning

lane_step: Callable[..., None]
lane_slope: Callable[..., None]


def first_candidate(v0, s0, v1, s1, h, rule, after):
    """Return a fraction of a step above `after` at which the cubic through its ends is beyond the threshold, else zero.

    The candidates are the three quarters, then the end, then the turning point of the cubic.
    """
    for x in (0.25, 0.5, 0.75):
        if x > after and measure(bump(v0, s0, v1, s1, h, x), rule) >= 0.0:
            return x
    if after < 1.0 and measure(v1, rule) >= 0.0:
        return 1.0
    x = turning(v0, s0, v1, s1, h)
    return x if x > after and measure(bump(v0, s0, v1, s1, h, x), rule) >= 0.0 else 0.0


def cubic_root(v0, s0, v1, s1, h, rule, x):
    """Return the time after the start of a step at which its cubic crosses before the fraction x, accurate to 1/500.

    Newton's method starts there.
    """
    low, high = 0.0, x
    for _ in range(9):
        middle = 0.5 * (low + high)
        if measure(bump(v0, s0, v1, s1, h, middle), rule) >= 0.0:
            high = middle
        else:
            low = middle
    return 0.5 * (low + high) * h


def resolution(given, n, tolerances):
    """Return the size below which the error of an entry is absolute, atol / rtol.

    With `follows` it is at most a hundredth of the smallest entry that does not start at 0, because the escape time
    depends on a start as small as 1e-20.
    """
    (rtol, atol, follows), least = tolerances, np.inf
    for i in range(n):
        if given[i] != 0.0:
            least = min(least, abs(given[i]))
    return min(atol / rtol, 0.01 * least) if follows and least < atol / rtol else atol / rtol


def load_lane(rows, kept, given, n, w, lane, limits, tolerances):
    """Load one flow into a lane, with a first step of a twentieth of the time in which its state changes by its size.

    `given` are its state and parameters. Returns False if slopes are 0, possibly by underflow.
    """
    (until, longest), q, size, speed, least = limits, given.size - n, 0.0, 0.0, resolution(given, n, tolerances)
    for i in range(n):
        rows[i, lane] = given[i]
        size = max(size, abs(given[i]))
    for j in range(q):
        rows[4 * n + j, lane] = given[n + j]
    lane_slope(w, lane)
    for i in range(n):
        speed = max(speed, abs(rows[n + i, lane]))
    for j in range(len(kept)):
        kept[j, lane] = 0.0
    rows[4 * n + q, lane] = min(
        longest, until if speed == 0.0 else min(until, 0.05 * (size + least * tolerances[0]) / speed)
    )
    rows[4 * n + q + 3, lane] = least
    return speed > 0.0 or size == 0.0 or least > 1e-100


def accept(rows, kept, n, lane, h, growth, until):
    """Move a lane to the end of its step, and choose the next step from the error and its trend (Gustafsson 1994)."""
    for i in range(n):
        rows[i, lane] = rows[2 * n + i, lane]
        rows[n + i, lane] = rows[3 * n + i, lane]
    factor = 0.9 * growth
    if kept[4, lane] > 0.0 and growth < np.inf:  # an escape shortens every step
        factor = min(factor, 0.9 * (h / kept[4, lane]) * growth * growth / kept[5, lane])
    kept[4, lane], kept[5, lane] = h, min(growth, 10.0**0.5)
    kept[0, lane] = until if h >= until - kept[0, lane] else kept[0, lane] + h
    return h * min(max(factor, 0.2), 5.0)


def newton(kept, lane, h, value, rate):
    """Return the next trial for a crossing after one at `h`, or -h if the crossing is at the time h after the start of
    the step.

    A correction of 1e-8 of the step leaves an error of its square.
    """
    if value >= 0.0:
        kept[3, lane] = h
    else:
        kept[2, lane] = h
    low, high = kept[2, lane], kept[3, lane]
    after = h - value / rate if rate > 0.0 else -1.0
    if after > 0.0 and abs(after - h) <= 1e-8 * kept[1, lane]:
        return -after
    if high - low <= 1e-13 * high:
        return -high
    return after if low < after < high else 0.5 * (low + high)


def take_step(rows, kept, n, lane, at, entry, rule, until):
    """Judge the step of a lane. Return the length of its next trial, or minus the time of its crossing."""
    h, growth, mode = rows[at, lane], rows[at + 1, lane], kept[7, lane]
    v0, s0 = rows[entry, lane], rows[n + entry, lane]
    v1, s1 = rows[2 * n + entry, lane], rows[3 * n + entry, lane]
    if mode == 0.0:
        if not growth >= 1.0:  # too large an error, or not a number
            return h * (min(max(0.2, 0.9 * growth), 0.9) if growth > 0.0 else 0.2)
        x = first_candidate(v0, s0, v1, s1, h, rule, kept[6, lane])
        if x == 0.0:
            kept[6, lane] = 0.0
            kept[8, lane] = max(0.0, kept[8, lane] + (1.0 if rows[at + 2, lane] > 25.0 else -1.0))
            return accept(rows, kept, n, lane, h, growth, until)
        kept[1, lane], kept[2, lane], kept[3, lane], kept[6, lane] = h, 0.0, x * h, x
        kept[7, lane] = 1.0 if x == 1.0 else 2.0
        return cubic_root(v0, s0, v1, s1, h, rule, 1.0) if x == 1.0 else x * h
    value = measure(v1, rule)
    if mode == 2.0:  # the cubic alone shows a crossing by this time
        if value < 0.0:
            kept[7, lane] = 0.0
            return kept[1, lane]
        kept[7, lane] = 1.0
    trial = newton(kept, lane, h, value, rule[1] * (-s1 if rule[2] > 0.0 and v1 < 0.0 else s1))
    return trial if trial > 0.0 else -(kept[0, lane] - trial)


def march_lanes(table, n, crossing, limits, tolerances, most, found, status):
    """Write the first crossing time of `entry` of each flow to `found` and the status to `status` (flows,). Return the
    worst status.

    `table` (flows, n + q) has states and parameters, `crossing` = (entry, threshold, direction, absolute), `limits` =
    (the horizon, the longest step), `tolerances` = (relative, absolute, True if the absolute one follows the start).
    Status: 0 good, 2 no step is short enough, 3 more than `most` steps, 4 stability limits the steps, 5 the slopes are
    0, possibly by underflow. `kept` has, per lane: the time; the full step, the lowest and the highest trial for a
    crossing; the last step and its growth; the searched fraction of the step; the task of the lane (0 steps, 1 locates
    its crossing, 2 checks a crossing of the cubic); the number of steps limited by stability.
    """
    (entry, threshold, direction, absolute), rtol, (until, longest) = crossing, tolerances[0], limits
    count, at = len(table), 3 * n + table.shape[1]
    steps = np.zeros(count, np.int64)
    found[:], status[:] = np.inf, 0
    w, kept, rule = np.zeros((at + 4) * 8), np.zeros((9, 8)), (threshold, direction, absolute, 1.0)
    rows, owner = w.reshape((at + 4, 8)), np.full(8, -1)
    loaded, alive, worst = 0, 0, 0
    while alive > 0 or loaded < count:
        for lane in range(8 if alive < 8 and loaded < count else 0):
            while owner[lane] < 0 and loaded < count:
                flow, loaded = loaded, loaded + 1
                if measure(table[flow, entry], rule) >= 0.0:
                    found[flow] = 0.0
                    continue
                if not load_lane(rows, kept, table[flow], n, w, lane, limits, tolerances):
                    status[flow] = worst = 5
                    continue
                owner[lane], alive = flow, alive + 1
        lane_step(w, rtol)
        for lane in range(8):
            flow = owner[lane]
            if flow < 0:
                continue
            steps[flow] += 1
            trial = take_step(rows, kept, n, lane, at, entry, rule, until)
            if trial < 0.0:
                found[flow] = -trial
            elif kept[7, lane] > 0.0 or kept[0, lane] < until:
                rows[at, lane] = min(trial, longest, until - kept[0, lane])
                status[flow] = 2 if trial < 1e-300 else 3 if steps[flow] >= most else 4 if kept[8, lane] >= 8.0 else 0
                if status[flow] == 0:
                    continue
                worst = max(worst, status[flow])
            owner[lane], alive = -1, alive - 1
    return worst

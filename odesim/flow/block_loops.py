"""The steps of independent blocks in compiled loops, the same for all equations.

DOP853 (Hairer, Norsett & Wanner 1993, with their error estimate) while accuracy limits the step. Once stability limits
it, the Rosenbrock method of Kaps & Rentrop (1979) with Shampine's parameters (order 4, error of order 3). A state
between two steps comes from a shorter step of the same method from the start of the step.

The equations are two function pointers of one type, that of `odesim.code.engine.flow`: slope(y, out, tables, kernels)
fills the derivative (n,) of a block and jacobian(y, out, tables, kernels) its Jacobian (n n,), row by row. The tables
contain the numbers of a block, such as its parameters.

The data of a block are one argument of these functions, the tuple `block` = (room, weights, slope, jacobian, tables,
kernels). The rows of `room` (38 + 2 n, n) are the work space of a step, as described by the constants below. A step
goes from the state room[Y] with the derivative room[F] to room[END] with room[SLOPE]. `weights` (14, 13) are the sums
of slopes of DOP853: its stages, the new state, and the errors of third and fifth order. The arguments are few, because
numba needs a tenth of a second for the type of each.
"""

from typing import Any

import numpy as np
from numba import njit, types
from numba.typed import List

from derivations.equations.options import INNER, OPTIONS, POINTED
from odesim.code.engine import FLOW, KERNEL, KERNELS, TABLES, flow, numbers
from odesim.code.module_cache import compiled
from odesim.flow import cubics

matrix, number, truth = types.float64[:, ::1], types.float64, types.boolean
whole, wholes = types.int64, types.int64[::1]
POINTER = types.FunctionType(FLOW)
FUNCTIONS = types.ListType(POINTER)
BLOCK = types.Tuple((matrix, matrix, POINTER, POINTER, TABLES, KERNELS))
STEP = types.FunctionType(types.void(number, truth, whole, whole, BLOCK))
STEPS = types.ListType(STEP)
CONTROL = types.UniTuple(number, 5)
WATCH = types.Tuple((wholes, matrix))
RESULT = types.Tuple((numbers, matrix, numbers, wholes))
STAGE, ERROR, SHORT, STATE, Y, F, END, SLOPE, ORDER, G, J = 13, 14, 15, 28, 29, 30, 31, 32, 33, 34, 38
"""The rows of `room`: the slopes K, which begin in row 0; a stage; the error; K and the state of a shorter step; start
and end of the step, with their slopes; the order of the rows of a matrix; the increments of the Rosenbrock method; from
J on the Jacobian, then a matrix.
"""
NEW, THIRD, FIFTH = 11, 12, 13
"""The rows of `weights` after those of the stages."""
ROSENBROCK = np.zeros((12, 4))
ROSENBROCK[1, 0] = 2.0
ROSENBROCK[2, :2] = ROSENBROCK[3, :2] = 48 / 25, 6 / 25
ROSENBROCK[4], ROSENBROCK[5] = (19 / 9, 1 / 2, 25 / 108, 125 / 108), (17 / 54, 7 / 36, 0, 125 / 108)
ROSENBROCK[7, 0] = -8.0
ROSENBROCK[8, :2], ROSENBROCK[9, :3] = (372 / 25, 12 / 5), (-112 / 125, -54 / 125, -2 / 5)
"""Weights of the increments g in the stages, the new state and its error; then those multiplied by 1/h."""
NEXT_W, NEXT_T, NEXT_N = (np.uint64(k) for k in (9, 10, 11))
"""Places in the head of a program that give the position of the next program (`odesim.code.steps`)."""
measure: Any = njit(**INNER)(cubics.measure)
bump: Any = njit(**INNER)(cubics.bump)
turning: Any = njit(**INNER)(cubics.turning)


@njit(**INNER)
def factorise(h, room):
    """Write LU factors of 2/h - J, with partial pivoting, and the order of their rows behind J in `room`."""
    n = room.shape[1]
    W, order = room[J + n :], room[ORDER]
    for i in range(n):
        order[i] = i
        for j in range(n):
            W[i, j] = -room[J + i, j]
        W[i, i] += 2.0 / h
    for k in range(n):
        best = k
        for i in range(k + 1, n):
            if abs(W[i, k]) > abs(W[best, k]):
                best = i
        for j in range(n):
            W[k, j], W[best, j] = W[best, j], W[k, j]
        order[k], order[best] = order[best], order[k]
        for i in range(k + 1, n):
            W[i, k] /= W[k, k]
            for j in range(k + 1, n):
                W[i, j] -= W[i, k] * W[k, j]


@njit(**INNER)
def substitute(slope, room, x):
    """Solve with these factors for the right-hand side `slope` + room[ERROR]."""
    n = room.shape[1]
    W = room[J + n :]
    for i in range(n):
        at = int(room[ORDER, i])
        x[i] = slope[at] + room[ERROR, at]
        for j in range(i):
            x[i] -= W[i, j] * x[j]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            x[i] -= W[i, j] * x[j]
        x[i] /= W[i, i]


@njit(**INNER)
def rosenbrock(h, first, to, block):
    """Take a step of the Rosenbrock method. The rows from room[first] are space for slopes."""
    room, _, rate, _, tables, kernels = block
    y, stage, slope, n = room[Y], room[STAGE], room[first], room.shape[1]
    for i in range(n):
        slope[i] = room[F, i]
    factorise(h, room)
    for s in range(6):  # four stages, the last two with one slope; the new state; its error
        for i in range(n):
            total, more = 0.0, 0.0
            for j in range(min(s, 4)):
                total += ROSENBROCK[s, j] * room[G + j, i]
                more += ROSENBROCK[s + 6, j] * room[G + j, i]
            stage[i] = y[i] + total
            room[ERROR, i] = total if s == 5 else more / h
            if s == 4:
                room[to, i] = stage[i]
        if s == 1 or s == 2:
            rate(stage, slope, tables, kernels)
        if s < 4:
            substitute(slope, room, room[G + s])


@compiled(types.void(number, truth, whole, whole, BLOCK), **POINTED)
def take_step(h, stiff, first, to, block):
    """Take one step to the state room[to], by DOP853 or by the Rosenbrock method with the Jacobian in `room`.

    DOP853 writes the slopes of its stages except the last to room[first ..]. The other method writes its error to
    `room`.
    """
    room, weights, rate, _, tables, kernels = block
    y, f, stage, n = room[Y], room[F], room[STAGE], room.shape[1]
    K, new = room[first : first + STAGE], room[to]
    if not stiff:
        for i in range(n):
            K[0, i] = f[i]
        for s in range(12):
            target = new if s == NEW else stage
            for i in range(n):
                total = 0.0
                for j in range(s + 1):
                    total += weights[s, j] * K[j, i]
                target[i] = y[i] + h * total
            if s < NEW:
                rate(stage, K[s + 1], tables, kernels)
        return
    rosenbrock(h, first, to, block)


@njit(**INNER)
def locate(high, entry, rule, stiff, take, block):
    """Return the time after the start of a step, up to `high`, at which an entry crosses, or infinity.

    Regula falsi with the Illinois weights, on states of shorter steps, until the bracket is 1e-13 of the step.
    """
    room = block[0]
    low, left, right, side = 0.0, measure(room[Y, entry], rule), 0.0, 0
    middle = high
    for trial in range(81):
        take(middle, stiff, SHORT, STATE, block)
        value = measure(room[STATE, entry], rule)
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


@njit(**INNER)
def find_crossings(t, h, stiff, watch, hits, take, block):
    """Locate the first crossings inside a step, for all entries whose cubic through the step crosses.

    `watch` = (entries, rules) of the crossings. Returns True if one of them ends its block (rule[3] > 0).
    """
    room, (entries, rules), ended = block[0], watch, False
    for j in range(entries.size):
        e = entries[j]
        y, f, new, slope = room[Y, e], room[F, e], room[END, e], room[SLOPE, e]
        if hits[j] == np.inf and measure(y, rules[j]) < 0.0:
            for x in (0.25, 0.5, 0.75, turning(y, f, new, slope, h), 1.0):
                value = new if x == 1.0 else bump(y, f, new, slope, h, x)
                if x > 0.0 and measure(value, rules[j]) >= 0.0:
                    hits[j] = t + locate(x * h, e, rules[j], stiff, take, block)
                    if hits[j] < np.inf:  # or the cubic was wrong here, and the entry may cross later in the step
                        break
                    if x == 1.0:  # the same step, rounded differently, just misses the threshold
                        hits[j] = t + h
        ended = ended or (rules[j, 3] > 0.0 and hits[j] < np.inf)
    return ended


@njit(**INNER)
def attempt(h, rtol, atol, stiff, take, block):
    """Take one step. Return its error in units of the tolerance, and h times the largest observed rate.

    The rate comes from the last stage of DOP853 and the new state, which are both at the end of the step (Hairer &
    Wanner 1996).
    """
    room, weights, rate, jacobian, tables, kernels = block
    n = room.shape[1]
    if stiff:
        jacobian(room[Y], room[J : J + n].reshape(n * n), tables, kernels)
    take(h, stiff, 0, END, block)
    rate(room[END], room[SLOPE], tables, kernels)
    five, three, small, rise, run = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(n):
        scale = atol + rtol * max(abs(room[Y, i]), abs(room[END, i]))
        if stiff:
            five += (room[ERROR, i] / scale) ** 2
            continue
        room[12, i] = room[SLOPE, i]
        e5, e3 = 0.0, 0.0
        for j in range(13):
            e5 += weights[FIFTH, j] * room[j, i]
            e3 += weights[THIRD, j] * room[j, i]
        five += (e5 / scale) ** 2
        three += (e3 / scale) ** 2
        small = max(small, abs(h * e5 / scale))
        rise += (room[SLOPE, i] - room[11, i]) ** 2
        run += (room[END, i] - room[STAGE, i]) ** 2
    if stiff:
        norm = np.sqrt(five / n)
    elif five == 0.0 and three == 0.0:
        norm = small  # squares of slopes of 1e-270, from a start at 1e-90, underflow
    else:
        norm = h * five / np.sqrt((five + 0.01 * three) * n)
    return norm if norm < np.inf else 1e10, h * np.sqrt(rise / run) if run > 0.0 else 0.0


@njit(**INNER)
def first_step(until, atol, room):
    """Return a hundredth of the time in which the state changes by its size, at most 10 over the norm of the Jacobian.

    At a fixed point the slope is rounding and does not determine a step, hence the upper bound. If an explicit step is
    a thousand times too long, its stages leave the region where the flow is not zero. Their slopes are then 0, and the
    error estimate is 0 too.
    """
    size, speed, stiffness, n = 0.0, 0.0, 0.0, room.shape[1]
    for i in range(n):
        size = max(size, abs(room[Y, i]))
        speed = max(speed, abs(room[F, i]))
        row = 0.0
        for j in range(n):
            row += abs(room[J + i, j])
        stiffness = max(stiffness, row)
    h = until if speed == 0.0 else min(until, 0.01 * (size + atol) / speed)
    return h if speed == 0.0 or h * stiffness <= 10.0 else 10.0 / stiffness


@njit(**INNER)
def save_states(t, end, at, times, saved, stiff, take, block):
    """Fill in the states at the save times up to the end of a step. Return the number filled so far; `at` is this
    number before.
    """
    room = block[0]
    while at < times.size and times[at] <= end:
        if times[at] != end:
            take(times[at] - t, stiff, SHORT, STATE, block)
        row = END if times[at] == end else STATE
        for i in range(room.shape[1]):
            saved[at, i] = room[row, i]
        at += 1
    return at


@compiled(FUNCTIONS(POINTER, POINTER))
def hold_functions(slope, jacobian):
    """Return a list of the functions of some equations. Passing a list to compiled code takes 2 us, functions 40 to
    500.
    """
    held = List.empty_list(POINTER)
    held.append(slope)
    held.append(jacobian)
    return held


@compiled(STEPS(STEP))
def hold_step(step):
    """Return a list of one function that takes a step."""
    held = List.empty_list(STEP)
    held.append(step)
    return held


@compiled(
    whole(CONTROL, WATCH, RESULT, types.Tuple((matrix, matrix)), STEPS, FUNCTIONS, TABLES, KERNELS),
    **OPTIONS,
)
def integrate_block(control, watch, result, space, steps, functions, tables, kernels):
    """Integrate one block from room[Y] to `until`, or to a crossing that ends it. Return its status (`blocks.STATUS`).

    `control` = (relative and absolute tolerance, most steps, the longest step, until); `result` = (times to save at,
    after the start, states there (times, n), hitting times (crossings,), counts (3,)), which are filled; `space` =
    (room, weights). Save times in the last step of a block that ends early, or later, are left unfilled. `steps` has
    `take_step` as a function pointer, because numba would otherwise compile it into each of its five callers.
    """
    (rtol, atol, most, longest, until), (times, saved, hits, counts), (room, weights) = control, result, space
    n, take = room.shape[1], steps[0]
    rate, jacobian = functions[0], functions[1]
    block = (room, weights, rate, jacobian, tables, kernels)
    rate(room[Y], room[F], tables, kernels)
    jacobian(room[Y], room[J : J + n].reshape(n * n), tables, kernels)
    h = first_step(until, atol, room)
    t, at, limited, old_h, old = 0.0, np.int64(0), 0, 0.0, 0.0
    stiff = limited > 0  # not the literal False, for which numba would compile every function a second time
    while t < until:
        h = min(h, longest)
        last = h >= until - t
        h = min(h, until - t)
        if counts[0] >= most or not h >= 1e-300:  # not a number if the Jacobian at the start is not
            return 3 if counts[0] >= most else 2
        norm, rate_of_step = attempt(h, rtol, atol, stiff, take, block)
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
            limited = limited + 1 if rate_of_step > 5.0 else max(0, limited - 1)
        if find_crossings(t, h, stiff, watch, hits, take, block):
            return 0
        end = until if last else t + h
        at = save_states(t, end, at, times, saved, stiff, take, block)
        t = end  # with a step below the spacing of float64 at t only the state moves: the flow does not depend on time
        for i in range(n):
            room[Y, i], room[F, i] = room[END, i], room[SLOPE, i]
        h *= min(max(factor, 0.2), 5.0)
        stiff = stiff or limited >= 8
    return 0


@compiled(FLOW, **POINTED)
def program_jacobian(y, out, tables, kernels):
    """Write the Jacobian (n n,), row by row, of a block whose equations the engine evaluates.

    A second program computes (F(y), F'(y) v) for a state (y, v). It lies behind the program of the rates, whose head
    has its position.
    """
    (W, T, N), n = tables, y.size
    program = (W[N[NEXT_W] :], T[N[NEXT_T] :], N[N[NEXT_N] :])
    both = np.empty(4 * n)
    state, made = both[: 2 * n], both[2 * n :]
    for i in range(n):
        state[i], state[n + i] = y[i], 0.0
    for j in range(n):
        state[n + j] = 1.0
        flow(state, made, program, kernels)
        state[n + j] = 0.0
        for i in range(n):
            out[i * n + j] = made[n + i]


@compiled(KERNEL, **POINTED)
def no_kernel(which, x, s, z, g):
    """Kernel of blocks that the engine does not evaluate; it does nothing."""

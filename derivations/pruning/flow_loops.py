"""The flow of one expert with located changes of order, as plain loops around the gate kernel, for numba.

State of an expert: alignments h (d,), displacements D (d,) of its active neurons, and their running minima D_min (d,),
below which neurons have been switched off. For every task token o and irrelevant pattern q there is a mode: 0 if o is
not selected with q, 1 if it is, 2 if both stay at the tie h_o = h_q, with the weight lam in [0, 1] that preserves the
tie (the Filippov solution). Between changes of mode the slope is continuous; changes are located on the step, like a
hitting time. The method is that of Dormand & Prince, order 5(4).

`held` = (low, modes, lam) completes the state y = (h, D). `expert` = (head sign, top, cum, own task token) describes an
expert. `path` = (held, expert, given, room), with room = (K, stage, new), contains all inputs of a step.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Arguments(NamedTuple):
    """The run-time arguments: sizes, rates, head signs (k,), l, flags for constant irrelevant alignments and for the
    selection of all tokens, probabilities of the patterns, initial alignments in order with their sums, and the test
    inputs.
    """

    k: int
    d: int
    eta_r: float
    eta_e: float
    a: Any
    l: int
    frozen: int
    soft: int
    pi: Any
    top: Any
    cum: Any
    rows: Any
    answers: Any
    chance: Any


gate: Callable[..., tuple[float, float, float]]


def displaced(D, low, top, cum, sig):
    """Fill sig (d,): cum[c] + c D for the c neurons whose initial alignment is at least max(0, -min(low, D)).

    `top` (d, m) holds the initial alignments in decreasing order, -1 where negative, `cum` (d, m + 1) their sums.
    """
    m = top.shape[1]
    for p in range(D.size):
        bound = max(0.0, -min(low[p], D[p]))
        first, last = 0, m
        while first < last:
            middle = (first + last) // 2
            if top[p, middle] >= bound:
                first = middle + 1
            else:
                last = middle
        sig[p] = cum[p, first] + first * D[p]


def contribution(task, q, x, sig, share, rule, dh, g):
    """Add `weight` times the terms of the input (task, q) if its task token is selected (x = h_o - h_q).

    `share` = (pi_q, weight), `rule` = (l, frozen). The term g_q (1 - S) is always present; this function adds only the
    difference from an unselected task token.
    """
    (chance, weight), (l, frozen) = share, rule
    sign = weight * (1.0 if task == 0 else -1.0)
    mass, _, pull = gate(dh, 0, x, l)  # the kernel uses no table: any array is valid in its place
    moved = sign * 0.5 * chance * pull * (sig[task] - sig[q + 2])
    dh[task] += moved
    g[task] += sign * 0.5 * chance * mass
    if frozen == 0:
        dh[q + 2] -= moved
        g[q + 2] -= sign * 0.5 * chance * mass
    return moved


def eliminate(matrix, right):
    """Solve matrix x = right in place of `right`, by Gauss-Jordan elimination; x = 0 along a column of zeros."""
    n = right.size
    for i in range(n):
        pivot = i
        for r in range(i + 1, n):
            if abs(matrix[r, i]) > abs(matrix[pivot, i]):
                pivot = r
        if matrix[pivot, i] == 0.0:
            right[i] = 0.0
            continue
        for c in range(n):
            matrix[i, c], matrix[pivot, c] = matrix[pivot, c], matrix[i, c]
        right[i], right[pivot] = right[pivot], right[i]
        for r in range(n):
            if r != i and matrix[r, i] != 0.0:
                factor = matrix[r, i] / matrix[i, i]
                for c in range(i, n):
                    matrix[r, c] -= factor * matrix[i, c]
                right[r] -= factor * right[i]
    for i in range(n):
        right[i] = right[i] / matrix[i, i] if matrix[i, i] != 0.0 else 0.0


def hold_ties(modes, lam, h, sig, given, dh, g):
    """Solve for the weights of all held ties, h_o' = h_q', and add their contributions.

    An unknown lam_j moves h_o by s_j c_j and h_q by -s_j c_j; tie i wants the sum over j of lam_j s_j c_j (1[same task]
    + 1[same q]) to be h_q' - h_o' of the rest.  Solved by elimination; a tie without pull (c = 0) keeps lam = 0.
    """
    pi, rule, N = given.pi, (given.l, given.frozen), given.pi.size
    count = 0
    for task in range(2):
        for q in range(N):
            if modes[task, q] == 2:
                count += 1
    if count == 0:
        return
    who = np.empty((count, 2), dtype=np.int64)
    matrix, right, pulls = np.empty((count, count)), np.empty(count), np.empty(count)
    at = 0
    none = np.empty(h.size)
    for task in range(2):
        for q in range(N):
            if modes[task, q] == 2:
                who[at, 0], who[at, 1] = task, q
                pulls[at] = contribution(task, q, h[task] - h[q + 2], sig, (pi[q], 1.0), rule, none, none)
                right[at] = dh[q + 2] - dh[task]
                at += 1
    for i in range(count):
        for j in range(count):
            same = 1.0 if who[i, 0] == who[j, 0] else 0.0
            if rule[1] == 0 and who[i, 1] == who[j, 1]:
                same += 1.0
            matrix[i, j] = same * pulls[j]
    eliminate(matrix, right)
    for i in range(count):
        weight = right[i]
        lam[who[i, 0], who[i, 1]] = weight
        task, q = who[i, 0], who[i, 1]
        contribution(task, q, h[task] - h[q + 2], sig, (pi[q], weight), rule, dh, g)


def slope(y, held, expert, given, out):
    """Fill out (2 d,) with (dh/dt, dD/dt) of an expert of head sign `sign` in the given modes, and lam of held ties.

    dh_1 = eta_r a sum_q A1_q, dh_2 = -eta_r a sum_q A2_q, dh_q = -eta_r a (A1_q - A2_q), A = (pi_q/2) S (1 - S)
    (sigma_o - sigma_q); dD_1 = eta_e a sum (pi_q/2) S1_q, dD_2 = - .. S2_q, dD_q = eta_e a (pi_q/2) (S2_q - S1_q).
    """
    (low, modes, lam), (sign, top, cum, _) = held, expert
    pi, rule, d = given.pi, (given.l, given.frozen), y.size // 2
    h, D = y[:d], y[d:]
    dh, g = out[:d], out[d:]
    sig = np.empty(d)
    displaced(D, low, top, cum, sig)
    for i in range(2 * d):
        out[i] = 0.0
    for task in range(2):
        for q in range(pi.size):
            if modes[task, q] == 1:
                contribution(task, q, h[task] - h[q + 2], sig, (pi[q], 1.0), rule, dh, g)
    hold_ties(modes, lam, h, sig, given, dh, g)
    for i in range(d):
        dh[i] *= given.eta_r * sign
        g[i] *= given.eta_e * sign


def decide(task, q, y, held, expert, given, out):
    """Set the mode of one tie by the slopes on its two sides; return True if it changed."""
    _, modes, lam = held
    mode = modes[task, q]
    if mode == 2:
        if -5e-10 <= lam[task, q] <= 1.0 + 5e-10:  # half of the tolerance of `margin`, so that an event ends a tie
            return False
        modes[task, q] = 0 if lam[task, q] < 0.0 else 1
        slope(y, held, expert, given, out)
        return True
    outward = 1.0 if mode == 0 else -1.0
    if outward * (out[task] - out[q + 2]) <= 0.0:
        return False
    modes[task, q] = 1 - mode
    slope(y, held, expert, given, out)
    if outward * (out[task] - out[q + 2]) < 0.0:  # both sides push into the tie
        modes[task, q] = 2
        slope(y, held, expert, given, out)
    return True


def settle(y, held, expert, given, out):
    """Set all modes by the state: the sign of every gap, and at a tie the slopes on its two sides.

    At a tie the task token is selected if the slope with it selected increases the gap. It is not selected if the slope
    without it decreases the gap. If both push into the tie, the tie is held. The function fills `out` with the slope.
    """
    (_, modes, _), soft, N = held, given.soft, given.pi.size
    for task in range(2):
        for q in range(N):
            x = y[task] - y[q + 2]
            if soft == 1:
                modes[task, q] = 1
            elif abs(x) > 2e-12:
                modes[task, q] = 1 if x > 0.0 else 0
    slope(y, held, expert, given, out)
    if soft == 1:
        return
    for _ in range(4 * N + 8):
        changed = False
        for task in range(2):
            for q in range(N):
                if abs(y[task] - y[q + 2]) <= 2e-12 and decide(task, q, y, held, expert, given, out):
                    changed = True
        if not changed:
            return


def margin(y, modes, lam, soft):
    """Distance to the end of the modes: the smallest of all gaps (on the side of their mode) and weights."""
    d = y.size // 2
    least = 1.0
    if soft == 1:
        return least
    for task in range(2):
        for q in range(d - 2):
            x = y[task] - y[q + 2]
            if modes[task, q] == 1:
                least = min(least, x + 1e-12)
            elif modes[task, q] == 0:
                least = min(least, 1e-12 - x)
            else:
                least = min(least, lam[task, q] + 1e-9, 1.0 + 1e-9 - lam[task, q])
    return least


def lead(y, own):
    """The gap of the expert's task token over the best irrelevant one."""
    best = y[2]
    for p in range(3, y.size // 2):
        best = max(best, y[p])
    return y[own] - best


def try_step(y, f, dt, path):
    """One step of Dormand & Prince from (y, f): `new`, with the slope there in K[6]; K (8, n), K[7] the error."""
    held, expert, given, (K, stage, new) = path
    n = y.size
    A = np.array([
        [0.2, 0.0, 0.0, 0.0, 0.0, 0.0],
        [3.0 / 40.0, 9.0 / 40.0, 0.0, 0.0, 0.0, 0.0],
        [44.0 / 45.0, -56.0 / 15.0, 32.0 / 9.0, 0.0, 0.0, 0.0],
        [19372.0 / 6561.0, -25360.0 / 2187.0, 64448.0 / 6561.0, -212.0 / 729.0, 0.0, 0.0],
        [9017.0 / 3168.0, -355.0 / 33.0, 46732.0 / 5247.0, 49.0 / 176.0, -5103.0 / 18656.0, 0.0],
        [35.0 / 384.0, 0.0, 500.0 / 1113.0, 125.0 / 192.0, -2187.0 / 6784.0, 11.0 / 84.0],
    ])  # fmt: skip
    E = np.array([71.0 / 57600.0, 0.0, -71.0 / 16695.0, 71.0 / 1920.0, -17253.0 / 339200.0, 22.0 / 525.0, -1.0 / 40.0])
    for i in range(n):
        K[0, i] = f[i]
    for s in range(6):
        for i in range(n):
            total = 0.0
            for j in range(s + 1):
                total += A[s, j] * K[j, i]
            stage[i] = y[i] + dt * total
        slope(stage, held, expert, given, K[s + 1])
    for i in range(n):
        new[i] = stage[i]
        error = 0.0
        for j in range(7):
            error += E[j] * K[j, i]
        K[7, i] = dt * error


def step_error(y, new, K, relative, absolute):
    """The largest estimated error over its tolerance."""
    worst = 0.0
    for i in range(y.size):
        worst = max(worst, abs(K[7, i]) / (absolute + relative * max(abs(y[i]), abs(new[i]))))
    return worst


def lower(D, new, f, f_new, dt, low):
    """Lower the running minima to the smallest displacement on the step, by the cubic through its ends."""
    for p in range(low.size):
        low[p] = min(low[p], new[p])
        if f[p] < 0.0 < f_new[p]:
            a = 6.0 * (D[p] - new[p]) + 3.0 * dt * (f[p] + f_new[p])
            b = 6.0 * (new[p] - D[p]) - dt * (4.0 * f[p] + 2.0 * f_new[p])
            c = dt * f[p]
            inside = b * b - 4.0 * a * c
            if inside >= 0.0:  # the root of a x^2 + b x + c at which the cubic turns upwards
                x = 2.0 * c / (-b - np.sqrt(inside))
                if 0.0 < x < 1.0:
                    cubic = D[p] + x * (c + x * (0.5 * b + x * a / 3.0))
                    low[p] = min(low[p], cubic)

"""The numerical differentiation formulas of orders 1 to 5 as plain loops for numba, with Newton's matrix in blocks.

Klopfenstein's formulas in the quasi-constant form of Shampine & Reichelt (1997): the history is a table of backward
differences, rescaled when the step changes. Newton's matrix I - c J has only the entries between strongly coupled
entries of the state, and is inverted block by block; the entries of block b are members[first[b]:first[b + 1]], its
derivatives and their inverse lie from place[b] on, row by row. Blocks of one entry come first. Members are unsigned, so
that numba needs no test for negative ones. `scale` has inverses of tolerances. The flow is `tables` of the engine, so
that these loops are compiled once for all flows.
"""

import numpy as np

from derivations.equations.options import OPTIONS
from odesim.code.engine import KERNELS, TABLES, flow, numbers, types
from odesim.code.module_cache import compiled

matrix, number, whole, truth = types.float64[:, ::1], types.float64, types.int64, types.boolean
members, wholes = types.uint64[::1], types.int64[::1]
PATTERN = types.Tuple((members, wholes, wholes))
WATCH = types.Tuple((members, numbers, numbers))
FORMULAS, WORK = types.UniTuple(numbers, 3), types.UniTuple(numbers, 8)
METHOD = types.Tuple((PATTERN, numbers, numbers, number, number, FORMULAS, WORK))
"""Types of the joint arguments of the functions below, which `advance` describes."""
none = types.void


@compiled(number(numbers, numbers), **OPTIONS)
def weighted(x, scale):
    """Return the root mean square of x in units of the tolerances."""
    total = 0.0
    for i in range(x.size):
        total += (x[i] * scale[i]) ** 2
    return np.sqrt(total / x.size)


@compiled(whole(numbers, numbers, number, PATTERN, numbers, TABLES, KERNELS), **OPTIONS)
def derivatives(y, f, displacement, pattern, J, tables, kernels):
    """Fill J with df_a/dy_b inside the blocks. The k-th evaluation displaces the k-th entry of every block."""
    (members, first, place), largest = pattern, 0
    for b in range(first.size - 1):
        largest = max(largest, first[b + 1] - first[b])
    near, found = np.empty(y.size), np.empty(y.size)
    for k in range(largest):
        for i in range(y.size):  # as a slice it takes a second to compile
            near[i] = y[i]
        for b in range(first.size - 1):
            if first[b] + k < first[b + 1]:
                near[members[first[b] + k]] += displacement
        flow(near, found, tables, kernels)
        for b in range(first.size - 1):
            size = first[b + 1] - first[b]
            if k < size:
                for i in range(size):
                    entry = members[first[b] + i]
                    J[place[b] + i * size + k] = (found[entry] - f[entry]) / displacement
    return largest


@compiled(none(matrix, whole, wholes), **OPTIONS)
def eliminate(W, n, pivots):
    """Replace W[:n, :n] by its inverse, by Gauss-Jordan elimination with row exchanges."""
    for k in range(n):
        best = k
        for i in range(k + 1, n):
            if abs(W[i, k]) > abs(W[best, k]):
                best = i
        pivots[k] = best
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
        for i in range(n):
            W[i, k], W[i, pivots[k]] = W[i, pivots[k]], W[i, k]


@compiled(none(number, wholes, wholes, numbers, numbers), **OPTIONS)
def invert(c, first, place, J, inverse):
    """Compute inverse = (I - c J)^-1, block by block."""
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
        eliminate(W, n, pivots)
        for i in range(n):
            for j in range(n):
                inverse[at + i * n + j] = W[i, j]


@compiled(none(PATTERN, numbers, numbers, numbers), **OPTIONS)
def apply(pattern, inverse, r, x):
    """Compute x = inverse r, with r in the order of `members`."""
    (members, first, place), single = pattern, 0
    while single < first.size - 1 and first[single + 1] == single + 1:
        single += 1
    for k in range(single):
        x[members[k]] = inverse[k] * r[k]
    for b in range(single, first.size - 1):
        start, size, at = first[b], first[b + 1] - first[b], place[b]
        part, entries = r[start : start + size], members[start : start + size]
        for i in range(size):
            row, total = inverse[at + i * size : at + (i + 1) * size], 0.0
            for j in range(size):
                total += row[j] * part[j]
            x[entries[i]] = total


@compiled(none(matrix, whole, number), **OPTIONS)
def rescale(D, order, factor):
    """Convert the backward differences D to steps `factor` times as long: (R(factor) R(1))^T D."""
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


@compiled(
    types.Tuple((whole, truth, number))(WORK, number, number, number, number, PATTERN, numbers, TABLES, KERNELS),
    **OPTIONS,
)
def newton(work, c, tolerance, rate, ratio, pattern, inverse, tables, kernels):
    """Solve d = c f(start + d) - psi; returns (evaluations, converged, rate of convergence).

    `rate` is the rate of convergence of the steps before, or 1; with it one iteration may be enough. `work` = (start,
    psi, scale, y, d, f, r, change), `pattern` = (members, first, place) of the blocks. The inverse is that of c /
    ratio. Corrections are multiplied by 2 / (1 + ratio); an iteration then leaves a fraction |1 - ratio| / (1 + ratio)
    of the error, in stiff directions and in others (CVODE's formula).
    """
    (start, psi, scale, y, d, f, r, change), members = work, pattern[0]
    relaxed = 2.0 / (1.0 + ratio)
    rate = max(rate, abs(1.0 - ratio) / (1.0 + ratio))
    n = y.size
    last = 0.0
    for i in range(n):
        y[i] = start[i]
        d[i] = 0.0
    for k in range(6):
        flow(y, f, tables, kernels)
        for i in range(n):
            entry = members[i]
            r[i] = relaxed * (c * f[entry] - psi[entry] - d[entry])
        apply(pattern, inverse, r, change)
        size = weighted(change, scale)
        if not size < np.inf:
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


@compiled(truth(matrix, whole, WATCH, matrix), **OPTIONS)
def crossing(D, order, watch, weights):
    """Return True if a watched entry is beyond its level at the last state, or at a quarter of the step before it.

    watch = (places, signs, levels). Inside a step, s steps after its end, the state is the polynomial of the method,
    sum_j D_j prod_{i < j} (s + i) / (i + 1); `weights` (3, 6) are these products.
    """
    places, signs, levels = watch
    for w in range(places.size):
        if signs[w] * D[0, places[w]] >= levels[w]:
            return True
    for q in range(3):
        weights[q, 0] = 1.0
        for j in range(1, order + 1):
            weights[q, j] = weights[q, j - 1] * (0.25 * q - 0.75 + j - 1) / j
    for w in range(places.size):
        first = second = third = D[0, places[w]]
        for j in range(1, order + 1):
            difference = D[j, places[w]]
            first += weights[0, j] * difference
            second += weights[1, j] * difference
            third += weights[2, j] * difference
        if max(signs[w] * first, max(signs[w] * second, signs[w] * third)) >= levels[w]:
            return True
    return False


@compiled(types.Tuple((whole, number))(matrix, whole, number, numbers, number, numbers), **OPTIONS)
def choose(D, order, error, scale, safety, errors):
    """Choose the order and the factor of the next steps: the longest step among the order less one, the same, plus
    one.
    """
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


@compiled(none(matrix, numbers, number), **OPTIONS)
def shorten(D, control, factor):
    """Change to steps `factor` times as long, of the same order."""
    rescale(D, int(control[2]), factor)
    control[1] *= factor
    control[3] = 0.0


@compiled(none(matrix, whole, FORMULAS, number, number, WORK), **OPTIONS)
def predict(D, order, formulas, rtol, atol, work):
    """Predict the state from the differences, the known terms of the formula, and the tolerance of every entry."""
    (alpha, gamma, _), start, psi, scale = formulas, work[0], work[1], work[2]
    for i in range(start.size):
        start[i], psi[i] = D[0, i], 0.0
    for j in range(1, order + 1):
        weight = gamma[j] / alpha[order]
        for i in range(start.size):
            start[i] += D[j, i]
            psi[i] += weight * D[j, i]
    for i in range(start.size):
        scale[i] = 1.0 / (atol + rtol * abs(start[i]))


@compiled(none(matrix, whole, numbers), **OPTIONS)
def accept(D, order, d):
    """Update the differences after a step with correction d: D_j at the new state = D_j before + D_(j + 1) now."""
    for i in range(d.size):
        D[order + 2, i] = d[i] - D[order + 1, i]
        D[order + 1, i] = d[i]
    for j in range(order, -1, -1):
        for i in range(d.size):
            D[j, i] += D[j + 1, i]


@compiled(whole(matrix, numbers, wholes, number, METHOD, TABLES, KERNELS), **OPTIONS)
def attempt(D, control, counts, until, method, tables, kernels):
    """Take one step, with the correction in work[4], and shorten it as necessary. Return 0, or 3 or 4 as `advance`."""
    pattern, J, inverse, rtol, atol, table, work = method
    alpha, errors, scale, y, d = table[0], table[2], work[2], work[3], work[4]
    t, order = control[0], int(control[2])
    while True:
        if control[1] < 10 * np.spacing(t):
            return 4
        if t + control[1] > until:
            shorten(D, control, (until - t) / control[1])
        c = control[1] / alpha[order]
        if abs(c - control[9]) > control[10] * control[9]:
            invert(c, pattern[1], pattern[2], J, inverse)
            control[9] = c
        predict(D, order, table, rtol, atol, work)
        known = control[6] if control[7] % 20 != 0 else 1.0
        used, converged, control[6] = newton(work, c, 0.03, known, c / control[9], pattern, inverse, tables, kernels)
        counts[2] += used
        if not converged:
            if control[9] != c:
                control[9] = 0.0
                continue
            if control[7] > 50.0:
                return 3
            # Such recent derivatives are not the reason, but the neglected ones are: so long a step would fail again.
            control[11], control[12] = 0.8 * control[1], 50.0
            shorten(D, control, 0.5)
            continue
        for i in range(y.size):
            scale[i] = 1.0 / (atol + rtol * abs(y[i]))
        control[4] = errors[order] * weighted(d, scale)
        control[5] = 0.9 * 13.0 / (12.0 + used)
        if control[4] <= 1.0:
            return 0
        shorten(D, control, max(0.2, control[5] * control[4] ** (-1.0 / (order + 1))))
        counts[1] += 1


@compiled(
    whole(matrix, numbers, wholes, types.UniTuple(number, 2), whole, WATCH, METHOD, TABLES, KERNELS),
    **OPTIONS,
)
def advance(D, control, counts, ends, most, watch, method, tables, kernels):
    """Take up to `most` steps. Return 0 at the end or at `due`, 1 if an entry may have crossed in the last step, 2
    after `most` steps, 3 if the derivatives must be renewed, 4 if the step has shrunk to round-off.

    control = (t, step, order, steps of that length, its last error, the last safety factor, rate of convergence, age of
    the derivatives, length of the last step, the c of the inverse, 0 for none, the largest relative distance of c from
    it, the longest allowed step, for so many steps); counts = (steps, rejected, evaluations); ends = (until, due);
    method = ((members, first, place) of the blocks, their derivatives and inverses, relative and absolute tolerance,
    the formulas, work space for eight states); `tables` and `kernels` are those of the engine.
    """
    (until, due), (_, _, _, rtol, atol, table, work) = ends, method
    n, weights = D.shape[1], np.empty((3, 6))
    for _ in range(most):
        order = int(control[2])
        if control[3] > order:
            for i in range(n):
                work[2][i] = 1.0 / (atol + rtol * abs(D[0, i]))
            chosen, factor = choose(D, order, control[4], work[2], control[5], table[2])
            control[2] = chosen
            shorten(D, control, min(factor, control[11] / control[1]))
        status = attempt(D, control, counts, until, method, tables, kernels)
        if status > 0:
            return status
        order = int(control[2])
        accept(D, order, work[4])
        counts[0] += 1
        control[0] = until if control[0] + control[1] >= until else control[0] + control[1]
        control[3] += 1.0
        control[7] += 1.0
        control[12] -= 1.0
        if control[12] <= 0.0:
            control[11] = np.inf
        control[8] = control[1]
        if crossing(D, order, watch, weights):
            return 1
        if control[0] >= due or control[0] >= until:
            return 0
    return 2


@compiled(none(numbers, numbers, number, matrix), **OPTIONS)
def begin(y, f, h, D):
    """Fill in backward differences of the first order from a state and its slope, for steps of length h."""
    D[:] = 0.0
    for i in range(y.size):
        D[0, i] = y[i]
        D[1, i] = h * f[i]


@compiled(none(matrix, matrix, TABLES, KERNELS), **OPTIONS)
def slopes(states, found, tables, kernels):
    """Compute found[k] = dy/dt at states[k]."""
    for k in range(states.shape[0]):
        flow(states[k], found[k], tables, kernels)

"""Adaptive steps of the flow between changes of order, as plain loops for numba; see `flow_loops`."""

from collections.abc import Callable

import numpy as np

settle: Callable[..., None]
margin: Callable[..., float]
lead: Callable[..., float]
try_step: Callable[..., None]
step_error: Callable[..., float]
slope: Callable[..., None]
lower: Callable[..., None]


def locate(y, f, dt, what, level, path):
    """The largest part of the step dt before `margin` (what = 0) or `lead` - level (what = 1) changes sign.

    By the Illinois method on shorter steps from the same start, which are as accurate as the step itself.
    """
    held, expert, given, (K, _, new) = path
    (_, modes, lam), own, soft = held, expert[3], given.soft
    left, right = 0.0, 1.0
    slope(y, held, expert, given, K[7])  # the weights of held ties at y
    at_left = margin(y, modes, lam, soft) if what == 0 else level - lead(y, own)
    try_step(y, f, dt, path)
    at_right = margin(new, modes, lam, soft) if what == 0 else level - lead(new, own)
    if at_left <= 0.0:
        return 0.0
    for _ in range(100):
        if right - left < 1e-14:
            break
        middle = (left * at_right - right * at_left) / (at_right - at_left)
        middle = min(max(middle, left + 1e-3 * (right - left)), right - 1e-3 * (right - left))
        try_step(y, f, middle * dt, path)
        value = margin(new, modes, lam, soft) if what == 0 else level - lead(new, own)
        if -1e-12 < value <= 0.0:  # as close as a tie can be distinguished from its neighbourhood
            return middle
        if value > 0.0:
            left, at_left = middle, value
            at_right *= 0.5
        else:
            right, at_right = middle, value
            at_left *= 0.5
    return right


def note_hits(y, f, t, part, hits, levels, path):
    """Locate the first passages of the lead through its levels on a step, whose end `new` is kept."""
    crossed = False
    new, own = path[3][2], path[1][3]
    for i in range(2):
        if hits[i] > t + part and lead(y, own) < levels[i] <= lead(new, own):
            hits[i] = t + part * locate(y, f, part, 1, levels[i], path)
            try_step(y, f, part, path)
            crossed = True
    return crossed


def controlled_step(y, f, part, tolerances, counts, path):
    """One attempt: (error, the part of the step up to the first change of modes or 1, True if there is a change)."""
    (_, modes, lam), _, given, (K, _, new) = path
    try_step(y, f, part, path)
    error = step_error(y, new, K, tolerances[0], tolerances[1])
    counts[2] += 6
    if not error <= 1.0:
        counts[1] += 1
        return error, 1.0, False
    if margin(new, modes, lam, given.soft) >= -1e-12:
        return error, 1.0, False
    counts[3] += 1
    size = locate(y, f, part, 0, 0.0, path)
    if size == 0.0:  # a tie at the start of the step, left within the tolerance of a tie
        size = 1e-9
    try_step(y, f, size * part, path)
    return error, size, True


def note_changes(t, expert, before, modes, events):
    """Append (t, expert, task, q, mode) for every mode changed by an event; events[0] counts all events."""
    room = (events.size - 1) // 5
    for task in range(2):
        for q in range(modes.shape[1]):
            if modes[task, q] == before[task, q]:
                continue
            at = int(events[0])
            events[0] += 1.0
            if at < room:
                events[1 + 5 * at] = t
                events[2 + 5 * at] = expert
                events[3 + 5 * at] = task
                events[4 + 5 * at] = q
                events[5 + 5 * at] = modes[task, q]


def copy_into(source, target, at):
    """Copy `source` into target[at : at + source.size]; numba compiles the slice assignment for two seconds."""
    for k in range(source.size):
        target[at + k] = source[k]


def march_expert(s, state, span, hits, kept, tolerances, counts, given):
    """Integrate expert s from t0 to t1; return 0, or 2 if steps became too small and 3 if there were too many.

    `state` = (h, D, low) and hits are those of the expert, `kept` = (the size of the last step, the events of all
    experts).
    """
    (h, D, low), (t0, t1), (memory, events) = state, span, kept
    sign, d = given.a[s], h.size
    own = 0 if sign > 0 else 1
    y = np.concatenate((h, D))
    new, stage, f, K = np.empty(2 * d), np.empty(2 * d), np.empty(2 * d), np.empty((8, 2 * d))
    modes, lam = np.ones((2, d - 2), dtype=np.int64), np.zeros((2, d - 2))  # the task token wins a tie
    held, expert = (low, modes, lam), (sign, given.top[s], given.cum[s], own)
    path = (held, expert, given, (K, stage, new))
    levels = np.array([0.0, np.log(given.l)])
    for i in range(2):
        if t0 == 0.0 and lead(y, own) >= levels[i]:
            hits[i] = 0.0
    settle(y, held, expert, given, f)
    t, taken = t0, 0
    dt = memory[0] if memory[0] > 0.0 else 1e-3 * (t1 - t0)
    while t < t1 and np.abs(f).max() > 0.0:
        taken += 1
        if taken > 1000000:
            return 3
        whole = dt >= t1 - t
        part = t1 - t if whole else dt
        if part <= 1e-15 * t1:
            return 2
        error, size, event = controlled_step(y, f, part, tolerances, counts, path)
        if not error <= 1.0:
            dt = part * max(0.1, 0.9 * error**-0.2) if error < 1e300 else 0.1 * part
            continue
        grown = part * min(5.0, 0.9 * max(error, 1e-10) ** -0.2)
        dt = max(dt, grown) if whole else grown
        part *= size
        note_hits(y, f, t, part, hits, levels, path)
        counts[0] += 1
        lower(y[d:], new[d:], f[d:], K[6, d:], part, low)
        t = t1 if whole and not event else t + part
        copy_into(new, y, 0)
        copy_into(K[6], f, 0)
        if event:
            before = modes.copy()
            settle(y, held, expert, given, f)
            note_changes(t, s, before, modes, events)
    memory[0] = dt
    copy_into(y[:d], h, 0)
    copy_into(y[d:], D, 0)
    return 0


def march(y, t0, t1, hits, memory, tolerances, counts, given):
    """Integrate all experts from t0 to t1, each with separate steps: under the linear loss they never interact."""
    k, d = given.k, given.d
    h = y[: k * d].reshape((k, d))
    D = y[k * d : 2 * k * d].reshape((k, d))
    low = y[2 * k * d :].reshape((k, d))
    for s in range(k):
        kept = (memory[s : s + 1], memory[k:])
        status = march_expert(s, (h[s], D[s], low[s]), (t0, t1), hits[:, s], kept, tolerances, counts, given)
        if status != 0:
            return status
    return 0


def hybrid_flow(t, y, given):
    """dy/dt of all experts, each in the modes of its state."""
    k, d = given.k, given.d
    out, one = np.zeros(y.size), np.empty(2 * d)
    modes, lam, state = np.zeros((2, d - 2), dtype=np.int64), np.zeros((2, d - 2)), np.empty(2 * d)
    for s in range(k):
        copy_into(y[s * d : (s + 1) * d], state, 0)
        copy_into(y[(k + s) * d : (k + s + 1) * d], state, d)
        low = y[(2 * k + s) * d : (2 * k + s + 1) * d]
        modes[:] = 1
        settle(state, (low, modes, lam), (given.a[s], given.top[s], given.cum[s], 0), given, one)
        copy_into(one[:d], out, s * d)
        copy_into(one[d:], out, (k + s) * d)
        for p in range(d):
            if state[d + p] <= low[p]:
                out[(2 * k + s) * d + p] = min(one[d + p], 0.0)
    return out

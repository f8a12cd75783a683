"""Compressed SGD of a model with trained numbers, as plain loops for numba (see `odesim.sgd.loops` for the step).

The state is the factor X of the Gram matrix and the scalars (s,), which change in place. The coefficients may depend on
both.
"""

from collections.abc import Callable

import numpy as np

from odesim.sgd.loops import collect, finite, move, move_single, outside, single_fields

coefficients: Callable[..., np.ndarray]
update: Callable[..., tuple[np.ndarray, np.ndarray, np.ndarray]]
draw: Callable[..., np.ndarray]
at_time: Callable[..., tuple[float, tuple]]
settle: Callable[..., tuple[float, np.ndarray, tuple]]
overlaps: Callable[..., np.ndarray]


def squared_norms(X, vv):
    """Compute the squared norms of the first rows of X."""
    for i in range(vv.size):
        square = 0.0
        for c in range(X.shape[1]):
            square += X[i, c] * X[i, c]
        vv[i] = square


def replace(scalars, moved):
    """Assign scalars[:] = moved. Return True if every number is finite."""
    good = True
    for k in range(scalars.size):
        scalars[k] = moved[k]
        good = good and np.abs(moved[k]) < np.inf
    return good


def add_rows(rows, first, totals):
    """Add the sum over samples of every row from `first` on to `totals`."""
    for r in range(totals.size):
        total = 0.0
        for c in range(rows.shape[1]):
            total += rows[first + r, c]
        totals[r] += total


def scalar_batch_steps(X, scalars, steps, form, step_size, rng, numbers):
    """Take `steps` steps with batches of at least two samples, in blocks. Return False at a non-finite state.

    `form` = (dimension, batch size, trained vectors, further rows of coefficients, uniform and normal numbers, steps
    taken before, samples of a block).
    """
    (d, batch, trained, further, uniforms, normals, before, block), n = form, X.shape[0]
    fixed = n - trained
    Z = np.empty((trained, min(batch, trained)))
    M, products = np.empty((trained, trained + Z.shape[1])), np.empty((3, trained))
    vv, vg, gg = products[0], products[1], products[2]
    for k in range(steps):
        h, now = at_time(before + k, step_size, *numbers)
        squared_norms(X, vv)
        G, S, means = np.zeros((trained, n)), np.zeros((trained, trained)), np.zeros(further)
        outer = np.zeros((trained, 0 if batch >= trained else batch))
        done = 0
        while done < batch:
            size = min(block, batch - done)
            y = rng.standard_normal((n, size))
            labels = draw(rng.random((uniforms, size)), rng.standard_normal((normals, size)), *now)
            rows = coefficients(X @ y, labels, vv, scalars, *now)
            C = rows[:trained]
            add_rows(rows, trained, means)
            collect(C, y, done, G, S, outer)
            done += size
        for r in range(further):
            means[r] /= batch
        outside(X, G, S, outer, Z, products, batch, d - n, rng)
        h, held, now = settle(before + k, h, overlaps(X), gg, scalars, *now)
        a, b, moved = update(vv, vg, gg, means, held, h, *now)
        good = replace(scalars, moved)
        move(X, G, Z, M, a, b, trained, fixed)
        if not (good and finite(X)):
            return False
    return True


def scalar_single_steps(X, scalars, steps, form, step_size, rng, numbers):
    """Take `steps` steps with one fresh sample each, the fast case: gradient_k = c_k x, and |z| is one chi variable."""
    (d, _, trained, _, uniforms, normals, before, _), n = form, X.shape[0]
    M = np.empty((trained, trained + 1))
    y, fields = np.empty(n), np.empty(n)
    vv, vg, gg = np.empty(trained), np.empty(trained), np.empty(trained)
    uniform, normal, good = np.empty(uniforms), np.empty(normals), True
    for k in range(steps):
        h, now = at_time(before + k, step_size, *numbers)
        for c in range(n):
            y[c] = rng.standard_normal()
        for c in range(uniforms):
            uniform[c] = rng.random()
        for c in range(normals):
            normal[c] = rng.standard_normal()
        labels = draw(uniform, normal, *now)
        single_fields(X, y, trained, False, fields, vv, vg)
        C = coefficients(fields, labels, vv, scalars, *now)
        outside = 2.0 * rng.standard_gamma(0.5 * (d - n))
        inside = 0.0
        for c in range(n):
            inside += y[c] * y[c]
        for i in range(trained):
            vg[i] *= C[i]
            gg[i] = C[i] * C[i] * (inside + outside)
        h, held, now = settle(before + k, h, overlaps(X), gg, scalars, *now)
        a, b, moved = update(vv, vg, gg, C[trained:], held, h, *now)
        good = replace(scalars, moved)
        move_single(X, C, y, np.sqrt(outside), M, a, b, trained)
    return good and finite(X)

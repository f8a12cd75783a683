"""Compressed SGD with momentum, as plain loops for numba (see `odesim.sgd.momentum` for the step).

The S velocities follow the n rows of the factor X, [trained; frame; velocities], and the numbers. Batches of one sample
are not a special case.
"""

from collections.abc import Callable

import numpy as np

from odesim.sgd.loops import collect, finite, outside, triangularise
from odesim.sgd.scalar_loops import add_rows, replace, squared_norms

coefficients: Callable[..., np.ndarray]
accelerate: Callable[..., tuple[tuple, tuple, np.ndarray, np.ndarray]]
draw: Callable[..., np.ndarray]
at_time: Callable[..., tuple[float, tuple]]
settle: Callable[..., tuple[float, np.ndarray, tuple]]
overlaps: Callable[..., np.ndarray]


def push(X, G, Z, M, of_v, of_u, trained, fixed):
    """Replace velocities v and trained rows u by combinations of v, u and the gradient, in triangular form again.

    `of_v` and `of_u` are the three factors (S,) in the new v and in the new u.
    """
    first, rank = trained + fixed, Z.shape[1]  # of the velocities
    for i in range(trained):
        for c in range(X.shape[1]):
            u, v, g = X[i, c], X[first + i, c], G[i, c]
            one = of_u[0][i] * v + of_u[1][i] * u + of_u[2][i] * g
            two = of_v[0][i] * v + of_v[1][i] * u + of_v[2][i] * g
            if c < fixed:
                X[i, c], X[first + i, c] = one, two
            else:
                M[i, c - fixed], M[trained + i, c - fixed] = one, two
        for c in range(rank):
            M[i, 2 * trained + c] = of_u[2][i] * Z[i, c]
            M[trained + i, 2 * trained + c] = of_v[2][i] * Z[i, c]
    triangularise(M, 2 * trained, 2 * trained + rank)
    for i in range(trained):
        for c in range(2 * trained):
            X[i, fixed + c], X[first + i, fixed + c] = M[i, c], M[trained + i, c]


def velocity_steps(X, scalars, steps, form, step_size, rng, numbers):
    """Take `steps` steps with batches of any size, in blocks. Return False at a non-finite state.

    `form` is that of `scalar_batch_steps`.
    """
    (d, batch, trained, further, uniforms, normals, before, block), total = form, X.shape[0]
    n, half = total - trained, scalars.size // 2
    Z = np.empty((trained, min(batch, trained)))
    M, products = np.empty((2 * trained, 2 * trained + Z.shape[1])), np.empty((3, trained))
    vv, gg = np.empty(trained), products[2]
    held, pushes = scalars[:half], scalars[half:]
    for k in range(steps):
        h, now = at_time(before + k, step_size, *numbers)
        squared_norms(X, vv)
        G, S, means = np.zeros((trained, total)), np.zeros((trained, trained)), np.zeros(further)
        outer = np.zeros((trained, 0 if batch >= trained else batch))
        done = 0
        while done < batch:
            size = min(block, batch - done)
            y = rng.standard_normal((total, size))
            labels = draw(rng.random((uniforms, size)), rng.standard_normal((normals, size)), *now)
            rows = coefficients(X[:n] @ y, labels, vv, held, *now)
            C = rows[:trained]
            add_rows(rows, trained, means)
            collect(C, y, done, G, S, outer)
            done += size
        for r in range(further):
            means[r] /= batch
        outside(X, G, S, outer, Z, products, batch, d - total, rng)
        h, kept, now = settle(before + k, h, overlaps(X[:n]), gg, held, *now)
        of_v, of_u, moved, pushed = accelerate(means, kept, pushes, h, *now)
        good = replace(held, moved)
        good = replace(pushes, pushed) and good
        push(X, G, Z, M, of_v, of_u, trained, n - trained)
        if not (good and finite(X)):
            return False
    return True

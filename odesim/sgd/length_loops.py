"""Compressed SGD with coefficients that depend on the length of a sample, as plain loops for numba, exact in law.

With x = y + z, y in the span of all rows and z outside of it, the coefficients of a sample depend on y and on r =
|x|^2/d, so that |z|^2 is drawn first. The samples of a batch are processed one by one. The part of its gradient outside
the span is a factor Z (trained, m) in m orthonormal directions; m is the number of samples, at most the number of
trained vectors. In these directions a further sample has coordinates g ~ N(0, I_m), and outside of them a length rest,
rest^2 ~ chi^2 with d - n - m degrees of freedom:

    r = (|y|^2 + |g|^2 + rest^2)/d,   Z <- [Z + c g^T, c rest], then made triangular again.

Squared lengths are not independent of coefficients here, so that a Wishart matrix of C C^T (`odesim.sgd.loops`) has
another law.
"""

from collections.abc import Callable

import numpy as np

from odesim.sgd.loops import divide, finite, inner_products, move, move_single, single_fields, triangularise
from odesim.sgd.scalar_loops import replace, squared_norms

coefficients: Callable[..., np.ndarray]
update: Callable[..., tuple[np.ndarray, np.ndarray, np.ndarray]]
draw: Callable[..., np.ndarray]
at_time: Callable[..., tuple[float, tuple]]
settle: Callable[..., tuple[float, np.ndarray, tuple]]
overlaps: Callable[..., np.ndarray]


def fill_normal(values, count, rng):
    """Fill the first `count` values with standard normal numbers. Return the sum of their squares."""
    square = 0.0
    for c in range(count):
        values[c] = rng.standard_normal()
        square += values[c] * values[c]
    return square


def chi_squared(freedom, rng):
    """Return a chi-squared number, which is 0 without degrees of freedom."""
    if freedom <= 0.0:
        return 0.0
    return 2.0 * rng.standard_gamma(0.5 * freedom)


def add_outside(Z, used, C, g, rest, M):
    """Update Z <- [Z + c g^T, c rest] in its first `used` columns and one more. Return the new number of used
    columns.
    """
    trained, rank = Z.shape
    for i in range(trained):
        for k in range(used):
            Z[i, k] += C[i] * g[k]
    if used < rank:
        for i in range(trained):
            Z[i, used] = C[i] * rest
        return used + 1
    for i in range(trained):
        for k in range(rank):
            M[i, k] = Z[i, k]
        M[i, rank] = C[i] * rest
    triangularise(M, trained, rank + 1)
    for i in range(trained):
        for k in range(rank):
            Z[i, k] = M[i, k]
    return used


def length_batch_steps(X, scalars, steps, form, step_size, rng, numbers):
    """Take `steps` steps with batches of at least two samples. Return False at a non-finite state.

    `form` is that of `scalar_loops.scalar_batch_steps`.
    """
    (d, batch, trained, further, uniforms, normals, before, _), n = form, X.shape[0]
    fixed, rank = n - trained, min(batch, trained)
    Z, M, products = np.empty((trained, rank)), np.empty((trained, trained + rank + 1)), np.empty((3, trained))
    y, g, fields = np.empty(n), np.empty(rank), np.empty(n)
    vv, vg, gg = products[0], products[1], products[2]
    uniform, normal, lengths = np.empty(uniforms), np.empty(normals), np.empty(1)
    for k in range(steps):
        h, now = at_time(before + k, step_size, *numbers)
        G, means, used = np.zeros((trained, n)), np.zeros(further), 0
        Z[:] = 0.0
        for _ in range(batch):
            inside = fill_normal(y, n, rng)
            for c in range(uniforms):
                uniform[c] = rng.random()
            fill_normal(normal, normals, rng)
            labels = draw(uniform, normal, *now)
            single_fields(X, y, trained, False, fields, vv, vg)
            along, rest = fill_normal(g, used, rng), chi_squared(d - n - used, rng)
            lengths[0] = (inside + along + rest) / d
            C = coefficients(fields, labels, lengths, vv, scalars, *now)
            for i in range(trained):
                for c in range(n):
                    G[i, c] += C[i] * y[c]
            for r in range(further):
                means[r] += C[trained + r]
            used = add_outside(Z, used, C, g, np.sqrt(rest), M)
        for r in range(further):
            means[r] /= batch
        divide(G, batch)
        divide(Z, batch)
        squared_norms(X, vv)
        inner_products(X, G, Z, vv, vg, gg)
        h, held, now = settle(before + k, h, overlaps(X), gg, scalars, *now)
        a, b, moved = update(vv, vg, gg, means, held, h, *now)
        good = replace(scalars, moved)
        move(X, G, Z, M, a, b, trained, fixed)
        if not (good and finite(X)):
            return False
    return True


def length_single_steps(X, scalars, steps, form, step_size, rng, numbers):
    """Take `steps` steps with one fresh sample each: gradient_k = c_k x, and |z| is drawn before c."""
    (d, _, trained, _, uniforms, normals, before, _), n = form, X.shape[0]
    M = np.empty((trained, trained + 1))
    y, fields, lengths = np.empty(n), np.empty(n), np.empty(1)
    vv, vg, gg = np.empty(trained), np.empty(trained), np.empty(trained)
    uniform, normal, good = np.empty(uniforms), np.empty(normals), True
    for k in range(steps):
        h, now = at_time(before + k, step_size, *numbers)
        inside = fill_normal(y, n, rng)
        for c in range(uniforms):
            uniform[c] = rng.random()
        fill_normal(normal, normals, rng)
        labels = draw(uniform, normal, *now)
        single_fields(X, y, trained, False, fields, vv, vg)
        outside = chi_squared(d - n, rng)
        lengths[0] = (inside + outside) / d
        C = coefficients(fields, labels, lengths, vv, scalars, *now)
        for i in range(trained):
            vg[i] *= C[i]
            gg[i] = C[i] * C[i] * (inside + outside)
        h, held, now = settle(before + k, h, overlaps(X), gg, scalars, *now)
        a, b, moved = update(vv, vg, gg, C[trained:], held, h, *now)
        good = replace(scalars, moved)
        move_single(X, C, y, np.sqrt(outside), M, a, b, trained)
    return good and finite(X)

"""Compressed SGD as plain loops for numba. A step is exact in law, and its cost does not depend on d.

The state is a lower-triangular factor X (n, n) of the raw Gram matrix: rows [trained; frame], the frame in the first
`fixed` columns. With x = y + z, y in the span and z orthogonal to it, the coefficients of a batch depend on y alone;
the part of the batch gradient along z is coef^T z / B, whose Gram matrix is L W L^T / B^2 with L L^T = coef^T coef and
W Wishart with d - n degrees of freedom, drawn by Bartlett's factor of rank min(B, trained).
"""

from collections.abc import Callable

import numpy as np

coefficients: Callable[..., np.ndarray]
update: Callable[..., tuple[np.ndarray, np.ndarray]]
draw: Callable[..., np.ndarray]
mean: Callable[..., np.ndarray]


def semidefinite_factor(S):
    """Compute the lower factor L of a positive semi-definite S = L L^T, in place. A pivot at round-off gives a zero
    column.

    A pivot is a difference of at most n numbers of the size of its own diagonal entry, known to n eps of that entry:
    the threshold is 4 n eps of it, whatever the scale of the other rows.
    """
    n = S.shape[0]
    for k in range(n):
        pivot = S[k, k]
        smallest = 4.0 * n * 2.22e-16 * pivot
        for j in range(k):
            pivot -= S[k, j] * S[k, j]
        if pivot <= smallest:
            for i in range(k, n):
                S[i, k] = 0.0
            continue
        root = np.sqrt(pivot)
        S[k, k] = root
        for i in range(k + 1, n):
            total = S[i, k]
            for j in range(k):
                total -= S[i, j] * S[k, j]
            S[i, k] = total / root
    for k in range(n):
        for i in range(k):
            S[i, k] = 0.0


def bartlett(rank, freedom, rng):
    """Return the lower factor A (rank, rank) of a Wishart matrix with `freedom` degrees of freedom, A A^T."""
    A = np.zeros((rank, rank))
    for i in range(rank):
        A[i, i] = np.sqrt(2.0 * rng.standard_gamma(0.5 * (freedom - i)))
        for j in range(i):
            A[i, j] = rng.standard_normal()
    return A


def triangularise(M, rows, columns):
    """Replace M (rows, columns) by [L, 0] with the same M M^T, by Householder reflections of its rows.

    Loops over rows begin at column 0, because other loops are not vectorised and take four times as long.
    """
    for i in range(rows):
        tail = M[i, i + 1 : columns]
        square = 0.0
        for c in range(tail.size):
            square += tail[c] * tail[c]
        if square == 0.0:
            continue
        length = np.sqrt(square + M[i, i] * M[i, i])
        head = M[i, i] + length if M[i, i] > 0 else M[i, i] - length
        scale = 2.0 / (head * head + square)
        for r in range(i + 1, rows):
            row = M[r, i + 1 : columns]
            dot = M[r, i] * head
            for c in range(row.size):
                dot += row[c] * tail[c]
            dot *= scale
            M[r, i] -= dot * head
            for c in range(row.size):
                row[c] -= dot * tail[c]
        M[i, i] = -length if M[i, i] > 0 else length
        for c in range(tail.size):
            tail[c] = 0.0


def move(X, G, Z, M, a, b, trained, fixed):
    """Change trained rows to a_k X_k + b_k (G_k in the span, Z_k orthogonal to it), in triangular form again."""
    n, rank = trained + fixed, Z.shape[1]
    for i in range(trained):
        for c in range(fixed):
            X[i, c] = a[i] * X[i, c] + b[i] * G[i, c]
        for c in range(fixed, n):
            M[i, c - fixed] = a[i] * X[i, c] + b[i] * G[i, c]
        for c in range(rank):
            M[i, trained + c] = b[i] * Z[i, c]
    triangularise(M, trained, trained + rank)
    for i in range(trained):
        for c in range(trained):
            X[i, fixed + c] = M[i, c]


def inner_products(X, G, Z, vv, vg, gg):
    """Compute squared norms of the trained rows and of their gradients (in the span and outside), and their
    products.
    """
    for i in range(G.shape[0]):
        square, cross, size = 0.0, 0.0, 0.0
        for c in range(G.shape[1]):
            square += X[i, c] * X[i, c]
            cross += X[i, c] * G[i, c]
            size += G[i, c] * G[i, c]
        for c in range(Z.shape[1]):
            size += Z[i, c] * Z[i, c]
        vv[i], vg[i], gg[i] = square, cross, size


def add(total, part, column):
    """Compute total[:, column:] += part in loops, because broadcasting, which checks shapes, takes seconds to
    compile.
    """
    for i in range(part.shape[0]):
        for c in range(part.shape[1]):
            total[i, column + c] += part[i, c]


def divide(total, number):
    """Compute total /= number."""
    for i in range(total.shape[0]):
        for c in range(total.shape[1]):
            total[i, c] /= number


def collect(C, y, done, G, S, outer):
    """Add a block of samples y with coefficients C, `done` before it, to G = C y^T and S = C C^T, or to C itself.

    `outer` has the coefficients of a batch that is smaller than the number of trained rows; otherwise it has no
    columns.
    """
    add(G, C @ y.T, 0)
    if outer.shape[1] == 0:
        add(S, C @ C.T, 0)
    else:
        add(outer, C, done)


def outside(X, G, S, outer, Z, products, batch, freedom, rng):
    """Compute the mean gradients G in the span of the rows and Z outside it, and `products` (see `inner_products`).

    Z is a factor of S = C C^T, or the coefficients `outer`, times Bartlett's.
    """
    divide(G, batch)
    if outer.shape[1] == 0:
        semidefinite_factor(S)
        np.dot(S, bartlett(S.shape[0], freedom, rng), Z)
    else:
        np.dot(outer, bartlett(batch, freedom, rng), Z)
    divide(Z, batch)
    inner_products(X, G, Z, products[0], products[1], products[2])


def finite(X):
    """Return True if every number is finite."""
    for i in range(X.shape[0]):
        for c in range(X.shape[1]):
            if not np.abs(X[i, c]) < np.inf:
                return False
    return True


def batch_steps(X, steps, form, step_size, rng, numbers):
    """Take `steps` steps with batches of at least two samples, in blocks of 256. Return False at a non-finite state.

    `form` = (dimension, batch size, trained vectors, True if fields are of unit vectors, uniform and normal numbers of
    a sample's label).
    """
    (d, batch, trained, normalised, uniforms, normals), n = form, X.shape[0]
    fixed = n - trained
    Z = np.empty((trained, min(batch, trained)))
    frame = np.ascontiguousarray(X[trained:, :fixed])
    M = np.empty((trained, trained + Z.shape[1]))
    unit, products = np.empty((n, n)), np.empty((3, trained))
    vv, vg, gg = products[0], products[1], products[2]
    for _ in range(steps):
        for i in range(n):
            scale = 1.0
            if normalised and i < trained:
                scale = 0.0
                for c in range(n):
                    scale += X[i, c] * X[i, c]
                scale = 1.0 / np.sqrt(scale)
            for c in range(n):
                unit[i, c] = scale * X[i, c]
        G = np.zeros((trained, n))
        S = np.zeros((trained, trained))
        outer = np.zeros((trained, 0 if batch >= trained else batch))
        done = 0
        while done < batch:
            size = min(256, batch - done)
            y = rng.standard_normal((n, size))
            labels = draw(rng.random((uniforms, size)), rng.standard_normal((normals, size)), *numbers)
            if uniforms + normals > 0:
                add(y, frame.T @ mean(labels, *numbers), 0)
            C = coefficients(unit @ y, labels, *numbers)
            collect(C, y, done, G, S, outer)
            done += size
        outside(X, G, S, outer, Z, products, batch, d - n, rng)
        a, b = update(vv, vg, gg, step_size, *numbers)
        move(X, G, Z, M, a, b, trained, fixed)
        if not finite(X):
            return False
    return True


def single_fields(X, y, trained, normalised, fields, vv, vg):
    """Compute the fields of one sample y, the squared norms of the trained rows, and their products with y."""
    n = X.shape[0]
    for i in range(n):
        dot, square = 0.0, 0.0
        for c in range(n):
            dot += X[i, c] * y[c]
            square += X[i, c] * X[i, c]
        fields[i] = dot
        if i < trained:
            vv[i], vg[i] = square, dot
            if normalised:
                fields[i] = dot / np.sqrt(square)


def move_single(X, C, y, length, M, a, b, trained):
    """Change trained rows as `move` does for the gradients C_k (y, length): one new direction, to which every row has a
    component.
    """
    fixed = X.shape[0] - trained
    for i in range(trained):
        along = b[i] * C[i]
        for c in range(fixed):
            X[i, c] = a[i] * X[i, c] + along * y[c]
        for c in range(trained):
            M[i, c] = a[i] * X[i, fixed + c] + along * y[fixed + c]
        M[i, trained] = along * length
    triangularise(M, trained, trained + 1)
    for i in range(trained):
        for c in range(trained):
            X[i, fixed + c] = M[i, c]


def single_steps(X, steps, form, step_size, rng, numbers):
    """Take `steps` steps with one fresh sample each, the fast case: gradient_k = c_k x, and |z| is one chi variable.

    This function allocates nothing. Besides its random numbers, a step costs only the arrays of the model.
    """
    (d, _, trained, normalised, uniforms, normals), n = form, X.shape[0]
    fixed = n - trained
    frame = np.ascontiguousarray(X[trained:, :fixed])
    M = np.empty((trained, trained + 1))
    y, fields, labels = np.empty(n), np.empty(n), np.empty(0)
    vv, vg, gg = np.empty(trained), np.empty(trained), np.empty(trained)
    uniform, normal = np.empty(uniforms), np.empty(normals)
    for _ in range(steps):
        for c in range(n):
            y[c] = rng.standard_normal()
        if uniforms + normals > 0:
            for c in range(uniforms):
                uniform[c] = rng.random()
            for c in range(normals):
                normal[c] = rng.standard_normal()
            labels = draw(uniform, normal, *numbers)
            centre = mean(labels, *numbers)
            for i in range(fixed):
                for c in range(fixed if centre[i] != 0.0 else 0):
                    y[c] += frame[i, c] * centre[i]
        single_fields(X, y, trained, normalised, fields, vv, vg)
        C = coefficients(fields, labels, *numbers)
        outside = 2.0 * rng.standard_gamma(0.5 * (d - n))
        inside = 0.0
        for c in range(n):
            inside += y[c] * y[c]
        for i in range(trained):
            vg[i] *= C[i]
            gg[i] = C[i] * C[i] * (inside + outside)
        a, b = update(vv, vg, gg, step_size, *numbers)
        move_single(X, C, y, np.sqrt(outside), M, a, b, trained)
    return finite(X)

"""The erf committee by its arcsine law alone: loss, gradient and Hessian of vectors, in NumPy and in mpmath.

    L(U) = (1/2) sum_ij s_i s_j (2/pi) asin(v_i.v_j / sqrt((1 + |v_i|^2)(1 + |v_j|^2))),   v = (u_1, .., e_1, ..)
    dL/du_i = (2/pi) sum_j s_i s_j (v_j - u_i v_i.v_j/(1 + |u_i|^2)) / sqrt((1 + |u_i|^2)(1 + |v_j|^2) - (v_i.v_j)^2)

Orthonormal teachers.  Source: Saad & Solla 1995.  Nothing of odesim takes part.
"""

import mpmath
import numpy as np


def loss(u, teachers):
    """Loss of the rows of u (K, r), r >= teachers."""
    v, s = _stacked(u, teachers)
    g = v @ v.T
    q = 1 + np.diag(g)
    return 0.5 * 2 / np.pi * np.sum(np.outer(s, s) * np.arcsin(g / np.sqrt(np.outer(q, q))))


def _stacked(u, teachers):
    k, r = u.shape
    return np.vstack([u, np.eye(teachers, r)]), np.r_[np.ones(k), -np.ones(teachers)]


def gradient(u, teachers):
    """dL/du (K, r)."""
    v, s = _stacked(u, teachers)
    g = v @ v.T
    q = 1 + np.diag(g)
    weight = np.outer(s, s) / np.sqrt(np.outer(q, q) - g**2)
    k = len(u)
    return 2 / np.pi * (weight[:k] @ v - ((weight[:k] * g[:k]).sum(1) / q[:k])[:, None] * u)


def hessian(u, teachers):
    """Second derivatives (K r, K r), by fourth-order differences of the gradient."""
    h, flat = 1e-3, u.ravel()
    columns = []
    for e in np.eye(flat.size):
        at = [gradient((flat + k * h * e).reshape(u.shape), teachers).ravel() for k in (-2, -1, 1, 2)]
        columns.append((at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * h))
    found = np.array(columns)
    return (found + found.T) / 2


def curvature_outside(u, teachers):
    """Second derivatives (K, K) along one dimension more than the vectors span."""
    wide = np.hstack([u, np.zeros((len(u), 1))])
    places = np.arange(len(u)) * wide.shape[1] + u.shape[1]
    return hessian(wide, teachers)[np.ix_(places, places)]


def solve(pattern, start):
    """Stationary point in mpmath, with entries of U that are named alike equal; (loss, U) to 30 digits.

    By the principle of symmetric criticality the equations of the free entries are enough where the pattern is the
    fixed space of a symmetry.  `pattern` has a row of names for each unit, "-p" for the opposite of "p".
    """
    mpmath.mp.dps = 30
    names = list(start)
    m = len(pattern[0])

    def entries(z):
        known = dict(zip(names, z, strict=True))
        return [[(-known[e[1:]] if e[0] == "-" else known[e]) for e in row] for row in pattern]

    def equations(*z):
        u = entries(z)
        g = _gradient_mp(u, m)
        found = {name: mpmath.mpf(0) for name in names}
        for row, slopes in zip(pattern, g, strict=True):
            for e, slope in zip(row, slopes, strict=True):
                found[e.lstrip("-")] += -slope if e[0] == "-" else slope
        return [found[name] for name in names]

    z = mpmath.findroot(equations, [mpmath.mpf(start[name]) for name in names], tol=1e-25)
    u = entries(list(z))
    residual = max(abs(x) for row in _gradient_mp(u, m) for x in row)
    return _loss_mp(u, m), np.array(u, float), residual


def _rows_mp(u, m):
    v = [*u, *([mpmath.mpf(i == j) for j in range(m)] for i in range(m))]
    return v, [1] * len(u) + [-1] * m


def _dot(a, b):
    return sum((x * y for x, y in zip(a, b, strict=True)), mpmath.mpf(0))


def _loss_mp(u, m):
    v, s = _rows_mp(u, m)
    q = [1 + _dot(a, a) for a in v]
    n = range(len(v))
    return sum(s[i] * s[j] * mpmath.asin(_dot(v[i], v[j]) / mpmath.sqrt(q[i] * q[j])) for i in n for j in n) / mpmath.pi


def _gradient_mp(u, m):
    v, s = _rows_mp(u, m)
    q = [1 + _dot(a, a) for a in v]
    found = []
    for i, row in enumerate(u):
        total = [mpmath.mpf(0)] * m
        for j, other in enumerate(v):
            c = _dot(row, other)
            w = 2 / mpmath.pi * s[j] / mpmath.sqrt(q[i] * q[j] - c * c)
            total = [t + w * (b - a * c / q[i]) for t, a, b in zip(total, row, other, strict=True)]
        found.append(total)
    return found

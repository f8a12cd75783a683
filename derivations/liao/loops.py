"""The right-hand sides as plain loops around the pair kernels, for numba.

`odesim.compile` copies these functions, unchanged, into one generated file together with the scalar kernels
derived by SymPy, and compiles that file; nothing here runs uncompiled.  Every array a function takes is a
run-time argument, so one compiled file serves every size, dimension, gate and temperature of one degree.
"""

from collections.abc import Callable

import numpy as np

pair_gradient: Callable[..., tuple[float, ...]]
aligned_gradient: Callable[..., tuple[float, ...]]
aligned_energy: Callable[..., tuple[float, ...]]


def correlations(rho, series, shift, odd, reach, square, S):
    """Fill S[k, lane] = S_k(rho[lane]): a series in rho^2, times rho for odd functions, plus a constant.

    `reach[t]` is the largest rho^2 at which t + 1 terms are enough, so that small overlaps cost few terms.
    """
    functions, terms = series.shape
    largest = 0.0
    for lane in range(16):
        square[lane] = rho[lane] * rho[lane]
        largest = max(largest, square[lane])
    last = terms - 1
    while last > 3 and reach[last - 4] >= largest:
        last -= 4
    for k in range(functions):
        c = series[k, last]
        for lane in range(16):
            S[k, lane] = c
    for t in range(last - 1, -1, -4):
        for k in range(functions):
            c0 = series[k, t]
            c1 = series[k, t - 1]
            c2 = series[k, t - 2]
            c3 = series[k, t - 3]
            for lane in range(16):
                x = square[lane]
                S[k, lane] = (((S[k, lane] * x + c0) * x + c1) * x + c2) * x + c3
    for k in range(functions):
        for lane in range(16):
            S[k, lane] = shift[k] + S[k, lane] * (odd[k] * rho[lane] + (1.0 - odd[k]))


def unpack_gram(y, m, m_star, teachers, G):
    """Fill the Gram matrix G of [v, w, v*, w*] from the flat state (order: `population.components`)."""
    s = 2 * m
    at = 0
    for row, column in ((0, s), (m, s + m_star), (0, s + m_star), (m, s)):
        for i in range(m):
            for j in range(m_star):
                G[row + i, column + j] = y[at]
                G[column + j, row + i] = y[at]
                at += 1
    for block in (0, m):
        for i in range(m):
            G[block + i, block + i] = 1.0
            for j in range(i + 1, m):
                G[block + i, block + j] = y[at]
                G[block + j, block + i] = y[at]
                at += 1
    for i in range(m):
        for j in range(m):
            G[i, m + j] = y[at]
            G[m + j, i] = y[at]
            at += 1
    for i in range(2 * m_star):
        for j in range(2 * m_star):
            G[s + i, s + j] = teachers[i, j]


def gather_pairs(G, m, m_star, X):
    """Fill X[:, pair] = (rho, g, z11, z12, z21, z22): student pairs, (student, teacher) pairs, teacher pairs."""
    s = 2 * m
    at = 0
    for i in range(m):
        for r in range(i, m):
            X[0, at] = G[i, r]
            X[1, at] = G[m + i, m + r]
            X[2, at] = G[i, m + i]
            X[3, at] = G[i, m + r]
            X[4, at] = G[r, m + i]
            X[5, at] = G[r, m + r]
            at += 1
    for i in range(m):
        for j in range(m_star):
            X[0, at] = G[i, s + j]
            X[1, at] = G[m + i, s + m_star + j]
            X[2, at] = G[i, m + i]
            X[3, at] = G[i, s + m_star + j]
            X[4, at] = G[s + j, m + i]
            X[5, at] = G[s + j, s + m_star + j]
            at += 1
    for j in range(m_star):
        for r in range(j, m_star):
            X[0, at] = G[s + j, s + r]
            X[1, at] = G[s + m_star + j, s + m_star + r]
            X[2, at] = G[s + j, s + m_star + j]
            X[3, at] = G[s + j, s + m_star + r]
            X[4, at] = G[s + r, s + m_star + j]
            X[5, at] = G[s + r, s + m_star + r]
            at += 1
    for rest in range(at, X.shape[1]):
        for k in range(6):
            X[k, rest] = 0.0


def gradient_loss(y, m, m_star, teachers, series, shift, odd, reach, G, X, Y, S, square, C):
    """Fill the Gram matrix G and C = dL/dG pair by pair; returns the loss L.

    L = (1/2) sum K_ir - sum K_ij* + (1/2) sum K_j*j'* over all pairs of students and teachers.  One function for
    both, because compiling the pair kernel twice takes seconds and its value beside its derivatives next to nothing.
    """
    s = 2 * m
    unpack_gram(y, m, m_star, teachers, G)
    blocks = X.shape[1] // 16
    gather_pairs(G, m, m_star, X)
    for block in range(blocks):
        a = 16 * block
        correlations(X[0, a : a + 16], series, shift, odd, reach, square, S)
        for lane in range(16):
            p = a + lane
            d_rho, d11, d12, d21, d22, d_g, K = pair_gradient(S, lane, X[1, p], X[2, p], X[3, p], X[4, p], X[5, p])
            Y[0, p] = d_rho
            Y[1, p] = d_g
            Y[2, p] = d11
            Y[3, p] = d12
            Y[4, p] = d21
            Y[5, p] = d22
            Y[6, p] = K
    C[:] = 0.0
    L = 0.0
    at = 0
    for i in range(m):
        L += 0.5 * Y[6, at]
        C[i, m + i] += 0.5 * (Y[2, at] + Y[3, at] + Y[4, at] + Y[5, at])
        at += 1
        for r in range(i + 1, m):
            L += Y[6, at]
            C[i, r] = Y[0, at]
            C[m + i, m + r] = Y[1, at]
            C[i, m + i] += Y[2, at]
            C[i, m + r] = Y[3, at]
            C[r, m + i] = Y[4, at]
            C[r, m + r] += Y[5, at]
            at += 1
    for i in range(m):
        for j in range(m_star):
            L -= Y[6, at]
            C[i, s + j] = -Y[0, at]
            C[m + i, s + m_star + j] = -Y[1, at]
            C[i, m + i] -= Y[2, at]
            C[i, s + m_star + j] = -Y[3, at]
            C[m + i, s + j] = -Y[4, at]
            at += 1
    for j in range(m_star):
        L += 0.5 * Y[6, at]
        at += 1
        for _ in range(j + 1, m_star):
            L += Y[6, at]
            at += 1
    for i in range(s):
        for j in range(i):
            C[i, j] = C[j, i]
    return L


def project(C, G, N, rates, own, m, m_star, dy):
    """The flat derivative from N = C G, C = dL/dG: rows of unit norm move in their tangent space at their own rate."""
    s = 2 * m
    for i in range(s):
        own[i] = N[i, i]
        for j in range(G.shape[0]):
            N[i, j] = rates[i] * (own[i] * G[i, j] - N[i, j])
    at = 0
    for row, column in ((0, s), (m, s + m_star), (0, s + m_star), (m, s)):
        for i in range(m):
            for j in range(m_star):
                dy[at] = N[row + i, column + j]
                at += 1
    for block in (0, m):
        for i in range(m):
            for j in range(i + 1, m):
                dy[at] = N[block + i, block + j] + N[block + j, block + i]
                at += 1
    for i in range(m):
        for j in range(m):
            dy[at] = N[i, m + j] + N[m + j, i]
            at += 1
    return dy


def flow_loss(t, y, m, m_star, teachers, rates, series, shift, odd, reach):
    """(dy/dt, L) of the exact Gram flow: C = dL/dG, N = C G, D = -rate (N - diag(N) G).

    Stays a Python function: allocations and the matrix product take a second to compile and microseconds to call.
    """
    n, s = 2 * m + 2 * m_star, 2 * m
    pairs = m * (m + 1) // 2 + m * m_star + m_star * (m_star + 1) // 2
    width = 16 * ((pairs + 15) // 16)
    G, C = np.empty((n, n)), np.empty((s, n))
    X, Y, S = np.empty((6, width)), np.empty((7, width)), np.empty((series.shape[0], 16))
    dy = np.empty(y.size)
    L = gradient_loss(y, m, m_star, teachers, series, shift, odd, reach, G, X, Y, S, np.empty(16), C)
    project(C, G, C @ G, rates, np.empty(s), m, m_star, dy)
    return dy, L

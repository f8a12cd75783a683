"""Means behind a gate as plain loops, which numba compiles into the right-hand side of tier `gated` of kawata.

Each function fills `means` (1, C (degree + 2)^2) of one neuron: the matrices B[m, n] of all clusters side by side, with
zeros for m + n > degree + 2.  Its arguments are the overlaps nu (1, C), the bias (1, 1), the edges tau (1, C), the
overlap q (1, 1) of the neuron with the gate's direction, and the distance rho of the clusters' means from the origin.
"""

import math

import numpy as np
from numba import njit

from derivations.equations.options import OPTIONS

NODES = 48
"""Gauss-Legendre nodes in the angle arcsin q: round-off for |q| <= .9 and biases of order one."""
X, WEIGHTS = np.polynomial.legendre.leggauss(NODES) / np.array([[2.0], [2.0]]) + np.array([[0.5], [0.0]])
"""Nodes on [0, 1] and their weights."""
RELU, POLYNOMIAL, ERF, EXP, COS, PROBIT = range(6)
"""Kinds of activations, in the order of `derivations.kawata.parameters.ACTIVATIONS`."""
NO_SERIES = np.zeros(0)


@njit(**OPTIONS)
def smoothed(kind, s, r, row, top, G):
    """Fill G[m] = d^m/ds^m E[sigma(r Z + s)] for m = 0..top: an activation smoothed at width r <= 1.

    A polynomial has the orthonormal coefficients `row`; other kinds do not use it.
    """
    if kind == RELU:
        u = s / r
        density = math.exp(-0.5 * u * u) / math.sqrt(2.0 * math.pi)
        below = 0.5 * math.erfc(-u / math.sqrt(2.0))
        G[0] = s * below + r * density
        G[1] = below
        before, h = 0.0, density / r
        for m in range(2, top + 1):  # (-1)^m r^(1-m) He_{m-2}(u) phi(u)
            G[m] = h
            before, h = h, -(u * h / r + (m - 2.0) * before / (r * r))
    elif kind == POLYNOMIAL:
        v = 1.0 - r * r  # E[He_l(r Z + s)] is the Hermite polynomial of variance v at s
        for m in range(top + 1):
            G[m] = 0.0
        before, P = 0.0, 1.0
        for low in range(row.size):  # P is that of degree `low`, which degree low + m has after m derivatives
            for m in range(min(top, row.size - 1 - low) + 1):
                if row[low + m] != 0.0:
                    G[m] += row[low + m] * P * math.exp(0.5 * math.lgamma(low + m + 1.0) - math.lgamma(low + 1.0))
            before, P = P, s * P - low * v * before
    elif kind == ERF or kind == PROBIT:
        width = math.sqrt(1.0 + r * r)
        u, scale = s / width, 1.0 if kind == PROBIT else 2.0
        G[0] = 0.5 * math.erfc(-u / math.sqrt(2.0)) if kind == PROBIT else math.erf(u / math.sqrt(2.0))
        before, h = 0.0, scale * math.exp(-0.5 * u * u) / math.sqrt(2.0 * math.pi) / width
        for m in range(1, top + 1):
            G[m] = h
            before, h = h, -(u * h / width + (m - 1.0) * before / (width * width))
    else:
        value = math.exp(s + 0.5 * r * r) if kind == EXP else math.exp(-0.5 * r * r)
        for m in range(top + 1):
            G[m] = value if kind == EXP else value * math.cos(s + 0.5 * math.pi * m)


@njit(**OPTIONS)
def decided(kind, row, t, tau, q, B, G):
    """Fill B[m, n] = E[d^m sigma(u + t) d^n 1(v + tau >= 0)], u and v standard normal of correlation q.

    B is (top, top), with zeros for m + n > top; G has room for top + 1 numbers. B[m, 0] at q is its value at 0 and the
    integral of dB[m, 0]/dq = B[m + 1, 1], computed in the angle arcsin q. If the indicator is differentiated, v = -tau
    and the mean is conditional on v.
    """
    top = len(B)
    density = math.exp(-0.5 * tau * tau) / math.sqrt(2.0 * math.pi)
    share = 0.5 * math.erfc(-tau / math.sqrt(2.0))
    smoothed(kind, t, 1.0, row, top, G)
    for m in range(top):
        B[m, 0] = share * G[m]
    if density > 0.0 and q != 0.0:
        angle = math.asin(q)
        for k in range(NODES):
            sine, cosine = math.sin(angle * X[k]), math.cos(angle * X[k])
            smoothed(kind, t - sine * tau, cosine, row, top, G)
            factor = WEIGHTS[k] * angle * cosine * density
            for m in range(top):
                B[m, 0] += factor * G[m + 1]
    smoothed(kind, t - q * tau, math.sqrt(1.0 - q * q), row, top, G)
    for n in range(1, top):
        for m in range(top):
            total, binomial, power = 0.0, 1.0, 1.0
            for k in range(n if m + n <= top else 0):  # d^(n-1)/dtau of phi(tau) G^(m)(t - q tau)
                before, h = 0.0, 1.0
                for i in range(n - 1 - k):
                    before, h = h, -tau * h - i * before
                total += binomial * power * h * G[m + k]
                binomial *= (n - 1.0 - k) / (k + 1.0)
                power *= -q
            B[m, n] = density * total


@njit(**OPTIONS)
def fill(kind, row, nu, bias, tau, tilt, rho, means):
    """Fill the means of a neuron for all clusters."""
    top = round(math.sqrt(means.size / tau.size))
    B, G = means.reshape((tau.size, top, top)), np.empty(top + 1)
    for c in range(tau.size):
        decided(kind, row, rho * nu[0, c] + bias[0, 0], tau[0, c], tilt[0, 0], B[c], G)


@njit(**OPTIONS)
def relu_means(nu, bias, tau, tilt, rho, means):
    """Fill the means of max(0, z)."""
    fill(RELU, NO_SERIES, nu, bias, tau, tilt, rho, means)


@njit(**OPTIONS)
def erf_means(nu, bias, tau, tilt, rho, means):
    """Fill the means of erf(z/sqrt 2)."""
    fill(ERF, NO_SERIES, nu, bias, tau, tilt, rho, means)


@njit(**OPTIONS)
def exp_means(nu, bias, tau, tilt, rho, means):
    """Fill the means of exp(z)."""
    fill(EXP, NO_SERIES, nu, bias, tau, tilt, rho, means)


@njit(**OPTIONS)
def cos_means(nu, bias, tau, tilt, rho, means):
    """Fill the means of cos(z)."""
    fill(COS, NO_SERIES, nu, bias, tau, tilt, rho, means)


@njit(**OPTIONS)
def probit_means(nu, bias, tau, tilt, rho, means):
    """Fill the means of the normal distribution function."""
    fill(PROBIT, NO_SERIES, nu, bias, tau, tilt, rho, means)


@njit(**OPTIONS)
def polynomial_means(nu, bias, tau, tilt, rho, series, width, means):
    """Fill the means of a polynomial, whose first `width` orthonormal coefficients are not padding."""
    row = series.reshape(series.size)[: int(width)]
    fill(POLYNOMIAL, row, nu, bias, tau, tilt, rho, means)

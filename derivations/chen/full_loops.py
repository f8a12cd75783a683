"""The flow with noise patches as plain loops for numba: the sums of `loops` at every point of a cloud of noise patches.

A point is a triple of strengths and P - 3 patches, read in the coordinates [v, c, basis of the residual span]; it
is used with both signs of its patches, which cancels what is odd in them.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Arguments(NamedTuple):
    """The run-time arguments of tier full: sizes, rates, the power, E|xi|^2, points of strengths and patches, and the
    rule of the routing noise.
    """

    M: int
    J: int
    K: int
    rho: float
    layer: float
    power: float
    length: float
    strengths: Any
    patches: Any
    u: Any
    weight: Any


places: Callable[[int], int]
resting: Callable[[int], np.ndarray]
activation: Callable[..., tuple[float, ...]]
speed: Callable[..., float]
signed_nodes: Callable[..., tuple[np.ndarray, np.ndarray]]
tabulate: Callable[..., None]
collect: Callable[..., None]
sum_types: Callable[..., float]
sweep_types: Callable[..., float]
dispatch_entropy: Callable[..., float]
squared_size: Callable[..., float]


def coordinates(y, M, J, K, filters, routers):
    """Fill filters (M, J, L) and routers (M, L) from y = feat, cen, gcen, gfeat, rest, with L = 2 K + residual ones."""
    size, L = M * J * K, routers.shape[1]
    R, end = L - 2 * K, 2 * (size + M * K)
    for m in range(M):  # an assignment of slices takes two seconds to compile
        for k in range(K):
            routers[m, K + k] = y[2 * size + m * K + k]
            routers[m, k] = y[2 * size + M * K + m * K + k]
        for c in range(R):
            routers[m, 2 * K + c] = y[end + (M * J + m) * R + c]
        for j in range(J):
            row = m * J + j
            for k in range(K):
                filters[m, j, k] = y[row * K + k]
                filters[m, j, K + k] = y[size + row * K + k]
            for c in range(R):
                filters[m, j, 2 * K + c] = y[end + row * R + c]


def patch_fields(filters, routers, patches, omega, zeta):
    """omega[m, j, p] = w_mj . xi_p and zeta[m] = theta_m . sum_p xi_p for the patches (D, L) of one point."""
    M, J, L = filters.shape
    for m in range(M):
        for j in range(J):
            for p in range(patches.shape[0]):
                field = 0.0
                for c in range(L):
                    field += filters[m, j, c] * patches[p, c]
                omega[m, j, p] = field
        zeta[m] = 0.0
        for p in range(patches.shape[0]):
            for c in range(L):
                zeta[m] += routers[m, c] * patches[p, c]


def patch_terms(side, omega, zeta, power, length, slope, rest):
    """Fill slope[m, j, p] = sigma'(+-omega) and what the patches add to logits, outputs and squared gradients (3 W).

    `length` is E|xi|^2: a patch adds sigma'^2 times it to the squared size of an example's gradient, as if patches were
    orthogonal; that size only sets the width of the layer of incoherent gradients.
    """
    M, J, D = omega.shape
    W = places(M)
    S = np.empty((1, 1))
    for m in range(M):
        rest[m] = side * zeta[m]
        rest[W + m] = 0.0
        rest[2 * W + m] = 0.0
        for j in range(J):
            for p in range(D):
                sigma, slope[m, j, p] = activation(S, 0, side * omega[m, j, p], power)
                rest[W + m] += sigma
                rest[2 * W + m] += length * slope[m, j, p] * slope[m, j, p]


def collect_patches(side, along, slope, patches, rho, dfilters, drouters):
    """Add the drift along the patches of one point: G_m sigma'(omega) xi for filters, the router's for their sum.

    `along` (K, 2, 2 W) are the sums of G_m and of the router's drift by cluster and sign of the feature signal.
    """
    M, J, D = slope.shape
    L = patches.shape[1]
    for m in range(M):
        total = side * along[:, :, m].sum()
        push = side * rho * along[:, :, places(M) + m].sum()
        for p in range(D):
            for j in range(J):
                share = total * slope[m, j, p]
                for c in range(L):
                    dfilters[m, j, c] += share * patches[p, c]
            for c in range(L):
                drouters[m, c] += push * patches[p, c]


def full_drift(t, y, priced, given):
    """(dy/dt, L): normalised descent of the experts, rho times descent of the router, with P - 3 noise patches.

    L is 0 unless it is to be `priced`.

    y = feat, cen, gcen, gfeat, rest (M J + M, L - 2 K); strengths (N, 3) are alpha, beta, gamma and patches (N, D, L)
    the noise patches of every point.  Each point adds the types of `sum_types` at its strengths, for both signs of
    its patches.
    """
    M, J, K, rho, layer, power = given.M, given.J, given.K, given.rho, given.layer, given.power
    length, strengths, patches, u, weight = given.length, given.strengths, given.patches, given.u, given.weight
    N, D, L = patches.shape
    size = M * J * K
    filters, routers = np.empty((M, J, L)), np.empty((M, L))
    coordinates(y, M, J, K, filters, routers)
    feat, cen = y[:size].reshape((M, J, K)), y[size : 2 * size].reshape((M, J, K))
    gcen = y[2 * size : 2 * size + M * K].reshape((M, K))
    gfeat = y[2 * size + M * K : 2 * (size + M * K)].reshape((M, K))
    dfeat, dcen = np.zeros((M, J, K)), np.zeros((M, J, K))
    dgcen, dgfeat = np.zeros((M, K)), np.zeros((M, K))
    dfilters, drouters = np.zeros((M, J, L)), np.zeros((M, L))
    omega, slope, zeta = np.empty((M, J, D)), np.empty((M, J, D)), np.empty(M)
    W, one = places(M), np.ones(1)
    A, B, C = np.zeros((K, 2, 3 * W)), np.zeros((K, 1, 3 * W)), np.zeros((K, 2, 3 * W))
    along_a, along_b, along_c = np.empty((K, 2, 2 * W)), np.empty((K, 1, 2 * W)), np.empty((K, 2, 2 * W))
    rest, coherent, chance, S, loss = resting(M), np.zeros(W), np.full(1, 0.5 / N), np.empty((1, 1)), 0.0
    for n in range(N):
        a, a_weight = signed_nodes(strengths[n, :1], one)
        b = strengths[n, 1:2]
        c, c_weight = signed_nodes(strengths[n, 2:], one)
        tabulate(feat, gfeat, a, S, power, A)
        tabulate(cen, gcen, b, S, power, B)
        tabulate(feat, gfeat, c, S, power, C)
        weights, tables, sums = (a_weight, chance, c_weight), (A, B, C), (along_a, along_b, along_c)
        patch_fields(filters, routers, patches[n], omega, zeta)
        for side in (1.0, -1.0):
            patch_terms(side, omega, zeta, power, length, slope, rest)
            along_a[:] = 0.0
            along_b[:] = 0.0
            along_c[:] = 0.0
            loss += sum_types(M, weights, (u, weight), tables, rest, priced, sums, coherent)
            collect(feat, a, along_a, S, power, rho, dfeat, dgfeat)
            collect(cen, b, along_b, S, power, rho, dcen, dgcen)
            collect(feat, c, along_c, S, power, rho, dfeat, dgfeat)
            collect_patches(side, along_a, slope, patches[n], rho, dfilters, drouters)
    for m in range(M):
        for k in range(K):
            drouters[m, k] += dgfeat[m, k]
            drouters[m, K + k] += dgcen[m, k]
            for j in range(J):
                dfilters[m, j, k] += dfeat[m, j, k]
                dfilters[m, j, K + k] += dcen[m, j, k]
    return assemble(dfilters, drouters, K, layer, coherent), loss


def assemble(dfilters, drouters, K, layer, coherent):
    """The flat derivative; experts are divided by the norm of their gradient, or layer E|g| where that is larger."""
    M, J, L = dfilters.shape
    size, R = M * J * K, L - 2 * K
    dy = np.empty((M * J + M) * L)
    end = 2 * (size + M * K)
    for m in range(M):
        scale = speed(np.sqrt(squared_size(dfilters[m])), layer * coherent[m])
        for k in range(K):
            dy[2 * size + m * K + k] = drouters[m, K + k]
            dy[2 * size + M * K + m * K + k] = drouters[m, k]
        for c in range(R):
            dy[end + (M * J + m) * R + c] = drouters[m, 2 * K + c]
        for j in range(J):
            row = m * J + j
            for k in range(K):
                dy[row * K + k] = dfilters[m, j, k] * scale
                dy[size + row * K + k] = dfilters[m, j, K + k] * scale
            for c in range(R):
                dy[end + row * R + c] = dfilters[m, j, 2 * K + c] * scale
    return dy


def full_watch(y, given):
    """load (M), entropy, accuracy (largest logit), both under the routing noise, and its dispatch (K, M)."""
    M, J, K, power, length = given.M, given.J, given.K, given.power, given.length
    strengths, patches, u, weight = given.strengths, given.patches, given.u, given.weight
    N, D, L = patches.shape
    size = M * J * K
    filters, routers = np.empty((M, J, L)), np.empty((M, L))
    coordinates(y, M, J, K, filters, routers)
    feat, cen = y[:size].reshape((M, J, K)), y[size : 2 * size].reshape((M, J, K))
    gcen = y[2 * size : 2 * size + M * K].reshape((M, K))
    gfeat = y[2 * size + M * K : 2 * (size + M * K)].reshape((M, K))
    omega, slope, zeta, rest = np.empty((M, J, D)), np.empty((M, J, D)), np.empty(M), resting(M)
    one, chance = np.ones(1), np.full(1, 0.5 / N)
    found, counts, sure = np.zeros(M + 4 + K * M), np.zeros((K, M)), np.zeros((K, M))
    for n in range(N):
        nodes = (strengths[n, :1], one, strengths[n, 1:2], chance, strengths[n, 2:], one)
        patch_fields(filters, routers, patches[n], omega, zeta)
        for side in (1.0, -1.0):
            patch_terms(side, omega, zeta, power, length, slope, rest)
            found[M + 1] += sweep_types((feat, cen), (gcen, gfeat), False, power, nodes, (u, weight), rest, sure)
            found[M + 3] += sweep_types((feat, cen), (gcen, gfeat), True, power, nodes, (u, weight), rest, counts)
    found[M] = dispatch_entropy(sure)
    found[M + 2] = dispatch_entropy(counts)
    for k in range(K):
        for m in range(M):
            found[m] += counts[k, m]
            found[M + 4 + k * M + m] = counts[k, m]
    return found

"""The moments of the gradient of one sample, and the corrections of a finite step to the flow.

A step of a routed sample moves w by h g, g = y a sigma'(w.x + b)(x - (w.x) w), and divides by the length, so that on
average an overlap changes by h (drift) - (h^2/2) D m with D = E|g|^2, and spreads by h sqrt(S) with S_ab =
E[(u_a.g)(u_b.g)] for the frame vectors u_a. On the clock (time = eta steps, h = eta pi/J) that is

    dm/dt = F(m) - (eta/2) (1/J^2) sum_c (P_c pi^2 / C) D_c(m) m

with P_c the probability that a sample of cluster c reaches the expert, and pi its softmax weight (1/M in Phase I, 1
after).

Means given the cluster: with z0 = w.z and an orthonormal pair e1, e2 of (w*_c, w*_g) off w, v_c = nu w + al1 e1 + al2
e2 + v', P u_a = A_a (e1, e2) + r_a and Q = (z1 + rho al1, z2 + rho al2) the fields,

    D = M2_11 + M2_22 + M0 (rho^2 |v'|^2 + d - 3),    M0, M1, M2 = E[(y a sigma')^2 (1, Q, Q Q')]
    S_ab = A_a M2 A_b' + rho (A_a M1 (r_b.v') + A_b M1 (r_a.v')) + M0 (rho^2 (r_a.v')(r_b.v') + r_a.r_b)

which is exact. Source: Kawata et al. 2025, Lemma C.7, whose noise terms these are; the closed forms are ours.
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract import Initial, Labelled
from derivations.kawata.initial import join
from derivations.kawata.parameters import ACTIVATIONS, Parameters, degree
from derivations.kawata.population import teacher_series
from derivations.kawata.shifted import hermite_functions

OUTER = 60
"""Nodes in z0: a polynomial of degree 2 p* + 2 times sigma'^2 and the density, on one side of the kink for relu."""
CHUNK = 128
"""Number of neurons whose moments are computed together; it limits the memory."""
TINY = 1e-8


@dataclasses.dataclass(frozen=True)
class Sample:
    """Constants of the moments of one sample, besides the overlaps.

    These are sizes, the kind of activation, length of the means, second layer `a` and biases `b` (N,), coefficients of
    the activation `series` (1 or N, degrees), the frame's Gram matrix, dimension, variance of the label noise, the
    links' coefficients `local` and `remote` (C, degrees), and nodes and weights.
    """

    C: int
    kind: int
    rho: float
    a: np.ndarray
    b: np.ndarray
    series: np.ndarray
    gram: np.ndarray
    d: int
    noise: float
    local: np.ndarray
    remote: np.ndarray
    nodes: tuple[np.ndarray, ...]


def sample(initial: Initial) -> Sample:
    """Return the constants of the moments of one sample, for an initial condition."""
    p, c = initial.parameters, initial.constants
    gram, top = np.asarray(c["gram"], float), degree(p) + 1
    local, remote = teacher_series(p, gram)
    a, b, series = (np.asarray(c[name], float) for name in ("a", "b", "sigma"))
    return Sample(
        p.C, ACTIVATIONS.index(p.activation), float(p.rho), a, b, series, gram, int(p.d), float(p.zeta) ** 2,
        local[:, :top], remote[:, :top], nodes(p),
    )  # fmt: skip


def nodes(p: Parameters) -> tuple[np.ndarray, ...]:
    """Nodes and weights of z0 (Legendre on [0, 1] for relu, whose kink moves; else Hermite), and of z1, z2."""
    if p.activation == "relu":
        x, w = np.polynomial.legendre.leggauss(OUTER)
        x, w = (x + 1) / 2, w / 2
    else:
        x, w = np.polynomial.hermite_e.hermegauss(OUTER)
        w = w / np.sqrt(2 * np.pi)
    u, v = np.polynomial.hermite_e.hermegauss(degree(p) + 2)  # exact for the degree 2 p* + 2 of y^2 Q^2
    return x, w, u, v / np.sqrt(2 * np.pi)


def slope(kind: int, t: Any, series: Any) -> Any:
    """sigma'(t), with the coefficients of a polynomial along the last axis of `series`."""
    if kind == 0:
        return np.where(t > 0, 1.0, 0.0) + 0.0 * t
    if kind == 1:
        h = hermite_functions(np, t, max(series.shape[-1] - 2, 0))
        return sum((series[..., n] * math.sqrt(n) * h[n - 1] for n in range(1, series.shape[-1])), 0.0 * t)
    if kind in (3, 4):
        return np.exp(t) if kind == 3 else -np.sin(t)
    return (2.0 if kind == 2 else 1.0) * np.exp(-t * t / 2) / math.sqrt(2 * math.pi)


def evaluate(coefficients: Any, u: Any) -> Any:
    """sum_n c_n h_n(u)."""
    h = hermite_functions(np, u, max(coefficients.shape[-1] - 1, 1))
    return sum((coefficients[n] * h[n] for n in range(coefficients.shape[-1])), 0.0 * u)


def quotient(top: Any, bottom: Any) -> Any:
    """top/bottom, and 0 if bottom is 0."""
    return np.where(bottom > TINY, top / np.where(bottom > TINY, bottom, 1.0), 0.0)


def root(square: Any) -> Any:
    """The square root of a number that only rounding can make negative."""
    return np.sqrt(np.maximum(square, 0.0))


def given_cluster(m: Any, c: int, p: Sample) -> tuple[Any, Any]:
    """D_c (N,) and S_c (N, n, n) of neurons with overlaps m (N, n)."""
    C, kind, rho, a, b, series, gram, d, noise = p.C, p.kind, p.rho, p.a, p.b, p.series, p.gram, p.d, p.noise
    local, remote, (x0, w0, x1, w1) = p.local, p.remote, p.nodes
    k, x, v = m[:, c], m[:, C], m[:, C + 1 + c]
    one = root(1 - k * k)
    low = quotient(gram[c, C] - k * x, one)
    two = root(1 - x * x - low * low)
    # Coordinates of every frame vector along e1, e2; the rest of it is orthogonal to w, e1 and e2.
    first = quotient(gram[c] - k[:, None] * m, one[:, None])
    second = quotient(gram[C] - x[:, None] * m - low[:, None] * first, two[:, None])
    rest = gram - m[:, :, None] * m[:, None] - first[:, :, None] * first[:, None] - second[:, :, None] * second[:, None]
    mean = rho * np.stack([first[:, C + 1 + c], second[:, C + 1 + c]])
    shift = rho * v + b
    if kind == 0:
        start = np.maximum(-9.0, -shift)[:, None]
        width = np.maximum(start + 1.0, 9.0) - start
        z0 = start + width * x0
        weight = w0 * width * np.exp(-z0 * z0 / 2) / math.sqrt(2 * math.pi)
    else:
        z0, weight = x0 + 0.0 * shift[:, None], w0 + 0.0 * shift[:, None]
    weight = weight * (a[:, None] * slope(kind, z0 + shift[:, None], series[:, None, :])) ** 2
    u = k[:, None, None] * z0[..., None] + one[:, None, None] * x1
    q = x[:, None, None] * z0[..., None] + low[:, None, None] * x1
    y = evaluate(local[c], u)[..., None] + evaluate(remote[c], q[..., None] + two[:, None, None, None] * x1)
    square = weight[:, :, None, None] * (y * y + noise) * w1[:, None] * w1
    Q = np.stack([x1[:, None] + 0.0 * x1, 0.0 * x1[:, None] + x1])[:, None] + mean[:, :, None, None]
    M0 = square.sum((1, 2, 3))
    inner = square.sum(1)
    M1 = np.einsum("nij,pnij->pn", inner, Q)
    M2 = np.einsum("nij,pnij,qnij->pqn", inner, Q, Q)
    far = rest[:, C + 1 + c, C + 1 + c]
    D = M2[0, 0] + M2[1, 1] + M0 * (rho * rho * far + d - 3)
    A = np.stack([first, second])  # (2, N, n)
    along, away = np.einsum("pna,pn->na", A, M1), rho * rest[:, C + 1 + c]
    S = np.einsum("pna,pqn,qnb->nab", A, M2, A) + M0[:, None, None] * (away[:, :, None] * away[:, None] + rest)
    return D, S + along[:, :, None] * away[:, None] + away[:, :, None] * along[:, None]


def one_sample(m: Any, weight: Any, p: Sample) -> tuple[Any, Any]:
    """D (N,) and S (N, n, n), clusters averaged with `weight` (N, C)."""
    parts = [given_cluster(m, c, p) for c in range(p.C)]
    D = sum(weight[:, c] * parts[c][0] for c in range(p.C))
    return D, sum(weight[:, c, None, None] * parts[c][1] for c in range(p.C))


def moments(initial: Initial, state: Mapping[str, np.ndarray] | None = None) -> tuple[np.ndarray, np.ndarray]:
    """D (..., N) and S (..., N, 2C + 1, 2C + 1) of one routed sample, at a state (by default the start).

    Clusters are averaged with the weights with which they reach the neuron's expert: equally, or behind a gate or with
    perfect routing by its shares.

    >>> import numpy as np
    >>> from derivations.kawata import initial
    >>> from derivations.kawata.parameters import Parameters
    >>> p = Parameters(C=1, s=(0.0,), k_star=3, rho=0.0, d=10, activation="polynomial", sigma=(0, 0, 0, 1.0), neurons=1)
    >>> arrays = {"kappa": np.ones((1, 1)), "nu": np.zeros((1, 1)), "a": np.ones(1), "xi": np.zeros(1), "b": [0.0]}
    >>> D, S = moments(initial.from_arrays(p, arrays))  # teacher = student = h_3: D = 93 (d - 1) where they are aligned
    >>> round(float(D[0]), 9)
    837.0
    """
    m, c = join(initial.state if state is None else state), initial.constants
    share, whole = np.asarray(c["share"], float), sample(initial)
    weight = np.divide(share, share.sum(axis=1, keepdims=True), out=np.zeros_like(share), where=share > 0)
    D, S = np.zeros(m.shape[:-1]), np.zeros((*m.shape, m.shape[-1]))
    for index in np.ndindex(m.shape[:-2]):
        for low in range(0, m.shape[-2], CHUNK):
            part = slice(low, low + CHUNK)
            series = whole.series[part] if len(whole.series) > 1 else whole.series
            some = dataclasses.replace(whole, a=whole.a[part], b=whole.b[part], series=series)
            at = (*index, part)
            D[at], S[at] = one_sample(m[at], weight[part], some)
    return D, S


def observe(initial: Initial, state: Mapping[str, np.ndarray]) -> Labelled:
    """D and S along a run."""
    D, S = moments(initial, state)
    return {
        "D": (("time", "neuron"), D, "E|g|^2 of the gradient of one routed sample"),
        "S": (("time", "neuron", "frame", "frame_"), S, "E[(u_a.g)(u_b.g)], second moments along the frame"),
    }

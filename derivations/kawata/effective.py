"""Tier `effective`: the flow with what a finite step takes from it, and the moments of the one-sample gradient.

A step of a routed sample moves w by h g, g = y a sigma'(w.x + b)(x - (w.x) w), and divides by the length, so that on
average an overlap changes by h (drift) - (h^2/2) D m with D = E|g|^2, and spreads by h sqrt(S) with
S_ab = E[(u_a.g)(u_b.g)] for the frame vectors u_a.  On the clock (time = eta steps, h = eta pi/J) that is

    dm/dt = F(m) - (eta/2) (1/J^2) sum_c (P_c pi^2 / C) D_c(m) m

with P_c the chance that a sample of cluster c reaches the expert, and pi its softmax weight (1/M in Phase I, 1 after).

Means given the cluster: with z0 = w.z and an orthonormal pair e1, e2 of (w*_c, w*_g) off w,
v_c = nu w + al1 e1 + al2 e2 + v', P u_a = A_a (e1, e2) + r_a and Q = (z1 + rho al1, z2 + rho al2) the fields,

    D = M2_11 + M2_22 + M0 (rho^2 |v'|^2 + d - 3),    M0, M1, M2 = E[(y a sigma')^2 (1, Q, Q Q')]
    S_ab = A_a M2 A_b' + rho (A_a M1 (r_b.v') + A_b M1 (r_a.v')) + M0 (rho^2 (r_a.v')(r_b.v') + r_a.r_b)

which is exact.  Source: Kawata et al. 2025, Lemma C.7, whose noise terms these are; the closed forms are ours.
"""

import dataclasses
import functools
from collections.abc import Mapping

import numpy as np

from derivations.contract import Equations, Initial, Labelled, Smooth, Tier
from derivations.kawata import effective_arrays, population
from derivations.kawata.effective_loops import Arguments
from derivations.kawata.initial import join
from derivations.kawata.parameters import Parameters, degree

LOOPS = (
    *population.LOOPS,
    *(
        f"derivations.kawata.effective_loops:{name}"
        for name in ("slope_at", "one_sample", "effective_flow", "effective_loss")
    ),
)
OUTER = 60
"""Nodes in z0: a polynomial of degree 2 p* + 2 times sigma'^2 and the density, on one side of the kink for relu."""
CHUNK = 128
"""Neurons whose moments are taken at once; bounds the memory."""


def equations(p: Parameters, softmax: float) -> Equations:
    """The exact flow with the contraction of steps of size `-p eta=`; `softmax` is the weight pi of a routed sample."""
    found = population.neuronwise(p, "exact")
    return dataclasses.replace(
        found,
        about=Tier(
            "effective",
            validity="the mean of SGD with steps of size eta while h^2 |g|^2 is small, h = eta/J (times 1/M in "
            "Phase I): its relative error is (3/4) h^2 E|g|^4/E|g|^2, and d h^2 below 1e-4 was seen to be enough",
            neglects="higher orders in the step size, and the spread of the replicas (S), which moves the mean of what "
            "is nonlinear",
        ),
        advance=Smooth(),
        code=dataclasses.replace(
            found.code,
            structure=f"{found.code.structure}_effective",
            loops=LOOPS,
            roles={"flow": "effective_flow", "loss": "effective_loss"},
            arrays=effective_arrays.build,
            takes=Arguments,
        ),
        arguments=functools.partial(arguments, softmax=softmax),
        observables=dataclasses.replace(
            found.observables,
            observe=observe,
            invariants=lambda initial, state: {"ball_excess": population.invariants(initial, state)["ball_excess"]},
        ),
    )


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


def arguments(initial: Initial, softmax: float = 1.0) -> Arguments:
    """The arguments of the exact flow, then d, the factor of D (N, C), the links, the noise and the nodes.

    A cluster's share in an update is P_c pi; the factor has P_c pi^2, with pi = `softmax`.
    """
    p, c = initial.parameters, initial.constants
    local, remote = population.teacher_series(p, np.asarray(c["gram"], float))  # remote holds s_c gamma
    factor = np.ascontiguousarray(0.5 * p.eta / p.J**2 / p.C * softmax * np.asarray(c["share"], float))
    top = degree(p) + 1
    tables = (np.ascontiguousarray(local[:, :top]), np.ascontiguousarray(remote[:, :top]))
    return Arguments(*population.arguments(initial), int(p.d), factor, *tables, float(p.zeta) ** 2, *nodes(p))


def moments(initial: Initial, state: Mapping[str, np.ndarray] | None = None) -> tuple[np.ndarray, np.ndarray]:
    """D (..., N) and S (..., N, 2C + 1, 2C + 1) of one routed sample, at a state (the start unless given).

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
    share, args = np.asarray(c["share"], float), arguments(initial)
    weight = np.divide(share, share.sum(axis=1, keepdims=True), out=np.zeros_like(share), where=share > 0)
    D, S = np.zeros(m.shape[:-1]), np.zeros((*m.shape, m.shape[-1]))
    for index in np.ndindex(m.shape[:-2]):
        for low in range(0, m.shape[-2], CHUNK):
            part = slice(low, low + CHUNK)
            series = args.series[part] if len(args.series) > 1 else args.series
            own = args._replace(a=args.a[part], b=args.b[part], series=series)
            at = (*index, part)
            D[at], S[at] = effective_arrays.one_sample(np, m[at], weight[part], own)
    return D, S


def observe(initial: Initial, state: Mapping[str, np.ndarray]) -> Labelled:
    """D and S along a run."""
    D, S = moments(initial, state)
    return {
        "D": (("time", "neuron"), D, "E|g|^2 of the gradient of one routed sample"),
        "S": (("time", "neuron", "frame", "frame_"), S, "E[(u_a.g)(u_b.g)], second moments along the frame"),
    }

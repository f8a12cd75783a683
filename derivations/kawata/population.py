"""The population gradient flow of system `kawata`, closed on the 2C + 1 overlaps of each neuron.

1. Under the correlation loss a neuron's gradient depends on no other neuron (Section 3.1).
2. Its potential is U = lambda sum_c p_c H_c(kappa_c, xi, nu_c), a finite sum over degrees (`kernels.potential`).
3. On the sphere dw/dt = (I - w w^T) sum_a g_a u_a with g = dU/dm, hence with the Gram matrix G of the frame

       dm_a/dt = sum_b G_ab g_b - m_a R,    R = sum_b m_b g_b.

Exact at every dimension, for links of finite degree and any frame; the paper's drift leaves the means out of R.
`-p tier=` names the reduced forms; time is that of the step size, 1/J and 1/M^2 stand in the right-hand side.
"""

import functools
import math
from collections.abc import Mapping

import numpy as np

from derivations.contract import (
    Code,
    Component,
    Crossing,
    Dense,
    Equations,
    Independent,
    Initial,
    Kernel,
    Labelled,
    Layout,
    Observables,
    Tier,
)
from derivations.kawata import arrays, summary
from derivations.kawata.initial import outside
from derivations.kawata.loops import Arguments
from derivations.kawata.parameters import ACTIVATIONS, Parameters, links, table_degree, weights_of_global

STATE = (
    Component("kappa", ("neuron", "cluster"), symbol="kappa_{m,j,c}", meaning="local alignment w . w*_c"),
    Component("xi", ("neuron",), symbol="xi_{m,j,g}", meaning="global alignment w . w*_g"),
    Component("nu", ("neuron", "cluster"), symbol="w_{mj} . v_c", meaning="overlap with the cluster means w . v_c"),
)
LOOPS = tuple(
    f"derivations.kawata.loops:{name}"
    for name in (
        "shifted",
        "gradient",
        "block_start",
        "alone",
        "block_slope",
        "hessian",
        "jacobian_alone",
        "block_jacobian",
        "loss",
        "flow",
    )
)


MODES = {
    "paper": (
        0,
        "as exact, but for the term that it leaves out",
        "the part -m_a sum_c nu_c dU/dnu_c of the projection on the sphere",
    ),
    "exact": (
        1,
        "exact for Gaussian clusters at every d, links of finite degree and any frame, in the limit of small step size "
        "(gradient flow on the population correlation loss)",
        "nothing",
    ),
    "R1": (
        2,
        "exact while the overlaps with the means do not move",
        "the motion of nu, and its part of the projection",
    ),
    "R2": (
        3,
        "one task alone: kappa' = U_kappa (1 - kappa^2), exact for C = 1, s = 0 and rho = 0",
        "the motion of nu and every coupling of two tasks",
    ),
    "R4": (
        4,
        "one local task with its mean on their circle, exact for C = 1, s = 0: nu grows with kappa^2",
        "the global task, and what different clusters do to each other",
    ),
}
"""Tiers with the state of every neuron: the mode of the loops, where they hold, what they neglect."""


def neuronwise(parameters: Parameters, tier: str) -> Equations:
    """The exact flow, that of the paper's proofs, and R1, R2, R4: neuron by neuron, in one state.

    Source: Kawata et al. 2025, Lemmas B.9, B.10 and C.7.
    """
    C = parameters.C
    mode, validity, neglects = MODES[tier]
    return Equations(
        about=Tier(name=tier, validity=validity, neglects=neglects),
        advance=Independent(2 * C + 1),
        code=Code(
            structure=f"kawata_degree{table_degree(parameters)}",
            kernels=functools.partial(_kernels, table_degree(parameters)),
            loops=LOOPS,
            roles={"flow": "flow", "loss": "loss"},
            arrays=arrays.build_exact,
            takes=Arguments,
        ),
        state=STATE,
        layout=Layout(overlaps(C), rows=True),
        arguments=functools.partial(arguments, mode=mode),
        crossings=crossings(parameters),
        observables=Observables(constants=constants, invariants=invariants, summary=summary.summarise),
    )


def overlaps(C: int) -> tuple[Dense, ...]:
    """Where the 2C + 1 overlaps of a neuron lie in its row."""
    return Dense("kappa", (C,)), Dense("xi", ()), Dense("nu", (C,))


def _kernels(degree: int) -> dict[str, Kernel]:
    """The kernels, derived when they are needed: a compilation found in the cache needs none."""
    from derivations.kawata.kernels import cluster_kernels

    return cluster_kernels(degree)


def crossings(parameters: Parameters) -> tuple[Crossing, ...]:
    """The hitting times kept for every run: when each local and the global overlap reach the threshold in size."""
    level = parameters.threshold
    return (
        Crossing("T_kappa", "kappa", level, absolute=True, meaning=f"first time |kappa| reaches {level:g}"),
        Crossing("T_xi", "xi", level, absolute=True, meaning=f"first time |xi| reaches {level:g}"),
    )


def shift_series(series: np.ndarray, by: float) -> np.ndarray:
    """The coefficients of u -> f(u + by): beta_i(by) = sum_{l >= i} beta_l sqrt(l!/i!) by^(l-i) / (l-i)!."""
    found = np.zeros(len(series))
    for i in range(len(series)):
        for order in range(i, len(series)):
            scale = math.sqrt(math.factorial(order) / math.factorial(i)) / math.factorial(order - i)
            found[i] += series[order] * scale * by ** (order - i)
    return found


def teacher_series(parameters: Parameters, gram: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(local (C, p*+1), remote (C, p*+1)): beta_c and s_c gamma, shifted where a mean overlaps with a teacher."""
    p, C = parameters, parameters.C
    rows, s = np.zeros((C + 1, table_degree(p) + 1)), weights_of_global(p)
    rows[:, : len(links(p)[0])] = links(p)
    local = np.array([shift_series(rows[c], p.rho * gram[C + 1 + c, c]) for c in range(C)])
    remote = np.array([s[c] * shift_series(rows[C], p.rho * gram[C + 1 + c, C]) for c in range(C)])
    return local, remote


def arguments(initial: Initial, mode: int = 1) -> Arguments:
    """The run-time arguments of `flow` and `loss`, in their order."""
    p, fixed = initial.parameters, initial.constants
    gram = np.ascontiguousarray(fixed["gram"], float)
    local, remote = teacher_series(p, gram)
    used = np.flatnonzero((local != 0).any(axis=0) | (remote != 0).any(axis=0))
    low = int(used[0]) if used.size else table_degree(p)
    kind = ACTIVATIONS.index(p.activation)
    weight = np.ascontiguousarray(fixed["share"], float) / (p.J * p.C)
    orthonormal = int(np.array_equal(gram, np.eye(len(gram))))
    vectors = [np.ascontiguousarray(fixed[name], float) for name in ("a", "b", "sigma")]
    rows = (*vectors, weight, local, remote, gram)
    return Arguments._make((p.C, table_degree(p), low, kind, float(p.rho), *rows, orthonormal, mode))


def constants(initial: Initial) -> Labelled:
    """What stays fixed along a run: second layer, biases, the frame, and which samples reach which neuron."""
    c = initial.constants
    found = {
        "a": (("neuron",), c["a"], "second-layer weight"),
        "b": (("neuron",), c["b"], "bias"),
        "sigma": (("row", "degree"), c["sigma"], "orthonormal coefficients of a polynomial activation"),
        "gram": (("frame", "frame_"), c["gram"], "Gram matrix of w*_1.., w*_g, v_1.."),
        "share": (("neuron", "cluster"), c["share"], "weight of a cluster's samples in the neuron's update, times C"),
    }
    if "directions" in c:
        found["directions"] = (("neuron", "neuron_"), c["directions"], "Gram matrix of the directions off the frame")
    return found | summary.extra_constants(c)


def invariants(initial: Initial, state: Mapping[str, np.ndarray]) -> dict[str, float]:
    """What the exact flow preserves, as measured: the unit ball, and a loss that only falls."""
    excess = float(max(0.0, -outside(state, initial.constants["gram"]).min(initial=0.0)))
    increase = float(np.diff(state["loss"]).max(initial=0.0)) if "loss" in state else 0.0
    return {"ball_excess": excess, "loss_increase": increase}

"""The population gradient flow of system `kawata`, closed on the 2C + 1 overlaps of each neuron.

1. Under the correlation loss a neuron's gradient depends on no other neuron (Section 3.1).
2. Its potential is U = lambda sum_c p_c H_c(kappa_c, xi, nu_c), a finite sum over degrees (`tiers.flow.potential`).
3. On the sphere dw/dt = (I - w w^T) sum_a g_a u_a with g = dU/dm, hence with the Gram matrix G of the frame

       dm_a/dt = sum_b G_ab g_b - m_a R,    R = sum_b m_b g_b.

Exact at every dimension, for links of finite degree and any frame; the paper's drift omits the means in R. `-p tier=`
selects the reduced forms. Time is steps times step size; the right-hand side contains 1/J and 1/M^2.
"""

import math
from collections.abc import Mapping

import numpy as np

from derivations.contract import Crossing, Initial, Labelled
from derivations.kawata import summary
from derivations.kawata.initial import outside
from derivations.kawata.parameters import Parameters, links, table_degree, weights_of_global


def crossings(parameters: Parameters) -> tuple[Crossing, ...]:
    """The hitting times stored for every run: each local and the global overlap reach the threshold in absolute
    value.
    """
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
    """(local (C, p*+1), remote (C, p*+1)): beta_c and s_c gamma, shifted if a mean overlaps with a teacher."""
    p, C = parameters, parameters.C
    rows, s = np.zeros((C + 1, table_degree(p) + 1)), weights_of_global(p)
    rows[:, : len(links(p)[0])] = links(p)
    local = np.array([shift_series(rows[c], p.rho * gram[C + 1 + c, c]) for c in range(C)])
    remote = np.array([s[c] * shift_series(rows[C], p.rho * gram[C + 1 + c, C]) for c in range(C)])
    return local, remote


def constants(initial: Initial) -> Labelled:
    """Return the constants of a run: second layer, biases, the frame, and the samples of each neuron."""
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
    """Return measured values of the invariants of the exact flow: the unit ball, and a decreasing loss."""
    excess = float(max(0.0, -outside(state, initial.constants["gram"]).min(initial=0.0)))
    increase = float(np.diff(state["loss"]).max(initial=0.0)) if "loss" in state else 0.0
    return {"ball_excess": excess, "loss_increase": increase}

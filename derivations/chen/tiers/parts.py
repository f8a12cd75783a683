"""Common terms of the tiers on the specialised manifold of `chen`."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.chen import route, rules
from derivations.chen.nodes import rule
from derivations.chen.parameters import Parameters
from derivations.chen.tiers.vocabulary import (
    CHANCE_WINS,
    GCEN,
    K_SIZE,
    LAYER,
    M_SIZE,
    PAPER,
    PI,
    RHO,
    UNITARY,
    K,
    L,
    M,
    Q,
    law,
    nodes_of,
    routing,
)
from derivations.contract import Initial, Labelled
from derivations.indexed import nested
from derivations.statement import Base, Definition, Named, Rule, function, sp

STRENGTHS = 16
"""Nodes of the laws of alpha and gamma: their integrands are analytic."""
CENTRES = 12
"""Nodes of beta on every piece between two kinks, or 24 points if noise smooths them."""
ZETAS = 64
"""Antithetic samples of the noise patches in tier specnoise."""
NA, NB, NC, KINKS = sp.symbols("n_a n_b n_c n_k", integer=True, positive=True)
LOW, HIGH = sp.symbols("beta_1 beta_2", real=True)
I, R = sp.Idx("i", NA), sp.Idx("r", NC)
XA, WA, XB, WB, XC, WC = map(Base, ("x_a", "w_a", "x_b", "w_b", "x_c", "w_c"))
BETA, W_BETA = Base("beta"), Base("w_beta")
MEMBER = Base("member")
OWN, OTHER, WEIGH, PUSH = map(Base, ("own", "other", "G", "T"))
SOURCE = f"{PAPER}, Algorithm 1 with equations (3.1) and (3.4); the reduction is ours"
Q_SYMBOLS = {
    "own": ("\\omega", "ω"),
    "other": ("\\bar\\omega", "ω̄"),
    "net": ("N", "N"),
    "size": ("C", "C"),
    "kstar": ("k^*", "k*"),
}


def centres(p: Parameters, noisy: bool) -> tuple[tuple[Named, ...], tuple[Definition, ...], Any, Any, Any]:
    """Constants and definitions of the nodes of beta, cut at the kinks of the routing, and (size, node, weight)."""
    cut = p.laws == "uniform" and len(p.beta) == 2 and p.beta[0] < p.beta[1] and not noisy
    if not cut:
        n = sp.Idx("n", NB)
        return tuple(nodes_of(p, "beta", "b", NB, n, 2 * CENTRES)), (), n, XB[n], WB[n]
    n = sp.Idx("n", KINKS)
    pieces = Rule("pieces", rules.pieces, compiled="derivations.chen.routing_loops:pieces")
    note = "12 Gauss-Legendre nodes on every piece between the points where beta |g_m - g_l| = 1, and their weights"
    shared = (
        Named(LOW, "least strength of a centre", p.beta[0]),
        Named(HIGH, "largest", p.beta[1]),
        Named(KINKS, "nodes of beta", "12 * (M * (M - 1) // 2 + 1)", whole=True),
    )
    means = function("pieces")(GCEN[L, K], LOW, HIGH)
    found = Definition((BETA[K, n], W_BETA[K, n]), (GCEN, LOW, HIGH), note, rule=pieces, means=means)
    return shared, (found,), n, BETA[K, n], W_BETA[K, n]


def bind(initial: Initial) -> dict[str, Any]:
    """The numbers of the constants in a run."""
    p = initial.parameters
    found = {"M": p.M, "K": p.K, "rho": p.rho, "delta_c": p.layer, "n_k": 12 * (p.M * (p.M - 1) // 2 + 1)}
    nodes = {"alpha": STRENGTHS, "beta": 2 * CENTRES, "gamma": STRENGTHS}
    for name, short in (("alpha", "a"), ("beta", "b"), ("gamma", "c")):
        x, w = law(p, name, nodes[name])
        found |= {f"n_{short}": len(x), f"x_{short}": x, f"w_{short}": w}
    return {**found, "beta_1": p.beta[0], "beta_2": p.beta[-1]}


def mean_weights(
    strength: Any, gate: Any, own: Any, other: Any, elsewhere: Any = None
) -> tuple[Definition, Definition]:
    """E alpha^3 q(pi alpha^3 s^3) on the expert's cluster, E gamma^3 tanh(pi gamma^3 s^3/2)/2 elsewhere (cubic
    experts).

    pi is `gate`, and on another cluster `elsewhere` if given.
    """
    a, c, far = XA[I] ** 3, XC[R] ** 3, gate if elsewhere is None else elsewhere
    return (
        Definition((own,), sp.Sum(WA[I] * a * Q["q"](gate * a * strength**3), I), "weight of the own cluster"),
        Definition((other,), sp.Sum(WC[R] * c * sp.tanh(far * c * strength**3 / 2) / 2, R), "of another, both signs"),
    )


def sizes_and_laws(p: Parameters, given: tuple[Named, ...], experts: int, groups: str) -> list[Named]:
    """The common constants of both forms of the manifold."""
    return [
        Named(M_SIZE, "experts", experts),
        Named(K_SIZE, groups, p.K),
        Named(RHO, "router step over expert step", p.rho),
        Named(LAYER, "coherence below which an expert slows down", p.layer),
        *given,
        *nodes_of(p, "alpha", "a", NA, I, STRENGTHS),
        *nodes_of(p, "gamma", "c", NC, R, STRENGTHS),
    ]


def weigh(at: tuple[Any, ...], member: Any, strength: Any, share: Any, targets: tuple[Any, Any]) -> list[Definition]:
    """Routing, the weight of a cluster in an expert's gradient, its mean and its mean size (`targets`)."""
    here, whole = (M, *at), at if isinstance(strength, sp.Indexed) else (M, *at)
    own, other = mean_weights(strength, PI[here], OWN[here], OTHER[here])
    mix = member * OWN[here] - (1 - member) * OTHER[here] / (K_SIZE - 1)
    net, size = targets
    return [
        *routing(at),
        own,
        other,
        Definition((WEIGH[here],), CHANCE_WINS[here] * PI[here] * mix, "weight of a cluster in an expert's gradient"),
        Definition((net,), nested(share * WEIGH[here], *whole), "mean gradient"),
        Definition((size,), nested(share * sp.Abs(WEIGH[here]), *whole), "mean size of the gradient"),
    ]


def unit_speed(net: Any, size: Any) -> Any:
    """The speed of a strength: the sign of its gradient, smaller if the gradient is incoherent."""
    return net * UNITARY["per"](sp.Max(sp.Abs(net), LAYER * size))


def strength(initial: Initial) -> np.ndarray:
    """s_m (M,): the alignment of filter j*_m of expert m with feature k*_m."""
    k, j = initial.constants["kstar"], initial.constants["jstar"]
    return initial.state["feat"][np.arange(len(k)), j, k].copy()


def observe(initial: Initial, state: Mapping[str, np.ndarray]) -> Labelled:
    """Load, dispatch entropy and the share routed to the right group, under routing noise; and feat and gcen."""
    p = initial.parameters
    found: dict[str, Any] = {}
    kstar = np.arange(p.M) % p.K if "D" in state else np.asarray(initial.constants["kstar"])
    member = kstar[:, None] == np.arange(p.K)
    if "D" in state:
        gcen = state["D"][:, None, None] * (member - member.mean(axis=0))
        strength = np.repeat(state["s"][:, None], p.M, axis=1)
        found["gcen"] = (("time", "expert", "feature"), gcen, "alignment of a router with a cluster centre")
    else:
        gcen, strength = state["gcen"], state["strength"]
    feat = np.zeros((len(gcen), p.M, p.J, p.K))
    feat[:, np.arange(p.M), initial.constants["jstar"] if "D" not in state else 0, kstar] = strength
    x, w = rule(p.beta, p.laws, 2 * CENTRES)
    chances = route.probabilities(np.moveaxis(gcen, 1, 2)[:, :, None, :] * x[:, None])
    counts = np.einsum("b,tkbm->tkm", w, chances) / p.K
    inside = (counts * member.T).sum(axis=(1, 2))
    entropy = np.array([route.entropy(each) for each in counts])
    found["feat"] = (("time", "expert", "filter", "feature"), feat, "alignment of a filter with a feature signal")
    found["load"] = (("time", "expert"), counts.sum(axis=1), "share of examples sent to expert m under routing noise")
    found["entropy_noisy"] = (("time",), entropy, "dispatch entropy under routing noise")
    found["routed_in"] = (("time",), inside, "share of examples routed to their own group under routing noise")
    return found

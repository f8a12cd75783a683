"""The population dynamics of system `pmoe` in pattern space.

The derivation, step by step:

1. Every patch is one of P = p + 2 patterns, so gradients are combinations of patterns and the inner products
   h_{r,s}(z) = <w_{r,s}, z>, g_s(z) = <w_s, z> close, with the Gram matrix Gam of the patterns as only constant.
2. A sample is its counts N_x(z); the l patches of the largest g_s are n_s(z; x) = clip(l - copies ranked above, 0,
N_x(z));
   f(x) = (1/l) sum_s sum_z n_s G_s phi_s(z), phi_s(z) = sum_r a_{r,s} ReLU(h_{r,s}(z))  (equations (1) and (4),
   corrected).
3. With v = 1/(1 + e^(y f)), c_s(z) = E[y v n_s G_s]/l and d_s(z) = E[y v n_s G_s (phi_s(z) - mean)]/l one training
step of
   size eta is, in flow time eta m,  h += (eta m/m) a Gam (1(h >= 0) c_s),  g += lam (eta m) Gam d_s   (L0, exact).
4. With the activation pattern frozen, phi_s itself closes: phi_s += (eta m) (Gam o A_s/m) c_s   (L1, the paper's pseudo
   network); A_s -> (m/k) kappa0(cosine) at infinite width   (L2).

Source: Chowdhury et al. 2023, Section 4 and Appendices E-H; the reduction to pattern space is ours.
"""

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract import (
    Code,
    Component,
    Dense,
    Equations,
    Initial,
    Labelled,
    Layout,
    Observables,
    Recursion,
    Smooth,
    Tier,
)
from derivations.pmoe import arrays
from derivations.pmoe.initial import response
from derivations.pmoe.loops import Arguments
from derivations.pmoe.parameters import Parameters
from derivations.pmoe.summary import constants, summarise

ANY = (-np.inf, np.inf)
PAIR = ("expert", "pattern")
PRE = Component("pre", ("expert", "neuron", "pattern"), ANY, "<w_{r,s}, z>", "pre-activation of a neuron on a pattern")
RESPONSE = Component("response", PAIR, ANY, "phi_s(z)", "response of an expert to a pattern")
ROUTE = Component("route", PAIR, ANY, "<w_s, z>", "route value of a pattern")
WATCHED = (
    Component("error", (), (0.0, 1.0), "P(y f <= 0)", "probability of a wrong or zero output"),
    Component("v1", (), (0.0, 1.0), "v_1", "mean of v = 1/(1 + e^(y f)) in class +1"),
    Component("v2", (), (0.0, 1.0), "v_2", "mean of v in class -1"),
    Component(
        "assumption", (), (0.0, 1.0), "Assumption 4.4", "1 where some expert gives o1, and some o2, the top gate"
    ),
    Component("routed", PAIR, (0.0, np.inf), "E n_s(z)", "mean number of routed copies of a pattern"),
    Component("finds1", ("expert",), (0.0, 1.0), "P(o1 in J_s | +1)", "share of class +1 whose o1 is routed"),
    Component("finds2", ("expert",), (0.0, 1.0), "P(o2 in J_s | -1)", "share of class -1 whose o2 is routed"),
)
SORTED = ("derivations.ranking:largest", "derivations.ranking:rank")
CORE = ("soft_share", "take", "route_row", "drives", "mean_drives", "times", "move_routers")
LOOPS = {
    "l0": (*CORE, "l0_flow_loss", "watch_rows", "l0_watch"),
    "l1": (*CORE, "follow_responses", "l1_flow_loss", "watch_rows", "l1_watch"),
    "l2": (*CORE, "follow_responses", "kernel_of", "l2_flow_loss", "watch_rows", "l1_watch", "l2_watch"),
}
NEGLECTS = {
    "L0": "nothing: it is the population gradient step for patterns that are points",
    "L1": "changes of the neurons' activation pattern (the paper's pseudo network): O(m^(-1/2)) at fixed flow",
    "L2": "also the fluctuations of the frozen pattern at finite width: O((m/k)^(-1/2))",
}


def equations(p: Parameters, tier: str) -> Equations:
    """Training of the experts, with the routers or beside frozen ones, under the logistic loss: `L0`, `L1` or `L2`."""
    level = tier.lower()
    neurons = tier == "L0"
    recursion = recursive(p, tier)
    first = PRE if neurons else RESPONSE
    return Equations(
        about=Tier(name=tier, validity=validity(p, tier, recursion), neglects=NEGLECTS[tier]),
        advance=advance(recursion),
        code=Code(
            structure=f"pmoe_{level}",
            kernels=_limit if tier == "L2" else _network,
            loops=(*SORTED, *(f"derivations.pmoe.loops:{name}" for name in LOOPS[level])),
            roles={"flow_loss": f"{level}_flow_loss", "watch": f"{level}_watch"},
            arrays=functools.partial(arrays.build, level),
            takes=Arguments,
        ),
        state=(first, ROUTE),
        layout=flat(p, Dense("pre", (p.k, p.m // p.k, p.width)) if neurons else Dense("response", (p.k, p.width))),
        arguments=functools.partial(arguments, level=level),
        watched=WATCHED,
        observables=Observables(
            observe=observe,
            constants=constants,
            invariants=functools.partial(invariants, p=p),
            summary=summarise,
        ),
    )


def advance(recursion: bool) -> Recursion | Smooth:
    """The map of training steps, or a flow whose kinks are where route values change order."""
    return Recursion("step") if recursion else Smooth(between="interpolant", kinks=True)


def recursive(p: Parameters, tier: str) -> bool:
    """Whether a level is a recursion: neurons switch, and routing by rank jumps."""
    return tier == "L0" or (p.mode == "joint" and p.lam > 0 and p.tie_rule != "fractional")


def validity(p: Parameters, tier: str, recursion: bool) -> str:
    """What the level holds for, in one sentence."""
    said = "the map of one step of size eta, exact at every width" if tier == "L0" else "the limit of small steps"
    if recursion and tier != "L0":
        said = "the map of one step of size eta: routing by rank is discontinuous, and slides where route values tie"
    ties = {"fractional": "; top-l softened", "jitter": "; drift averaged over jittered route values"}
    return said + (ties.get(p.tie_rule, "") if p.mode == "joint" else "")


def _network() -> Mapping[str, Any]:
    from derivations.pmoe.kernels import network_kernels

    return network_kernels()


def _limit() -> Mapping[str, Any]:
    from derivations.pmoe.kernels import limit_kernels

    return limit_kernels()


def jitter(p: Parameters) -> np.ndarray:
    """The shifts of the route values (R, k, P): none, or `jitters` normal draws of size `softness` from data_seed."""
    from derivations.pmoe.world import generator

    shape = (p.k, p.width)
    if p.tie_rule != "jitter" or p.mode != "joint":
        return np.zeros((1, *shape))
    return p.softness * generator(p.data_seed, "jitter").standard_normal((p.jitters, *shape))


def arguments(initial: Initial, level: str) -> Arguments:
    """The run-time arguments."""
    c = initial.constants
    if level == "l1":
        return with_held(initial, c["gram"] * c["act"] / initial.parameters.m)
    return with_held(initial, c["out"] if level == "l0" else np.zeros(0))


def with_held(initial: Initial, held: np.ndarray) -> Arguments:
    """The run-time arguments with what stays of the neurons."""
    p, c = initial.parameters, initial.constants
    gate = {"one": 0, "softmax": 1, "frozen": 1, "uniform": 2, "sharp": 3}[p.gate]
    width = p.softness if p.tie_rule == "fractional" and p.mode == "joint" else 0.0
    gate += 10 if width > 0 else 0
    sizes, rows = (p.k, p.m // p.k, p.classes, p.width), (c["counts"], c["label"], c["weight"])
    return Arguments._make((*sizes, int(p.l), gate, float(p.lam), float(width), jitter(p), c["gram"], held, *rows))


def flat(p: Parameters, first: Dense) -> Layout:
    """The flat state: neurons or responses, then route values."""
    return Layout((first, Dense("route", (p.k, p.width))))


def observe(initial: Initial, state: Mapping[str, np.ndarray]) -> Labelled:
    """The responses, where neurons are followed, and the share of them whose activation has changed."""
    if "pre" not in state:
        return {}
    pre, out = state["pre"], initial.constants["out"]
    flipped = (pre >= 0) != (np.asarray(initial.state["pre"]) >= 0)
    return {
        "response": (("time", *PAIR), response(pre, out), f"{RESPONSE.meaning} ({RESPONSE.symbol})"),
        "flips": (("time",), flipped.mean(axis=(1, 2, 3)), "share of (neuron, pattern) whose activation has changed"),
    }


def invariants(initial: Initial, state: Mapping[str, np.ndarray], p: Parameters) -> dict[str, float]:
    """What the dynamics conserves, as measured on the saved states.

    `router_drift`: <w_s, u> for the u with <u, z> = 1 on all patterns is conserved per expert (a softmax covariance
    sums
    to zero), where the patterns are independent; frozen routers do not move at all.
    """
    gram, route = initial.constants["gram"], state["route"]
    found = {}
    if p.lam == 0:
        found["router_drift"] = spread(route)
    elif p.gate == "softmax" and np.linalg.matrix_rank(gram) == len(gram):
        found["router_drift"] = spread(route @ np.linalg.solve(gram, np.ones(len(gram))))
    if "loss" in state:
        found["loss_increase"] = float(np.diff(state["loss"]).max(initial=0.0))
    return found


def spread(values: np.ndarray) -> float:
    """The largest change along the run."""
    return float(np.abs(values - values[0]).max())

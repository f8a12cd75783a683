"""The population dynamics of system `pmoe` with an output per class, in pattern space.

The derivation is that of `derivations.pmoe.population` with, in place of y v, the vector e_i = 1(y = i) - softmax_i,
minus the gradient of the loss in f_i (the paper's v_{i,y}, equation (25)):

    f_i(x) = (1/l) sum_s sum_z n_s G_s phi_{s,i}(z),   phi_{s,i}(z) = sum_r a_{r,s,i} ReLU(h_{r,s}(z))
    c_{s,i}(z) = E[e_i n_s G_s]/l,   d_s(z) = E[sum_i e_i n_s G_s (phi_{s,i}(z) - mean)]/l
    h += (eta m/m) Gam (1(h >= 0) sum_i a_i c_{s,i}),   g += lam (eta m) Gam d_s                            (L0, exact)
    phi_{s,i} += (eta m) sum_j (Gam o A_{s,i,j}/m) c_{s,j}                                                          (L1)
    A_{s,i,j} = sum_r a_i a_j 1(h >= 0) 1(h' >= 0) -> (m/k) delta_ij kappa0(cosine)                                 (L2)

as the weights of different outputs are independent.
Source: Chowdhury et al. 2023, Appendix M; the reduction to pattern space is ours.
"""

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract import Code, Component, Dense, Equations, Initial, Labelled, Observables, Tier
from derivations.pmoe import population
from derivations.pmoe.classes import arrays
from derivations.pmoe.classes.model import SHARE
from derivations.pmoe.initial import act_of
from derivations.pmoe.loops import Arguments
from derivations.pmoe.parameters import Parameters, require_outputs
from derivations.pmoe.population import ANY, PAIR, PRE, ROUTE
from derivations.pmoe.summary import constants, summarise

RESPONSE = Component(
    "response", ("expert", "class", "pattern"), ANY, "phi_{s,i}(z)", "an expert's response for a class"
)
WATCHED = (
    Component("error", (), (0.0, 1.0), "P(f_y <= f_j for some j)", "probability of a wrong or undecided answer"),
    Component(
        "assumption", (), (0.0, 1.0), "Assumption 4.4", "1 where some expert gives o_i the top gate, for every i"
    ),
    Component("v", ("class",), (0.0, 1.0), "v_{i,i}", SHARE),
    Component("routed", PAIR, (0.0, np.inf), "E n_s(z)", "mean number of routed copies of a pattern"),
    Component(
        "finds", ("class", "expert"), (0.0, 1.0), "P(o_i in J_s | i)", "share of a class whose pattern is routed"
    ),
)
BELOW = ("derivations.ranking:rank", "derivations.pmoe.loops:soft_share", "derivations.pmoe.loops:take",
         "derivations.pmoe.loops:route_row", "derivations.pmoe.loops:times",
         "derivations.pmoe.loops:move_routers")  # fmt: skip
CORE = ("class_pushes", "class_drives", "class_mean_drives")
LOOPS = {
    "l0": (*CORE, "class_responses", "class_l0_flow_loss", "class_look", "class_watch_rows", "class_l0_watch"),
    "l1": (*CORE, "class_l1_flow_loss", "class_look", "class_watch_rows", "class_l1_watch"),
    "l2": (*CORE, "class_l2_flow_loss", "class_look", "class_watch_rows", "class_l2_watch"),
}


def loops(level: str) -> tuple[str, ...]:
    """The functions of a level, in the order in which they call each other."""
    kernel = ("derivations.pmoe.loops:kernel_of",) if level == "l2" else ()
    return (*BELOW, *kernel, *(f"derivations.pmoe.classes.loops:{name}" for name in LOOPS[level]))


def equations(p: Parameters, tier: str) -> Equations:
    """A level of the experts' or of joint training.  Raises `UsageError` for L3."""
    require_outputs(p, tier)
    level = tier.lower()
    first = PRE if tier == "L0" else RESPONSE
    shape = (p.k, p.m // p.k if tier == "L0" else p.classes, p.width)
    recursion = population.recursive(p, tier)
    return Equations(
        about=Tier(name=tier, validity=population.validity(p, tier, recursion), neglects=population.NEGLECTS[tier]),
        advance=population.advance(recursion),
        code=Code(
            structure=f"pmoe_classes_{level}",
            kernels=_overlap if tier == "L2" else dict,
            loops=loops(level),
            roles={"flow_loss": f"class_{level}_flow_loss", "watch": f"class_{level}_watch"},
            arrays=functools.partial(arrays.build, level),
            takes=Arguments,
        ),
        state=(first, ROUTE),
        layout=population.flat(p, Dense(first.name, shape)),
        arguments=functools.partial(arguments, level=level),
        watched=WATCHED,
        observables=Observables(
            observe=observe,
            constants=constants,
            invariants=functools.partial(population.invariants, p=p),
            summary=summarise,
        ),
    )


def arguments(initial: Initial, level: str) -> Arguments:
    """The run-time arguments."""
    c = initial.constants
    if level == "l1":
        return population.with_held(initial, c["gram"] * act_of(initial) / initial.parameters.m)
    return population.with_held(initial, c["out"] if level == "l0" else np.zeros(0))


def observe(initial: Initial, state: Mapping[str, np.ndarray]) -> Labelled:
    """The responses, where neurons are followed, and the share of them whose activation has changed."""
    found = population.observe(initial, state)
    if "response" in found:
        values = found["response"][1]
        found = {**found, "response": (("time", *RESPONSE.dims), values, f"{RESPONSE.meaning} ({RESPONSE.symbol})")}
    return found


def _overlap() -> Mapping[str, Any]:
    from derivations.pmoe.kernels import limit_kernels

    return {"overlap": limit_kernels()["overlap"]}

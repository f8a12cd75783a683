"""The population dynamics of system `pruning`, closed exactly on alignments with the patterns.

The derivation, step by step:

1. The gradient is that of 1 - y f with frozen head signs, so that -d loss/d theta_s = y a_s d sbar_s/d theta_s is that
   of one expert alone: experts decouple (equations (14) to (19)).
2. Tokens are orthonormal patterns, so that weights enter through h = <w_s, p> and u = <w_r, p> only.  At a pattern all
   neurons with u >= 0 move alike; one that becomes negative never moves again.
3. The mean over inputs is the gradient of one potential Phi(h, sigma) = E[y sbar] of each expert, at a constant order
   of the tokens: dh/dt = eta_r a dPhi/dh, du/dt = eta_e a dPhi/dsigma for u >= 0, in units of SGD steps.
4. One step of population descent is an explicit Euler step of length 1: tier `recursion`, for every law of the tokens.
5. Small rates give the flow: tier `flow`, for one repeated irrelevant pattern per input.  The state is h, the
   displacement D of the active neurons and its running minimum, which determines the inactive neurons. The right-hand
   side jumps at changes of the order of the tokens; these are located, and ties that both sides push into are held.
6. Tier `frozen` neglects the motion of irrelevant patterns (an error of order 1/N). Tier `homogeneous` assumes that
   they are all equal: two numbers per expert, with a first integral.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from derivations.contract import (
    Code,
    Component,
    Dense,
    Equations,
    Initial,
    Kernel,
    Layout,
    Observables,
    Recursion,
    Stepped,
    Tier,
    UsageError,
)
from derivations.pruning import events, flow_loops, recursion_loops
from derivations.pruning.inputs import law_of_slope, table, validity
from derivations.pruning.parameters import Parameters
from derivations.pruning.summary import constants, invariants, observe, summarise

HERE = "derivations.pruning"
ANY = (-np.inf, np.inf)
PATTERN = ("expert", "pattern")
H = Component("h", PATTERN, ANY, "<w_s, p>", "alignment of a router with a pattern (o1, o2, q_1, ..)")
U = Component("u", ("expert", "neuron", "pattern"), ANY, "<w_r, p>", "alignment of a neuron with a pattern")
D = Component("D", PATTERN, ANY, "", "displacement of the active neurons of an expert at a pattern")
D_MIN = Component("D_min", PATTERN, ANY, "", "smallest displacement so far; it determines which neurons are inactive")
WATCHED = (
    Component("p1", ("expert",), (0.0, 1.0), "p_1", "proficiency for o1: P(selected, gate at least 1/l | y = +1)"),
    Component("p2", ("expert",), (0.0, 1.0), "p_2", "proficiency for o2: P(selected, gate at least 1/l | y = -1)"),
    Component("f_error", (), (0.0, 1.0), "P(y f <= 0)", "test error"),
    Component("margin", (), ANY, "min y f", "least margin over the test inputs"),
    Component("selected1", ("expert",), (0.0, 1.0), "P_1", "probability that o1 is selected, with any gate, y = +1"),
    Component("selected2", ("expert",), (0.0, 1.0), "P_2", "probability that o2 is selected, with any gate, y = -1"),
    Component("gate1", ("expert",), (0.0, 1.0), "E[G_1]", "mean gate of o1, 0 where not selected, y = +1"),
    Component("gate2", ("expert",), (0.0, 1.0), "E[G_2]", "mean gate of o2, 0 where not selected, y = -1"),
)
HITS = {
    "T_selected": ("expert", "first time the own task token is selected in every input"),
    "T_gap": ("expert", "first time the own task logit leads every irrelevant one by log l"),
}
SLOPES = {
    "single": ("single_loops:best_law", "single_loops:expert_slope"),
    "multi_copy": ("single_loops:best_law", "single_loops:expert_slope"),
    "iid": (
        "token_loops:grid", "token_loops:choose", "token_loops:finish", "iid_loops:iid_weights",
        "iid_loops:iid_class", "iid_loops:expert_slope",
    ),
    "distinct": (
        "token_loops:grid", "token_loops:finish", "distinct_loops:distinct_weights",
        "distinct_loops:distinct_class", "distinct_loops:expert_slope",
    ),
    "empirical": ("table_loops:expert_slope",),
}  # fmt: skip
RECURSION = tuple(
    f"recursion_loops:{n}"
    for n in (
        "activations",
        "move",
        "masked",
        "masked_pairs",
        "input_weights",
        "vanishes",
        "record_hits",
        "march",
        "recursion_flow_loss",
    )
)
WATCH = ("watch_loops:inputs_watch",)
STEP = ("displaced", "contribution", "eliminate", "hold_ties", "slope", "decide", "settle", "margin", "lead",
        "try_step", "step_error", "lower")  # fmt: skip
STEPS = ("locate", "note_hits", "controlled_step", "note_changes", "copy_into", "march_expert", "march", "hybrid_flow")
FLOW = (*(f"flow_loops:{name}" for name in STEP), *(f"flow_march:{name}" for name in STEPS))
REASONS = {2: "the step size fell to zero", 3: "an expert took more steps than allowed"}


def equations(parameters: Parameters, tier: str | None = None) -> Equations:
    """The equations of a tier (`recursion`, `flow`, `frozen`, `homogeneous`)."""
    tier = tier or parameters.tier
    if parameters.routing != "expert_choice":
        raise UsageError("routing=token_choice couples the experts: it is available only in odesim simulate")
    if parameters.loss == "hinge" and tier != "recursion":
        raise UsageError(
            "the hinge loss couples all experts and has jumps: it is available in tier recursion and in "
            f"odesim simulate, but not in tier {tier}"
        )
    if tier == "recursion":
        return recursion(parameters)
    if parameters.data != "single":
        raise UsageError(
            f"tier {tier} is for data=single, but data={parameters.data}: with different irrelevant tokens in "
            "an input there are d^2 possible ties at which the slopes jump, and the rule at such a tie is "
            "not known; use tier recursion, which supports every distribution of the tokens and approaches "
            "the flow for small eta_e and eta_r at a fixed eta_e T"
        )
    if tier == "homogeneous":
        from derivations.pruning.tiers import homogeneous

        return homogeneous.equations(parameters)
    return flow(parameters, tier)


def recursion(parameters: Parameters) -> Equations:
    """Population gradient descent step by step, exact for every distribution of the tokens.

    Source: Chowdhury et al. 2024, Algorithm 1 with equations (14) to (19), in the mean over samples.
    """
    p = parameters
    own = (
        "table_loops:select_top", "watch_loops:answer", *SLOPES[law_of_slope(p)], *RECURSION, *WATCH,
        "watch_loops:recursion_watch",
    )  # fmt: skip
    loops = ("derivations.ranking:largest", "derivations.ranking:rank", *(f"{HERE}.{name}" for name in own))
    family = "single" if law_of_slope(p) == "multi_copy" else law_of_slope(p)
    return Equations(
        about=Tier(
            name="recursion",
            validity=validity(p),
            neglects="nothing" if p.stride == 1 else f"changes within {p.stride:g} SGD steps",
        ),
        advance=Stepped(
            HITS, p.k, lambda initial: initial.parameters.k, REASONS, map=Recursion("stride"), reached=reached
        ),
        code=Code(
            structure=f"pruning_recursion_{family}",
            kernels=_kernels,
            loops=loops,
            roles={"flow_loss": "recursion_flow_loss", "watch": "recursion_watch", "march": "march"},
            arrays=functools.partial(_recursion_arrays, law_of_slope(p)),
            takes=recursion_loops.Arguments,
        ),
        state=(H, U) if p.keep_u else (H,),
        layout=Layout((Dense("h", (p.k, p.d)), Dense("u", (p.k, p.m, p.d)))),
        arguments=recursion_arguments,
        watched=WATCHED,
        observables=Observables(observe=observe, constants=constants, invariants=invariants, summary=summarise),
    )


def flow(parameters: Parameters, tier: str) -> Equations:
    """The flow of small rates for data=single, changes of order located; `frozen` keeps the irrelevant patterns."""
    p = parameters
    own = ("table_loops:select_top", "watch_loops:answer", *FLOW, *WATCH, "watch_loops:hybrid_watch")
    loops = tuple(f"{HERE}.{name}" for name in own)
    exact = tier == "flow"
    return Equations(
        about=Tier(
            name=tier,
            validity=(
                "exact for data=single in the limit of small rates; changes of the order of tokens are "
                "located within a step; if two logits meet and both sides drive them together, they stay "
                "equal" + ("" if exact else "; relative error of order 1/(d - 2)")
            ),
            neglects="nothing" if exact else "the motion of irrelevant alignments",
        ),
        advance=Stepped(
            HITS,
            p.k,
            lambda initial: p.k + events.size(initial.parameters),
            REASONS,
            record=events.record,
            reached=reached,
        ),
        code=Code(
            structure="pruning_flow",
            kernels=_kernels,
            loops=loops,
            roles={"flow": "hybrid_flow", "watch": "hybrid_watch", "march": "march"},
            arrays=_flow_arrays,
            takes=flow_loops.Arguments,
        ),
        state=(H, D, D_MIN),
        layout=Layout(tuple(Dense(component.name, (p.k, p.d)) for component in (H, D, D_MIN))),
        arguments=functools.partial(flow_arguments, int(not exact)),
        watched=WATCHED,
        observables=Observables(observe=observe, constants=constants, invariants=invariants, summary=summarise),
    )


def reached(initial: Initial, state: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return True (.., k) if the events `HITS` have happened at alignments h (.., k, d), by the task token's lead.

    The lead is h(own) - max_q h(q) over the irrelevant patterns q, own = o1 for a = +1 and o2 for a = -1; it is 0 for
    `T_selected` and log l for `T_gap`.
    """
    h, a = state["h"], np.asarray(initial.constants["a"], float)
    lead = np.where(a > 0, h[..., 0], h[..., 1]) - h[..., 2:].max(axis=-1)
    return {"T_selected": lead >= 0.0, "T_gap": lead >= np.log(initial.parameters.l)}


def _kernels() -> Mapping[str, Kernel]:
    """The kernels, derived on demand: a compilation from the cache needs none."""
    from derivations.pruning.kernels import single_kernels

    return single_kernels()


def _recursion_arrays(data: str, xp: Any, kernels: Mapping[str, Any]) -> dict[str, Callable[..., Any]]:
    """Array forms of the recursion, generated on demand: a run needs neither them nor SymPy."""
    from derivations.pruning import arrays

    return arrays.build_recursion(data, xp, kernels)


def _flow_arrays(xp: Any, kernels: Mapping[str, Any]) -> dict[str, Callable[..., Any]]:
    """The arrays of the flow."""
    from derivations.pruning import arrays

    return arrays.build_flow(xp, kernels)


def recursion_arguments(initial: Initial) -> recursion_loops.Arguments:
    """Run-time arguments of the recursion: sizes, rates, head signs, law of the tokens, test inputs."""
    p, c = initial.parameters, initial.constants
    rows, answers, chance = table(initial)
    listed = law_of_slope(p) == "empirical"
    tokens = np.ascontiguousarray(rows, np.int64) if listed else np.zeros((0, 1), np.int64)
    labels = np.asarray(answers, float) if listed else np.zeros(0)
    return recursion_loops.Arguments(
        p.k, p.m, p.d, int(p.loss == "hinge"), float(p.stride), float(p.router_rate), float(p.eta_e),
        np.asarray(c["a"], float), p.l, p.n, p.copies, np.asarray(c["pi"], float), p.nodes, tokens, labels,
        rows, answers, chance,
    )  # fmt: skip


def flow_arguments(frozen: int, initial: Initial) -> flow_loops.Arguments:
    """Run-time arguments of the flow: sizes, rates, head signs, and initial alignments in order with their sums."""
    p, c = initial.parameters, initial.constants
    top, cum = ordered(np.asarray(initial.state["u"], float))
    return flow_loops.Arguments(
        p.k, p.d, float(p.router_rate), float(p.eta_e), np.asarray(c["a"], float), p.l, frozen, int(p.n == p.l),
        np.asarray(c["pi"], float), top, cum, *table(initial),
    )  # fmt: skip


def ordered(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """top (k, d, m): initial alignments in decreasing order, -1 for neurons that never move; cum (k, d, m + 1)."""
    by_pattern = np.swapaxes(u, 1, 2)
    top = np.ascontiguousarray(-np.sort(-np.where(by_pattern >= 0, by_pattern, -1.0), axis=2))
    cum = np.zeros((*top.shape[:2], top.shape[2] + 1))
    cum[:, :, 1:] = np.cumsum(np.maximum(top, 0.0), axis=2)
    return top, cum

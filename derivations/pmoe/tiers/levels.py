"""Levels L0 (every neuron), L1 (frozen activation pattern) and L2 (infinite width) of the training of the experts.

The derivation, step by step:

1. Every patch is one of P = p + 2 patterns, so gradients are combinations of patterns and the inner products
   h_{r,s}(z) = <w_{r,s}, z>, g_s(z) = <w_s, z> close, with the Gram matrix Gam of the patterns as only constant.
2. A sample is its counts N_x(z); the l patches of the largest g_s are n_s(z; x) = clip(l - copies ranked above, 0,
   N_x(z));
   f(x) = (1/l) sum_s sum_z n_s G_s phi_s(z), phi_s(z) = sum_r a_{r,s} ReLU(h_{r,s}(z))  (equations (1) and (4),
   corrected).
3. With v = 1/(1 + e^(y f)), c_s(z) = E[y v n_s G_s]/l and d_s(z) = E[y v n_s G_s (phi_s(z) - mean)]/l one training
   step of size eta is, in flow time eta m,  h += (eta m/m) a Gam (1(h >= 0) c_s),  g += lam (eta m) Gam d_s   (L0,
   exact).
4. With the activation pattern frozen, phi_s itself closes: phi_s += (eta m) (Gam o A_s/m) c_s   (L1, the paper's pseudo
   network); A_s -> (m/k) kappa0(cosine) at infinite width   (L2).

Source: Chowdhury et al. 2023, Section 4 and Appendices E-H; the reduction to pattern space is ours.
"""

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract import Initial, Labelled, Observables, Recursion, Smooth
from derivations.indexed import nested
from derivations.pmoe.initial import act_of, response
from derivations.pmoe.parameters import Parameters
from derivations.pmoe.summary import constants as saved_constants
from derivations.pmoe.summary import summarise
from derivations.pmoe.tiers.parts import (
    ANY,
    GRAM,
    LOSS,
    METRIC,
    NOTATION,
    PAIR,
    SAMPLES,
    SLOPE,
    TOKENS,
    WIDTH,
    K,
    P,
    S,
    W,
    Z,
    infinite_width,
    spread,
)
from derivations.pmoe.tiers.routing import (
    COPIES,
    COUNT,
    JITTER,
    PLAIN,
    ROUTE,
    SOFT,
    WEIGHT,
    J,
    Look,
    X,
    fractional,
    jittered,
    look_of,
    missed,
    per,
    routed,
    routing,
)
from derivations.statement import Base, Definition, Equation, Example, Indicator, Named, Statement, Watched, sp

LAM, STEP = sp.symbols("lambda_r tau", real=True)
R = sp.Idx("r", WIDTH)
PRE, PHI, OUT, ACT, LABEL, V, DRIVE, PULL, MEAN = map(
    Base, ("pre", "response", "out", "act", "label", "V", "c", "d", "m")
)
TITLES = {"L0": "every neuron", "L1": "responses, activation pattern frozen", "L2": "responses at infinite width"}
NEGLECTS = {
    "L0": "nothing: it is the population gradient step for patterns that are points",
    "L1": "changes of the neurons' activation pattern (the paper's pseudo network): O(m^(-1/2)) at fixed flow",
    "L2": "also the fluctuations of the frozen pattern at finite width: O((m/k)^(-1/2))",
}
SAMPLE = """np.array(
    [[y == c for c in (1, -1)] + [int(q == b) for q in range(P - 2)] for y in (1, -1) for b in range(P - 2)], float)"""
RESPONSES = "response of an expert to a pattern"


def recursive(p: Parameters, tier: str) -> bool:
    """Return True if a level is a recursion: neurons switch, and routing by rank jumps."""
    return tier == "L0" or (p.mode == "joint" and p.lam > 0 and p.tie_rule != "fractional")


def advance(p: Parameters, tier: str) -> Recursion | Smooth:
    """The map of training steps, or a flow with kinks at which route values change their order."""
    return Recursion("step") if recursive(p, tier) else Smooth(between="interpolant", kinks=True)


def validity(p: Parameters, tier: str) -> str:
    """Range of validity of the level, in one sentence."""
    said = "the map of one step of size eta, exact at every width" if tier == "L0" else "the limit of small steps"
    if tier != "L0" and recursive(p, tier):
        said = "the map of one step of size eta: routing by rank is discontinuous, and slides where route values tie"
    ties = {"fractional": "; top-l softened", "jitter": "; drift averaged over jittered route values"}
    return said + (ties.get(p.tie_rule, "") if p.mode == "joint" else "")


def output(look: Look) -> Definition:
    """The output of the network."""
    value = nested(look.at("share", W) * PHI[S, W], S, W) / TOKENS
    return Definition((look.output,), value, "output of the network")


def drives(p: Parameters) -> list[Any]:
    """Effect of the samples: the experts' drive c and the routers' drive d."""
    look = look_of(p)
    over, scale = (*look.shifts, X), 1 / COPIES if look.shifted else sp.Integer(1)
    push, share, m = V[(*look.shifts, X)], look.at("share", Z), MEAN[look.axes]
    slope = WEIGHT[X] * LABEL[X] * SLOPE["v"](LABEL[X] * look.output) / TOKENS
    found = [
        output(look),
        Definition((push,), slope, "push of a sample"),
        Definition((DRIVE[S, Z],), scale * nested(push * share, *over), "drive of the experts, the mean of y v n G/l"),
    ]
    if p.lam > 0:
        mean = sp.Sum(look.at("share", W) * PHI[S, W], W)
        pull = scale * nested(push * share * (PHI[S, Z] - m), *over)
        found += [
            Definition((m,), mean, "mean response behind the gate"),
            Definition((PULL[S, Z],), pull, "drive of the routers"),
        ]
    return found


def moving(tier: str) -> Named:
    """The part of the state that moves in the experts."""
    if tier == "L0":
        axes, about = ("expert", "neuron", "pattern"), "pre-activation of a neuron on a pattern"
        return Named(PRE[S, R, Z], about, dims=axes, bounds=ANY, symbol="<w_{r,s}, z>")
    return Named(PHI[S, Z], RESPONSES, dims=PAIR, bounds=ANY, symbol="phi_s(z)")


def routers() -> Named:
    """The route values."""
    return Named(ROUTE[S, Z], "route value of a pattern", dims=PAIR, bounds=ANY, symbol="<w_s, z>")


def motion(p: Parameters, tier: str) -> tuple[list[Any], list[Equation]]:
    """Definitions and equations of the moving variables of the experts, and of the routers."""
    at = "equations (1), (4), (7), in pattern space (corrected)"
    first: list[Any] = []
    if tier == "L0":
        response = sp.Sum(OUT[S, R] * sp.Max(0, PRE[S, R, Z]), R)
        first = [Definition((PHI[S, Z],), response, RESPONSES)]
        active = Indicator(sp.Ge(PRE[S, R, W], 0))
        rate = OUT[S, R] / (K * WIDTH) * sp.Sum(GRAM[Z, W] * active * DRIVE[S, W], W)
        equations = [Equation(PRE[S, R, Z], rate, at)]
    elif tier == "L1":
        rate = sp.Sum(GRAM[Z, W] * ACT[S, Z, W] * DRIVE[S, W], W) / (K * WIDTH)
        equations = [Equation(PHI[S, Z], rate, "the pseudo network of the proofs: activation pattern frozen")]
    else:
        first = [*infinite_width()]
        rate = sp.Sum(METRIC[Z, W] * DRIVE[S, W], W) / K
        equations = [Equation(PHI[S, Z], rate, "infinite width; the reduction is ours")]
    pull = LAM * sp.Sum(GRAM[Z, W] * PULL[S, W], W) if p.lam > 0 else sp.Integer(0)
    return first, [
        *equations,
        Equation(ROUTE[S, Z], pull, "routers: softmax gate" if p.lam > 0 else "routers are frozen"),
    ]


def constants(p: Parameters, tier: str) -> tuple[Named, ...]:
    """Sizes, rates, patterns and the distribution of a sample: its compositions with their probabilities."""
    sizes = [
        Named(K, "experts", p.k),
        Named(P, "patterns", 5),
        Named(TOKENS, "patches routed to an expert", 1 if p.k > 1 else 2),
    ]
    if tier != "L2":
        sizes.insert(1, Named(WIDTH, "neurons of an expert", 20))
    sizes.append(Named(SAMPLES, "compositions of a sample that there are", 6))
    found = [*sizes, Named(GRAM[Z, W], "Gram matrix of the patterns", "np.eye(P)")]
    if tier == "L0":
        found.append(Named(OUT[S, R], "output weights", "np.random.default_rng(2).standard_normal((k, M))"))
    if tier == "L1":
        default = "0.5 * M * np.ones((k, P, P))"
        found.append(Named(ACT[S, Z, W], "sum over neurons of a_r^2 where both patterns are active", default))
    found += [
        Named(COUNT[X, Z], "copies of a pattern in a composition", SAMPLE),
        Named(LABEL[X], "label of a composition", "np.repeat([1.0, -1.0], n_x // 2)"),
        Named(WEIGHT[X], "chance of a composition", "np.full(n_x, 1.0 / n_x)"),
    ]
    if p.lam > 0:
        found.append(Named(LAM, "speed of the routers", p.lam))
    if fractional(p):
        found.append(Named(SOFT, "width of the soft top l", p.softness))
    if jittered(p):
        found += [
            Named(COPIES, "shifts of the route values", 4),
            Named(JITTER[J, S, Z], "shifts", "1e-3 * np.random.default_rng(4).standard_normal((n_j, k, P))"),
        ]
    if recursive(p, tier):
        found.append(Named(STEP, "flow per step, eta times the number of neurons", p.step))
    return tuple(found)


def sizes(p: Parameters) -> dict[str, int]:
    """The lengths of the axes of the state."""
    return {"k": p.k, "M": p.m // p.k, "P": p.width}


def jitter(p: Parameters) -> np.ndarray:
    """The shifts of the route values (R, k, P): none, or `jitters` normal draws of size `softness` from data_seed."""
    from derivations.pmoe.world import generator

    shape = (p.k, p.width)
    if not jittered(p):
        return np.zeros((1, *shape))
    return p.softness * generator(p.data_seed, "jitter").standard_normal((p.jitters, *shape))


def bind(initial: Initial, tier: str) -> dict[str, Any]:
    """The numbers of the constants in a run."""
    p, c = initial.parameters, initial.constants
    shifts = jitter(p)
    found = {**sizes(p), "l": p.l, "n_x": len(c["label"]), "gram": c["gram"], "out": c["out"]}
    found |= {"count": c["counts"], "label": c["label"], "weight": c["weight"], "lambda_r": p.lam, "width": p.softness}
    found |= {"n_j": len(shifts), "jitter": shifts, "tau": p.step}
    return found | ({"act": act_of(initial)} if tier == "L1" else {})


def jumps(p: Parameters, tier: str) -> tuple[str, ...]:
    """Sentences of the page on discontinuities; a recursion steps over them."""
    jumping = not recursive(p, tier) and p.lam > 0
    return ("The right-hand side jumps where two route values change their order.",) if jumping else ()


def watched(p: Parameters) -> tuple[list[Any], tuple[Watched, ...]]:
    """Observables beside the state, from the route values, and the definitions in them."""
    look = Look(p, False)
    made: list[Any] = [*routing(look), output(look)] if jittered(p) else []
    margin, values, finds, some = LABEL[X] * look.output, [], [], sp.Integer(1)
    for a, (sign, member) in enumerate((("+1", sp.Gt(LABEL[X], 0)), ("-1", sp.Lt(LABEL[X], 0)))):
        mass, without, own, n = sp.Symbol(f"mass_{a + 1}"), Base(f"missed_{a + 1}")[S], Indicator(member), a + 1
        lost = sp.Sum(own * missed(look, a), X)
        made += [
            Definition((mass,), sp.Sum(WEIGHT[X] * own, X), f"chance of class {sign}"),
            Definition((without,), lost, f"compositions of class {sign} where o{n} is not routed with the top gate"),
        ]
        some *= Indicator(sp.Gt(sp.Sum(Indicator(sp.Eq(without, 0)), S), 0))
        value = per(sp.Sum(WEIGHT[X] * own * SLOPE["v"](margin), X), mass)
        about = "mean of v = 1/(1 + e^(y f)) in class +1" if n == 1 else "mean of v in class -1"
        values.append(Watched(sp.Symbol(f"v{n}"), value, about, symbol=f"v_{n}"))
        there = Indicator(sp.And(sp.Gt(COUNT[X, a], 0), sp.Gt(look.at("taken", a), 0)))
        share = per(sp.Sum(WEIGHT[X] * own * there, X), mass)
        about, symbol = f"share of class {sign} whose o{n} is routed", f"P(o{n} in J_s | {sign})"
        finds.append(Watched(Base(f"finds{n}")[S], share, about, dims=("expert",), symbol=symbol))
    wrong = sp.Sum(WEIGHT[X] * Indicator(sp.Le(margin, 0)), X)
    about = "1 where some expert gives o1, and some o2, the top gate"
    return made, (
        Watched(sp.Symbol("error"), wrong, "probability of a wrong or zero output", symbol="P(y f <= 0)"),
        *values,
        Watched(sp.Symbol("assumption"), some, about, symbol="Assumption 4.4"),
        routed(look),
        *finds,
    )


def statement(p: Parameters, tier: str, stage: str) -> Statement:
    """The statement of level L0, L1 or L2."""
    first, equations = motion(p, tier)
    look, recursion = look_of(p), recursive(p, tier)
    needed, observed = watched(p)
    over, scale = (*look.shifts, X), 1 / COPIES if look.shifted else 1
    indices = [((S,), "experts"), ((Z, W), "patterns o_1, o_2, q_1, ..."), ((X,), "compositions of a sample")]
    indices += [((R,), "neurons of an expert")] * (tier == "L0") + [((J,), "shifts")] * look.shifted
    return Statement(
        tier=tier,
        name=f"pmoe, {stage}, {tier}",
        title="mixture of two-layer CNNs on patterns: " + TITLES[tier],
        source="Chowdhury et al. 2023, Section 4 and Appendices E to H; the reduction to pattern space is ours",
        clock="one step of size eta advances t by eta times the number of neurons; logistic loss",
        validity=validity(p, tier),
        neglects=NEGLECTS[tier],
        indices=indices,
        sizes=sizes(p),
        state=(moving(tier), routers()),
        constants=constants(p, tier),
        bind=functools.partial(bind, tier=tier),
        definitions=(SLOPE, LOSS, *first, *routing(look), *drives(p), *needed),
        equations=tuple(equations),
        loss=scale * nested(WEIGHT[X] * LOSS["cost"](LABEL[X] * look.output), *over),
        watched=observed,
        advance=advance(p, tier),
        observables=told(p),
        kind="recursion" if recursion else "flow",
        step=STEP if recursion else None,
        notation={**NOTATION, **PLAIN, "lambda_r": ("\\lambda", "λ")},
        rules=jumps(p, tier),
        example=Example(start_of(tier), "response" if tier != "L0" else "pre", 0.4, 200.0),
    )


def start_of(tier: str) -> str:
    """The example's initial state: routers that rank o1 or o2 first, in turn."""
    first = '"response": np.zeros((k, P))'
    if tier == "L0":
        first = '"pre": 0.1 * np.random.default_rng(1).standard_normal((k, M, P))'
    route = "np.zeros((k, P)) + [[1.0, -1.0] + [0.0] * (P - 2)] * np.where(np.arange(k) % 2, -1.0, 1.0)[:, None]"
    return f'start = {{{first}, "route": {route}}}'


def told(p: Parameters) -> Observables:
    """Return the additional quantities that a run reports."""
    return Observables(
        observe=observe,
        constants=saved_constants,
        invariants=functools.partial(invariants, p=p),
        summary=summarise,
    )


def observe(initial: Initial, state: Mapping[str, np.ndarray]) -> Labelled:
    """The responses, if neurons are in the state, and the share of those whose activation has changed."""
    if "pre" not in state:
        return {}
    pre, out = state["pre"], initial.constants["out"]
    flipped = (pre >= 0) != (np.asarray(initial.state["pre"]) >= 0)
    return {
        "response": (("time", *PAIR), response(pre, out), f"{RESPONSES} (phi_s(z))"),
        "flips": (("time",), flipped.mean(axis=(1, 2, 3)), "share of (neuron, pattern) whose activation has changed"),
    }


def invariants(initial: Initial, state: Mapping[str, np.ndarray], p: Parameters) -> dict[str, float]:
    """Return the conserved quantities, measured on the saved states.

    `router_drift`: <w_s, u> for the u with <u, z> = 1 on all patterns is conserved per expert (a softmax covariance
    sums to zero), if the patterns are independent; frozen routers are constant.
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

"""Levels L0, L1 and L2 with an output per class and the softmax loss.

Routing and gates are those of two classes; e_i = 1(y = i) - softmax_i replaces y v, minus the gradient of the loss in
f_i (the paper's v_{i,y}, equation (25)):

    f_i(x) = (1/l) sum_s sum_z n_s G_s phi_{s,i}(z),   phi_{s,i}(z) = sum_r a_{r,s,i} ReLU(h_{r,s}(z))
    c_{s,i}(z) = E[e_i n_s G_s]/l,   d_s(z) = E[sum_i e_i n_s G_s (phi_{s,i}(z) - mean)]/l
    h += (eta m/m) Gam (1(h >= 0) sum_i a_i c_{s,i}),   g += lam (eta m) Gam d_s                            (L0, exact)
    phi_{s,i} += (eta m) sum_j (Gam o A_{s,i,j}/m) c_{s,j}                                                          (L1)
    A_{s,i,j} = sum_r a_i a_j 1(h >= 0) 1(h' >= 0) -> (m/k) delta_ij kappa0(cosine)                                 (L2)

as the weights of different outputs are independent. Source: Chowdhury et al. 2023, Appendix M; the reduction to pattern
space is ours.
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract import Initial, Labelled
from derivations.indexed import nested
from derivations.pmoe.classes.model import SHARE
from derivations.pmoe.parameters import Parameters, require_outputs
from derivations.pmoe.tiers import levels
from derivations.pmoe.tiers.levels import LAM, MEAN, PRE, PULL, R
from derivations.pmoe.tiers.parts import (
    ANY,
    GRAM,
    METRIC,
    NOTATION,
    SAMPLES,
    TOKENS,
    WIDTH,
    K,
    P,
    S,
    W,
    Z,
    infinite_width,
)
from derivations.pmoe.tiers.routing import (
    COPIES,
    COUNT,
    PLAIN,
    ROUTE,
    WEIGHT,
    J,
    Look,
    X,
    jittered,
    look_of,
    missed,
    per,
    routed,
    routing,
)
from derivations.statement import (
    Base,
    Definition,
    Equation,
    Example,
    Indicator,
    Largest,
    Named,
    Statement,
    Watched,
    expm1,
    key_of,
    log1p,
    sp,
)

CLASSES = sp.Symbol("classes", integer=True, positive=True)
I, B = (sp.Idx(n, CLASSES) for n in "ib")
PHI, OUT, ACT, OWN, DRIVE, MASS, MISSED = map(Base, ("response", "out", "act", "own", "c", "mass", "missed"))
NAMES = {
    **NOTATION,
    **PLAIN,
    "lambda_r": ("\\lambda", "λ"),
    "push": ("e", "e"),
    "push_0": ("e^{0}", "e⁰"),
    "own": ("y", "y"),
    "f_y": ("f^{y}", "fʸ"),
    "f_y_0": ("f^{y,0}", "fʸ⁰"),
    "lead_0": ("lead^{0}", "lead⁰"),
    "behind": ("r", "r"),
    "behind_0": ("r^{0}", "r⁰"),
    "classes": ("C", "C"),
}
PATTERNS = "patterns o_1, o_2, ... of the classes, then q_1, q_2, ..."
RESPONSES, RESPONSE_DIMS = "an expert's response for a class", ("expert", "class", "pattern")
SOURCE = "Chowdhury et al. 2023, Appendix M and equations (23) to (25); the reduction to pattern space is ours"
SAMPLE = """np.array([
    [y == c for c in range(classes)] + [q == b for q in range(P - classes)]
    for y in range(classes) for b in range(P - classes)], float)"""


def outputs(look: Look) -> list[Definition]:
    """Outputs of the network, and minus the slope of the loss in them.

    By differences from the output of the right class, against cancellation at a small loss.
    """
    at = (*look.shifts, X)
    f, own, ahead, behind, push = (look.array(n) for n in ("f", "f_y", "lead", "behind", "push"))
    gap = f[(*look.shifts, B, X)] - own[at]
    raised = sp.exp(f[(*look.shifts, I, X)] - own[at] - ahead[at])
    others = sp.exp(gap - ahead[at]) * (1 - sp.KroneckerDelta(OWN[X], B))
    total = behind[at] + sp.exp(-ahead[at])
    softmax = 1 / sp.Sum(sp.exp(f[(*look.shifts, B, X)] - f[(*look.shifts, I, X)]), B)
    value = sp.Piecewise((behind[at] / total, sp.Eq(OWN[X], I)), (-raised / total, True))
    output = nested(look.at("share", W) * PHI[S, I, W], S, W) / TOKENS
    return [
        Definition((f[(*look.shifts, I, X)],), output, "outputs of the network, equation (23)"),
        Definition(
            (own[at],), sp.Sum(sp.KroneckerDelta(OWN[X], B) * f[(*look.shifts, B, X)], B), "output of the right class"
        ),
        Definition((ahead[at],), Largest(gap, B), "lead of the best class over the right one"),
        Definition((behind[at],), sp.Sum(others, B), "the other classes in the softmax"),
        Definition(
            (push[(*look.shifts, I, X)],), value, "equation (25): minus the slope of the loss",
            means=sp.KroneckerDelta(OWN[X], I) - softmax,
        ),
    ]  # fmt: skip


def drives(p: Parameters) -> list[Any]:
    """Effect of the samples: the experts' drive of every output, and the routers' drive."""
    look = look_of(p)
    over: tuple[Any, ...] = (*look.shifts, X)
    scale = (1 / COPIES if look.shifted else sp.Integer(1)) / TOKENS
    share, push = look.at("share", Z), WEIGHT[X] * look.array("push")[(*look.shifts, I, X)]
    found = [
        *outputs(look),
        Definition((DRIVE[S, I, Z],), scale * nested(push * share, *over), "drive of the experts"),
    ]
    if p.lam > 0:
        m = MEAN[(*look.axes, I)]
        mean = sp.Sum(look.at("share", W) * PHI[S, I, W], W)
        pull = scale * nested(push * share * (PHI[S, I, Z] - m), *over, I)
        found += [
            Definition((m,), mean, "mean response behind the gate"),
            Definition((PULL[S, Z],), pull, "drive of the routers"),
        ]
    return found


def loss(p: Parameters) -> Any:
    """The mean of log sum_i exp(f_i - f_y), by differences from f_y."""
    look = look_of(p)
    at = (*look.shifts, X)
    ahead, behind = look.array("lead")[at], look.array("behind")[at]
    cost = ahead + log1p(behind + expm1(-ahead))
    return (1 / COPIES if look.shifted else 1) * nested(WEIGHT[X] * cost, *look.shifts, X)


def moving(tier: str) -> Named:
    """The part of the state that moves in the experts."""
    if tier == "L0":
        return levels.moving(tier)
    return Named(PHI[S, I, Z], RESPONSES, dims=RESPONSE_DIMS, bounds=ANY, symbol="phi_{s,i}(z)")


def motion(p: Parameters, tier: str) -> tuple[list[Any], list[Equation]]:
    """Definitions and equations of the moving variables of the experts, and of the routers."""
    first: list[Any] = []
    if tier == "L0":
        response = sp.Sum(OUT[S, R, I] * sp.Max(0, PRE[S, R, Z]), R)
        first = [Definition((PHI[S, I, Z],), response, "response of an expert to a pattern, for a class")]
        active = Indicator(sp.Ge(PRE[S, R, W], 0))
        rate = nested(GRAM[Z, W] * active * OUT[S, R, I] * DRIVE[S, I, W], W, I) / (K * WIDTH)
        equations = [Equation(PRE[S, R, Z], rate, "equations (23), (24), in pattern space")]
    elif tier == "L1":
        rate = nested(GRAM[Z, W] * ACT[S, I, B, Z, W] * DRIVE[S, B, W], B, W) / (K * WIDTH)
        equations = [Equation(PHI[S, I, Z], rate, "the pseudo network of the proofs: activation pattern frozen")]
    else:
        first = [*infinite_width()]
        rate = sp.Sum(METRIC[Z, W] * DRIVE[S, I, W], W) / K
        about = "infinite width, where the output weights of different classes are independent; the reduction is ours"
        equations = [Equation(PHI[S, I, Z], rate, about)]
    pull = LAM * sp.Sum(GRAM[Z, W] * PULL[S, W], W) if p.lam > 0 else sp.Integer(0)
    about = "routers: softmax gate" if p.lam > 0 else "routers are frozen"
    return first, [*equations, Equation(ROUTE[S, Z], pull, about)]


def constants(p: Parameters, tier: str) -> tuple[Named, ...]:
    """Sizes, rates, patterns and the distribution of a sample: its compositions with their probabilities."""
    own = {
        "out": Named(
            OUT[S, R, I], "output weights of the classes", "np.random.default_rng(2).standard_normal((k, M, classes))"
        ),
        "act": Named(
            ACT[S, I, B, Z, W],
            "sum over neurons of the products of two classes' output weights where both patterns are active",
            "0.5 * M * np.eye(classes)[:, :, None, None] * np.ones((k, 1, 1, P, P))",
        ),
        "P": Named(P, "patterns", 6),
        "count": Named(COUNT[X, Z], "copies of a pattern in a composition", SAMPLE),
        "label": Named(
            OWN[X], "class of a composition (in code from 0)", "np.arange(n_x) * classes // n_x", whole=True
        ),
        "n_x": Named(SAMPLES, "compositions of a sample that there are", 9),
    }
    found = [own.get(key_of(c.target), c) for c in levels.constants(p, tier)]
    return (Named(CLASSES, "classes", 3), *found)


def bind(initial: Initial, tier: str) -> dict[str, Any]:
    """The numbers of the constants in a run."""
    own = np.asarray(initial.constants["label"]).astype(int) - 1
    return {**levels.bind(initial, tier), "classes": initial.parameters.classes, "own": own}


def watched(p: Parameters) -> tuple[list[Any], tuple[Watched, ...]]:
    """Observables beside the state, from the route values, and the definitions in them."""
    look = Look(p, False)
    made: list[Any] = [*routing(look), *outputs(look)] if jittered(p) else []
    f, own, push = (look.array(n) for n in ("f", "f_y", "push"))
    member = sp.KroneckerDelta(OWN[X], I)
    made += [
        Definition((MASS[I],), sp.Sum(WEIGHT[X] * member, X), "chance of a class"),
        Definition(
            (MISSED[I, S],), sp.Sum(member * missed(look, I), X),
            "compositions of a class where its pattern is not routed with the top gate",
        ),
    ]  # fmt: skip
    rival = (1 - sp.KroneckerDelta(OWN[X], B)) * Indicator(sp.Ge(f[B, X], own[X]))
    wrong = sp.Sum(WEIGHT[X] * Indicator(sp.Gt(sp.Sum(rival, B), 0)), X)
    alone = Indicator(sp.Eq(sp.Sum(Indicator(sp.Eq(MISSED[I, S], 0)), S), 0))
    value = per(sp.Sum(WEIGHT[X] * member * push[I, X], X), MASS[I])
    there = Indicator(sp.And(sp.Gt(COUNT[X, I], 0), sp.Gt(look.at("taken", I), 0)))
    share = per(sp.Sum(WEIGHT[X] * member * there, X), MASS[I])
    return made, (
        Watched(
            sp.Symbol("error"), wrong, "probability of a wrong or undecided answer", symbol="P(f_y <= f_j for some j)"
        ),
        Watched(
            sp.Symbol("assumption"), Indicator(sp.Eq(sp.Sum(alone, I), 0)),
            "1 where some expert gives o_i the top gate, for every i", symbol="Assumption 4.4",
        ),
        Watched(Base("v")[I], value, SHARE, dims=("class",), symbol="v_{i,i}"),
        routed(look),
        Watched(
            Base("finds")[I, S], share, "share of a class whose pattern is routed", dims=("class", "expert"),
            symbol="P(o_i in J_s | i)",
        ),
    )  # fmt: skip


def start_of(tier: str) -> str:
    """The example's initial state: routers that rank the pattern of one class first each."""
    first = '"response": np.zeros((k, classes, P))'
    if tier == "L0":
        first = '"pre": 0.1 * np.random.default_rng(1).standard_normal((k, M, P))'
    turns = "np.arange(k)[:, None] % classes == np.arange(P)"
    return f'start = {{{first}, "route": np.where({turns}, 1.0, np.where(np.arange(P) < classes, -1.0, 0.0))}}'


def statement(p: Parameters, tier: str, stage: str) -> Statement:
    """The statement of level L0, L1 or L2.  Raises `UsageError` for L3."""
    require_outputs(p, tier)
    first, equations = motion(p, tier)
    needed, observed = watched(p)
    binary = levels.statement(p, tier, stage)
    indices = [((S,), "experts"), ((I, B), "classes"), ((Z, W), PATTERNS), ((X,), "compositions of a sample")]
    indices += [((R,), "neurons of an expert")] * (tier == "L0") + [((J,), "shifts")] * jittered(p)
    return dataclasses.replace(
        binary,
        name=f"pmoe, {stage}, {tier}, an output per class",
        title="mixture of two-layer CNNs on patterns, several classes: " + levels.TITLES[tier],
        source=SOURCE,
        clock="one step of size eta advances t by eta times the number of neurons; softmax loss (24)",
        indices=indices,
        sizes={**binary.sizes, "classes": p.classes},
        state=(moving(tier), levels.routers()),
        constants=constants(p, tier),
        bind=functools.partial(bind, tier=tier),
        definitions=(*first, *routing(look_of(p)), *drives(p), *needed),
        equations=tuple(equations),
        loss=loss(p),
        watched=observed,
        observables=dataclasses.replace(levels.told(p), observe=observe),
        notation=NAMES,
        example=Example(start_of(tier), "response" if tier != "L0" else "pre", 0.4, 200.0),
    )


def observe(initial: Initial, state: Mapping[str, np.ndarray]) -> Labelled:
    """The responses, if neurons are in the state, and the share of those whose activation has changed."""
    found = levels.observe(initial, state)
    if "response" in found:
        values = found["response"][1]
        found = {**found, "response": (("time", *RESPONSE_DIMS), values, f"{RESPONSES} (phi_{{s,i}}(z))")}
    return found

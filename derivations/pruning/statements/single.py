"""Inputs of one repeated irrelevant pattern as statements: recursion (one or several draws, hinge), flow, frozen."""

from typing import Any

import numpy as np

from derivations.contract import Initial
from derivations.indexed import nested
from derivations.pruning.parameters import Parameters
from derivations.pruning.statements.parts import (
    CLOCK,
    D_SIZE,
    ETA_E,
    ETA_R,
    GATE,
    LABEL,
    NOTATION,
    PAPER,
    PI,
    SIGMA,
    SIGN,
    STRIDE,
    TASKS,
    TOKENS,
    H,
    K,
    M,
    O,
    P,
    Q,
    R,
    S,
    U,
    W,
    bind,
    rates,
)
from derivations.statement import HALF, Base, Definition, Equation, Example, Indicator, Named, Statement, sign, sp

MASS, CHANCE, PUSH, PULL = map(Base, ("mass", "chance", "g", "A"))
BELOW, TIED, OUTPUT = map(Base, ("below", "tied", "f"))
D, D_MIN, START_U = map(Base, ("D", "D_min", "u_0"))
COPIES = sp.Symbol("c", integer=True, positive=True)
AT = "equations (14) to (19)"
STILL = """start = {"h": 0.1 * np.random.default_rng(0).standard_normal((k, d)), "D": np.zeros((k, d))}
start |= {"D_min": np.zeros((k, d))}
start["h"][0, 0] = start["h"][1, 1] = 0.5"""
JUMPS = (
    "The right-hand side jumps where the logits of a task token and of an irrelevant pattern are equal. A tie "
    "that the slopes on both sides push into is held: the selection has the weight between 0 and 1 that "
    "preserves the tie (Filippov's solution); changes are located on the step."
)


def selection(p: Parameters) -> list[Any]:
    """The gate of a selected task token, and the probabilities of the inputs."""
    x = H[S, O] - H[S, Q]
    chosen = 1 if p.n == p.l else Indicator(sp.Ge(H[S, O], H[S, Q]))
    said = "gate of the task token beside l - 1 copies of q; 0 where it is not among the top l"
    found = [
        Definition((LABEL[O],), sign(O), "label of a task token"),
        Definition((MASS[S, O, Q],), chosen * GATE["G"](x, TOKENS), said),
    ]
    if p.data == "multi_copy":
        both = BELOW[S, Q] + TIED[S, Q]
        law = (both**COPIES - BELOW[S, Q] ** COPIES) * PI[Q] / sp.Piecewise((TIED[S, Q], sp.Gt(PI[Q], 0)), (1, True))
        found += [
            Definition(
                (BELOW[S, Q],), sp.Sum(PI[W] * Indicator(sp.Lt(H[S, W], H[S, Q])), W), "chance of a lower logit"
            ),
            Definition((TIED[S, Q],), sp.Sum(PI[W] * Indicator(sp.Eq(H[S, W], H[S, Q])), W), "of the same"),
            Definition((CHANCE[S, Q],), law / 2, "half the chance that q has the largest logit of c draws"),
        ]
    if p.loss == "hinge":
        output = sp.Sum(SIGN[S] * pooled(), S)
        alive = HALF * PI[Q] * Indicator(sp.Lt(LABEL[O] * OUTPUT[O, Q], 1))
        found += [
            Definition((OUTPUT[O, Q],), output, "output of the network"),
            Definition((CHANCE[O, Q],), alive, "chance of an input that the hinge lets through"),
        ]
    return found


def chance(p: Parameters) -> Any:
    """The probability of the input (o, q) for an expert."""
    if p.data == "multi_copy":
        return CHANCE[S, Q]
    return CHANCE[O, Q] if p.loss == "hinge" else HALF * PI[Q]


def pooled() -> Any:
    """The pooled activation of an expert on the input (o, q)."""
    return MASS[S, O, Q] * SIGMA[S, O] + (1 - MASS[S, O, Q]) * SIGMA[S, Q]


def slopes(p: Parameters, frozen: bool) -> list[Any]:
    """A: the slope of the routers from an input; g: that of the neurons."""
    difference = SIGMA[S, O] - SIGMA[S, Q]
    pull = LABEL[O] * chance(p) * MASS[S, O, Q] * (1 - MASS[S, O, Q]) * difference
    found = [
        Definition((PULL[S, O, Q],), pull, "pull of an input on a router"),
        Definition(
            (PUSH[S, O],), LABEL[O] * sp.Sum(chance(p) * MASS[S, O, Q], Q), "push on the neurons at a task token"
        ),
    ]
    if not frozen:
        push = sp.Sum(LABEL[O] * chance(p) * (1 - MASS[S, O, Q]), O)
        found.append(Definition((Base("g_q")[S, Q],), push, "push at an irrelevant pattern"))
    return found


def routers(frozen: bool) -> list[Equation]:
    """The equations of the alignments h."""
    still = sp.Integer(0) if frozen else -ETA_R * SIGN[S] * sp.Sum(PULL[S, O, Q], O)
    own = Equation(H[S, O], ETA_R * SIGN[S] * sp.Sum(PULL[S, O, Q], Q), AT)
    return [own, Equation(H[S, Q], still, "irrelevant patterns stay where they start" if frozen else AT)]


def law_constants(p: Parameters) -> list[Named]:
    """Sizes and the distribution of the irrelevant pattern."""
    found = [
        Named(K, "experts", 2),
        Named(M, "neurons of an expert", 10),
        Named(D_SIZE, "token patterns", 12),
        Named(TOKENS, "tokens kept", p.l),
        *rates(p),
        Named(
            PI[P], "chance of an irrelevant pattern (0 for the task tokens)", "np.r_[0, 0, np.ones(d - 2)] / (d - 2)"
        ),
    ]
    if p.data == "multi_copy":
        found.append(Named(COPIES, "patterns drawn, each repeated", p.copies))
    return found


def statement(p: Parameters, tier: str, stage: str) -> Statement:
    """Tier recursion, flow or frozen."""
    return recursion(p, stage) if tier == "recursion" else flow(p, tier, stage)


def recursion(p: Parameters, stage: str) -> Statement:
    """Population descent step by step."""
    active = Definition((SIGMA[S, P],), sp.Sum(sp.Max(0, U[S, R, P]), R), "activation of an expert at a pattern")
    push, pushes = ETA_E * SIGN[S], Base("g_q")
    moved = [
        Equation(U[S, R, O], push * PUSH[S, O] * Indicator(sp.Ge(U[S, R, O], 0)), AT),
        Equation(U[S, R, Q], push * pushes[S, Q] * Indicator(sp.Ge(U[S, R, Q], 0)), AT),
    ]
    mean = nested(SIGN[S] * LABEL[O] * chance(p) * pooled(), S, O, Q)
    loss = (nested(CHANCE[O, Q], O, Q) if p.loss == "hinge" else 1) - mean
    words = {"single": "one irrelevant pattern, repeated", "multi_copy": f"{p.copies} repeated irrelevant patterns"}
    start = """rng = np.random.default_rng(0)
start = {"h": 0.1 * rng.standard_normal((k, d)), "u": rng.standard_normal((k, m, d)) / np.sqrt(d)}
start["h"][0, 0] = start["h"][1, 1] = 0.5"""
    return Statement(
        name=f"pruning, {stage}, recursion",
        title=f"population descent step by step, inputs of a task token and {words[p.data]}",
        source=f"{PAPER}, Algorithm 1 and equations (14) to (19), in the mean over samples",
        clock=CLOCK
        + (f"; steps of {p.stride:g} at once" if p.stride != 1 else "")
        + ("; hinge loss" if p.loss == "hinge" else "; linear loss 1 - y f"),
        validity="exact population descent: the mean over infinitely many fresh samples in every step",
        neglects="nothing" if p.stride == 1 else f"changes within {p.stride:g} SGD steps",
        indices=[
            ((S,), "experts"),
            ((R,), "neurons"),
            ((P,), "patterns"),
            ((O,), TASKS),
            ((Q, W), "irrelevant patterns"),
        ],
        state=(
            Named(H[S, P], "alignment of a router with a pattern"),
            Named(U[S, R, P], "alignment of a neuron with a pattern"),
        ),
        constants=(*law_constants(p), *([] if p.stride == 1 else [Named(STRIDE, "SGD steps taken at once", p.stride)])),
        bind=lambda initial: {**bind(initial), "c": initial.parameters.copies},
        definitions=(GATE, active, *selection(p), *slopes(p, False)),
        equations=(*routers(False), *moved),
        loss=loss,
        kind="recursion",
        step=sp.Integer(1) if p.stride == 1 else STRIDE,
        notation={**NOTATION, "g_q": ("g", "g"), "chance": ("\\rho", "ρ"), "c": ("c", "c")},
        example=Example(start, "h", 1.0, 3000.0),
    )


def flow(p: Parameters, tier: str, stage: str) -> Statement:
    """The flow of small rates, with the irrelevant patterns or without their motion."""
    frozen = tier == "frozen"
    bound = sp.Max(0, -sp.Min(D[S, P], D_MIN[S, P]))
    value = sp.Sum(Indicator(sp.Ge(START_U[S, R, P], bound)) * (START_U[S, R, P] + D[S, P]), R)
    active = Definition(
        (SIGMA[S, P],), value, "activation: the neurons that are on move alike, those switched off rest"
    )
    pushes = Base("g_q")
    own = ETA_E * SIGN[S] * PUSH[S, O]
    other = sp.Integer(0) if frozen else ETA_E * SIGN[S] * pushes[S, Q]
    at = "the running minimum of D"
    lowest = [
        Equation(D_MIN[S, i], Indicator(sp.Le(D[S, i], D_MIN[S, i])) * sp.Min(0, rate), at)
        for i, rate in ((O, own), (Q, other))
    ]

    def bound_numbers(initial: Initial) -> dict[str, Any]:
        return {**bind(initial), "u_0": np.asarray(initial.state["u"], float)}

    default = "np.random.default_rng(1).standard_normal((k, m, d)) / np.sqrt(d)"
    return Statement(
        name=f"pruning, {stage}, {tier}",
        title="the flow of small rates, inputs of a task token and one irrelevant pattern, repeated",
        source=f"{PAPER}, equations (14) to (19); the limit of small rates",
        clock=CLOCK + "; linear loss 1 - y f",
        validity="exact for data=single in the limit of small rates" + ("; relative error of order 1/(d - 2)" * frozen),
        neglects="the motion of irrelevant alignments" if frozen else "nothing",
        indices=[
            ((S,), "experts"),
            ((R,), "neurons"),
            ((P,), "patterns"),
            ((O,), TASKS),
            ((Q,), "irrelevant patterns"),
        ],
        state=(
            Named(H[S, P], "alignment of a router with a pattern"),
            Named(D[S, P], "displacement of the active neurons at a pattern"),
            Named(D_MIN[S, P], "least displacement so far: neurons that it brought below 0 are switched off"),
        ),
        constants=(*law_constants(p), Named(START_U[S, R, P], "alignments of the neurons at the start", default)),
        bind=bound_numbers,
        definitions=(GATE, active, *selection(p), *slopes(p, frozen)),
        equations=(*routers(frozen), Equation(D[S, O], own, AT), Equation(D[S, Q], other, AT), *lowest),
        notation={**NOTATION, "g_q": ("g", "g")},
        rules=(JUMPS,),
        example=Example(STILL, "h", 1.0, 3000.0),
    )

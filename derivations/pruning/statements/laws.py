"""Tier recursion for data=iid and distinct as a statement: one potential of every expert, a mean over the tokens."""

from typing import Any

from derivations.contract import Initial
from derivations.pruning.parameters import Parameters
from derivations.pruning.statements import rules
from derivations.pruning.statements.parts import (
    CLOCK,
    D_SIZE,
    ETA_E,
    ETA_R,
    NOTATION,
    PAPER,
    PI,
    SIGMA,
    SIGN,
    STRIDE,
    TOKENS,
    H,
    K,
    M,
    P,
    R,
    S,
    U,
    bind,
    rates,
)
from derivations.statement import (
    Base,
    Definition,
    E,
    Equation,
    Example,
    Indicator,
    Named,
    Rule,
    Statement,
    Step,
    sp,
)

LENGTH, NODES = sp.symbols("n nodes", integer=True, positive=True)
PHI, BY_H, BY_SIGMA = map(Base, ("Phi", "Phi_h", "Phi_sigma"))
CODE = {"iid": rules.potential_iid, "distinct": rules.potential_distinct}
HELPERS = {"iid": (rules.iid, rules.potential), "distinct": (rules.distinct, rules.potential)}
LAWS = {"iid": "n - 1 independent draws of irrelevant tokens", "distinct": "n - 1 different irrelevant tokens"}
AT = "equations (14) to (19)"
START = """rng = np.random.default_rng(0)
start = {"h": 0.1 * rng.standard_normal((k, d)), "u": rng.standard_normal((k, m, d)) / np.sqrt(d)}
start["h"][0, 0] = start["h"][1, 1] = 0.5"""


def closed_form(data: str) -> tuple[Step, ...]:
    """Computation of the mean: 1/Z = int exp(-u Z) du makes tokens factorise, given the rank of the l-th best."""
    u, y, z, s = sp.symbols("u y Z S")
    j = sp.Idx("j", TOKENS)
    pooled = sp.Sum(Base("sigma_t")[j] * sp.exp(Base("h_t")[j]), j) / sp.Sum(sp.exp(Base("h_t")[j]), j)
    ranks = "the mean of exp(-u Z) S over the tokens: a sum over the rank of the l-th best of "
    ranks += "powers of the sums of those above" if data == "iid" else "elementary symmetric polynomials of those above"
    return (
        Step(Base("pooled")[S], pooled, "pooled activation over the l tokens of largest logit"),
        Step(PHI[S], E(y, s / z), "with S the numerator and Z the denominator"),
        Step(E(s / z), sp.Integral(E(sp.exp(-u * z), s), (u, 0, sp.oo)), ranks),
    )


def statement(p: Parameters, stage: str) -> Statement:
    """Population descent on the potentials of all experts."""
    push = ETA_E * SIGN[S] * BY_SIGMA[S, P] * Indicator(sp.Ge(U[S, R, P], 0))
    active = Definition((SIGMA[S, P],), sp.Sum(sp.Max(0, U[S, R, P]), R), "activation of an expert at a pattern")
    means = E(sp.Symbol("y"), Base("pooled")[S])
    rule = Rule("potential", CODE[p.data], HELPERS[p.data])
    about = f"potential of an expert and its derivatives, the integral by {p.nodes} nodes in log u"
    arrays = (H, SIGMA, PI, LENGTH, TOKENS, NODES)

    def numbers(initial: Initial) -> dict[str, Any]:
        return {**bind(initial), "n": initial.parameters.n, "nodes": initial.parameters.nodes}

    return Statement(
        name=f"pruning, {stage}, recursion",
        title=f"population descent step by step, {LAWS[p.data]}",
        source=f"{PAPER}, Algorithm 1 and {AT}, in the mean over samples",
        clock=CLOCK + "; linear loss 1 - y f",
        validity="exact population descent: the mean over infinitely many fresh samples in every step",
        neglects="nothing" if p.stride == 1 else f"changes within {p.stride:g} SGD steps",
        indices=[((S,), "experts"), ((R,), "neurons"), ((P,), "patterns, o_1 and o_2 first")],
        state=(
            Named(H[S, P], "alignment of a router with a pattern"),
            Named(U[S, R, P], "alignment of a neuron with a pattern"),
        ),
        constants=(
            Named(K, "experts", 2),
            Named(M, "neurons of an expert", 4),
            Named(D_SIZE, "token patterns", 7),
            Named(TOKENS, "tokens kept", 2),
            Named(LENGTH, "tokens of a sample", 5),
            *rates(p),
            Named(PI[P], "chance of an irrelevant pattern", "np.r_[0, 0, np.ones(d - 2)] / (d - 2)"),
            Named(NODES, "nodes of the integral", p.nodes),
            *([] if p.stride == 1 else [Named(STRIDE, "SGD steps taken at once", p.stride)]),
        ),
        bind=numbers,
        definitions=(active, Definition((PHI[S], BY_H[S, P], BY_SIGMA[S, P]), arrays, about, rule=rule, means=means)),
        steps=closed_form(p.data),
        equations=(Equation(H[S, P], ETA_R * SIGN[S] * BY_H[S, P], AT), Equation(U[S, R, P], push, AT)),
        loss=1 - sp.Sum(SIGN[S] * PHI[S], S),
        kind="recursion",
        step=sp.Integer(1) if p.stride == 1 else STRIDE,
        notation={
            **NOTATION,
            "Phi": ("\\Phi", "Φ"),
            "Phi_h": ("\\partial_h\\Phi", "∂ₕΦ"),
            "Phi_sigma": ("\\partial_\\sigma\\Phi", "∂σΦ"),
            "sigma_t": ("\\sigma", "σ"),
            "h_t": ("h", "h"),
        },
        example=Example(START, "h", 0.501, 60.0),
    )

"""Tier recursion for a table of inputs as a statement: every input's tokens, the l of largest logit selected."""

from typing import Any

from derivations.contract import Initial
from derivations.indexed import nested
from derivations.pruning.inputs import table, validity
from derivations.pruning.parameters import Parameters
from derivations.pruning.statements.parts import (
    CLOCK,
    D_SIZE,
    ETA_E,
    ETA_R,
    LABEL,
    NOTATION,
    PAPER,
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
from derivations.statement import Base, Definition, Equation, Example, Indicator, Named, Statement, sp

INPUTS, LENGTH = sp.symbols("n_s n", integer=True, positive=True)
I, J, V = sp.Idx("i", INPUTS), sp.Idx("j", LENGTH), sp.Idx("v", LENGTH)
TOKEN, LOGIT, ACTIVE = map(Base, ("tokens", "h_tok", "s_tok"))
CHOSEN, WEIGHT, POOLED, PUSH = map(Base, ("chosen", "G", "pooled", "g"))
LISTED, CHANCE, OUTPUT = map(Base, ("c", "P_y", "f"))
AT = "equations (14) to (19)"
START = """rng = np.random.default_rng(0)
start = {"h": 0.1 * rng.standard_normal((k, d)), "u": rng.standard_normal((k, m, d)) / np.sqrt(d)}"""
TABLE = "np.concatenate([np.arange(n_s)[:, None] % 2, 2 + np.arange(n_s * (n - 1)).reshape(n_s, n - 1) % (d - 2)], 1)"


def selection() -> tuple[Definition, ...]:
    """The l tokens of largest logit, their gates, and their pooled activation."""
    higher = sp.Gt(LOGIT[S, I, V], LOGIT[S, I, J])
    tied = sp.And(sp.Eq(LOGIT[S, I, V], LOGIT[S, I, J]), sp.Lt(V, J))
    rank = sp.Sum(Indicator(sp.Or(higher, tied)), V)
    raised = CHOSEN[S, I, J] * sp.exp(LOGIT[S, I, J])
    return (
        Definition((SIGMA[S, P],), sp.Sum(sp.Max(0, U[S, R, P]), R), "activation of an expert at a pattern"),
        Definition((LOGIT[S, I, J],), H[S, TOKEN[I, J]], "logit of a token"),
        Definition((ACTIVE[S, I, J],), SIGMA[S, TOKEN[I, J]], "activation at a token"),
        Definition((CHOSEN[S, I, J],), Indicator(sp.Lt(rank, TOKENS)), "the top l; earlier tokens win ties"),
        Definition((WEIGHT[S, I, J],), raised / sp.Sum(CHOSEN[S, I, V] * sp.exp(LOGIT[S, I, V]), V), "gates"),
        Definition((POOLED[S, I],), sp.Sum(WEIGHT[S, I, J] * ACTIVE[S, I, J], J), "pooled activation"),
    )


def bound_numbers(initial: Initial) -> dict[str, Any]:
    """The numbers of the constants in a run."""
    tokens, labels, chance = table(initial)
    found = {"n_s": len(tokens), "n": tokens.shape[1], "tokens": tokens, "y": labels}
    return bind(initial) | found | ({"c": chance} if initial.parameters.loss == "hinge" else {})


def masked() -> tuple[Definition, ...]:
    """The probabilities of the inputs that the hinge does not mask."""
    alive = LISTED[I] * Indicator(sp.Lt(LABEL[I] * OUTPUT[I], 1))
    return (
        Definition((OUTPUT[I],), sp.Sum(SIGN[S] * POOLED[S, I], S), "output of the network"),
        Definition((CHANCE[I],), alive, "chance of an input that the hinge lets through"),
    )


def constants(p: Parameters) -> tuple[Named, ...]:
    """Sizes, rates and the table."""
    return (
        Named(K, "experts", 2),
        Named(M, "neurons of an expert", 10),
        Named(D_SIZE, "token patterns", 12),
        Named(TOKENS, "tokens kept", 3),
        Named(INPUTS, "inputs", 20),
        Named(LENGTH, "tokens of an input", 6),
        *rates(p),
        Named(TOKEN[I, J], "pattern of a token (in code from 0)", TABLE, whole=True),
        Named(LABEL[I], "label of an input", "1.0 - 2.0 * (np.arange(n_s) % 2)"),
        *([Named(LISTED[I], "chance of an input", "np.full(n_s, 1.0 / n_s)")] if p.loss == "hinge" else []),
        *([] if p.stride == 1 else [Named(STRIDE, "SGD steps taken at once", p.stride)]),
    )


def statement(p: Parameters, stage: str) -> Statement:
    """Population descent over the rows of a table, which under the hinge replaces every distribution of the tokens."""
    hinge, listed = p.loss == "hinge", p.data == "empirical"
    chance = CHANCE[I] if hinge else 1 / INPUTS
    total = sp.Sum(CHANCE[I], I) if hinge else 1
    here = sp.KroneckerDelta(TOKEN[I, J], P)
    push = nested(LABEL[I] * chance * WEIGHT[S, I, J] * here, I, J)
    pull = nested(LABEL[I] * chance * WEIGHT[S, I, J] * (ACTIVE[S, I, J] - POOLED[S, I]) * here, I, J)
    alive = Indicator(sp.Ge(U[S, R, P], 0))

    return Statement(
        name=f"pruning, {stage}, recursion",
        title="population descent step by step, inputs from a table of tokens",
        source=f"{PAPER}, Algorithm 1 and equations (14) to (19), in the mean over the table",
        clock=CLOCK + ("; hinge loss" if hinge else "; linear loss 1 - y f"),
        validity="exact full-batch descent over the rows of the table" if listed else validity(p),
        neglects="nothing" if p.stride == 1 else f"changes within {p.stride:g} SGD steps",
        indices=[
            ((S,), "experts"),
            ((R,), "neurons"),
            ((P,), "patterns"),
            ((I,), "inputs"),
            ((J, V), "tokens of an input"),
        ],
        state=(
            Named(H[S, P], "alignment of a router with a pattern"),
            Named(U[S, R, P], "alignment of a neuron with a pattern"),
        ),
        constants=constants(p),
        bind=bound_numbers,
        definitions=(
            *selection(),
            *(masked() if hinge else ()),
            Definition((PUSH[S, P],), push, "push on the neurons"),
        ),
        equations=(
            Equation(H[S, P], ETA_R * SIGN[S] * pull, AT),
            Equation(U[S, R, P], ETA_E * SIGN[S] * PUSH[S, P] * alive, AT),
        ),
        loss=total - nested(SIGN[S] * LABEL[I] * chance * POOLED[S, I], S, I),
        kind="recursion",
        step=sp.Integer(1) if p.stride == 1 else STRIDE,
        notation={**NOTATION, "P_y": ("P", "P")},
        example=Example(START, "h", 0.3, 2000.0),
    )

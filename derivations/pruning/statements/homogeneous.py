"""Tier homogeneous as a statement: gap and displacement of every expert, with a first integral."""

from typing import Any

from derivations.contract import Initial
from derivations.pruning.parameters import Parameters
from derivations.pruning.statements.parts import CLOCK, ETA_E, ETA_R, GATE, NOTATION, PAPER, TOKENS, K, S
from derivations.statement import Base, Equation, Example, Named, Statement, Step, sp

N = sp.Symbol("N", integer=True, positive=True)
X, D, DELTA, ACTIVE = map(Base, ("x", "D_own", "delta_0", "m_eff"))


def bind(initial: Initial) -> dict[str, Any]:
    """The numbers of the constants in a run."""
    from derivations.pruning.homogeneous import reduce

    p, found = initial.parameters, reduce(initial)
    numbers = {"k": p.k, "N": p.N, "l": p.l, "eta_r": p.router_rate, "eta_e": p.eta_e}
    return {**numbers, "delta_0": found["delta"], "m_eff": found["m_eff"]}


def statement(p: Parameters, stage: str) -> Statement:
    """All irrelevant patterns alike."""
    mass = GATE["G"](X[S], TOKENS)
    kept = X[S] + sp.exp(X[S]) / (TOKENS - 1)
    kept -= ETA_R * (1 + 1 / N) / ETA_E * (DELTA[S] * D[S] + ACTIVE[S] * D[S] ** 2 / 2)
    at = "equations (14) to (19); the reduction is ours"
    pull = DELTA[S] + ACTIVE[S] * D[S]
    return Statement(
        name=f"pruning, {stage}, homogeneous",
        title="all irrelevant patterns alike, two numbers per expert",
        source=f"{PAPER}, equations (14) to (19); the reduction is ours",
        clock=CLOCK + "; linear loss 1 - y f",
        validity="exact where all irrelevant patterns have the same logits and activations, the other task token is "
        "never selected, no neuron is switched off, and until the gap falls below 0",
        neglects="differences between irrelevant patterns, and neurons that are switched off",
        indices=[((S,), "experts")],
        state=(
            Named(X[S], "gap of the own task logit over the irrelevant ones"),
            Named(D[S], "displacement of the active neurons at the own task pattern"),
        ),
        constants=(
            Named(K, "experts", 2),
            Named(N, "irrelevant patterns", p.N),
            Named(TOKENS, "tokens kept", p.l),
            Named(ETA_R, "rate of the routers", 0.01 if p.eta_r < 0 else p.eta_r),
            Named(ETA_E, "rate of the experts", p.eta_e),
            Named(DELTA[S], "initial difference of activations", "np.full(k, 0.1)"),
            Named(ACTIVE[S], "active neurons, those of irrelevant patterns by 1/N", "np.full(k, 10.0)"),
        ),
        bind=bind,
        definitions=(GATE,),
        equations=(
            Equation(X[S], ETA_R / 2 * (1 + 1 / N) * mass * (1 - mass) * pull, at),
            Equation(D[S], ETA_E / 2 * mass, at),
        ),
        conserved=(Step(Base("Q")[S], kept, "along every solution"),),
        notation=NOTATION,
        example=Example('start = {"x": np.linspace(0.1, 0.3, k), "D_own": np.zeros(k)}', "x", 1.6, 2000.0),
    )

"""Level L3: two samples (a deterministic composition), frozen routers, infinite width.

With one sample of each class two numbers X_a = int v(u_a) dt carry everything; `derivations.pmoe.closed` has the
responses and the closed form of the margins.
"""

from typing import Any

import numpy as np

from derivations.contract import Initial, Observables
from derivations.indexed import nested
from derivations.pmoe.closed import observe, shares, two_samples
from derivations.pmoe.parameters import Parameters
from derivations.pmoe.statements.parts import (
    GRAM,
    LOSS,
    METRIC,
    NOTATION,
    SLOPE,
    TOKENS,
    K,
    P,
    S,
    W,
    Z,
    infinite_width,
)
from derivations.pmoe.summary import constants, summarise
from derivations.statement import HALF, Base, Definition, Equation, Example, Named, Statement, sp

A, B = (sp.Idx(n, 2) for n in "ab")
PUSH, LABEL, SHARE, PHI, U0, COUPLING, MARGIN = map(Base, ("push", "y", "share", "phi", "u0", "C", "u"))
PAPER = "Chowdhury et al. 2023"


def margins() -> tuple[Definition, ...]:
    """The margins of both classes, linear in the pushes."""
    margin = LABEL[A] / TOKENS * nested(SHARE[A, S, Z] * PHI[S, Z], S, Z)
    metric = nested(SHARE[A, S, Z] * METRIC[Z, W] * SHARE[B, S, W], S, Z, W)
    coupling = LABEL[A] * LABEL[B] / (2 * K * TOKENS**2) * metric
    return (
        Definition((U0[A],), margin, "margins at the start"),
        Definition((COUPLING[A, B],), coupling, "what a push adds to a margin"),
        Definition((MARGIN[A],), U0[A] + sp.Sum(COUPLING[A, B] * PUSH[B], B), "margins y f"),
    )


def statement(p: Parameters, stage: str) -> Statement:
    """The pushes X of both classes."""

    return Statement(
        tier="L3",
        name=f"pmoe, {stage}, L3",
        title="two samples, frozen routers, infinite width",
        source=f"{PAPER}, Section 4; the reduction is ours",
        clock="one step of size eta advances t by eta times the number of neurons; both samples weigh 1/2",
        validity="exact at infinite width for one sample of each class and frozen routers; the closed form where both "
        "classes have the same margin",
        neglects="all fluctuations of the composition of samples, and those of neurons at finite width",
        indices=[((A, B), "classes +1 and -1"), ((S,), "experts"), ((Z, W), "patterns o_1, o_2, q_1, ...")],
        state=(
            Named(
                PUSH[A],
                "int v dt of the samples of class +1 and -1",
                dims=("class",),
                bounds=(0.0, np.inf),
                symbol="X",
            ),
        ),
        constants=(
            Named(K, "experts", 2),
            Named(P, "patterns", 4),
            Named(TOKENS, "patches routed to an expert", 2),
            Named(LABEL[A], "label of the class", "np.array([1.0, -1.0])"),
            Named(GRAM[Z, W], "Gram matrix of the patterns", "np.eye(P)"),
            Named(SHARE[A, S, Z], "routed copies times gate", "np.eye(2, P)[:, None, :] + np.zeros((2, k, P))"),
            Named(PHI[S, Z], "responses at the start", "np.zeros((k, P))"),
        ),
        bind=bind,
        begin=lambda initial: {"push": np.zeros(2)},
        definitions=(SLOPE, LOSS, *infinite_width(), *margins()),
        loss=HALF * sp.Sum(LOSS["cost"](MARGIN[A]), A),
        equations=(Equation(PUSH[A], SLOPE["v"](MARGIN[A]), "level L3 of the reduction to patterns"),),
        observables=Observables(observe=observe, constants=constants, summary=summarise),
        notation=NOTATION,
        example=Example('start = {"push": np.zeros(2)}', "push", 10.0, 400.0),
    )


def bind(initial: Initial) -> dict[str, Any]:
    """The numbers of the constants in a run.  Raises `UsageError` for what the level does not describe."""
    two_samples(initial)
    p = initial.parameters
    return {
        "k": p.k,
        "P": p.width,
        "l": p.l,
        "y": np.array([1.0, -1.0]),
        "gram": initial.constants["gram"],
        "share": shares(initial),
        "phi": initial.state["response"],
    }

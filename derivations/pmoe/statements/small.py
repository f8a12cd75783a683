"""The small statements of system `pmoe`: the routers' own training, and level L3 (two samples)."""

from typing import Any

import numpy as np

from derivations.contract import Initial
from derivations.indexed import nested
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
from derivations.statement import HALF, Base, Definition, Equation, Example, Named, Statement, sign, sp

A, B = (sp.Idx(n, 2) for n in "ab")
PUSH, LABEL, SHARE, PHI, U0, COUPLING, MARGIN = map(Base, ("push", "y", "share", "phi", "u0", "C", "u"))
ROUTE, MEAN_COUNT = Base("route"), Base("mean_count")
PAPER = "Chowdhury et al. 2023"


def routers(p: Parameters, tier: str) -> Statement:
    """dg_1/dt = Gam c, dg_2/dt = -Gam c."""

    def bind(initial: Initial) -> dict[str, Any]:
        from derivations.pmoe.population import sample_mean

        return {"P": p.width, "gram": initial.constants["gram"], "mean_count": sample_mean(initial)}

    rate = LABEL[A] * sp.Sum(GRAM[Z, W] * MEAN_COUNT[W], W)
    return Statement(
        name=f"pmoe, router, {tier}",
        title="separate training of the two routers by the linear loss",
        source=f"{PAPER}, equation (6), Algorithm 1 and Lemma E.1",
        clock="one step of size eta advances t by eta",
        validity="exact for every batch size, step and number of samples: the loss is linear, slopes are constant",
        neglects="nothing",
        indices=[((A,), "routers, of class +1 and -1"), ((Z, W), "patterns o_1, o_2, q_1, ...")],
        state=(Named(ROUTE[A, Z], "route value of a pattern"),),
        constants=(
            Named(P, "patterns", 4),
            Named(GRAM[Z, W], "Gram matrix of the patterns", "np.eye(P)"),
            Named(
                MEAN_COUNT[Z], "mean over the samples of label times number of copies", "np.array([0.5, -0.5, 0, 0])"
            ),
        ),
        bind=bind,
        definitions=(Definition((LABEL[A],), sign(A), "class of the router"),),
        equations=(Equation(ROUTE[A, Z], rate, "equation (6)"),),
        notation=NOTATION,
        example=Example('start = {"route": np.zeros((2, P))}', "route", 0.4, 1.0),
    )


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


def two_samples(p: Parameters, stage: str) -> Statement:
    """The pushes X of both classes."""

    def bind(initial: Initial) -> dict[str, Any]:
        from derivations.pmoe.closed import shares, two_samples

        two_samples(initial)  # refuses what the level does not describe
        return {
            "k": p.k,
            "P": p.width,
            "l": p.l,
            "y": np.array([1.0, -1.0]),
            "gram": initial.constants["gram"],
            "share": shares(initial),
            "phi": initial.state["response"],
        }

    return Statement(
        name=f"pmoe, {stage}, L3",
        title="two samples, frozen routers, infinite width",
        source=f"{PAPER}, Section 4; the reduction is ours",
        clock="one step of size eta advances t by eta times the number of neurons; both samples weigh 1/2",
        validity="exact at infinite width for one sample of each class and frozen routers",
        neglects="fluctuations of the composition of samples, and those of neurons at finite width",
        indices=[((A, B), "classes +1 and -1"), ((S,), "experts"), ((Z, W), "patterns o_1, o_2, q_1, ...")],
        state=(Named(PUSH[A], "push of a class: the integral of v over time"),),
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
        definitions=(SLOPE, LOSS, *infinite_width(), *margins()),
        loss=HALF * sp.Sum(LOSS["cost"](MARGIN[A]), A),
        equations=(Equation(PUSH[A], SLOPE["v"](MARGIN[A]), "level L3 of the reduction to patterns"),),
        notation=NOTATION,
        example=Example('start = {"push": np.zeros(2)}', "push", 10.0, 400.0),
    )

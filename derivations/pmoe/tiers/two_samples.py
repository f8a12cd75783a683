"""Level L3: two samples (a deterministic composition), constant routers, infinite width.

With one sample of each class two numbers X_a = int v(u_a) dt determine the state; `derivations.pmoe.closed` has the
responses and the closed form of the margins.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract import Initial, Labelled, Observables, UsageError
from derivations.indexed import nested
from derivations.pmoe.closed import OVERFLOW, SAME, lambert, rate
from derivations.pmoe.parameters import Parameters
from derivations.pmoe.signal import kernel
from derivations.pmoe.summary import constants, summarise
from derivations.pmoe.tiers.parts import (
    GRAM,
    LOSS,
    METRIC,
    NOTATION,
    PAPER,
    SLOPE,
    TOKENS,
    K,
    P,
    S,
    W,
    Z,
    infinite_width,
)
from derivations.pmoe.tiers.routing import shares_of
from derivations.statement import HALF, Base, Definition, Equation, Example, Named, Statement, sp

A, B = (sp.Idx(n, 2) for n in "ab")
PUSH, LABEL, SHARE, PHI, U0, COUPLING, MARGIN = map(Base, ("push", "y", "share", "phi", "u0", "C", "u"))


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
    """The numbers of the constants in a run. Raises `UsageError` for parameters outside of this level."""
    shares(initial)
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


def shares(initial: Initial) -> np.ndarray:
    """n_s G_s of both samples, (2, k, P), class + first. Raises `UsageError` for parameters outside of this level."""
    p, c = initial.parameters, initial.constants
    if p.lam > 0:
        raise UsageError("tier L3 is for frozen routers: give -p lam=0, or gate=uniform, sharp or frozen")
    if len(c["label"]) != 2 or set(c["label"]) != {1.0, -1.0} or abs(c["weight"][0] - 0.5) > SAME:
        raise UsageError(
            "tier L3 needs two samples, one of each class: composition=deterministic, or a training set of two"
        )
    found = shares_of(p, initial.state["route"], c["counts"])
    return np.moveaxis(found, 1, 0)[np.argsort(-c["label"])]


def margins_at_start(initial: Initial) -> tuple[np.ndarray, np.ndarray]:
    """(u(0) (2,), C (2, 2)): the initial margins, and their increase per unit of X."""
    p, share = initial.parameters, shares(initial)
    sign = np.array([1.0, -1.0])
    metric = kernel(initial.constants["gram"])
    found = np.einsum("asz,zw,bsw->ab", share, metric, share) / (2 * p.k * p.l**2)
    margins = sign * np.einsum("asz,sz->a", share, initial.state["response"]) / p.l
    return margins, found * np.outer(sign, sign)


def observe(initial: Initial, state: Mapping[str, np.ndarray]) -> Labelled:
    """Margins, responses, route values and error from X; the margin is exact, without a series."""
    p, push = initial.parameters, np.asarray(state["push"])
    start, coupling = margins_at_start(initial)
    margin = start + push @ coupling.T
    share = shares(initial) * np.array([1.0, -1.0])[:, None, None]
    gain = np.einsum("ta,asw,wz->tsz", push, share, kernel(initial.constants["gram"])) / (2 * p.k * p.l)
    pair = ("time", "expert", "pattern")
    v = 1 / (1 + np.exp(np.minimum(margin, OVERFLOW)))
    speed = rate(start, coupling)
    closed = {}
    if not math.isnan(speed):
        exact = lambert(start[0], speed, np.asarray(state["time"]))
        closed["margin_closed"] = (("time",), exact, "the margin of both classes by Lambert's function, A - W(e^A)")
    return {
        **closed,
        "margin": (("time", "class"), margin, "margin y f of the samples of class +1 and -1 (u)"),
        "response": (pair, initial.state["response"] + gain, "response of an expert to a pattern (phi_s(z))"),
        "route": (pair, np.broadcast_to(initial.state["route"], gain.shape).copy(), "route value (frozen)"),
        "error": (("time",), (margin <= 0).mean(axis=1), "probability of a wrong or zero output (P(y f <= 0))"),
        "v1": (("time",), v[:, 0], "v in class +1"),
        "v2": (("time",), v[:, 1], "v in class -1"),
    }

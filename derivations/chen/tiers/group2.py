"""Tier group2: K equal groups of experts, two numbers: the strength s and the contrast D of the router."""

from dataclasses import replace
from typing import Any

import numpy as np

from derivations.chen.parameters import Parameters
from derivations.chen.summary import constants
from derivations.chen.tiers import parts
from derivations.chen.tiers.parts import (
    BETA,
    HIGH,
    KINKS,
    LOW,
    MEMBER,
    OTHER,
    OWN,
    PUSH,
    Q_SYMBOLS,
    SOURCE,
    W_BETA,
    WEIGH,
    I,
    R,
    mean_weights,
)
from derivations.chen.tiers.vocabulary import (
    ANY,
    CHANCE_WINS,
    CLOCK,
    GCEN,
    K_SIZE,
    M_SIZE,
    NOTATION,
    PI,
    RHO,
    UNITARY,
    H,
    L,
    M,
    Q,
    routing,
)
from derivations.contract import Crossing, Initial, Observables
from derivations.statement import Base, Definition, Equation, Example, Indicator, Named, Statement, sp

S, CONTRAST = sp.symbols("s D", real=True)
NET, SIZE = sp.symbols("net size", real=True)
H_GROUP, GATE = Base("h_g"), Base("gate")
SIDE = sp.Idx("g", 2)
NODES_OF_TWO = 2 * parts.CENTRES
"""Nodes of beta on the two pieces."""


def statement(p: Parameters) -> Statement:
    """The strength of every specialist and the contrast of the router, as equations of cluster 1."""
    given, cuts, n, beta, weight = parts.centres(p, False)
    if cuts:  # one column of two logits: one kink at most
        n = sp.Idx("n", KINKS)
        beta, weight = BETA[n], W_BETA[n]
        (cut,) = cuts
        means = cut.means.subs(GCEN[L, sp.Idx("k", K_SIZE)], H_GROUP[SIDE])
        cuts = (Definition((beta, weight), (H_GROUP, LOW, HIGH), cut.meaning, rule=cut.rule, means=means),)
        given = tuple(replace(c, default=NODES_OF_TWO) if c.target == KINKS else c for c in given)
    group = M_SIZE / K_SIZE
    drift = PUSH[0, n] - PUSH[1, n]
    return Statement(
        tier="group2",
        name="chen, group2",
        title="K equal groups of specialists, two variables, seen from cluster 1",
        source=SOURCE,
        clock=CLOCK,
        validity="exact for P = 3 and cubic experts on the specialised manifold with K equal groups",
        neglects="differences between the experts of a group, features that lose the competition, cen, gfeat, noise",
        indices=[
            ((M, L), "experts, those of group 1 first"),
            ((SIDE,), "0 for an expert of group 1, 1 for one of another group"),
            ((I,), "strengths of the feature"),
            ((R,), "of its noise"),
            ((n,), "of the centre"),
        ],
        state=(
            Named(S, "alignment of every specialist with its feature", bounds=ANY, symbol="s"),
            Named(
                CONTRAST,
                "router contrast, gcen of a group on its cluster minus that of the other groups",
                bounds=ANY,
                symbol="D",
            ),
        ),
        constants=tuple(parts.sizes_and_laws(p, given, 2 * p.K, "groups, one for every cluster")),
        bind=lambda initial: {**parts.bind(initial), "n_k": NODES_OF_TWO},
        begin=lambda initial: {"s": parts.strength(initial).mean(), "D": contrast(initial)},
        definitions=(Q, UNITARY, *definitions(cuts, n, beta, weight, group)),
        equations=(
            Equation(S, parts.unit_speed(NET, SIZE), "Algorithm 1"),
            Equation(CONTRAST, RHO / K_SIZE * sp.Sum(weight * beta * drift, n), "equation (3.4)"),
        ),
        crossings=(
            Crossing("T_half", "D", 0.5, meaning="first time the contrast reaches 1/2"),
            Crossing("T_one", "D", 1.0, meaning="first time the contrast reaches 1"),
        ),
        observables=Observables(
            observe=parts.observe,
            constants=constants,
            summary=lambda initial, run: {
                "s": float(run["s"][-1]),
                "D": float(run["D"][-1]),
                "routed_in": float(run["routed_in"][-1]),
            },
        ),
        notation={**NOTATION, **Q_SYMBOLS, "h_g": ("\\eta", "η"), "gate": ("\\varpi", "ϖ")},
        example=Example('start = {"s": np.array(0.02), "D": np.array(0.1)}', "D", 0.5, 2.0),
    )


def definitions(cuts: tuple[Definition, ...], n: Any, beta: Any, weight: Any, group: Any) -> tuple[Definition, ...]:
    """The definitions of tier group2 for cluster 1; `group` is the number of experts of a group.

    All experts of group 1 are equal, and so are the others: the equations contain one of each, the first and the last.
    """
    inside, outside = WEIGH[0, n], WEIGH[1, n]
    own, other = mean_weights(S, GATE[0, n], OWN[n], OTHER[n], GATE[1, n])
    mix = (1 - SIDE) * OWN[n] - SIDE * OTHER[n] / (K_SIZE - 1)
    gathered = (group * inside + (M_SIZE - group) * outside) * S**3
    place = SIDE * (M_SIZE - 1)
    return (
        Definition((MEMBER[M],), Indicator(sp.Lt(M * K_SIZE, M_SIZE)), "whether an expert is of group 1"),
        Definition((H_GROUP[SIDE],), CONTRAST * (1 - SIDE), "logits over beta"),
        *cuts,
        Definition((H[M, n],), beta * CONTRAST * MEMBER[M], "logits on cluster 1"),
        *routing((n,)),
        Definition((GATE[SIDE, n],), PI[place, n], "softmax of an expert of either kind"),
        own,
        other,
        Definition(
            (WEIGH[SIDE, n],), CHANCE_WINS[place, n] * GATE[SIDE, n] * mix, "weight of cluster 1 in its gradient"
        ),
        Definition((NET,), sp.Sum(weight * (inside + (K_SIZE - 1) * outside), n), "mean gradient"),
        Definition((SIZE,), sp.Sum(weight * (sp.Abs(inside) + (K_SIZE - 1) * sp.Abs(outside)), n), "its mean size"),
        Definition((PUSH[SIDE, n],), WEIGH[SIDE, n] * S**3 - GATE[SIDE, n] * gathered, "drift of the logits"),
    )


def contrast(initial: Initial) -> float:
    """D: the mean over clusters of gcen inside the group k*_m = k minus the mean outside it (0 without either)."""
    gcen, kstar = initial.state["gcen"], initial.constants["kstar"]
    found = []
    for k in range(gcen.shape[1]):
        inside = kstar == k
        if inside.any() and not inside.all():
            found.append(gcen[inside, k].mean() - gcen[~inside, k].mean())
    return float(np.mean(found)) if found else 0.0

"""Tiers riccati, riccati_paper: the leading order in small overlaps, with or without repulsion between students.

gamma2_ij' = (p p! c_0^2/b_i^2) gamma2_ij^(p-1),    gamma1_ij' = (p! c_1^2/a_i^2) gamma2_ij^p
I2_ij'     = -p p! c_0^2 (1/b_i^2 + 1/b_j^2) I2_ij^(p-1)      (dropped by the proof of Lemma 7)
I3_ii'     = -(1/a_i^2 + 1/b_i^2) r I3_ii,    r = -18 c_3 at p = 3
"""

from typing import Any

import numpy as np

from derivations.contract import Crossing, Initial, Observables
from derivations.liao.parameters import Parameters
from derivations.liao.summary import observe, summarise
from derivations.liao.tiers import parts
from derivations.liao.tiers.kernels import (
    OVERLAPS,
    RHO,
    S_INDEX,
    C,
    G,
    N,
    coefficients,
    correlation,
    notation,
    pair_energy,
    terms,
)
from derivations.liao.tiers.parts import GAMMA1, GAMMA2, I2, LENGTHS, NORMS, SIZES, STATE, TEACHER_K, I, J
from derivations.statement import Base, Definition, Equation, Example, Indicator, Named, Statement, sp

A, B = NORMS["v"], NORMS["w"]
SELF = Base("I3_self")
LAST = 0.999
"""The size of an overlap at which the run stops."""
START = """rng = np.random.default_rng(3)
start = {"gamma1": np.zeros((m, m_star)), "gamma2": np.linspace(0.02, 0.1, m * m_star).reshape(m, m_star)}
z = 0.01 * rng.standard_normal((m, m))
start |= {"I2": np.triu(z, 1) + np.triu(z, 1).T + np.eye(m), "I3_self": 0.03 * rng.standard_normal(m)}"""


def statement(p: Parameters, tier: str) -> Statement:
    """The leading order; `riccati_paper` omits the student-student term, as the proof of Lemma 7 does."""
    repelled = tier == "riccati"
    neglects = "all terms of higher order: saturation, mis-alignments, router-router overlaps"
    return Statement(
        tier=tier,
        name=f"liao, {tier}",
        title="the leading order in small overlaps",
        source=f"{parts.PAPER}, equations (4) and (5), Lemmas 6 and 7",
        clock=parts.CLOCK,
        validity=f"leading order while every overlap is small; the run stops when an overlap reaches {LAST}",
        neglects=neglects + ("" if repelled else "; and the student-student term of I2, as the proof of Lemma 7 does"),
        indices=[((I, J), "students"), ((TEACHER_K,), "teachers"), ((N, S_INDEX), "degrees")],
        sizes=parts.sizes(p),
        state=(
            *STATE[:2],
            STATE[5],
            Named(SELF[I], "self overlap v_i.w_i", dims=("expert",), symbol="I^(3)_ii"),
        ),
        constants=(*SIZES, *LENGTHS),
        bind=bind,
        begin=lambda initial: {**initial.state, "I3_self": np.diag(initial.state["I3"])},
        definitions=(
            coefficients(p),
            correlation(),
            Definition((sp.Symbol("r"),), repulsion(p.degree), "repulsion of an expert and its router"),
        ),
        equations=rates(p.degree, repelled),
        crossings=(*parts.crossings(p), end("gamma2"), end("I2")),
        observables=Observables(observe=observe, constants=parts.constants, summary=summarise),
        notation=notation(),
        terms=terms(p),
        rules=(f"The run stops when an overlap reaches {LAST}, where the leading order no longer holds.",),
        example=Example(START, "gamma2", 0.9, 2.1),
    )


def rates(degree: int, repelled: bool) -> tuple[Equation, ...]:
    """The four equations."""
    pull, own = degree * sp.factorial(degree), GAMMA2[I, TEACHER_K]
    inverse = 1 / B[I] ** 2 + 1 / B[J] ** 2
    repel = -pull * C[0] ** 2 * inverse * Indicator(sp.Ne(I, J)) * I2[I, J] ** (degree - 1)
    router = sp.factorial(degree) * C[1] ** 2 / A[I] ** 2 * own**degree
    expert = pull * C[0] ** 2 / B[I] ** 2 * own ** (degree - 1)
    lemma = "Lemma 7, corrected (errata-1)" if repelled else "Lemma 7 as its proof has it: the term is dropped"
    return (
        Equation(GAMMA1[I, TEACHER_K], router, "equation (4)"),
        Equation(own, expert, "equation (5)"),
        Equation(I2[I, J], repel if repelled else sp.Integer(0), lemma),
        Equation(SELF[I], -(1 / A[I] ** 2 + 1 / B[I] ** 2) * sp.Symbol("r") * SELF[I], "Lemma 6"),
    )


def repulsion(degree: int) -> Any:
    """The coefficient of z in (1/2) dK_ii/dz for the self overlap z = v_i.w_i: -18 c_3 at degree 3."""
    z = sp.Symbol("z")
    own = pair_energy(degree).subs({G: 1, RHO: 1} | dict.fromkeys(OVERLAPS, z))
    return sp.expand(own).coeff(z, 2)


def bind(initial: Initial) -> dict[str, Any]:
    """The numbers of the constants in a run."""
    p, c = initial.parameters, initial.constants
    return {"m": p.m, "m_star": p.m_star, "a": c["norm_v"], "b": c["norm_w"]}


def end(component: str) -> Crossing:
    """The event at which the run stops."""
    return Crossing(
        f"T_end_{component}",
        component,
        LAST,
        absolute=True,
        terminal=True,
        reason=f"an entry of {component} reached {LAST}, where the leading-order equations no longer hold",
        meaning=f"first time |{component}| reaches {LAST}",
    )

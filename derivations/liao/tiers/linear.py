"""Tier linear: the exact Gram flow linearised at the optimum, at which every student equals its teacher.

The squared distance D2 = sum |v_i - v*_i|^2 + |w_i - w*_i|^2 = sum (2 - 2 gamma1_ii) + (2 - 2 gamma2_ii) is linear in
the overlaps, so that its rate 2 (c_1 - c_3) is exact.
"""

from typing import Any

import numpy as np

from derivations.contract import Initial, Observables, UsageError
from derivations.liao.parameters import Parameters
from derivations.liao.summary import observe, summarise
from derivations.liao.tiers import parts
from derivations.liao.tiers.kernels import (
    OVERLAPS,
    RHO,
    S_INDEX,
    Z11,
    Z12,
    Z21,
    Z22,
    G,
    N,
    coefficients,
    correlation,
    notation,
    pair_energy,
    terms,
)
from derivations.liao.tiers.parts import (
    GAMMA1,
    GAMMA2,
    I1,
    I2,
    I3,
    LENGTHS,
    M_STAR,
    NORMS,
    STATE,
    TEACHER_K,
    ZETA1,
    ZETA2,
    I,
    J,
    L,
    M,
    R,
)
from derivations.statement import Base, Definition, Equation, Example, Indicator, Named, Statement, sp

A, B = NORMS["v"], NORMS["w"]
MATCH = Base("match")
TURN = {x: Base(f"T_{x}") for x in "vw"}
ORTHONORMAL = 1e-12
"""Largest distance of the Gram matrix of the teacher from the identity."""
START = """rng = np.random.default_rng(3)
start = {name: 0.01 * rng.standard_normal((m, m)) for name in ("gamma1", "gamma2", "zeta1", "zeta2", "I1", "I2", "I3")}
start["gamma1"], start["gamma2"] = 0.9 * np.eye(m), 0.8 * np.eye(m)"""


def at_optimum(degree: int) -> dict[str, Any]:
    """The second derivatives of K for a recovered pair (rho = g = 1, all z = 0), as sums of S_pq(1)."""
    K = pair_energy(degree)
    place = {G: 1, RHO: 1} | dict.fromkeys(OVERLAPS, 0)

    def both(first: Any, second: Any) -> Any:
        return sp.expand(K.diff(first, second).subs(place))

    found = {"L_1": K.diff(RHO).subs(place), "L_5": K.diff(G).subs(place)}
    for name, first in (("alpha", Z12), ("beta", Z21)):
        for n, second in enumerate((Z12, Z21, Z22), 1):
            found[f"{name}_{n}"] = both(first, second) + both(Z11, second)
    away = K.diff(G, 2).subs(dict.fromkeys((G, *OVERLAPS), 0) | {RHO: 0})
    return found | {"kappa": away}


def apart(i: Any, j: Any, gamma: Any, overlap: Any) -> Any:
    """Return the distance of the overlap of two students from that of their recovered teachers."""
    return overlap[I, J] - sp.Sum(MATCH[i, L] * gamma[j, L], L)


def rates(v: Any, w: Any, kappa: Any) -> dict[Any, Any]:
    """Equation (10) to first order in the overlaps, with the derivatives of K at the optimum."""
    k, same, different = TEACHER_K, sp.KroneckerDelta(I, J), Indicator(sp.Ne(I, J))
    e, y1, y2 = MATCH[I, k], GAMMA1[I, k] - MATCH[I, k], GAMMA2[I, k] - MATCH[I, k]
    between = sp.Sum(Indicator(sp.Ne(I, R)) * I2[I, R] * MATCH[R, k], R) - (1 - e) * y2
    first, second = (TURN[x][I] for x in "vw")
    router = apart(I, J, GAMMA1, I1) / A[I] ** 2 + apart(J, I, GAMMA1, I1) / A[J] ** 2
    mine, other = apart(I, J, GAMMA2, I2), apart(J, I, GAMMA2, I2)
    expert = (w * mine + kappa * other) / B[I] ** 2 + (w * other + kappa * mine) / B[J] ** 2
    mixed = (v * apart(I, J, ZETA2, I3) + same * first) / A[I] ** 2
    mixed += (w * apart(J, I, ZETA1, I3) + same * second) / B[J] ** 2
    return {
        GAMMA1[I, k]: -v / A[I] ** 2 * (1 + e) * y1,
        GAMMA2[I, k]: -(w * (1 + e) * y2 + kappa * between) / B[I] ** 2,
        ZETA1[I, k]: -(v * ZETA1[I, k] + e * first) / A[I] ** 2,
        ZETA2[I, k]: -(w * ZETA2[I, k] + e * second) / B[I] ** 2,
        I1[I, J]: -different * v * router,
        I2[I, J]: -different * expert,
        I3[I, J]: sp.Add(*(-term for term in sp.Add.make_args(mixed))),
    }


def definitions(values: dict[str, Any], numbers: dict[str, Any]) -> list[Definition]:
    """The derivatives of K at the optimum, and the interactions of an expert's overlaps."""
    found = [Definition((numbers[n],), x, "derivatives of K at the optimum") for n, x in values.items() if x != 0]
    for name, x in (("alpha", "v"), ("beta", "w")):
        first, second, third = (numbers[f"{name}_{n}"] for n in (1, 2, 3))
        push = sp.Sum(MATCH[I, L] * (first * ZETA1[I, L] + second * ZETA2[I, L]), L)
        push = (first + second + third) * I3[I, I] - push
        found.append(Definition((TURN[x][I],), push, "push of an expert's own overlaps"))
    return found


def statement(p: Parameters) -> Statement:
    """The linearisation at the optimum, m = m*.  Source: Theorems 3 and 4; equation (10), corrected."""
    values, k = at_optimum(p.degree), TEACHER_K
    numbers = {name: sp.Symbol(name) if value != 0 else sp.Integer(0) for name, value in values.items()}
    return Statement(
        tier="linear",
        name="liao, linear",
        title="the Gram flow linearised at the optimum, at which every student equals its teacher",
        source=f"{parts.PAPER}, Theorems 3 and 4; the linearisation of equation (10), corrected",
        clock=parts.CLOCK,
        validity="near the optimum, at which every student equals its greedily matched teacher; orthonormal teachers, "
        "m = m*",
        neglects="everything of second order in the distance of the Gram matrix from its value at the optimum",
        indices=[((I, J, R), "students"), ((k, L), "teachers"), ((N, S_INDEX), "degrees")],
        sizes=parts.sizes(p),
        state=STATE,
        constants=(
            Named(M, "student experts", 3),
            Named(M_STAR, "teacher experts, as many", 3),
            *LENGTHS,
            Named(MATCH[I, k], "1 for a student and its teacher, else 0", "np.eye(m)"),
        ),
        bind=bind,
        admits=admits,
        definitions=(coefficients(p), correlation(), *definitions(values, numbers)),
        equations=tuple(
            Equation(x, rate, "equation (10) to first order in the overlaps")
            for x, rate in rates(numbers["L_1"], numbers["L_5"], numbers["kappa"]).items()
        ),
        crossings=parts.crossings(p),
        observables=Observables(observe=observe, constants=parts.constants, summary=summarise),
        notation={**notation(), "T_v": ("T^v", "Tv"), "T_w": ("T^w", "Tw"), "match": ("e", "e")},
        terms=terms(p),
        example=Example(START, "gamma2", 0.99, 20.0),
    )


def bind(initial: Initial) -> dict[str, Any]:
    """The numbers of the constants in a run."""
    p, c = initial.parameters, initial.constants
    sizes = {"m": p.m, "m_star": p.m_star}
    return {**sizes, "a": c["norm_v"], "b": c["norm_w"], "match": np.eye(p.m)[:, parts.matched(initial)]}


def admits(initial: Initial) -> None:
    """Raise `UsageError` for a teacher that is not orthonormal."""
    teachers = initial.constants["teacher_gram"]
    off = np.abs(teachers - np.eye(len(teachers))).max(initial=0.0)
    if off > ORTHONORMAL:
        raise UsageError(
            f"tier linear is derived for orthonormal teachers, but two of them overlap by {off:.3g}: take tier exact, "
            "or odesim.linearise"
        )

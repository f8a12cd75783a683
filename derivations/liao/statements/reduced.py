"""The reduced tiers of system `liao` as statements: the cascade of pairs, the leading order, the linearisation."""

from typing import Any

import numpy as np

from derivations.contract import Initial
from derivations.liao import reduced as tiers
from derivations.liao.parameters import Parameters
from derivations.liao.statements.exact import (
    CONSTANTS,
    GAMMA1,
    GAMMA2,
    I1,
    I2,
    I3,
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
from derivations.liao.statements.exact import bind as bind_exact
from derivations.liao.statements.kernels import (
    OVERLAPS,
    RHO,
    S_INDEX,
    C,
    G,
    N,
    coefficients,
    correlation,
    neglected,
    notation,
    pair_energy,
    terms,
)
from derivations.statement import Base, Definition, Equation, Example, Indicator, Kernel, Named, Partial, Statement, sp

A, B = NORMS["v"], NORMS["w"]
SELF, MATCH = Base("I3_self"), Base("match")
TURN = {x: Base(f"T_{x}") for x in "vw"}
CLOCK = "one step of SGD of size eta advances t by eta"
PAPER = "Liao & Kyrillidis 2026"
Z11, Z12, Z21, Z22 = OVERLAPS


def statement(parameters: Parameters, tier: str) -> Statement:
    """The statement of a reduced tier."""
    if tier == "cascade":
        return cascade(parameters)
    return linear(parameters) if tier == "linear" else riccati(parameters, tier)


def aligned(p: Parameters) -> tuple[Kernel, Kernel]:
    """K and its slopes for two experts whose mis-alignments vanish."""
    zero = dict.fromkeys(OVERLAPS, 0)
    energy, K = pair_energy(p.degree).subs(zero), sp.Symbol("K")
    note = "of two experts with rho = v_1.v_2 and `g` = w_1.w_2, all other overlaps zero"
    pair = Kernel("pair_energy", (RHO, G), {"K": energy}, note=note)
    slopes = Kernel(
        "Lam",
        (RHO, G),
        {"K_rho": energy.diff(RHO), "K_g": energy.diff(G)},
        {"K_rho": (Partial(K, RHO),), "K_g": (Partial(K, G),)},
    )
    return pair, slopes


def cascade(p: Parameters) -> Statement:
    """Each greedily matched pair alone."""
    pair, slopes = aligned(p)
    router, expert, lam1, lam5 = GAMMA1[L], GAMMA2[L], Base("lam1")[L], Base("lam5")[L]

    def bind(initial: Initial) -> dict[str, Any]:
        c, expert = initial.constants, tiers.matched(initial)
        return {**bind_exact(initial), "a": c["norm_v"][expert], "b": c["norm_w"][expert]}

    at = "equation (5), with the saturating factors of the exact reduction m = m* = 1"
    rates = ((router, A, lam1), (expert, B, lam5))
    stated = tiers.cascade(p)
    return Statement(
        name="liao, cascade",
        title="every greedily matched pair alone",
        source=f"{PAPER}, Section 4, equation (5)",
        clock=CLOCK,
        validity=stated.about.validity,
        neglects=neglected(p, stated.about.neglects),
        indices=[((L,), "teachers, each with its matched student"), ((N, S_INDEX), "degrees")],
        state=(
            Named(router, "router alignment of the matched pair"),
            Named(expert, "expert alignment of the matched pair"),
        ),
        constants=(
            Named(M, "student experts", 6),
            Named(M_STAR, "teacher experts", 2),
            Named(A[L], "norm of the matched router", "np.ones(m_star)"),
            Named(B[L], "norm of the matched expert", "np.ones(m_star)"),
        ),
        bind=bind,
        definitions=(
            coefficients(p),
            correlation(),
            pair,
            slopes,
            Definition((lam1, lam5), (router, expert), "derivatives of K of a pair", slopes),
        ),
        equations=tuple(Equation(x, slope / norm[L] ** 2 * (1 - x**2), at) for x, norm, slope in rates),
        loss=(M + M_STAR) * pair["K"](1, 1) / 2 - sp.Sum(pair["K"](router, expert), L),
        notation={**notation(), "K_rho": ("K_\\rho", "Kρ"), "K_g": ("K_g", "Kg")},
        terms=terms(p),
        example=Example(
            'start = {"gamma1": np.zeros(m_star), "gamma2": np.linspace(0.1, 0.05, m_star)}', "gamma2", 0.9, 60.0
        ),
    )


def repulsion(degree: int) -> Any:
    """The coefficient of z in (1/2) dK_ii/dz for the self overlap z = v_i.w_i: -18 c_3 at degree 3."""
    z = sp.Symbol("z")
    own = pair_energy(degree).subs({G: 1, RHO: 1} | dict.fromkeys(OVERLAPS, z))
    return sp.expand(own).coeff(z, 2)


def riccati(p: Parameters, tier: str) -> Statement:
    """The leading order in small overlaps."""
    degree, pull = p.degree, p.degree * sp.factorial(p.degree)
    inverse = 1 / B[I] ** 2 + 1 / B[J] ** 2
    repel = -pull * C[0] ** 2 * inverse * Indicator(sp.Ne(I, J)) * I2[I, J] ** (degree - 1)
    r = sp.Symbol("r")
    lemma = "Lemma 7, corrected (errata-1)" if tier == "riccati" else "Lemma 7 as its proof has it: the term is dropped"
    router = sp.factorial(degree) * C[1] ** 2 / A[I] ** 2 * GAMMA2[I, TEACHER_K] ** degree
    expert = pull * C[0] ** 2 / B[I] ** 2 * GAMMA2[I, TEACHER_K] ** (degree - 1)
    stated = tiers.riccati(p, tier)
    start = """rng = np.random.default_rng(3)
start = {"gamma1": np.zeros((m, m_star)), "gamma2": np.linspace(0.02, 0.1, m * m_star).reshape(m, m_star)}
z = 0.01 * rng.standard_normal((m, m))
start |= {"I2": np.triu(z, 1) + np.triu(z, 1).T + np.eye(m), "I3_self": 0.03 * rng.standard_normal(m)}"""
    return Statement(
        name=f"liao, {tier}",
        title="the leading order in small overlaps",
        source=f"{PAPER}, equations (4) and (5), Lemmas 6 and 7",
        clock=CLOCK,
        validity=stated.about.validity,
        neglects=neglected(p, stated.about.neglects),
        indices=[((I, J), "students"), ((TEACHER_K,), "teachers"), ((N, S_INDEX), "degrees")],
        state=(*STATE[:2], STATE[5], Named(SELF[I], "self overlap v_i.w_i")),
        constants=CONSTANTS,
        bind=bind_exact,
        definitions=(
            coefficients(p),
            correlation(),
            Definition((r,), repulsion(degree), "repulsion of an expert and its router"),
        ),
        equations=(
            Equation(GAMMA1[I, TEACHER_K], router, "equation (4)"),
            Equation(GAMMA2[I, TEACHER_K], expert, "equation (5)"),
            Equation(I2[I, J], repel if tier == "riccati" else sp.Integer(0), lemma),
            Equation(SELF[I], -(1 / A[I] ** 2 + 1 / B[I] ** 2) * r * SELF[I], "Lemma 6"),
        ),
        notation=notation(),
        terms=terms(p),
        rules=("The run stops when an overlap reaches 0.999, where the leading order no longer holds.",),
        example=Example(start, "gamma2", 0.9, 2.1),
    )


def at_optimum(degree: int) -> dict[str, Any]:
    """The second derivatives of K where a pair is recovered (rho = g = 1, all z = 0), as sums of S_pq(1)."""
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
    """How far an overlap of two students is from that of the teachers they have found."""
    return overlap[I, J] - sp.Sum(MATCH[i, L] * gamma[j, L], L)


def linear_rates(v: Any, w: Any, kappa: Any) -> dict[Any, Any]:
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


def linear_definitions(values: dict[str, Any], numbers: dict[str, Any]) -> list[Definition]:
    """The derivatives of K at the optimum, and what an expert's own overlaps do to each other."""
    found = [Definition((numbers[n],), x, "derivatives of K at the optimum") for n, x in values.items() if x != 0]
    for name, x in (("alpha", "v"), ("beta", "w")):
        first, second, third = (numbers[f"{name}_{n}"] for n in (1, 2, 3))
        push = sp.Sum(MATCH[I, L] * (first * ZETA1[I, L] + second * ZETA2[I, L]), L)
        push = (first + second + third) * I3[I, I] - push
        found.append(Definition((TURN[x][I],), push, "push of an expert's own overlaps"))
    return found


def linear(p: Parameters) -> Statement:
    """The exact Gram flow linearised at the recovered optimum, written out overlap by overlap."""
    values, k = at_optimum(p.degree), TEACHER_K
    numbers = {name: sp.Symbol(name) if value != 0 else sp.Integer(0) for name, value in values.items()}
    rates = linear_rates(numbers["L_1"], numbers["L_5"], numbers["kappa"])

    def bind(initial: Initial) -> dict[str, Any]:
        return {**bind_exact(initial), "match": np.eye(initial.parameters.m)[:, tiers.matched(initial)]}

    stated = tiers.linear(p)
    start = """rng = np.random.default_rng(3)
start = {name: 0.01 * rng.standard_normal((m, m)) for name in ("gamma1", "gamma2", "zeta1", "zeta2", "I1", "I2", "I3")}
start["gamma1"], start["gamma2"] = 0.9 * np.eye(m), 0.8 * np.eye(m)"""
    return Statement(
        name="liao, linear",
        title="the Gram flow linearised where every student has found its teacher",
        source=f"{PAPER}, Theorems 3 and 4; the linearisation of equation (10), corrected",
        clock=CLOCK,
        validity=stated.about.validity + "; orthonormal teachers, m = m*",
        neglects=neglected(p, stated.about.neglects),
        indices=[((I, J, R), "students"), ((k, L), "teachers"), ((N, S_INDEX), "degrees")],
        state=STATE,
        constants=(
            Named(M, "student experts", 3),
            Named(M_STAR, "teacher experts, as many", 3),
            *CONSTANTS[2:],
            Named(MATCH[I, k], "1 for a student and its teacher, else 0", "np.eye(m)"),
        ),
        bind=bind,
        definitions=(coefficients(p), correlation(), *linear_definitions(values, numbers)),
        equations=tuple(Equation(x, rate, "equation (10) to first order in the overlaps") for x, rate in rates.items()),
        notation={**notation(), "T_v": ("T^v", "Tv"), "T_w": ("T^w", "Tw"), "match": ("e", "e")},
        terms=terms(p),
        example=Example(start, "gamma2", 0.99, 20.0),
    )

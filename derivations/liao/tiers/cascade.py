"""Tier cascade: each greedily matched pair independently, gamma2' = (p p!/b^2) S00 gamma2^(p-1) (1 - gamma2^2)."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract import Initial, Observables
from derivations.liao.parameters import Parameters
from derivations.liao.summary import summarise
from derivations.liao.tiers import parts
from derivations.liao.tiers.kernels import (
    OVERLAPS,
    RHO,
    S_INDEX,
    G,
    N,
    coefficients,
    correlation,
    notation,
    pair_energy,
    terms,
)
from derivations.liao.tiers.parts import GAMMA1, GAMMA2, M_STAR, NORMS, SIZES, L, M
from derivations.statement import Base, Definition, Equation, Example, Kernel, Named, Partial, Statement, sp

A, B = NORMS["v"], NORMS["w"]
AT = "equation (5), with the saturating factors of the exact reduction m = m* = 1"
START = 'start = {"gamma1": np.zeros(m_star), "gamma2": np.linspace(0.1, 0.05, m_star)}'


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


def statement(p: Parameters) -> Statement:
    """The equations of each greedily matched pair without the others. Source: equation (5)."""
    pair, slopes = aligned(p)
    router, expert, lam1, lam5 = GAMMA1[L], GAMMA2[L], Base("lam1")[L], Base("lam5")[L]
    rates = ((router, A, lam1), (expert, B, lam5))
    return Statement(
        tier="cascade",
        name="liao, cascade",
        title="every greedily matched pair alone",
        source=f"{parts.PAPER}, Section 4, equation (5)",
        clock=parts.CLOCK,
        validity="exact for m = m* = 1 with v perpendicular to w, w* and w to v*; otherwise the matched pairs, alone",
        neglects="every overlap except gamma1 and gamma2 of the greedily matched pairs, and all unused experts",
        indices=[((L,), "teachers, each with its matched student"), ((N, S_INDEX), "degrees")],
        sizes=parts.sizes(p),
        state=(
            Named(router, "router alignment of the matched pair", dims=("pair",), symbol="gamma^(1)"),
            Named(expert, "expert alignment of the matched pair", dims=("pair",), symbol="gamma^(2)"),
        ),
        constants=(
            *SIZES,
            Named(A[L], "norm of the matched router", "np.ones(m_star)"),
            Named(B[L], "norm of the matched expert", "np.ones(m_star)"),
        ),
        bind=bind,
        begin=begin,
        definitions=(
            coefficients(p),
            correlation(),
            pair,
            slopes,
            Definition((lam1, lam5), (router, expert), "derivatives of K of a pair", slopes),
        ),
        equations=tuple(Equation(x, slope / norm[L] ** 2 * (1 - x**2), AT) for x, norm, slope in rates),
        loss=(M + M_STAR) * pair["K"](1, 1) / 2 - sp.Sum(pair["K"](router, expert), L),
        crossings=parts.crossings(p)[:2],
        observables=Observables(constants=parts.constants, invariants=invariants, summary=summarise_pairs),
        notation={**notation(), "K_rho": ("K_\\rho", "Kρ"), "K_g": ("K_g", "Kg")},
        terms=terms(p),
        example=Example(START, "gamma2", 0.9, 60.0),
    )


def bind(initial: Initial) -> dict[str, Any]:
    """The numbers of the constants in a run: the norms of the matched experts."""
    p, c, expert = initial.parameters, initial.constants, parts.matched(initial)
    return {"m": p.m, "m_star": p.m_star, "a": c["norm_v"][expert], "b": c["norm_w"][expert]}


def begin(initial: Initial) -> dict[str, np.ndarray]:
    """The overlaps of the matched pairs."""
    expert, teacher = parts.matched(initial), np.arange(initial.parameters.m_star)
    return {name: initial.state[name][expert, teacher] for name in ("gamma1", "gamma2")}


def invariants(initial: Initial, state: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Return the largest excess of an overlap over 1, and the largest increase of the loss."""
    largest = max(np.abs(state[name]).max(initial=0.0) for name in ("gamma1", "gamma2"))
    return {"overlap_excess": float(max(0.0, largest - 1.0)), "loss_increase": parts.rise(state)}


def summarise_pairs(initial: Initial, run: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """The headline numbers, if each matched student is the only student of its teacher."""
    return summarise(initial, {**run, **{name: run[name][None, :] for name in ("T_gamma1", "T_gamma2")}})

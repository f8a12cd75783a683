"""Common parts of the tiers of system `liao`: symbols, state, constants, events, and results of a run."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract import Crossing, Initial, Labelled, Layout
from derivations.equations.program import Ranges
from derivations.equations.tier import part
from derivations.liao.initial import greedy_matching
from derivations.liao.overlaps import assemble_gram
from derivations.liao.parameters import Parameters
from derivations.statement import Base, Named, sp

RECOVERED = 0.9
"""Smallest overlap that counts as recovered (the paper's threshold, Theorem 1)."""
ANTI_ALIGNED = -0.5
"""Two student experts count as anti-aligned as soon as their overlap falls below this value."""
PAPER = "Liao & Kyrillidis 2026"
CLOCK = "one step of SGD of size eta advances `t` by eta"

M, M_STAR = sp.symbols("m m_star", integer=True)
I, J, R = (sp.Idx(n, M) for n in "ijr")
TEACHER_K, L = (sp.Idx(n, M_STAR) for n in "kl")
NORMS = {"v": Base("a"), "w": Base("b")}
GAMMA1, GAMMA2, ZETA1, ZETA2, I1, I2, I3, A = map(Base, "gamma1 gamma2 zeta1 zeta2 I1 I2 I3 A".split())
T1, T2, T3 = map(Base, ("T1", "T2", "T3"))
CROSS, PAIR, SQUARE = ("expert", "teacher"), ("expert", "expert_"), (I, J)
STATE = (
    Named(GAMMA1[I, TEACHER_K], "router alignment v_i . v*_k", dims=CROSS, symbol="gamma^(1)_ij"),
    Named(GAMMA2[I, TEACHER_K], "expert alignment w_i . w*_k", dims=CROSS, symbol="gamma^(2)_ij"),
    Named(ZETA1[I, TEACHER_K], "mis-alignment v_i . w*_k", dims=CROSS, symbol="zeta^(1)_ij"),
    Named(ZETA2[I, TEACHER_K], "mis-alignment w_i . v*_k", dims=CROSS, symbol="zeta^(2)_ij"),
    Named(I1[SQUARE], "router-router overlap v_i . v_j", unit=True, dims=PAIR, symbol="I^(1)_ij"),
    Named(I2[SQUARE], "expert-expert overlap w_i . w_j", unit=True, dims=PAIR, symbol="I^(2)_ij"),
    Named(I3[SQUARE], "router-expert overlap v_i . w_j (not symmetric)", dims=PAIR, symbol="I^(3)_ij"),
)
SIZES = (Named(M, "student experts", 6), Named(M_STAR, "teacher experts", 2))
LENGTHS = (
    Named(NORMS["v"][I], "norm of router `i`, conserved", "np.ones(m)"),
    Named(NORMS["w"][I], "norm of expert `i`, conserved", "np.ones(m)"),
)
TEACHERS = (
    Named(T1[TEACHER_K, L], "overlap v*_k.v*_l of the teacher's routers", "np.eye(m_star)"),
    Named(T2[TEACHER_K, L], "overlap w*_k.w*_l of its experts", "np.eye(m_star)"),
    Named(T3[TEACHER_K, L], "overlap v*_k.w*_l of the two", "np.zeros((m_star, m_star))"),
)


def sizes(p: Parameters) -> dict[str, int]:
    """The lengths of the axes of the state."""
    return {"m": p.m, "m_star": p.m_star}


def flat(m: int, m_star: int) -> Layout:
    """The flat state: gamma1, gamma2, zeta1, zeta2, then I1 and I2 above the diagonal, then I3."""
    ranges = Ranges({"m": m, "m_star": m_star}, {})
    return Layout(tuple(part(v, ranges) for v in STATE))


def bind(initial: Initial) -> dict[str, Any]:
    """The numbers of the constants in a run."""
    p, c = initial.parameters, initial.constants
    teachers, k = c["teacher_gram"], p.m_star
    blocks = {"T1": teachers[:k, :k], "T2": teachers[k:, k:], "T3": teachers[:k, k:]}
    return {"m": p.m, "m_star": p.m_star, "a": c["norm_v"], "b": c["norm_w"], **blocks}


def crossings(parameters: Parameters) -> tuple[Crossing, ...]:
    """The hitting times stored for every run: recovery of routers and experts, anti-alignment of students."""
    even = parameters.degree % 2 == 0
    return (
        Crossing("T_gamma1", "gamma1", RECOVERED, meaning=f"first time gamma1 reaches {RECOVERED}"),
        Crossing("T_gamma2", "gamma2", RECOVERED, absolute=even, meaning=f"first time gamma2 reaches {RECOVERED}"),
        Crossing("T_I2", "I2", ANTI_ALIGNED, direction=-1, meaning=f"first time I2 falls to {ANTI_ALIGNED}"),
    )


def constants(initial: Initial) -> Labelled:
    """Return the constants of a run: the norms, the teacher's Gram matrix, and the greedy matching at time 0."""
    c = initial.constants
    best = greedy_matching(c["norm_w"][:, None] * initial.state["gamma2"])
    return {
        "norm_v": (("expert",), c["norm_v"], "norm a_i of router i, conserved by the flow"),
        "norm_w": (("expert",), c["norm_w"], "norm b_i of expert i, conserved by the flow"),
        "teacher_gram": (("row", "column"), c["teacher_gram"], "Gram matrix of v*_1.., w*_1.."),
        "greedy_expert": (("teacher",), best, "expert matched greedily to each teacher at time 0"),
    }


def matched(initial: Initial) -> np.ndarray:
    """The matched expert of each teacher: the race is decided by gamma2/b^2, the inverse of the escape time."""
    return greedy_matching(initial.state["gamma2"] / initial.constants["norm_w"][:, None] ** 2)


def invariants(initial: Initial, state: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Return the invariants of the exact flow, measured on the saved states.

    `gram_min_eigenvalue` must not be negative, and `overlap_excess` = max |overlap| - 1 not positive, by more than
    round-off. `loss_increase` is the largest increase of the loss between two saved times (the loss of the flow
    decreases).
    """
    gram = assemble_gram(state, initial.constants["teacher_gram"])
    return {
        "gram_min_eigenvalue": float(np.linalg.eigvalsh(gram).min()),
        "overlap_excess": float(max(0.0, np.abs(gram).max() - 1.0)),
        "loss_increase": rise(state),
    }


def rise(state: Mapping[str, np.ndarray]) -> float:
    """The largest increase of the loss between two saved times."""
    return float(np.diff(state["loss"]).max(initial=0.0)) if "loss" in state else 0.0

"""The population gradient flow of system `liao`, closed on the Gram matrix of its unit vectors.

The derivation, step by step:

1. The pair kernel K of two experts is a polynomial in their overlaps (`kernels.kernel`; Lemma 1).
2. The population loss is a sum of pair kernels, L = (1/2) sum K_ir - sum K_ij* + const (Section 3).
3. Its derivative with respect to each overlap is C = dL/dG, by SymPy, with Price's rule for the gate overlap
   (`kernels.partial`; the five lambdas of Section 4 and Appendix A.3).
4. On the sphere, dU_a/dt = -(1/norm_a^2) (C U - (U_a . C U) U_a) (equation (10), corrected), hence for the
   overlaps D = -rate (N - diag(N) G) with N = C G, and dG = D + D^T on student pairs.

The flow needs no approximation: it is exact at every d, for every teacher Gram matrix and all norms, and its
cost does not depend on d.  The reduced tiers say what they leave out.
"""

import functools
from collections.abc import Callable, Mapping

import numpy as np

from derivations import clusters
from derivations.contract import (
    Addressed,
    Code,
    Component,
    Crossing,
    Dense,
    Equations,
    Initial,
    Kernel,
    Labelled,
    Layout,
    Observables,
    Smooth,
    Tier,
    Upper,
)
from derivations.liao import arrays
from derivations.liao.initial import greedy_matching
from derivations.liao.loops import COMMON, KIND, Arguments
from derivations.liao.overlaps import assemble_gram
from derivations.liao.parameters import Parameters
from derivations.liao.summary import observe, summarise

RECOVERED = 0.9
"""An overlap counts as recovered from this value on (the paper's threshold, Theorem 1)."""
ANTI_ALIGNED = -0.5
"""Two student experts count as anti-aligned once their overlap has passed this value downwards."""

STATE = (
    Component("gamma1", ("expert", "teacher"), symbol="gamma^(1)_ij", meaning="router alignment v_i . v*_j"),
    Component("gamma2", ("expert", "teacher"), symbol="gamma^(2)_ij", meaning="expert alignment w_i . w*_j"),
    Component("zeta1", ("expert", "teacher"), symbol="zeta^(1)_ij", meaning="mis-alignment v_i . w*_j"),
    Component("zeta2", ("expert", "teacher"), symbol="zeta^(2)_ij", meaning="mis-alignment w_i . v*_j"),
    Component("I1", ("expert", "expert_"), symbol="I^(1)_ij", meaning="router-router overlap v_i . v_j"),
    Component("I2", ("expert", "expert_"), symbol="I^(2)_ij", meaning="expert-expert overlap w_i . w_j"),
    Component("I3", ("expert", "expert_"), symbol="I^(3)_ij", meaning="router-expert overlap v_i . w_j"),
)
LOOPS = ("derivations.lanes:correlations", "derivations.liao.loops:pair_blocks")
AROUND = tuple(f"derivations.liao.loops:{name}" for name in ("layout", "given"))


def exact(parameters: Parameters) -> Equations:
    """The exact Gram flow.  Source: Liao & Kyrillidis 2026, Appendix A.3 (corrected, see the README's errata)."""
    return Equations(
        about=Tier(
            name="exact",
            validity=(
                "exact for Gaussian inputs at every d, any teacher Gram matrix and any norms, in the limit of "
                "small step size and large batch (gradient flow on the population loss)"
            ),
            neglects="nothing",
        ),
        advance=Smooth(coupled=labels),
        code=Code(
            structure=f"liao_exact_degree{parameters.degree}",
            kernels=functools.partial(_kernels, parameters.degree),
            loops=LOOPS,
            roles={},
            arrays=arrays.build_exact,
            takes=Arguments,
            around=AROUND,
            common=(COMMON,),
            addressed=Addressed(COMMON, KIND, "given", loss=True),
        ),
        state=STATE,
        layout=flat(parameters.m, parameters.m_star),
        arguments=arguments,
        crossings=crossings(parameters),
        observables=Observables(observe=observe, constants=constants, invariants=invariants, summary=summarise),
    )


def _kernels(degree: int) -> dict[str, Kernel]:
    """The kernels, derived when they are needed: a compilation found in the cache needs none."""
    from derivations.liao.kernels import exact_kernels

    return exact_kernels(degree)


def crossings(parameters: Parameters) -> tuple[Crossing, ...]:
    """The hitting times kept for every run: recovery of routers and experts, anti-alignment of students."""
    even = parameters.degree % 2 == 0
    return (
        Crossing("T_gamma1", "gamma1", RECOVERED, meaning=f"first time gamma1 reaches {RECOVERED}"),
        Crossing("T_gamma2", "gamma2", RECOVERED, absolute=even, meaning=f"first time gamma2 reaches {RECOVERED}"),
        Crossing("T_I2", "I2", ANTI_ALIGNED, direction=-1, meaning=f"first time I2 falls to {ANTI_ALIGNED}"),
    )


def rates(initial: Initial) -> np.ndarray:
    """1/a_i^2 for the routers, then 1/b_i^2 for the experts (2m,): how fast unit vectors turn."""
    return np.concatenate([initial.constants["norm_v"], initial.constants["norm_w"]]) ** -2.0


def arguments(initial: Initial) -> Arguments:
    """The run-time arguments of the exact `flow` and `loss`, in their order."""
    from derivations.liao.gate import gate_table

    p = initial.parameters
    table = gate_table(p.gate, p.temperature, p.degree)
    teachers = np.ascontiguousarray(initial.constants["teacher_gram"])
    return Arguments(p.m, p.m_star, teachers, rates(initial), table.levels, *table[1:3], table.reach)


def labels(initial: Initial) -> Callable[[np.ndarray], np.ndarray]:
    """Which entries of the state are strongly coupled: those between the same two clusters of vectors."""
    from derivations.liao.loops import layout

    p = initial.parameters
    first, second = np.divmod(layout(p.m, p.m_star)["rows"].astype(int), 2 * p.m + 2 * p.m_star)
    teachers = initial.constants["teacher_gram"]
    return lambda y: clusters.labels(clusters.clusters(arrays.gram(np, y, p.m, p.m_star, teachers)), first, second)


def flat(m: int, m_star: int) -> Layout:
    """The flat state: gamma1, gamma2, zeta1, zeta2, then I1 and I2 above the diagonal, then I3."""
    cross = tuple(Dense(name, (m, m_star)) for name in ("gamma1", "gamma2", "zeta1", "zeta2"))
    return Layout((*cross, Upper("I1", m), Upper("I2", m), Dense("I3", (m, m))))


def constants(initial: Initial) -> Labelled:
    """What stays fixed along a run: the norms, the teacher's Gram matrix, and the greedy matching at time 0."""
    c = initial.constants
    matched = greedy_matching(c["norm_w"][:, None] * initial.state["gamma2"])
    return {
        "norm_v": (("expert",), c["norm_v"], "norm a_i of router i, conserved by the flow"),
        "norm_w": (("expert",), c["norm_w"], "norm b_i of expert i, conserved by the flow"),
        "teacher_gram": (("row", "column"), c["teacher_gram"], "Gram matrix of v*_1.., w*_1.."),
        "greedy_expert": (("teacher",), matched, "expert matched greedily to each teacher at time 0"),
    }


def invariants(initial: Initial, state: Mapping[str, np.ndarray]) -> dict[str, float]:
    """What the exact flow preserves, as measured on the saved states.

    `gram_min_eigenvalue` must not fall below round-off, `overlap_excess` = max |overlap| - 1 must not exceed it,
    `loss_increase` is the largest rise of the loss between two saved times (the flow only descends).
    """
    gram = assemble_gram(state, initial.constants["teacher_gram"])
    increase = float(np.diff(state["loss"]).max(initial=0.0)) if "loss" in state else 0.0
    return {
        "gram_min_eigenvalue": float(np.linalg.eigvalsh(gram).min()),
        "overlap_excess": float(max(0.0, np.abs(gram).max() - 1.0)),
        "loss_increase": increase,
    }

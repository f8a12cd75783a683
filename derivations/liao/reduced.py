"""The reduced tiers of system `liao`: what each keeps, and what it neglects."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract import (
    Code,
    Component,
    Crossing,
    Dense,
    Equations,
    Initial,
    Kernel,
    Layout,
    Observables,
    Smooth,
    Tier,
    Upper,
)
from derivations.liao import arrays, population
from derivations.liao.gate import correlations_at, gate_table
from derivations.liao.initial import greedy_matching
from derivations.liao.parameters import Parameters
from derivations.liao.reduced_loops import Cascade, Leading
from derivations.liao.summary import observe, summarise

PAIR = (
    Component("gamma1", ("pair",), symbol="gamma^(1)", meaning="router alignment of the matched pair"),
    Component("gamma2", ("pair",), symbol="gamma^(2)", meaning="expert alignment of the matched pair"),
)
LEADING = (
    *population.STATE[:2],
    population.STATE[5],
    Component("I3_self", ("expert",), symbol="I^(3)_ii", meaning="self overlap v_i . w_i"),
)


def equations(parameters: Parameters, tier: str) -> Equations:
    """The equations of a reduced tier."""
    return {"cascade": cascade, "riccati": riccati, "riccati_paper": riccati, "linear": linear}[tier](parameters, tier)


def _kernels(name: str, degree: int) -> Mapping[str, Kernel]:
    """The kernels called `name`, derived when they are needed, as in `population`."""
    from derivations.liao import kernels

    return getattr(kernels, name)(degree)


def cascade(parameters: Parameters, tier: str = "cascade") -> Equations:
    """Each greedily matched pair alone: gamma2' = (p p!/b^2) S00 gamma2^(p-1) (1 - gamma2^2), gamma1' likewise.

    Source: Liao & Kyrillidis 2026, equation (5), with the saturating factors of the exact reduction m = m* = 1.
    """
    return Equations(
        about=Tier(
            name=tier,
            validity="exact for m = m* = 1 with v perpendicular to w, w* and w to v*; otherwise the matched pairs, "
            "alone",
            neglects="every overlap except gamma1 and gamma2 of the greedily matched pairs, and all unused experts",
        ),
        advance=Smooth(),
        code=Code(
            structure=f"liao_cascade_degree{parameters.degree}",
            kernels=functools.partial(_kernels, "aligned_kernels", parameters.degree),
            loops=(
                "derivations.lanes:correlations",
                "derivations.liao.reduced_loops:cascade_flow",
                "derivations.liao.reduced_loops:cascade_loss",
            ),
            roles={"flow": "cascade_flow", "loss": "cascade_loss"},
            arrays=arrays.build_cascade,
            takes=Cascade,
        ),
        state=PAIR,
        layout=Layout((Dense("gamma1", (parameters.m_star,)), Dense("gamma2", (parameters.m_star,)))),
        arguments=_cascade_arguments,
        begin=_cascade_start,
        crossings=population.crossings(parameters)[:2],
        observables=Observables(
            constants=population.constants,
            invariants=lambda initial, state: {
                "overlap_excess": float(
                    max(0.0, max(np.abs(state[k]).max(initial=0.0) for k in ("gamma1", "gamma2")) - 1)
                ),
                "loss_increase": float(np.diff(state["loss"]).max(initial=0.0)),
            },
            summary=_summarise_cascade,
        ),
    )


def matched(initial: Initial) -> np.ndarray:
    """The matched expert of each teacher: the race key is gamma2/b^2, the inverse of the escape time."""
    return greedy_matching(initial.state["gamma2"] / initial.constants["norm_w"][:, None] ** 2)


def _cascade_arguments(initial: Initial) -> Cascade:
    p, expert, rates = initial.parameters, matched(initial), population.rates(initial)
    table = gate_table(p.gate, p.temperature, p.degree)
    tables = (table.levels, table.shift, table.odd, table.reach)
    return Cascade(p.m_star, p.m - p.m_star, rates[expert], rates[p.m + expert], *tables, correlations_at(p, 1.0))


def _cascade_start(initial: Initial) -> dict[str, np.ndarray]:
    expert, teacher = matched(initial), np.arange(initial.parameters.m_star)
    return {name: initial.state[name][expert, teacher] for name in ("gamma1", "gamma2")}


def _summarise_cascade(initial: Initial, run: Mapping[str, np.ndarray]) -> dict[str, Any]:
    return summarise(initial, {**run, **{name: run[name][None, :] for name in ("T_gamma1", "T_gamma2")}})


def riccati(parameters: Parameters, tier: str) -> Equations:
    """The leading order in small overlaps, with (`riccati`) or without (`riccati_paper`) student-student repulsion.

        gamma2_ij' = (p p! c_0^2 / b_i^2) gamma2_ij^(p-1)
        gamma1_ij' = (p! c_1^2 / a_i^2) gamma2_ij^p
        I2_ij'     = -p p! c_0^2 (1/b_i^2 + 1/b_j^2) I2_ij^(p-1)      (dropped by the proof of Lemma 7)
        I3_ii'     = -(1/a_i^2 + 1/b_i^2) r I3_ii,  r = -18 c_3 at p = 3

    Source: Liao & Kyrillidis 2026, equations (4), (5); the I2 term is the correction of its Lemma 7.
    """
    repel = float(tier == "riccati")
    m, cross = parameters.m, (parameters.m, parameters.m_star)
    return Equations(
        about=Tier(
            name=tier,
            validity="leading order while every overlap is small; the run stops when an overlap reaches 0.999",
            neglects=(
                "all terms of higher order: saturation, mis-alignments, router-router overlaps"
                + ("" if repel else "; and the student-student term of I2, as the proof of Lemma 7 does")
            ),
        ),
        advance=Smooth(),
        code=Code(
            structure=f"liao_riccati_degree{parameters.degree}",
            kernels=functools.partial(_kernels, "leading_kernels", parameters.degree),
            loops=("derivations.liao.reduced_loops:riccati_flow",),
            roles={"flow": "riccati_flow"},
            arrays=arrays.build_riccati,
            takes=Leading,
        ),
        state=LEADING,
        layout=Layout((Dense("gamma1", cross), Dense("gamma2", cross), Upper("I2", m), Dense("I3_self", (m,)))),
        arguments=functools.partial(_riccati_arguments, repel=repel),
        begin=lambda initial: {**initial.state, "I3_self": np.diag(initial.state["I3"])},
        crossings=(
            *population.crossings(parameters),
            _end("gamma2"),
            _end("I2"),
        ),
        observables=Observables(observe=observe, constants=population.constants, summary=summarise),
    )


def _end(component: str) -> Crossing:
    return Crossing(
        f"T_end_{component}",
        component,
        0.999,
        absolute=True,
        terminal=True,
        reason=f"an entry of {component} reached 0.999, where the leading-order equations no longer hold",
        meaning=f"first time |{component}| reaches 0.999",
    )


def _riccati_arguments(initial: Initial, repel: float) -> Leading:
    p = initial.parameters
    return Leading(p.m, p.m_star, repel, population.rates(initial), correlations_at(p, 0.0), correlations_at(p, 1.0))


def linear(parameters: Parameters, tier: str = "linear") -> Equations:
    """The exact Gram flow linearised at the recovered optimum G*: y' = J (y - y*), m = m*.

    J is the Jacobian of the exact right-hand side, by a complex step (no truncation, no cancellation).  The
    squared distance D2 = sum |v_i - v*_i|^2 + |w_i - w*_i|^2 = sum (2 - 2 gamma1_ii) + (2 - 2 gamma2_ii) is linear
    in G, so its rate 2 (c_1 - c_3) appears exactly.  Source: Liao & Kyrillidis 2026, Theorems 3 and 4.
    """
    full = population.exact(parameters)
    return dataclasses.replace(
        full,
        about=Tier(
            tier,
            validity="near the optimum, where every student has found its greedily matched teacher",
            neglects="everything of second order in the distance of the Gram matrix from its value at the optimum",
        ),
        advance=Smooth(),  # what is coupled in the exact flow is told with its right-hand side
        code=Code(
            structure="liao_linear",
            kernels=dict,
            loops=("derivations.liao.reduced_loops:linear_flow",),
            roles={"flow": "linear_flow"},
            arrays=arrays.build_linear,
        ),
        arguments=_linear_arguments,
        observables=dataclasses.replace(full.observables, invariants=lambda initial, state: {}),
    )


def optimum(initial: Initial) -> np.ndarray:
    """The flat state at which student i equals its matched teacher."""
    m, teachers = initial.parameters.m, initial.constants["teacher_gram"]
    teacher = np.argsort(matched(initial))
    order = np.concatenate([teacher, m + teacher])
    full = teachers[np.ix_(order, order)]
    cross = teachers[order]
    state = {
        "gamma1": cross[:m, :m],
        "gamma2": cross[m:, m:],
        "zeta1": cross[:m, m:],
        "zeta2": cross[m:, :m],
        "I1": full[:m, :m],
        "I2": full[m:, m:],
        "I3": full[:m, m:],
    }
    return population.flat(m, m).pack(state)


def _linear_arguments(initial: Initial) -> tuple[Any, ...]:
    centre = optimum(initial)
    return jacobian(initial, centre), centre


def jacobian(initial: Initial, y: np.ndarray, step: float = 1e-30) -> np.ndarray:
    """dF/dy of the exact right-hand side at y, column by column: Im F(y + i step e_k) / step."""
    from derivations.liao import kernels

    exact = kernels.exact_kernels(initial.parameters.degree)
    flow = arrays.build_exact(np, {name: kernels.numpy_kernel(kernel) for name, kernel in exact.items()})["flow"]
    fixed = population.arguments(initial)
    columns = [flow(0.0, y + 1j * step * unit, fixed).imag / step for unit in np.eye(y.size)]
    return np.array(columns).T

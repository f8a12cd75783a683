"""Tier R3: only a global task whose clusters cancel, with xi and the difference of two means, at leading order."""

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract import Crossing, Initial, Observables
from derivations.kawata import population, summary
from derivations.kawata.parameters import Parameters, exponent, links, weights_of_global
from derivations.kawata.tiers import coefficients
from derivations.kawata.tiers.coefficients import J, shifted
from derivations.kawata.tiers.flow import CLOCK, J_SIZE, RHO, A, B, C, N, sizes
from derivations.statement import Base, Definition, Equation, Example, Named, Statement, Step, sp

XI, DN, RATE, SHARE = map(Base, ("xi", "dn", "A", "q"))
S1, GAMMA = sp.symbols("s_1 gamma_k", real=True)


def bind(initial: Initial) -> dict[str, Any]:
    """The numbers of the constants in a run."""
    p, c = initial.parameters, initial.constants
    k, link = exponent(p), links(p)[-1]
    found = {"N": len(c["a"]), "C": p.C, "J": p.J, "rho": p.rho, "a": c["a"], "b": c["b"], "q": c["share"][:, 0]}
    found |= {"s_1": weights_of_global(p)[0], "gamma_k": link[k] if len(link) > k else 0.0}
    return {**found, **coefficients.bind(initial)}


def statement(p: Parameters) -> Statement:
    """xi' = k A dn xi^(k-1), dn' = 2 A xi^k."""
    k = exponent(p)
    rate = A[J] * SHARE[J] / (J_SIZE * C) * RHO * sp.sqrt(k + 1) * shifted(p, k + 1, B[J]) * S1 * GAMMA
    energy = XI[J] ** 2 / k - DN[J] ** 2 / 2
    constants = [
        Named(N, "neurons followed", 20),
        Named(C, "clusters", 2),
        Named(J_SIZE, "neurons of an expert", p.J),
        Named(RHO, "distance of the means from the origin", p.rho),
        Named(A[J], "second layer", "np.full(N, -1.0)"),
        Named(B[J], "bias", "np.full(N, -0.5)"),
        Named(
            SHARE[J],
            "weight of a cluster's samples in the neuron's update, times C: 1/M^2 under uniform routing",
            f"np.full(N, {1.0 / p.M**2})",
        ),
        Named(S1, "weight of the global task in the first cluster, minus that in the second", 1.0),
        Named(GAMMA, f"coefficient of degree {k} of the global link", 1.0),
    ]
    constants += coefficients.constants(p)
    at = "Section 4.1: the hidden global task; the reduction is ours"
    return Statement(
        tier="R3",
        name="kawata, phase1, R3",
        title="a global task whose clusters cancel, alone",
        source="Kawata et al. 2025, Section 4.1 and Lemma B.10",
        clock=CLOCK,
        validity="leading order in small overlaps of a neuron without a local task, C = 2 and s = (s, -s)",
        neglects="the local tasks, the projection on the sphere, and higher orders in rho nu",
        indices=[((J,), "neurons")],
        rows=J,
        sizes=sizes(p),
        state=(
            Named(XI[J], "alignment with the global task", dims=("neuron",), symbol="xi"),
            Named(
                DN[J],
                "difference of the overlaps with the two means",
                dims=("neuron",),
                bounds=(-2.0, 2.0),
                symbol="nu_1 - nu_2",
            ),
        ),
        constants=tuple(constants),
        bind=bind,
        definitions=(
            *coefficients.coefficients(p, k + 1),
            Definition((RATE[J],), rate, "the terms of order xi^k of the two clusters cancel; the next order is left"),
        ),
        equations=(
            Equation(XI[J], k * RATE[J] * DN[J] * XI[J] ** (k - 1), at),
            Equation(DN[J], 2 * RATE[J] * XI[J] ** k, at),
        ),
        begin=lambda initial: {"xi": initial.state["xi"], "dn": difference(initial)},
        crossings=crossings(p),
        observables=Observables(
            constants=population.constants, invariants=functools.partial(invariants, k=k), summary=summary.summarise
        ),
        conserved=(Step(Base("Q")[J], energy, "along every solution"),),
        notation={**coefficients.NOTATION, "gamma_k": (rf"\gamma_{k}", f"γ{'₀₁₂₃₄₅₆₇₈₉'[k] if k < 10 else k}")},
        example=Example('start = {"xi": np.full(N, 0.5), "dn": np.linspace(0.1, 0.5, N)}', "xi", 0.58, 10.0),
    )


def crossings(p: Parameters) -> tuple[Crossing, ...]:
    """Return the crossings: xi reaches the threshold in absolute value, and the run ends."""
    level, why = p.threshold, "an entry of xi reached 0.999, where the leading order no longer holds"
    return (
        Crossing("T_xi", "xi", level, absolute=True, meaning=f"first time |xi| reaches {level:g}"),
        Crossing(
            "T_end", "xi", 0.999, absolute=True, terminal=True, reason=why, meaning="first time |xi| reaches 0.999"
        ),
    )


def difference(initial: Initial) -> np.ndarray:
    """nu_1 - nu_2."""
    if "dn" in initial.state:
        return np.asarray(initial.state["dn"], float)
    nu = initial.state["nu"]
    return nu[:, 0] - nu[:, 1]


def invariants(initial: Initial, state: Mapping[str, np.ndarray], k: int) -> dict[str, float]:
    """The largest change of xi^2/k - dn^2/2, relative to the largest of its terms."""
    energy = state["xi"] ** 2 / k - state["dn"] ** 2 / 2
    scale = np.abs(state["xi"]).max() ** 2 / k + np.abs(state["dn"]).max() ** 2 / 2
    return {"energy_change": float(np.abs(energy - energy[0]).max() / scale)}

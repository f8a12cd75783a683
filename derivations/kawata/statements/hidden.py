"""Tier R3 as a statement: a global task whose clusters cancel, alone."""

from typing import Any

from derivations.contract import Initial
from derivations.kawata.parameters import Parameters, exponent, links, weights_of_global
from derivations.kawata.statements import kernels
from derivations.kawata.statements.flow import CLOCK, J_SIZE, RHO, A, B, C, J, N
from derivations.kawata.statements.kernels import SIGMA, TERM, WIDTH, alpha
from derivations.statement import Base, Definition, Equation, Example, Named, Statement, Step, sp

XI, DN, RATE, SHARE = map(Base, ("xi", "dn", "A", "q"))
S1, GAMMA = sp.symbols("s_1 gamma_k", real=True)


def bind(initial: Initial) -> dict[str, Any]:
    """The numbers of the constants in a run."""
    p, c = initial.parameters, initial.constants
    k, link = exponent(p), links(p)[-1]
    found = {"N": len(c["a"]), "C": p.C, "J": p.J, "rho": p.rho, "a": c["a"], "b": c["b"], "q": c["share"][:, 0]}
    found |= {"s_1": weights_of_global(p)[0], "gamma_k": link[k] if len(link) > k else 0.0}
    return {**found, **kernels.activation_constants(p)}


def statement(p: Parameters) -> Statement:
    """xi' = k A dn xi^(k-1), dn' = 2 A xi^k."""
    k = exponent(p)
    rate = A[J] * SHARE[J] / (J_SIZE * C) * RHO * sp.sqrt(k + 1) * alpha(k + 1, B[J]) * S1 * GAMMA
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
    if p.activation == "polynomial":
        values = kernels.activation_constants(p)
        constants += [
            Named(WIDTH, "coefficients of the activation", values["width"]),
            Named(SIGMA[TERM], "its orthonormal coefficients by degree", f"np.array({list(values['sigma'])})"),
        ]
    at = "Section 4.1: the hidden global task; the reduction is ours"
    return Statement(
        name="kawata, phase1, R3",
        title="a global task whose clusters cancel, alone",
        source="Kawata et al. 2025, Section 4.1 and Lemma B.10",
        clock=CLOCK,
        validity="leading order in small overlaps of a neuron that no local task pulls, C = 2 and s = (s, -s)",
        neglects="the local tasks, the projection on the sphere, and higher orders in rho nu",
        indices=[((J,), "neurons")],
        state=(Named(XI[J], "alignment with the global task"), Named(DN[J], "difference nu_1 - nu_2 of the means")),
        constants=tuple(constants),
        bind=bind,
        definitions=(
            *kernels.coefficients(p, k + 1),
            Definition((RATE[J],), rate, "the terms of order xi^k of the two clusters cancel; the next order is left"),
        ),
        equations=(
            Equation(XI[J], k * RATE[J] * DN[J] * XI[J] ** (k - 1), at),
            Equation(DN[J], 2 * RATE[J] * XI[J] ** k, at),
        ),
        conserved=(Step(Base("Q")[J], energy, "along every solution"),),
        notation={**kernels.NOTATION, "gamma_k": (rf"\gamma_{k}", f"γ{'₀₁₂₃₄₅₆₇₈₉'[k] if k < 10 else k}")},
        example=Example('start = {"xi": np.full(N, 0.5), "dn": np.linspace(0.1, 0.5, N)}', "xi", 0.58, 10.0),
    )

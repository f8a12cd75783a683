"""Tier `effective` as a statement: the exact flow with the contraction by the normalisation of a finite step."""

import dataclasses
from typing import Any

import numpy as np

from derivations.contract import Initial, Observables, Smooth
from derivations.indexed import nested
from derivations.kawata import moments, population, summary
from derivations.kawata.parameters import Parameters, degree
from derivations.kawata.tiers import flow
from derivations.kawata.tiers.coefficients import DENSITY, SIGMA, TERM, J, T
from derivations.kawata.tiers.flow import (
    BETA,
    C1,
    DEGREE,
    GAMMA,
    GRAM,
    J_SIZE,
    KAPPA,
    LOCAL,
    NU,
    REMOTE,
    RHO,
    SHARE,
    XI,
    A,
    B,
    C,
    S,
)
from derivations.statement import (
    Base,
    Definition,
    E,
    Equation,
    Example,
    He,
    Indicator,
    Kernel,
    Named,
    Statement,
    Step,
    function,
    sp,
)

OUTER, INNER = sp.symbols("outer inner", integer=True, positive=True)
D, ETA, ZETA, SOFTMAX = sp.symbols("d eta zeta pi_s", real=True)
K, R, P, Q = sp.Idx("k", DEGREE + 1), sp.Idx("r", OUTER), sp.Idx("u", INNER), sp.Idx("v", INNER)
Z0, W0, Z1, W1 = map(Base, ("z_0", "w_0", "z_1", "w_1"))
K1, X1, X2, V1, V2, V3 = map(Base, ("k_1", "x_1", "x_2", "v_1", "v_2", "v_3"))
LOW, SPAN, FIELD, WEIGHT, LOCAL_LABEL, LABEL, LENGTH, MOMENT = map(
    Base, ("low", "span", "z", "W", "f", "y_2", "X_2", "D_2")
)
slope = function("slope")
VALIDITY = (
    "the mean of SGD with steps of size eta while h^2 |g|^2 is small, h = eta/J (times 1/M in Phase I): its "
    "relative error is (3/4) h^2 E|g|^4/E|g|^2, and d h^2 below 1e-4 was sufficient in tests"
)
NEGLECTS = (
    "higher orders in the step size, and the spread of the replicas (S), which changes the mean of nonlinear quantities"
)
SMALL = sp.Rational(1, 10**8)
EDGE = 9
"""Largest |z| of the normal density for activation relu."""


def slopes(p: Parameters) -> tuple[Kernel, ...]:
    """sigma'(t); empty for polynomials of each neuron."""
    if p.signs:
        return ()
    phi = DENSITY["phi"](T)
    value = {
        "relu": lambda: Indicator(sp.Gt(T, 0)),
        "polynomial": lambda: polynomial_slope(SIGMA[TERM + 1], T),
        "erf": lambda: 2 * phi,
        "exp": lambda: sp.exp(T),
        "cos": lambda: -sp.sin(T),
        "probit": lambda: phi,
    }[p.activation]()
    return (Kernel("slope", (T,), {"slope": value}, note="derivative of the activation"),)


def polynomial_slope(coefficient: Any, t: Any) -> Any:
    """sigma'(t) of a polynomial, from its coefficients of degree l + 1."""
    return sp.Sum(sp.sqrt(TERM + 1) * coefficient * He(TERM, t) / sp.sqrt(sp.factorial(TERM)), TERM)


def over(numerator: Any, length: Any) -> Any:
    """A coordinate along an axis, 0 if the axis has length 0."""
    return sp.Piecewise((numerator / length, sp.Gt(length, SMALL)), (0, True))


def root(square: Any) -> Any:
    """The square root of a number that only rounding can make negative."""
    return sp.sqrt(sp.Max(square, 0))


def coordinates(p: Parameters) -> tuple[Definition, ...]:
    """Local task, global task and mean in an orthonormal pair e1, e2 orthogonal to the neuron."""
    zero = sp.Integer(0)
    kx, kn, xn = (zero,) * 3 if p.orthogonal else (GRAM["kx"][C1], GRAM["kn"][C1, C1], GRAM["xn"][C1])
    k, x, v, at = KAPPA[J, C1], XI[J], NU[J, C1], (J, C1)
    return (
        Definition((K1[at],), root(1 - k**2), "the local task along e_1, its direction off the neuron"),
        Definition((X1[at],), over(kx - k * x, K1[at]), "the global task along e_1"),
        Definition((X2[at],), root(1 - x**2 - X1[at] ** 2), "the global task along e_2, its direction off both"),
        Definition((V1[at],), over(kn - k * v, K1[at]), "the mean along e_1"),
        Definition((V2[at],), over(xn - x * v - X1[at] * V1[at], X2[at]), "the mean along e_2"),
        Definition((V3[at],), sp.Max(1 - v**2 - V1[at] ** 2 - V2[at] ** 2, 0), "square of the mean off all three"),
    )


def nodes(p: Parameters) -> tuple[tuple[Definition, ...], Any]:
    """The points of the neuron's field with the weights of (a sigma')^2 there, and the field at a point."""
    at, shift = (J, C1), RHO * NU[J, C1] + B[J]

    def slope_at(t: Any) -> Any:
        return polynomial_slope(SIGMA[J, TERM + 1], t) if p.signs else slope(t)

    if p.activation != "relu":
        value = W0[R] * (A[J] * slope_at(Z0[R] + shift)) ** 2
        return (Definition((WEIGHT[J, C1, R],), value, "(a sigma')^2 times the weight of a point"),), Z0[R]
    z = FIELD[J, C1, R]
    value = W0[R] * SPAN[at] * DENSITY["phi"](z) * (A[J] * slope_at(z + shift)) ** 2
    found = (
        Definition((LOW[at],), sp.Max(-EDGE, -shift), "the kink of relu"),
        Definition((SPAN[at],), sp.Max(LOW[at] + 1, EDGE) - LOW[at], "upper end of the density"),
        Definition((z,), LOW[at] + SPAN[at] * Z0[R], "points of the neuron's field"),
        Definition((WEIGHT[J, C1, R],), value, "(a sigma')^2 times the weight of a point"),
    )
    return found, z


def moment(p: Parameters) -> tuple[Definition, ...]:
    """D_2: the mean square of a routed sample's gradient, by nodes in the three fields of the label."""
    local = BETA[C1, K] if p.orthogonal else LOCAL[C1, K]
    remote = S[C1] * GAMMA[K] if p.orthogonal else REMOTE[C1, K]
    outer, z = nodes(p)
    first = KAPPA[J, C1] * z + K1[J, C1] * Z1[P]
    second = XI[J] * z + X1[J, C1] * Z1[P] + X2[J, C1] * Z1[Q]
    y = LOCAL_LABEL[J, C1, R, P] + sp.Sum(remote * He(K, second) / sp.sqrt(sp.factorial(K)), K)
    along = (Z1[P] + RHO * V1[J, C1]) ** 2 + (Z1[Q] + RHO * V2[J, C1]) ** 2
    whole = WEIGHT[J, C1, R] * W1[P] * W1[Q] * LABEL[J, C1, R, P, Q] * LENGTH[J, C1, P, Q]
    return (
        *coordinates(p),
        *outer,
        Definition(
            (LOCAL_LABEL[J, C1, R, P],),
            sp.Sum(local * He(K, first) / sp.sqrt(sp.factorial(K)), K),
            "local part of the label",
        ),
        Definition((LABEL[J, C1, R, P, Q],), y**2 + ZETA**2, "mean square of the label"),
        Definition(
            (LENGTH[J, C1, P, Q],), along + RHO**2 * V3[J, C1] + D - 3, "mean square of the part of x off the neuron"
        ),
        Definition((MOMENT[J, C1],), nested(whole, R, P, Q), "mean square of a sample's gradient"),
    )


def tables(p: Parameters) -> dict[str, str]:
    """NumPy code of nodes and weights, as in `moments.nodes`."""
    hermite = "np.polynomial.hermite_e.hermegauss({})[{}]"
    found = {"z_0": hermite.format("outer", 0), "w_0": hermite.format("outer", 1) + " / np.sqrt(2 * np.pi)"}
    if p.activation == "relu":
        legendre = "np.polynomial.legendre.leggauss(outer)"
        found = {"z_0": f"({legendre}[0] + 1) / 2", "w_0": f"{legendre}[1] / 2"}
    return {
        **found,
        "z_1": hermite.format("inner", 0),
        "w_1": hermite.format("inner", 1) + " / np.sqrt(2 * np.pi)",
    }


def constants(p: Parameters, softmax: float) -> tuple[Named, ...]:
    """Additional constants of the contraction, beside those of the exact flow."""
    table = tables(p)
    where = "between 0 and 1 (Gauss, Legendre)" if p.activation == "relu" else "of the normal law (Gauss, Hermite)"
    return (
        Named(D, "input dimension", p.d),
        Named(ETA, "step size of SGD", p.eta or 0.1),
        Named(ZETA, "standard deviation of the label noise", p.zeta),
        Named(SOFTMAX, "softmax weight of a routed sample: 1/M in Phase I, 1 after", softmax),
        Named(OUTER, "points of the neuron's field", moments.OUTER),
        Named(INNER, "points along e_1 and e_2, which are exact", degree(p) + 2),
        Named(Z0[R], f"points {where}", table["z_0"]),
        Named(W0[R], "their weights", table["w_0"]),
        Named(Z1[P], "points of the normal law", table["z_1"]),
        Named(W1[P], "their weights", table["w_1"]),
    )


def bind(initial: Initial, softmax: float) -> dict[str, Any]:
    """The numbers of the constants in a run."""
    p = initial.parameters
    tables = dict(zip(("z_0", "w_0", "z_1", "w_1"), map(np.asarray, moments.nodes(p)), strict=True))
    found = {"d": p.d, "eta": p.eta, "zeta": p.zeta, "pi_s": softmax}
    return {**flow.bind(initial), **found, "outer": len(tables["z_0"]), "inner": len(tables["z_1"]), **tables}


def statement(p: Parameters, softmax: float) -> Statement:
    """The exact flow minus (eta/2)(1/J^2) sum_c (P_c pi^2/C) D_c m."""
    found = flow.statement(p, "exact")
    pull, gradient = Base("Gamma"), function("g")
    value = ETA * SOFTMAX / (2 * J_SIZE**2 * C) * sp.Sum(SHARE[J, C1] * MOMENT[J, C1], C1)
    definitions = (
        *(() if DENSITY in found.kernels else (DENSITY,)),
        *found.definitions,
        *slopes(p),
        *moment(p),
        Definition((pull[J],), value, "contraction of every overlap by the normalisation after a step of size eta"),
    )
    equations = tuple(
        Equation(e.target, e.rate - pull[J] * e.target, "Lemma C.7, with the second order in the step")
        for e in found.equations
    )
    named = tuple(dataclasses.replace(c, default=4) if c.target == flow.N else c for c in found.constants)
    mean_square = Step(MOMENT[J, C1], E(gradient(J) ** 2), "g = y a sigma'(w.x + b) (x - (w.x) w), given the cluster")
    return dataclasses.replace(
        found,
        tier="effective",
        name="kawata, phase1, effective",
        source=f"{found.source}; the closed form of its noise terms is ours",
        validity=VALIDITY,
        neglects=NEGLECTS,
        indices=[*found.indices, ((K,), "degrees of a link"), ((R,), "points of the field"), ((P, Q), "points off it")],
        constants=(*named, *constants(p, softmax)),
        bind=lambda initial: bind(initial, softmax),
        definitions=definitions,
        steps=(*found.steps, mean_square),
        advance=Smooth(),
        observables=Observables(
            constants=population.constants,
            observe=moments.observe,
            invariants=lambda initial, state: {"ball_excess": population.invariants(initial, state)["ball_excess"]},
            summary=summary.summarise,
        ),
        equations=equations,
        notation={
            **found.notation,
            **{f"{x}_{i}": (f"{{{x}_{i}}}", f"{x}{'₀₁₂₃'[i]}") for x in "zwkxv" for i in range(4)},
            "pi_s": (r"\varpi", "ϖ"), "d": ("d", "d"), "slope": (r"\sigma'", "σ'"),
            "low": (r"\ell", "ℓ"), "span": (r"\Lambda", "Λ"), "y_2": (r"\overline{y^2}", "⟨y²⟩"), "D_2": ("D", "D"),
            "X_2": (r"\overline{x^2}", "⟨x²⟩"), "Gamma": (r"\Gamma", "Γ"),
        },
        example=Example(flow.START, "kappa", -0.01, 10.0),
    )  # fmt: skip

"""The flow of every neuron on its 2 C + 1 overlaps as a statement: exact, the paper's, and the tiers R1, R2, R4.

The potential is written explicitly; its gradient follows by the calculus of indices and Stein's rule.
"""

from typing import Any

import numpy as np

from derivations.contract import Independent, Initial, Observables
from derivations.indexed import gradient
from derivations.kawata import population, summary
from derivations.kawata.parameters import Parameters, count, degree, information_exponent, links
from derivations.kawata.population import teacher_series
from derivations.kawata.tiers import coefficients
from derivations.kawata.tiers.coefficients import J, N, shifted
from derivations.statement import Base, Definition, Equation, Example, Named, Statement, Step, sp

C, J_SIZE, DEGREE = sp.symbols("C J degree", integer=True, positive=True)
RHO = sp.Symbol("rho", real=True)
C1, C2 = sp.Idx("c", C), sp.Idx("e", C)
KAPPA, XI, NU, A, B, SHARE = map(Base, "kappa xi nu a b q".split())
BETA, GAMMA, S, LOCAL, REMOTE = map(Base, ("beta", "gamma", "s", "B", "Y"))
U, RADIAL, BY_KAPPA, BY_XI, BY_NU = map(Base, ("U", "R", "U_kappa", "U_xi", "U_nu"))
GRAM = {x: Base(f"G_{x}") for x in ("kk", "kx", "kn", "xn", "nn")}
CLOCK = "one step of SGD of size eta advances t by eta; the factors 1/J of the network and of the routing stand in U"
START = """m = np.random.default_rng(5).standard_normal((N, 2 * C + 1)) / np.sqrt(100)
start = {"kappa": m[:, :C], "xi": m[:, C], "nu": m[:, C + 1 :]}"""
STATE = (
    Named(
        KAPPA[J, C1],
        "alignment of a neuron with the local task of cluster c",
        dims=("neuron", "cluster"),
        symbol="kappa_{m,j,c}",
    ),
    Named(XI[J], "alignment with the global task", dims=("neuron",), symbol="xi_{m,j,g}"),
    Named(NU[J, C1], "overlap with the mean of cluster c", dims=("neuron", "cluster"), symbol="w_{mj} . v_c"),
)
PLACES = {
    "exact": "Lemmas B.9 and C.7, with the term of the means in R_j",
    "paper": "Lemmas B.9 and C.7: R_j lacks the means",
    "R1": "Lemma B.10, means at rest",
    "R2": "Lemma B.10, every task alone",
    "R4": "Lemma B.10, task and mean of one cluster",
}

VALID = {
    "paper": (
        "as exact, except for the neglected term",
        "the part -m_a sum_c nu_c dU/dnu_c of the projection on the sphere",
    ),
    "exact": (
        "exact for Gaussian clusters at every d, links of finite degree and any frame, in the limit of small step size "
        "(gradient flow on the population correlation loss)",
        "nothing",
    ),
    "R1": (
        "exact while the overlaps with the means are constant",
        "the motion of nu, and its part of the projection",
    ),
    "R2": (
        "one task alone: kappa' = U_kappa (1 - kappa^2), exact for C = 1, s = 0 and rho = 0",
        "the motion of nu and every coupling of two tasks",
    ),
    "R4": (
        "one local task with its mean, for neurons in the plane of the two; exact for C = 1, s = 0, where nu "
        "grows with kappa^2",
        "the global task, and all interactions of different clusters",
    ),
}
"""Validity of the tiers with the state of every neuron, and their neglected terms."""


def lowest(p: Parameters) -> int:
    """The lowest degree of the links; with shifted links (means that overlap with teachers) 0."""
    if not p.orthogonal:
        return 0
    found = [k for k in map(information_exponent, links(p)) if k is not None]
    return max(1, min(found, default=1))


def sizes(p: Parameters) -> dict[str, int]:
    """Lengths of the axes of the state."""
    return {"N": count(p), "C": p.C}


def potential(p: Parameters, c: Any, tier: str) -> Any:
    """U_j: the mean of y times the neuron's output, clusters summed over the index c."""
    low, cluster = lowest(p), c
    i = sp.Idx("i", (max(low, 1), DEGREE))
    argument = RHO * NU[J, cluster] + B[J]
    local = BETA[cluster, i] if p.orthogonal else LOCAL[cluster, i]
    remote = S[cluster] * GAMMA[i] if p.orthogonal else REMOTE[cluster, i]
    if tier == "R4":
        remote = sp.Integer(0)
    inner = sp.Sum(shifted(p, i, argument) * (local * KAPPA[J, cluster] ** i + remote * XI[J] ** i), i)
    if low == 0:
        inner += shifted(p, 0, argument) * (LOCAL[cluster, 0] + (REMOTE[cluster, 0] if tier != "R4" else 0))
    return A[J] / (J_SIZE * C) * sp.Sum(SHARE[J, cluster] * inner, cluster)


def constants(p: Parameters) -> tuple[Named, ...]:
    """Sizes, second layer and biases, links, and the frame's Gram matrix if the frame is not orthonormal."""
    found = [
        Named(N, "neurons followed", 40),
        Named(C, "clusters", p.C),
        Named(J_SIZE, "neurons of an expert", p.J),
        Named(DEGREE, "degree of the links", degree(p)),
        Named(RHO, "distance of the means from the origin", p.rho),
        Named(A[J], "second layer", "np.random.default_rng(1).choice([-1.0, 1.0], N)"),
        Named(B[J], "bias", "np.random.default_rng(2).uniform(-1.5, 1.5, N)"),
        Named(
            SHARE[J, C1],
            "weight of a cluster's samples in the neuron's update, times C: 1/M^2 under uniform routing",
            f"np.full((N, C), {1.0 / p.M**2})",
        ),
    ]
    i = sp.Idx("i", DEGREE + 1)
    if p.orthogonal:
        row = np.zeros((p.C + 1, degree(p) + 1))
        row[:, : len(links(p)[0])] = links(p)
        found += [
            Named(BETA[C1, i], "orthonormal coefficients of the local links", f"np.array({row[:-1].tolist()})"),
            Named(GAMMA[i], "those of the global link", f"np.array({row[-1].tolist()})"),
            Named(S[C1], "weight of the global task", "np.array([1.0, -1.0] + [0.0] * (C - 2))[:C] * (C > 1)"),
        ]
    else:
        eye, zero = "np.eye(degree + 1)[[degree] * C]", "np.zeros(({}))"
        found += [
            Named(LOCAL[C1, i], "coefficients of the local links, shifted by rho times the mean's part", eye),
            Named(REMOTE[C1, i], "those of the global link times its weight, shifted", f"0.5 * {eye}"),
            Named(GRAM["kk"][C1, C2], "Gram matrix of the local tasks", "np.eye(C)"),
            Named(GRAM["kx"][C1], "overlap of a local task with the global one", zero.format("C,")),
            Named(GRAM["kn"][C1, C2], "overlap of a local task with a mean", zero.format("C, C")),
            Named(GRAM["xn"][C1], "overlap of the global task with a mean", zero.format("C,")),
            Named(GRAM["nn"][C1, C2], "Gram matrix of the means", "np.eye(C)"),
        ]
    return (*found, *coefficients.constants(p))


def bind(initial: Initial) -> dict[str, Any]:
    """The numbers of the constants in a run."""
    p, c = initial.parameters, initial.constants
    n, top, gram = len(c["a"]), degree(p), np.asarray(c["gram"])
    local, remote = teacher_series(p, gram)
    found = {"N": n, "C": p.C, "J": p.J, "degree": top, "rho": p.rho, "a": c["a"], "b": c["b"], "q": c["share"]}
    if p.orthogonal:
        from derivations.kawata.parameters import weights_of_global

        found |= {"beta": local[:, : top + 1], "gamma": np.array(links(p)[-1]), "s": np.array(weights_of_global(p))}
    else:
        k, x, v = slice(0, p.C), p.C, slice(p.C + 1, None)
        found |= {"B": local[:, : top + 1], "Y": remote[:, : top + 1], "G_kk": gram[k, k], "G_kx": gram[k, x]}
        found |= {"G_kn": gram[k, v], "G_xn": gram[x, v], "G_nn": gram[v, v]}
    return {**found, **coefficients.bind(initial)}


def turned(p: Parameters) -> dict[str, Any]:
    """The gradient in the frame: G g, which is g for an orthonormal frame."""
    if p.orthogonal:
        return {"kappa": BY_KAPPA[J, C1], "xi": BY_XI[J], "nu": BY_NU[J, C1]}
    e, g = C2, GRAM
    by_kappa, by_nu = BY_KAPPA[J, e], BY_NU[J, e]
    return {
        "kappa": sp.Sum(g["kk"][C1, e] * by_kappa + g["kn"][C1, e] * by_nu, e) + g["kx"][C1] * BY_XI[J],
        "xi": sp.Sum(g["kx"][e] * by_kappa + g["xn"][e] * by_nu, e) + BY_XI[J],
        "nu": sp.Sum(g["kn"][e, C1] * by_kappa + g["nn"][C1, e] * by_nu, e) + g["xn"][C1] * BY_XI[J],
    }


def radial(tier: str) -> Definition | None:
    """R: the part of the gradient along the neuron, which the projection on the sphere removes."""
    c, e = C1, C2
    if tier == "R2":
        return None
    if tier == "R4":
        value = KAPPA[J, c] * BY_KAPPA[J, c] + NU[J, c] * BY_NU[J, c]
        return Definition((RADIAL[J, c],), value, "the gradient along the circle's radius")
    means = NU[J, e] * BY_NU[J, e] if tier == "exact" else 0
    value = sp.Sum(KAPPA[J, e] * BY_KAPPA[J, e] + means, e) + XI[J] * BY_XI[J]
    meaning = "its part along the neuron" + ("" if tier == "exact" else ", without the means")
    return Definition((RADIAL[J],), value, meaning)


def equations(p: Parameters, tier: str) -> tuple[Equation, ...]:
    """The equations of motion of a tier."""
    targets = {"kappa": KAPPA[J, C1], "xi": XI[J], "nu": NU[J, C1]}
    g, at = turned(p), PLACES[tier]
    along = {name: x * RADIAL[J] for name, x in targets.items()}
    if tier == "R2":
        along = {name: g[name] * x**2 for name, x in targets.items()}
    if tier == "R4":
        along = {name: x * RADIAL[J, C1] for name, x in targets.items()}
    rates = {name: g[name] - along[name] for name in targets}
    still = {"R1": ("nu",), "R2": ("nu",), "R4": ("xi",)}.get(tier, ())
    rates |= dict.fromkeys(still, sp.Integer(0))
    return tuple(Equation(x, rates[name], at) for name, x in targets.items())


def statement(p: Parameters, tier: str) -> Statement:
    """The flow of a tier with the state of every neuron."""
    total = potential(p, C2, tier)
    gradients = ((BY_KAPPA[J, C1], KAPPA[J, C1]), (BY_XI[J], XI[J]), (BY_NU[J, C1], NU[J, C1]))
    meaning = "gradient of the potential"
    definitions: list[Any] = [*coefficients.coefficients(p, lowest(p))]
    # In a frame that is not orthonormal every part of the gradient moves every overlap.
    still = {"R1": (BY_NU,), "R2": (BY_NU,), "R4": (BY_XI,)}.get(tier, ()) if p.orthogonal else ()
    definitions += [Definition((g,), gradient(total, x), meaning) for g, x in gradients if g.base not in still]
    part = radial(tier)
    validity, neglects = VALID[tier]
    low = sp.Idx("i", (max(lowest(p), 1), DEGREE))
    return Statement(
        tier=tier,
        name=f"kawata, phase1, {tier}",
        title="every neuron of the correlation loss on its own sphere",
        source="Kawata et al. 2025, Sections 3.1 and 4.1, Lemmas A.3, B.9 and C.7",
        clock=CLOCK,
        validity=validity,
        neglects=neglects,
        indices=[((J,), "neurons"), ((C1, C2), "clusters"), ((low,), "degrees")],
        rows=J,
        sizes=sizes(p),
        state=STATE,
        constants=constants(p),
        bind=bind,
        definitions=(*definitions, *([part] if part else [])),
        steps=(
            Step(U[J], potential(p, C1, tier), "mean of y times the neuron's output, by the Hermite series of both"),
        ),
        equations=equations(p, tier),
        notation=coefficients.NOTATION,
        loss=-sp.Sum(total, J),
        advance=Independent(2 * p.C + 1),
        crossings=population.crossings(p),
        observables=Observables(
            constants=population.constants, invariants=population.invariants, summary=summary.summarise
        ),
        example=Example(START, "kappa", 0.9, 6000.0 if p.M == 1 else 100.0),
    )

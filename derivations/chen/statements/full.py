"""Tier full with noise patches as a statement: the sums of tier p3 at every point of a cloud of strengths and patches.

An example type is a pair of clusters, the label y, the sign eps of the feature noise, and a point with the sign of its
patches; the points are quasi-random and stay the same at all times.
"""

from typing import Any

import numpy as np

from derivations.chen.full import arguments, residual
from derivations.chen.full import full as full_tier
from derivations.chen.parameters import Parameters
from derivations.chen.statements import rules
from derivations.chen.statements.exact import START, STATE, banked, examples, sigma, slope
from derivations.chen.statements.parts import (
    CEN,
    CHANCE_WINS,
    CLOCK,
    COST,
    FEAT,
    GCEN,
    GFEAT,
    J_SIZE,
    K_SIZE,
    LAYER,
    M_SIZE,
    NOTATION,
    PAPER,
    PI,
    RHO,
    UNITARY,
    E,
    H,
    J,
    K,
    L,
    M,
    Q,
    act,
    power_constant,
    routing,
)
from derivations.contract import Initial
from derivations.indexed import nested
from derivations.statement import Base, Definition, Equation, Example, Indicator, Named, Rule, Statement, sign, sp

POINTS, PATCHES, RANK = sp.symbols("n_p n_d n_r", integer=True, positive=True)
LENGTH = sp.Symbol("xi_2", real=True)
N, D, X = sp.Idx("n", POINTS), sp.Idx("d", PATCHES), sp.Idx("x", RANK)
Y, R, B = (sp.Idx(name, 2) for name in "irb")
WEIGHTS = sp.Idx("a", M_SIZE * J_SIZE + M_SIZE)
REST, REST_W, REST_T = Base("rest"), Base("rest_w"), Base("rest_t")
STRENGTHS, PATCH_V, PATCH_C, PATCH_R = map(Base, ("strengths", "patch_v", "patch_c", "patch_r"))
OMEGA, ZETA, OUTPUT, NORM, WEIGH, DRIFT = map(Base, ("omega", "zeta", "f", "norm", "G", "R"))
COHERENT, SPEED, ALONG, SUM_R = map(Base, ("coherent", "V", "G_n", "R_n"))
G_FEAT, G_CEN, G_REST, D_REST = map(Base, ("g_feat", "g_cen", "g_rest", "d_rest"))
TYPE = (K, E, Y, R, B, N)
SIGN = {i: Base(f"sign_{i.name}")[i] for i in (Y, R, B)}
SIGNS = ("label", "sign of the feature noise", "sign of the patches")
SA, SB, SC = SIGN[Y] * STRENGTHS[N, 0], STRENGTHS[N, 1], SIGN[R] * STRENGTHS[N, 2]


def fields() -> list[Definition]:
    """What the patches of a point meet: w . xi of every filter, theta . sum xi of every router."""
    filters = sp.Sum(FEAT[M, J, K] * PATCH_V[N, D, K] + CEN[M, J, K] * PATCH_C[N, D, K], K)
    filters += sp.Sum(REST_W[M, J, X] * PATCH_R[N, D, X], X)
    routers = sp.Sum(GFEAT[M, K] * PATCH_V[N, D, K] + GCEN[M, K] * PATCH_C[N, D, K], K)
    routers += sp.Sum(REST_T[M, X] * PATCH_R[N, D, X], X)
    return [
        Definition((REST_W[M, J, X],), REST[J_SIZE * M + J, X], "residual coordinates of the filters"),
        Definition((REST_T[M, X],), REST[M_SIZE * J_SIZE + M, X], "of the routers"),
        Definition((OMEGA[M, J, D, N],), filters, "product of a filter with a noise patch"),
        Definition((ZETA[M, N],), sp.Sum(routers, D), "of a router with their sum"),
    ]


def of_types() -> list[Definition]:
    """Logits, outputs and the weight of every example type."""
    at = (M, *TYPE)
    terms = ((SA, FEAT, K), (SB, CEN, K), (SC, FEAT, E))
    z = [strength * rows[M, J, cluster] for strength, rows, cluster in terms]
    noise = SIGN[B] * OMEGA[M, J, D, N]
    output = sp.Sum(sigma(z[0]) + sigma(z[1]) + sigma(z[2]) + sp.Sum(sigma(noise), D), J)
    squared = [(strength * slope(x)) ** 2 for (strength, _, _), x in zip(terms, z, strict=True)]
    norm = sp.Sum(sp.Add(*squared) + LENGTH * sp.Sum(slope(noise) ** 2, D), J)
    pair = Indicator(sp.Ne(K, E)) / (8 * POINTS * K_SIZE * (K_SIZE - 1))
    size = pair * CHANCE_WINS[at] * Q["q"](SIGN[Y] * PI[at] * OUTPUT[at]) * PI[at]
    logits = SA * GFEAT[M, K] + SB * GCEN[M, K] + SC * GFEAT[M, E] + SIGN[B] * ZETA[M, N]
    gathered = sp.Sum(WEIGH[(L, *TYPE)] * OUTPUT[(L, *TYPE)], L)
    return [
        Definition((H[at],), logits, "logits"),
        Definition((OUTPUT[at],), output, "outputs of the experts"),
        Definition((NORM[at],), norm, "squared size of a gradient over G, patches taken as orthogonal"),
        *routing(TYPE),
        Definition((WEIGH[at],), size * SIGN[Y], "weight of a type in the gradient of expert m (Lemma E.2, corrected)"),
        Definition((DRIFT[at],), WEIGH[at] * OUTPUT[at] - PI[at] * gathered, "weight in the router's drift"),
        Definition((COHERENT[M],), nested(sp.Abs(WEIGH[at]) * sp.sqrt(NORM[at]), *TYPE), "mean size E|g|"),
    ]


def collected(array: Any, name: str) -> list[Definition]:
    """Weights summed over everything but one signal (with its sign) at a point, and over all types of a point."""
    body = array[(M, *TYPE)]
    return [
        Definition((Base(f"{name}_a")[M, K, Y, N],), nested(body, E, R, B), "along the feature"),
        Definition((Base(f"{name}_b")[M, K, N],), nested(body, E, Y, R, B), "along the centre"),
        Definition((Base(f"{name}_c")[M, E, R, N],), nested(body, K, Y, B), "along the noise feature"),
        Definition((Base(f"{name}_n")[M, B, N],), nested(body, K, E, Y, R), "along the patches"),
    ]


def gradients() -> list[Definition]:
    """The mean gradients of the filters in the coordinates of the state, and their normalisation."""
    G = {name: Base(f"G_{name}") for name in "abcn"}
    own = nested(G["a"][M, K, Y, N] * SA * slope(SA * FEAT[M, J, K]), Y, N)
    noise = nested(G["c"][M, K, R, N] * SC * slope(SC * FEAT[M, J, K]), R, N)
    centre = sp.Sum(G["b"][M, K, N] * SB * slope(SB * CEN[M, J, K]), N)

    def patches(part: Any) -> Any:
        return nested(G["n"][M, B, N] * SIGN[B] * slope(SIGN[B] * OMEGA[M, J, D, N]) * part, B, N, D)

    squares = nested(G_FEAT[M, J, K] ** 2 + G_CEN[M, J, K] ** 2, J, K) + nested(G_REST[M, J, X] ** 2, J, X)
    return [
        Definition((G_FEAT[M, J, K],), own + noise + patches(PATCH_V[N, D, K]), "mean gradient along a feature"),
        Definition((G_CEN[M, J, K],), centre + patches(PATCH_C[N, D, K]), "mean gradient along a centre"),
        Definition((G_REST[M, J, X],), patches(PATCH_R[N, D, X]), "mean gradient outside the signals"),
        Definition(
            (SPEED[M],),
            UNITARY["per"](sp.Max(sp.sqrt(squares), LAYER * COHERENT[M])),
            "one over the Frobenius norm; slower where the gradient is incoherent",
        ),
    ]


def equations() -> tuple[list[Definition], tuple[Equation, ...]]:
    """Normalised descent of the experts, rho times descent of the router."""
    R_ = {name: Base(f"R_{name}") for name in "abcn"}
    along = nested(R_["a"][M, K, Y, N] * SA, Y, N) + nested(R_["c"][M, K, R, N] * SC, R, N)
    centre = sp.Sum(R_["b"][M, K, N] * SB, N)

    def patches(part: Any) -> Any:
        return nested(R_["n"][M, B, N] * SIGN[B] * part, B, N, D)

    moved = (SPEED[M] * G_REST[M, J, X], RHO * patches(PATCH_R[N, D, X]))
    filters, routers = Base("d_w"), Base("d_t")
    join = Rule("join rest", rules.join_rest, compiled="derivations.chen.routing_loops:join_rest")
    definitions = [
        Definition((filters[M, J, X],), moved[0], "motion of the filters outside the signals"),
        Definition((routers[M, X],), moved[1], "of the routers"),
        Definition((D_REST[WEIGHTS, X],), (filters, routers), "filters first, then routers", rule=join),
    ]
    at = "Algorithm 1, equation (3.4), in the mean"
    return definitions, (
        Equation(FEAT[M, J, K], SPEED[M] * G_FEAT[M, J, K], at),
        Equation(CEN[M, J, K], SPEED[M] * G_CEN[M, J, K], at),
        Equation(GCEN[M, K], RHO * (centre + patches(PATCH_C[N, D, K])), at),
        Equation(GFEAT[M, K], RHO * (along + patches(PATCH_V[N, D, K])), at),
        Equation(REST[WEIGHTS, X], D_REST[WEIGHTS, X], at),
    )


def constants(p: Parameters) -> tuple[Named, ...]:
    """Sizes, rates and the points."""
    size = "(n_p, n_d, {})"
    draw = f"{p.sigma_p / np.sqrt(p.d)!r} * np.random.default_rng({{}}).standard_normal({size})"
    low, high = ([float(law[k]) for law in (p.alpha, p.beta, p.gamma)] for k in (0, -1))
    return (
        Named(M_SIZE, "experts", 2),
        Named(J_SIZE, "filters of an expert", 2),
        Named(K_SIZE, "clusters", 2),
        Named(RHO, "router step over expert step", p.rho),
        Named(LAYER, "coherence E g over E|g| below which an expert slows down", p.layer),
        Named(LENGTH, "mean squared length of a noise patch", p.sigma_p**2),
        *power_constant(p),
        Named(POINTS, "quasi-random points", 64),
        Named(PATCHES, "noise patches", p.P - 3),
        Named(RANK, "dimension of the span of the weights outside the signals", "M * J", whole=True),
        Named(
            STRENGTHS[N, sp.Idx("o", 3)],
            "strengths alpha, beta, gamma of a point",
            f"np.random.default_rng(1).uniform({low}, {high}, (n_p, 3))",
        ),
        Named(PATCH_V[N, D, K], "coordinates of its patches along the features", draw.format(2, "K")),
        Named(PATCH_C[N, D, K], "along the centres", draw.format(3, "K")),
        Named(PATCH_R[N, D, X], "outside the signals", draw.format(4, "n_r")),
    )


def bind(initial: Initial) -> dict[str, Any]:
    """The numbers of the constants in a run."""
    p = initial.parameters
    given = arguments(initial)
    k, rho, layer, power, length = given.K, given.rho, given.layer, given.power, given.length
    strengths, patches = given.strengths, given.patches
    found = {"M": p.M, "J": p.J, "K": k, "rho": rho, "delta_c": layer, "power": power, "xi_2": length}
    found |= {"n_p": len(strengths), "n_d": p.P - 3, "n_r": residual(initial).shape[1], "strengths": strengths}
    return {
        **found,
        "patch_v": patches[:, :, :k],
        "patch_c": patches[:, :, k : 2 * k],
        "patch_r": patches[:, :, 2 * k :],
    }


SYMBOLS = {
    "g_feat": ("g^{x}", "gx"),
    "g_cen": ("g^{c}", "gc"),
    "g_rest": ("g^{r}", "gr"),
    "sign_i": ("y", "y"),
    "sign_r": ("\\epsilon", "ε"),
    "sign_b": ("\\varsigma", "ς"),
    "rest": ("r", "r"),
    "rest_w": ("r^{w}", "rw"),
    "rest_t": ("r^{\\theta}", "rθ"),
    "strengths": ("S", "S"),
    "patch_v": ("\\xi^{x}", "ξx"),
    "patch_c": ("\\xi^{c}", "ξc"),
    "patch_r": ("\\xi^{r}", "ξr"),
    "d_w": ("\\dot r^{w}", "ṙw"),
    "d_t": ("\\dot r^{\\theta}", "ṙθ"),
    "d_rest": ("\\dot r", "ṙ"),
    "G_n": ("G^{\\xi}", "Gξ"),
    "R_n": ("R^{\\xi}", "Rξ"),
    "xi_2": ("\\ell_\\xi^2", "ℓ²"),
}


def statement(p: Parameters) -> Statement:
    """The exact population flow with P - 3 noise patches."""
    at = (M, *TYPE)
    moved, rates = equations()
    stated = full_tier(p)
    pair = Indicator(sp.Ne(K, E)) / (8 * POINTS * K_SIZE * (K_SIZE - 1))
    loss = pair * CHANCE_WINS[at] * COST["cost"](SIGN[Y] * PI[at] * OUTPUT[at])
    signs = tuple(((i,), about) for i, about in zip(SIGN, SIGNS, strict=True))
    start = START + '\nstart |= {"rest": np.concatenate([0.1 * rng.standard_normal((M * J, n_r)), np.zeros((M, n_r))])}'
    return Statement(
        name="chen, full",
        title="population flow of a top-1 routed mixture of patch classifiers with noise patches",
        source=f"{PAPER}, Definition 3.1, Algorithm 1, equations (3.1) and (3.4), Lemma E.2 (corrected)",
        clock=CLOCK,
        validity=stated.about.validity,
        neglects=stated.about.neglects,
        indices=[
            ((M, L), "experts"),
            ((J,), "filters"),
            ((K, E), "clusters"),
            *signs,
            ((N,), "points"),
            ((D,), "noise patches"),
            ((X,), "directions outside the signals"),
            ((WEIGHTS,), "weights, filters first"),
        ],
        state=(*STATE, Named(REST[WEIGHTS, X], "coordinates of a weight outside the signals")),
        constants=constants(p),
        bind=bind,
        definitions=(
            *act(p),
            Q,
            COST,
            UNITARY,
            *(Definition((s,), sign(i), about) for (i, s), about in zip(SIGN.items(), SIGNS, strict=True)),
            *fields(),
            *of_types(),
            *collected(WEIGH, "G"),
            *collected(DRIFT, "R"),
            *gradients(),
            *moved,
        ),
        steps=examples(),
        equations=rates,
        loss=nested(loss, M, *TYPE),
        notation={**NOTATION, **banked(), **SYMBOLS},
        example=Example(start, "feat", 0.3, 0.5),
    )

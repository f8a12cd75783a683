"""Tier full: the population flow with noise patches, closed on overlaps and residual coordinates.

The derivation, beyond that of tier p3 (`exact`):

1. A noise patch xi ~ N(0, sigma_p^2/d I) acts on the weights only through w_mj . xi and theta_m . xi, which are
   jointly Gaussian with covariance sigma_p^2/d times the weights' Gram matrix, the part outside the signals included.
2. By rotation about the weights' span the mean gradient lies in it.  So the overlaps and the residual Gram matrix are
   closed, and a weight's residual part never leaves the span of the residual parts at the start: its coordinates
   in an orthonormal basis of that span (`rest`) are a factor of the Gram matrix at all times. They are the state,
   because points of N(0, Gram) need a factor. No result depends on the basis; comparisons use `gram`.
3. G_m and the router's drift are those of tier p3 with outputs and logits that include the noise patches, the
   gradient has sigma'(w_mj . xi) xi besides, and its norm includes its residual part.
4. The mean is a sum over pairs and signs at Sobol points of (alpha, beta, gamma) and the patches, each with both signs
   of the patches.  The points are the same at all times, and transformed to have the covariance of the distribution
   (`cloud`).

The squared size of an example's gradient treats patches as orthogonal: it only determines the width of the layer of
incoherent gradients.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.chen import rules
from derivations.chen.cloud import accuracy, points, require_size, residual
from derivations.chen.parameters import Parameters
from derivations.chen.summary import constants as saved_constants
from derivations.chen.summary import summarise
from derivations.chen.tiers import exact
from derivations.chen.tiers.example_types import (
    ALONG_CEN,
    ALONG_FEAT,
    AT,
    CROSSINGS,
    DRIFT,
    G_CEN,
    G_FEAT,
    LOOPS,
    LOSSES,
    NORM,
    OUTPUT,
    SOURCE,
    SPEED,
    STATE,
    SURE,
    WEIGH,
    along_signal,
    example,
    examples,
    fills,
    invariants,
    largest,
    sigma,
    slope,
    speed,
    symbols,
    watched,
    weigh,
)
from derivations.chen.tiers.vocabulary import (
    ANY,
    CEN,
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
)
from derivations.contract import Initial, Labelled, Observables, Smooth
from derivations.indexed import nested
from derivations.statement import Base, Definition, Equation, Indicator, Named, Rule, Shortcut, Statement, sign, sp

POINTS, PATCHES, RANK = sp.symbols("n_p n_d n_r", integer=True, positive=True)
LENGTH = sp.Symbol("xi_2", real=True)
N, D, X = sp.Idx("n", POINTS), sp.Idx("d", PATCHES), sp.Idx("x", RANK)
Y, R, B = (sp.Idx(name, 2) for name in "irb")
WEIGHTS = sp.Idx("a", M_SIZE * J_SIZE + M_SIZE)
REST, REST_W, REST_T = Base("rest"), Base("rest_w"), Base("rest_t")
STRENGTHS, PATCH_V, PATCH_C, PATCH_R = map(Base, ("strengths", "patch_v", "patch_c", "patch_r"))
OMEGA, ZETA, ALONG, DRIFT_N, PULL = map(Base, ("omega", "zeta", "G_n", "R_n", "T"))
G_REST, D_REST = map(Base, ("g_rest", "d_rest"))
TYPE = (K, E, Y, R, B, N)
SIGN = {i: Base(f"sign_{i.name}")[i] for i in (Y, R, B)}
SIGNS = ("label", "sign of the feature noise", "sign of the patches")
SA, SB, SC = SIGN[Y] * STRENGTHS[N, 0], STRENGTHS[N, 1], SIGN[R] * STRENGTHS[N, 2]


def fields() -> list[Definition]:
    """Fields of the patches of a point: w . xi of every filter, theta . sum xi of every router."""
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


def tables() -> tuple[tuple[Any, ...], tuple[Any, ...], list[Definition]]:
    """Entries of the tables of outputs and squared sizes along signals and patches, and their definitions."""
    places = {"a": (M, K, Y, N), "b": (M, K, N), "c": (M, E, R, N), "n": (M, B, N)}
    outputs, squares = (tuple(Base(f"{x}_{name}")[at] for name, at in places.items()) for x in "FS")
    noise = SIGN[B] * OMEGA[M, J, D, N]
    found = [
        *along_signal("a", FEAT[M, J, K], SA, (Y, N)),
        *along_signal("b", CEN[M, J, K], SB, (N,)),
        *along_signal("c", FEAT[M, J, E], SC, (R, N)),
        Definition((outputs[3],), nested(sigma(noise), J, D), "output of the patches"),
        Definition((squares[3],), LENGTH * nested(slope(noise) ** 2, J, D), "squared gradient, patches orthogonal"),
    ]
    return outputs, squares, found


def of_types() -> list[Definition]:
    """Definitions over all example types, and the loops that fill their sums."""
    at = (M, *TYPE)
    outputs, squares, found = tables()
    logits = SA * GFEAT[M, K] + SB * GCEN[M, K] + SC * GFEAT[M, E] + SIGN[B] * ZETA[M, N]
    chance = Indicator(sp.Ne(K, E)) / (8 * POINTS * K_SIZE * (K_SIZE - 1))
    pushes = tuple(Base(f"G_{n}")[x.indices] for n, x in zip("abcn", outputs, strict=True))
    drift = DRIFT_N[M, B, N]
    given = (GFEAT, GCEN, ZETA, *outputs, *squares, STRENGTHS)
    filled = fills(*pushes, drift)
    loops = Shortcut(f"{LOOPS}sum_over_points", given, filled, (3, 4, 4, 1, 3, 3, 4, 1))
    sure = (GFEAT, GCEN, ZETA, *outputs, STRENGTHS)
    hard = Shortcut(f"{LOOPS}largest_over_points", sure, (SURE[K, M],), (3, 4, 1, 1, 1))
    own, other = DRIFT[M, K, E, Y, R, B, N], DRIFT[M, E, K, Y, R, B, N]
    along = nested(own * SA, E, Y, R, B, N) + nested(other * SC, E, Y, R, B, N)
    weight = WEIGH[at]
    return [
        *found,
        Definition((H[at],), logits, "logits"),
        Definition((OUTPUT[at],), sp.Add(*outputs), "outputs of the experts"),
        Definition((NORM[at],), sp.Add(*squares), "squared size of a gradient over G"),
        *weigh(TYPE, chance, SIGN[Y], loops),
        Definition((ALONG_FEAT[M, K],), along, "drift of a router along a feature, as signal and as noise"),
        Definition((ALONG_CEN[M, K],), nested(own * SB, E, Y, R, B, N), "along a centre"),
        Definition((pushes[0],), nested(weight, E, R, B), "weights of types with one feature at a point"),
        Definition((pushes[1],), nested(weight, E, Y, R, B), "with one centre"),
        Definition((pushes[2],), nested(weight, K, Y, B), "with one noise feature"),
        Definition((pushes[3],), nested(weight, K, E, Y, R), "with one sign of the patches"),
        Definition((drift,), nested(DRIFT[at], K, E, Y, R), "drift of a router along the patches of a point"),
        *largest(TYPE, chance, SIGN[Y], H, OUTPUT, hard),
    ]


def gradients() -> list[Definition]:
    """Definitions of the mean gradients of the filters in the coordinates of the state, and of their normalisation."""
    G = {name: Base(f"G_{name}") for name in "abcn"}
    own = nested(G["a"][M, K, Y, N] * SA * slope(SA * FEAT[M, J, K]), Y, N)
    noise = nested(G["c"][M, K, R, N] * SC * slope(SC * FEAT[M, J, K]), R, N)
    centre = sp.Sum(G["b"][M, K, N] * SB * slope(SB * CEN[M, J, K]), N)
    pull = sp.Sum(G["n"][M, B, N] * SIGN[B] * slope(SIGN[B] * OMEGA[M, J, D, N]), B)

    def patches(part: Any) -> Any:
        return nested(PULL[M, J, D, N] * part, D, N)

    squares = nested(G_FEAT[M, J, K] ** 2 + G_CEN[M, J, K] ** 2, J, K) + nested(G_REST[M, J, X] ** 2, J, X)
    return [
        Definition((PULL[M, J, D, N],), pull, "weight of a patch in the gradient of a filter"),
        Definition((G_FEAT[M, J, K],), own + noise + patches(PATCH_V[N, D, K]), "mean gradient along a feature"),
        Definition((G_CEN[M, J, K],), centre + patches(PATCH_C[N, D, K]), "mean gradient along a centre"),
        Definition((G_REST[M, J, X],), patches(PATCH_R[N, D, X]), "mean gradient outside the signals"),
        speed(squares),
    ]


def equations() -> tuple[list[Definition], tuple[Equation, ...]]:
    """Normalised descent of the experts, rho times descent of the router."""

    def patches(part: Any) -> Any:
        return nested(sp.Sum(DRIFT_N[M, B, N] * SIGN[B], B) * part, D, N)

    moved = (SPEED[M] * G_REST[M, J, X], RHO * patches(PATCH_R[N, D, X]))
    filters, routers = Base("d_w"), Base("d_t")
    join = Rule("join rest", rules.join_rest, compiled="derivations.chen.routing_loops:join_rest")
    definitions = [
        Definition((filters[M, J, X],), moved[0], "motion of the filters outside the signals"),
        Definition((routers[M, X],), moved[1], "of the routers"),
        Definition((D_REST[WEIGHTS, X],), (filters, routers), "filters first, then routers", rule=join),
    ]
    return definitions, (
        Equation(FEAT[M, J, K], SPEED[M] * G_FEAT[M, J, K], AT),
        Equation(CEN[M, J, K], SPEED[M] * G_CEN[M, J, K], AT),
        Equation(GCEN[M, K], RHO * (ALONG_CEN[M, K] + patches(PATCH_C[N, D, K])), AT),
        Equation(GFEAT[M, K], RHO * (ALONG_FEAT[M, K] + patches(PATCH_V[N, D, K])), AT),
        Equation(REST[WEIGHTS, X], D_REST[WEIGHTS, X], AT),
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
    """The numbers of the constants in a run: sizes, rates, E|xi|^2, and the points of strengths and patches."""
    p = initial.parameters
    rank = residual(initial).shape[1]
    require_size(p, 2 * p.K + rank)
    strengths, patches = points(p, 2 * p.K + rank)
    found = {"M": p.M, "J": p.J, "K": p.K, "rho": p.rho, "delta_c": p.layer, "power": p.power, "xi_2": p.sigma_p**2}
    found |= {"n_p": len(strengths), "n_d": p.P - 3, "n_r": rank, "strengths": strengths}
    parts = np.split(patches, (p.K, 2 * p.K), axis=2)
    return found | dict(zip(("patch_v", "patch_c", "patch_r"), map(np.ascontiguousarray, parts), strict=True))


SYMBOLS = {
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
    "T": ("T", "T"),
    "F_n": ("F^{\\xi}", "Fξ"),
    "S_n": ("S^{\\xi}", "Sξ"),
    "G_n": ("G^{\\xi}", "Gξ"),
    "R_n": ("R^{\\xi}", "Rξ"),
    "xi_2": ("\\ell_\\xi^2", "ℓ²"),
}


def statement(p: Parameters) -> Statement:
    """The exact population flow with P - 3 noise patches."""
    moved, rates = equations()
    signs = tuple(((i,), about) for i, about in zip(SIGN, SIGNS, strict=True))
    more = '\nstart |= {"rest": np.concatenate([0.1 * rng.standard_normal((M * J, n_r)), np.zeros((M, n_r))])}'
    about = "coordinates of a weight outside the signals; filters first, then routers"
    return Statement(
        tier="full",
        name="chen, full",
        title="population flow of a top-1 routed mixture of patch classifiers with noise patches",
        source=f"{PAPER}, {SOURCE}",
        clock=CLOCK,
        validity=(
            "exact for any P and activation in the limit of many examples and a small step, if no expert's "
            f"gradient is incoherent (|E g| < {p.layer:g} E|g|), {accuracy(p)}"
        ),
        neglects="nothing beside that error",
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
        sizes={"M": p.M, "J": p.J, "K": p.K, "n_r": -1},
        state=(*STATE, Named(REST[WEIGHTS, X], about, dims=("weight", "direction"), bounds=ANY)),
        constants=constants(p),
        bind=bind,
        begin=lambda initial: {**initial.state, "rest": residual(initial)},
        definitions=(
            *act(p),
            Q,
            COST,
            UNITARY,
            *(Definition((s,), sign(i), about) for (i, s), about in zip(SIGN.items(), SIGNS, strict=True)),
            *fields(),
            *of_types(),
            *gradients(),
            *moved,
        ),
        steps=examples(),
        equations=rates,
        loss=sp.Sum(LOSSES[M], M),
        watched=watched(),
        crossings=CROSSINGS,
        observables=Observables(observe=observe, constants=saved_constants, invariants=deviations, summary=summarise),
        advance=Smooth(between="interpolant", kinks=True),
        notation={**NOTATION, **symbols(), **SYMBOLS},
        example=example(more, 0.5),
    )


def without_patches(p: Parameters) -> Statement:
    """Tier full for P = 3: the flow of tier p3."""
    exactly = exact.statement(p, "full")
    validity = f"{exactly.validity}; with noise patches (P > 3) {accuracy(p)}"
    return dataclasses.replace(exactly, validity=validity)


def observe(initial: Initial, state: Mapping[str, np.ndarray]) -> Labelled:
    """The residual Gram matrix of the weights, filters (m, j) first, then routers."""
    gram = state["rest"] @ np.swapaxes(state["rest"], 1, 2)
    return {"gram": (("time", "weight", "weight_"), gram, "Gram matrix of the weights' parts outside the signals")}


def deviations(initial: Initial, state: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Deviations of tier p3, with the routers' residual parts in `router_sum`."""
    found = invariants(initial, state)
    p = initial.parameters
    total = state["rest"][:, p.M * p.J :].sum(axis=1)
    return {**found, "router_sum": max(found["router_sum"], float(np.abs(total - total[0]).max(initial=0.0)))}

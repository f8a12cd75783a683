"""Tiers spec and specnoise: filter j*_m of expert m has overlap s_m with feature k*_m, all other overlaps are 0.

The manifold is invariant: M + M K numbers. Tier specnoise adds the noise patches' effect on the router, h_m += sum_l
gcen_ml zeta_l.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from derivations.chen.parameters import Parameters
from derivations.chen.summary import constants, summarise
from derivations.chen.tiers import parts
from derivations.chen.tiers.parts import (
    HIGH,
    LOW,
    MEMBER,
    PUSH,
    Q_SYMBOLS,
    SOURCE,
    WA,
    WC,
    WEIGH,
    XA,
    XC,
    ZETAS,
    I,
    R,
)
from derivations.chen.tiers.vocabulary import ANY, CLOCK, GCEN, K_SIZE, NOTATION, PI, RHO, UNITARY, E, H, K, L, M, Q
from derivations.contract import Initial, Observables, Smooth
from derivations.indexed import nested
from derivations.statement import Base, Definition, Equation, Example, Named, Shortcut, Statement, sp

NZ = sp.Symbol("n_z", integer=True, positive=True)
Z = sp.Idx("z", NZ)
STRENGTH, KSTAR, ZETA, NET, SIZE, DRIFT = map(Base, ("strength", "kstar", "zeta", "net", "size", "drift"))


def statement(p: Parameters, tier: str) -> Statement:
    """One specialised filter for every expert, without or with the noise patches' effect on the router."""
    noisy = tier == "specnoise"
    given, cuts, n, beta, weight = parts.centres(p, noisy)
    at = (K, n, Z) if noisy else (K, n)
    drift = RHO / K_SIZE * DRIFT[M, K]
    indices = [((M, L), "experts"), ((K, E), "clusters"), ((I,), "strengths of the feature"), ((R,), "of its noise")]
    indices.append(((n,), "of the centre"))
    if noisy:
        drift += RHO / K_SIZE * nested(PUSH[(M, E, n, Z)] * ZETA[Z, K], E, n, Z)
        indices.append(((Z,), "samples of noise patches"))
    missing = f"the noise patches' effect on the experts; {ZETAS} samples of them" if noisy else "noise patches"
    return Statement(
        tier=tier,
        name=f"chen, {tier}",
        title="the specialised manifold" + (" with the noise patches' effect on the router" if noisy else ""),
        source=SOURCE,
        clock=CLOCK,
        validity=("cubic experts" if noisy else "exact for P = 3 and cubic experts")
        + " on the specialised manifold (feat = s_m at its own filter and feature, cen = gfeat = 0)",
        neglects=f"features that lose the competition, cen and gfeat; {missing}",
        indices=indices,
        sizes={"M": p.M, "K": p.K},
        state=(
            Named(
                STRENGTH[M],
                "alignment of the specialised filter with its feature",
                dims=("expert",),
                bounds=ANY,
                symbol="s_m",
            ),
            Named(
                GCEN[M, K],
                "alignment of a router with a cluster centre",
                dims=("expert", "feature"),
                bounds=ANY,
                symbol="<theta, c_k>",
            ),
        ),
        constants=fixed_numbers(p, given, noisy),
        bind=bind_noisy if noisy else bind,
        begin=lambda initial: {**initial.state, "strength": parts.strength(initial)},
        definitions=(Q, UNITARY, *definitions(cuts, at, beta, weight)),
        equations=(
            Equation(STRENGTH[M], parts.unit_speed(NET[M], SIZE[M]), "Algorithm 1"),
            Equation(GCEN[M, K], drift, "equation (3.4)"),
        ),
        advance=Smooth(between="interpolant" if noisy else "step", kinks=noisy),
        observables=Observables(
            observe=parts.observe,
            constants=constants,
            invariants=lambda initial, state: {
                "router_sum": float(np.abs(state["gcen"].sum(axis=1) - state["gcen"][0].sum(axis=0)).max())
            },
            summary=summarise,
        ),
        notation={**NOTATION, **Q_SYMBOLS},
        example=Example('start = {"strength": np.full(M, 0.02), "gcen": 0.1 * np.eye(M, K)}', "gcen", 0.5, 2.0),
    )


def fixed_numbers(p: Parameters, given: tuple[Named, ...], noisy: bool) -> tuple[Named, ...]:
    """The constants: sizes, rates, laws, the features of the specialists, and the samples of the noise patches."""
    about = "feature of an expert's specialised filter (in code from 0)"
    shared = parts.sizes_and_laws(p, given, p.K, "clusters")
    numbers = (*shared, Named(KSTAR[M], about, "np.arange(M) % K", whole=True))
    if not noisy:
        return numbers
    default = "np.sqrt(0.02) * np.random.default_rng(6).standard_normal((n_z, K))"
    return (
        *numbers,
        Named(NZ, "samples of the noise patches", 8),
        Named(ZETA[Z, K], "products of the noise patches with the centres", default),
    )


def bind(initial: Initial) -> dict[str, Any]:
    """The numbers of the constants in a run."""
    return {**parts.bind(initial), "kstar": initial.constants.get("kstar")}


def bind_noisy(initial: Initial) -> dict[str, Any]:
    """The numbers of the constants in a run, with the samples of the noise patches."""
    zeta = zetas(initial.parameters)
    return {**bind(initial), "n_z": len(zeta), "zeta": zeta}


def definitions(cuts: tuple[Definition, ...], at: tuple[Any, ...], beta: Any, weight: Any) -> tuple[Definition, ...]:
    """The definitions of tiers spec and specnoise, whose `at` has samples of noise patches."""
    noisy, here = len(at) == 3, (M, *at)
    noise = sp.Sum(ZETA[Z, E] * GCEN[M, E], E) if noisy else 0
    share = weight / NZ if noisy else weight
    gathered = sp.Sum(WEIGH[(L, *at)] * STRENGTH[L] ** 3, L)
    push = share * (WEIGH[here] * STRENGTH[M] ** 3 - PI[here] * gathered)
    loops = None
    if cuts:  # these skip pieces without length, which are most pieces
        arguments = (GCEN, STRENGTH, MEMBER, LOW, HIGH, XA, WA, XC, WC)
        loops = Shortcut("derivations.chen.manifold_loops:mean_gradients", arguments, (SIZE[M], DRIFT[M, K]))
    weigh = parts.weigh(at, MEMBER[M, K], STRENGTH[M], share, (NET[M], SIZE[M]))
    return (
        *cuts,
        Definition((MEMBER[M, K],), sp.KroneckerDelta(KSTAR[M], K), "whether cluster k is that of the expert"),
        Definition((H[here],), beta * GCEN[M, K] + noise, "logits"),
        *(replace(d, shortcut=loops) if d.targets == (NET[M],) else d for d in weigh),
        Definition((PUSH[here],), push, "drift of the logits"),
        Definition((DRIFT[M, K],), nested(PUSH[here] * beta, *at[1:]), "drift of a router along a centre"),
    )


def zetas(p: Parameters) -> np.ndarray:
    """Antithetic samples (Z, K) of zeta_k = sum over noise patches of xi.c_k ~ N(0, (P - 3) sigma_p^2/d)."""
    from scipy.stats import norm, qmc

    points = qmc.Sobol(p.K, scramble=True, rng=np.random.default_rng(0)).random(ZETAS // 2)
    half = norm.ppf(points) * np.sqrt((p.P - 3) / p.d) * p.sigma_p
    return np.concatenate([half, -half])

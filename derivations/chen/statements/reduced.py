"""The reduced tiers of system `chen` as statements: the race, the specialised manifold, its two-variable form."""

from typing import Any

import numpy as np

from derivations.chen import reduced as tiers
from derivations.chen.parameters import Parameters
from derivations.chen.statements import rules
from derivations.chen.statements.parts import (
    CHANCE_WINS,
    CLOCK,
    FEAT,
    GCEN,
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
    law,
    nodes_of,
    power_constant,
    routing,
)
from derivations.contract import Initial
from derivations.indexed import nested
from derivations.statement import Base, Definition, Equation, Example, Indicator, Named, Rule, Statement, function, sp

NA, NB, NC, NZ, KINKS = sp.symbols("n_a n_b n_c n_z n_k", integer=True, positive=True)
LOW, HIGH = sp.symbols("beta_1 beta_2", real=True)
I, R, Z = sp.Idx("i", NA), sp.Idx("r", NC), sp.Idx("z", NZ)
XA, WA, XB, WB, XC, WC = map(Base, ("x_a", "w_a", "x_b", "w_b", "x_c", "w_c"))
BETA, W_BETA = Base("beta"), Base("w_beta")
STRENGTH, KSTAR, MEMBER, ZETA = map(Base, ("strength", "kstar", "member", "zeta"))
OWN, OTHER, WEIGH, NET, SIZE, PUSH = map(Base, ("own", "other", "G", "net", "size", "T"))
S, CONTRAST, PSI = sp.Symbol("s", real=True), sp.Symbol("D", real=True), Base("psi")
SPEED, H_GROUP = Base("V"), Base("h_g")
NET_ALL, SIZE_ALL = sp.Symbol("net", real=True), sp.Symbol("size", real=True)
SOURCE = f"{PAPER}, Algorithm 1 with equations (3.1) and (3.4); the reduction is ours"
Q_SYMBOLS = {
    "own": ("\\omega", "ω"),
    "other": ("\\bar\\omega", "ω̄"),
    "net": ("N", "N"),
    "size": ("C", "C"),
    "kstar": ("k^*", "k*"),
}


def explore(p: Parameters, tier: str) -> Statement:
    """The race of the filters at a uniform router."""
    nodes = 2 * tiers.STRENGTHS
    slope = function("slope")
    drive = sp.Sum(WA[I] * XA[I] * (slope(XA[I] * FEAT[M, J, K]) + slope(-XA[I] * FEAT[M, J, K])) / 2, I)

    def bind(initial: Initial) -> dict[str, Any]:
        p = initial.parameters
        x, w = law(p, "alpha", nodes)
        return {"M": p.M, "J": p.J, "K": p.K, "power": p.power, "n_a": len(x), "x_a": x, "w_a": w}

    stated = tiers.explore(p)
    return Statement(
        name="chen, explore",
        title="the race of the filters at a uniform router",
        source=f"{PAPER}, Lemmas E.5 to E.8, with the constants of the limit",
        clock="time is arc length: every expert moves with its gradient divided by its Frobenius norm",
        validity=stated.about.validity,
        neglects=stated.about.neglects,
        indices=[((M,), "experts"), ((J,), "filters"), ((K,), "features"), ((I,), "strengths of the feature")],
        state=(Named(FEAT[M, J, K], "alignment of a filter with a feature"),),
        constants=(
            Named(M_SIZE, "experts", 2),
            Named(J_SIZE, "filters of an expert", 3),
            Named(K_SIZE, "features", 2),
            *power_constant(p),
            *nodes_of(p, "alpha", "a", NA, I, nodes),
        ),
        bind=bind,
        definitions=(
            *act(p)[1:],
            UNITARY,
            Definition((PSI[M, J, K],), drive, "mean drift, up to a factor common to all"),
            Definition((SPEED[M],), UNITARY["per"](sp.sqrt(nested(PSI[M, J, K] ** 2, J, K))), "of unit speed"),
        ),
        equations=(Equation(FEAT[M, J, K], PSI[M, J, K] * SPEED[M], "Lemmas E.5 to E.8"),),
        notation=NOTATION,
        example=Example(
            'start = {"feat": 0.01 * np.random.default_rng(0).standard_normal((M, J, K))}', "feat", 0.9, 4.0
        ),
    )


def centres(p: Parameters, noisy: bool) -> tuple[tuple[Named, ...], tuple[Definition, ...], Any, Any, Any]:
    """Constants and definitions of the nodes of beta, cut at the kinks of the routing, and (size, node, weight)."""
    cut = p.laws == "uniform" and len(p.beta) == 2 and p.beta[0] < p.beta[1] and not noisy
    if not cut:
        n = sp.Idx("n", NB)
        return tuple(nodes_of(p, "beta", "b", NB, n, 2 * tiers.CENTRES)), (), n, XB[n], WB[n]
    n = sp.Idx("n", KINKS)
    pieces = Rule("pieces", rules.pieces, compiled="derivations.chen.routing_loops:pieces")
    note = "12 Gauss-Legendre nodes on every piece between the points where beta |g_m - g_l| = 1, and their weights"
    shared = (
        Named(LOW, "least strength of a centre", p.beta[0]),
        Named(HIGH, "largest", p.beta[1]),
        Named(KINKS, "nodes of beta", "12 * (M * (M - 1) // 2 + 1)", whole=True),
    )
    means = function("pieces")(GCEN[L, K], LOW, HIGH)
    found = Definition((BETA[K, n], W_BETA[K, n]), (GCEN, LOW, HIGH), note, rule=pieces, means=means)
    return shared, (found,), n, BETA[K, n], W_BETA[K, n]


def bind_manifold(noisy: bool) -> Any:
    """The numbers of the constants in a run."""

    def bind(initial: Initial) -> dict[str, Any]:
        p = initial.parameters
        found = {"M": p.M, "K": p.K, "rho": p.rho, "delta_c": p.layer, "n_k": 12 * (p.M * (p.M - 1) // 2 + 1)}
        nodes = {"alpha": tiers.STRENGTHS, "beta": 2 * tiers.CENTRES, "gamma": tiers.STRENGTHS}
        for name, short in (("alpha", "a"), ("beta", "b"), ("gamma", "c")):
            x, w = law(p, name, nodes[name])
            found |= {f"n_{short}": len(x), f"x_{short}": x, f"w_{short}": w}
        zeta = tiers.zetas(p) if noisy else np.zeros((1, p.K))
        ends = {"beta_1": p.beta[0], "beta_2": p.beta[-1]}
        return {**found, **ends, "kstar": initial.constants.get("kstar"), "n_z": len(zeta), "zeta": zeta}

    return bind


def mean_weights(strength: Any, gate: Any, own: Any, other: Any) -> tuple[Definition, Definition]:
    """E alpha^3 q(pi alpha^3 s^3) on the own cluster, E gamma^3 tanh(pi gamma^3 s^3/2)/2 elsewhere (cubic experts)."""
    a, c = XA[I] ** 3, XC[R] ** 3
    return (
        Definition((own,), sp.Sum(WA[I] * a * Q["q"](gate * a * strength**3), I), "weight of the own cluster"),
        Definition((other,), sp.Sum(WC[R] * c * sp.tanh(gate * c * strength**3 / 2) / 2, R), "of another, both signs"),
    )


def sizes_and_laws(p: Parameters, given: tuple[Named, ...], experts: int, groups: str) -> list[Named]:
    """The constants that both forms of the manifold have."""
    return [
        Named(M_SIZE, "experts", experts),
        Named(K_SIZE, groups, p.K),
        Named(RHO, "router step over expert step", p.rho),
        Named(LAYER, "coherence below which an expert slows down", p.layer),
        *given,
        *nodes_of(p, "alpha", "a", NA, I, tiers.STRENGTHS),
        *nodes_of(p, "gamma", "c", NC, R, tiers.STRENGTHS),
    ]


def weigh(at: tuple[Any, ...], member: Any, strength: Any, share: Any, targets: tuple[Any, Any]) -> list[Definition]:
    """Routing, the weight of a cluster in an expert's gradient, its mean and its mean size (`targets`)."""
    here, whole = (M, *at), at if isinstance(strength, sp.Indexed) else (M, *at)
    own, other = mean_weights(strength, PI[here], OWN[here], OTHER[here])
    mix = member * OWN[here] - (1 - member) * OTHER[here] / (K_SIZE - 1)
    net, size = targets
    return [
        *routing(at),
        own,
        other,
        Definition((WEIGH[here],), CHANCE_WINS[here] * PI[here] * mix, "weight of a cluster in an expert's gradient"),
        Definition((net,), nested(share * WEIGH[here], *whole), "mean gradient"),
        Definition((size,), nested(share * sp.Abs(WEIGH[here]), *whole), "mean size of the gradient"),
    ]


def unit_speed(net: Any, size: Any) -> Any:
    """The speed of a strength: the sign of its gradient, slower where that is incoherent."""
    return net * UNITARY["per"](sp.Max(sp.Abs(net), LAYER * size))


def manifold_definitions(
    cuts: tuple[Definition, ...], at: tuple[Any, ...], beta: Any, weight: Any
) -> tuple[Definition, ...]:
    """The definitions of tiers spec and specnoise, whose `at` has samples of noise patches."""
    noisy, here = len(at) == 3, (M, *at)
    noise = sp.Sum(ZETA[Z, E] * GCEN[M, E], E) if noisy else 0
    share = weight / NZ if noisy else weight
    gathered = sp.Sum(WEIGH[(L, *at)] * STRENGTH[L] ** 3, L)
    drift = share * (WEIGH[here] * STRENGTH[M] ** 3 - PI[here] * gathered)
    return (
        *cuts,
        Definition((MEMBER[M, K],), sp.KroneckerDelta(KSTAR[M], K), "whether cluster k is the expert's own"),
        Definition((H[here],), beta * GCEN[M, K] + noise, "logits"),
        *weigh(at, MEMBER[M, K], STRENGTH[M], share, (NET[M], SIZE[M])),
        Definition((PUSH[here],), drift, "drift of the logits"),
    )


def manifold(p: Parameters, tier: str) -> Statement:
    """Tiers spec and specnoise: one specialised filter for every expert."""
    noisy = tier == "specnoise"
    given, cuts, n, beta, weight = centres(p, noisy)
    at = (K, n, Z) if noisy else (K, n)
    drift = RHO / K_SIZE * nested(PUSH[(M, *at)] * beta, *at[1:])
    about = "feature of an expert's specialised filter (in code from 0)"
    constants = [*sizes_and_laws(p, given, p.K, "clusters"), Named(KSTAR[M], about, "np.arange(M) % K", whole=True)]
    indices = [((M, L), "experts"), ((K, E), "clusters"), ((I,), "strengths of the feature"), ((R,), "of its noise")]
    indices.append(((n,), "of the centre"))
    if noisy:
        drift += RHO / K_SIZE * nested(PUSH[(M, E, n, Z)] * ZETA[Z, K], E, n, Z)
        default = "np.sqrt(0.02) * np.random.default_rng(6).standard_normal((n_z, K))"
        constants.append(Named(NZ, "samples of the noise patches", 8))
        constants.append(Named(ZETA[Z, K], "products of the noise patches with the centres", default))
        indices.append(((Z,), "samples of noise patches"))
    stated = tiers.spec(p, tier)
    return Statement(
        name=f"chen, {tier}",
        title="the specialised manifold" + (" with the noise patches' effect on the router" if noisy else ""),
        source=SOURCE,
        clock=CLOCK,
        validity=stated.about.validity,
        neglects=stated.about.neglects,
        indices=indices,
        state=(
            Named(STRENGTH[M], "alignment of the specialised filter with its feature"),
            Named(GCEN[M, K], "alignment of a router with a cluster centre"),
        ),
        constants=tuple(constants),
        bind=bind_manifold(noisy),
        definitions=(Q, UNITARY, *manifold_definitions(cuts, at, beta, weight)),
        equations=(
            Equation(STRENGTH[M], unit_speed(NET[M], SIZE[M]), "Algorithm 1"),
            Equation(GCEN[M, K], drift, "equation (3.4)"),
        ),
        notation={**NOTATION, **Q_SYMBOLS},
        example=Example('start = {"strength": np.full(M, 0.02), "gcen": 0.1 * np.eye(M, K)}', "gcen", 0.5, 2.0),
    )


def group_definitions(cuts: tuple[Definition, ...], n: Any, beta: Any, weight: Any) -> tuple[Definition, ...]:
    """The definitions of tier group2, seen from cluster 1."""
    inside, here = MEMBER[M], (M, n)
    gathered = sp.Sum(WEIGH[(L, n)] * S**3, L)
    return (
        Definition((inside,), Indicator(sp.Lt(M * K_SIZE, M_SIZE)), "whether an expert is of group 1"),
        Definition((H_GROUP[M],), CONTRAST * inside, "logit over beta"),
        *cuts,
        Definition((H[here],), beta * H_GROUP[M], "logits on cluster 1"),
        *weigh((n,), inside, S, weight, (NET_ALL, SIZE_ALL)),
        Definition((PUSH[here],), WEIGH[here] * S**3 - PI[here] * gathered, "drift of the logits"),
    )


def group2(p: Parameters, tier: str) -> Statement:
    """K equal groups: the strength s of every specialist and the contrast D of the router."""
    given, cuts, n, beta, weight = centres(p, False)
    if cuts:  # one column of logits
        n = sp.Idx("n", KINKS)
        beta, weight = BETA[n], W_BETA[n]
        (cut,) = cuts
        means = cut.means.subs(GCEN[L, K], H_GROUP[L])
        cuts = (Definition((beta, weight), (H_GROUP, LOW, HIGH), cut.meaning, rule=cut.rule, means=means),)
    group, inside = M_SIZE / K_SIZE, MEMBER[M]
    contrast = PUSH[M, n] * (inside / group - (1 - inside) / (M_SIZE - group))
    experts, stated = "experts, those of group 1 first", tiers.group2(p)
    return Statement(
        name="chen, group2",
        title="K equal groups of specialists, two variables, seen from cluster 1",
        source=SOURCE,
        clock=CLOCK,
        validity=stated.about.validity,
        neglects=stated.about.neglects,
        indices=[
            ((M, L), experts),
            ((I,), "strengths of the feature"),
            ((R,), "of its noise"),
            ((n,), "of the centre"),
        ],
        state=(
            Named(S, "alignment of every specialist with its feature"),
            Named(CONTRAST, "router contrast: gcen of the own group minus that of the others"),
        ),
        constants=tuple(sizes_and_laws(p, given, 2 * p.K, "groups, one for every cluster")),
        bind=bind_manifold(False),
        definitions=(Q, UNITARY, *group_definitions(cuts, n, beta, weight)),
        equations=(
            Equation(S, unit_speed(NET_ALL, SIZE_ALL), "Algorithm 1"),
            Equation(CONTRAST, RHO / K_SIZE * nested(weight * beta * contrast, M, n), "equation (3.4)"),
        ),
        notation={**NOTATION, **Q_SYMBOLS, "h_g": ("\\eta", "η")},
        example=Example('start = {"s": np.array(0.02), "D": np.array(0.1)}', "D", 0.5, 2.0),
    )

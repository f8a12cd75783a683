"""The reduced tiers: the race of the exploration stage, the specialised manifold, and its two-variable form.

explore    h = 0 and q = 1/2: dfeat/dt = psi(feat)/|psi(feat)|, psi(x) = E[alpha (sigma'(alpha x) + sigma'(-alpha x))/2]
           (Lemmas E.5 to E.8; every constant cancels in the normalisation, and for cubic experts psi ~ x^2)
spec       filter j*_m of expert m has overlap s_m with feature k*_m, all else vanishes: invariant, M + M K states
specnoise  the same with the noise patches' effect on the router, h_m += sum_l gcen_ml zeta_l
group2     K equal groups, equal strengths: s and the contrast D of the router
"""

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.chen import reduced_arrays, route
from derivations.chen.nodes import legendre, legendre_rows, rule
from derivations.chen.parameters import Parameters
from derivations.chen.population import ANY, STATE
from derivations.chen.reduced_loops import Groups, Manifold
from derivations.chen.summary import constants, summarise
from derivations.contract import (
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
    UsageError,
)

STRENGTHS = 16
"""Nodes of the laws of alpha and gamma: their integrands are analytic."""
CENTRES = 12
"""Nodes of the law of beta on every piece between two kinks, or 24 points where noise smooths them."""
ZETAS = 64
"""Antithetic samples of the noise patches in tier specnoise."""
BELOW_TWO = (
    "; for 1 < q < 2 an alignment that comes to 0 could rest there for any time: the flow leaves at once, with an "
    "error above the tolerance (900-fold at 1e-8 for q = 1.7)"
)
STRENGTH = Component("strength", ("expert",), ANY, "s_m", "alignment of the specialised filter with its feature")
ROUTE = tuple(f"derivations.chen.loops:{name}" for name in ("by_logit", "winning", "speed"))
MANIFOLD = tuple(f"derivations.chen.reduced_loops:{name}" for name in ("split_nodes", "gate_values", "mean_weight"))


def equations(parameters: Parameters, tier: str) -> Equations:
    """The equations of a reduced tier."""
    if tier == "explore":
        return explore(parameters)
    if parameters.activation != "cubic":
        raise UsageError(f"tier {tier} is derived for cubic experts, but activation = {parameters.activation}")
    return group2(parameters) if tier == "group2" else spec(parameters, tier)


def explore(parameters: Parameters) -> Equations:
    """The tensor-power race.  Source: Chen et al. 2022, Lemmas E.5 to E.8, with the constants of the limit."""
    p = parameters
    shape = (p.M, p.J, p.K)
    return Equations(
        about=Tier(
            name="explore",
            validity=(
                "while the router is uniform and every margin small: time up to about sqrt(sigma_0)"
                + (BELOW_TWO if p.activation == "power" and 1.0 < p.power < 2.0 else "")
            ),
            neglects="the router (h = 0), the margins (q = 1/2), centres and noise patches, whose mean drift vanishes",
        ),
        advance=Smooth(),
        code=Code(
            structure=f"chen_explore_{p.activation}",
            kernels=functools.partial(_expert, p.activation),
            loops=("derivations.chen.loops:speed", "derivations.chen.reduced_loops:explore_flow"),
            roles={"flow": "explore_flow"},
            arrays=reduced_arrays.build_explore,
        ),
        state=(STATE[0],),
        layout=Layout((Dense("feat", shape),)),
        arguments=lambda initial: (*shape, float(p.power), *rule(p.alpha, p.laws, 2 * STRENGTHS)),
        crossings=_standstill(p),
        observables=Observables(
            constants=constants,
            invariants=_race_invariant if p.activation == "cubic" else lambda initial, state: {},
            summary=summarise,
        ),
    )


def _standstill(p: Parameters) -> tuple[Crossing, ...]:
    """The end of the race of an expert all of whose alignments are negative: they come to 0 together.

    For psi ~ |x|^(q - 1), q > 2, x^(2 - q) keeps its distances within an expert, so that all of them are 0 at one time;
    the direction psi/|psi| of what follows is made of the order of their rounding errors.  With a positive alignment
    no negative one ever reaches 0.
    """
    if p.activation != "cubic" and not (p.activation == "power" and p.power > 2.0):
        return ()
    reason = (
        "all alignments of an expert, negative until now, come to zero together: the direction of its race is not "
        "determined from here on"
    )
    meaning = "first time an alignment comes to zero from below, where the race ends"
    return (Crossing("T_zero", "feat", 0.0, terminal=True, reason=reason, meaning=meaning),)


def _expert(activation: str) -> Mapping[str, Kernel]:
    from derivations.chen.kernels import expert_kernels

    return expert_kernels(activation)


def _manifold() -> Mapping[str, Kernel]:
    from derivations.chen.kernels import manifold_kernels

    return manifold_kernels()


def _race_invariant(initial: Initial, state: Mapping[str, np.ndarray]) -> dict[str, float]:
    """The largest relative change of 1/feat - 1/feat' within an expert (all of them are conserved)."""
    feat = state["feat"].reshape(len(state["feat"]), state["feat"].shape[1], -1)
    if (feat == 0).any():
        return {}
    inverse = 1 / feat
    gaps = inverse - inverse[..., :1]
    return {"inverse_gaps": float(np.abs(gaps - gaps[0]).max() / max(np.abs(inverse[0]).max(), 1e-300))}


def closed_form(feat: np.ndarray, times: np.ndarray) -> np.ndarray:
    """The race of one cubic expert at given times (T, ...), by its invariants and one integral.

    With the largest entry x: feat_i = 1/(1/x + 1/feat_i(0) - 1/x(0)) and time = int sqrt(sum (feat_i(x)/x)^4) dx.
    Entries that start at zero stay there.
    """
    from scipy.integrate import quad
    from scipy.optimize import brentq

    start = np.asarray(feat, float)
    top = float(start.max())
    if top <= 0:
        raise ValueError("the closed form needs a positive entry to win the race")
    moving = start != 0
    gap = 1 / np.where(moving, start, 1.0) - 1 / top

    def entries(x: float) -> np.ndarray:
        return np.where(moving, 1 / (1 / x + gap), 0.0)

    def clock(x: float) -> float:
        def excess(u: float) -> float:  # in u = log z; the integrand minus one, which decays
            z = np.exp(u)
            return float(z * (np.sqrt(((entries(z) / z) ** 4).sum()) - 1))

        return x - top + quad(excess, np.log(top), np.log(x), epsabs=1e-11 * top, epsrel=1e-10, limit=200)[0]

    found = []
    for time in np.atleast_1d(times):
        high = top + time
        root = top if time == 0 else float(brentq(lambda x, t=time: clock(x) - t, top, high, xtol=1e-15, rtol=1e-14))  # type: ignore[arg-type]
        found.append(entries(root))
    return np.array(found)


def _law_of_centres(p: Parameters, smooth: bool) -> tuple[Any, ...]:
    """(nodes, weights, low, high, rule on [0, 1]) of beta; low = high where there is nothing to cut."""
    x, w = rule(p.beta, p.laws, 2 * CENTRES)
    cut = p.laws == "uniform" and len(p.beta) == 2 and p.beta[0] < p.beta[1] and not smooth
    low, high = (p.beta[0], p.beta[1]) if cut else (0.0, 0.0)
    return (x, w, float(low), float(high), *legendre(CENTRES))


def spec(parameters: Parameters, tier: str) -> Equations:
    """The specialised manifold, without or with the noise patches' effect on the router."""
    p = parameters
    noisy = tier == "specnoise"

    def arguments(initial: Initial) -> Manifold:
        laws = (*rule(p.alpha, p.laws, STRENGTHS), *rule(p.gamma, p.laws, STRENGTHS))
        zeta = zetas(p) if noisy else np.zeros((1, p.K))
        kstar = np.asarray(initial.constants["kstar"], float)
        routing = legendre_rows(p.M // 2 + 1)
        sizes = p.M, p.K, float(p.rho), float(p.layer), kstar
        return Manifold._make((*sizes, *laws, *_law_of_centres(p, noisy), *routing, zeta))

    missing = f"the noise patches' effect on the experts; {ZETAS} samples of them" if noisy else "noise patches"
    return Equations(
        about=Tier(
            name=tier,
            validity=(
                ("cubic experts" if noisy else "exact for P = 3 and cubic experts")
                + " on the specialised manifold (feat = s_m at its own filter and feature, cen = gfeat = 0)"
            ),
            neglects=f"the losers of the race, cen and gfeat; {missing}",
        ),
        advance=Smooth(between="interpolant" if noisy else "step", kinks=noisy),
        code=Code(
            structure="chen_spec",
            kernels=_manifold,
            loops=(*ROUTE, *MANIFOLD, "derivations.chen.reduced_loops:spec_flow"),
            roles={"flow": "spec_flow"},
            arrays=reduced_arrays.build_spec,
            takes=Manifold,
        ),
        state=(STRENGTH, STATE[2]),
        layout=Layout((Dense("strength", (p.M,)), Dense("gcen", (p.M, p.K)))),
        arguments=arguments,
        begin=lambda initial: {**initial.state, "strength": _strength(initial)},
        observables=Observables(
            observe=observe,
            constants=constants,
            invariants=lambda initial, state: {
                "router_sum": float(np.abs(state["gcen"].sum(axis=1) - state["gcen"][0].sum(axis=0)).max())
            },
            summary=summarise,
        ),
    )


def zetas(p: Parameters) -> np.ndarray:
    """Antithetic samples (Z, K) of zeta_k = sum over noise patches of xi.c_k ~ N(0, (P - 3) sigma_p^2/d)."""
    from scipy.stats import norm, qmc

    points = qmc.Sobol(p.K, scramble=True, rng=np.random.default_rng(0)).random(ZETAS // 2)
    half = norm.ppf(points) * np.sqrt((p.P - 3) / p.d) * p.sigma_p
    return np.concatenate([half, -half])


def _strength(initial: Initial) -> np.ndarray:
    """s_m (M,): the alignment of filter j*_m of expert m with feature k*_m."""
    k, j = initial.constants["kstar"], initial.constants["jstar"]
    return initial.state["feat"][np.arange(len(k)), j, k].copy()


def group2(parameters: Parameters) -> Equations:
    """The two-variable reduction for K groups of M/K experts of equal strength."""
    p = parameters

    def arguments(initial: Initial) -> Groups:
        laws = (*rule(p.alpha, p.laws, STRENGTHS), *rule(p.gamma, p.laws, STRENGTHS))
        routing = legendre_rows(p.M // 2 + 1)
        sizes = p.M, p.K, float(p.rho), float(p.layer)
        return Groups._make((*sizes, *laws, *_law_of_centres(p, False), *routing))

    return Equations(
        about=Tier(
            name="group2",
            validity="exact for P = 3 and cubic experts on the specialised manifold with K equal groups",
            neglects="differences between the experts of a group, the losers of the race, cen, gfeat and noise patches",
        ),
        advance=Smooth(),
        code=Code(
            structure="chen_group2",
            kernels=_manifold,
            loops=(*ROUTE, *MANIFOLD, "derivations.chen.reduced_loops:group2_flow"),
            roles={"flow": "group2_flow"},
            arrays=reduced_arrays.build_group2,
            takes=Groups,
        ),
        state=(
            Component("s", (), ANY, "s", "alignment of every specialist with its feature"),
            Component("D", (), ANY, "D", "router contrast, gcen of the own group minus that of the others"),
        ),
        layout=Layout((Dense("s", ()), Dense("D", ()))),
        arguments=arguments,
        begin=lambda initial: {"s": _strength(initial).mean(), "D": contrast(initial)},
        crossings=(
            Crossing("T_half", "D", 0.5, meaning="first time the contrast reaches 1/2"),
            Crossing("T_one", "D", 1.0, meaning="first time the contrast reaches 1"),
        ),
        observables=Observables(
            observe=observe,
            constants=constants,
            summary=lambda initial, run: {
                "s": float(run["s"][-1]),
                "D": float(run["D"][-1]),
                "routed_in": float(run["routed_in"][-1]),
            },
        ),
    )


def contrast(initial: Initial) -> float:
    """D: the mean over clusters of gcen inside the group k*_m = k minus the mean outside it (0 without either)."""
    gcen, kstar = initial.state["gcen"], initial.constants["kstar"]
    found = []
    for k in range(gcen.shape[1]):
        inside = kstar == k
        if inside.any() and not inside.all():
            found.append(gcen[inside, k].mean() - gcen[~inside, k].mean())
    return float(np.mean(found)) if found else 0.0


def observe(initial: Initial, state: Mapping[str, np.ndarray]) -> Labelled:
    """Load, dispatch entropy and the share routed to the own group, under the routing noise; and feat and gcen."""
    p = initial.parameters
    found: dict[str, Any] = {}
    kstar = np.arange(p.M) % p.K if "D" in state else np.asarray(initial.constants["kstar"])
    member = kstar[:, None] == np.arange(p.K)
    if "D" in state:
        gcen = state["D"][:, None, None] * (member - member.mean(axis=0))
        strength = np.repeat(state["s"][:, None], p.M, axis=1)
        found["gcen"] = (("time", "expert", "feature"), gcen, "alignment of a router with a cluster centre")
    else:
        gcen, strength = state["gcen"], state["strength"]
    feat = np.zeros((len(gcen), p.M, p.J, p.K))
    feat[:, np.arange(p.M), initial.constants["jstar"] if "D" not in state else 0, kstar] = strength
    x, w = rule(p.beta, p.laws, 2 * CENTRES)
    chances = route.probabilities(np.moveaxis(gcen, 1, 2)[:, :, None, :] * x[:, None])
    counts = np.einsum("b,tkbm->tkm", w, chances) / p.K
    inside = (counts * member.T).sum(axis=(1, 2))
    entropy = np.array([route.entropy(each) for each in counts])
    found["feat"] = (("time", "expert", "filter", "feature"), feat, "alignment of a filter with a feature signal")
    found["load"] = (("time", "expert"), counts.sum(axis=1), "share of examples sent to expert m under routing noise")
    found["entropy_noisy"] = (("time",), entropy, "dispatch entropy under routing noise")
    found["routed_in"] = (("time",), inside, "share of examples routed to their own group under routing noise")
    return found

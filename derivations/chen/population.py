"""The population flow of system `chen` for three patches, closed on the overlaps with the 2 K signals.

The derivation, step by step:

1. With P = 3 every patch is a signal, so gradients lie in the span of the features v_k and centres c_k, and the
   overlaps feat, cen (M, J, K), gcen, gfeat (M, K) are a closed state; what is orthogonal to the signals is frozen.
2. For an example (k, k', y, eps, alpha, beta, gamma) the filters' fields are y alpha feat_k, beta cen_k and
   eps gamma feat_k', the logits y alpha gfeat_k + beta gcen_k + eps gamma gfeat_k'  (Definition 3.1, equation (3.1)).
3. The mean over the routing noise replaces 1(m_i = m) by p_m(h) (`route`), the multiplier l' staying that of the
   chosen expert (Lemma E.2, corrected): G_m = p_m q(y pi_m f_m) pi_m y.
4. The mean over examples is a sum over pairs, signs and Gauss-Legendre nodes of the three laws.
5. Experts move with their gradient divided by its Frobenius norm, routers rho times theirs (equation (3.4)).

Normalised descent is discontinuous where an expert's mean gradient vanishes, and there the flow can slide.  Within
the layer |E g| < layer E|g| the speed falls linearly to zero, which gives the sliding solution up to O(layer), and
outside it the right-hand side is exact; an expert without examples has no gradient and rests.
"""

import functools
from collections.abc import Mapping

import numpy as np

from derivations.chen import arrays
from derivations.chen.loops import Arguments
from derivations.chen.nodes import legendre_rows, rules
from derivations.chen.parameters import Parameters
from derivations.chen.summary import constants, summarise
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
)

EXPERT = ("expert", "filter", "feature")
ROUTER = ("expert", "feature")
ANY = (-np.inf, np.inf)
STATE = (
    Component("feat", EXPERT, ANY, "<w_mj, v_k>", "alignment of a filter with a feature signal"),
    Component("cen", EXPERT, ANY, "<w_mj, c_k>", "alignment of a filter with a cluster centre"),
    Component("gcen", ROUTER, ANY, "<theta_m, c_k>", "alignment of a router with a cluster centre"),
    Component("gfeat", ROUTER, ANY, "<theta_m, v_k>", "alignment of a router with a feature signal"),
)
WATCHED = (
    Component("load", ("expert",), (0.0, 1.0), "Load_m / n", "share of examples sent to expert m under routing noise"),
    Component("entropy", (), (0.0, np.inf), "entropy", "dispatch entropy without routing noise"),
    Component("accuracy", (), (0.0, 1.0), "", "accuracy without routing noise"),
    Component("entropy_noisy", (), (0.0, np.inf), "", "dispatch entropy under routing noise"),
    Component("accuracy_noisy", (), (0.0, 1.0), "", "accuracy under routing noise"),
    Component(
        "dispatch", ("feature", "expert"), (0.0, 1.0), "n_km / n", "joint share of cluster k and expert m, with noise"
    ),
)
KINKS = {
    name: f"; {name} has kinks, which steps do not stop at: a small alignment was off by 70 of its tolerances at a "
    "relative tolerance of 1e-10 and 2 nodes (160 with --solver DOP853), by 15 at 1e-8"
    for name in ("relu", "celu")
}
FINE = 12
"""Nodes of each law for accuracy and entropy without noise: indicators converge slowly, and cost little here."""
LOOPS = tuple(
    f"derivations.chen.loops:{name}"
    for name in (
        "by_logit",
        "winning",
        "places",
        "tabulate",
        "signed_nodes",
        "speed",
        "collect",
        "squared_size",
        "normalise",
        "example_terms",
        "resting",
        "sum_types",
        "p3_drift",
    )
) + tuple(f"derivations.chen.watch_loops:{name}" for name in ("dispatch_entropy", "sweep_types", "p3_watch"))


def exact(parameters: Parameters) -> Equations:
    """The exact population flow for P = 3.  Source: Chen et al. 2022, Algorithm 1 and Lemma E.2."""
    neglects = (
        "nothing"
        if parameters.P == 3
        else f"the {parameters.P - 3} noise patches (it is exact for P = 3; tier full has them)"
    )
    return Equations(
        about=Tier(
            name="p3",
            validity=(
                "exact for P = 3 and any activation in the limit of many examples and a small step, where no "
                f"expert's gradient is incoherent (|E g| < {parameters.layer:g} E|g|); laws by {parameters.nodes} "
                f"nodes each{KINKS.get(parameters.activation, '')}"
            ),
            neglects=neglects,
        ),
        advance=Smooth(between="interpolant", kinks=True),
        code=Code(
            structure=f"chen_p3_{parameters.activation}",
            kernels=functools.partial(kernels, parameters.activation),
            loops=LOOPS,
            roles={"flow_priced": "p3_drift", "watch": "p3_watch"},
            arrays=arrays.build_p3,
            takes=Arguments,
        ),
        state=STATE,
        layout=flat(parameters),
        arguments=arguments,
        crossings=(Crossing("T_feat", "feat", 1.0, meaning="first time a filter's alignment reaches 1"),),
        watched=WATCHED,
        observables=Observables(constants=constants, invariants=invariants, summary=summarise),
    )


def kernels(activation: str) -> Mapping[str, Kernel]:
    """The kernels, derived when they are needed: a compilation found in the cache needs none."""
    from derivations.chen.kernels import expert_kernels

    return expert_kernels(activation)


def arguments(initial: Initial) -> Arguments:
    """The run-time arguments: sizes, rates, nodes of the laws, of the routing, and the finer ones of `watch`."""
    p = initial.parameters
    laws = [array for pair in rules(p) for array in pair]
    fine = [array for pair in rules(p, max(FINE, p.nodes)) for array in pair]
    rates = float(p.rho), float(p.layer), float(p.power)
    return Arguments._make((p.M, p.J, p.K, *rates, *laws, *legendre_rows(p.M // 2 + 1), *fine))


def flat(p: Parameters) -> Layout:
    """The flat state: feat, cen, gcen, gfeat."""
    filters, routers = (p.M, p.J, p.K), (p.M, p.K)
    return Layout((Dense("feat", filters), Dense("cen", filters), Dense("gcen", routers), Dense("gfeat", routers)))


def invariants(initial: Initial, state: Mapping[str, np.ndarray]) -> dict[str, float]:
    """What the flow conserves or bounds, as measured on the saved states.

    `router_sum` is the largest change of sum_m theta_m in the span of the signals, conserved by the softmax
    (Lemma E.1); `loss_increase` the largest rise of the loss between two saved times.
    """
    drift = max(float(np.abs(state[n].sum(axis=1) - state[n][0].sum(axis=0)).max()) for n in ("gcen", "gfeat"))
    rise = float(np.diff(state["loss"]).max(initial=0.0)) if "loss" in state else 0.0
    return {"router_sum": drift, "loss_increase": rise}

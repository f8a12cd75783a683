"""The paper's figures, and our own findings about dead pairs, the spurious minimum and SGD."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations import scaling
from derivations.broken import break_law, break_measure, once
from derivations.claim import Claim, Grid, Variant
from derivations.laws import All, Bounded, Equals, Power, Probability
from derivations.liao import reduced
from derivations.liao.claims import tools
from derivations.liao.claims.pruning import at_overlap, coefficients
from derivations.liao.claims.tools import at
from derivations.liao.kernels import correlation_pairs

PAPER = {"m": 25, "m_star": 5, "d": 1000}
BOTH = (
    Variant("random", {"init": "random"}, expected="refuted"),
    Variant("orthogonal", {"init": "orthogonal"}, expected="refuted"),
)


def paper_run(lab: Any, point: Mapping[str, Any], seed: int) -> Any:
    """The paper's experiment as the exact flow: m = 25, m* = 5, d = 1000, until 90."""
    return lab.integrate(seed=seed, until=90.0, save_points=181, rtol=1e-6, init=point["init"], **PAPER)


def one_each(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """1 if at the end every teacher column has exactly one student with router and expert above 0.9."""
    run = paper_run(lab, point, seed)
    bright = (run["gamma1"][-1] > 0.9) & (run["gamma2"][-1] > 0.9)
    return float((bright.sum(axis=0) == 1).all())


def expert_first(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """The fraction of recovered pairs whose expert passed 0.9 before its router."""
    run = paper_run(lab, point, seed)
    both = np.isfinite(run["T_gamma1"]) & np.isfinite(run["T_gamma2"])
    return float((run["T_gamma2"][both] < run["T_gamma1"][both]).mean()) if both.any() else 0.0


def largest_s13(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """The largest S_13(rho) = E pi'(z1) pi'''(z2) on a grid of [-1, 1]."""
    k = correlation_pairs(3).index((1, 3))
    return max(float(at_overlap(rho)[k]) for rho in np.linspace(-1, 1, 201))


def squares(lab: Any, point: Mapping[str, Any], seed: int) -> dict[str, float]:
    """E pi^2, E pi'^2 from 10^6 samples each, in standard errors from the exact values."""
    rng = np.random.default_rng([seed, lab.seed])
    z = rng.standard_normal(10**6)
    p = 1 / (1 + np.exp(-z))
    c = coefficients()
    exact = {"E pi^2": 0.5 - c[1], "E pi'^2": (c[1] - c[3]) / 6}
    scores = {}
    for name, values in (("E pi^2", p**2), ("E pi'^2", (p * (1 - p)) ** 2)):
        scores[name] = float((values.mean() - exact[name]) / (values.std() / 1e3))
    scores["ratio"] = float((p**2).mean() / ((p * (1 - p)) ** 2).mean())
    return scores


def dead_pair(point: Mapping[str, Any], generic: float = 0.0) -> Any:
    """m = 2, m* = 1: gamma2 = (1, 1/2)/sqrt(d), I2 = -3/sqrt(d), every other overlap zero, unit norms.

    `generic` times 1/sqrt(d) is the size of random numbers in the place of those zeros: with zeros the flow stays on
    a symmetric manifold, where it can end at a saddle point.
    """
    from derivations.liao import initial
    from derivations.liao.parameters import Parameters

    root = 1 / math.sqrt(point["d"])
    noise = np.tril(np.random.default_rng(4).normal(size=(6, 6)), -1) * generic * root
    noise[4:, 4:] = 0.0
    gram = np.eye(6) + noise + noise.T
    for i, j, value in ((2, 5, 1.0), (3, 5, 0.5), (2, 3, -3.0)):
        gram[i, j] = gram[j, i] = value * root
    return initial.from_gram(Parameters(m=2, m_star=1, d=point["d"]), gram, np.ones(2), np.ones(2))


def dead_run(lab: Any, point: Mapping[str, Any], horizon: float, generic: float = 0.0) -> Any:
    """The flow of a dead pair until horizon * d."""
    until = horizon * point["d"]
    return lab.integrate(
        start=dead_pair(point, generic), m=2, m_star=1, d=point["d"], until=until, save_points=3, rtol=1e-9, stiff=True
    )


def dead_recovery(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """When a dead pair has recovered the teacher, expert above 0.9."""
    return float(dead_run(lab, point, 1.2)["T_gamma2"].min())


def spurious_minimum(lab: Any, point: Mapping[str, Any], seed: int) -> dict[str, float]:
    """The loss where the dead pair's run ends, and the largest growth rate of the linearised flow there."""
    run = dead_run(lab, point, 3.0, generic=0.01)
    final = {name: run[name][-1] for name in ("gamma1", "gamma2", "zeta1", "zeta2", "I1", "I2", "I3")}
    start = dead_pair(point)
    from derivations.liao import population

    rates = np.linalg.eigvals(reduced.jacobian(start, population.pack(final, 2))).real
    return {"loss": float(run["loss"][-1]), "growth": float(rates.max())}


def sgd_error(lab: Any, point: Mapping[str, Any], seed: int, shift: int = 0) -> float:
    """max |G_sgd - G_flow| over overlaps and time, m = 3, m* = 1, d = 20, t <= 1.5, step size 0.01."""
    names = {"m": 3, "m_star": 1, "d": 20, "until": 1.5, "save_points": 16}
    flow = lab.integrate(seed=seed + shift, **names)
    sgd = lab.simulate(method="compressed", step_size=0.01, batch=point["B"], seed=seed, **names)
    components = ("gamma1", "gamma2", "zeta1", "zeta2", "I1", "I2", "I3")
    return max(float(np.abs(sgd[name][0] - flow[name]).max()) for name in components)


CLAIMS = (
    Claim(
        id="fig-1",
        statement="In the paper's experiment (m = 25, m* = 5, d = 1000) exactly one student ends up at each teacher.",
        source=at("Figure 1"),
        measure=one_each,
        law=Probability(low=0.65, meaning="exactly one student at every teacher at t = 90"),
        sweep={"quick": Grid(({},), 24), "full": Grid(({},), 60)},
        control=break_law(low=0.0, high=-1.0),
        rungs=(3, 4, 8, 9),
        variants=BOTH,
        control_variant="orthogonal",
        slow_control=True,
        erratum="errata-1",
    ),
    Claim(
        id="fig-2",
        statement="In every recovered pair the expert is recovered before its router.",
        source=at("Figure 2"),
        measure=expert_first,
        law=Equals(1.0, absolute=0.02, meaning="fraction of pairs whose expert comes first"),
        sweep={"quick": Grid(({},), 4), "full": Grid(({},), 40)},
        control=break_measure(lambda lab, point, seed: 1 - expert_first(lab, point, seed)),
        rungs=(3, 4, 9),
        variants=tuple(Variant(init, {"init": init}) for init in tools.INITS),
        control_variant="orthogonal",
        slow_control=True,
    ),
    Claim(
        id="fig-3a",
        statement="E pi'(z1) pi'''(z2) is negative at every covariance in [-1, 1], between -0.015307 and -0.012892.",
        source=at("Figure 3, left"),
        measure=largest_s13,
        law=Equals(-0.0128924216747272, absolute=1e-12, meaning="largest S_13"),
        sweep=once({}),
        control=break_measure(lambda lab, point, seed: -largest_s13(lab, point, seed)),
        rungs=(2, 9),
    ),
    Claim(
        id="fig-3b",
        statement="E pi^2 = 0.29338 and E pi'^2 = 0.04484, ratio 6.543: 2 E pi^2 >= 1.1 (6 E pi'^2) holds.",
        source=at("Figure 3, right"),
        measure=squares,
        law=All(
            {
                "E pi^2": Bounded(-4, 4, meaning="z-score"),
                "E pi'^2": Bounded(-4, 4, meaning="z-score"),
                "ratio": Bounded(low=3.3, meaning="E pi^2 / E pi'^2"),
            }
        ),
        sweep=once({}, seeds=3),
        control=break_measure(lambda lab, point, seed: {**squares(lab, point, seed), "ratio": 1.1}),
        rungs=(2, 9),
    ),
    Claim(
        id="own-3",
        statement="A dead pair recovers its teacher only after a time of order d, not sqrt(d).",
        source=at("Theorem 1, corrected"),
        measure=dead_recovery,
        law=Power(
            1.0, margin=0.1, rivals=(scaling.Form("sqrt(d)", exponent=0.5),), meaning="recovery time of a dead pair"
        ),
        sweep={
            "quick": Grid(tuple({"d": d} for d in (300, 1000, 3000))),
            "full": Grid(tuple({"d": d} for d in (300, 1000, 3000, 10_000, 30_000))),
        },
        control=break_law(exponent=0.5, rivals=()),
        slow_control=True,
        rungs=(3, 4, 8, 9),
        erratum="errata-1",
    ),
    Claim(
        id="own-4",
        statement="m = 2, m* = 1 has a spurious local minimum with loss 0.4677705, at which dead pairs end.",
        source=at("Theorem 1, corrected"),
        measure=spurious_minimum,
        law=All(
            {
                "loss": Equals(0.4677705, absolute=2e-6, meaning="loss at the end"),
                "growth": Bounded(high=1e-6, meaning="largest growth rate there"),
            }
        ),
        sweep=once({"d": 1000}),
        control=break_measure(lambda lab, point, seed: {"loss": 0.0, "growth": 0.0}),
        rungs=(3, 4, 5, 9),
        slow_control=True,
        erratum="errata-1",
    ),
    Claim(
        id="own-6",
        statement="SGD approaches the flow: max |G_sgd - G_flow| falls like sqrt(step size / B).",
        source=at("Section 6 (simulation of gradient flow)"),
        measure=sgd_error,
        law=Power(-0.5, over="B", margin=0.1, meaning="max |G_sgd - G_flow|"),
        sweep={
            "quick": Grid(tuple({"B": 500 * 4**k} for k in range(4)), 12),
            "full": Grid(tuple({"B": 500 * 4**k} for k in range(5)), 20),
        },
        control=break_measure(lambda lab, point, seed: sgd_error(lab, point, seed, shift=1)),
        rungs=(6, 7, 8, 9),
        slow_control=True,
    ),
)

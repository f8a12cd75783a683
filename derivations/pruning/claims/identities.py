"""Claims on exact identities: invariants of SGD, potential, decoupling, rates of norms, equal token distributions."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.broken import break_measure, break_setting, grid
from derivations.claim import Variant
from derivations.laws import Agrees, All, Bounded, Vanishes
from derivations.laws.agreement import Score, score
from derivations.pruning import initial
from derivations.pruning.claims.tools import claim, once_run, random_expert, slopes
from derivations.pruning.parameters import Parameters


def trained(lab: Any, point: Mapping[str, Any], seed: int) -> Any:
    """Run SGD on independent tokens for a short time."""
    return lab.simulate(
        method="compressed", step_size=0.05, batch=8, until=200, seed=seed, save_points=2, d=24, n=12, k=4, l=3, m=6,
        data="iid", init="random", router_std=0.5, neuron_std=0.3, eta_r=0.05, n_test=2, loss=point["loss"],
    )  # fmt: skip


def shift(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the largest change of sum_p h_p of a router along SGD.

    `gain` multiplies the contribution of a task pattern (control).
    """
    h = trained(lab, point, seed)["h"][0]
    moved = h[-1] - h[0]
    moved[..., 0] *= point.get("gain", 1.0)
    return float(np.abs(moved.sum(-1)).max())


def inactive(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the largest change of an alignment that starts below zero, or below `level` (control)."""
    u = trained(lab, point, seed)["u"][0]
    off = u[0] < point.get("level", 0.0)
    return float(np.abs(np.where(off, u[-1] - u[0], 0.0)).max())


def balance(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return |sum over patterns of the displacement of an always active neuron| over eta_e t, in the population.

    `gain` multiplies the displacement on a task pattern (control).
    """
    rng = np.random.default_rng([seed, 21])
    start = random_expert(rng, 20, l=4, eta_r=0.05, eta_e=0.01)
    h, u = start.state["h"], start.state["u"].copy()
    u[0, 0] = 30.0  # far above zero on every pattern
    start = initial.from_alignments(start.parameters, h, u, np.array([1.0]), pi=start.constants["pi"])
    run = once_run(lab, start, 300.0, "recursion")
    moved = run["u"][-1, 0, 0] - run["u"][0, 0, 0]
    moved[0] *= point.get("gain", 1.0)
    return float(np.abs(moved.sum()) / (0.01 * 300))


def potential(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the largest difference between the slopes and central differences of 1 - loss.

    It is computed for one distribution of the tokens.
    """
    rng = np.random.default_rng([seed, 22])
    data = point["data"]
    p = Parameters(
        d=9, n=6, k=1, m=1, l=3, data=data, copies=2 if data == "multi_copy" else 1, eta_r=1.0, eta_e=1.0, n_test=2
    )  # fmt: skip
    h, sigma = rng.standard_normal(9), 0.2 + rng.random(9)

    def value(h: np.ndarray, sigma: np.ndarray) -> float:
        return 1 - slopes(lab, initial.from_alignments(p, h[None], sigma[None, None], np.array([1.0])))[2]

    dh, du, _ = slopes(lab, initial.from_alignments(p, h[None], sigma[None, None], np.array([1.0])))
    if point.get("swap"):
        dh = dh[:, ::-1]
    step, worst = 1e-5, 0.0
    for i in range(9):
        move = step * (np.arange(9) == i)
        along = [
            (value(h + move, sigma) - value(h - move, sigma)) / (2 * step) - dh[0, i],
            (value(h, sigma + move) - value(h, sigma - move)) / (2 * step) - du[0, 0, i],
        ]
        worst = max(worst, *(abs(float(x)) for x in along))
    return worst


def decoupled(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the largest change of the run of the first expert if the other experts are left out."""
    rng = np.random.default_rng([seed, 23])
    p = Parameters(d=16, k=5, m=4, l=4, eta_r=0.05, eta_e=0.02, loss=point["loss"], n_test=2)
    h, u = 0.6 * rng.standard_normal((5, 16)), 0.4 * rng.standard_normal((5, 4, 16))
    a = np.array([1.0, -1, 1, -1, 1])
    from dataclasses import replace

    together = once_run(lab, initial.from_alignments(p, h, u, a), 400.0, "recursion", loss=point["loss"])
    alone = once_run(
        lab, initial.from_alignments(replace(p, k=1), h[:1], u[:1], a[:1]), 400.0, "recursion", loss=point["loss"]
    )  # fmt: skip
    return float(np.abs(together["h"][-1, 0] - alone["h"][-1, 0]).max())


def rates(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the relative deviation of the rate of a norm from its formula.

    The formula is a covariance of logits and activations for the router, and E[y f] for the neurons.
    """
    rng = np.random.default_rng([seed, 24])
    start = random_expert(rng, 14, l=4, eta_r=0.3, eta_e=0.7)
    h, u, pi, p = start.state["h"], start.state["u"], start.constants["pi"], start.parameters
    dh, du, _ = slopes(lab, start)
    sigma, pushed, answered = np.maximum(u[0], 0).sum(axis=0), 0.0, 0.0
    for task, y in ((0, 1.0), (1, -1.0)):
        for q in range(12):
            seen = h[0, task] >= h[0, q + 2]
            own = task if seen else q + 2
            logits = np.array([h[0, own], *([h[0, q + 2]] * (p.l - 1))])
            values = np.array([sigma[own], *([sigma[q + 2]] * (p.l - 1))])
            gate = np.exp(logits) / np.exp(logits).sum()
            means = (gate * logits).sum() * (gate * values).sum() * point.get("means", 1.0)
            pushed += 0.5 * pi[q] * y * ((gate * logits * values).sum() - means)
            answered += 0.5 * pi[q] * (y if point.get("signed", True) else 1.0) * (gate * values).sum()
    found, law = {
        "router": (2 * (h * dh).sum(), 2 * p.router_rate * pushed),
        "neurons": (2 * (u * du).sum(), 2 * p.eta_e * answered),
    }[point["of"]]
    return float(found / law - 1)


def ascent(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the smallest increase of E[y f_s] between saved times, over its largest size.

    Intervals in which the order of the logits changes are left out.
    """
    rng = np.random.default_rng([seed, 25])
    drawn = random_expert(rng, 10, l=3, eta_r=0.01, eta_e=0.01)
    p, pi, head = drawn.parameters, drawn.constants["pi"], np.array([point["head"]])
    start = initial.from_alignments(p, drawn.state["h"], drawn.state["u"], head, pi=pi)
    run = lab.integrate(start=start, tier="flow", until=300, save_points=301)
    h = run["h"][:, 0]
    order = (h[:, :2, None] >= h[:, None, 2:]).reshape(len(h), -1)
    same = (order[1:] == order[:-1]).all(axis=1)
    judged = head if point.get("signed", True) else np.abs(head)
    values = np.array([
        1 - slopes(lab, initial.from_alignments(p, h[i][None], run["u"][i], judged, pi=pi))[2] for i in range(301)
    ])  # fmt: skip
    return float(np.diff(values)[same].min() / np.abs(values).max())


def best_of(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the largest difference between the slopes for c repeated patterns and for one pattern.

    The one pattern has the distribution of the best of c.
    """
    rng = np.random.default_rng([seed, 26])
    c, N = int(point["c"]), 20
    shared: dict[str, Any] = {"d": N + 2, "n": 40, "k": 1, "m": 1, "l": 5, "eta_r": 1.0, "eta_e": 1.0, "n_test": 2}
    h, sigma = rng.standard_normal((1, N + 2)), rng.random((1, 1, N + 2))
    rank = np.empty(N)
    rank[np.argsort(-h[0, 2:])] = np.arange(1, N + 1)
    power = c + point.get("off", 0)
    law = (1 - (rank - 1) / N) ** power - (1 - rank / N) ** power
    one = initial.from_alignments(Parameters(**shared), h, sigma, np.array([1.0]), pi=law)
    many = initial.from_alignments(Parameters(**shared, data="multi_copy", copies=c), h, sigma, np.array([1.0]))
    a, b = slopes(lab, one), slopes(lab, many)
    return float(max(np.abs(a[0] - b[0]).max(), np.abs(a[1] - b[1]).max()))


def closure(lab: Any, point: Mapping[str, Any], seed: int) -> dict[str, Score]:
    """Compare the mean gradient of the model with the population slope, for the neurons and for the router."""
    rng = np.random.default_rng([seed, 27])
    data = point["data"]
    start = random_expert(rng, 12, data=data, n=7, l=3, eta_r=1.0, eta_e=1.0, n_test=2)
    if data == "distinct":
        start = initial.from_alignments(start.parameters, start.state["h"], start.state["u"], start.constants["a"])
    dh, du, _ = slopes(lab, start)
    means = lab.descent(start, 5000, 200, seed)[:, 0]
    error, mean = means.std(axis=0, ddof=1) / np.sqrt(len(means)), means.mean(axis=0)
    router = point.get("factor", 1.0) * dh
    # Some random experts hardly move: their gradients are measured relative to those of a usual one.
    sizes = (max(float(np.abs(du).max()), 0.02), max(float(np.abs(dh).max()), 0.005))
    return {
        "neurons": score(mean[:-1], error[:-1], du[0], len(means) - 1, sizes[0]),
        "router": score(mean[-1:], error[-1:], router, len(means) - 1, sizes[1]),
    }


BOTH = (Variant("linear", {"loss": "linear"}), Variant("hinge", {"loss": "hinge"}))
LAWS = tuple({"data": data} for data in ("single", "multi_copy", "iid", "distinct"))


def changed(measure: Any, **more: Any) -> Any:
    """Return a control that measures with other settings."""
    return break_measure(lambda lab, point, seed: measure(lab, {**point, **more}, seed))


CLAIMS = (
    claim(
        "inv-shift",
        "sum_p <w_s, p> is constant along SGD, because a common shift does not change the softmax.",
        "equations (14) to (16) (our identity)",
        shift,
        Vanishes(1e-10, meaning="change of the sum"),
        grid(seeds=5),
        break_setting(gain=1.01),
        rungs=(5, 9),
        variants=BOTH,
        control_variant="linear",
    ),
    claim(
        "inv-inactive",
        "An alignment below zero at the start never changes.",
        "equations (17) to (19) (our identity)",
        inactive,
        Vanishes(0.0, 0.0, "change"),
        grid(seeds=5),
        break_setting(level=0.1),
        rungs=(5, 9),
        variants=BOTH,
        control_variant="linear",
    ),
    claim(
        "inv-mass",
        "For balanced classes the displacements of an active neuron sum to zero over patterns.",
        "equations (17) to (19) (our identity)",
        balance,
        Vanishes(1e-12, meaning="sum of displacements"),
        grid(seeds=5),
        break_setting(gain=1.01),
        rungs=(5, 9),
    ),
    claim(
        "potential",
        "The population slope is the gradient of one potential E[y sbar], for every distribution of the tokens.",
        "equations (14) to (19) (our identity)",
        potential,
        Vanishes(1e-7, meaning="difference"),
        grid(*LAWS, seeds=3),
        changed(potential, swap=True),
        rungs=(1, 2, 9),
    ),
    claim(
        "closure",
        "The mean gradient of SGD is the population slope, which depends only on alignments with the patterns.",
        "equations (14) to (19) (our derivation)",
        closure,
        All(dict.fromkeys(("neurons", "router"), Agrees(0.2, "gradient", "below a factor of two or a wrong sign"))),
        grid({"data": "single"}, {"data": "iid"}, {"data": "distinct"}, seeds=5),
        changed(closure, factor=0.7),
        rungs=(2, 6, 9),
    ),
    claim(
        "decouple",
        "The trajectory of an expert does not depend on the other experts.",
        "section 4.1 (our identity)",
        decoupled,
        Vanishes(1e-12, meaning="difference"),
        grid(seeds=5),
        changed(decoupled, loss="hinge"),
        rungs=(5, 9),
        variants=(
            Variant("linear", {"loss": "linear"}),
            Variant(
                "hinge",
                {"loss": "hinge"},
                "With the hinge loss the trajectory of an expert does not depend on the other experts.",
                expected="refuted",
            ),
        ),
        control_variant="linear",
    ),
    claim(
        "norm-rate",
        "d|w_s|^2/dt = 2 eta_r a E[y Cov_G(logits, activations)].",
        "equations (14) to (16) (our identity)",
        rates,
        Vanishes(1e-10, meaning="relative difference"),
        grid({"of": "router"}, seeds=5),
        changed(rates, means=0.0),
        rungs=(1, 2, 9),
    ),
    claim(
        "neuron-rate",
        "d/dt sum_r |w_r|^2 = 2 eta_e E[y f_s].",
        "equations (17) to (19) (our identity)",
        rates,
        Vanishes(1e-10, meaning="relative difference"),
        grid({"of": "neurons"}, seeds=5),
        changed(rates, signed=False),
        rungs=(1, 2, 9),
    ),
    claim(
        "lyapunov",
        "Along the flow E[y f_s] of every expert grows between changes of the order of tokens.",
        "section 4.1 (our identity)",
        ascent,
        Bounded(low=0.0, visible=math.inf, because="a sign", meaning="least relative increase"),
        grid({"head": 1.0}, {"head": -1.0}, seeds=30),
        changed(ascent, signed=False),
        rungs=(5, 9),
    ),
    claim(
        "multi-copy-equiv",
        "c repeated patterns act like one pattern with the distribution of the best of c draws.",
        "section 4.1 (our identity)",
        best_of,
        Vanishes(1e-14, meaning="difference"),
        grid({"c": 2}, {"c": 3}, {"c": 7}, seeds=3),
        changed(best_of, off=1),
        rungs=(1, 9),
    ),
)

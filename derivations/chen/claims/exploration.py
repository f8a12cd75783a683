"""The exploration stage: uniform routing and a tensor-power race inside every expert (Lemmas E.3 to E.8, 5.2)."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.broken import break_law, break_measure, grid, over
from derivations.chen import initial, route
from derivations.chen.claims.races import SIZE, end_of_race, error_matrix, lead, rise_time
from derivations.chen.claims.tools import claim
from derivations.chen.parameters import Parameters
from derivations.chen.reduced import closed_form
from derivations.claim import Variant
from derivations.laws import All, Bounded, Equals, Power, Vanishes

TINY = (1e-6, 1e-5, 1e-4, 1e-3)
SMALL = (1e-9, 1e-8, 1e-7, 1e-6)
"""Small enough for near ties to be over at T_1."""
MINUTE = (1e-20, 1e-18, 1e-16, 1e-14)
"""Relative corrections of the rise time are of order sigma_0^0.1: below 4 % only from here on (closed form)."""


def size_at_end(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """One of the lemma's quantities at T_1: the largest overlap, output, |q - 1/2|, router, or |p - 1/M|."""
    end = end_of_race(lab, point, seed)
    output = float((8 * end["feat"] ** 3).sum(axis=1).max())  # the strongest signal, alpha = 2
    if point["of"] == "overlap":
        return float(end["feat"].max())
    if point["of"] == "output":
        return output
    if point["of"] == "margin":
        return math.tanh(output / SIZE["M"] / 2) / 2
    if point["of"] == "router":
        return float(np.sqrt((end["gcen"] ** 2 + end["gfeat"] ** 2).sum(axis=1)).max())
    logits = 2 * end["gcen"].T
    return float(np.abs(route.probabilities(logits) - 1 / SIZE["M"]).max())


def loser(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """The second largest overlap at T_1, median over experts; in training, its deviation from the closed form."""
    if point.get("training"):
        return loser_in_training(lab, point, seed)
    feat = end_of_race(lab, point, seed)["feat"].reshape(SIZE["M"], -1)
    return float(np.median(np.sort(feat, axis=1)[:, -2]))


def loser_in_training(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """The largest relative deviation of winner and runner-up from the closed form, experts with a gap above 0.15."""
    s, n = 0.01, point["n"]
    size = {"M": 16, "J": 4, "K": 2, "d": 4, "sigma_0": s, "rho": 16.0, "n_test": 2, "data_seed": seed}
    run = lab.simulate(method="compressed", step_size=s / 50, batch=n, until=5 * s, save_points=2, seed=seed, **size)
    found = []
    for m in range(16):
        start, end = run["feat"][0, 0, m], run["feat"][0, -1, m]
        order = np.argsort(start.ravel())[::-1]
        top = start.ravel()[order]
        if top[0] <= 0 or 1 - top[1] / top[0] < 0.15:
            continue
        exact = closed_form(start, np.array([5 * s]))[0].ravel()[order[:2]]
        found.append(np.abs(end.ravel()[order[:2]] / exact - 1).max())
    return float(np.median(found))


def race_drift(lab: Any, seed: int, power: float) -> float:
    """The largest relative drift of 1/x - 1/x_top over the overlaps above a tenth of the largest, along the race."""
    size = {**SIZE, "activation": "cubic" if power == 3 else "power", "power": power, "sigma_0": 0.01}
    run = lab.integrate(seed=seed, tier="explore", until=0.3, save_points=11, rtol=1e-11, **size)
    x = run["feat"].reshape(11, SIZE["M"], -1)
    top = x[0].argmax(axis=1)
    big = x[0] > 0.1 * x[0].max(axis=1, keepdims=True)
    big[np.arange(SIZE["M"]), top] = False
    inverse = 1 / x - (1 / x)[:, np.arange(SIZE["M"]), top][..., None]
    return float(np.abs((inverse - inverse[0])[:, big] / inverse[0][big]).max())


def invariant(lab: Any, point: Mapping[str, Any], seed: int, power: float = 3.0) -> float:
    """Along the race: the largest drift of 1/x - 1/x'; along training: the same, its rms over the entries."""
    if point.get("flow"):
        return race_drift(lab, seed, power)
    s, n = 0.01, int(point["n"])
    run = lab.simulate(
        method="compressed", step_size=s / 50, batch=n, until=2 * s, save_points=2, seed=seed, sigma_0=s, n_test=2,
        data_seed=seed, **SIZE,
    )  # fmt: skip
    x = run["feat"][0].reshape(2, SIZE["M"], -1)
    big = x[0] > 0.3 * x[0].max(axis=1, keepdims=True)
    top = x[0].argmax(axis=1)
    inverse = 1 / x - (1 / x)[:, np.arange(SIZE["M"]), top][..., None]
    return float(np.sqrt(((inverse[1] - inverse[0])[big] ** 2).mean())) * s


def collapse(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """The largest distance of x/sigma_0 against tau/sigma_0 from the race's curve, in units of its largest value."""
    s, times = point["sigma_0"], 20.0
    size = {**SIZE, "alpha": point["alpha"], "M": point["M"], "sigma_0": s, "nodes": 4}
    start = lab.initial(seed=seed, **size)
    run = lab.integrate(start=start, until=times * s, save_points=6, **size)
    worst = 0.0
    for m in range(point["M"]):
        if start.state["feat"][m].max() > 0:
            exact = closed_form(start.state["feat"][m], run.time)
            worst = max(worst, float(np.abs(run["feat"][:, m] - exact).max() / exact.max()))
    return worst


def concentration(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """How far the ratio of an expert's two largest overlaps grows: its logarithm at tau = 3 sigma_0, less its start."""
    if point.get("race"):
        return relu_is_linear(lab, point, seed)
    s = 0.01
    x = np.abs(np.random.default_rng(seed).standard_normal((1, 2, 2))) * s
    size = {"M": 1, "J": 2, "K": 2, "d": 4, "activation": point["activation"], "power": point.get("power", 3.0)}
    start = initial.from_overlaps(Parameters(**size), x, 0 * x, np.zeros((1, 2)), np.zeros((1, 2)))
    run = lab.integrate(start=start, tier="explore", until=3 * s, save_points=2, **size)
    first, last = (np.sort(run["feat"][t].ravel())[::-1] for t in (0, -1))
    return float(np.log(last[0] / last[1]) - np.log(first[0] / first[1]))


def relu_is_linear(lab: Any, point: Mapping[str, Any], seed: int, other: str = "linear") -> float:
    """The largest difference of the races of two activations from the same start."""
    size = {**SIZE, "sigma_0": 0.01, "tier": "explore", "until": 0.1, "save_points": 3, "seed": seed}
    first = lab.integrate(activation=point["activation"], **size)["feat"]
    return float(np.abs(first - lab.integrate(activation=other, **size)["feat"]).max())


END = Bounded(high=0.02, meaning="distance from the race over its largest value")
E3 = {"overlap": 0.5, "output": 1.5, "margin": 1.5, "router": 2.0}
POWERS = {"q = 1": 1.0, "q = 1.5": 1.5, "q = 2": 2.0, "q = 2.5": 2.5, "q = 4": 4.0}


GROWS = Bounded(low=0.0, meaning="growth of the ratio", visible=math.inf, because="a sign")
SHRINKS = Bounded(high=0.0, meaning="growth of the ratio", visible=math.inf, because="a sign")


def power_law(q: float) -> Any:
    """What the ratio of two competitors does for sign(z)|z|^q: it grows, stays or shrinks."""
    if q == 2:
        return Vanishes(1e-6, meaning="growth of the ratio")
    return GROWS if q > 2 else SHRINKS


CLAIMS = (
    claim(
        "lem-E.3",
        "At T_1 overlaps are of order sigma_0^(1/2), outputs and |q - 1/2| of order sigma_0^(3/2), routers of "
        "order at most sigma_0^(3/2); sharply sigma_0^2.",
        "Lemma E.3",
        size_at_end,
        Power(0.5, over="sigma_0", margin=0.05, meaning="size at T_1"),
        over("sigma_0", *TINY, seeds=6),
        break_law(exponent=0.6),
        (4, 8, 9),
        variants=(
            *(
                Variant(name, {"of": name}, law=Power(e, over="sigma_0", margin=0.05, meaning=name))
                for name, e in E3.items()
            ),
            Variant(
                "router, printed",
                {"of": "router"},
                "Routers are of order at most sigma_0^(3/2).",
                "consistent",
                law=Power(1.5, over="sigma_0", margin=0.1, bound="at least"),
            ),
        ),
        erratum="errata-11",
    ),
    claim(
        "lem-E.4",
        "At T_1 routing is uniform up to O(sigma_0^(3/2)); sharply sigma_0^2.",
        "Lemma E.4",
        size_at_end,
        Power(1.5, over="sigma_0", margin=0.1, bound="at least", meaning="max |p - 1/M|"),
        grid(*({"sigma_0": s, "of": "routing"} for s in TINY), seeds=6),
        break_law(exponent=2.2),
        (4, 8, 9),
        variants=(Variant("main", expected="consistent"),),
    ),
    claim(
        "lem-E.6",
        "Until T_1 every loser stays of order sigma_0, at feat(0)/(1 - feat(0)/max).",
        "Lemma E.6",
        loser,
        Power(1.0, over="sigma_0", margin=0.06, meaning="typical loser at T_1"),
        over("sigma_0", *TINY, seeds=6),
        break_law(exponent=0.88),
        (4, 8, 9),
        erratum="errata-6",
        variants=(
            Variant("scaling"),
            Variant(
                "training",
                {"training": True},
                "In training winner and runner-up stay within 5 % of the closed form (median over experts).",
                "consistent",
                law=Bounded(high=0.05, meaning="median deviation"),
                sweep={"quick": over("n", 16000, seeds=5)},
            ),
        ),
    ),
    claim(
        "explore-invariants",
        "1/x - 1/x' is conserved along the race for all overlaps of an expert (ours); in training "
        "its drift falls like n^(-1/2).",
        "Lemma E.6",
        invariant,
        Vanishes(1e-8, meaning="relative drift"),
        grid({"flow": True}, seeds=5),
        break_measure(lambda *a: invariant(*a, power=3.0001)),
        (4, 5, 7, 9),
        variants=(
            Variant("flow"),
            Variant(
                "training",
                law=Power(-0.5, over="n", margin=0.08, meaning="drift"),
                sweep={"quick": over("n", 250, 1000, 4000, 16000, seeds=40)},
            ),
        ),
    ),
    claim(
        "explore-collapse",
        "x/sigma_0 against tau/sigma_0 is one curve for all sigma_0, M and laws (ours).",
        "Lemma E.5",
        collapse,
        END,
        grid(
            {"sigma_0": 1e-3, "alpha": (0.5, 2.0), "M": 4},
            {"sigma_0": 1e-5, "alpha": (0.5, 2.0), "M": 4},
            {"sigma_0": 1e-4, "alpha": (1.0, 2.0), "M": 2},
        ),
        break_measure(lambda lab, point, seed: collapse(lab, {**point, "sigma_0": 0.1}, seed)),
        (4, 8, 9),
        variants=(Variant("main", expected="consistent"),),
    ),
    claim(
        "lem-E.7",
        "An expert's gradient reaches sigma_0^1.8 at a time of order sigma_0^0.9 / eta; the paper's exponent "
        "0.8 is an upper bound.",
        "Lemma E.7",
        rise_time,
        Power(0.9, over="sigma_0", margin=0.02, meaning="T^(m) eta", because="relative corrections sigma_0^0.1"),
        over("sigma_0", *MINUTE, seeds=6),
        break_law(exponent=0.86),
        (8, 9),
        erratum="errata-7",
        variants=(
            Variant("sharp"),
            Variant(
                "printed bound",
                statement="T^(m) = O(sigma_0^0.8 / eta).",
                expected="consistent",
                law=Power(0.8, over="sigma_0", margin=0.02, bound="at least"),
            ),
            Variant("printed, as exponent", law=Power(0.8, over="sigma_0", margin=0.02), expected="refuted"),
            Variant(
                "prefactor",
                {"ratio": True},
                law=Equals(1.0, absolute=0.02, meaning="over sqrt(2 K M^2/(3 E alpha^3))"),
                sweep={"quick": over("sigma_0", 1e-20, seeds=6)},
            ),
            Variant(
                "flow",
                {"flow": "time"},
                "The exact flow reaches it at the time of the closed form.",
                law=Equals(1.0, absolute=0.02, meaning="time in the flow over that of the closed form"),
                sweep={"quick": over("sigma_0", 1e-5, 1e-4, 1e-3, seeds=5)},
            ),
            Variant(
                "dominance",
                {"flow": "cosine"},
                "From then to T_1 the winner has at least 1 - sigma_0^0.1 of the gradient's norm.",
                "consistent",
                law=Bounded(low=0.0, visible=0.05, meaning="cosine less 1 - sigma_0^0.1", because="a tenth of it"),
                sweep={"quick": over("sigma_0", 1e-5, 1e-4, 1e-3, seeds=5)},
            ),
        ),
    ),
    claim(
        "lem-E.8",
        "The winner follows x* = tau + O(sigma_0).",
        "Lemma E.8",
        lead,
        Power(1.0, over="sigma_0", margin=0.06, meaning="|x* - tau|"),
        over("sigma_0", *SMALL, seeds=6),
        break_law(exponent=0.88),
        (4, 8, 9),
        variants=(Variant("closed form"), Variant("flow", {"flow": True}, "The same in the exact flow.")),
    ),
    claim(
        "lem-5.2",
        "At T_1 an expert has error o(1) on its own cluster, and Omega(1/K) on the others.",
        "Lemma 5.2",
        error_matrix,
        All(
            {
                "own": Bounded(high=0.03, visible=0.03, meaning="mean own error", because="o(1) has no stronger form"),
                "others": Bounded(low=0.9, high=1.9, meaning="least error elsewhere times 2 (K - 1)"),
            }
        ),
        over("K", 3, 4, 6, 8, seeds=5),
        break_measure(lambda lab, point, seed: error_matrix(lab, {**point, "sigma_0": 3.0}, seed)),
        (8, 9),
    ),
    claim(
        "act-race",
        "For sigma = sign(z)|z|^q overlaps of an expert separate if q > 2, keep their ratio at q = 2, and "
        "equalise below (ours); ReLU and GELU race like linear experts.",
        "Section 5.1",
        concentration,
        GROWS,
        grid({"activation": "power", "power": 3.0}, seeds=5),
        break_measure(lambda lab, point, seed: concentration(lab, {**point, "power": 1.9}, seed)),
        (8, 9),
        variants=(
            Variant("q = 3"),
            *(Variant(name, {"power": q}, law=power_law(q)) for name, q in POWERS.items()),
            *(
                Variant(name, {"activation": name, "race": True}, law=Vanishes(1e-9, meaning="distance from linear"))
                for name in ("relu", "gelu")
            ),
        ),
    ),
)

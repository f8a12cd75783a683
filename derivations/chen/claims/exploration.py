"""Claims on exploration: uniform routing and a tensor-power race inside every expert (Lemmas E.3 to E.8, 5.2)."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.broken import break_law, break_measure, break_number, break_setting, grid, over
from derivations.chen import initial, route
from derivations.chen.claims.tools import claim
from derivations.chen.nodes import moment
from derivations.chen.parameters import Parameters
from derivations.chen.tiers.explore import closed_form
from derivations.claim import Variant
from derivations.laws import Bounded, Equals, Power, Vanishes

SIZE: dict[str, Any] = {"M": 4, "J": 4, "K": 4, "d": 8, "rho": 16.0}
TINY = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3)


def end_of_race(lab: Any, point: Mapping[str, Any], seed: int) -> dict[str, np.ndarray]:
    """Return the state of the exact flow at T_1 = sqrt(sigma_0); `faster`: routers are faster by sigma_0^-faster."""
    s = point["sigma_0"]
    size = {**SIZE, "rho": SIZE["rho"] * s ** -point.get("faster", 0.0)}
    run = lab.integrate(seed=seed, until=math.sqrt(s), save_points=2, sigma_0=s, nodes=4, **size)
    return {name: run[name][-1] for name in ("feat", "cen", "gcen", "gfeat")}


def size_at_end(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return a quantity of the lemma at T_1: the largest overlap, output, |q - 1/2|, router, or |p - 1/M|."""
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
    """Return the median over experts of the second largest overlap at T_1; in training, of its relative deviation."""
    if point.get("training"):
        return loser_in_training(lab, point, seed)
    feat = end_of_race(lab, point, seed)["feat"].reshape(SIZE["M"], -1)
    return float(np.median(np.sort(feat, axis=1)[:, -2]))


def loser_in_training(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the median deviation of winner and runner-up from the closed form, experts with a gap above 0.15.

    `stretch` multiplies the time of the closed form (control).
    """
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
        exact = closed_form(start, np.array([5 * s * point.get("stretch", 1.0)]))[0].ravel()[order[:2]]
        found.append(np.abs(end.ravel()[order[:2]] / exact - 1).max())
    return float(np.median(found))


def invariant(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the drift of the invariant 1/x - 1/x' of the race.

    Along the flow it is the largest drift relative to the size of the invariant. Along training it is the rms drift
    over the entries. With `power` the race is that of sign(z)|z|^power, which has another invariant.
    """
    if point.get("flow"):
        other = {"activation": "power", "power": point["power"]} if "power" in point else {}
        run = lab.integrate(
            seed=seed, tier="explore", until=0.3, sigma_0=0.01, save_points=11, rtol=1e-10, **SIZE, **other
        )
        inverse = 1 / run["feat"].reshape(11, SIZE["M"], -1)
        top = run["feat"][0].reshape(SIZE["M"], -1).argmax(axis=1)
        gaps = inverse - inverse[:, np.arange(SIZE["M"]), top][..., None]
        return float(np.abs(gaps - gaps[0]).max() / np.abs(gaps[0]).max())
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
    """Return the largest distance of x/sigma_0 from the curve of the race at tau/sigma_0, over its largest value."""
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


def rise_time(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the time at which the gradient of an expert reaches sigma_0^1.8, by the clock of the closed form.

    The sizes are M = 8, J = 8, K = 4. With `ratio` the time is divided by the prefactor of the law. `level` is another
    exponent than 1.8 (control).
    """
    from scipy.optimize import brentq

    s, m, k, level = point["sigma_0"], 8, 4, point.get("level", 1.8)
    start = s * np.random.default_rng(seed).standard_normal((8, k))
    c = 3 * moment(Parameters(), "alpha", 3) / (2 * k * m**2)

    def excess(tau: float) -> float:
        return float(np.log(c * np.sqrt((closed_form(start, np.array([tau]))[0] ** 4).sum())) - level * np.log(s))

    upper = 1e3 * s ** (level / 2)
    tau = float(brentq(excess, 1e-3 * s, upper, xtol=1e-4 * s))  # type: ignore[arg-type]
    return tau * math.sqrt(c) / s**0.9 if point.get("ratio") else tau


def lead(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the largest |x* - tau| of eight experts in [T_1/2, T_1] by the closed form, J = 8, K = 4."""
    s = point["sigma_0"]
    rng = np.random.default_rng(seed)
    tau = math.sqrt(s) * np.array([0.5, 0.75, 1.0])
    found = [closed_form(s * rng.standard_normal((8, 4)), tau).max(axis=(1, 2)) - tau for _ in range(8)]
    return float(np.abs(found).max())


def part_of_errors(name: str) -> Any:
    """Return a measurement of one number of `error_matrix`; of `own` if the point asks for it."""
    return lambda lab, point, seed: error_matrix(lab, point, seed)["own" if point.get("own") else name]


def error_matrix(lab: Any, point: Mapping[str, Any], seed: int) -> dict[str, float]:
    """Return the mean error of experts on their own cluster and on the others at T_1, signals only, M = 16, J = 16.

    `own` alone uses 96 experts, because it depends on the few experts whose largest overlaps almost tie. With
    `elsewhere` an expert is evaluated on the next cluster (control).
    """
    s, k, alone = point.get("sigma_0", 1e-4), point.get("K", 4), "own" in point
    rng = np.random.default_rng([seed, lab.seed])
    own, others = [], [np.nan] if alone else []
    for _ in range(96 if alone else 16):
        start = s * rng.standard_normal((16, k))
        feat = closed_form(start, np.array([math.sqrt(s)]))[0]
        home = int(start.max(axis=0).argmax())
        aimed = (home + bool(point.get("elsewhere"))) % k
        for cluster in [aimed] if alone else range(k):
            noise = (cluster + rng.integers(1, k, 4000)) % k
            alpha, gamma, sign = *rng.uniform(0.5, 2, (2, 4000)), rng.choice([-1.0, 1.0], 4000)
            cubes = (feat**3).sum(axis=0)
            margin = alpha**3 * cubes[cluster] + sign * gamma**3 * cubes[noise]
            (own if alone or cluster == home else others).append(float((margin <= 0).mean()))
    return {"own": float(np.mean(own)), "others": float(np.mean(others))}


def concentration(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the growth of the log ratio of the two largest overlaps of an expert, up to tau = 3 sigma_0."""
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
    """Return the largest difference between the races of two activations from the same start."""
    size = {**SIZE, "sigma_0": 0.01, "tier": "explore", "until": 0.1, "save_points": 3, "seed": seed}
    first = lab.integrate(activation=point["activation"], **size)["feat"]
    return float(np.abs(first - lab.integrate(activation=other, **size)["feat"]).max())


E3 = {"overlap": 0.5, "output": 1.5, "margin": 1.5, "router": 2.0}
POWERS = {"q = 1": 1.0, "q = 1.5": 1.5, "q = 2": 2.0, "q = 2.5": 2.5, "q = 4": 4.0}


def power_law(q: float) -> Any:
    """Return the law for two competitors with sign(z)|z|^q: their ratio grows for q > 2 and shrinks for q < 2."""
    if q == 2:
        return Vanishes(1e-6, meaning="growth of the ratio")
    end = {"low": 0.0} if q > 2 else {"high": 0.0}
    return Bounded(**end, meaning="growth of the ratio", visible=math.inf, because="a sign")


CLAIMS = (
    claim(
        "lem-E.3",
        "At T_1 overlaps are of order sigma_0^(1/2), and outputs and |q - 1/2| are of order sigma_0^(3/2). "
        "Routers are of order at most sigma_0^(3/2), and their sharp order is sigma_0^2.",
        "Lemma E.3",
        size_at_end,
        Power(0.5, over="sigma_0", margin=0.1, meaning="size at T_1"),
        over("sigma_0", *TINY, seeds=6),
        break_number(),
        rungs=(4, 8, 9),
        variants=(
            *(
                Variant(name, {"of": name}, law=Power(e, over="sigma_0", margin=0.1, meaning=name))
                for name, e in E3.items()
            ),
            Variant(
                "router, printed",
                {"of": "router"},
                law=Power(1.5, over="sigma_0", margin=0.1, bound="at least"),
                expected="consistent",
                control=break_setting(faster=1.0),
            ),
        ),
        erratum="improvement-4",
    ),
    claim(
        "lem-E.4",
        "At T_1 routing is uniform up to O(sigma_0^(3/2)). The sharp order is sigma_0^2.",
        "Lemma E.4",
        size_at_end,
        Power(1.5, over="sigma_0", margin=0.1, bound="at least", meaning="max |p - 1/M|"),
        grid(*({"sigma_0": s, "of": "routing"} for s in TINY), seeds=6),
        break_setting(faster=1.0),
        rungs=(4, 8, 9),
        variants=(Variant("main", expected="consistent"),),
    ),
    claim(
        "lem-E.6",
        "Until T_1 every losing feature stays of order sigma_0, at feat(0)/(1 - feat(0)/max).",
        "Lemma E.6",
        loser,
        Power(1.0, over="sigma_0", margin=0.06, meaning="typical loser at T_1"),
        over("sigma_0", *TINY, seeds=6),
        break_number(-2),
        rungs=(4, 8, 9),
        erratum="errata-6",
        variants=(
            Variant("scaling"),
            Variant(
                "training",
                {"training": True},
                law=Equals(0.0, absolute=0.05, meaning="typical deviation", because="a twentieth"),
                sweep={"quick": over("n", 16000, seeds=6)},
                control=break_setting(stretch=1.2),
            ),
        ),
    ),
    claim(
        "explore-invariants",
        "For all overlaps x, x' of an expert, 1/x - 1/x' is conserved while the features compete (ours). In "
        "training its drift falls like n^(-1/2).",
        "Lemma E.6",
        invariant,
        Vanishes(1e-8, meaning="relative drift"),
        grid({"flow": True}, seeds=2),
        break_measure(lambda lab, point, seed: invariant(lab, {**point, "power": 2.9}, seed)),
        rungs=(4, 5, 7, 9),
        variants=(
            Variant("flow"),
            Variant(
                "training",
                expected="inconclusive",
                law=Power(-0.5, over="n", margin=0.12, meaning="drift"),
                sweep={"quick": over("n", 250, 1000, 4000, 16000, 32000, seeds=12)},
                control=break_number(-2),
            ),
        ),
        seconds=25.0,
    ),
    claim(
        "explore-collapse",
        "x/sigma_0 as a function of tau/sigma_0 is one curve for all sigma_0, M and distributions (ours).",
        "Lemma E.5",
        collapse,
        Vanishes(1e-4, meaning="distance from the race over its largest value"),
        grid(
            {"sigma_0": 1e-3, "alpha": (0.5, 2.0), "M": 4},
            {"sigma_0": 1e-5, "alpha": (0.5, 2.0), "M": 4},
            {"sigma_0": 1e-4, "alpha": (1.0, 2.0), "M": 2},
        ),
        break_measure(lambda lab, point, seed: collapse(lab, {**point, "sigma_0": 0.1}, seed)),
        rungs=(4, 8, 9),
    ),
    claim(
        "lem-E.7",
        "An expert's gradient reaches sigma_0^1.8 at a time of order sigma_0^0.9 / eta. The paper's exponent 0.8 "
        "is an upper bound.",
        "Lemma E.7",
        rise_time,
        Power(0.9, over="sigma_0", margin=0.02, meaning="T^(m) eta"),
        over("sigma_0", 1e-22, 1e-20, 1e-18, 1e-16, 1e-14, seeds=12),
        break_number(-2),
        rungs=(8, 9),
        erratum="improvement-2",
        variants=(
            Variant("sharp"),
            Variant(
                "printed bound",
                law=Power(0.8, over="sigma_0", margin=0.02, bound="at least"),
                expected="consistent",
                control=break_setting(level=1.5),
            ),
            Variant(
                "0.8 attained",
                statement="The bound sigma_0^0.8 is attained (the paper does not say so).",
                law=Power(0.8, over="sigma_0", margin=0.02),
                expected="refuted",
            ),
            Variant(
                "prefactor",
                {"ratio": True},
                law=Equals(1.0, absolute=0.12, meaning="over sqrt(2 K M^2/(3 E alpha^3))"),
                sweep={"quick": over("sigma_0", 1e-16, seeds=12)},
            ),
        ),
    ),
    claim(
        "lem-E.8",
        "On [T_1/2, T_1] (measured at the ends and in the middle) the winning feature follows x* = tau + O(sigma_0).",
        "Lemma E.8",
        lead,
        Power(1.0, over="sigma_0", margin=0.06, meaning="|x* - tau|"),
        over("sigma_0", 1e-12, 1e-10, 1e-8, 1e-6, 1e-4, seeds=12),
        break_number(-2),
        rungs=(8, 9),
    ),
    claim(
        "lem-5.2",
        "At T_1 an expert has error o(1) on its own cluster, and error Omega(1/K) on the other clusters.",
        "Lemma 5.2",
        part_of_errors("others"),
        Power(-1.0, over="K", margin=0.1, bound="at least", meaning="error on the others", short="M and J grow with K"),
        over("K", 2, 4, 8, 16, 32, seeds=6),
        # The error settles at that of a third cluster's feature noise, and its local exponent moves by 0.32: the margin
        # leaves room for that, as the curve is no power that a narrow one could refute.
        break_law(exponent=0.5, margin=0.4),
        rungs=(8, 9),
        variants=(
            Variant("others", expected="consistent"),
            Variant(
                "own",
                {"own": True},
                "The error of an expert on its own cluster falls with sigma_0, at least like sigma_0^(1/4).",
                law=Power(
                    0.25,
                    over="sigma_0",
                    margin=0.05,
                    bound="at least",
                    meaning="error on its own",
                    because="half of the exponent 1/2 of the probability that two overlaps almost tie",
                ),
                control=break_setting(elsewhere=True),
                sweep={"quick": over("sigma_0", 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, seeds=8)},
                expected="consistent",
            ),
        ),
    ),
    claim(
        "act-race",
        "For sigma = sign(z)|z|^q the overlaps of an expert separate if q > 2, keep their ratio if q = 2, and "
        "equalise if q < 2 (ours). ReLU and GELU behave like linear experts.",
        "Section 5.1",
        concentration,
        power_law(3.0),
        grid({"activation": "power", "power": 3.0}, seeds=60),
        break_setting(power=1.5),
        rungs=(8, 9),
        variants=(
            Variant("q = 3"),
            *(
                Variant(name, {"power": q}, law=power_law(q), control=break_setting(power=3.0) if q < 2 else None)
                for name, q in POWERS.items()
            ),
            *(
                Variant(
                    name,
                    {"activation": name, "race": True},
                    law=Vanishes(1e-9, meaning="distance from linear"),
                    control=break_setting(activation="cubic"),
                )
                for name in ("relu", "gelu")
            ),
        ),
    ),
)

"""Claims on gates and routers of joint training: gradient, conservation, Assumption 4.4, ties, frozen routers."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.broken import break_measure, break_number, break_setting, grid, over
from derivations.claim import Variant
from derivations.laws import Agrees, Power, Probability, Vanishes
from derivations.laws.agreement import Score, score
from derivations.pmoe import model
from derivations.pmoe.claims.tools import claim, stream
from derivations.pmoe.parameters import Parameters, settle

SMALL: dict[str, Any] = {"mode": "joint", "n": 7, "p": 3, "k": 3, "m": 12, "l": 3, "delta_d": 0.2, "d": 8}
EMERGE: dict[str, Any] = {
    "mode": "joint",
    "n": 12,
    "p": 6,
    "k": 4,
    "l": 3,
    "m": 200,
    "step": 2.0,
    "exact": 1,
    "pool": 300,
}


def gate_gradient(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the largest deviation of the router gradient of the model from central differences of the loss.

    The loss is evaluated with weights in d dimensions.
    """
    rng = stream(seed, 21, lab)
    x, label = rng.standard_normal((5, 6)), 1.0
    w, phi = 0.5 * rng.standard_normal(6), rng.standard_normal(5)
    taken, size = 3, 1e-6

    def loss(v: np.ndarray) -> float:
        g = x @ v
        top = np.argsort(-g)[:taken]
        raised = np.exp(g[top])
        gates = raised / (g[top].sum() if point.get("printed") else raised.sum())
        return float(np.log1p(np.exp(-label * (gates @ phi[top]) / taken)))

    numeric = np.array([(loss(w - size * e) - loss(w + size * e)) / (2 * size) for e in np.eye(6)])
    route, response = (x @ w).reshape(1, 5, 1), phi.reshape(1, 5, 1)
    experts, routers, _ = model.weigh_joint(route, response, np.ones((5, 1)), np.array([label]), taken, 1)
    if point.get("uncentred"):
        routers = experts * response
    return float(np.abs(numeric - routers[0, :, 0] @ x).max())


def zero_sum(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return |sum_z d_s(z)| of the compiled flow for orthonormal patterns.

    With `uncentred`, the sum is that of E[y v n G phi]/l.
    """
    start = lab.initial(seed=seed, stage="joint", tier="L1", **{**SMALL, "delta_d": 0.0})
    if point.get("uncentred"):
        c = start.constants
        experts, _, _ = model.weigh_joint(
            start.state["route"][..., None], start.state["response"][..., None], c["counts"].T, c["label"], 3, 1
        )
        drive = experts @ c["weight"] * start.state["response"]
    else:
        moved = lab.functions(start, "L1", "joint").flow(start.state)
        drive = moved["route"] / start.parameters.lam
    return float(np.abs(drive.sum(axis=1)).max())


def at_start(p: int, k: int) -> float:
    """Return the probability that some expert ranks o1 above every q, and some expert o2, for random routers.

    It is computed by inclusion and exclusion.
    """
    return 1 - 2 * (1 - 1 / (p + 1)) ** k + (1 - 2 / (p + 1) + 2 / ((p + 1) * (p + 2))) ** k


def initial_frequency(lab: Any, point: Mapping[str, Any], seed: int) -> Score:
    """Compare the share of 200000 draws of k random routers on orthonormal patterns with the formula."""
    p, k, draws = point["p"], point["k"], 200_000
    g = stream(seed, 22, lab).standard_normal((draws, k, p + 2))
    rest = g[..., 2:].max(axis=-1) if p else np.full((draws, k), -np.inf)
    found = float(((g[..., 0] > rest).any(axis=1) & (g[..., 1] > rest).any(axis=1)).mean())
    chance = at_start(p + point.get("shift", 0), k)
    return score(found, np.sqrt(chance * (1 - chance) / draws), chance)


def assumption(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return 1 if Assumption 4.4 holds at flow time 600, else 0.

    Routers move `speed` times as fast as in the paper, where their speed is 1/m.
    """
    run = lab.integrate(
        seed=seed, until=600.0, save_points=2, tier="L1", lam=point["speed"] / EMERGE["m"], data_seed=seed, **EMERGE
    )
    return float(run["assumption"][-1])


def displacement(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the largest change of a route value over flow time 40 at router speed 1/m, over sigma_r."""
    request = {**EMERGE, "m": point["m"], "step": 0.5}
    run = lab.integrate(seed=seed, until=40.0, save_points=2, tier="L2", data_seed=seed, **request)
    size = settle(Parameters(n=12, p=6), "joint").sigma_r
    return float(np.abs(run["route"][-1] - run["route"][0]).max() / size)


def equalised(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return 1 if the irrelevant route values of most of the three experts of a run tie at flow time 900, else 0.

    A tie is a spread below 0.05 of the lead of o1 or o2. The experts of a run are not independent, so the result is one
    number for the whole run.
    """
    run = lab.integrate(
        seed=seed, until=900.0, save_points=2, tier="L1", mode="joint", n=10, p=5, l=3, k=3, m=60, step=2.0, exact=1,
        pool=300, lam=point["speed"] / 60, data_seed=seed,
    )  # fmt: skip
    g = run["route"][-1]
    lead = g[:, :2].max(axis=1) - g[:, 2:].mean(axis=1)
    return float(((lead > 0) & (g[:, 2:].std(axis=1) < 0.05 * lead)).sum() >= 2)


def swaps(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return 1 + the number of rank changes of route values per expert along the hard top-l recursion.

    They are counted over the second half of a run to flow time 300, with the given step eta m.
    """
    step = point["step"]
    run = lab.integrate(
        seed=seed, until=300.0, save_points=int(300 / step) + 1, tier="L1", mode="joint", n=10, p=5, l=3, k=3, m=60,
        step=step, exact=1, pool=300, data_seed=seed, tie_rule=point.get("tie_rule", "hard"),
    )  # fmt: skip
    late = run["route"][len(run.time) // 2 :]
    order = np.argsort(-late, axis=-1, kind="stable")
    return float((np.diff(order, axis=0) != 0).any(axis=-1).sum() / late.shape[1]) + 1.0


CLAIMS = (
    claim(
        "eq-26",
        "The router gradient of joint training is (1/l) y v sum_j G_j (R_j - mean) x_j, where the gates G are a "
        "softmax over the routed patches.",
        "equation (26)",
        gate_gradient,
        Vanishes(1e-8, 1e-4, "deviation from central differences"),
        grid(seeds=5),
        break_measure(lambda lab, point, seed: gate_gradient(lab, {"uncentred": True}, seed)),
        rungs=(2, 9),
        variants=(
            Variant("corrected"),
            Variant(
                "printed", {"printed": True}, "The denominator of the gates is sum g, as in equation (4).", "refuted"
            ),
        ),
        erratum="errata-1",
    ),
    claim(
        "joint-conserve",
        "sum_z d_s(z) = 0: for orthonormal patterns every router conserves the sum of its route values (ours).",
        "equation (26)",
        zero_sum,
        Vanishes(1e-14, 1e-8, "|sum of the router's drive|"),
        grid(seeds=3),
        break_measure(lambda lab, point, seed: zero_sum(lab, {"uncentred": True}, seed)),
        rungs=(1, 3, 5, 9),
    ),
    claim(
        "asm-4.4-init",
        "P(Assumption 4.4) for random routers on orthonormal patterns is 1 - 2 (1 - 1/(p+1))^k + "
        "(1 - 2/(p+1) + 2/((p+1)(p+2)))^k (ours).",
        "Assumption 4.4",
        initial_frequency,
        Agrees(0.02, "probability", "a fifth of what one more pattern would change"),
        grid({"p": 8, "k": 8}, {"p": 4, "k": 8}, {"p": 8, "k": 32}, {"p": 0, "k": 2}),
        break_measure(lambda lab, point, seed: initial_frequency(lab, {**point, "shift": 1}, seed)),
        rungs=(2, 9),
    ),
    claim(
        "asm-4.4",
        "In joint training Assumption 4.4 becomes true if the routers move far beyond their initial size. "
        "Otherwise it depends on the initial draw (ours).",
        "Assumption 4.4",
        assumption,
        Probability(low=0.75, meaning="Assumption 4.4 at the end"),
        over("speed", 1.0, seeds=40),
        break_setting(speed=0.0),
        rungs=(7, 9),
        variants=(
            Variant("moving routers", expected="consistent"),
            Variant(
                "frozen routers",
                law=Probability(high=0.75, meaning="Assumption 4.4 at the end"),
                sweep={"quick": over("speed", 1e-5, seeds=60)},
                control=break_setting(speed=1.0),
                expected="consistent",
            ),
        ),
        erratum="errata-17",
    ),
    claim(
        "router-frozen",
        "At a fixed flow time the displacement of the routers falls like 1/m. In the regime of the theorem they "
        "therefore stay at the start (ours).",
        "Theorem 4.5",
        displacement,
        Power(-1.0, over="m", margin=0.1, meaning="displacement/sigma_r"),
        over("m", 256, 800, 2560, 8000, 25600, seeds=40),
        break_number(),
        rungs=(8, 9),
        variants=(Variant("main", expected="inconclusive"),),  # (log m)^1/2 is not rejected
        erratum="errata-17",
    ),
    claim(
        "joint-equalise",
        "In joint training the route values of competing irrelevant patterns become equal and slide along the "
        "top-l threshold (ours).",
        "Section 4.3",
        equalised,
        Probability(low=0.6, meaning="tie of the irrelevant patterns"),
        over("speed", 1.0, seeds=40),
        break_measure(lambda lab, point, seed: equalised(lab, {**point, "speed": 0.0}, seed)),
        rungs=(7, 9),
        variants=(Variant("main", expected="consistent"),),
        erratum="errata-17",
    ),
    claim(
        "sliding",
        "The hard top-l recursion chatters: at a fixed flow time the number of rank changes grows like the "
        "number of steps (ours).",
        "Section 4.3",
        swaps,
        Power(-1.0, over="step", margin=0.15, meaning="rank changes", short="the steps grow like 1/step"),
        over("step", 0.25, 0.5, 1.0, 2.0, 4.0, seeds=6),
        break_number(),
        rungs=(8, 9),
        variants=(
            Variant("hard"),
            Variant(
                "fractional",
                {"tie_rule": "fractional"},
                "A soft top-l keeps the ranks at a tie, so the number of rank changes does not grow with the "
                "number of steps.",
                law=Power(
                    0.0,
                    over="step",
                    margin=0.3,
                    bound="at least",
                    meaning="rank changes",
                    short="the steps grow like 1/step",
                ),
                sweep={"quick": over("step", 0.5, 0.84, 1.4, 2.4, 4.0, seeds=6)},
                control=break_setting(tie_rule="hard"),
            ),
        ),
        erratum="errata-17",
        seconds=35.0,
    ),
)

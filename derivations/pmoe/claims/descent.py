"""Claims on the decrease of the loss: closed forms, comparisons of levels, and the descent lemmas."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import sympy

from derivations.broken import break_law, break_measure, break_number, break_setting, grid, over
from derivations.claim import Variant
from derivations.laws import Bounded, Power, Proven, Vanishes
from derivations.pmoe import closed, signal
from derivations.pmoe.claims.tools import claim, flow_to, mean_v

POOLED: dict[str, Any] = {"n": 64, "p": 8, "d": 100, "m": 64, "exact": 1, "pool": 300, "tier": "L2"}
FAR: dict[str, Any] = {**POOLED, "n": 512}
"""So many patches that l stays far below n/p, the copies of a pattern: from there on the flow jumps fivefold."""
SEPARATE: dict[str, Any] = {**POOLED, "mode": "separate", "routers": "perfect"}
GATED: dict[str, Any] = {**POOLED, "mode": "joint", "routers": "perfect", "k": 2}
ALONE: dict[str, Any] = {"composition": "deterministic", "init": "paired", "tier": "L2"}
GOAL = 0.1
"""Flow times are to v = 0.1 on average."""
LAZY: dict[str, Any] = {
    "mode": "separate", "n": 12, "p": 6, "l": 3, "d": 40, "delta_d": 0.2, "irrelevant": "random", "exact": 1,
    "pool": 200, "reach": 1.0,
}  # fmt: skip


def cnn_rate(delta_d: float, n: int) -> float:
    """Rate R of the CNN: (1/2 - delta_d kappa0(delta_d))/(2 n^2)."""
    return (0.5 - delta_d * float(signal.kappa0(delta_d))) / (2 * n**2)


def lambert_gap(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the largest difference of the margin u = log(1/v - 1) along a flow of level L2 from its closed form."""
    mode, delta_d, n = point["mode"], point["delta_d"], 9
    request = {**ALONE, "mode": mode, "n": n, "p": 1, "counts": (n - 1,), "delta_d": delta_d, "d": 3}
    if mode == "separate":
        request |= {"l": 3, "routers": "perfect"}
    if "tilt" in point:
        request |= {"b1": (point["tilt"],), "b2": (-point["tilt"],)}
    rate = cnn_rate(delta_d, n) if mode == "cnn" else 1 / (4 * 3**2)
    rate *= point.get("factor", 1.0)
    run = lab.integrate(seed=seed, until=2 / rate, save_points=41, rtol=1e-10, **request)
    expected = closed.lambert(0.0, rate, run.time)
    return float(np.abs(np.log(1 / run["v1"] - 1) - expected).max())


def pair_gap(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the largest difference between the responses of levels L3 (two numbers) and L2.

    The geometry is arbitrary, and the composition of the samples is fixed.
    """
    request = {"n": 6, "p": 3, "counts": (2, 2, 1), "composition": "deterministic", "delta_d": 0.3, "d": 8, "m": 40,
               "irrelevant": "random", "mode": point["mode"], "until": 200.0, "save_points": 21,
               "rtol": 1e-10}  # fmt: skip
    if point["mode"] == "joint":
        request |= {"k": 2, "l": 3, "gate": "frozen"}
    first = lab.integrate(seed=seed, tier="L2", **request)
    second = lab.integrate(seed=seed + point.get("shift", 0), tier="L3", **request)
    return float(np.abs(first["response"] - second["response"]).max())


def series(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return 0 if the Hermite series of kappa0 equals the Taylor series of 1/4 + arcsin/(2 pi), else 1.

    The Hermite series uses the polynomials of the engine.
    """
    from derivations.pmoe import kernels

    exact = sympy.series(kernels.kappa0(), kernels.RHO, 0, 14).removeO()
    return float(sympy.simplify(exact - point.get("factor", 1) * kernels.series(13)) != 0)


def level_gap(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the root mean square difference of the responses of two levels up to flow time 60, same neurons."""
    first, second = point["levels"].split("-")
    runs = [
        lab.integrate(seed=seed, until=60.0, save_points=13, step=0.25, tier=tier, m=point["m"], data_seed=seed, **LAZY)
        for tier in (first, second)
    ]
    return float(np.sqrt(((runs[0]["response"] - runs[1]["response"]) ** 2).mean()))


def decrease(lab: Any, start: Any, run: Any, k: int, stage: str) -> float:
    """Return -dL/dflow at saved state k, by central differences of the loss along the flow."""
    functions = lab.functions(start, "L2", stage)
    state = {"response": run["response"][k], "route": run["route"][k]}
    slope = functions.flow(state)["response"]
    h = 1e-4 / max(float(np.abs(slope).max()), 1e-12)
    ends = [functions.loss({**state, "response": state["response"] + sign * h * slope}) for sign in (1, -1)]
    return (ends[1] - ends[0]) / (2 * h)


def descent(lab: Any, point: Mapping[str, Any], seed: int) -> dict[str, float]:
    """Return the smallest -dL/dflow patches^2/(gamma^3 v^2) over the flow, and -dL/dflow at v = 0.1.

    The number of patches is l, or n for the CNN. `power` replaces the third power of gamma by another one.
    """
    mode = point["mode"]
    size = point["size"]
    request = {**SEPARATE, **FAR, "l": size} if mode == "separate" else {**POOLED, "mode": "cnn", "n": size, "m": 64}
    until = point.get("guess", 120.0) * size**2
    run = lab.integrate(seed=seed, until=until, save_points=41, rtol=1e-6, data_seed=seed, **request)
    start = lab.initial(seed=seed, stage="experts", data_seed=seed, **request)
    v = mean_v(run)
    rates = np.array([decrease(lab, start, run, k, "experts") for k in range(1, 41, 4)])
    gamma = 1 / request["p"]
    ratio = rates * size**2 / (gamma ** point.get("power", 3) * v[1:41:4] ** 2)
    near = int(np.argmin(np.abs(np.log(v[1:] / GOAL)))) + 1
    return {"bound": float(ratio.min()), "at": decrease(lab, start, run, near, "experts") * (GOAL / v[near]) ** 2}


def part(name: str) -> Any:
    """Return one of the numbers of `descent`."""
    return lambda lab, point, seed: descent(lab, point, seed)[name]


def one_good_expert(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the flow time to v = 0.1 with uniform gates and l = 4.

    One expert of each class finds the discriminative patch.
    """
    request = {**GATED, "k": point["k"], "m": 16 * point["k"], "l": 4, "gate": "uniform"}
    request["routers"] = point.get("routers", "single")
    return flow_to(lab, GOAL, 8000.0 * point["k"], seed, data_seed=seed, **request)


def sliding_step(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the largest change of pre-activations at flow time 20 between the given step and 1/512 (recursion)."""
    request = {"mode": "cnn", "n": 5, "p": 3, "m": 8, "d": 5, "irrelevant": "random", "delta_d": 0.3, "until": 20.0,
               "save_points": 2, "tier": "L0"}  # fmt: skip
    coarse = lab.integrate(seed=seed, step=point["step"], **request)["pre"][-1]
    fine = lab.integrate(seed=seed, step=1 / 512, **request)["pre"][-1]
    return float(np.abs(coarse - fine).max())


def level_l0(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the largest difference between full-batch training in d dimensions and the recursion L0 (200 steps)."""
    rng = np.random.default_rng([seed, 41])
    k, each, d, p, n, size = 3, 4, 9, 4, 7, 30
    x = rng.standard_normal((p + 2, d))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    y = rng.choice([-1, 1], size)
    index = rng.integers(2, p + 2, (size, n))
    index[:, 0] = np.where(y > 0, 0, 1)
    arrays = {
        "patterns": x, "hidden": rng.standard_normal((k, each, d)) / 4, "out": rng.standard_normal((k, each)),
        "router": 0.3 * rng.standard_normal((k, d)), "index": index, "y": y,
    }  # fmt: skip
    request = {"initial": arrays, "mode": "joint", "l": 3, "lam": 0.05, "until": 48.0, "save_points": 41}
    first = lab.simulate(method="explicit", step_size=0.02, batch=size, seed=seed, **request)
    request["lam"] *= point.get("factor", 1.0)
    second = lab.integrate(seed=seed, step=0.02 * k * each, tier="L0", **request)
    return max(float(np.abs(first[name][0] - second[name]).max()) for name in ("pre", "route"))


SIZES = (2, 4, 8, 16, 32)
CLAIMS = (
    claim(
        "level-L0",
        "The recursion of level L0 is training on patterns in d dimensions, step by step (ours).",
        "equations (1)-(5), (26)",
        level_l0,
        Vanishes(1e-9, 1e-5, "difference of inner products along 200 steps"),
        grid(),
        break_measure(lambda lab, point, seed: level_l0(lab, {"factor": 1.1}, seed)),
        rungs=(3, 6, 7, 9),
    ),
    claim(
        "kappa0-series",
        "kappa0 = 1/4 + arcsin(rho)/(2 pi) is the sum of the Hermite series of the ReLU's derivative.",
        "Section 3 (arc-cosine kernel)",
        series,
        Proven("the series up to rho^13"),
        grid(),
        break_measure(lambda lab, point, seed: series(lab, {"factor": 2}, seed)),
        rungs=(1, 9),
    ),
    claim(
        "l3-lambert",
        "With one composition and a symmetric start, u = y f obeys u + e^u = 1 + R t. R is (1/2 - delta_d "
        "kappa0(delta_d))/(2 n^2) for the CNN, and 1/(4 l^2) for separate training with one orthogonal pattern "
        "(ours).",
        "Theorems 4.2, 4.3",
        lambert_gap,
        Vanishes(1e-6, 1e-3, "difference of u"),
        grid(
            *({"mode": "cnn", "delta_d": x} for x in (-0.5, 0.0, 0.5)),
            *({"mode": "separate", "delta_d": x} for x in (0.0, 0.3)),
        ),
        break_measure(lambda lab, point, seed: lambert_gap(lab, {**point, "factor": 1.02}, seed)),
        rungs=(3, 4, 9),
        variants=(
            Variant("equal kernels"),
            Variant(
                "tilted",
                {"tilt": 0.5},
                "The formula by Lambert's function also holds if K(q, o1) and K(q, o2) differ.",
                "refuted",
                sweep={"quick": grid({"mode": "cnn", "delta_d": 0.0})},
            ),
        ),
    ),
    claim(
        "l3-pair",
        "With one composition the infinite-width flow of any geometry is the two-dimensional flow of X_+ and X_- "
        "(ours).",
        "Theorem 4.3",
        pair_gap,
        Vanishes(1e-7, 1e-4, "difference of responses"),
        grid(*({"mode": mode} for mode in ("cnn", "joint")), seeds=2),
        break_measure(lambda lab, point, seed: pair_gap(lab, {**point, "shift": 1}, seed)),
        rungs=(4, 9),
    ),
    claim(
        "kernel-limit",
        "At a fixed flow time the pseudo network differs from the network by O(m^(-1/2)). The infinite-width "
        "limit differs from both by O(m^(-1/2)) (ours).",
        "Lemmas G.1, G.2",
        level_gap,
        Power(-0.5, over="m", margin=0.2, meaning="difference of responses"),
        over("m", 80, 250, 800, 2500, 8000, seeds=30, levels="L0-L1"),
        break_law(exponent=-1.0),
        rungs=(7, 8, 9),
        variants=(
            Variant("L0 to L1", law=Power(-0.5, over="m", margin=0.2, meaning="difference of responses")),
            Variant("L1 to L2", {"levels": "L1-L2"}, expected="inconclusive"),
        ),
        control_variant="L0 to L1",
        seconds=32.0,
    ),
    claim(
        "sliding-neurons",
        "If patterns are not orthogonal, neurons slide along zero pre-activations. The recursion differs from "
        "the sliding solution in proportion to its step (ours).",
        "equation (1)",
        sliding_step,
        Power(1.0, over="step", margin=0.3, meaning="change of pre-activations", short="the steps grow like 1/step"),
        over("step", 1.0, 0.5, 0.25, 0.125, 0.0625, seeds=40),
        break_number(),
        rungs=(4, 8, 9),
    ),
    claim(
        "lem-G.4",
        "Separate training: the loss falls by at least eta m gamma^3 v^2/l^2 per step, gamma = 1/(p sqrt delta).",
        "Lemma G.4",
        part("bound"),
        Bounded(low=1.0, meaning="rate over gamma^3 v^2/l^2"),
        over("size", *SIZES, seeds=1, mode="separate"),
        break_measure(lambda lab, point, seed: descent(lab, {**point, "power": 0}, seed)["bound"]),
        rungs=(7, 9),
        variants=(Variant("main", expected="consistent"),),
        erratum="errata-12",
    ),
    claim(
        "lem-I.4",
        "The CNN: the loss falls by at least eta m gamma^3 v^2/n^2 per step.",
        "Lemma I.4",
        part("bound"),
        Bounded(low=1.0, meaning="rate over gamma^3 v^2/n^2"),
        over("size", 16, 32, 64, seeds=1, mode="cnn"),
        break_measure(lambda lab, point, seed: descent(lab, {**point, "power": 0}, seed)["bound"]),
        rungs=(7, 9),
        variants=(Variant("main", expected="consistent"),),
    ),
    claim(
        "descent-rate",
        "At v = 0.1 the rate of descent is proportional to l^(-2) in separate training, and to n^(-2) for the "
        "CNN. The exponents of the descent lemmas are therefore tight (ours).",
        "Lemmas G.4, I.4",
        part("at"),
        Power(-2.0, over="size", margin=0.1, meaning="rate at v = 0.1", error=1e-3, short="patterns fill memory"),
        over("size", *SIZES, mode="separate"),
        break_number(-2),
        rungs=(8, 9),
        variants=(
            Variant("separate"),
            Variant("cnn", sweep={"quick": over("size", 8, 16, 32, 64, 128, mode="cnn")}),
        ),
    ),
    claim(
        "lem-H.4",
        "Joint training with one good expert per class: the loss falls like 1/k, so the flow time to v = 0.1 is "
        "proportional to k. The printed lemma has no factor k.",
        "Lemma H.4",
        one_good_expert,
        Power(1.0, over="k", margin=0.1, meaning="flow to v = 0.1", short="k experts, each with patterns"),
        over("k", 2, 4, 6, 8, 12, seeds=6),
        break_setting(routers="perfect"),
        rungs=(8, 9),
        variants=(
            Variant("corrected"),
            Variant(
                "printed",
                statement="The flow time to v = 0.1 is bounded for all k.",
                expected="refuted",
                law=Power(
                    0.0,
                    over="k",
                    margin=0.1,
                    bound="at most",
                    meaning="flow to v = 0.1",
                    short="k experts, each with patterns",
                ),
            ),
        ),
        erratum="errata-14",
        seconds=44.0,
    ),
)

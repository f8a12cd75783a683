"""The theorems: steps, samples and neurons that suffice, against what is measured; and their exponents by SymPy."""

import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import sympy

from derivations.broken import break_law, break_measure, new_law
from derivations.claim import Variant
from derivations.laws import All, Bounded, Equals, Power, Proven
from derivations.pmoe import closed, exponents, multiclass, router, world
from derivations.pmoe.claims.descent import GATED, GOAL, POOLED, SEPARATE
from derivations.pmoe.claims.tools import claim, flow_to, grid, over
from derivations.pmoe.parameters import Parameters, settle

ONE_PASS: dict[str, Any] = {"n": 64, "p": 8, "d": 100, "exact": 1, "pool": 300, "m": 256}
STEPS = (16, 64, 256, 1024)
"""The steps eta m over which one-pass training is tuned, as in p (2, 8, 32, 128)."""
BATCH = 8


def flow(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """The infinite-width flow to v = 0.1 for l (or n) patches, times `size` to the power `per`.

    The number of steps is flow/(eta m): `per` = 2 at eta m = c/size^2, 0 at a fixed step, -1 at eta m = c size.
    """
    size, kind = point["size"], point["kind"]
    guess = {"separate": 60.0 * size**2, "cnn": 60.0 * size**2, "uniform": 60.0 * size**4, "sharp": 60.0 * size**2}[kind]
    if kind == "cnn":
        request = {**POOLED, "mode": "cnn", "n": size}
    elif kind == "separate":
        request = {**SEPARATE, "l": size}
    else:
        request = {**GATED, "l": size, "gate": kind}
    return flow_to(lab, GOAL, guess, seed, data_seed=seed, **request) * size ** point.get("per", 0)


def one_pass(lab: Any, point: Mapping[str, Any], seed: int, kind: str = "", size: int = 0) -> float:
    """The samples after which one-pass training has an error of at most 5 %, the best of four steps eta m."""
    kind, size = kind or point["kind"], size or point["size"]
    request = {**ONE_PASS, "mode": "cnn"} if kind == "cnn" else {**ONE_PASS, "mode": kind, "l": size}
    if kind == "cnn":
        request["n"] = size
    elif kind == "joint":
        request |= {"k": 2, "routers": "perfect", "lam": 0.0}
    else:
        request["routers"] = "perfect"
    best = math.inf
    for step in STEPS:
        last = min(320, math.ceil(best / BATCH) if np.isfinite(best) else 320)
        run = lab.simulate(
            method="compressed", step_size=step / 256, batch=BATCH, until=float(step * last), save_points=41, seed=seed,
            seeds=3, fresh_initial=True, data_seed=seed, **request,
        )  # fmt: skip
        error = np.median(run["error"], axis=0)
        below = np.flatnonzero(error <= 0.05)
        if below.size:
            best = min(best, float(run.step[below[0]] * BATCH))
    return best


def ratio(lab: Any, point: Mapping[str, Any], seed: int) -> dict[str, float]:
    """N_C/N_S at l = 1, 4, 16 (n = 64): the smallest, and whether it falls with l."""
    whole = one_pass(lab, point, seed, "cnn", 64)
    ratios = [whole / one_pass(lab, point, seed, "separate", size) for size in (1, 4, 16)]
    if point.get("swap"):
        ratios = [1 / r for r in ratios]
    return {"least": min(ratios), "falls": float(ratios[0] >= ratios[1] >= ratios[2])}


def width_needed(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """The smallest m (powers of 2) at which the pseudo network's error is at most 5 % at flow 400 l^2."""
    size = point["size"]
    for m in (4, 8, 16, 32, 64, 128, 256, 512, 1024):
        run = lab.integrate(
            seed=seed, until=40.0 * size**2 + 100, save_points=2, rtol=1e-5, data_seed=seed,
            **{**SEPARATE, "tier": "L1", "l": size, "m": m},
        )  # fmt: skip
        if run["error"][-1] <= 0.05:
            return float(m)
    return math.inf


def error_order(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """How much the error at fixed flow falls when l (or k, one good expert) grows: 0 where it never does."""
    found = []
    if point["over"] == "l":
        for size in (1, 4, 16):
            run = lab.integrate(seed=seed, until=60.0, save_points=2, data_seed=seed, **{**SEPARATE, "l": size})
            found.append(float(run["error"][-1]))
    else:
        for k in (2, 8, 32):
            request = {**GATED, "k": k, "m": 4 * k, "l": 4, "gate": "uniform", "routers": "single", "init": "paired"}
            run = lab.integrate(seed=seed, until=120.0, save_points=2, data_seed=seed, **request)
            found.append(float(run["v1"][-1]))
    if point.get("reverse"):
        found = found[::-1]
    return float(max(np.diff(found[::-1]).max(), 0.0))


def markov(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """The largest excess of the error over the bound along flows, and over adversarial laws of the margin."""
    pairs = []
    for request in ({**SEPARATE, "l": 4}, {**POOLED, "mode": "cnn", "n": 16}):
        run = lab.integrate(seed=seed, until=400.0, save_points=41, rtol=1e-6, data_seed=seed, **request)
        pairs += list(zip(run["error"], run["v1"], run["v2"], strict=True))
    rng = np.random.default_rng([seed, 51])
    for _ in range(2000):  # margins just below zero with some chance in each class, and very large otherwise
        wrong = rng.random(2)
        pairs.append((wrong.mean(), *(0.5 * wrong)))
    error, v1, v2 = np.array(pairs).T
    top = np.maximum(v1, v2)
    kind = point["bound"]
    bound = {"max": 2 * top, "sum": v1 + v2, "root": np.where(top < 0.25, np.sqrt(top), 1.0)}[kind]
    return float((error - point.get("factor", 1.0) * bound).max())


def book(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """0 if a chain gives the exponents stated for it (or those printed in the theorem of that name)."""
    stated = exponents.EXPECTED[point["chain"]] if "printed" not in point else exponents.PRINTED[point["printed"]]
    if point.get("swap"):
        stated = (stated[0] * exponents.l, *stated[1:])
    return float(not all(exponents.agrees(point["chain"], stated)))


def odd_power(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """0 if m, a square of a product of powers, has an even exponent of k in a chain."""
    power = exponents.power_of(exponents.CHAINS[point["chain"]].neurons, exponents.k)
    return float(sympy.Mod(power + point.get("shift", 0), 2) != 0)


def against_delta(lab: Any, point: Mapping[str, Any], seed: int) -> Any:
    """How hard the task is as delta_d goes from -0.9 to 0: N_r, the CNN's flow, or that flow where delta decreases."""
    what = point["what"]
    if what == "samples":
        found = []
        for delta_d in (-0.9, -0.5, 0.0, 0.5, 0.9):
            p = settle(Parameters(n=32, p=8, delta_d=delta_d), "router")
            found.append(router.samples_for(p, world.gram_of(p), 0.9, 20_000, seed))
        return float(np.diff(found).min())
    if what == "minimum":
        grid_ = np.linspace(-0.99, 0.5, 2001)
        return float(grid_[np.argmin(1 / (0.5 - grid_ * closed.kappa0(grid_)))])
    request = {"mode": "cnn", "n": 9, "p": 1, "counts": (8,), "composition": "deterministic", "init": "paired",
               "tier": "L2", "d": 3}  # fmt: skip
    easy, hard = (flow_to(lab, GOAL, 3000.0, seed, delta_d=x, **request) for x in (0.0, point.get("to", -0.9)))
    return hard / easy


def routing_cost(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Total cost l T of separate training at eta m = c/l^2, or k l T of joint training at H.4's step (sharp gates)."""
    per = 2 if point["kind"] in ("separate", "cnn") else -1
    return flow(lab, {**point, "per": per}, seed) * point["size"]


def table_2(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """The spread (largest over smallest) of FLOPs/time over the eight entries of Table 2, in 1e12/s."""
    seconds = np.array([260, 324, 468, 630, 156, 192, 280, 368.0])
    operations = 1e15 * np.array([6, 7.5, 11, 15, 3.5, 4.4, 6.4, 8.5])
    if point.get("independent"):  # a measurement that counted operations: proportional to N
        operations = 1e15 * np.array([4, 8, 12, 16, 2.3, 4.6, 6.9, 9.2])
    return float((operations / seconds).max() / (operations / seconds).min())


@functools.cache
def pair_need(chance: float, seed: int) -> float:
    """Samples of one pair of classes for which its two routers succeed with a given probability."""
    p = settle(Parameters(n=32, p=8), "router")
    return router.samples_for(p, world.gram_of(p), chance, 40_000, seed)


def classes(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """For c classes: N_r of pairwise routers (all pairs succeed with 90 %), or the flow to 1 - softmax_y = 0.1."""
    c, what = point["c"], point["what"]
    if what == "routers":
        return pair_need(0.9 ** (2 / c), seed + 7 * lab.seed) * c / 2
    return multiclass.flow_to(0.1, c, 3, uniform=what == "joint")


SIZES = {"quick": over("size", 2, 4, 8, 16, seeds=3)}
PASSES = {"quick": over("size", 1, 4, 16, seeds=2)}
LONG = {"quick": over("size", 8, 16, 32, 64, seeds=2)}


def time_law(exponent: float, bound: str = "", margin: float = 0.3, name: str = "flow") -> Power:
    """A law for flows and steps against the number of patches."""
    return Power(exponent, over="size", margin=margin, bound=bound, meaning=name)


CLAIMS = (
    claim(
        "thm-4.2",
        "Separate training: N = l^8 p^12 delta^6/eps^16 samples suffice; one-pass training to 5 % error needs far fewer, "
        "and more for larger l.",
        "Theorem 4.2",
        one_pass,
        time_law(8.0, "at most", name="samples"),
        PASSES["quick"],
        new_law(time_law(8.0, "at least", name="samples")),
        (7, 8, 9),
        variants=(
            Variant("samples", {"kind": "separate"}),
            Variant(
                "increasing",
                {"kind": "separate"},
                "The samples needed increase with l.",
                law=time_law(0.3, "at least", name="samples"),
            ),
        ),
        erratum="errata-13",
    ),
    claim(
        "thm-F.3",
        "Separate training: T = l^4 p^6 delta^3/eps^8 steps and m = l^10 .. neurons suffice; at eta m = c/l^2 the exponent "
        "4 of T is tight, that of m is not.",
        "Theorem F.3",
        flow,
        time_law(4.0, "at most", 0.5, "steps"),
        SIZES["quick"],
        new_law(time_law(3.0, "at most", 0.5, "steps")),
        (7, 8, 9),
        variants=(
            Variant("steps", {"kind": "separate", "per": 2}),
            Variant("flow", {"kind": "separate"}, "The flow grows like l^2 (tight).", law=time_law(2.0)),
        ),
        erratum="errata-13",
    ),
    claim(
        "thm-F.3-width",
        "Separate training needs m = l^10 p^12 delta^6/eps^16 neurons at most; measured needs hardly depend on l.",
        "Theorem F.3",
        width_needed,
        time_law(10.0, "at most", name="neurons"),
        over("size", 1, 2, 4, seeds=3),
        new_law(time_law(8.0, "at least", name="neurons")),
        (7, 8, 9),
    ),
    claim(
        "thm-4.3",
        "The CNN: N = n^8 p^12 delta^6/eps^16 samples suffice.",
        "Theorem 4.3",
        one_pass,
        time_law(8.0, "at most", name="samples"),
        over("size", 16, 32, 64, seeds=2),
        new_law(time_law(8.0, "at least", name="samples")),
        (7, 8, 9),
        variants=(Variant("samples", {"kind": "cnn"}),),
    ),
    claim(
        "thm-F.6",
        "The CNN: T = n^4 p^6 delta^3/eps^8 steps suffice at eta m = c/n^2; the exponent is tight.",
        "Theorem F.6",
        flow,
        time_law(4.0, "at most", 0.5, "steps"),
        LONG["quick"],
        new_law(time_law(3.0, "at most", 0.5, "steps")),
        (7, 8, 9),
        variants=(
            Variant("steps", {"kind": "cnn", "per": 2}),
            Variant("flow", {"kind": "cnn"}, "The flow grows like n^2 (tight).", law=time_law(2.0)),
        ),
    ),
    claim(
        "cor-ratio",
        "Routing saves samples, the more the larger n/l: N_C/N_S is above one and grows with n/l (the ratio (n/l)^8 is one of "
        "bounds).",
        "Section 4.2",
        ratio,
        All({"least": Bounded(low=1.0), "falls": Equals(1.0, absolute=0.1)}),
        grid(seeds=2),
        break_measure(lambda lab, point, seed: ratio(lab, {"swap": True}, seed)),
        (7, 9),
    ),
    claim(
        "thm-F.5",
        "Joint training: T = k^2 l^2 p^6 delta^3/eps^8 steps suffice at the step eta m ~ l of Lemma H.4.",
        "Theorem F.5",
        flow,
        time_law(2.0, "at most"),
        SIZES["quick"],
        break_measure(lambda lab, point, seed: flow(lab, {**point, "per": 2}, seed)),
        (7, 8, 9),
        variants=(
            Variant("uniform gates", {"kind": "uniform", "per": -1}, expected="refuted"),
            Variant("sharp gates", {"kind": "sharp", "per": -1}, "The same where o1 and o2 have all the weight."),
            Variant(
                "uniform gates, corrected",
                {"kind": "uniform", "per": -1},
                "T = k^2 l^4 .., the constants being tracked, with uniform gates.",
                law=time_law(4.0, "at most"),
            ),
        ),
        control_variant="sharp gates",
        erratum="errata-16",
    ),
    claim(
        "thm-4.5",
        "Joint training with one good expert per class: the flow is proportional to k, within T = k^2 ..; uniform gates "
        "need flow l^4, sharp ones l^2 (ours).",
        "Theorem 4.5",
        flow,
        time_law(4.0),
        SIZES["quick"],
        break_law(exponent=3.0),
        (7, 8, 9),
        variants=(
            Variant("uniform gates", {"kind": "uniform"}),
            Variant("sharp gates", {"kind": "sharp"}, law=time_law(2.0)),
        ),
        erratum="errata-15",
    ),
    claim(
        "cor-eps",
        "At fixed training the error does not decrease with l (separate), nor v with k (joint, one good expert per class).",
        "Section 4.3",
        error_order,
        Bounded(high=0.01, margin=0.01, meaning="decrease"),
        grid({"over": "l"}, {"over": "k"}, seeds=2),
        break_measure(lambda lab, point, seed: error_order(lab, {**point, "reverse": True}, seed)),
        (7, 9),
    ),
    claim(
        "markov-eps",
        "error <= v1 + v2 and error <= 2 max(v1, v2) (ours): the proofs need v <= eps/2 only, not v <= eps^2.",
        "proof of Theorem F.3",
        markov,
        Bounded(high=1e-12, meaning="excess of the error"),
        grid({"bound": "max"}, {"bound": "sum"}),
        break_measure(lambda lab, point, seed: markov(lab, {**point, "factor": 0.8}, seed)),
        (5, 9),
        erratum="errata-13",
    ),
    claim(
        "markov-paper",
        "max(v1, v2) <= eps^2 implies error <= eps for eps < 1/2.",
        "proof of Theorem F.3",
        markov,
        Bounded(high=1e-12, meaning="excess of the error"),
        grid({"bound": "root"}),
        break_measure(lambda lab, point, seed: markov(lab, {"bound": "root", "factor": 0.5}, seed)),
        (5, 9),
        erratum="errata-13",
    ),
    claim(
        "exps",
        "The descent lemmas give the exponents of Theorems 4.2 and 4.3.",
        "Appendices F.3, F.6",
        book,
        Proven("the exponents of T, N and m"),
        grid({"chain": "separate", "printed": "separate"}, {"chain": "cnn", "printed": "cnn"}),
        break_measure(lambda lab, point, seed: book(lab, {**point, "swap": True}, seed)),
        (1, 9),
    ),
    claim(
        "exps-joint",
        "What each reading of the proofs gives for T, N and m; none gives the printed Theorem 4.5.",
        "Theorem 4.5, Lemma H.4",
        book,
        Proven("the exponents of T, N and m"),
        grid(*({"chain": name} for name in exponents.CHAINS)),
        break_measure(lambda lab, point, seed: book(lab, {**point, "swap": True}, seed)),
        (1, 9),
        variants=(
            Variant("readings"),
            *(
                Variant(
                    f"printed from {name[7:]}",
                    {"chain": name, "printed": "joint"},
                    f"Theorem 4.5 follows from Lemma H.4 ({name[7:]}).",
                    "refuted",
                    sweep={"quick": grid()},
                )
                for name in exponents.CHAINS
                if name.startswith("joint")
            ),
        ),
        erratum="errata-16",
    ),
    claim(
        "exps-even",
        "m is the square of a product of powers, so that no chain gives the odd power k^3 of Theorem 4.5 (ours).",
        "Theorem 4.5",
        odd_power,
        Proven("an even exponent of k"),
        grid(*({"chain": name} for name in exponents.CHAINS if name.startswith("joint"))),
        break_measure(lambda lab, point, seed: odd_power(lab, {**point, "shift": 1}, seed)),
        (1, 9),
        erratum="errata-16",
    ),
    claim(
        "delta-mono",
        "The task becomes easier as o1 and o2 separate: routers need fewer samples as delta_d falls.",
        "equation (9)",
        against_delta,
        Bounded(low=0.0, meaning="smallest increase of N_r with delta_d"),
        grid({"what": "samples"}),
        break_measure(lambda lab, point, seed: -against_delta(lab, point, seed)),
        (8, 9),
        variants=(
            Variant("routers"),
            Variant(
                "cnn",
                statement="The CNN's flow is shortest at delta_d = -0.652, not at -1.",
                law=Equals(-0.652, absolute=0.002, meaning="delta_d of the shortest flow"),
                sweep={"quick": grid({"what": "minimum"})},
            ),
            Variant(
                "delta",
                statement="Complexity grows with delta also where delta_d < 0: delta_d = -0.9 is harder than 0.",
                expected="refuted",
                law=Bounded(low=1.0, meaning="flow at delta_d = -0.9 over that at 0"),
                sweep={"quick": grid({"what": "flow"})},
            ),
        ),
        erratum="errata-21",
    ),
    claim(
        "tab-1",
        "Total cost to a fixed error: l^5 (separate) and k^2 l^3 (joint), one l more than the number of steps.",
        "Table 1",
        routing_cost,
        time_law(5.0, "at most", 0.5, "cost"),
        SIZES["quick"],
        new_law(time_law(4.0, "at most", 0.5, "cost")),
        (8, 9),
        variants=(
            Variant("separate", {"kind": "separate"}),
            Variant("joint, sharp gates", {"kind": "sharp"}, law=time_law(3.0, "at most", name="cost")),
        ),
        control_variant="separate",
        erratum="errata-24",
    ),
    claim(
        "tab-2",
        "The FLOPs of Table 2 are its seconds times one constant: all eight ratios agree within rounding (ours).",
        "Table 2",
        table_2,
        Bounded(high=1.08, meaning="largest over smallest FLOPs per second"),
        grid(),
        break_measure(lambda lab, point, seed: table_2(lab, {"independent": True}, seed)),
        (1, 9),
        erratum="errata-26",
    ),
    claim(
        "mc-4.1",
        "c classes, pairwise routers: N_r = c^2 n^2/(1 - delta_d)^2 samples suffice; the measured need grows like c log c.",
        "Appendix M",
        classes,
        Power(2.0, over="c", margin=0.1, bound="at most", meaning="N_r"),
        over("c", 2, 4, 8, 16, 32, seeds=2, what="routers"),
        new_law(Power(2.0, over="c", margin=0.1, bound="at least", meaning="N_r")),
        (8, 9),
    ),
    claim(
        "mc-4.2",
        "c classes, separate training: T = .. c^6 steps (and N = .. c^12 samples) suffice.",
        "Appendix M",
        classes,
        Power(6.0, over="c", margin=0.1, bound="at most", meaning="flow"),
        over("c", 2, 4, 8, 16, what="separate"),
        new_law(Power(6.0, over="c", margin=0.1, bound="at least", meaning="flow")),
        (8, 9),
    ),
    claim(
        "mc-4.5",
        "c classes, joint training: T = .. c^4 steps (and N = .. c^8 samples) suffice.",
        "Appendix M",
        classes,
        Power(4.0, over="c", margin=0.1, bound="at most", meaning="flow"),
        over("c", 2, 4, 8, 16, what="joint"),
        new_law(Power(4.0, over="c", margin=0.1, bound="at least", meaning="flow")),
        (8, 9),
    ),
)

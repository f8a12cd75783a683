"""Claims on the hidden neurons: changes of their activations, and sizes of their gradients."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.broken import break_measure, break_number, grid, over
from derivations.claim import Claim, Variant
from derivations.laws import Agrees, All, Bounded, Power, Vanishes
from derivations.laws.agreement import score
from derivations.pmoe import model, world
from derivations.pmoe.claims.tools import claim, stream
from derivations.pmoe.initial import neurons
from derivations.pmoe.parameters import Parameters, settle

LAZY: dict[str, Any] = {"n": 12, "p": 6, "d": 40, "delta_d": 0.2, "irrelevant": "random", "exact": 1, "pool": 200}
MODES: dict[str, dict[str, Any]] = {
    "separate": {"mode": "separate", "l": 3},
    "joint": {"mode": "joint", "l": 3, "k": 4},
    "cnn": {"mode": "cnn"},
}


def lasting(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the largest share of neurons of an expert with a changed activation, over the bound 2 e tau L/sigma.

    The share is taken for each sample over its routed patches. tau = flow/m max |a| bounds the motion of a
    pre-activation (over l more in joint training, whose gates sum to 1). L = l patches in separate training, n in joint
    training and for the CNN.
    """
    mode, m, flow = point["mode"], point["m"], point["flow"]
    run = lab.integrate(seed=seed, until=flow, save_points=3, step=0.1, tier="L0", m=m, data_seed=seed, **LAZY,
                        **MODES[mode])  # fmt: skip
    p = settle(Parameters(m=m, **LAZY, **MODES[mode]))
    changed = ((run["pre"] >= 0) != (run["pre"][0] >= 0)).any(axis=0)
    counts, _, _ = world.population(settle(Parameters(data_seed=seed, m=m, **LAZY, **MODES[mode])))
    route = run["route"][-1]
    worst = 0.0
    for row in counts[:: max(1, len(counts) // 40)]:
        routed = model.top_l(route[..., None], row[:, None], p.l)[..., 0] > 0
        worst = max(worst, max(changed[s][:, routed[s]].any(axis=1).mean() for s in range(p.k)))
    tau = flow / m * np.abs(run["out"]).max() / (p.l if mode == "joint" else 1)
    patches = p.l if mode == "separate" else p.n
    bound = 2 * math.e * tau * patches * math.sqrt(m)
    return float(worst / (point.get("factor", 1.0) * bound)) if bound < 1 else math.nan  # a share says nothing there


POOL = 4
"""Networks that one measurement of `flips` is the mean of: of a single wide one no activation may have changed."""


def flips(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the share of pairs (neuron, pattern) whose activation has changed after flow time 100.

    In joint training the flow is l times as long, so that neurons move as far (see `lasting`).
    """
    mode, m = MODES[point["mode"]], point["m"]
    until = 100.0 * (mode["l"] if point["mode"] == "joint" else 1)

    def share(seed: int) -> float:
        run = lab.integrate(
            seed=seed, until=until, save_points=2, step=1.0, tier="L0", m=m, data_seed=seed, **LAZY, **mode
        )
        return float(run["flips"][-1])

    return float(np.mean([share(POOL * seed + k) for k in range(POOL)]))


def drive_of(p: Parameters, response: np.ndarray, route: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (c (k, P), v_s (k,)): the drives of the patterns, and v_s of the lemmas.

    v_s is the maximum over the classes of E[1(o routed) G_o v | class].
    """
    counts, label, weight = world.population(p)
    gate = model.GATES.get(p.gate, 0)
    args = (route[..., None], response[..., None], counts.T, label, p.l, gate)
    experts, _, margin = model.weigh_joint(*args)
    v = 1 / (1 + np.exp(margin))
    share = model.gates(route[..., None], model.top_l(route[..., None], counts.T, p.l), p.l, gate)
    sizes = []
    for a, sign in ((0, 1.0), (1, -1.0)):
        of = weight * (label == sign)
        sizes.append((share[:, a] * v) @ of / of.sum())
    return experts @ weight, np.max(sizes, axis=0)


def delta_of(gram: np.ndarray) -> float:
    """Separation delta = 1/(1 - max(delta_d^2, delta_r^2)), equation (9)."""
    largest = np.abs(gram[:2, 2:]).max(initial=0.0)
    return float(1 / (1 - max(gram[0, 1] ** 2, largest**2)))


def gradient_norms(pre: np.ndarray, c: np.ndarray, gram: np.ndarray) -> np.ndarray:
    """Return |P_r| = 2 |sum_z 1(h(z) >= 0) c(z) z| of every neuron, (k, M)."""
    push = np.where(pre >= 0, c[:, None], 0.0)
    return 2 * np.sqrt(np.maximum(np.einsum("smz,zw,smw->sm", push, gram, push), 0.0))


def start_share(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the share of 4000 neurons with |P_r| >= v_s/(L p sqrt delta) at constant v, times p sqrt delta."""
    mode = point["mode"]
    sizes = {name: point[name] for name in ("p", "n", "delta_d", "l")}
    if mode == "cnn":
        sizes.pop("l")
    p = settle(Parameters(mode=mode, m=4000, exact=1, pool=500, routers="perfect", data_seed=seed, **sizes))
    rng = stream(seed, 31, lab)
    gram = world.gram_of(p)
    pre, _ = neurons(p, gram, rng)
    start = lab.initial(seed=seed, stage="joint" if mode == "joint" else "experts", mode=mode, m=20,
                        routers="auto" if mode == "cnn" else "perfect", exact=1, pool=500, data_seed=seed,
                        **sizes)  # fmt: skip
    c, v = drive_of(p, np.zeros((p.k, p.p + 2)), start.state["route"])
    scale = p.p * math.sqrt(delta_of(gram))
    bound = point.get("factor", 1.0) * v / (p.l * scale)
    share = (gradient_norms(pre, c, gram) >= bound[:, None]).mean(axis=1)
    return float(share.min() * scale)


def running_share(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the smallest share of neurons with |P_r| >= v_s/(4 L p sqrt delta) along training, times p sqrt delta.

    v is its current value.
    """
    mode = point["mode"]
    request = {**LAZY, **MODES[mode], "m": 400, "data_seed": seed}
    if mode != "cnn":
        request["routers"] = "perfect"
    run = lab.integrate(seed=seed, until=point["flow"], save_points=11, step=1.0, tier="L0", **request)
    p = settle(Parameters(**request))
    gram, least = world.gram_of(p), math.inf
    scale = p.p * math.sqrt(delta_of(gram))
    for pre, response, route in zip(run["pre"], run["response"], run["route"], strict=True):
        c, v = drive_of(p, response, route)
        s = int(np.argmax(v))
        bound = point.get("factor", 0.25) * v[s] / (p.l * scale)
        least = min(least, float((gradient_norms(pre, c, gram)[s] >= bound).mean()))
    return least * scale


def cnn_law(lab: Any, point: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Compare the values and the frequencies of |P_r| of the CNN at constant v with their closed forms.

    The values are {sqrt(2 - 2 delta_d), 1, 0} v/n, and the frequencies are taken over 40000 neurons.
    """
    delta_d, n = point["delta_d"], 6
    p = settle(Parameters(mode="cnn", n=n, p=3, m=40_000, delta_d=delta_d))
    gram = world.gram_of(p)
    pre, _ = neurons(p, gram, stream(seed, 32, lab))
    c, _ = drive_of(p, np.zeros((1, 5)), np.zeros((1, 5)))
    found = gradient_norms(pre, c, gram)[0] * n / 0.5
    theta = math.acos(delta_d) * point.get("factor", 1.0)
    values = np.array([math.sqrt(2 - 2 * delta_d), 1.0, 0.0])
    shares = np.array([0.5 - theta / (2 * math.pi), theta / math.pi, 0.5 - theta / (2 * math.pi)])
    near = np.abs(found[:, None] - values)
    # A norm of zero is a cancellation: its square is good to rounding, itself to the root of that.
    counts = np.bincount(near.argmin(axis=1), minlength=3) / found.size
    error = np.sqrt(shares * (1 - shares) / found.size)
    return {"values": float(near.min(axis=1).max()), "shares": score(counts, error, shares)}


WIDTHS = (60, 200, 640, 2000, 6400)
CASES = (
    {"p": 2, "n": 16, "l": 2, "delta_d": 0.0},
    {"p": 8, "n": 16, "l": 2, "delta_d": 0.0},
    {"p": 32, "n": 64, "l": 2, "delta_d": 0.0},
    {"p": 8, "n": 16, "l": 6, "delta_d": 0.0},
    {"p": 8, "n": 16, "l": 2, "delta_d": 0.9},
    {"p": 8, "n": 16, "l": 2, "delta_d": 0.99},
)


def lasting_claim(id: str, mode: str, who: str, flow: float) -> Claim:
    """Return the claim on Lemma G.1, H.1 or I.1, at flow times `flow` m^(1/4) at which the bound is below one."""
    return claim(
        id,
        f"{who}: at time t at most 2 e tau L/sigma of the neurons have changed an activation on a sample's routed "
        f"patches, "
        "tau = eta t max |a| (where the bound is below one).",
        f"Lemma {id[4:]}",
        lasting,
        Bounded(high=1.0, meaning="changed neurons over the bound"),
        grid(*({"mode": mode, "m": m, "flow": flow * m**0.25} for m in (6_400, 25_600, 102_400))),
        break_measure(lambda lab, point, seed: lasting(lab, {**point, "factor": 1e-5}, seed)),
        rungs=(5, 9),
        variants=(Variant("main", expected="consistent"),),
    )


def width_claim(id: str, mode: str, who: str) -> Claim:
    """Return the claim on the rate of Lemma G.1, H.1 or I.1 in the width, from runs at a fixed flow time."""
    return claim(
        id + "-width",
        f"{who}: at a fixed flow time the share of changed activations falls like m^(-1/2) (ours).",
        f"Lemma {id[4:]}",
        flips,
        Power(-0.5, over="m", margin=0.1, meaning="changed activations"),
        over("m", *WIDTHS, seeds=30 if mode == "cnn" else 20, mode=mode),
        break_number(-2),
        rungs=(8, 9),
    )


def share_claim(id: str, mode: str, who: str) -> Claim:
    """Return the claim on Lemma G.2, H.2 or I.2."""
    return claim(
        id,
        f"{who}: at the start a share of at least c/(p sqrt delta) of the neurons has |P_r| >= v/(L p sqrt delta). "
        "This bound is loose, because the share stays of order one.",
        f"Lemma {id[4:]}",
        start_share,
        Bounded(low=1.0, meaning="share of large gradients times p sqrt(delta)"),
        grid(*({**case, "mode": mode} for case in CASES)),
        break_measure(lambda lab, point, seed: start_share(lab, {**point, "factor": 100.0}, seed)),
        rungs=(2, 9),
        variants=(Variant("main", expected="consistent"),),
        erratum="errata-10",
    )


def running_claim(id: str, mode: str, who: str, flow: float) -> Claim:
    """Return the claim on Lemma G.3, H.3 or I.3."""
    return claim(
        id,
        f"{who}: all along training at least c/(p sqrt delta) of the neurons have gradients of size c v/(L p sqrt "
        f"delta), "
        "where v is its value during training.",
        f"Lemma {id[4:]}",
        running_share,
        Bounded(low=0.25, meaning="least share of large gradients times p sqrt(delta)"),
        grid({"mode": mode, "flow": flow}, seeds=60),
        break_measure(lambda lab, point, seed: running_share(lab, {**point, "factor": 100.0}, seed)),
        rungs=(7, 9),
        variants=(Variant("main", expected="consistent"),),
        erratum="errata-11",
    )


WHO = {"separate": "Separate training", "joint": "Joint training", "cnn": "The CNN"}
CLAIMS = (
    *(
        lasting_claim(f"lem-{x}.1", mode, WHO[mode], flow)
        for x, mode, flow in zip("GHI", MODES, (0.08, 0.08, 0.02), strict=True)
    ),
    *(width_claim(f"lem-{x}.1", mode, WHO[mode]) for x, mode in zip("GHI", MODES, strict=True)),
    *(share_claim(f"lem-{x}.2", mode, WHO[mode]) for x, mode in zip("GHI", MODES, strict=True)),
    claim(
        "cnn-P-law",
        "At constant v the irrelevant patterns cancel. Then |P_r| of the CNN is v/n times sqrt(2 - 2 delta_d), 1 "
        "or 0, with the probabilities 1/2 - theta/2 pi, theta/pi and 1/2 - theta/2 pi, where theta = arccos "
        "delta_d (ours).",
        "Lemma I.2",
        cnn_law,
        All(
            {"values": Vanishes(1e-6), "shares": Agrees(0.05, "share", "half of what an angle off by a fifth changes")}
        ),
        over("delta_d", -0.5, 0.0, 0.6),
        break_measure(lambda lab, point, seed: cnn_law(lab, {**point, "factor": 0.8}, seed)),
        rungs=(2, 9),
    ),
    *(
        running_claim(f"lem-{x}.3", mode, WHO[mode], flow)
        for x, mode, flow in zip("GHI", MODES, (300.0, 150.0, 300.0), strict=True)
    ),
)

"""Measurements of the router stage in flow and training: contrast, plateau, imbalance of a group."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.chen import initial, route
from derivations.chen.claims.tools import SETTINGS
from derivations.chen.nodes import frozen_strength, moment
from derivations.chen.parameters import Parameters
from derivations.contract import Initial

MANIFOLD: dict[str, Any] = {"M": 8, "J": 1, "K": 4, "d": 8, "rho": 64.0, "init": "specialised", "strength": 0.02}
LAWS_1 = {"gamma": SETTINGS[1]["gamma"]}
CLOSURE: dict[str, Any] = {"K": 3, "M": 6, "J": 4, "d": 6, "sigma_0": 0.05, "rho": 36.0, "nodes": 4}


def pair(lab: Any, until: float, **parameters: Any) -> Any:
    """Run the two-variable reduction."""
    return lab.integrate(tier="group2", until=until, save_points=41, **{**MANIFOLD, **parameters})


def prefactor(**parameters: Any) -> float:
    """Prefactor rho E[beta] E[alpha^3]/(8 K M^2) of the early law: D/s^4."""
    p = Parameters(**{**MANIFOLD, **parameters})
    return p.rho * moment(p, "beta", 1) * moment(p, "alpha", 3) / (8 * p.K * p.M**2)


def early_contrast(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the contrast D at the strength s, in the flow or in training (n = 8000).

    With `ratio` it is divided by its early law.
    """
    s = point["s"]
    if point.get("training"):
        run = lab.simulate(
            method="compressed", step_size=4e-3, batch=8000, until=round((s - 0.02) / 4e-3) * 4e-3, save_points=2,
            seed=seed, data_seed=seed, n_test=2, **MANIFOLD,
        )  # fmt: skip
        found = group_contrast(run["gcen"][0, -1])
        strength = run["feat"][0, -1].max(axis=(1, 2)).mean()
    else:
        run = pair(lab, s - 0.02)
        found, strength = float(run["D"][-1]), float(run["s"][-1])
    return found / (prefactor() * (strength**4 - 0.02**4)) if point.get("ratio") else found


def group_contrast(gcen: np.ndarray) -> float:
    """Contrast D of routers (M, K) in groups m mod K.

    It is the mean over clusters of the router inside the group minus the mean outside.
    """
    m, k = gcen.shape
    member = (np.arange(m) % k)[:, None] == np.arange(k)
    return float((gcen * member).sum() / member.sum() - (gcen * ~member).sum() / (~member).sum())


def training_against_pair(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the largest relative difference of D between training and the two-variable flow.

    Only times with 0.05 < D < 0.5 count.
    """
    run = lab.simulate(
        method="compressed", step_size=4e-3, batch=8000, until=1.2, save_points=31, seed=seed, data_seed=seed, n_test=2,
        **MANIFOLD,
    )  # fmt: skip
    flow = lab.integrate(tier="group2", until=1.2, save_points=31, **{**MANIFOLD, "rho": point.get("rho", 64.0)})
    found = np.array([group_contrast(g) for g in run["gcen"][0]])
    exact = flow["D"]
    inside = (exact > 0.05) & (exact < 0.5)
    return float(np.abs(found[inside] / exact[inside] - 1).max())


def plateau(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the final strength of specialists while the router is frozen, in the flow or on average in training."""
    m, until = point["M"], 1.4 * frozen_strength(Parameters()) * point["M"] ** (1 / 3)
    size = {**MANIFOLD, "M": m, "rho": 0.0}
    if not point.get("training"):
        run = lab.integrate(tier="group2", until=until, save_points=5, **size)
        return float(run["s"][-1]) / (frozen_strength(Parameters()) if point.get("ratio") else 1.0)
    run = lab.simulate(
        method="compressed", step_size=0.02, batch=4000, until=until + 0.4, save_points=40, seed=seed, data_seed=seed,
        n_test=2, **size,
    )  # fmt: skip
    return float(run["feat"][0, -8:].max(axis=(2, 3)).mean())


def outer_drift(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return -d gcen/dt of an expert outside a group, at h = 0, rho = 1, by the manifold flow.

    `group` is the size of the group, by default one. With `ratio` the drift is divided by its closed form.
    """
    m, k, s, own = int(point.get("M", 8)), int(point.get("K", 4)), point.get("s", 0.05), int(point.get("group", 1))
    feat = np.zeros((m, 1, k))
    feat[:own, 0, 0] = s
    feat[np.arange(own, m), 0, 1 + np.arange(m - own) % (k - 1)] = s
    p = Parameters(M=m, J=1, K=k, d=2 * k, rho=1.0)
    zero = np.zeros((m, k))
    start = initial.from_overlaps(p, feat, 0 * feat, zero, zero)
    drift = -float(lab.functions(start, "spec").flow(start.state)["gcen"][-1, 0])
    exact = own * moment(p, "beta", 1) * moment(p, "alpha", 3) * s**3 / (2 * k * m**3)
    return drift / exact if point.get("ratio") else drift


def contrast_at_end(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return D at T_2 = M^-2 over c E[beta] E[alpha^3] M^-8/(8 K), rho = c M^2; with `raw`, D itself."""
    m = point["M"]
    size = {**MANIFOLD, "M": m, "rho": float(m * m), "strength": 1e-6}
    size |= {"K": point["K"], "d": 2 * point["K"]} if "K" in point else {}
    run = lab.integrate(tier="group2", until=m**-2.0, save_points=3, rtol=1e-10, **size)
    d = float(run["D"][-1])
    return d if point.get("raw") else d / (prefactor(M=m, K=size["K"], d=size["d"], rho=float(m * m)) * m**-8.0)


def half_time(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the time at which D = 1/2, for rho = c M^2, from strength 1e-3.

    With `stall`, return the strength over its plateau.
    """
    if point.get("stall"):
        return stalled(lab, point, seed)
    run = lab.integrate(
        tier="group2", until=6.0, save_points=3, **{**MANIFOLD, "rho": 64.0 * point["c"], "strength": 1e-3}
    )
    return float(run["T_half"])


def stalled(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the strength at time 1.5, in setting 1 with a slow router, over its plateau c* M^(1/3)."""
    run = lab.integrate(tier="group2", until=1.5, save_points=3, **{**MANIFOLD, **LAWS_1, "rho": 64.0 * point["c"]})
    return float(run["s"][-1]) / (2 * frozen_strength(Parameters(**LAWS_1)))


def planted(lab: Any, point: Mapping[str, Any], delta: float, until: float = 2.0) -> Any:
    """Run the manifold flow with a small initial difference between the two experts of group 0.

    The claims on an imbalance, on loads and on shares use this run.
    """
    size = {**MANIFOLD, "M": point.get("M", 8), "K": point.get("K", 4), "d": 16}
    size["rho"] = float(size["M"] ** 2)
    start = initial.specialised(Parameters(**size))
    gcen = start.state["gcen"].copy()
    gcen[0, 0] += delta / 2
    gcen[size["K"], 0] -= delta / 2
    begun: Initial = dataclasses.replace(start, state={**start.state, "gcen": gcen})
    return lab.integrate(start=begun, tier="spec", until=until, save_points=81, rtol=1e-9, atol=1e-14, **size)


def growth_rate(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return d ln delta/d D below D = 0.003 over (M^2/(M - 1) + 1 - |M_k|/M) E[beta^2]/E[beta].

    With `when`, return the imbalance.
    """
    if "when" in point:
        return imbalance(lab, point, seed)
    run = planted(lab, point, 1e-7, until=0.45)  # D = 0.003 at t = 0.40 at the latest
    m, k = run["gcen"].shape[1:]
    delta = run["gcen"][:, 0, 0] - run["gcen"][:, k, 0]
    d = np.array([group_contrast(g) for g in run["gcen"]])
    inside = (d > 1e-5) & (d < 0.003)
    slope = np.polyfit(d[inside], np.log(delta[inside]), 1)[0]
    p = Parameters()
    return float(slope / ((m * m / (m - 1) + 1 - 1 / k) * moment(p, "beta", 2) / moment(p, "beta", 1)))


def imbalance(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the largest difference of the logits of a group at D = 0.05 or at time 2; it starts at 1e-3."""
    run = planted(lab, point, 1e-3)
    d = np.array([group_contrast(g) for g in run["gcen"]])
    at = int(np.argmax(d > 0.05)) if point["when"] == "early" else -1
    k = run["gcen"].shape[2]
    return float(2 * abs(run["gcen"][at, 0, 0] - run["gcen"][at, k, 0]))


def loads(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return |p - p'|/(p + p') of the two experts of group 0 on their cluster, at D = 0.05 or at time 2."""
    run = planted(lab, point, 1e-3)
    d = np.array([group_contrast(g) for g in run["gcen"]])
    at = int(np.argmax(d > 0.05)) if point["when"] == "early" else -1
    p = route.probabilities(1.5 * run["gcen"][at, :, 0])
    k = run["gcen"].shape[2]
    return float(abs(p[0] - p[k]) / (p[0] + p[k]))


def contamination(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return max |<theta, v>| over D at time 0.8 of training on the manifold."""
    run = lab.simulate(
        method="compressed", step_size=8e-3, batch=int(point["n"]), until=0.8, save_points=2, seed=seed, data_seed=seed,
        n_test=2, **MANIFOLD,
    )  # fmt: skip
    return float(np.abs(run["gfeat"][0, -1]).max() / group_contrast(run["gcen"][0, -1]))


def centre_output(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the largest contribution of centres to an output at time 0.4 of training, 8 sum_j <w_j, c>^3."""
    if point.get("share"):
        return own_share(lab, point, seed)
    s = point["sigma_0"]
    run = lab.simulate(
        method="compressed", step_size=0.01, batch=2000, until=0.4, save_points=2, seed=seed, data_seed=seed, n_test=2,
        M=4, J=4, K=4, d=8, rho=16.0, sigma_0=s,
    )  # fmt: skip
    return float(np.abs(8 * run["cen"][0, -1] ** 3).sum(axis=1).max())


def own_share(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the smallest p_m of an expert on its own cluster, times M, while D < 0.05."""
    run = planted(lab, point, 1e-3)
    gcen = run["gcen"][np.array([group_contrast(g) for g in run["gcen"]]) < 0.05]
    p = route.probabilities(2 * np.moveaxis(gcen, 1, 2))
    m, k = gcen.shape[1:]
    return float(m * p[:, np.arange(m) % k, np.arange(m)].min())


def output_size(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the largest output at T_2 = M^-2 over (2 T_2)^3; the contribution of the losers is included."""
    m = 4
    run = lab.integrate(seed=seed, until=m**-2.0, save_points=2, sigma_0=1e-4, nodes=4, M=m, J=4, K=4, d=8, rho=16.0)
    return float((8 * run["feat"][-1] ** 3).sum(axis=1).max() / (2 * m**-2.0) ** 3)


def specialist_lead(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return max |s - tau| at four times up to T_2; with `frozen`, s/tau at time 2.5 with a frozen router."""
    if point.get("frozen"):
        return float(lab.integrate(tier="group2", until=2.5, save_points=3, **{**MANIFOLD, "rho": 0.0})["s"][-1] / 2.5)
    m = 4
    run = lab.integrate(
        seed=seed, until=m**-2.0, save_points=5, sigma_0=point["sigma_0"], nodes=4, M=m, J=4, K=4, d=8, rho=16.0
    )  # fmt: skip
    return float(np.abs(run["feat"][1:].max(axis=(2, 3)) - run.time[1:, None]).max())


@functools.lru_cache(maxsize=64)
def recursion(lab: Any, seed: int, step: float) -> dict[str, np.ndarray]:
    """Return the state after 30 steps of the exact flow; trainings of every size are compared with it."""
    start = lab.initial(seed=seed, **CLOSURE)
    functions = lab.functions(start, "p3")
    state = {name: values.copy() for name, values in start.state.items()}
    for _ in range(30):
        moved = functions.flow(state)
        state = {name: state[name] + step * moved[name] for name in state}
    return state


def closure(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the relative distance of the weights in training from the recursion of the flow at time 0.6.

    It is the median over experts.
    """
    step = 0.02
    state = recursion(lab, seed, point.get("stretch", 1.0) * step)
    run = lab.simulate(
        method="compressed", step_size=step, batch=int(point["n"]), until=0.6, save_points=2, seed=seed, data_seed=seed,
        n_test=2, **CLOSURE,
    )  # fmt: skip
    distance = sum(((run[n][0, -1] - state[n]) ** 2).sum(axis=(1, 2)) for n in ("feat", "cen"))
    # The median over experts: one whose two largest overlaps almost tie amplifies any difference.
    return float(np.median(np.sqrt(distance / sum((state[n] ** 2).sum(axis=(1, 2)) for n in ("feat", "cen")))))


def starving(lab: Any, point: Mapping[str, Any], seed: int) -> dict[str, float]:
    """Return numbers on training in which some experts get no examples.

    They are the motion of these experts, and the change of the number of live experts.
    """
    run = lab.simulate(
        method="compressed", step_size=0.01, batch=2000, until=2.4, save_points=25, seed=seed, data_seed=seed,
        n_test=2, M=8, J=4, K=2, d=4, rho=64.0, sigma_0=0.05,
    )  # fmt: skip
    gcen, gfeat, feat = run["gcen"][0], run["gfeat"][0], run["feat"][0]
    slack = 4 * np.abs(gfeat).max(axis=(1, 2))
    gap = (gcen.max(axis=1, keepdims=True) - gcen).min(axis=2)  # the smallest gap over clusters, at beta = 1
    dead = gap - slack[:, None] > point.get("gap", 1.0)
    still = dead[:-1] & dead[1:]
    moved = np.abs(np.diff(feat, axis=0)).max(axis=(2, 3))
    live = (~dead).sum(axis=1)
    return {"moved": float((moved[still] > 0).any()), "dead": float(dead[-1].sum()), "rise": float(np.diff(live).max())}

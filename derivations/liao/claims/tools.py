"""Common functions of several claims: states, runs of the standard sweep, and controls."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.claim import Grid
from derivations.contract import Initial
from derivations.liao import SOURCE, initial, overlaps
from derivations.liao.parameters import Parameters

SMALL = {"m": 10, "m_star": 3}
"""The size of the standard sweep: large enough for every effect, small enough for d = 10^12 in a second."""
LARGE: Mapping[str, Grid | None] = {
    "quick": Grid(tuple({"d": 10**k} for k in (9, 10, 11, 12, 13)), 7),
    "full": Grid(tuple({"d": 10**k} for k in (9, 10, 11, 12, 13)), 20),
}
"""Dimensions past the transients: up to 10^8 one seed in eight has a near tie, two experts at one teacher."""
INITS = ("random", "orthogonal")
OVERLAPS = ("gamma1", "gamma2", "zeta1", "zeta2", "I1", "I2", "I3")


def at(place: str) -> Any:
    """Return the paper as a source, at the given place."""
    return SOURCE.at(place)


def random_rows(rng: np.random.Generator, m: int, m_star: int, d: int, norms: tuple[float, float]) -> np.ndarray:
    """Return student rows of random direction and norm, and an orthonormal teacher (2m + 2 m_star, d)."""
    teacher = np.linalg.qr(rng.normal(size=(d, 2 * m_star)))[0].T
    students = rng.normal(size=(2 * m, d))
    students *= rng.uniform(*norms, size=(2 * m, 1)) / np.linalg.norm(students, axis=1, keepdims=True)
    return np.vstack([students, teacher])


def from_rows(rows: np.ndarray, m: int, m_star: int, **parameters: Any) -> Initial:
    """Return the initial condition of explicit rows [V, W, V*, W*]."""
    names = ("V", "W", "V_star", "W_star")
    arrays: dict[str, np.ndarray] = dict(zip(names, np.split(rows, np.cumsum([m, m, m_star])), strict=True))
    return initial.from_weights(Parameters(m=m, m_star=m_star, d=rows.shape[1], **parameters), arrays)


def small_overlaps(rng: np.random.Generator, m: int, m_star: int, eps: float, **parameters: Any) -> Initial:
    """Return an initial condition with small overlaps, unit norms and an orthonormal teacher.

    All overlaps are eps times a standard normal number, except v_i.w_i = 0.
    """
    n = 2 * m + 2 * m_star
    shape = np.triu(rng.normal(size=(n, n)), 1)
    shape = shape + shape.T
    shape[2 * m :, 2 * m :] = 0
    index = np.arange(m)
    shape[index, m + index] = shape[m + index, index] = 0
    gram = np.eye(n) + eps * shape
    return initial.from_gram(Parameters(m=m, m_star=m_star, d=10**9, **parameters), gram, np.ones(m), np.ones(m))


def rows_of(start: Initial) -> np.ndarray:
    """Return the Gram matrix (n, n) of an initial condition."""
    return overlaps.assemble_gram(start.state, start.constants["teacher_gram"])


def jacobian(start: Initial, state: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return dF/dy of the exact flow at overlaps, with the norms and teachers of an initial condition."""
    from derivations.equations import jacobian as derivative  # which loads SymPy
    from derivations.liao.tiers import exact

    statement = exact.statement(start.parameters)
    return derivative.jacobian(statement, statement.numbers(start), state)


def optimum(start: Initial) -> dict[str, np.ndarray]:
    """Return the overlaps (m = m*) at which every student equals the teacher that it is matched to at the start."""
    m, gram = start.parameters.m, start.constants["teacher_gram"]
    matched = initial.greedy_matching(start.state["gamma2"] / start.constants["norm_w"][:, None] ** 2)
    teacher = np.argsort(matched)
    rows = np.concatenate([teacher, m + teacher, np.arange(2 * m)])
    return initial.components(gram[np.ix_(rows, rows)], m, m)


def recovery(lab: Any, point: Mapping[str, Any], seed: int) -> Any:
    """Run the standard run until sqrt(d) + 60, which is O(sqrt d) with nine times the typical escape time."""
    size = {**SMALL, **{k: v for k, v in point.items() if k in ("m", "m_star", "init", "degree")}}
    until = math.sqrt(point["d"]) + 60
    return lab.integrate(d=point["d"], seed=seed, until=until, stiff=True, save_points=3, rtol=1e-6, **size)


def stopped(lab: Any, point: Mapping[str, Any], seed: int, until: float, points: int = 2, start: Any = None) -> Any:
    """Run the flow of the standard size until a time, from the drawn initial condition or from `start`."""
    size = {**SMALL, "init": point["init"], "d": point["d"], "until": float(until), "save_points": points}
    return lab.integrate(seed=seed, start=start, stiff=True, rtol=1e-8, **size)


def continued(lab: Any, point: Mapping[str, Any], seed: int, run: Any) -> Any:
    """Return the initial condition that continues a run of the standard size."""
    begun = lab.initial(seed=seed, d=point["d"], init=point["init"], **SMALL)
    return dataclasses.replace(begun, state={name: run[name][-1] for name in OVERLAPS})


def staged(lab: Any, point: Mapping[str, Any], seed: int) -> list[tuple[float, Any]]:
    """Return (T_l, run that ends at T_l) for every recovery of an expert, in order.

    Each run starts at the end of the previous one.
    """
    times = recovery_times(recovery(lab, point, seed))
    found: list[tuple[float, Any]] = []
    start, run, before = None, None, 0.0
    for time in times[np.isfinite(times)]:
        if time > before:  # two teachers found in one step share a state
            run = stopped(lab, point, seed, time - before, start=start)
            start = continued(lab, point, seed, run)
        found.append((float(time), run))
        before = float(time)
    return found


def settled(lab: Any, point: Mapping[str, Any], seed: int, wait: float = 1.0) -> Any:
    """Run from the last recovery for the time 30 + 4.5 log d, at a tolerance of 1e-9; None if a recovery is missing.

    The slowest rate at the optimum is .269, that of the routers: at the end 1 - gamma1 has decayed by d^-2.4 exp(-16).
    `wait` < 1 reduces the time to this part of log d, from the last recovery of an expert on (control).
    """
    run = recovery(lab, point, seed)
    last = pair_times(run)[-1] if wait >= 1 else recovery_times(run)[-1]
    if not math.isfinite(last):
        return None
    start = continued(lab, point, seed, stopped(lab, point, seed, last))
    until = 30 + 4.5 * math.log(point["d"]) if wait >= 1 else wait * math.log(point["d"])
    size = {**SMALL, "init": point["init"], "d": point["d"], "until": until}
    return lab.integrate(start=start, seed=seed, save_points=3, rtol=1e-9, **size)


def pruned_run(lab: Any, point: Mapping[str, Any], seed: int) -> Any:
    """Return the run to prune: `settled`, or the standard run if a teacher was never recovered."""
    run = settled(lab, point, seed)
    return recovery(lab, point, seed) if run is None else run


def shortfall(lab: Any, run: Any, name: str, i: int, j: int) -> float:
    """Return 1 - gamma of student i and teacher j without cancellation.

    It is half the squared length of their difference e. After the pair has settled, e lies in the span of the other
    vectors. Then |e|^2 = p G^+ p, where p are the inner products of e with these vectors and G is their Gram matrix.
    These numbers are of order 1/d and known to 1e-12; 1 minus a number near 1 would not be.
    """
    state = {name: run[name][-1] for name in OVERLAPS}
    m, m_star = state["gamma1"].shape
    gram = overlaps.assemble_gram(state, np.eye(2 * m_star))
    row, column = (i, 2 * m + j) if name == "gamma1" else (m + i, 2 * m + m_star + j)
    others = np.delete(np.arange(len(gram)), row)
    p = (gram[row] - gram[column])[others]
    return float(p @ np.linalg.lstsq(gram[np.ix_(others, others)], p, rcond=1e-9)[0] / 2)


def recovery_times(run: Any, component: str = "gamma2") -> np.ndarray:
    """Return the first time at which each teacher is recovered, in order (m_star,); infinite if it never is."""
    return np.sort(run[f"T_{component}"].min(axis=0, initial=np.inf))


def pair_times(run: Any) -> np.ndarray:
    """Return the times at which router and expert of one student have recovered each teacher, sorted (m_star,)."""
    return np.sort(np.maximum(run["T_gamma1"], run["T_gamma2"]).min(axis=0))


def used(run: Any) -> np.ndarray:
    """Return the expert that recovered each teacher first (m_star,)."""
    return run["T_gamma2"].argmin(axis=0)


def unused(run: Any) -> np.ndarray:
    """Return the experts that recovered no teacher."""
    m = run["T_gamma2"].shape[0]
    taken = set(used(run).tolist())
    return np.array([i for i in range(m) if i not in taken])

"""Common parts of several claims: states, runs of the standard sweep, and ways to break a claim for its control."""

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
    """The paper, at a place in it."""
    return SOURCE.at(place)


def random_rows(rng: np.random.Generator, m: int, m_star: int, d: int, norms: tuple[float, float]) -> np.ndarray:
    """Student rows of random direction and norm beside an orthonormal teacher (2m + 2 m_star, d)."""
    teacher = np.linalg.qr(rng.normal(size=(d, 2 * m_star)))[0].T
    students = rng.normal(size=(2 * m, d))
    students *= rng.uniform(*norms, size=(2 * m, 1)) / np.linalg.norm(students, axis=1, keepdims=True)
    return np.vstack([students, teacher])


def from_rows(rows: np.ndarray, m: int, m_star: int, **parameters: Any) -> Initial:
    """The initial condition of explicit rows [V, W, V*, W*]."""
    names = ("V", "W", "V_star", "W_star")
    arrays: dict[str, np.ndarray] = dict(zip(names, np.split(rows, np.cumsum([m, m, m_star])), strict=True))
    return initial.from_weights(Parameters(m=m, m_star=m_star, d=rows.shape[1], **parameters), arrays)


def small_overlaps(rng: np.random.Generator, m: int, m_star: int, eps: float, **parameters: Any) -> Initial:
    """Unit norms, all overlaps eps times a standard normal number, v_i.w_i = 0, orthonormal teacher."""
    n = 2 * m + 2 * m_star
    shape = np.triu(rng.normal(size=(n, n)), 1)
    shape = shape + shape.T
    shape[2 * m :, 2 * m :] = 0
    index = np.arange(m)
    shape[index, m + index] = shape[m + index, index] = 0
    gram = np.eye(n) + eps * shape
    return initial.from_gram(Parameters(m=m, m_star=m_star, d=10**9, **parameters), gram, np.ones(m), np.ones(m))


def rows_of(start: Initial) -> np.ndarray:
    """The Gram matrix (n, n) of an initial condition."""
    return overlaps.assemble_gram(start.state, start.constants["teacher_gram"])


def jacobian(start: Initial, state: Mapping[str, np.ndarray]) -> np.ndarray:
    """dF/dy of the exact flow at overlaps, with the norms and teachers of an initial condition."""
    from derivations.equations import jacobian as derivative  # which loads SymPy
    from derivations.liao.tiers import exact

    statement = exact.statement(start.parameters)
    return derivative.jacobian(statement, statement.numbers(start), state)


def optimum(start: Initial) -> dict[str, np.ndarray]:
    """The overlaps (m = m*) at which every student equals the teacher that it is matched to at the start."""
    m, gram = start.parameters.m, start.constants["teacher_gram"]
    matched = initial.greedy_matching(start.state["gamma2"] / start.constants["norm_w"][:, None] ** 2)
    teacher = np.argsort(matched)
    rows = np.concatenate([teacher, m + teacher, np.arange(2 * m)])
    return initial.components(gram[np.ix_(rows, rows)], m, m)


def recovery(lab: Any, point: Mapping[str, Any], seed: int) -> Any:
    """The standard run, until sqrt(d) + 60: O(sqrt d) with a constant nine times the typical escape time."""
    size = {**SMALL, **{k: v for k, v in point.items() if k in ("m", "m_star", "init", "degree")}}
    until = math.sqrt(point["d"]) + 60
    return lab.integrate(d=point["d"], seed=seed, until=until, stiff=True, save_points=3, rtol=1e-6, **size)


def stopped(lab: Any, point: Mapping[str, Any], seed: int, until: float, points: int = 2, start: Any = None) -> Any:
    """The flow of the standard size until a time, from the drawn initial condition or from `start`."""
    size = {**SMALL, "init": point["init"], "d": point["d"], "until": float(until), "save_points": points}
    return lab.integrate(seed=seed, start=start, stiff=True, rtol=1e-8, **size)


def continued(lab: Any, point: Mapping[str, Any], seed: int, run: Any) -> Any:
    """The initial condition that goes on where a run of the standard size has ended."""
    begun = lab.initial(seed=seed, d=point["d"], init=point["init"], **SMALL)
    return dataclasses.replace(begun, state={name: run[name][-1] for name in OVERLAPS})


def staged(lab: Any, point: Mapping[str, Any], seed: int) -> list[tuple[float, Any]]:
    """(T_l, run that ends at T_l) for every recovery of an expert, in order, each run begun at the end of the last."""
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
    """The run from the last recovery for 30 + 4.5 log d, at a tolerance of 1e-9; `None` where one never comes.

    The slowest rate at the optimum is .269, of the routers: by the end 1 - gamma1 has decayed by d^-2.4 exp(-16).
    `wait` < 1 waits for that part of log d only, from the last expert on (control).
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
    """The run to prune: `settled`, and from the standard horizon on where a teacher was never recovered."""
    run = settled(lab, point, seed)
    return recovery(lab, point, seed) if run is None else run


def shortfall(lab: Any, run: Any, name: str, i: int, j: int) -> float:
    """1 - gamma of student i and teacher j without cancellation: half the squared length of their difference e.

    e lies in the span of the other vectors once the pair has settled, so that |e|^2 = p G^+ p with p the inner products
    of e with them and G their Gram matrix: numbers of order 1/d, known to 1e-12, and not 1 minus a number near 1.
    """
    state = {name: run[name][-1] for name in OVERLAPS}
    m, m_star = state["gamma1"].shape
    gram = overlaps.assemble_gram(state, np.eye(2 * m_star))
    row, column = (i, 2 * m + j) if name == "gamma1" else (m + i, 2 * m + m_star + j)
    others = np.delete(np.arange(len(gram)), row)
    p = (gram[row] - gram[column])[others]
    return float(p @ np.linalg.lstsq(gram[np.ix_(others, others)], p, rcond=1e-9)[0] / 2)


def recovery_times(run: Any, component: str = "gamma2") -> np.ndarray:
    """First time each teacher is recovered, in order (m_star,); infinite where it is not."""
    return np.sort(run[f"T_{component}"].min(axis=0, initial=np.inf))


def pair_times(run: Any) -> np.ndarray:
    """Return the times at which router and expert of one student have recovered each teacher, sorted (m_star,)."""
    return np.sort(np.maximum(run["T_gamma1"], run["T_gamma2"]).min(axis=0))


def used(run: Any) -> np.ndarray:
    """The expert that recovered each teacher first (m_star,)."""
    return run["T_gamma2"].argmin(axis=0)


def unused(run: Any) -> np.ndarray:
    """The experts that recovered no teacher."""
    m = run["T_gamma2"].shape[0]
    taken = set(used(run).tolist())
    return np.array([i for i in range(m) if i not in taken])

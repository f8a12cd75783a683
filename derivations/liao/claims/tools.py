"""What several claims share: states, runs of the standard sweep, and ways to break a claim for its control."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from derivations.contract import Initial
from derivations.liao import SOURCE, initial
from derivations.liao.parameters import Parameters

SMALL = {"m": 10, "m_star": 3}
"""The size of the standard sweep: large enough for every effect, small enough for d = 1e12 in seconds."""
DECADES = tuple({"d": 10**k} for k in (4, 6, 8, 10, 12))
INITS = ("random", "orthogonal")


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
    return initial.assemble_gram(start.state, start.constants["teacher_gram"])


def recovery(lab: Any, point: Mapping[str, Any], seed: int) -> Any:
    """The standard run, until sqrt(d) + 60: O(sqrt d) with a constant nine times the typical escape time."""
    size = {**SMALL, **{k: v for k, v in point.items() if k in ("m", "m_star", "init", "degree")}}
    until = math.sqrt(point["d"]) + 60
    return lab.integrate(d=point["d"], seed=seed, until=until, stiff=True, save_points=3, rtol=1e-6, **size)


def settled(lab: Any, point: Mapping[str, Any], seed: int) -> Any:
    """The run that ends 30 + 4.5 log d after the last recovery, when the recovered pairs have settled."""
    last = recovery_times(recovery(lab, point, seed))[-1]
    size = {**SMALL, **{k: v for k, v in point.items() if k in ("m", "m_star", "init")}}
    until = (last if math.isfinite(last) else math.sqrt(point["d"])) + 30 + 4.5 * math.log(point["d"])
    return lab.integrate(d=point["d"], seed=seed, until=until, stiff=True, save_points=3, rtol=1e-9, **size)


def settled_precisely(lab: Any, point: Mapping[str, Any], seed: int) -> Any:
    """As `settled`, for m = 8, m* = 2 at a tolerance that resolves 1 - gamma down to 1e-11; `None` if not recovered."""
    size = {"m": 8, "m_star": 2, "init": point["init"], "d": point["d"], "seed": seed, "save_points": 3}
    first = lab.integrate(until=math.sqrt(point["d"]) + 60, rtol=1e-6, stiff=True, **size)
    last = recovery_times(first)[-1]
    if not math.isfinite(last):
        return None
    return lab.integrate(until=last + 30 + 4.5 * math.log(point["d"]), rtol=1e-11, **size)


def mirrored(measure: Callable[..., Any], points: tuple[Mapping[str, Any], ...]) -> Callable[..., Any]:
    """The same measurements assigned to the wrong d (largest to smallest): shuffled data for a control."""
    known = [point["d"] for point in points]

    def shuffled(lab: Any, point: Mapping[str, Any], seed: int) -> Any:
        return measure(lab, {**point, "d": known[-1 - known.index(point["d"])]}, seed)

    return shuffled


def recovery_times(run: Any, component: str = "gamma2") -> np.ndarray:
    """First time each teacher is recovered, in order (m_star,); infinite where it is not."""
    return np.sort(run[f"T_{component}"].min(axis=0, initial=np.inf))


def pair_times(run: Any) -> np.ndarray:
    """When router and expert of the same student have recovered each teacher, in order (m_star,)."""
    return np.sort(np.maximum(run["T_gamma1"], run["T_gamma2"]).min(axis=0))


def used(run: Any) -> np.ndarray:
    """The expert that recovered each teacher first (m_star,)."""
    return run["T_gamma2"].argmin(axis=0)


def unused(run: Any) -> np.ndarray:
    """The experts that recovered no teacher."""
    m = run["T_gamma2"].shape[0]
    taken = set(used(run).tolist())
    return np.array([i for i in range(m) if i not in taken])

"""Measurements of stated claims: hitting times and final values of flows, of SGD and of its bands."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations import measures
from derivations.declare.claims.in_stages import path

RUNS = 200
"""Runs of compressed SGD that are compared with a band; the share inside has a standard error of 2 %."""
SAVED, LOOKS, CLOSE = 1001, 5, 1e-3
"""Saved points of a run; number of refinements of a flow until a time has the relative accuracy `CLOSE`."""
NUMERICAL = {"flow": 1e-6, "bands": 1e-4}
"""Methods without random runs, with the relative error of their numbers; that of bands is the error of quadrature."""
FEWEST_POINTS = 2**6
"""Smallest number of points of the tiers `sampled` and `mixed`."""
FEWER = 4
"""Ratio of the numbers of points that show the bias of order 1/N. With 2 the correction has more scatter. With 8 the
points of usual numbers would integrate fewer moments exactly, so that their bias would have another form.
"""
UNTIL = "until"
"""Name that `over` may contain besides parameters: the end of a run, for a law of the time."""


def measured(lab: Any, point: Mapping[str, Any], seed: int, asked: Mapping[str, Any]) -> float:
    """Return the value of a stated measure for one run: a hitting time (infinite: never), or a final value.

    Every seed draws other points for sampled means; with `fixed_start` in `asked` it draws nothing else. With
    `unbiased` the value is that of infinitely many points, up to the scatter between seeds. Means over N points have a
    bias of order 1/N that all seeds share; v(N) + (v(N) - v(N/4))/3 does not have this bias.
    """
    request = {**asked["parameters"], **point}
    if asked["engine"] in NUMERICAL:
        # A laboratory with another seed draws other points, just as it draws other starts.
        request["sample_seed"] = request.get("sample_seed", -lab.exhibit(0)) + seed
    draw = 0 if asked.get("fixed_start") else seed
    if not asked.get("unbiased"):
        return of_one_run(lab, request, draw, asked)
    count = max(int(request.get("points", lab.system.parameters().points)), FEWER * FEWEST_POINTS)
    whole, part = (of_one_run(lab, {**request, "points": n}, draw, asked) for n in (count, count // FEWER))
    if not np.isfinite(whole) and not np.isfinite(part):
        return whole
    return whole + (whole - part) / (FEWER - 1) if np.isfinite(whole) and np.isfinite(part) else float("nan")


def of_one_run(lab: Any, request: dict[str, Any], seed: int, asked: Mapping[str, Any]) -> float:
    """Return the value of a measure for the run with these parameters, which may include the end time."""
    request = dict(request)
    asked = {**asked, "until": request.pop(UNTIL, asked["until"])}
    if asked["engine"] == "bands":
        return of_bands(lab, request, seed, asked)
    several = bool(lab.system.parameters.declaration.stages)
    until = float(asked["until"]) if asked["until"] is not None else None
    if asked["engine"] != "flow":
        step = {"step_size": float(asked["step"])} if asked["step"] is not None else {}
        step |= {"batch": int(asked["batch"])} if asked["batch"] is not None else {}
        request |= {"seed": seed, "save_points": SAVED, **step}
        if several:
            return reading(*path(lab, asked["variable"], asked["engine"], until, **request), asked)[0]
        run = lab.simulate(method=asked["engine"], until=until, **request)
        return reading(np.asarray(run.time), np.asarray(run[asked["variable"]])[0], asked)[0]
    found = float("inf")
    for _ in range(LOOKS):
        if several:
            times, values = path(lab, asked["variable"], "flow", until, seed=seed, save_points=SAVED, **request)
        else:
            run = lab.integrate(seed=seed, until=until, save_points=SAVED, **request)
            times, values = np.asarray(run.time), np.asarray(run[asked["variable"]])
        found, after = reading(times, values, asked)
        if not np.isfinite(found) or after is None or times[1] <= CLOSE * found:
            break
        until = after  # early parts of a long run are evaluated again, between finer points
    return found


def of_bands(lab: Any, request: Mapping[str, Any], seed: int, asked: Mapping[str, Any]) -> float:
    """Return the value of a measure for SGD from its bands: at the end the mean, the standard deviation or the share
    inside, or a median time.

    The share is measured by runs of compressed SGD from the start of the bands.
    """
    quantity, until = asked["quantity"], float(asked["until"]) if asked["until"] is not None else None
    given = {"step_size": asked["step"], "batch": asked["batch"]}
    given = {name: value for name, value in given.items() if value is not None}
    if asked["sign"] is not None:
        text = f"first time {quantity} {asked['sign']} {asked['level']!r}"
        answer = lab.bands(seed=seed, until=until, of=[text], fresh_initial=True, **given, **request)
        hitting = answer.summary()["hitting"]
        return float(hitting[0]["quantiles"][2]) if hitting else float("nan")
    level = {} if asked["inside"] is None else {"level": asked["inside"]}
    answer = lab.bands(seed=seed, until=until, of=[f"final {quantity}"], **level, **given, **request)
    name = answer.place(quantity)
    if asked.get("spread"):
        return float(answer[f"{name}_sd"][-1])
    if asked["inside"] is None:
        return float(answer[f"{name}_centre"][-1])
    if f"{name}_low" not in answer.keys():
        return float("nan")
    run = lab.simulate(method="compressed", seed=seed, until=until, seeds=RUNS, save_points=2, **given, **request)
    ends = np.array([followed(values, asked)[-1] for values in np.asarray(run[asked["variable"]])])
    return float(((ends >= answer[f"{name}_low"][-1]) & (ends <= answer[f"{name}_high"][-1])).mean())


def of_whole_vectors(values: np.ndarray) -> np.ndarray:
    """Overlaps (time, unit, ...) of whole vectors, from those of their parts (time, block, unit, ...); others as given.

    >>> of_whole_vectors(np.ones((5, 3, 2, 2))).shape, of_whole_vectors(np.ones((5, 2, 2))).shape
    ((5, 2, 2), (5, 2, 2))
    """
    return values.sum(axis=1) if values.ndim == 4 else values


def followed(values: np.ndarray, asked: Mapping[str, Any]) -> np.ndarray:
    """Return one number for each time (time,) from the values (time, ...) of an order parameter.

    The number is the requested entry or, without an entry, the maximum, minimum or mean over all entries. Overlaps by
    blocks of the inputs (time, block, unit, ...) are summed over the blocks, unless the entry names one. An
    entry outside of the sizes of a run gives NaN.
    """
    if asked["entry"] is None or len(asked["entry"]) == 2:
        values = of_whole_vectors(values)
    values = np.abs(values) if asked["absolute"] else values
    if asked["entry"] is None:
        return measures.REDUCTIONS[asked["reduction"]](values.reshape(len(values), -1), axis=1)
    inside = all(n < size for n, size in zip(asked["entry"], values.shape[1:], strict=True))
    return values[(slice(None), *asked["entry"])] if inside else np.full(len(values), np.nan)


def reading(times: np.ndarray, values: np.ndarray, asked: Mapping[str, Any]) -> tuple[float, float | None]:
    """Return the value of a measure on one path, and for a time the first saved time after it."""
    path = followed(values, asked)
    if asked["sign"] is None:
        return float(path[-1]), None
    beyond = (path - asked["level"]) * (1.0 if asked["sign"] == ">=" else -1.0)
    found = crossed(times, beyond)
    return found, float(times[int(np.argmax(beyond >= 0))]) if np.isfinite(found) and found > 0 else None


def crossed(times: np.ndarray, beyond: np.ndarray) -> float:
    """Return the first time at which a path is not negative, by linear interpolation; infinite if never."""
    reached = np.flatnonzero(beyond >= 0)
    if not reached.size:
        return float("inf")
    k = int(reached[0])
    if k == 0:
        return float(times[0])
    share = -beyond[k - 1] / (beyond[k] - beyond[k - 1])
    return float(times[k - 1] + share * (times[k] - times[k - 1]))

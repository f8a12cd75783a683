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
    full, part = (of_one_run(lab, {**request, "points": n}, draw, asked) for n in (count, count // FEWER))
    if not np.isfinite(full) and not np.isfinite(part):
        return full
    return full + (full - part) / (FEWER - 1) if np.isfinite(full) and np.isfinite(part) else float("nan")


def of_one_run(lab: Any, request: dict[str, Any], seed: int, measure_options: Mapping[str, Any]) -> float:
    """Return the value of a measure for the run with these parameters, which may include the end time."""
    request = dict(request)
    measure_options = {**measure_options, "until": request.pop(UNTIL, measure_options["until"])}
    if measure_options["engine"] == "bands":
        return of_bands(lab, request, seed, measure_options)
    several = bool(lab.system.parameters.declaration.stages)
    until = float(measure_options["until"]) if measure_options["until"] is not None else None
    if measure_options["engine"] != "flow":
        step = {"step_size": float(measure_options["step"])} if measure_options["step"] is not None else {}
        step |= {"batch": int(measure_options["batch"])} if measure_options["batch"] is not None else {}
        request |= {"seed": seed, "save_points": SAVED, **step}
        if several:
            return reading(
                *path(lab, measure_options["variable"], measure_options["engine"], until, **request), measure_options
            )[0]
        run = lab.simulate(method=measure_options["engine"], until=until, **request)
        return reading(np.asarray(run.time), np.asarray(run[measure_options["variable"]])[0], measure_options)[0]
    measurement = float("inf")
    for _ in range(LOOKS):
        if several:
            times, values = path(
                lab, measure_options["variable"], "flow", until, seed=seed, save_points=SAVED, **request
            )
        else:
            run = lab.integrate(seed=seed, until=until, save_points=SAVED, **request)
            times, values = np.asarray(run.time), np.asarray(run[measure_options["variable"]])
        measurement, next_time = reading(times, values, measure_options)
        if not np.isfinite(measurement) or next_time is None or times[1] <= CLOSE * measurement:
            break
        until = next_time  # early parts of a long run are evaluated again, between finer points
    return measurement


def of_bands(lab: Any, request: Mapping[str, Any], seed: int, measure_options: Mapping[str, Any]) -> float:
    """Return the value of a measure for SGD from its bands: at the end the mean, the standard deviation or the share
    inside, or a median time.

    The share is measured by runs of compressed SGD from the start of the bands.
    """
    quantity, until = (
        measure_options["quantity"],
        float(measure_options["until"]) if measure_options["until"] is not None else None,
    )
    sgd_options = {"step_size": measure_options["step"], "batch": measure_options["batch"]}
    sgd_options = {name: value for name, value in sgd_options.items() if value is not None}
    if measure_options["sign"] is not None:
        text = f"first time {quantity} {measure_options['sign']} {measure_options['level']!r}"
        answer = lab.bands(seed=seed, until=until, of=[text], fresh_initial=True, **sgd_options, **request)
        hitting = answer.summary()["hitting"]
        return float(hitting[0]["quantiles"][2]) if hitting else float("nan")
    level = {} if measure_options["inside"] is None else {"level": measure_options["inside"]}
    answer = lab.bands(seed=seed, until=until, of=[f"final {quantity}"], **level, **sgd_options, **request)
    name = answer.place(quantity)
    if measure_options.get("spread"):
        return float(answer[f"{name}_sd"][-1])
    if measure_options["inside"] is None:
        return float(answer[f"{name}_centre"][-1])
    if f"{name}_low" not in answer.keys():
        return float("nan")
    run = lab.simulate(method="compressed", seed=seed, until=until, seeds=RUNS, save_points=2, **sgd_options, **request)
    ends = np.array([followed(values, measure_options)[-1] for values in np.asarray(run[measure_options["variable"]])])
    return float(((ends >= answer[f"{name}_low"][-1]) & (ends <= answer[f"{name}_high"][-1])).mean())


def of_whole_vectors(values: np.ndarray) -> np.ndarray:
    """Overlaps (time, unit, ...) of whole vectors, from those of their parts (time, block, unit, ...); others as given.

    >>> of_whole_vectors(np.ones((5, 3, 2, 2))).shape, of_whole_vectors(np.ones((5, 2, 2))).shape
    ((5, 2, 2), (5, 2, 2))
    """
    return values.sum(axis=1) if values.ndim == 4 else values


def followed(values: np.ndarray, measure_options: Mapping[str, Any]) -> np.ndarray:
    """Return one number for each time (time,) from the values (time, ...) of an order parameter.

    The number is the requested entry or, without an entry, the maximum, minimum or mean over all entries. Overlaps by
    blocks of the inputs (time, block, unit, ...) are summed over the blocks, unless the entry names one. An
    entry outside of the sizes of a run gives NaN.
    """
    if measure_options["entry"] is None or len(measure_options["entry"]) == 2:
        values = of_whole_vectors(values)
    values = np.abs(values) if measure_options["absolute"] else values
    if measure_options["entry"] is None:
        return measures.REDUCTIONS[measure_options["reduction"]](values.reshape(len(values), -1), axis=1)
    exists = all(n < size for n, size in zip(measure_options["entry"], values.shape[1:], strict=True))
    return values[(slice(None), *measure_options["entry"])] if exists else np.full(len(values), np.nan)


def reading(times: np.ndarray, values: np.ndarray, measure_options: Mapping[str, Any]) -> tuple[float, float | None]:
    """Return the value of a measure on one path, and for a time the first saved time after it."""
    path = followed(values, measure_options)
    if measure_options["sign"] is None:
        return float(path[-1]), None
    excess = (path - measure_options["level"]) * (1.0 if measure_options["sign"] == ">=" else -1.0)
    crossing = crossed(times, excess)
    return crossing, float(times[int(np.argmax(excess >= 0))]) if np.isfinite(crossing) and crossing > 0 else None


def crossed(times: np.ndarray, excess: np.ndarray) -> float:
    """Return the first time at which a path is not negative, by linear interpolation; infinite if never."""
    crossings = np.flatnonzero(excess >= 0)
    if not crossings.size:
        return float("inf")
    k = int(crossings[0])
    if k == 0:
        return float(times[0])
    share = -excess[k - 1] / (excess[k] - excess[k - 1])
    return float(times[k - 1] + share * (times[k] - times[k - 1]))

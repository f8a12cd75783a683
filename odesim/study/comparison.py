"""Flow against SGD, or any two runs, on one clock: distances per replica, with bands and intervals."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

import derivations
from odesim.errors import UsageError
from odesim.request.case import digest_of
from odesim.request.trajectory import Trajectory, Variable

BAND = (0.1, 0.5, 0.9)
RESAMPLES = 2000


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Two runs on the times of the second.

    `distance[name]` (replica, time) is max over entries |second - first| of a component, `overall` (replica,) its
    maximum over components and time; `interpolation` bounds what the first run's saved points cost.
    """

    first: Trajectory
    second: Trajectory
    times: np.ndarray
    reference: Mapping[str, np.ndarray]
    distance: Mapping[str, np.ndarray]
    interpolation: float

    @property
    def overall(self) -> np.ndarray:
        """The largest distance of each replica over all components and times."""
        return np.max([values.max(axis=1) for values in self.distance.values()], axis=0)

    def summary(self, seed: int = 0) -> dict[str, Any]:
        """Quantiles over replicas (the noise is heavy-tailed), with a bootstrap interval of the median."""
        overall = self.overall
        result: dict[str, Any] = {
            "replicas": int(overall.size),
            "distance_median": float(np.median(overall)),
            "distance_band_10_90": [float(q) for q in np.quantile(overall, [BAND[0], BAND[2]])],
            "distance_median_interval_95": bootstrap_median(overall, seed),
            "interpolation_error": self.interpolation,
        }
        result["components"] = {n: float(np.median(v.max(axis=1))) for n, v in self.distance.items()}
        return result

    def trajectory(self) -> Trajectory:
        """The comparison as a run that can be stored and drawn again: distances, and the curves of the figure."""
        curves = most_moving(self.reference)
        second = [with_replicas(self.second.state[name])[(slice(None), slice(None), *i)] for name, i in curves]
        first = [self.reference[name][(slice(None), slice(None), *i)] for name, i in curves]
        bands = np.array([np.quantile(values, BAND, axis=0) for values in second])
        labels = np.array([f"{name}[{', '.join(str(k + 1) for k in i)}]" for name, i in curves])
        state = {
            f"distance_{name}": Variable(("seed", "time"), values, f"max |difference| of {name}")
            for name, values in self.distance.items()
        }
        state["first"] = Variable(("curve", "time"), np.median(first, axis=1), "entries that move most, first run")
        for k, name in enumerate(("low", "median", "high")):
            state[f"second_{name}"] = Variable(("curve", "time"), bands[:, k], f"{BAND[k]:.0%} quantile, second run")
        names = {"curve_names": Variable(("curve",), labels, "which entries the curves are")}
        options = {"first": self.first.origin.method, "second": self.second.origin.method}
        return dataclasses.replace(
            self.second,
            time=self.times,
            state=state,
            extras=names,
            origin=dataclasses.replace(self.second.origin, method="compare", tier="compare", options=options),
            summary=self.summary(),
            statistics={},
            invariants={},
        )


@dataclasses.dataclass(frozen=True)
class Request:
    """What names a stored comparison: the system and the digests of both runs, or of the request for both."""

    system: Any
    seed: int | None
    parts: Mapping[str, Any]

    def request(self) -> dict[str, Any]:
        """Everything that determines the answer."""
        return {"method": "compare", "system": derivations.reference(self.system), **self.parts}

    @property
    def digest(self) -> str:
        """Twelve hexadecimal characters that name the comparison."""
        return digest_of(self.request())


def bootstrap_median(values: np.ndarray, seed: int = 0) -> list[float] | None:
    """A 95 % percentile interval of the median by resampling replicas; `None` for fewer than three."""
    if values.size < 3:
        return None
    rng = np.random.default_rng(seed)
    medians = np.median(rng.choice(values, (RESAMPLES, values.size)), axis=1)
    return [float(q) for q in np.quantile(medians, [0.025, 0.975])]


def compare(first: Trajectory, second: Trajectory) -> Comparison:
    """Compare two runs of one system; raises `UsageError` where clocks, components or sizes differ, and says why."""
    if first.origin.system != second.origin.system:
        raise UsageError(f"cannot compare a run of {first.origin.system} with one of {second.origin.system}")
    if first.clock != second.clock:
        raise UsageError(f"the clocks differ: {first.clock!r} against {second.clock!r}")
    names = shared_components(first, second)
    times, cost = second.time, 0.0
    if times[-1] > first.time[-1] * (1 + 1e-12):
        raise UsageError(
            f"the first run ends at time {first.time[-1]:g}, before the second at {times[-1]:g}: run it longer"
        )
    reference, distance = {}, {}
    for name in names:
        values, error = on_times(first, name, times)
        reference[name], cost = values, max(cost, error)
        other = with_replicas(second.state[name])
        difference = np.abs(other - values)
        distance[name] = difference.reshape(*difference.shape[:2], -1).max(axis=2)
    return Comparison(first, second, times, reference, distance, cost)


def shared_components(first: Trajectory, second: Trajectory) -> list[str]:
    """The components both runs hold with the same dimensions and sizes, scalars over time left out."""
    names = []
    for name in first.state:
        if name not in second.state or set(first.state[name].dims) <= {"time", "seed"}:
            continue
        shapes = [with_replicas(run.state[name]).shape[2:] for run in (first, second)]
        if shapes[0] != shapes[1]:
            raise UsageError(f"component {name} has sizes {shapes[0]} in the first run and {shapes[1]} in the second")
        names.append(name)
    if not names:
        raise UsageError(
            f"the runs share no component: {', '.join(first.state)} against {', '.join(second.state)} "
            "(compare tier exact, or two runs of one tier)"
        )
    return names


def with_replicas(variable: Variable) -> np.ndarray:
    """The values with a leading axis of replicas, of length one for a flow."""
    return variable.values if "seed" in variable.dims else variable.values[None]


def on_times(run: Trajectory, name: str, times: np.ndarray) -> tuple[np.ndarray, float]:
    """A component at other times (replica, time, ...) by cubic splines, and how far half the points would be off."""
    values = with_replicas(run.state[name])
    if run.time.size == times.size and np.allclose(run.time, times, rtol=1e-9, atol=1e-12):
        return values, 0.0
    from scipy.interpolate import CubicSpline

    if run.time.size < 8:
        raise UsageError(f"the first run saved {run.time.size} times only, too few to read it between them")
    fine = CubicSpline(run.time, values, axis=1)(times)
    coarse = CubicSpline(run.time[::2], values[:, ::2], axis=1)(np.minimum(times, run.time[::2][-1]))
    # Halving the spacing of a cubic spline divides its error by about 16; 15 of the 16 parts are the difference.
    return fine, float(np.abs(fine - coarse).max() / 15)


def most_moving(reference: Mapping[str, np.ndarray], count: int = 6) -> list[tuple[str, tuple[int, ...]]]:
    """The entries of the first run that move most, largest first, each symmetric pair once."""
    moves = []
    for name, values in reference.items():
        span = np.ptp(values[0], axis=0)
        for index in np.ndindex(span.shape):
            if name in ("I1", "I2") and len(index) == 2 and index[0] >= index[1]:
                continue
            moves.append((float(span[index]), name, index))
    moves.sort(key=lambda move: -move[0])
    return [(name, index) for _, name, index in moves[:count]]


def draw(run: Any) -> Any:
    """The entries that move most, first run as lines and second as bands, above the distances over time.

    `run` is the data set of `Comparison.trajectory()`.
    """
    from matplotlib.figure import Figure

    colours = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
    figure = Figure(figsize=(7.2, 5.4), layout="constrained")
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
    time = run["time"].values
    for k, name in enumerate(run["curve_names"].values):
        top.fill_between(time, run["second_low"][k], run["second_high"][k], color=colours[k], alpha=0.25, linewidth=0)
        top.plot(time, run["second_median"][k], ":", color=colours[k], linewidth=1.8)
        top.plot(time, run["first"][k], "-", color=colours[k], label=str(name))
    replicas = run.sizes["seed"]
    top.plot([], [], "-", color="0.3", label="first: " + run.attrs.get("first", "run"))
    label = f"second: {run.attrs.get('second', 'run')}" + (f",\nmedian of {replicas}, 10-90 %" if replicas > 1 else "")
    top.plot([], [], ":", color="0.3", linewidth=1.8, label=label)
    top.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    top.set_ylabel("overlap")
    names = [name for name in run if str(name).startswith("distance_")]
    for name, marker in zip(names, "osv^<>D*PX", strict=False):
        low, middle, high = np.quantile(run[name].values, BAND, axis=0)
        every = max(1, time.size // 12)
        bottom.plot(
            time, middle, marker=marker, markevery=every, markersize=3, label=str(name).removeprefix("distance_")
        )
        bottom.fill_between(time, low, high, alpha=0.15, linewidth=0)
    if any((run[name].values > 0).any() for name in names):
        bottom.set_yscale("log")
    bottom.set_ylabel("max |difference|")
    bottom.set_xlabel("time")
    bottom.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure

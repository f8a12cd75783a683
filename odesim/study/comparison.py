"""Flow against SGD, or any two runs, on one clock: distances per replica, with bands and intervals."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from odesim.errors import UsageError
from odesim.request.case import digest_of
from odesim.request.shown import Result
from odesim.request.trajectory import SNAPSHOTS, Trajectory, Variable
from odesim.study import agreement, own_samples, panels
from odesim.study.replicas import on_times, with_replicas

if TYPE_CHECKING:
    import xarray

    from odesim.study.flow_band import FlowBand

NO_BAND = (
    "no band: compare computes one only for SGD that it simulates itself; odesim.bands(system, initial=..) gives the "
    "band from the start of your run"
)
"""Reason in a comparison of two runs that exist already."""
BAND = (0.1, 0.5, 0.9)
RESAMPLES = 2000
DIMENSION = "d"
"""Name of the input dimension among the parameters of a run."""


@dataclasses.dataclass(frozen=True)
class Comparison(Result):
    """Comparison of two runs of one system at the saved times of the second run.

    Attributes:
        first, second: The two trajectories.
        times: Times of the second run (time,), in the unit of the clock.
        reference: Components of the first run at these times by name (replica, time, ...).
        distance: Largest difference of any entry by component (replica, time).
        interpolation: Bound on the error of interpolating the first run at these times.
        asked: The request.
        gaussian: For SGD on a user's own samples: the comparison of the first run with SGD on Gaussian inputs.
        band: For a comparison of flow and SGD: the 90 % band of SGD around the flow, or the reason why there is none.

    Example:
        >>> import odesim
        >>> found = odesim.compare("liao", m=2, m_star=1, d=100, step_size=1e-3, batch=64, seeds=3, until=1.0, seed=0)
        >>> found.overall.shape, sorted(found.judgements)[:2]
        ((3,), ['I1', 'I2'])
    """

    first: Trajectory
    second: Trajectory
    times: np.ndarray
    reference: Mapping[str, np.ndarray]
    distance: Mapping[str, np.ndarray]
    interpolation: float
    asked: Any = dataclasses.field(default=None, repr=False, compare=False)
    gaussian: "Comparison | None" = dataclasses.field(default=None, repr=False, compare=False)
    band: "FlowBand | str | None" = dataclasses.field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        first, second = (f"{run.origin.method} ({run.origin.tier})" for run in (self.first, self.second))
        summary = self.summary()
        count = "1 replica" if summary["replicas"] == 1 else f"{summary['replicas']} replicas"
        return "\n".join(
            [
                f"Comparison of {self.second.origin.name}: {first} against {second}, until {self.times[-1]:.6g}",
                f"  {count}, median distance {summary['distance_median']:.4g}",
                f"  {summary['agreement']}",
                *([f"  {share}"] if (share := self._inside(summary)) else []),
                *(f"  {name}: {judged['sentence']}" for name, judged in summary["judgements"].items()),
                *(f"  {note}" for note in summary.get("notes", [])),
            ]
        )

    @property
    def overall(self) -> np.ndarray:
        """Largest distance of each replica over all components and times (replica,)."""
        return np.max([values.max(axis=1) for values in self.distance.values()], axis=0)

    def summary(self, seed: int = 0) -> dict[str, Any]:
        """Return the comparison in numbers and sentences, by name.

        Arguments:
            seed: Seed of the bootstrap.

        Returns:
            Median and quantiles of the distance over replicas, and the 95 % bootstrap interval of the median. For every
            component: its distance, its distance divided by its range, and the judgement of agreement as a sentence.
        """
        overall = self.overall
        result: dict[str, Any] = {
            "replicas": int(overall.size),
            "distance_median": float(np.median(overall)),
            "distance_band_10_90": [float(q) for q in np.quantile(overall, [BAND[0], BAND[2]])],
            "distance_median_interval_95": bootstrap_median(overall, seed),
            "interpolation_error": self.interpolation,
        }
        result["components"] = {n: float(np.median(v.max(axis=1))) for n, v in self.distance.items()}
        # Overlaps and growing quantities cannot share one number, so each is in units of its range.
        ranges = {name: float(np.ptp(values)) for name, values in self.reference.items()}
        result["components_over_range"] = {
            name: distance / ranges[name] if ranges[name] > 0 else None
            for name, distance in result["components"].items()
        }
        result["standard_errors"] = {
            name: ratio(*offset_pair, float(np.abs(self.reference[name]).max()))
            for name, offset_pair in self.offsets().items()
        }
        result["agreement"] = agreement.overall(self.judgements)
        result["judgements"] = {name: judgement.record() for name, judgement in self.judgements.items()}
        if self.band is not None:
            result |= {"band": self.band} if isinstance(self.band, str) else self.band.summary()
        if self.gaussian is not None:
            result |= own_samples.told(self.gaussian, self.second)
        if self.notes:
            result["notes"] = self.notes
        return result

    @functools.cached_property
    def judgements(self) -> Mapping[str, agreement.Judgement]:
        """Judgement of every component: agreement within a margin over the whole run, a difference, or neither."""
        flow = [run.origin.method == "flow" for run in (self.first, self.second)]
        judgements = {}
        for name, values in self.reference.items():
            first, second = (_entries(v) for v in (values, with_replicas(self.second.state[name])))
            differences = agreement.differences(first, second, (not flow[0], not flow[1]), self.interpolation)
            judgements[name] = agreement.judge(differences, self.times, first)
        return judgements

    @property
    def notes(self) -> list[str]:
        """Warnings as sentences: replicas that end in two groups, by component, and noise that the flow neglects."""
        sentences = []
        for name, values in self.reference.items():
            index = most_moving(values)
            entry = (slice(None), slice(None), *index)
            sentence = agreement.groups_sentence(
                with_replicas(self.second.state[name])[entry], float(np.ptp(values[entry]))
            )
            if sentence:
                sentences.append(f"{_labelled(name, index)}, {sentence}")
        if self.gaussian is not None:
            sentences.append(own_samples.sentence(self, self.gaussian))
        noise = self._noise()
        return [*sentences, noise] if noise else sentences

    def _noise(self) -> str:
        """Return the sentence on a large step times d over batch, if the clock of the flow counts step sizes.

        Equations of the online limit contain that noise (`Dynamics.noisy`).
        """
        system = self.second.origin.known
        if system is not None and getattr(system.stage(self.second.origin.stage), "noisy", False):
            return ""
        options, dimension = self.second.origin.options, self.second.origin.parameters.get(DIMENSION)
        step_size, batch, steps = options.get("step_size"), options.get("batch"), self.second.step
        if self.first.origin.method != "flow" or not (step_size and batch and dimension) or steps is None:
            return ""
        per_step = (self.times[-1] - self.times[0]) / max(steps[-1] - steps[0], 1)
        if abs(per_step / step_size - 1) > 1e-6:
            return ""
        return agreement.noise_sentence(step_size, dimension, batch)

    def dataset(self) -> "xarray.Dataset":
        """Return the comparison as a labelled data set.

        Returns:
            An `xarray.Dataset` of distances, standard errors and the curves of the figure.
        """
        return self.trajectory().dataset()

    def offsets(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Return the deviation of the mean of the replicas from the first run, with its standard error.

        Returns:
            Two arrays (time,) for each component: the difference between the mean of the replicas and the first run,
            and its standard error. Both are root mean squares over the entries. Empty for fewer than two replicas.
        """
        deviations = {}
        for name, first in self.reference.items():
            second = with_replicas(self.second.state[name])
            replicas = [len(second), *([len(first)] if len(first) > 1 else [])]
            if len(second) < 2:
                continue
            spread = second.var(axis=0, ddof=1) / replicas[0]
            if len(first) > 1:
                spread = spread + first.var(axis=0, ddof=1) / replicas[1]
            off = (second.mean(axis=0) - first.mean(axis=0)).reshape(len(self.times), -1)
            sizes = spread.reshape(len(self.times), -1)
            deviations[name] = np.sqrt((off**2).mean(axis=1)), np.sqrt(sizes.mean(axis=1))
        return deviations

    def trajectory(self) -> Trajectory:
        """Return the comparison as a run that can be stored and drawn again.

        Returns:
            A `Trajectory` with the distances and the curves of the figure.
        """
        state = {
            f"distance_{name}": Variable(("seed", "time"), values, f"max |difference| of {name}")
            for name, values in self.distance.items()
        }
        state |= self._panels()
        state |= panels.variables(self.first, self.second, self.reference, self.times)
        if self.gaussian is not None:
            state |= own_samples.variables(self.gaussian)
        if self.band is not None and not isinstance(self.band, str):
            state |= self.band.arrays
        for name, (off, expected) in self.offsets().items():
            state[f"off_{name}"] = Variable(("time",), off, f"rms over entries of mean of replicas - first run, {name}")
            state[f"chance_{name}"] = Variable(("time",), expected, f"rms standard error of that difference, {name}")
        for name, judgement in self.judgements.items():
            meaning = f"largest |difference| of any entry inside its 95 % interval, {name}: {judgement.sentence}"
            state[f"bound_{name}"] = Variable(("time",), judgement.bounds, meaning)
        options = {"first": self.first.origin.method, "second": self.second.origin.method}
        options |= {
            key: self.second.origin.options[key] for key in ("step_size", "batch") if key in self.second.origin.options
        }
        return dataclasses.replace(
            self.second,
            time=self.times,
            state=state,
            extras=self._judged(),
            origin=dataclasses.replace(self.second.origin, method="compare", tier="compare", options=options),
            summary=self.summary(),
            statistics={},
            invariants={},
            asked=self.asked,
        )

    @staticmethod
    def _inside(summary: Mapping[str, Any]) -> str:
        """The share of replicas and times inside the band of the flow as a sentence; "" where there is no band."""
        if "inside_90" not in summary:
            return ""
        error = summary["inside_90_standard_error"]
        spread = "" if error is None else f" +- {error:.2g}"
        return f"{summary['inside_90']:.3f}{spread} of replicas and times inside the {summary['band']}"

    def _judged(self) -> dict[str, Variable]:
        """Sentences and margins of the components, and the sentences on the whole comparison, as variables."""
        judged = self.judgements.values()
        sentences = [agreement.overall(self.judgements), *self.notes]
        return {
            "judged": Variable(("component",), np.array(list(self.judgements)), "components that were judged"),
            "judgement": Variable(("component",), np.array([j.sentence for j in judged]), "agreement by component"),
            "margin": Variable(("component",), np.array([j.margin for j in judged]), "margin of agreement"),
            "notes": Variable(
                ("note",), np.array(sentences), "judgement of the whole comparison, and what explains it"
            ),
        }

    def _panels(self) -> dict[str, Variable]:
        """Return the entry with the largest change of every component: median of the first run, and every replica of
        the second.
        """
        panel_variables = {}
        for name, values in self.reference.items():
            index = most_moving(values)
            entry = (slice(None), slice(None), *index)
            label = _labelled("", index)
            meaning = f"{self.first.state[name].meaning or self.second.state[name].meaning or name}, entry {label}"
            panel_variables[f"panel_first_{name}"] = Variable(("time",), np.median(values[entry], axis=0), meaning)
            second = with_replicas(self.second.state[name])[entry]
            panel_variables[f"panel_second_{name}"] = Variable(("seed", "time"), second, meaning)
        return panel_variables


def _labelled(name: str, index: tuple[int, ...]) -> str:
    """An entry of a component as a reader counts it, from 1."""
    return f"{name}[{', '.join(str(k + 1) for k in index)}]"


def _entries(values: np.ndarray) -> np.ndarray:
    """Values (replica, time, entry) of a component of any shape."""
    return values.reshape(*values.shape[:2], -1)


def ratio(off: np.ndarray, expected: np.ndarray, size: float) -> float | None:
    """Return the deviation of the mean of the replicas in standard errors, root mean square over entries and times.

    It is about 1 if the two agree, and None if the noise is below the rounding of values of that `size`.
    """
    noisy = expected > 1e-12 * size
    return float(np.sqrt(np.mean((off[noisy] / expected[noisy]) ** 2))) if noisy.any() else None


@dataclasses.dataclass(frozen=True)
class Request:
    """Request that names a stored comparison: the system and the digests of both runs, or of the request for both.

    `system` is the reference of the system, `name` its name.
    """

    system: str
    name: str
    seed: int | None
    parts: Mapping[str, Any]

    def request(self) -> dict[str, Any]:
        """Everything that determines the answer."""
        return {"method": "compare", "system": self.system, **self.parts}

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
    """Compare two runs of one system. Raises `UsageError` with the reason if clocks, components or sizes differ."""
    first_origin, second_origin = first.origin, second.origin
    if first_origin.name != second_origin.name or not (
        first_origin.system == second_origin.system or first_origin.declaration
    ):
        raise UsageError(f"cannot compare a run of {first_origin.name} with one of {second_origin.name}")
    if first_origin.declaration != second_origin.declaration:
        raise UsageError(f"cannot compare the two runs: their models are both called {first_origin.name} but differ")
    clocks = (first.clock, second.clock)
    if clocks[0] != clocks[1]:
        hint = "; observe the log with its times (times=.., or an array time)" if SNAPSHOTS in clocks else ""
        raise UsageError(f"the clocks differ: {first.clock!r} against {second.clock!r}{hint}")
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
        second_origin = with_replicas(second.state[name])
        difference = np.abs(second_origin - values)
        distance[name] = difference.reshape(*difference.shape[:2], -1).max(axis=2)
    return Comparison(first, second, times, reference, distance, cost)


def compare_stored(first: Trajectory, second: Trajectory) -> Comparison:
    """Compare two runs that exist already, with the reason why a flow beside SGD has no band here."""
    comparison = compare(first, second)
    beside_flow = first.origin.method == "flow" != second.origin.method
    return dataclasses.replace(comparison, band=NO_BAND) if beside_flow else comparison


def shared_components(first: Trajectory, second: Trajectory) -> list[str]:
    """Return the components of both runs with the same dimensions and sizes, without scalars over time."""
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
            f"the runs share no component: {', '.join(first.state)} against {', '.join(second.state)}"
            "; run both at tier=exact, or at the same tier"
        )
    return names


def most_moving(values: np.ndarray) -> tuple[int, ...]:
    """Return the index of the entry of values (replica, time, ...) with the largest change; of equal ones the first."""
    span = np.ptp(values[0], axis=0)
    return tuple(map(int, np.unravel_index(np.argmax(span), span.shape)))

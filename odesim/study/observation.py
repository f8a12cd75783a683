"""A training run of the user as a trajectory of order parameters: overlaps of snapshots of weights."""

import contextlib
import dataclasses
import functools
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from derivations.contract import Initial, Labelled, Model, ScalarModel, System, UsageError, load, packed
from odesim.machine import streams
from odesim.request.case import Case, digest_of, plain
from odesim.request.initial_arrays import read_arrays
from odesim.request.trajectory import SNAPSHOTS, Origin, Outcome, Trajectory, Variable
from odesim.sgd.observed import flow_of, population_values
from odesim.study import checkpoints
from odesim.study.observed_clock import speed

Snapshots = str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | Mapping[str, Any]
"""Weights: a file, several files, or arrays by name."""
FIXED = 1e-9
"""Relative tolerance for a teacher given at every time, whose values may change by rounding in float32."""

START_FILE = r"the initial (file|state|arrays)|(the file of )?--initial( FILE\.npz)?|the file(?= (has|brings|lacks))"
"""Names of the initial arrays in the messages of a system."""
FLOW = ("tier", "seed", "until", "save_points", "save_at", "rtol", "atol", "backend", "solver", "step")
"""Options of a flow that do not affect observed weights."""


@dataclasses.dataclass(frozen=True, eq=False)
class Observation:
    """Request of `odesim observe`: the case whose start is the first snapshot, all snapshots, and their times.

    `snapshots[k]` has the arrays of an initial file at `times[k]`; `others` are those of further replicas, None if the
    arrays have no axis of replicas; `timed` is True if the times were given; `source` is the digest of all input, and
    `given` its name in messages.
    """

    case: Case
    model: Model
    snapshots: tuple[Mapping[str, np.ndarray], ...]
    times: np.ndarray
    source: str
    given: str
    others: tuple[tuple[Mapping[str, np.ndarray], ...], ...] | None = None
    timed: bool = False

    @classmethod
    def build(
        cls, system: str | System, snapshots: Snapshots, parameters: Mapping[str, Any] | None = None, *,
        stage: str | None = None, names: Mapping[str, str] | None = None, times: Sequence[float] | None = None,
    ) -> "Observation":  # fmt: skip
        """Check snapshots and divide them by time (see `observe` for their arrays).

        For several files and for checkpoints, `names` are the slots of their arrays, and `times` the times of the
        snapshots (`odesim.study.checkpoints`).

        Raises `UsageError` for a system whose model has no weights in d dimensions, for arrays that are missing, have
        inconsistent shapes or are not finite, for a teacher that moves, and for times that do not increase.
        """
        several = not isinstance(snapshots, str | os.PathLike | Mapping)
        files = list(snapshots) if several else [snapshots] if not isinstance(snapshots, Mapping) else []
        name = f"{os.path.basename(files[0])}" if files else "weights="
        with _naming(name):
            bare = Case.build(system, parameters, stage=stage)
            if files and (several or names or times is not None or Path(files[0]).suffix != ".npz"):
                snapshots = checkpoints.read(files, names or {}, times, _vectors(bare))
            elif names or times is not None:
                raise UsageError(
                    "names and times are only for files: arrays have the names of the declaration, and "
                    "`time` is one of them"
                )
            return cls._build(bare, system, snapshots, parameters, name)

    @classmethod
    def _build(
        cls, bare: Case, system: str | System, snapshots: Any, parameters: Mapping[str, Any] | None, name: str,
    ) -> "Observation":  # fmt: skip
        arrays, source = read_arrays(snapshots)
        assert arrays is not None and source is not None
        arrays = dict(arrays)
        times = arrays.pop("time", None)
        model = (
            bare.system.dynamics(bare.stage).truth(bare.parameters) if bare.system.dynamics(bare.stage).model else None
        )
        if not isinstance(model, Model) or model.weights is None:
            raise UsageError(f"stage {bare.stage} of {bare.system.name} has no weights in d dimensions to observe")
        for name, values in arrays.items():
            if not np.isfinite(values).all():
                raise UsageError(f"{name} holds a number that is not finite{_where(values)}: a run that diverged?")
        vectors = _vectors(bare)
        replicas = _replicas(arrays, vectors)
        divided, *later_replicas = [_divided(replica, vectors) for replica in replicas or (arrays,)]
        case = Case.build(system, parameters, initial=divided[0], stage=bare.stage)
        return cls(
            case, case.system.dynamics(case.stage).truth(case.parameters), divided, _times(times, len(divided)), source,
            name, tuple(later_replicas) if replicas else None, times is not None,
        )  # fmt: skip

    @property
    def system(self) -> System:
        """System in whose order parameters the weights are measured."""
        return self.case.system

    @property
    def name(self) -> str:
        """Name of the system, with which the name of the default folder begins."""
        return self.system.name

    @property
    def seed(self) -> int:
        """Seed of the case, which draws nothing."""
        return self.case.seed

    def request(self) -> dict[str, Any]:
        """Everything that determines the answer."""
        case_request = {name: value for name, value in self.case.request().items() if name not in FLOW}
        return {**case_request, "method": "observed", "initial": self.source}

    @functools.cached_property
    def digest(self) -> str:
        """Identifier of the request: twelve hexadecimal characters."""
        return digest_of(self.request())

    def trajectory(self) -> Trajectory:
        """Return the order parameters at all times, with dims ("time", ..), or ("seed", "time", ..) for several
        replicas.

        Raises `UsageError` if one is not finite, because a weight vector of length zero has no direction.
        """
        case, stage = self.case, self.system.dynamics(self.case.stage)
        rng = streams.generator(case.seed, "initial")
        with _naming(self.given):
            replicas = [
                [load(stage.enter)(case.parameters, arrays, rng) for arrays in snapshots]
                for snapshots in (self.snapshots, *(self.others or ()))
            ]
        initials = replicas[0]
        saved = np.array([[self._saved(initial) for initial in row] for row in replicas])
        observables = self.model.observe(initials[0].parameters, saved)
        unknown = self._unknown(initials[0])
        state = {
            name: Variable(("seed", "time", *dims), values, text) for name, (dims, values, text) in observables.items()
        }
        for name, values in state.items():
            bad = values.values if self.others is not None else values.values[0]
            if not np.isfinite(bad).all():
                raise UsageError(f"{name} is not finite{_where(bad)}: is a weight vector zero there?")
        state |= self._population_values(initials[0], observables)
        state = {name: values for name, values in state.items() if name not in unknown}
        if self.others is None:
            state = {name: Variable(v.dims[1:], v.values[0], v.meaning) for name, v in state.items()}
        fixed = self.model.fixed(initials[0]) if isinstance(self.model, ScalarModel) else {}
        end = float(self.times[-1])
        count = {} if self.others is None else {"replicas": len(replicas)}
        overlaps = {name: np.asarray(values) for name, (_, values, _) in observables.items() if name not in unknown}
        final = {name: float(v.values[-1]) for name, v in state.items() if v.values.ndim == 1}
        return Trajectory(
            time=self.times,
            state=state,
            extras={name: Variable(dims, values, text) for name, (dims, values, text) in fixed.items()},
            clock=stage.clock if self.timed else SNAPSHOTS,
            origin=self._origin(),
            outcome=Outcome("completed", end, f"observed {len(self.times)} snapshots"),
            statistics={},
            summary={
                "snapshots": len(self.times),
                **count,
                **{f"final_{name}": value for name, value in final.items()},
                **self._speed(overlaps),
            },
            invariants={},
        )

    def _speed(self, observed: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Return the speed of the log relative to the flow, or the reason why there is none; empty for systems that are
        not declared.
        """
        if not self.system.declaration:
            return {}
        if not self.timed:
            return {"clock": "not judged: the log has no time"}
        try:
            fit = speed(self.case, (self.snapshots, *(self.others or ())), self.times, observed)
        except UsageError as reason:
            return {"clock": f"not judged: {reason}"}
        interval = {"speed": fit.value, "speed_low": fit.low, "speed_high": fit.high}
        return {"clock": fit.sentence(), **interval, "explained": fit.explained}

    def _saved(self, initial: Initial, velocity: float = 0.0) -> np.ndarray:
        """Return the variables that a simulation would save for these weights; snapshots have no velocities."""
        gram = self.model.place(initial)
        if not isinstance(self.model, ScalarModel):
            return gram
        scalars = self.model.scalars(initial)
        if self.model.velocities is not None:
            extended, pushes = self.model.velocities(initial)
            widened, n = np.full(extended.shape, velocity), gram.shape[-1]
            widened[..., :n, :n] = gram
            gram, scalars = widened, np.concatenate([scalars, np.full(pushes.shape, velocity)])
        return packed(gram, scalars)

    def _unknown(self, initial: Initial) -> set[str]:
        """Return the names of order parameters that depend on velocities, which weights do not determine."""
        at_rest, moving = (
            self.model.observe(initial.parameters, np.array([[self._saved(initial, velocity)]]))
            for velocity in (0.0, 1.0)
        )
        return {name for name, (_, values, _) in at_rest.items() if not np.array_equal(values, moving[name][1])}

    def _population_values(self, initial: Initial, observables: Labelled) -> dict[str, Variable]:
        """Return the population loss (seed, time) and the observables of the flow, by the flow's first tier."""
        equations = flow_of(self.system.stage(self.case.stage), self.case.parameters)
        if equations is None or "loss" in observables:
            return {}
        observed = {name: values for name, (_, values, _) in observables.items()}
        return population_values(equations, [initial], observed, equations.watched, np.asarray(self.times, float))

    def _origin(self) -> Origin:
        return Origin.of(
            self.system,
            stage=self.case.stage,
            tier="observed",
            method="observed",
            parameters={name: plain(value) for name, value in self.case.by_name.items()},
            options={"until": float(self.times[-1]), "backend": self.case.backend},
            precision="float64",
            device="cpu",
            seed=self.case.seed,
        )


def observe(
    system: str | System, snapshots: Snapshots, parameters: Mapping[str, Any] | None = None, *,
    stage: str | None = None, names: Mapping[str, str] | None = None, times: Sequence[float] | None = None,
) -> Trajectory:  # fmt: skip
    """Return the order parameters of weights that were trained elsewhere, as a trajectory for `compare`.

    `snapshots` (an .npz file or arrays) has the arrays of an initial file of the system. Trained arrays have a first
    axis for the time: student weights `w` (time, unit, d), readouts `a` (time, unit). Fixed arrays have none: teacher
    weights `w_star` (teacher, d). `time` (time,) has the times on the clock of the stage, by default 0, 1, 2, ..
    Replicas are an axis in front of the time, `w` (replica, time, unit, d), with one teacher and the same times. The
    result has method "observed". Raises `UsageError` for arrays that are missing, unknown or of a wrong shape.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> teacher = np.eye(8)[:4]
    >>> V, W = rng.normal(size=(2, 5, 3, 8))
    >>> weights = {"V": V, "W": W, "V_star": teacher[:2], "W_star": teacher[2:], "time": [0, 1, 2, 3, 4]}
    >>> observe("liao", weights).state["gamma1"].shape
    (5, 3, 2)
    """
    observation = Observation.build(system, snapshots, parameters, stage=stage, names=names, times=times)
    return dataclasses.replace(observation.trajectory(), asked=observation)


@contextlib.contextmanager
def _naming(name: str) -> Iterator[None]:
    """Context manager in which messages about initial arrays name the user's snapshots instead."""
    try:
        yield
    except UsageError as error:
        message = re.sub(START_FILE, name, str(error).replace(" of --initial", ""))
        error.args = (message, *error.args[1:])
        raise


def _vectors(case: Case) -> set[str]:
    """The names of the vectors among initial arrays (readouts, biases); everything else is a matrix."""
    enter = load(case.system.stage(case.stage).enter)
    initial = enter(case.parameters, None, streams.generator(case.seed, "initial"))
    return {name for name, values in {**initial.state, **initial.constants}.items() if np.ndim(values) == 1}


def _replicas(arrays: Mapping[str, np.ndarray], vectors: set[str]) -> list[dict[str, np.ndarray]] | None:
    """Return the arrays of every replica, or None if no array has an axis of replicas, which comes before the time."""
    several = {n for n, values in arrays.items() if values.ndim == (3 if n in vectors else 4)}
    if not several - vectors:
        return None
    counts = {len(arrays[name]) for name in several}
    teachers = [name for name in several if name.endswith("_star")]
    if teachers or len(counts) > 1 or 0 in counts:
        raise UsageError(
            f"{teachers[0]} has an axis for replicas, but all replicas must have the same teacher" if teachers
            else "the arrays must have the same number of replicas, at least one, but have: "
            + ", ".join(f"{name} {len(arrays[name])}" for name in sorted(several))
        )  # fmt: skip
    return [{n: v[k] if n in several else v for n, v in arrays.items()} for k in range(counts.pop())]


def _divided(arrays: Mapping[str, np.ndarray], vectors: set[str]) -> tuple[dict[str, np.ndarray], ...]:
    """The arrays of every snapshot; those without a time axis belong to all of them."""
    moving = {}
    for name, values in arrays.items():
        dimensions = 1 if name in vectors else 2
        if values.ndim not in (dimensions, dimensions + 1):
            shape = (
                "(time, unit) or (unit,)"
                if dimensions == 1
                else "(time, unit, d), (unit, d) or (replica, time, unit, d)"
            )
            raise UsageError(f"{name} must have the shape {shape}, but has {values.shape}")
        if values.ndim == dimensions + 1:
            moving[name] = len(values)
    weights = [name for name in moving if name not in vectors and not name.endswith("_star")]
    if not weights:
        raise UsageError(
            f"expected weights of shape (time, unit, d), got the arrays {', '.join(arrays) or '(none)'}: the first "
            "axis of the weights must be the snapshots"
        )
    if not any(name.endswith("_star") and name not in vectors for name in arrays):
        raise UsageError(f"no weights of the teacher, whose names end in _star, among the arrays {', '.join(arrays)}")
    counts = set(moving.values())
    if len(counts) > 1 or 0 in counts:
        counts_text = ", ".join(f"{name} {count}" for name, count in moving.items())
        raise UsageError(f"the arrays must have the same number of snapshots, at least one, but have: {counts_text}")
    for name in moving:
        is_teacher = name.endswith("_star")
        if is_teacher and np.abs(arrays[name] - arrays[name][:1]).max() > FIXED * np.abs(arrays[name]).max():
            raise UsageError(f"{name} changes between snapshots, but a teacher is fixed")
    return tuple(
        {name: values[k] if name in moving else values for name, values in arrays.items()} for k in range(counts.pop())
    )


def _times(user_times: np.ndarray | None, count: int) -> np.ndarray:
    """Return the given times of the snapshots, or their numbers."""
    if user_times is None:
        return np.arange(float(count))
    times = np.asarray(user_times, float)
    if times.shape != (count,):
        raise UsageError(f"time must have one entry for each of {count} snapshots, but has the shape {times.shape}")
    if not np.isfinite(times).all() or (np.diff(times) <= 0).any():
        raise UsageError("time must be finite and increase from snapshot to snapshot")
    return times


def _where(values: np.ndarray) -> str:
    """Return the index of the first entry that is not finite, as text."""
    index = np.argwhere(~np.isfinite(values))[0]
    return f" at [{', '.join(str(int(k)) for k in index)}]"

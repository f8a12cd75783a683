"""One type for what a flow or a simulation leaves behind, and its form as a labelled data set."""

import dataclasses
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from odesim.request.shown import Result, load_view

if TYPE_CHECKING:
    import xarray

COUNTED = "place, counted from 1"
"""The meaning of a coordinate that only numbers the places of a dimension, and so belongs to no variable."""
UNNUMBERED = ("time", "seed")
OutcomeKind = Literal["completed", "stopped", "failed", "interrupted"]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a run ended: `completed`, `stopped` by an event, `failed` numerically, or `interrupted` by the user.

    `time` is the last time at which the state is good; `reason` one sentence for the reader.
    """

    kind: OutcomeKind
    time: float
    reason: str

    @property
    def exit_code(self) -> int:
        """0 when the answer can be used as it stands, 3 for a numerical failure, 130 when interrupted."""
        return {"completed": 0, "stopped": 0, "failed": 3, "interrupted": 130}[self.kind]


@dataclasses.dataclass(frozen=True)
class Origin:
    """Where a trajectory comes from: everything needed to ask for it again."""

    system: str
    stage: str
    tier: str
    method: str
    parameters: Mapping[str, Any]
    options: Mapping[str, Any]
    precision: str
    device: str
    seed: int | None


class Variable(np.ndarray):
    """A labelled array: an ordinary array that also knows the names of its dimensions and what it means.

    `dims` are lost by slicing and arithmetic, which give plain arrays again (`values` is the plain array itself).

    >>> gamma = Variable(("time", "expert"), np.zeros((3, 2)), "alignment")
    >>> gamma.dims, gamma.shape, type(gamma[0]).__name__
    (('time', 'expert'), (3, 2), 'ndarray')
    >>> import pickle
    >>> pickle.loads(pickle.dumps(gamma)).meaning
    'alignment'
    """

    dims: tuple[str, ...]
    meaning: str

    def __new__(cls, dims: tuple[str, ...], values: Any, meaning: str = "") -> "Variable":
        """Label `values` without copying them; raises `ValueError` where names and axes differ in number."""
        array = np.asarray(values)
        if array.ndim != len(dims):
            raise ValueError(f"expected one name for each of {array.ndim} axes, but the names are {dims}")
        labelled = array.view(cls)
        labelled.dims, labelled.meaning = tuple(dims), meaning
        return labelled

    def __getitem__(self, key: Any) -> Any:
        """Entries of the plain array."""
        return self.values[key]

    def __reduce_ex__(self, protocol: Any) -> Any:
        """How it is pickled: with its labels."""
        return Variable, (self.dims, self.values, self.meaning)

    def __array_wrap__(self, array: np.ndarray, context: Any = None, return_scalar: bool = False) -> Any:
        """Results of arithmetic are plain arrays or numbers."""
        return array[()] if return_scalar else array.view(np.ndarray)

    @property
    def values(self) -> np.ndarray:
        """The array without its labels."""
        return self.view(np.ndarray)


@dataclasses.dataclass(frozen=True)
class Trajectory(Result):
    """A run: `state[name]` has dims ("time", ...) for a flow and ("seed", "time", ...) for a simulation.

    `state` holds the components of the tier's state and the observables saved with them; `extras` what has no
    time axis (hitting times, conserved norms, the greedy matching); `final` the last good flat state with its
    constants, from which a later stage starts; `statistics` what the integrator or simulator counted; `asked` the
    request, where the run was made in this session.
    """

    time: np.ndarray
    state: Mapping[str, Variable]
    extras: Mapping[str, Variable]
    clock: str
    origin: Origin
    outcome: Outcome
    statistics: Mapping[str, Any]
    summary: Mapping[str, Any]
    invariants: Mapping[str, float]
    step: np.ndarray | None = None
    asked: Any = dataclasses.field(default=None, repr=False, compare=False)

    def __getitem__(self, name: str) -> np.ndarray:
        """The values of a component, an observable or an extra by name, or of "time" (and "step" of a simulation).

        `KeyError` names those there are.
        """
        axes = {"time": self.time, **({} if self.step is None else {"step": self.step})}
        if name in axes:
            return axes[name]
        found = self.state.get(name, self.extras.get(name))
        if found is None:
            known = ", ".join([*axes, *self.state, *self.extras])
            raise KeyError(f"this run has no variable {name!r}; it has {known}")
        return found.values

    def labelled(self) -> tuple[dict[str, Variable], dict[str, Variable], dict[str, Any]]:
        """Variables, coordinates (`time`, `step` of a simulation, counted places) and attributes of the data set."""
        coordinates = {"time": Variable(("time",), self.time, self.clock), **self.places()}
        if self.step is not None:
            coordinates["step"] = Variable(("time",), self.step, "number of SGD steps taken")
        attributes = {
            "system": self.origin.system,
            "stage": self.origin.stage,
            "tier": self.origin.tier,
            "method": self.origin.method,
            **{name: str(self.origin.options[name]) for name in ("first", "second") if name in self.origin.options},
            "parameters": json.dumps(dict(self.origin.parameters), default=_plain),
            "options": json.dumps(dict(self.origin.options), default=_plain),
            "outcome": self.outcome.kind,
            "outcome_time": self.outcome.time,
            "outcome_reason": self.outcome.reason,
            **({} if self.origin.seed is None else {"seed": self.origin.seed}),
        }
        return {**self.state, **self.extras}, coordinates, attributes

    def arrays(self, k: int) -> dict[str, np.ndarray]:
        """The components at saved time k of a flow, and everything without a time axis."""
        arrays = {name: np.asarray(v.values[k]) for name, v in self.state.items() if v.dims[0] == "time"}
        return arrays | {name: v.values for name, v in self.extras.items()}

    def dataset(self) -> "xarray.Dataset":
        """The trajectory as an `xarray.Dataset`; every variable says what it is in its attribute `meaning`.

        Teachers, experts and every other dimension without names of its own are counted from 1, so that
        `.sel(teacher=1)` is the first; in arrays and `.isel` the first is 0, as everywhere in Python.
        """
        import xarray

        variables, coordinates, attributes = self.labelled()

        def described(group: Mapping[str, Variable]) -> dict[str, Any]:
            return {name: (v.dims, v.values, {"meaning": v.meaning}) for name, v in group.items()}

        return xarray.Dataset(described(variables), described(coordinates), attributes)

    def places(self) -> dict[str, Variable]:
        """The places of every dimension but time and seed that has no names of its own, counted from 1."""
        variables = {**self.state, **self.extras}
        sizes = {d: n for v in variables.values() for d, n in zip(v.dims, v.shape, strict=True)}
        return {
            dim: Variable((dim,), np.arange(1, size + 1), COUNTED)
            for dim, size in sizes.items()
            if dim not in UNNUMBERED and dim not in variables
        }

    def __repr__(self) -> str:
        origin, end = self.origin, self.outcome
        sizes = {d: n for v in self.state.values() for d, n in zip(v.dims, v.shape, strict=True)}
        lines = [
            f"Trajectory: {origin.system}, stage {origin.stage}, {origin.tier} by {origin.method}, seed {origin.seed}",
            f"  {end.kind} at time {end.time:.6g}" + (f" ({end.reason})" if end.reason else ""),
            "  " + ", ".join(f"{size} {dim}" for dim, size in sizes.items()),
            f"  state: {', '.join(self.state)}",
            f"  extras: {', '.join(self.extras)}",
        ]
        return "\n".join(lines if self.extras else lines[:-1])


class Stages(list[Trajectory]):
    """The runs of several stages, in order."""

    def __repr__(self) -> str:
        return "\n".join(f"{k}. {run!r}" for k, run in enumerate(self, 1))

    def save(self, folder: Any, *, overwrite: bool = False, pictures: bool = True) -> Any:
        """Store the stages in a folder that `load` and every command take; returns the folder (`odesim.save`)."""
        return load_view("save")(self, folder, overwrite=overwrite, pictures=pictures)


def _plain(value: Any) -> Any:
    """What JSON has no word for: numbers and arrays of NumPy as plain ones, everything else as text."""
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else str(value)

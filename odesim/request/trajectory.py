"""Trajectory of a flow or a simulation, and its form as a labelled data set."""

import dataclasses
import json
import warnings
from collections.abc import Container, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

import derivations
from derivations import outside
from derivations.contract import System, UsageError
from odesim.errors import ChangedDeclaration
from odesim.request.shown import RunMapping, load_view, name_of
from odesim.request.stored_system import short_name

if TYPE_CHECKING:
    import xarray

COUNTED = "place, counted from 1"
"""Meaning of a coordinate that only numbers the entries of a dimension, and so belongs to no variable."""
NOT_REACHED = "inf: not reached"
"""Ending of the meaning of every hitting time of a flow."""
NOT_SAVED = "the first saved time at or past it; inf: at none of them"
"""Ending of the meaning of every hitting time of SGD."""
UNNUMBERED = ("time", "seed")
TIME = "time t"
"""Label of an axis of time. The clock, a sentence, defines the unit."""
SNAPSHOTS = "number of the snapshot"
"""Clock of observed weights without times."""
OutcomeKind = Literal["completed", "stopped", "failed", "interrupted"]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Outcome of a run: `completed`, `stopped` by an event, `failed` numerically, or `interrupted` by the user.

    `time` is the time of the last good state, and `reason` is one sentence for the reader.
    """

    kind: OutcomeKind
    time: float
    reason: str

    @property
    def exit_code(self) -> int:
        """Exit code: 0 if the result is complete, 3 for a numerical failure, 130 if interrupted."""
        return {"completed": 0, "stopped": 0, "failed": 3, "interrupted": 130}[self.kind]


@dataclasses.dataclass(frozen=True)
class Origin:
    """Origin of a trajectory: everything needed to request it again.

    `system` is the reference of the system, `declaration` the text of a declared model, and `model` the system itself
    if the run was made in this process.
    """

    system: str
    stage: str
    tier: str
    method: str
    parameters: Mapping[str, Any]
    options: Mapping[str, Any]
    precision: str
    device: str
    seed: int | None
    declaration: str = dataclasses.field(default="", repr=False)
    model: System | None = dataclasses.field(default=None, repr=False, compare=False)

    @classmethod
    def of(cls, system: System, **about: Any) -> "Origin":
        """Return the origin of a run of `system`; the keyword arguments `about` are the other fields."""
        return cls(derivations.reference(system), declaration=system.declaration, model=system, **about)

    @property
    def known(self) -> System | None:
        """Return the system of the run; None if this needs code that odesim does not import."""
        return self.model if self.model is not None else derivations.restored(self.system, self.declaration)

    @property
    def name(self) -> str:
        """Name of the system, which has no path of a machine."""
        return self.model.name if self.model is not None else short_name(self.system, self.declaration)

    def required(self, chosen: System | None = None) -> System:
        """Return the system of the run; `chosen` is the system that the user names, if any.

        Raises `UsageError` if `chosen` is another system.  Also raises it if the system is outside of odesim and the
        user does not name it, because odesim never imports code only because a folder names it.
        """
        own = self.known
        if own is None and outside.is_declaration(self.system):
            raise UsageError(
                "the run was stored by an earlier version of odesim, without its declaration, and "
                f"{self.system} has changed since: restore the earlier text of the file, or make the run again"
            )
        if own is None and chosen is not None and derivations.reference(chosen) == self.system:
            return chosen
        if own is None:
            place = outside.split(self.system)[0]
            raise UsageError(
                f"the run belongs to {self.system}, which is outside of odesim, and odesim never imports code "
                f"only because a run names it: if you trust {place}, give --system {self.system} (or load it "
                "first with odesim.system)"
            )
        if chosen is None:
            self._tell_of_changes(own)
            return own
        if derivations.same(chosen, own):
            return own
        if derivations.reference(chosen) == self.system:
            raise UsageError(
                f"the declaration of {own.name} has changed since the run: leave out --system to continue "
                "with the declaration of the run"
            )
        raise UsageError(f"the run belongs to {own.name}, but --system is {chosen.name}")

    def _tell_of_changes(self, own: System) -> None:
        """Warn if the declaration in the file of the model has changed since the run."""
        if not outside.is_declaration(self.system) or not Path(self.system).is_file():
            return
        try:
            unchanged = derivations.same(derivations.system(self.system), own)
        except UsageError:  # the file declares no model any more
            unchanged = False
        if not unchanged:
            text = f"{Path(self.system).name} has changed since this run: the declaration stored with the run is used"
            warnings.warn(text, ChangedDeclaration, stacklevel=2)


class Variable(np.ndarray):
    """A labelled array: an ordinary array with the names of its dimensions and its meaning.

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
        """Label `values` without copying them; raises `ValueError` if the numbers of names and axes differ."""
        array = np.asarray(values)
        if array.ndim != len(dims):
            raise ValueError(f"expected one name for each of {array.ndim} axes, but the names are {dims}")
        labelled = array.view(cls)
        labelled.dims, labelled.meaning = tuple(dims), meaning
        return labelled

    def __getitem__(self, key: Any) -> Any:
        """Return entries of the plain array."""
        return self.values[key]

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Return the pickled form, which includes the labels."""
        return Variable, (self.dims, self.values, self.meaning)

    def __copy__(self) -> "Variable":
        return Variable(self.dims, self.values.copy(), self.meaning)

    def __deepcopy__(self, memo: Any) -> "Variable":
        """Return a copy with its labels, which the copy of an ordinary array would lose."""
        return Variable(self.dims, self.values.copy(), self.meaning)

    def __array_wrap__(self, array: np.ndarray, context: Any = None, return_scalar: bool = False) -> Any:
        """Return results of arithmetic as plain arrays or numbers."""
        return array[()] if return_scalar else array.view(np.ndarray)

    @property
    def values(self) -> np.ndarray:
        """Array without its labels."""
        return self.view(np.ndarray)


def data_set(
    variables: Mapping[str, Variable], coordinates: Mapping[str, Variable], attributes: Mapping[str, Any]
) -> "xarray.Dataset":
    """Return labelled arrays as an `xarray.Dataset`, each with its meaning in the attribute `meaning`."""
    import xarray

    def described(group: Mapping[str, Variable]) -> dict[str, Any]:
        return {name: (v.dims, v.values, {"meaning": v.meaning}) for name, v in group.items()}

    return xarray.Dataset(described(variables), described(coordinates), attributes)


def places_of(variables: Mapping[str, Variable], named: Container[str]) -> dict[str, Variable]:
    """Return the numbers 1, 2, .. of the entries of every dimension of the arrays that is not in `named`."""
    sizes = {d: n for v in variables.values() for d, n in zip(v.dims, v.shape, strict=True)}
    return {dim: Variable((dim,), np.arange(1, n + 1), COUNTED) for dim, n in sizes.items() if dim not in named}


@dataclasses.dataclass(frozen=True)
class Trajectory(RunMapping):
    """Run of this session: a mapping of names to labelled arrays, with the complete request.

    `run["gamma2"]` is the array of a variable, `run(3.5)` the state at time 3.5, and `run.dataset()` the whole run as
    an xarray data set.

    Attributes:
        time: Saved times (time,), in the unit of `clock`.
        state: Components of the state and observables by name, as labelled arrays. The dimensions are ("time", ...) for
            a flow and ("seed", "time", ...) for SGD.
        extras: Labelled arrays without a time axis: hitting times, conserved norms, constants.
        clock: Meaning of the time, as a sentence.
        origin: System, stage, tier, method, parameters, options and seed.
        outcome: `kind` ("completed", "stopped", "failed", "interrupted"), `time` of the last good state, `reason`.
        statistics: Counters of the integrator or the simulation, such as evaluations.
        summary: Most important numbers of the run, by name (`odesim systems NAME` describes them).
        invariants: Measured values of quantities that the exact dynamics conserves or bounds, by name.
        step: Number of SGD steps at each saved time (time,); None for a flow.
        asked: The request; None if the run was loaded.

    Example:
        >>> import odesim
        >>> run = odesim.integrate("liao", m=3, m_star=1, d=100, until=1.0, save_points=5)
        >>> run["gamma2"].shape, run.state["gamma2"].dims
        ((5, 3, 1), ('time', 'expert', 'teacher'))
        >>> "T_gamma2" in run, run.outcome.kind
        (True, 'completed')
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

    def __getitem__(self, name: Any) -> np.ndarray:
        """Return the values of a variable by its name, or by a SymPy symbol of that name.  `KeyError` lists them."""
        name = name_of(name)
        axes = {"time": self.time, **({} if self.step is None else {"step": self.step})}
        if name in axes:
            return axes[name]
        found = self.state.get(name, self.extras.get(name))
        if found is None:
            known = ", ".join([*axes, *self.state, *self.extras])
            raise KeyError(f"this run has no variable {name!r}; it has {known}")
        return found.values

    def keys(self) -> list[str]:
        """Return the names of all variables: "time" (and "step" of SGD), components, observables, extras.

        Returns:
            The names that `run[name]` takes.
        """
        return ["time", *(() if self.step is None else ("step",)), *self.state, *self.extras]

    def labelled(self) -> tuple[dict[str, Variable], dict[str, Variable], dict[str, Any]]:
        """Return the variables, coordinates and attributes of the data set.

        Returns:
            Three mappings by name: variables; coordinates (`time`, `step` of SGD, numbers of the entries); attributes.
        """
        coordinates = {"time": Variable(("time",), self.time, self.clock), **self.places()}
        if self.step is not None:
            coordinates["step"] = Variable(("time",), self.step, "number of SGD steps taken")
        attributes = {
            "system": self.origin.system,
            **({"declaration": self.origin.declaration} if self.origin.declaration else {}),
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
        """Return the arrays of a flow at one of its saved times.

        Arguments:
            k: Index of the saved time, counted from 0 (-1 is the last).

        Returns:
            The components at this time and all variables without a time axis, by name.
        """
        arrays = {name: np.asarray(v.values[k]) for name, v in self.state.items() if v.dims[0] == "time"}
        return arrays | {name: v.values for name, v in self.extras.items()}

    def dataset(self) -> "xarray.Dataset":
        """Return the run as an `xarray.Dataset`. The attribute `meaning` of a variable describes it.

        The coordinate `time` also has the short label "time t" (attribute `long_name`), which pictures of xarray show.

        Teachers, experts and similar dimensions are numbered from 1 in their coordinates: `.sel(teacher=1)` is the
        first teacher. Positions in arrays and in `.isel` are counted from 0, as usual in Python.

        Returns:
            A data set with the coordinate `time`, and parameters and options in its attributes.

        Example:
            >>> import odesim
            >>> run = odesim.integrate("liao", m=3, m_star=1, d=100, until=1.0, save_points=5)
            >>> run.dataset()["gamma2"].sel(teacher=1).dims
            ('time', 'expert')
        """
        data = data_set(*self.labelled())
        data["time"].attrs["long_name"] = TIME
        return data

    def places(self) -> dict[str, Variable]:
        """Return the coordinates 1, 2, .. of every dimension (teachers, experts, ..) without named entries.

        Returns:
            Coordinates, by the name of the dimension.
        """
        variables = {**self.state, **self.extras}
        return places_of(variables, (*UNNUMBERED, *variables))

    def __repr__(self) -> str:
        origin, end = self.origin, self.outcome
        made = (
            "observed weights"
            if origin.method == "observed"
            else f"{origin.tier} by {origin.method}, seed {origin.seed}"
        )
        sizes = {d: n for v in self.state.values() for d, n in zip(v.dims, v.shape, strict=True)}
        lines = [
            f"Trajectory: {origin.name}, stage {origin.stage}, {made}",
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
        """Store the stages in a folder that `load` and every command can read (`odesim.save`). Return the folder."""
        return load_view("save")(self, folder, overwrite=overwrite, pictures=pictures)


def _plain(value: Any) -> Any:
    """Convert a value for JSON: NumPy numbers and arrays to plain ones, everything else to text."""
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else str(value)

"""Runs that continue from the end of another run: the initial state, and the parameters that still have a meaning."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract import Initial, System, UsageError, load
from odesim.machine import streams
from odesim.request.case import plain, stated, values_of
from odesim.request.parse import parse_parameters
from odesim.request.trajectory import Trajectory


@dataclasses.dataclass(frozen=True)
class Started:
    """Run of this session that a later stage continues. `digest` identifies it, as the digest of a folder does."""

    trajectory: Trajectory
    digest: str


def ending(run: Trajectory) -> dict[str, np.ndarray]:
    """Return the arrays at the end of a run: components at the last saved time, and all arrays without a time axis.

    Raises `UsageError` for a simulation of several replicas, because each ends in another state.
    """
    if "seed" in next(iter(run.state.values())).dims:
        raise UsageError("this stage continues a flow, but --from is a simulation of several replicas")
    return run.arrays(-1)


def taken_over(
    run: Trajectory, system: System, given: Mapping[str, Any], *, preset: Any = None, config: Any = None
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays at the end of a run and the parameters of the continued run.

    Parameters that the user does not give keep the run's values, except the tier. The user gives them by `given`,
    `preset` and `config`. A parameter that determines a constant of the equations, such as readouts of the teacher,
    replaces that constant. Raises `UsageError`, with the name, for a parameter that cannot take effect any more: one
    that determines the initial state, a size of the stored state, or one that determines numbers drawn at the start.
    """
    stored = {name: value for name, value in run.origin.parameters.items() if name != "tier"}
    named = {str(name): value for name, value in stated(system, given, preset, config).items()}
    arrays = ending(run)
    continuation = _Continuation(run, system, arrays, _parameters(system, stored))
    changed = continuation.changed(named)
    constants = {constant for name, value in changed.items() for constant in continuation.determined(name, value)}
    if constants:
        replaced = continuation.begun(dataclasses.replace(continuation.parameters, **changed))
        assert replaced is not None  # each of the changes alone determined one
        arrays |= {name: replaced.constants[name] for name in sorted(constants)}
    return arrays, {**stored, **named}


def _parameters(system: System, stored: Mapping[str, Any]) -> Any:
    """Return the parameters of a stored run."""
    return system.parameters(**parse_parameters(system.parameters, stored))


@dataclasses.dataclass(frozen=True)
class _Continuation:
    """End of a run, and the start that it would have with other parameters."""

    run: Trajectory
    system: System
    arrays: Mapping[str, np.ndarray]
    parameters: Any

    def changed(self, named: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters among `named` whose values differ from those of the run, without the tier."""
        known = {name: value for name, value in named.items() if name != "tier"}
        values = parse_parameters(self.system.parameters, known)
        return {name: values[name] for name in known if values[name] != getattr(self.parameters, name)}

    def determined(self, name: str, value: Any) -> set[str]:
        """Return the constants of the run that a changed parameter determines. Raises `UsageError` (see above)."""
        field = next(field for field in dataclasses.fields(self.parameters) if field.name == name)
        own = plain(getattr(self.parameters, name))
        if field.metadata.get("start"):
            raise UsageError(
                f"parameter {name} determines the initial state, but this run continues from the end of "
                f"another one (with {name} = {own}): leave {name} out, or start a new run"
            )
        changed = dataclasses.replace(self.parameters, **{name: value})
        before, after = self.begun(self.parameters), self.begun(changed)
        if before is None:  # a stage that only follows an earlier one: it has no start to compare with
            return set()
        if after is None or self._values(after)[name] != value or _shapes(before) != _shapes(after):
            raise UsageError(
                f"{name} = {plain(value)} does not fit the continued run, which has {name} = {own}: leave "
                f"{name} out, or start a new run"
            )
        moved = {c for c in self.arrays if c in before.constants and _differ(before.constants[c], after.constants[c])}
        return {constant for constant in moved if self._replaced(name, constant, before, after)}

    def _replaced(self, name: str, constant: str, before: Initial, after: Initial) -> bool:
        """Return True if a constant must be replaced by the value that a changed parameter gives it."""
        kept = [self._entered(one.parameters, self.arrays, 0) for one in (before, after)]
        if None not in kept and _differ(*(one.constants.get(constant) for one in kept if one is not None)):
            return False  # the stage computes the constant from the parameters in any case
        again = [self.begun(one.parameters, 1) for one in (before, after)]
        drawn = any(
            one is None or _differ(one.constants[constant], first.constants[constant])
            for one, first in zip(again, (before, after), strict=True)
        )
        if drawn and before.scale != after.scale:
            return False  # a dimension: it is also used outside of the draw, which is unchanged
        if drawn or _differ(self.arrays[constant], before.constants[constant]):
            source = "was drawn at the start" if drawn else "came from elsewhere than its parameters"
            raise UsageError(
                f"parameter {name} determines {constant}, which {source} of the continued run: leave {name} "
                "out, or start a new run"
            )
        return True

    def begun(self, parameters: Any, stream: int = 0) -> Initial | None:
        """Return an initial condition of the run's stage with constants from its parameters, or None.

        It is the state of the run if the stage can begin with this state alone, otherwise a drawn start.
        """
        names = self.run.state.keys()
        moving = {name: values for name, values in self.arrays.items() if name in names}
        found = self._entered(parameters, moving, stream)
        return found if found is not None else self._entered(parameters, None, stream)

    def _values(self, initial: Initial) -> dict[str, Any]:
        """Return the parameters of an initial condition of the run's stage, by name."""
        return values_of(self.system.stage(self.run.origin.stage), initial.parameters)

    def _entered(self, parameters: Any, arrays: Mapping[str, np.ndarray] | None, stream: int) -> Initial | None:
        """Return the initial condition of the run's stage from some arrays, or None if the stage cannot begin with
        them.
        """
        stage = self.system.stage(self.run.origin.stage)
        seed = (self.run.origin.seed or 0) + stream
        try:
            return load(stage.enter)(stage.adapt(parameters), arrays, streams.generator(seed, "initial"))
        except (ValueError, KeyError):  # UsageError is a ValueError
            return None


def _shapes(initial: Initial) -> dict[str, tuple[int, ...]]:
    return {name: np.shape(values) for name, values in initial.state.items()}


def _differ(first: Any, second: Any) -> bool:
    """Return True unless two arrays are equal, NaN in the same places included."""
    a, b = np.asarray(first), np.asarray(second)
    return a.shape != b.shape or not np.array_equal(a, b, equal_nan=a.dtype.kind == "f")

"""Reading of stored runs."""

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import derivations
from derivations import outside
from odesim.errors import UsageError
from odesim.request.shown import RunMapping
from odesim.request.trajectory import COUNTED, Origin, Outcome, Trajectory, Variable
from odesim.store.files import STAGES, SUMMARY, TRAJECTORY, read_json
from odesim.store.folder import manifest_of, require

if TYPE_CHECKING:
    import numpy as np
    import xarray


@dataclasses.dataclass(frozen=True)
class Run(RunMapping):
    """Stored run that `load` returns: a mapping of names to arrays, like a `Trajectory`.

    Attributes:
        folder: Path of the folder.
        manifest: Request, versions, seeds and the hashes of all files (docs/run-folder.md).
        summary: Most important numbers of the run, by name.
        trajectory: The trajectory. If the run has several stages, that of the last stage.
        stages: A `Run` for each stage, if the run has several stages.

    Example:
        >>> import odesim, tempfile
        >>> with tempfile.TemporaryDirectory() as place:
        ...     made = odesim.integrate("liao", m=3, m_star=1, d=100, until=1.0)
        ...     run = odesim.load(made.save(place + "/run", pictures=False))
        >>> run["gamma2"].shape, run.outcome.kind, run.parameters["d"]
        ((201, 3, 1), 'completed', 100)
    """

    folder: Path
    manifest: dict[str, Any]
    summary: dict[str, Any]
    trajectory: Trajectory
    stages: "tuple[Run, ...]" = ()

    @property
    def digest(self) -> str:
        """Digest of the request: twelve hexadecimal characters that identify the run."""
        return self.manifest["digest"]

    @property
    def outcome(self) -> Outcome:
        """Outcome of the run: its kind, the time of the last good state, and the reason."""
        return self.trajectory.outcome

    @property
    def time(self) -> "np.ndarray":
        """Saved times (time,), in the unit of the clock. If the run has several stages, those of the last stage."""
        return self.trajectory.time

    def __getitem__(self, name: Any) -> Any:
        """Return the values of a component, an observable or an extra by name, like `Trajectory`."""
        return self.trajectory[name]

    def keys(self) -> list[str]:
        """Return the names of all variables, as `Trajectory.keys` does.

        Returns:
            The names that `run[name]` takes.
        """
        return self.trajectory.keys()

    def dataset(self) -> "xarray.Dataset":
        """Return the run as a labelled data set, as `Trajectory.dataset` does.

        Returns:
            An `xarray.Dataset`.
        """
        return self.trajectory.dataset()

    def __repr__(self) -> str:
        every = self.stages or (self,)
        return "\n".join([f"Run in {self.folder.name}", *(repr(run.trajectory) for run in every)])


def load(folder: str | os.PathLike[str]) -> Run:
    """Return the run stored in `folder`, after verifying the hashes of its files.

    Raises `UsageError` for a folder that is missing, unfinished, damaged, or written by a later version.
    """
    folder = Path(folder)
    manifest, summary = read_headline(folder)
    if "stages" in manifest:
        stages = tuple(load(folder / STAGES / name) for name in manifest["stages"])
        return Run(folder, manifest, summary, stages[-1].trajectory, stages)
    try:
        trajectory = _trajectory(folder, manifest, summary)
    except (KeyError, TypeError, ValueError, OSError) as error:
        raise UsageError(f"{folder} is damaged: its trajectory or manifest cannot be read ({error}).") from None
    return Run(folder, manifest, summary, trajectory)


def read_headline(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return manifest and summary of a finished run, without its trajectory. The file of the trajectory is still
    verified.
    """
    require(folder, "run", instead="`odesim show` and `odesim report` print its content")
    manifest = manifest_of(folder)
    try:
        return manifest, read_json(folder / SUMMARY)
    except (ValueError, OSError):
        raise UsageError(f"{folder} is damaged: its {SUMMARY} cannot be read.") from None


def read_variables(path: Path) -> dict[str, Variable]:
    """Return the labelled arrays of a NetCDF file by name, without coordinates that only number the entries."""
    import xarray

    with xarray.open_dataset(path, engine="h5netcdf") as stored:
        dataset = stored.load()
    return {
        str(name): Variable(tuple(map(str, array.dims)), array.values, array.attrs.get("meaning", ""))
        for name, array in dataset.variables.items()
        if array.attrs.get("meaning") != COUNTED
    }


def _trajectory(folder: Path, manifest: dict[str, Any], summary: dict[str, Any]) -> Trajectory:
    """Return the trajectory of a run, rebuilt from its data set and manifest."""
    every = read_variables(folder / TRAJECTORY)
    axes = ("time", "step")  # names for the places of a dimension (`criterion`) are variables like others
    variables = {name: variable for name, variable in every.items() if name not in axes}
    origin = manifest["origin"]
    return Trajectory(
        time=every["time"].values,
        state={name: variable for name, variable in variables.items() if "time" in variable.dims},
        extras={name: variable for name, variable in variables.items() if "time" not in variable.dims},
        clock=manifest["clock"],
        origin=Origin(
            **origin,
            precision=manifest["precision"],
            device=manifest["device"]["used"],
            declaration=manifest.get("declaration", "") or _declared_then(manifest),
        ),
        outcome=Outcome(**manifest["outcome"]),
        statistics=manifest["statistics"],
        summary=summary,
        invariants=manifest["invariants"],
        step=every["step"].values if "step" in every else None,
    )


def _declared_then(manifest: Mapping[str, Any]) -> str:
    """Return the declaration of a run that an earlier version stored without it; empty for any other run.

    Its request has the digest of the declaration. The named file or the model of the gallery is used if it still has
    this digest.
    """
    digest, name = manifest["request"].get("declaration"), manifest["origin"]["system"]
    if digest is None or not (outside.is_declaration(name) or name in outside.gallery()):
        return ""
    try:
        system = derivations.system(name)
    except UsageError:  # the file does not exist, or declares no model now
        return ""
    return system.declaration if system.digest == digest else ""

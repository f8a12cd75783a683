"""Stored runs, read back as what they were."""

import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odesim.errors import UsageError
from odesim.store.files import MANIFEST, STAGES, SUMMARY, TRAJECTORY, read_json, sha256
from odesim.trajectory import Origin, Outcome, Trajectory, Variable

if TYPE_CHECKING:
    import xarray


@dataclasses.dataclass(frozen=True)
class Run:
    """A stored run: its folder, manifest, summary and trajectory; of several stages, those, and the last trajectory."""

    folder: Path
    manifest: dict[str, Any]
    summary: dict[str, Any]
    trajectory: Trajectory
    stages: "tuple[Run, ...]" = ()

    @property
    def digest(self) -> str:
        """The digest of the request."""
        return self.manifest["digest"]

    @property
    def outcome(self) -> Outcome:
        """How the run ended."""
        return self.trajectory.outcome

    def __getitem__(self, name: str) -> Any:
        """The values of a component, an observable or an extra by name."""
        return self.trajectory[name]

    def dataset(self) -> "xarray.Dataset":
        """The trajectory as a labelled data set."""
        return self.trajectory.dataset()


def load(folder: str | os.PathLike[str]) -> Run:
    """The run stored in `folder`, its file hashes verified.

    Raises `UsageError` for a folder that is missing, unfinished, damaged, or written by a later version.
    """
    folder = Path(folder)
    manifest, summary = read_headline(folder)
    for name, recorded in manifest["files"].items():
        path = folder / name
        if not path.is_file():
            raise UsageError(f"{folder} is damaged: its file {name} is missing; run the request again.")
        if sha256(path) != recorded["sha256"]:
            raise UsageError(f"{folder} is damaged: {name} was changed after the run; run the request again.")
    if "stages" in manifest:
        stages = tuple(load(folder / STAGES / name) for name in manifest["stages"])
        return Run(folder, manifest, summary, stages[-1].trajectory, stages)
    return Run(folder, manifest, summary, _trajectory(folder, manifest, summary))


def read_headline(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Manifest and summary of a finished run, without its trajectory."""
    from odesim.store.manifest import SCHEMA

    if not folder.is_dir():
        raise UsageError(f"there is no run folder {folder}; `odesim integrate` prints the folder it writes.")
    if not (folder / MANIFEST).is_file():
        raise UsageError(f"{folder} has no {MANIFEST}: it is no run folder, or its run did not finish.")
    try:
        manifest = read_json(folder / MANIFEST)
        schema = manifest["schema"]
        if schema > SCHEMA:
            raise UsageError(f"{folder} has schema {schema}, but this odesim reads up to {SCHEMA}; use a newer odesim.")
        return manifest, read_json(folder / SUMMARY)
    except (ValueError, KeyError, TypeError, OSError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"{folder} is damaged: its {MANIFEST} or {SUMMARY} cannot be read.") from None


def _trajectory(folder: Path, manifest: dict[str, Any], summary: dict[str, Any]) -> Trajectory:
    """The trajectory of a run, rebuilt from its data set and manifest."""
    import xarray

    with xarray.open_dataset(folder / TRAJECTORY, engine="h5netcdf") as stored:
        dataset = stored.load()
    variables = {
        str(name): Variable(tuple(map(str, array.dims)), array.values, array.attrs.get("meaning", ""))
        for name, array in dataset.data_vars.items()
    }
    origin = manifest["origin"]
    return Trajectory(
        time=dataset["time"].values,
        state={name: variable for name, variable in variables.items() if "time" in variable.dims},
        extras={name: variable for name, variable in variables.items() if "time" not in variable.dims},
        clock=manifest["clock"],
        origin=Origin(**origin, precision=manifest["precision"], device=manifest["device"]["used"]),
        outcome=Outcome(**manifest["outcome"]),
        statistics=manifest["statistics"],
        summary=summary,
        invariants=manifest["invariants"],
        step=dataset["step"].values if "step" in dataset.coords else None,
    )

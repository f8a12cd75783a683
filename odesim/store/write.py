"""Atomic writing of run folders."""

import contextlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from odesim.errors import StorageError
from odesim.request.trajectory import Trajectory
from odesim.store.claim import claimed
from odesim.store.files import (
    CHECKPOINT,
    MANIFEST,
    STAGES,
    SUMMARY,
    TRAJECTORY,
    is_ours,
    read_json,
    storing,
    synchronise,
    write_json,
)
from odesim.store.folder import write_manifest
from odesim.store.manifest import file_hashes, manifest, versions
from odesim.store.netcdf import netcdf
from odesim.store.read import Run

Draw = Callable[[Trajectory, Path], object]
"""Function that draws the pictures of a trajectory into a folder."""


def save(
    trajectory: Trajectory,
    case: Any,
    folder: Path,
    wall_times: Mapping[str, float],
    draw: Draw | None,
) -> Path:
    """Write a run into `folder`, replacing earlier files of odesim, and return the folder.

    `draw` makes the pictures; `None` makes none. All files are first written next to it, the manifest last, and moved
    into place at the end. The checkpoint is removed. Raises `StorageError` if the disk is full or lost; the folder is
    then unchanged.
    """
    with installed(folder) as staging:
        _write(trajectory, case, staging, dict(wall_times), draw)
    return Path(os.path.abspath(folder))


@contextlib.contextmanager
def installed(folder: Path) -> Iterator[Path]:
    """Context manager that replaces `folder` atomically. It yields an empty folder; after an error `folder` is
    unchanged.

    Raises `StorageError` if the disk is full or lost.
    """
    folder = Path(os.path.abspath(folder))
    with storing(folder):
        staging = _staging(folder)
        try:
            yield staging
            _install(staging, folder)
        finally:
            shutil.rmtree(staging, ignore_errors=True)


def save_stages(
    trajectories: Sequence[Trajectory],
    request: Any,
    folder: Path,
    wall_times: Mapping[str, float],
    draw: Draw | None,
) -> Path:
    """Write a run of several stages: `stages/01-NAME/`, ... each a run folder, and one common manifest."""
    with installed(folder) as staging:
        names = []
        for k, (trajectory, case) in enumerate(zip(trajectories, request.cases, strict=False), 1):
            names.append(f"{k:02d}-{trajectory.origin.stage}")
            stage = staging / STAGES / names[-1]
            stage.mkdir(parents=True)
            _write(trajectory, case, stage, {}, draw)
        write_json(staging / SUMMARY, {t.origin.stage: t.summary for t in trajectories})
        top = manifest(trajectories[-1], request, staging, wall_times)
        write_manifest(staging / MANIFEST, {**top, "stages": names})
        synchronise(staging)
    return Path(os.path.abspath(folder))


def copy(run: Run, folder: Path) -> Path:
    """Copy a stored run to another folder, replacing earlier files of odesim, atomically as in `save`."""
    with installed(folder) as staging:
        shutil.copytree(run.folder, staging, dirs_exist_ok=True)
    return Path(os.path.abspath(folder))


def redraw(run: Run, draw: Callable[[Trajectory, Path], Sequence[Path]]) -> list[Path]:
    """Draw the pictures of a stored run again by `draw` and record their hashes. Return their paths."""
    return replace_pictures(run.folder, run.manifest, lambda place: draw(run.trajectory, place))


def replace_pictures(folder: Path, manifest: Mapping[str, Any], draw: Callable[[Path], Sequence[Path]]) -> list[Path]:
    """Replace the pictures of a folder by those that `draw` makes in another one, and record their hashes."""
    with (
        storing(folder),
        claimed(folder),
        tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.partial-") as temporary,
    ):
        names = [Path(path).name for path in draw(Path(temporary))]
        pictures = [name for name in manifest["files"] if name.endswith((".png", ".svg")) and "/" not in name]
        for name in names:
            os.replace(Path(temporary) / name, folder / name)
        for name in set(pictures) - set(names):
            (folder / name).unlink(missing_ok=True)
        recorded = {name: entry for name, entry in manifest["files"].items() if name not in pictures}
        drawn = {name: entry for name, entry in file_hashes(folder).items() if name in names}
        write_manifest(folder / MANIFEST, {**manifest, "files": dict(sorted((recorded | drawn).items()))})
    return [folder / name for name in names]


def _staging(folder: Path) -> Path:
    """Create a new folder next to `folder`, or inside it if the parent folder cannot be written."""
    prefix = f".{folder.name}.partial-"
    if folder.is_dir() and os.path.ismount(folder):
        return Path(tempfile.mkdtemp(dir=folder, prefix=prefix))
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(dir=folder.parent, prefix=prefix))
    except PermissionError:
        if not folder.is_dir():
            raise
        staging = Path(tempfile.mkdtemp(dir=folder, prefix=prefix))
    staging.chmod(0o777 & ~_umask())
    return staging


def _umask() -> int:
    """Return the permissions that new files do not get (mkdtemp removes more than a run folder needs)."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _write(trajectory: Trajectory, case: Any, staging: Path, wall_times: dict[str, float], draw: Draw | None) -> None:
    """Write trajectory, summary, pictures and, last, the manifest."""
    import time

    started = time.perf_counter()
    request = {"digest": case.digest, "seed": case.seed, "precision": trajectory.origin.precision,
               "versions": json.dumps(versions())}  # fmt: skip
    # Made in memory and written at once: the HDF5 library crashes at exit after a disk became full under it.
    (staging / TRAJECTORY).write_bytes(netcdf(trajectory, request))
    write_json(staging / SUMMARY, trajectory.summary)
    wall_times["store"] = time.perf_counter() - started
    if draw is not None:
        write_pictures(draw, trajectory, staging)
        wall_times["draw"] = time.perf_counter() - started - wall_times["store"]
    for path in staging.iterdir():
        synchronise(path)
    write_manifest(staging / MANIFEST, manifest(trajectory, case, staging, wall_times))
    synchronise(staging)


def write_pictures(draw: Callable[[Any, Path], object], result: Any, folder: Path) -> None:
    """Draw the pictures. A failure is only reported, so that the numbers are not lost."""
    try:
        draw(result, folder)
    except OSError:
        raise
    except Exception as error:
        print(f"odesim: the pictures could not be drawn ({error}); the numbers are stored.", file=sys.stderr)
        for path in folder.glob("*.png"):
            path.unlink()


def _install(staging: Path, folder: Path) -> None:
    """Replace `folder` by the finished folder `staging`."""
    if staging.parent == folder:
        _fill(staging, folder)
    elif not folder.exists():
        os.replace(staging, folder)
    else:
        aside = staging.with_name(staging.name.replace(".partial-", ".old-"))
        os.replace(folder, aside)
        try:
            os.replace(staging, folder)
        except BaseException:
            _put_back(aside, folder)
            raise
        _keep_foreign(aside, folder)
        shutil.rmtree(aside, ignore_errors=True)
    try:
        synchronise(folder.parent)
    except OSError as error:
        raise StorageError(
            f"{folder} was written, but the disk did not confirm it ({error.strerror}); check it with `odesim "
            "show` before you use it."
        ) from error


def _put_back(aside: Path, folder: Path) -> None:
    """Move the earlier run back to its place. If this fails too, the message has its present path."""
    try:
        os.replace(aside, folder)
    except OSError as error:
        raise StorageError(
            f"{folder} could not be replaced ({error.strerror}); the earlier run is complete in {aside}."
        ) from error


def _keep_foreign(old: Path, new: Path) -> None:
    """Move files of the user from the replaced folder to the new one."""
    written = _listed(old / MANIFEST)
    for entry in old.iterdir():
        ours = is_ours(entry.name) or entry.name in written
        if not ours and not (new / entry.name).exists():
            os.replace(entry, new / entry.name)


def _listed(manifest: Path) -> set[str]:
    """Return the names of the files in a manifest; empty if it is damaged."""
    try:
        return set(read_json(manifest)["files"])
    except (OSError, ValueError, TypeError, KeyError):
        return set()


def _fill(staging: Path, folder: Path) -> None:
    """Move the files one by one if the folder cannot be moved: the manifest is removed first and written last."""
    (folder / MANIFEST).unlink(missing_ok=True)
    for entry in folder.iterdir():
        if entry.is_file() and is_ours(entry.name):
            entry.unlink()
    for entry in staging.iterdir():
        if entry.name != MANIFEST:
            os.replace(entry, folder / entry.name)
    os.replace(staging / MANIFEST, folder / MANIFEST)
    (folder / CHECKPOINT).unlink(missing_ok=True)

"""Folder of a run, chosen and checked before the computation."""

import dataclasses
import os
import tempfile
from pathlib import Path
from typing import Any

from odesim.errors import UsageError
from odesim.store.files import CHECKPOINT, MANIFEST, is_ours
from odesim.store.folder import digest_in
from odesim.store.read import Run, load


@dataclasses.dataclass(frozen=True)
class Target:
    """Folder of a run. `stored` is the finished run of the same request, if `--resume` found one."""

    folder: Path
    stored: Run | None = None


def default_folder(case: Any) -> Path:
    """Return `runs/<system>-<digest>`, relative to the working directory."""
    return Path("runs") / f"{case.name}-{case.digest}"


def folder_of(case: Any, out: str | os.PathLike[str] | None) -> Path:
    """Return the requested folder, or the default one."""
    return Path(out) if out else default_folder(case)


def prepare(
    case: Any, out: str | os.PathLike[str] | None = None, *, overwrite: bool = False, resume: bool = False
) -> Target:
    """Choose the folder of a run, and check that it can be written.

    The default folder is recomputed and replaced; an explicit `out` may be new, empty or unfinished. A finished `out`
    needs `overwrite`, or `resume` for the same request. Raises `UsageError` otherwise, before anything is computed.
    """
    if overwrite and resume:
        raise UsageError("--overwrite and --resume exclude each other; give one of the two.")
    folder = folder_of(case, out)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file, but a run needs a folder; choose another --out.")
    if (folder / MANIFEST).is_file():
        stored = _finished(case, folder, explicit=out is not None, overwrite=overwrite, resume=resume)
        if stored is not None:
            return Target(folder, stored)
    elif folder.is_dir():
        _refuse_foreign(folder)
    _require_writable(folder)
    if not resume:
        (folder / CHECKPOINT).unlink(missing_ok=True)
    return Target(folder)


def _finished(case: Any, folder: Path, *, explicit: bool, overwrite: bool, resume: bool) -> Run | None:
    """Return the stored run that replaces the computation, or None if `folder` will be replaced."""
    digest = digest_in(folder)
    if resume:
        if digest == case.digest:
            return load(folder)
        other = f"the finished run of another request ({digest}, not {case.digest})"
        raise UsageError(
            f"{folder} contains {other if digest else 'a finished run whose manifest is damaged'}, which "
            "--resume cannot continue; choose another --out, or --overwrite it."
        )
    if explicit and not overwrite:
        raise UsageError(
            f"{folder} contains a finished run: give --overwrite to replace it, --resume to read it if the "
            "request is the same, or another --out."
        )
    return None


def _refuse_foreign(folder: Path) -> None:
    """Raise `UsageError` for a folder with files that odesim did not write, which would be lost by replacing it."""
    foreign = sorted(entry.name for entry in folder.iterdir() if not is_ours(entry.name))
    if foreign:
        shown = ", ".join(foreign[:3]) + (", ..." if len(foreign) > 3 else "")
        raise UsageError(
            f"{folder} is not a run folder: it contains {shown}; choose an empty or a new folder as --out."
        )


def _require_writable(folder: Path) -> None:
    """Create the parent folders, and raise `UsageError` if files cannot be created in them."""
    where = folder if folder.is_dir() else folder.parent
    try:
        where.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=where) as probe:
            probe.write(b"odesim")
            probe.flush()
    except OSError as error:
        raise UsageError(f"{folder} cannot be written ({error.strerror}); choose another --out.") from None

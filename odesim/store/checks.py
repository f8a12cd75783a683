"""Folders of checks: verdicts and comparison in subfolders, the record, the page, and the manifest last."""

import datetime
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from odesim.errors import UsageError
from odesim.machine import device
from odesim.store import target
from odesim.store import verdicts as records
from odesim.store.files import (
    BESIDE,
    CHECK,
    CHECK_PAGE,
    EVIDENCE,
    JUDGED,
    LEDGER,
    MANIFEST,
    VERDICTS,
    is_ours,
    read_json,
    replacing,
    storing,
    write_json,
)
from odesim.store.folder import SCHEMA, digest_in, manifest_of, require, write_manifest
from odesim.store.manifest import file_hashes, git_state, versions
from odesim.store.read import Run, load


def folder_of(asked: Any, out: str | os.PathLike[str] | None) -> Path:
    """Return `out`, or a folder named by the digest of the request, so that no other result is replaced."""
    return Path(out) if out is not None else Path("runs") / f"{asked.name}-{asked.digest}"


def prepare(asked: Any, out: str | os.PathLike[str] | None, *, overwrite: bool, resume: bool) -> Path:
    """Return the folder of a check, prepared for writing.

    An unfinished check is continued: its verdicts are in the ledger, and a finished comparison is kept. A finished
    check is replaced in the default folder, or with `overwrite`; with `resume` it is kept. Raises `UsageError` for
    another finished folder, or one with files that odesim did not write.
    """
    if overwrite and resume:
        raise UsageError("--overwrite and --resume exclude each other; give one of the two.")
    folder = folder_of(asked, out)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file, but a check needs a folder; choose another --out.")
    finished = (folder / MANIFEST).is_file()
    if finished and resume and digest_in(folder) != asked.digest:
        raise UsageError(
            f"{folder} has the finished result of another request; choose another --out, or give --overwrite"
        )
    if finished and not resume and out is not None and not overwrite:
        raise UsageError(
            f"{folder} has a finished result; give --overwrite to replace it, --resume to continue the same "
            "request, or another --out"
        )
    if not finished and folder.is_dir():
        foreign = sorted(entry.name for entry in folder.iterdir() if not is_ours(entry.name))
        if foreign:
            raise UsageError(f"{folder} holds {', '.join(foreign[:3])}; choose an empty or a new folder as --out.")
    with storing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        if finished and not resume:
            _clear(folder)
        _prepare_verdicts(asked, folder / JUDGED)
    return folder


def _clear(folder: Path) -> None:
    """Remove odesim's files from a finished folder, the manifest first."""
    for name in (
        MANIFEST,
        *(entry.name for entry in folder.iterdir() if is_ours(entry.name) and entry.name != MANIFEST),
    ):
        path = folder / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _prepare_verdicts(asked: Any, folder: Path) -> None:
    """Prepare the folder of the verdicts. Finished verdicts of another request are removed; the ledger is kept."""
    folder.mkdir(exist_ok=True)
    if (folder / MANIFEST).is_file() and digest_in(folder) != asked.judged.digest:
        for name in (MANIFEST, VERDICTS, EVIDENCE):
            (folder / name).unlink(missing_ok=True)


def ledger(asked: Any, folder: Path) -> records.Ledger:
    """Return the ledger of the verdicts of a check."""
    return records.Ledger(folder / JUDGED / LEDGER, asked.judged.key)


def comparison_in(asked: Any, folder: Path) -> Run | None:
    """Return the finished comparison of the same request, or None."""
    place = folder / BESIDE
    if asked.pair is None or digest_in(place) != asked.pair.digest:
        return None
    return load(place)


def place_of_comparison(asked: Any, folder: Path) -> Path:
    """Return the folder of the comparison, empty or replaceable."""
    return target.prepare(asked.pair.wanted, folder / BESIDE, overwrite=True).folder


def finish(
    asked: Any, folder: Path, record: Mapping[str, Any], page: Callable[[], str], seconds: Mapping[str, float]
) -> Path:
    """Write the record, the page and, last, the manifest of a check with finished verdicts and comparison."""
    with storing(folder):
        if asked.pair is None and (folder / BESIDE).is_dir():
            shutil.rmtree(folder / BESIDE)
        write_json(folder / CHECK, record)
        with replacing(folder / CHECK_PAGE) as file:
            file.write(page().encode())
        request = asked.request()
        content = {
            "schema": SCHEMA, "kind": "check", "system": asked.system, "digest": asked.digest, "request": request,
            **({"declaration": asked.of.declaration} if asked.of.declaration else {}),
            "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "wall_times": {name: round(value, 4) for name, value in seconds.items()}, "versions": versions(),
            "git": git_state(), "device": device.describe(), "files": _hashes(folder),
        }  # fmt: skip
        write_manifest(folder / MANIFEST, content)
    return folder


def _hashes(folder: Path) -> dict[str, Any]:
    """Return the hashes of the files of a check, without the ledger, which may change."""
    return {name: entry for name, entry in file_hashes(folder).items() if Path(name).name != LEDGER}


def stored(folder: Path) -> dict[str, Any]:
    """Return the record of a finished check after verifying its files. Raises `UsageError` for anything else."""
    require(folder, "check")
    manifest_of(folder)
    try:
        record: dict[str, Any] = read_json(folder / CHECK)
        verdict, grade = record["verdict"]["answer"], record["grade"]["name"]
    except (OSError, ValueError, KeyError, TypeError):
        raise UsageError(f"{folder} is damaged: its {CHECK} cannot be read.") from None
    if not (isinstance(verdict, str) and isinstance(grade, str)):
        raise UsageError(f"{folder} is damaged: its {CHECK} cannot be read.")
    return record


def comparison_of(folder: Path) -> Run | None:
    """Return the comparison of a finished check, or None if it has none."""
    return load(folder / BESIDE) if (folder / BESIDE / MANIFEST).is_file() else None

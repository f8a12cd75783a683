"""Folders of results: read every kind of folder, and write the results of a session like a command."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from odesim import store
from odesim.errors import UsageError
from odesim.evidence.check import Check
from odesim.evidence.verdicts import Verdicts
from odesim.request.answer import Answer
from odesim.request.trajectory import Trajectory
from odesim.store import answers, checks
from odesim.store import verdicts as records
from odesim.store.folder import HOLDS, manifest_of, require
from odesim.study.comparison import Comparison
from odesim.sweeps import swept


def load(folder: str | os.PathLike[str]) -> Any:
    """Load the result that a folder holds.  Raises `UsageError` if it does not exist or is incomplete."""
    if not isinstance(folder, str | os.PathLike):
        raise UsageError(f"load needs the path of a folder, but got {type(folder).__name__}")
    kind = require(folder, *HOLDS)
    if kind == "sweep":
        return swept.load(Path(folder))
    if kind == "answer":
        return answers.load(Path(folder))
    if kind == "check":
        from odesim.show import check

        return check.load(Path(folder))
    if kind == "verdicts":
        return Verdicts(records.stored(Path(folder))["verdicts"])
    if kind == "figures":
        from odesim.show.report import read_figures

        return [Path(folder) / picture.name for picture in read_figures(os.fspath(folder)).every]
    return store.load(folder)


def save(result: Any, folder: str | os.PathLike[str], *, overwrite: bool, pictures: bool) -> Path:
    """Write a result of this session into a folder.  Raises `UsageError` for what cannot be stored."""
    with store.claimed(Path(folder)):
        return _saved(result, folder, overwrite, pictures)


def _saved(result: Any, folder: str | os.PathLike[str], overwrite: bool, pictures: bool) -> Path:
    if isinstance(result, store.Run):
        return _copied(result, Path(folder), overwrite)
    if isinstance(result, Verdicts):
        return _verdicts(result, folder, overwrite)
    if isinstance(result, Check):
        return _check(result, folder, overwrite)
    if isinstance(result, Answer):
        return _answer(result, folder, overwrite, pictures)
    if isinstance(result, Comparison):
        return _run([result.trajectory()], folder, overwrite, pictures)
    if isinstance(result, Trajectory):
        return _run([result], folder, overwrite, pictures)
    if isinstance(result, Sequence) and result and all(isinstance(run, Trajectory) for run in result):
        return _run(result, folder, overwrite, pictures)
    raise UsageError(
        "save takes a run, a list of stages, a comparison, verdicts, a check or an answer, but got "
        f"{type(result).__name__}; odesim.sweep(.., folder=..) keeps a sweep"
    )


def _run(runs: Sequence[Trajectory], folder: str | os.PathLike[str], overwrite: bool, pictures: bool) -> Path:
    asked = runs[-1].asked
    if asked is None:
        raise UsageError("this run has no request: save the object that odesim.integrate or odesim.simulate returned")
    from odesim.show import plot

    draw = plot.draw if pictures else None
    target = store.prepare(asked, folder, overwrite=overwrite)
    if len(runs) > 1:
        return store.save_stages(runs, asked, target.folder, {}, draw)
    return store.save(runs[0], asked, target.folder, {}, draw)


def _answer(answer: Answer, folder: str | os.PathLike[str], overwrite: bool, pictures: bool) -> Path:
    from odesim.show.answers import draw

    target = store.prepare(answer.asked, folder, overwrite=overwrite)
    return answers.save(answer, target.folder, 0.0, draw if pictures else None)


def _verdicts(verdicts: Verdicts[Any], folder: str | os.PathLike[str], overwrite: bool) -> Path:
    if verdicts.asked is None:
        raise UsageError(
            "verdicts that were read from a folder cannot be saved again: copy the folder instead; it also contains "
            "the evidence"
        )
    place = records.prepare(verdicts.asked, folder, overwrite=overwrite, resume=False)
    records.finish(verdicts.asked, place, [verdict.as_dict() for verdict in verdicts])
    return place


def _check(check: Check, folder: str | os.PathLike[str], overwrite: bool) -> Path:
    from odesim.show.check import write

    if check.asked is None:
        raise UsageError(
            "a check that was read from a folder cannot be saved again: copy the folder instead; it also contains the "
            "evidence"
        )
    return write(check, checks.prepare(check.asked, folder, overwrite=overwrite, resume=False))


def _copied(run: store.Run, folder: Path, overwrite: bool) -> Path:
    """Copy a stored run to another folder, after verifying it."""
    manifest_of(run.folder)
    if folder.exists() and (not overwrite or require(folder, "run") != "run"):
        raise UsageError(f"{folder} exists already; give --overwrite to replace it, or choose another --out")
    store.copy(run, folder)
    return folder

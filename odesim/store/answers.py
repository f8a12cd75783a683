"""Folders of answers: arrays as NetCDF, headline numbers, tables as CSV, pictures, and the manifest last."""

import csv
import datetime
import time
from collections.abc import Callable
from pathlib import Path

from derivations.contract import load as load_object
from odesim.errors import UsageError
from odesim.machine import device
from odesim.request.answer import Answer, Question, Table
from odesim.store.files import ANSWER, MANIFEST, SUMMARY, TABLES, read_json, write_json
from odesim.store.folder import SCHEMA, manifest_of, require, write_manifest
from odesim.store.manifest import file_hashes, git_state, versions
from odesim.store.netcdf import netcdf
from odesim.store.read import read_variables
from odesim.store.write import installed, write_pictures

RESULT = "odesim.study.answers.{verb}:RESULT"
"""Module with the class of the answers of a command."""


def save(answer: Answer, folder: Path, seconds: float, draw: Callable[[Answer, Path], object] | None) -> Path:
    """Write an answer into `folder`, replacing earlier files of odesim. Return the folder.

    `seconds` is the time that the answer took, `draw` makes the pictures. Raises `StorageError` if the disk is full or
    lost; the folder is then unchanged.
    """
    started = time.perf_counter()
    with installed(folder) as staging:
        # Made in memory and written at once, like trajectories.
        (staging / ANSWER).write_bytes(netcdf(answer, {"digest": answer.asked.digest}))
        write_json(staging / SUMMARY, answer.numbers)
        for name, table in answer.tables().items():
            _write_table(staging / TABLES / f"{name}.csv", table)
        for name, text in answer.files().items():
            (staging / name).write_text(text, encoding="utf-8")
        if draw is not None:
            write_pictures(draw, answer, staging)
        took = {"solve": seconds, "store": time.perf_counter() - started}
        asked = answer.asked
        content = {
            "schema": SCHEMA, "kind": "answer", "verb": asked.verb, "system": asked.system, "digest": asked.digest,
            "request": asked.request(), "declaration": asked.declaration, "details": dict(asked.details),
            "sentences": list(answer.sentences),
            "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "wall_times": {name: round(value, 4) for name, value in took.items()}, "versions": versions(),
            "git": git_state(), "device": device.describe(), "files": file_hashes(staging),
        }  # fmt: skip
        write_manifest(staging / MANIFEST, content)
    return folder


def _write_table(path: Path, table: Table) -> None:
    """Write a table as CSV with full precision."""
    path.parent.mkdir(exist_ok=True)
    header, rows = table
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


def load(folder: Path) -> Answer:
    """Read the answer in a folder, after verifying the hashes of its files.

    Raises `UsageError` for a folder without an answer, or with a damaged one.
    """
    require(folder, "answer")
    manifest = manifest_of(folder)
    try:
        variables = read_variables(folder / ANSWER)
        verb = manifest["verb"]
        read_as = manifest["request"].get("declaration", "")
        asked = Question(verb, manifest["system"], manifest["details"], manifest.get("declaration", ""), read_as)
        result = load_object(RESULT.format(verb=verb))
        answer: Answer = result(asked, variables, read_json(folder / SUMMARY), tuple(manifest["sentences"]))
    except (KeyError, TypeError, ValueError, OSError, ImportError) as error:
        raise UsageError(f"{folder} is damaged: its answer or manifest cannot be read ({error}).") from None
    return answer

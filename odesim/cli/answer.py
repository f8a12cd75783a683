"""Common parts of the commands that write an answer: folder, progress, storage and the printed answer."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from odesim.request.answer import Answer, Question


def answer(question: "Question", job: "Callable[[Any], Answer]", label: str, given: Mapping[str, Any]) -> int:
    """Answer a question by `job(progress)`, store the answer and print it; returns the exit code 0.

    `given` are the options of the folder (`out`, `overwrite`), of pictures and of the printed answer.
    """
    from odesim import store
    from odesim.cli.run import show_request
    from odesim.store import answers

    if given.get("dry_run"):
        return show_request(question, given)
    with store.claimed(store.folder_of(question, given["out"])):
        target = store.prepare(question, given["out"], overwrite=given["overwrite"])
        started = time.perf_counter()
        from odesim.ask.progress import Progress

        with Progress(label, quiet=given["quiet"] or given["json"]) as progress:
            result = job(progress)
        seconds = time.perf_counter() - started
        answers.save(result, target.folder, seconds, None if given["no_figures"] else _draw)
    return print_answer(result, target.folder, json=given["json"], quiet=given["quiet"], note=f"{seconds:.1f} s")


def _draw(result: "Answer", folder: Path) -> None:
    """Draw the pictures; the drawing library is imported only here, after the answer is computed."""
    from odesim.show.answers import draw

    draw(result, folder)


def print_answer(result: "Answer", folder: Path, *, json: bool, quiet: bool, note: str = "") -> int:
    """Print an answer: its sentences, its tables and its folder."""
    from odesim.cli.output import print_json, print_table

    if json:
        content = {"folder": str(folder), "sentences": list(result.sentences), "summary": result.summary()}
        print_json({**content, "tables": {name: _records(table) for name, table in result.tables().items()}})
        return 0
    if quiet:
        print(folder)
        return 0
    for sentence in result.sentences:
        print(sentence)
    for header, rows in result.tables().values():
        print_table(header, rows)
    print(f"folder {folder}" + (f" ({note})" if note else ""))
    return 0


def _records(table: Any) -> list[dict[str, Any]]:
    """Return the rows of a table as mappings."""
    header, rows = table
    return [dict(zip(header, row, strict=True)) for row in rows]

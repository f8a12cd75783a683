"""Runs and sweeps of a page: the common values of the runs of a stage once, and the different ones in a table."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from odesim.errors import UsageError
from odesim.request.stored_system import name_of, short_name
from odesim.show.report.evidence import flat, parted
from odesim.show.report.pictures import is_shown, picture_of
from odesim.show.report.sections import Picture, RunSection, StageSection
from odesim.show.report.words import Rows, instant, rows_of, shown
from odesim.store import answers
from odesim.store.files import MANIFEST
from odesim.store.folder import manifest_of
from odesim.store.read import read_headline


def read_run(folder: str, number: int = 0) -> RunSection:
    """Read a finished run: its headline and pictures, whose hashes are in the manifest."""
    path = Path(folder)
    manifest, summary = read_headline(path)
    try:
        origin, outcome = manifest["origin"], manifest["outcome"]
        name = short_name(origin["system"], manifest.get("declaration", ""))
        ended = f"{outcome['kind']} at time {outcome['time']:.6g}"
        return RunSection(
            folder=Path(folder).name,
            title=f"{name}, stage {origin['stage']}, tier {origin['tier']}, {origin['method']}",
            made=str(manifest["created"]),
            outcome=ended + (f": {outcome['reason']}" if outcome["reason"] else ""),
            blocks=(("Summary", rows_of(summary)), ("Request", tuple(flat(manifest["request"]).items()))),
            versions=manifest["versions"],
            pictures=_pictures(path, manifest["files"]),
            digest=str(manifest.get("digest") or ""),
            anchor=f"run-{number}",
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"{folder} is damaged: its {MANIFEST} is not that of a run") from None


def _pictures(folder: Path, files: Mapping[str, Any]) -> tuple[Picture, ...]:
    """The pictures among the files of a folder that are shown."""
    return tuple(picture_of(folder, name, entry) for name, entry in files.items() if is_shown(name, files))


def read_sweep(folder: str, number: int = 0) -> RunSection:
    """Read a finished sweep: the outcomes of its cells, and its headline numbers."""
    from odesim.sweeps import swept

    manifest, data = swept.read(Path(folder))
    header, rows, statistic = swept.table(data)
    over = manifest["request"]["over"]
    free = len([name for name in over if name != "seed"])
    blocks = [("Swept", rows_of(over)), ("Outcomes", rows_of(swept.counts(data)))]
    for row in rows:
        place = ", ".join(f"{name} = {shown(value)}" for name, value in zip(header[:free], row[:free], strict=True))
        numbers = dict(zip(header[free:], row[free:], strict=True))
        blocks.append((f"{place or 'All cells'}{f': {statistic}' if statistic else ''}", rows_of(numbers)))
    return RunSection(
        folder=Path(folder).name,
        title=f"{name_of(data)}, sweep over {', '.join(over)}",
        made=instant((Path(folder) / MANIFEST).stat().st_mtime),
        outcome=f"{data['outcome'].size} cells",
        blocks=tuple(blocks),
        versions=manifest["versions"],
        pictures=_pictures(Path(folder), manifest["files"]),
        digest=str(manifest.get("digest") or ""),
        anchor=f"run-{number}",
    )


def read_answer(folder: str, number: int = 0) -> RunSection:
    """Read a finished answer: its sentences, headline numbers, question and pictures."""
    path = Path(folder)
    result, manifest = answers.load(path), manifest_of(path)
    blocks = [("Answer", rows_of({str(k): text for k, text in enumerate(result.sentences, 1)}))]
    blocks.append(("Summary", rows_of(result.summary())))
    blocks.append(("Request", tuple(flat(manifest["request"]).items())))
    return RunSection(
        folder=path.name,
        title=f"{result.asked.system_name}, {result.asked.verb}",
        made=str(manifest["created"]),
        outcome=result.sentences[0],
        blocks=tuple(blocks),
        versions=manifest["versions"],
        pictures=_pictures(path, manifest["files"]),
        digest=str(manifest["digest"]),
        anchor=f"run-{number}",
    )


def by_stage(runs: Sequence[RunSection]) -> list[StageSection]:
    """Return the runs grouped by title, in the order of the first occurrence of each title."""
    grouped: dict[str, list[RunSection]] = {}
    for run in runs:
        grouped.setdefault(run.title, []).append(run)
    return [_stage(title, f"stage-{number}", group) for number, (title, group) in enumerate(grouped.items())]


def _stage(title: str, anchor: str, runs: Sequence[RunSection]) -> StageSection:
    common: list[tuple[str, Rows]] = []
    differing = []
    for block in dict.fromkeys(name for run in runs for name, _ in run.blocks):
        each = [dict(next((rows for name, rows in run.blocks if name == block), ())) for run in runs]
        shared, names = parted(each)
        if shared:
            common.append((block, tuple(shared.items())))
        if names:
            rows = tuple((name, tuple(run.get(name, "–") for run in each)) for name in names)
            differing.append((block, rows))
    return StageSection(
        title=title,
        anchor=anchor,
        runs=tuple(runs),
        common=tuple(common),
        differing=tuple(differing),
        versions=runs[0].versions if all(run.versions == runs[0].versions for run in runs) else {},
    )

"""One self-contained HTML page of verdicts, figures and runs: no network, no other file, readable without script."""

import base64
import dataclasses
import datetime
import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from derivations.claim import ANSWERS
from odesim.errors import StorageError, UsageError
from odesim.store.files import FIGURES, MANIFEST, VERDICTS, read_json, replacing, sha256
from odesim.store.folder import kind_of, manifest_of
from odesim.store.read import read_headline

RUNGS = {
    1: "identity",
    2: "expectation",
    3: "back ends",
    4: "integrators",
    5: "invariants",
    6: "drift",
    7: "trajectory",
    8: "law",
    9: "control",
}
"""The rungs of the ladder of evidence, by number."""
PICTURES = {".png": "image/png", ".svg": "image/svg+xml"}
NEEDED = ("claim", "variant", "answer", "predicted", "estimate", "interval", "rungs", "reason", "evidence")


@dataclasses.dataclass(frozen=True)
class Picture:
    """A picture inside the page: its name and caption, and the whole file as a data address."""

    name: str
    caption: str
    address: str


@dataclasses.dataclass(frozen=True)
class ClaimSection:
    """A claim with its verdicts, one for each form, and everything a reader needs to judge and repeat them."""

    id: str
    anchor: str
    statements: tuple[tuple[str, str], ...]
    source: str
    rungs: tuple[str, ...]
    erratum: str
    command: str
    verdicts: tuple[Mapping[str, Any], ...]
    pictures: tuple[Picture, ...] = ()

    @property
    def answers(self) -> list[str]:
        """The answers that occur, for the filter."""
        return sorted({verdict["answer"] for verdict in self.verdicts})


@dataclasses.dataclass(frozen=True)
class VerdictSection:
    """The verdicts of one folder."""

    folder: str
    system: str
    effort: str
    made: str
    versions: Mapping[str, Any]
    claims: tuple[ClaimSection, ...]
    errata: tuple[tuple[str, str, str, str], ...]

    @property
    def counts(self) -> dict[str, int]:
        """How many verdicts came out as which answer."""
        found = [verdict["answer"] for claim in self.claims for verdict in claim.verdicts]
        return {answer: found.count(answer) for answer in ANSWERS}


@dataclasses.dataclass(frozen=True)
class RunSection:
    """A stored run: where it is, how it ended, its headline numbers, its request and its pictures."""

    folder: str
    title: str
    made: str
    outcome: str
    blocks: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    versions: Mapping[str, Any]
    pictures: tuple[Picture, ...]


@dataclasses.dataclass(frozen=True)
class FigureSection:
    """A folder of figures: those that belong to no claim of the page; `by_claim` holds the others too."""

    folder: str
    system: str
    pictures: tuple[Picture, ...]
    by_claim: Mapping[str, tuple[Picture, ...]]

    @property
    def every(self) -> tuple[Picture, ...]:
        """All figures of the folder, whether or not a claim has them."""
        return tuple(dict.fromkeys([*self.pictures, *(p for group in self.by_claim.values() for p in group)]))


Section = VerdictSection | RunSection | FigureSection


def write(folders: Sequence[str], out: str | os.PathLike[str], overwrite: bool = False) -> Path:
    """Write the report of verify, figure and run folders to the file `out`, at once or not at all; returns its path.

    Raises `UsageError` for a folder that is none of these, and for an `out` that exists without `overwrite`.
    """
    target = Path(out)
    if target.is_dir():
        raise UsageError(f"{target} is a folder, but the report is one file; choose another --out")
    if target.exists() and not overwrite:
        raise UsageError(f"{target} exists; --overwrite replaces it, or choose another --out")
    if not target.parent.is_dir():
        raise UsageError(f"{target.parent} is no existing folder, so {target} cannot be written; create it first")
    return _replace(target, page(folders))


def page(folders: Sequence[str], when: str | None = None) -> str:
    """The report as HTML; `when` is the time in its header, by default now."""
    import jinja2

    from odesim.version import __version__

    if not folders:
        raise UsageError("a report needs at least one folder: those that `odesim verify` and `integrate` print")
    sections = place_figures([read(folder, k) for k, folder in enumerate(dict.fromkeys(folders))])
    verdicts = [section for section in sections if isinstance(section, VerdictSection)]
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("odesim.show", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["shown"] = shown
    return environment.get_template("report.html").render(
        when=when or _instant(datetime.datetime.now(datetime.UTC).timestamp()),
        version=__version__,
        answers=ANSWERS,
        counts={answer: sum(section.counts[answer] for section in verdicts) for answer in ANSWERS},
        verdicts=verdicts,
        figures=[section for section in sections if isinstance(section, FigureSection)],
        runs=[section for section in sections if isinstance(section, RunSection)],
    )


def read(folder: str, number: int = 0) -> Section:
    """What a folder holds.  Raises `UsageError` for one without finished verdicts, figures or a finished run."""
    path = Path(folder)
    if not path.is_dir():
        raise UsageError(f"there is no folder {folder}; give folders of `odesim verify`, `figures` or `integrate`")
    kind = kind_of(path)
    if kind == "verdicts":
        return read_verdicts(folder, number)
    return {"figures": read_figures, "sweep": read_sweep}.get(kind, read_run)(folder)


def read_verdicts(folder: str, number: int = 0) -> VerdictSection:
    """The verdicts of a folder, grouped by claim in their order."""
    path = Path(folder) / VERDICTS
    if (path.parent / MANIFEST).is_file():
        manifest_of(path.parent)
    try:
        content = read_json(path)
        system, effort, verdicts = str(content["system"]), str(content["effort"]), content["verdicts"]
        if not all(map(_sound, verdicts)):
            raise ValueError
    except (ValueError, KeyError, TypeError, OSError):
        raise UsageError(f"{path} is damaged: it does not hold verdicts as `odesim verify` writes them") from None
    grouped: dict[str, list[Mapping[str, Any]]] = {}
    for verdict in verdicts:
        grouped.setdefault(str(verdict["claim"]), []).append(verdict)
    claims = tuple(_claim(system, effort, number, name, group) for name, group in grouped.items())
    used = list(dict.fromkeys(claim.erratum for claim in claims if claim.erratum))
    known = errata(system)
    return VerdictSection(
        folder=folder,
        system=system,
        effort=effort,
        made=_instant(path.stat().st_mtime),
        versions=_versions(path.parent),
        claims=claims,
        errata=tuple((_anchor(number, system, name), name, *known.get(name, ("", ""))) for name in used),
    )


def _sound(verdict: Mapping[str, Any]) -> bool:
    """Whether a verdict has what the page shows, in the shapes it needs."""
    lists = all(isinstance(verdict[name], list) for name in ("rungs", "evidence"))
    return lists and verdict["answer"] in ANSWERS and all(name in verdict for name in NEEDED)


def _claim(system: str, effort: str, number: int, name: str, group: list[Mapping[str, Any]]) -> ClaimSection:
    statements: dict[str, list[str]] = {}
    for verdict in group:
        statements.setdefault(str(verdict.get("statement") or ""), []).append(str(verdict["variant"]))
    labelled = tuple((", ".join(forms) if len(statements) > 1 else "", text) for text, forms in statements.items())
    first = group[0]
    return ClaimSection(
        id=name,
        anchor=_anchor(number, system, name),
        statements=tuple((label, text) for label, text in labelled if text),
        source=str(first.get("source") or ""),
        rungs=tuple(f"{rung} {RUNGS.get(rung, 'unknown')}" for rung in first["rungs"]),
        erratum=str(first.get("erratum") or ""),
        command=f"odesim verify --system {shlex.quote(system)} --claim {name} --effort {effort}",
        verdicts=tuple(group),
    )


def errata(system: str) -> dict[str, tuple[str, str]]:
    """(title, text) of every erratum in the README of a system, by its name; the text keeps its mark-up."""
    from odesim.code.sources import home

    place = home(system)
    path = place / "README.md" if place is not None else None
    if path is None or not path.is_file():
        return {}
    pattern = re.compile(r"^### (errata-[\w-]+): *(.*?)\n(.*?)(?=^#{1,3} |\Z)", re.MULTILINE | re.DOTALL)
    return {name: (title, text.strip()) for name, title, text in pattern.findall(path.read_text(encoding="utf-8"))}


def read_run(folder: str) -> RunSection:
    """A finished run: its headline and pictures, whose hashes are those of the manifest."""
    path = Path(folder)
    manifest, summary = read_headline(path)
    try:
        origin, outcome = manifest["origin"], manifest["outcome"]
        ended = f"{outcome['kind']} at time {outcome['time']:.6g}"
        pictures = tuple(
            _picture(path, name, entry) for name, entry in manifest["files"].items() if _shown(name, manifest["files"])
        )
        return RunSection(
            folder=folder,
            title=f"{origin['system']}, stage {origin['stage']}, tier {origin['tier']}, {origin['method']}",
            made=str(manifest["created"]),
            outcome=ended + (f": {outcome['reason']}" if outcome["reason"] else ""),
            blocks=(("Summary", _rows(summary)), ("Request", _rows(manifest["request"]))),
            versions=manifest["versions"],
            pictures=pictures,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"{folder} is damaged: its {MANIFEST} is not that of a run") from None


def read_sweep(folder: str) -> RunSection:
    """A finished sweep: how its cells ended, and its headline numbers."""
    from odesim.sweeps import swept

    manifest, data = swept.read(Path(folder))
    header, rows, statistic = swept.table(data)
    over = manifest["request"]["over"]
    free = len([name for name in over if name != "seed"])
    blocks = [("Swept", _rows(over)), ("Outcomes", _rows(swept.counts(data)))]
    for row in rows:
        place = ", ".join(f"{name} = {shown(value)}" for name, value in zip(header[:free], row[:free], strict=True))
        numbers = dict(zip(header[free:], row[free:], strict=True))
        blocks.append((f"{place or 'All cells'}{f': {statistic}' if statistic else ''}", _rows(numbers)))
    return RunSection(
        folder=folder,
        title=f"{data.attrs['system']}, sweep over {', '.join(over)}",
        made=_instant((Path(folder) / MANIFEST).stat().st_mtime),
        outcome=f"{data['outcome'].size} cells",
        blocks=tuple(blocks),
        versions=manifest["versions"],
        pictures=(),
    )


def read_figures(folder: str) -> FigureSection:
    """The figures that `odesim figures` left in a folder; a smaller version only where there is no other."""
    path = Path(folder)
    by_claim: dict[str, tuple[Picture, ...]] = {}
    pictures = []
    try:
        content = read_json(path / FIGURES)
        files = {entry["file"] for entry in content["figures"]}
        for entry in content["figures"]:
            if entry["file"].replace("-quick.", ".") in files - {entry["file"]}:
                continue  # the published size is there too
            picture = _picture(path, entry["file"], entry, entry["caption"])
            pictures.append(picture)
            for claim in entry["claims"]:
                by_claim[claim] = (*by_claim.get(claim, ()), picture)
        return FigureSection(folder, str(content["system"]), tuple(pictures), by_claim)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"{path / FIGURES} is damaged; `odesim figures` writes it again") from None


def place_figures(sections: Sequence[Section]) -> list[Section]:
    """The sections with every figure put to the first claim it belongs to; the rest stay where they were."""
    placed: set[str] = set()
    found: list[Section] = []
    for section in sections:
        if isinstance(section, VerdictSection):
            claims = []
            for claim in section.claims:
                own = [
                    picture
                    for figures in sections
                    if isinstance(figures, FigureSection) and figures.system == section.system
                    for picture in figures.by_claim.get(claim.id, ())
                    if picture.address not in placed
                ]
                placed.update(picture.address for picture in own)
                claims.append(dataclasses.replace(claim, pictures=tuple(own)))
            section = dataclasses.replace(section, claims=tuple(claims))
        found.append(section)
    return [
        dataclasses.replace(section, pictures=tuple(p for p in section.pictures if p.address not in placed))
        if isinstance(section, FigureSection)
        else section
        for section in found
    ]


def shown(value: Any) -> str:
    """A number, interval, list or mapping as a reader wants it: six digits, a dash for nothing."""
    if value is None or value == "":
        return "–"
    if isinstance(value, bool | str | int):
        return str(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {shown(item)}" for name, item in value.items())
    if isinstance(value, Iterable):
        return "[" + ", ".join(shown(item) for item in value) + "]"
    return str(value)


def _rows(content: Mapping[str, Any], prefix: str = "") -> tuple[tuple[str, str], ...]:
    """Names and shown values, nested mappings with dotted names."""
    rows: list[tuple[str, str]] = []
    for name, value in content.items():
        if isinstance(value, Mapping):
            rows += _rows(value, f"{prefix}{name}.")
        else:
            rows.append((f"{prefix}{name}", shown(value)))
    return tuple(rows)


def _drawn(name: str) -> bool:
    return Path(name).suffix.lower() in PICTURES


def _shown(name: str, files: Mapping[str, Any]) -> bool:
    """Whether a picture of a run is shown: the SVG of those that are there in both forms."""
    return _drawn(name) and not (name.endswith(".png") and f"{name.removesuffix('.png')}.svg" in files)


def _picture(folder: Path, name: str, entry: Mapping[str, Any], caption: str = "") -> Picture:
    """A picture of a folder as a data address.  Raises `UsageError` where it is missing, changed or elsewhere."""
    path = folder / name
    inside = not Path(name).is_absolute() and ".." not in Path(name).parts
    if not (inside and _drawn(name) and path.is_file()) or sha256(path) != entry["sha256"]:
        raise UsageError(f"{folder} is damaged: its picture {name} is missing or was changed since it was drawn")
    content = base64.b64encode(path.read_bytes()).decode("ascii")
    return Picture(name, caption, f"data:{PICTURES[path.suffix.lower()]};base64,{content}")


def _versions(folder: Path) -> dict[str, Any]:
    """The versions that the manifest beside some verdicts names, or none."""
    try:
        return dict(read_json(folder / MANIFEST)["versions"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _anchor(number: int, system: str, name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", f"{system}-{number}-{name}")


def _instant(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")


def _replace(target: Path, text: str) -> Path:
    """Write a file at once or not at all."""
    try:
        with replacing(target) as file:
            file.write(text.encode())
    except OSError as error:
        raise StorageError(f"{target} could not be written ({error.strerror}); choose another --out") from error
    return target

"""Evidence of verdicts: a picture of the samples of every form, and a table of the requests by digest."""

import base64
import dataclasses
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from derivations.outside import last_name
from odesim.errors import UsageError
from odesim.show.report.sections import Picture, Run, Table
from odesim.show.report.words import rows_of
from odesim.store.files import EVIDENCE, read_json

Key = tuple[str, str]
LEAST = 2
"""A single case has no picture: the number itself is in the text."""
PARAMETERS = "parameters."
"""Prefix of the names of parameters in a request with dotted names."""
LISTED = 200
"""Runs of one table on a page at most. A claim may read ten thousand runs, whose rows would be most of the page."""


@dataclasses.dataclass(frozen=True)
class Evidence:
    """The samples of every form, and the requests of the runs as tables whose rows have anchors."""

    samples: Mapping[Key, list[Any]]
    anchors: Mapping[str, str]
    tables: tuple[Table, ...]

    def links(self, verdict: Mapping[str, Any]) -> tuple[Run, ...]:
        """Return the runs of a verdict, each with the row of its request."""
        return tuple(Run(str(digest), self.anchors.get(str(digest), "")) for digest in verdict["evidence"])

    def picture(self, verdict: Mapping[str, Any]) -> Picture | None:
        """Return the picture of a verdict, drawn from its samples; none if nothing was measured more than once."""
        samples = self.samples.get((str(verdict["claim"]), str(verdict["variant"])), [])
        if len(samples) < LEAST:
            return None
        return drawn({"law": "", "margin": None, "deciding": "", **verdict, "samples": samples})


def drawn(verdict: Mapping[str, Any]) -> Picture:
    """Return the picture of a verdict as a small SVG with text and without background, so that it has the page's
    colours.
    """
    import matplotlib

    from odesim.show import alt, verdict_pictures

    figure, caption = verdict_pictures.draw(verdict, titled=False), verdict_pictures.caption(verdict)
    file = io.BytesIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "odesim"}):
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    address = "data:image/svg+xml;base64," + base64.b64encode(file.getvalue()).decode("ascii")
    return Picture(verdict_pictures.file_name(verdict), caption, address, alt.describe(figure), len(figure.axes) > 1)


def evidence_of(folder: Path, prefix: str) -> Evidence:
    """Return the evidence in a verify folder, whose hash is in the manifest; none in a folder without it."""
    path = folder / EVIDENCE
    if not path.is_file():
        return Evidence({}, {}, ())
    try:
        content = read_json(path)
        samples = {(str(one["claim"]), str(one["variant"])): list(one["samples"]) for one in content["samples"]}
        runs = {str(digest): dict(request) for digest, request in content["runs"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, OSError):
        raise UsageError(f"{path} is damaged: it does not have the evidence that `odesim verify` writes") from None
    tables = _tables(runs, prefix)
    anchors = {digest: f"{prefix}-{digest}" for table in tables for digest, _ in table.rows}
    return Evidence(samples, anchors, tables)


def _tables(runs: Mapping[str, Mapping[str, Any]], prefix: str) -> tuple[Table, ...]:
    """Return a table for every stage and method: the common values of its runs once, and the different ones in a row
    for each.
    """
    grouped: dict[str, dict[str, dict[str, str]]] = {}
    for digest, request in runs.items():
        parts = [str(request.get(name) or "") for name in ("stage", "method")]
        title = ", ".join(part for part in (f"stage {parts[0]}" if parts[0] else "", parts[1]) if part)
        grouped.setdefault(title or "runs", {})[digest] = flat(request)
    return tuple(_table(title, prefix, number, group) for number, (title, group) in enumerate(grouped.items()))


def _table(title: str, prefix: str, number: int, runs: Mapping[str, Mapping[str, str]]) -> Table:
    shared, differing = parted(list(runs.values()))
    listed = list(runs.items())[:LISTED]
    return Table(
        title=title,
        anchor=f"{prefix}s-{number}",
        place=prefix,
        common=tuple(shared.items()),
        header=tuple(name.removeprefix(PARAMETERS) for name in differing),
        rows=tuple((digest, tuple(run.get(name, "–") for name in differing)) for digest, run in listed),
        count=len(runs),
    )


def flat(content: Mapping[str, Any]) -> dict[str, str]:
    """Return names and values as text: nested names with dots, a long list by its length.

    A system is given by its name, because others may read the page and its reference may be a path of this machine.
    """
    told = {n: last_name(value) if n.rpartition(".")[2] == "system" else value for n, value in rows_of(content)}
    # A request states its tier, and its parameters state it again.
    repeated = {f"{PARAMETERS}{n}" for n, value in told.items() if told.get(f"{PARAMETERS}{n}") == value}
    return {n: value if len(value) <= 60 else f"{value[:57]}..." for n, value in told.items() if n not in repeated}


def parted(runs: Sequence[Mapping[str, str]]) -> tuple[dict[str, str], list[str]]:
    """Return the values that all runs have in common, and the names in which they differ, in order.

    Example:
        >>> parted([{"d": "10", "seed": "0"}, {"d": "10", "seed": "1"}])
        ({'d': '10'}, ['seed'])
    """
    names = list(dict.fromkeys(name for run in runs for name in run))
    differing = [name for name in names if len({run.get(name) for run in runs}) > 1]
    return {name: runs[0][name] for name in names if name not in differing}, differing

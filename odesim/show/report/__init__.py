"""Self-contained HTML page of verdicts, figures and runs, without network, other files or scripts."""

import datetime
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from derivations.claim import ANSWERS
from odesim.errors import UsageError
from odesim.show import writing
from odesim.show.report import glossary
from odesim.show.report.errata import errata, rendered
from odesim.show.report.figures import place_figures, read_figures
from odesim.show.report.plain import typeset
from odesim.show.report.runs import by_stage, read_answer, read_run, read_sweep
from odesim.show.report.sections import FigureSection, RunSection, Section, VerdictSection
from odesim.show.report.verdicts import read_verdicts
from odesim.show.report.words import instant, shown
from odesim.store.files import JUDGED
from odesim.store.folder import kind_of

__all__ = ["errata", "page", "read", "read_answer", "read_figures", "read_run", "read_sweep", "read_verdicts", "write"]


def write(folders: Sequence[str], out: str | os.PathLike[str], overwrite: bool = False) -> Path:
    """Write the report of verify, figure and run folders to the file `out`, atomically. Return its path.

    Raises `UsageError` for a folder that is none of these, and for an `out` that exists without `overwrite`.
    """
    return writing.write(lambda: page(folders), out, overwrite, "report")


def page(folders: Sequence[str], when: str | None = None) -> str:
    """The report as HTML; `when` is the time in its header, by default now."""
    from odesim.version import __version__

    if not folders:
        raise UsageError(
            "a report needs at least one folder, such as one that `odesim verify` or `odesim integrate` has written"
        )
    sections = place_figures([read(folder, k) for k, folder in enumerate(dict.fromkeys(folders))])
    verdicts = [section for section in sections if isinstance(section, VerdictSection)]
    runs = [section for section in sections if isinstance(section, RunSection)]
    return (
        _environment()
        .get_template("report.html")
        .render(
            when=when or instant(datetime.datetime.now(datetime.UTC).timestamp()),
            version=__version__,
            answers=ANSWERS,
            glossary=glossary,
            counts={answer: sum(section.counts[answer] for section in verdicts) for answer in ANSWERS},
            unexpected=sum(section.unexpected for section in verdicts),
            identities=sum(section.identities for section in verdicts),
            verdicts=verdicts,
            figures=[section for section in sections if isinstance(section, FigureSection) and section.pictures],
            stages=by_stage(runs),
            run_count=len(runs),
            places={run.digest: run.anchor for run in runs if run.digest},
        )
    )


def _environment() -> Any:
    """The templates, with the filters of a report."""
    environment = writing.environment()
    environment.filters |= {"shown": shown, "typeset": typeset, "rendered": rendered}
    return environment


def read(folder: str, number: int = 0) -> Section:
    """Return the content of a folder.  Raises `UsageError` if it has no finished verdicts, figures or run."""
    path = Path(folder)
    if not path.is_dir():
        raise UsageError(f"there is no folder {folder}; give folders of `odesim verify`, `figures` or `integrate`")
    kind = kind_of(path)
    if kind == "figures":
        return read_figures(folder)
    if kind == "check":  # which has its own page; among other folders its verdicts are shown
        return read_verdicts(str(path / JUDGED), number)
    readers = {"verdicts": read_verdicts, "sweep": read_sweep, "answer": read_answer}
    return readers.get(kind, read_run)(folder, number)

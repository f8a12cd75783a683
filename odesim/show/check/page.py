"""Page of a check: one file without network requests, for small screens, dark mode and print."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from derivations.claim import ANSWERS
from odesim.evidence.check import unexpected
from odesim.evidence.grade import MEANINGS
from odesim.show import writing
from odesim.show.check.equations import formulas
from odesim.show.cite import of_check
from odesim.show.report import glossary
from odesim.show.report.errata import rendered
from odesim.show.report.plain import typeset
from odesim.show.report.runs import read_run
from odesim.show.report.verdicts import read_verdicts
from odesim.show.report.words import shown
from odesim.store.files import BESIDE, JUDGED, MANIFEST

FIRST = 3
"""Number of lines of refuted and open claims on the first screen."""


def page(record: Mapping[str, Any], folder: Path) -> str:
    """Return the page of a check as HTML; verdicts, their evidence and the picture come from its folder."""
    from markupsafe import Markup

    environment = writing.environment()
    environment.filters |= {"shown": shown, "typeset": typeset, "rendered": rendered}
    comparison_folder = folder / BESIDE
    return environment.get_template("check.html").render(
        record=record,
        section=read_verdicts(str(folder / JUDGED)),
        beside=read_run(str(comparison_folder)) if (comparison_folder / MANIFEST).is_file() else None,
        equations=[Markup(formula) for formula in formulas(record["model"]["equations"])],
        unexpected=unexpected(record)[:FIRST],
        more=max(0, len(unexpected(record)) - FIRST),
        answers=ANSWERS,
        grades=MEANINGS,
        glossary=glossary,
        bibtex=of_check(record),
    )

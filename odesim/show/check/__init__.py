"""Output of checks: the record, one self-contained page, and the folder of both."""

from pathlib import Path
from typing import Any

from odesim.evidence.check import Check, Findings, Request
from odesim.evidence.verdicts import Verdicts
from odesim.show.check.page import page
from odesim.show.check.record import record, schema
from odesim.store import checks, save
from odesim.store import verdicts as records
from odesim.store.files import JUDGED
from odesim.store.read import Run

__all__ = ["load", "made", "page", "record", "save_comparison", "schema", "write"]


def made(request: Request, findings: Findings) -> Check:
    """Return the check of a request and its findings."""
    verdicts = records.without_evidence(findings.verdicts)
    return Check(record(request, findings), Verdicts(verdicts), findings.comparison, findings, request)


def load(folder: Path) -> Check:
    """Return the check in a folder, after verifying its files. Raises `UsageError` if there is none."""
    content = checks.stored(folder)
    run = checks.comparison_of(folder)
    verdicts = records.stored(folder / JUDGED)["verdicts"]
    return Check(content, Verdicts(verdicts), run.trajectory if run is not None else None)


def save_comparison(request: Request, comparison: Any, folder: Path, seconds: float) -> None:
    """Store the comparison of a check as a run, with its picture, in the folder of the check."""
    from odesim.show import plot

    place = checks.place_of_comparison(request, folder)
    assert request.pair is not None
    save(comparison, request.pair.wanted, place, {"solve": seconds}, plot.draw)


def write(check: Check, folder: Path, comparison: Run | None = None) -> Path:
    """Write a check whose folder is prepared: verdicts, comparison, record, page, and the manifest last.

    `comparison` is the stored one, if the folder already has it.
    """
    request, findings = check.asked, check.findings
    assert request is not None and findings is not None
    records.finish(request.judged, folder / JUDGED, findings.verdicts)
    if findings.comparison is not None and comparison is None:
        save_comparison(request, findings.comparison, folder, findings.seconds.get("comparison", 0.0))
    return checks.finish(request, folder, check.record, lambda: page(check.record, folder), findings.seconds)

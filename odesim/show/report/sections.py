"""Sections of a report: verdicts claim by claim, runs stage by stage, and figures."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from derivations.claim import ANSWERS
from odesim.evidence.verdicts import is_identity
from odesim.show.report.words import Rows


@dataclasses.dataclass(frozen=True)
class Picture:
    """Picture inside the page: its name and caption, the file as a data address, and its alternative text.

    A `broad` picture has many panels and needs the whole width.
    """

    name: str
    caption: str
    address: str
    alt: str = ""
    broad: bool = False


@dataclasses.dataclass(frozen=True)
class Run:
    """Run behind a verdict: its identifier (a digest of its input), and the anchor of its input in the page, if any."""

    digest: str
    anchor: str


@dataclasses.dataclass(frozen=True)
class FormSection:
    """Verdict on one form of a claim: its deciding values as pairs, the parts of the reason, its runs and its
    picture.
    """

    verdict: Mapping[str, Any]
    expected: bool
    reasons: tuple[str, ...]
    facts: Rows
    runs: tuple[Run, ...]
    picture: Picture | None = None

    @property
    def identity(self) -> bool:
        """True for an identity of the construction, which confirms nothing."""
        return is_identity(self.verdict)


@dataclasses.dataclass(frozen=True)
class ClaimSection:
    """Claim with its verdicts, one for each form, and everything that a reader needs to judge and repeat them."""

    id: str
    anchor: str
    weight: str
    statements: tuple[tuple[str, str], ...]
    source: str
    rungs: tuple[str, ...]
    erratum: str
    command: str
    forms: tuple[FormSection, ...]
    pictures: tuple[Picture, ...] = ()

    @property
    def answers(self) -> list[str]:
        """Answers that occur, for the filter."""
        return sorted({form.verdict["answer"] for form in self.forms})


@dataclasses.dataclass(frozen=True)
class Table:
    """Table of requests or runs: settings common to all, and one row per run with the settings that differ.

    The row of a digest has the anchor `place`-DIGEST.  A long table has rows for the first of its `count` runs only.
    """

    title: str
    anchor: str
    place: str
    common: Rows
    header: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    count: int


@dataclasses.dataclass(frozen=True)
class VerdictSection:
    """The verdicts of one folder, their claims in groups: the refuted ones first, then by weight."""

    folder: str
    system: str
    effort: str
    made: str
    versions: Mapping[str, Any]
    anchor: str
    groups: tuple[tuple[str, str, tuple[ClaimSection, ...]], ...]
    errata: tuple[tuple[str, str, str, str], ...]
    tables: tuple[Table, ...] = ()

    @property
    def claims(self) -> tuple[ClaimSection, ...]:
        """All claims, in the order of the page."""
        return tuple(claim for _, _, group in self.groups for claim in group)

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of verdicts for each answer."""
        found = [form.verdict["answer"] for claim in self.claims for form in claim.forms]
        return {answer: found.count(answer) for answer in ANSWERS}

    @property
    def identities(self) -> int:
        """Return the number of verdicts that are identities of the construction."""
        return sum(form.identity for claim in self.claims for form in claim.forms)

    @property
    def unexpected(self) -> int:
        """Return the number of verdicts that differ from the expected answer."""
        return sum(not form.expected for claim in self.claims for form in claim.forms)


@dataclasses.dataclass(frozen=True)
class RunSection:
    """Stored run or sweep: its folder, its outcome, its request and results, and its pictures."""

    folder: str
    title: str
    made: str
    outcome: str
    blocks: tuple[tuple[str, Rows], ...]
    versions: Mapping[str, Any]
    pictures: tuple[Picture, ...]
    digest: str = ""
    anchor: str = ""


@dataclasses.dataclass(frozen=True)
class StageSection:
    """Runs of one stage: common values once, different ones in a table with a column for each run."""

    title: str
    anchor: str
    runs: tuple[RunSection, ...]
    common: tuple[tuple[str, Rows], ...]
    differing: tuple[tuple[str, tuple[tuple[str, tuple[str, ...]], ...]], ...]
    versions: Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class FigureSection:
    """Folder of figures: those that belong to no claim of the page; `by_claim` has the others too."""

    folder: str
    system: str
    pictures: tuple[Picture, ...]
    by_claim: Mapping[str, tuple[Picture, ...]]

    @property
    def every(self) -> tuple[Picture, ...]:
        """All figures of the folder, including those at claims."""
        return tuple(dict.fromkeys([*self.pictures, *(p for group in self.by_claim.values() for p in group)]))


Section = VerdictSection | RunSection | FigureSection

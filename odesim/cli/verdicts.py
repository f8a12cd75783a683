"""Printed verdicts and claims: a table, one verdict in full, the list of claims."""

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from derivations.claim import Claim
from odesim.evidence.grade import name_of
from odesim.evidence.verdicts import counted_answers, is_identity, shown_answer
from odesim.evidence.verification import disagrees

COLOURS = {"confirmed": "green", "consistent": "cyan", "refuted": "red", "inconclusive": "yellow", "identity": "blue"}
SHORT = 100
"""Characters of a statement in the table; `--explain` prints all of it."""


def print_verdicts(verdicts: Sequence[Mapping[str, Any]], folder: Path, *, quiet: bool = False) -> None:
    """Print verdicts as a table (claim, short statement, answer, whether it was expected, time), or in one line.

    The reasons of unexpected verdicts are printed below it. `--explain ID` prints the reasons for any claim.
    """
    told = f"{counted(verdicts)}; verdicts in {folder}"
    if quiet:
        print(told)
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table("claim", "statement", "answer", "expected", "time")
    for verdict in verdicts:
        answer = f"[{COLOURS[shown_answer(verdict)]}]{shown_answer(verdict)}[/]"
        expected = f"[bold]no: {verdict['expected']}[/]" if disagrees(verdict) else "yes"
        short = f"[dim]{escape(shortened(verdict['statement']))}[/]"
        table.add_row(escape(name_of(verdict)), short, answer, expected, f"{verdict.get('seconds', 0.0):.1f} s")
    console = Console()
    console.print(table)
    for verdict in filter(disagrees, verdicts):
        said = f"{name_of(verdict)}, expected: {verdict['expected']}, decided by: {verdict['reason']}"
        console.print(said, highlight=False, markup=False)
    console.print(f"{told}; --explain ID prints the reasons of a verdict", highlight=False, markup=False)


class Told:
    """Print each verdict when it is decided, with the estimated time left."""

    def __init__(self) -> None:
        self.began, self.first = time.monotonic(), 0

    def __call__(self, verdict: Mapping[str, Any], done: int, total: int) -> None:
        """Print the verdict number `done` of `total`."""
        self.first = self.first or done  # those before it were finished by an earlier command
        print(f"[{done}/{total}] {self.line(verdict, done, total)}", file=sys.stderr, flush=True)

    def line(self, verdict: Mapping[str, Any], done: int, total: int) -> str:
        """Return the line of a verdict: claim, answer, seconds, estimated time left."""
        said = f"{name_of(verdict)}: {verdict['answer']}, {verdict['seconds']:.1f} s"
        pace = (time.monotonic() - self.began) / (done - self.first + 1)
        return f"{said}; {total - done} left, about {pace * (total - done):.0f} s" if done < total else said


def counted(verdicts: Sequence[Mapping[str, Any]]) -> str:
    """Return the number of verdicts of each answer, of unexpected ones, and of false alarms expected by chance."""
    text = counted_answers(verdicts)
    unexpected = sum(map(disagrees, verdicts))
    sampled = sum(verdict["interval"] is not None for verdict in verdicts)
    return f"{text}; {unexpected} not as expected; by chance at most {0.01 * sampled:.1f} refutations would be false"


def print_whole(verdicts: Sequence[Mapping[str, Any]], folder: Path) -> None:
    """Print everything about the forms of one claim: statement, source, law, sensitivity, samples, runs."""
    for verdict in verdicts:
        print(f"{name_of(verdict)}: {verdict['answer']} (expected {verdict['expected']})")
        print(f"  statement    {verdict['statement']}")
        if is_identity(verdict):
            print(f"  confirms     nothing, as an identity of the construction: {verdict['identity']}")
        print(f"  source       {verdict['source']}" + (f"; see {verdict['erratum']}" if verdict["erratum"] else ""))
        for number, part in enumerate(verdict["reason"].split("; ")):
            print(f"  {'decided by' if not number else '':12} {part}")
        print(f"  refuted by   {verdict['refutation']}")
        for number, found in enumerate(verdict["sensitivity"]):
            print(f"  {'sensitivity' if not number else '':12} {found['sentence']}")
        print(f"  rungs        {', '.join(map(str, verdict['rungs']))}; {verdict['seconds']:.1f} s")
        print(f"  samples      {len(verdict['samples'])} of {len(_points(verdict['samples']))} points")
        for point, values in _points(verdict["samples"]).items():
            print(f"    {point or '(one point)'}: {', '.join(map(_value, values))}")
        print(f"  runs         {len(verdict['runs'])}, their requests by digest in {folder / 'evidence.json'}")


def print_claims(claims: Sequence[Claim], *, json: bool, quiet: bool = False) -> None:
    """Print the claims of a system with their forms, source and statement; or their ids, or all of it as JSON."""
    if json:
        from odesim.cli.output import print_json

        listed = [
            {
                "claim": claim.id, "source": str(claim.source), "statement": claim.statement,
                "variants": {v.name: {"statement": v.statement, "expected": v.expected} for v in claim.variants},
            }
            for claim in claims
        ]  # fmt: skip
        print_json({"claims": listed})
        return
    for claim in claims:
        if quiet:
            print(claim.id)
            continue
        forms = ", ".join(f"{v.name}: {v.expected}" if v.name != "main" else v.expected for v in claim.variants)
        print(f"{claim.id}  [{claim.source}]  (expected {forms})\n    {claim.statement}")


def shortened(text: str) -> str:
    """Return a statement shortened at a word boundary."""
    return text if len(text) <= SHORT else text[:SHORT].rsplit(" ", 1)[0] + " ..."


def _points(samples: Sequence[Sequence[Any]]) -> dict[str, list[Any]]:
    """Return the measurements of every point, by its coordinates in words."""
    found: dict[str, list[Any]] = {}
    for point, _, value in samples:
        found.setdefault(", ".join(f"{name} = {item}" for name, item in point.items()), []).append(value)
    return found


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {_value(item)}" for name, item in value.items()) + "}"
    return f"{value:.6g}" if isinstance(value, float | int) else str(value)

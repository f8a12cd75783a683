"""The numbered statements of a paper, each with its claims and their verdicts: the tables of the documentation.

`python -m odesim.show.statements FOLDER...` writes docs/verdicts/SYSTEM.md for folders of `odesim verify`.
"""

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import derivations
from derivations.contract import System, UsageError, load
from odesim.evidence.verdicts import shown_answer
from odesim.evidence.verification import claims_of

NUMBER = r"(?:[A-Z]\.)?\d+(?:\.\d+)*"
KINDS = "Theorem|Lemma|Proposition|Corollary|Definition|Assumption|Claim|Remark|Condition|Fact"
COLUMNS = (
    "Every row is one form of a claim, or the reason why a statement has no claim. *Detectable deviation* is a",
    "deviation from the claim that the measurement would detect ([how a claim is decided](../verdicts.md)).",
)
NAMED = re.compile(rf"\b({KINDS})s? ({NUMBER}(?:(?:, | and ){NUMBER})*)")


def statements_in(place: str) -> list[str]:
    """Return the numbered statements that a place in a paper names.

    Example:
        >>> statements_in("Theorems 4.2, 4.3")
        ['Theorem 4.2', 'Theorem 4.3']
        >>> statements_in("Lemma 1 (Lemma 19)")
        ['Lemma 1', 'Lemma 19']
        >>> statements_in("equation (9)")
        []
    """
    return [f"{kind} {number}" for kind, numbers in NAMED.findall(place) for number in re.findall(NUMBER, numbers)]


def coverage(system: System) -> dict[str, list[str]]:
    """The ids of the claims that stand for every numbered statement of the paper, in the paper's order."""
    found: dict[str, list[str]] = {name: [] for name in load(system.numbered)}
    for claim in claims_of(system):
        for name in statements_in(claim.source.place):
            found.setdefault(name, []).append(claim.id)
    return found


def table(system: System, verdicts: Sequence[Mapping[str, Any]]) -> str:
    """Return a Markdown page: every numbered statement with its verdicts, then the claims on unnumbered results."""
    reasons, covered = load(system.numbered), coverage(system)
    by_claim: dict[str, list[Mapping[str, Any]]] = {}
    for verdict in verdicts:
        by_claim.setdefault(str(verdict["claim"]), []).append(verdict)
    names = "| statement | claim | verdict | predicted | measured | detectable deviation |"
    head = [names, "|---|---|---|---|---|---|"]
    lines = [f"# {system.name}: every numbered statement", "", *COLUMNS, "", *head]
    for name, claims in covered.items():
        rows = [row for claim in claims for row in _rows(name, by_claim.get(claim, []))]
        lines += rows or [f"| {name} | | | | | {reasons[name]} |"]
    numbered = {claim for claims in covered.values() for claim in claims}
    lines += ["", "## Claims without a numbered statement", "", *head]
    for claim in claims_of(system):
        if claim.id not in numbered:
            lines += _rows(claim.source.place, by_claim.get(claim.id, []))
    return "\n".join(lines) + "\n"


def _rows(place: str, verdicts: Iterable[Mapping[str, Any]]) -> list[str]:
    return [
        f"| {place} | `{v['claim']}`{'' if v['variant'] == 'main' else ', ' + v['variant']} | {shown_answer(v)} "
        f"| {_number(v['predicted'])} | {_found(v)} | {_seen(v)} |"
        for v in verdicts
    ]


def _number(value: Any) -> str:
    if isinstance(value, list):
        low, high = value
        return " and ".join(f"{sign} {end:.4g}" for sign, end in ((">=", low), ("<=", high)) if end is not None)
    return "" if value is None else f"{value:.4g}"


def _found(verdict: Mapping[str, Any]) -> str:
    estimate, interval = verdict["estimate"], verdict["interval"]
    if estimate is None:
        return _cell(verdict["reason"])
    return f"{estimate:.4g}" + (f" [{interval[0]:.4g}, {interval[1]:.4g}]" if interval and None not in interval else "")


def _seen(verdict: Mapping[str, Any]) -> str:
    ordered = sorted(verdict["sensitivity"], key=lambda found: found["part"] != verdict["deciding"])
    if not ordered:
        return ""
    # Folders of version 0.2 and before end with "seen".
    sentence = ordered[0]["sentence"].removesuffix(" would have been detected").removesuffix(" would have been seen")
    return _cell(sentence.rstrip(","))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main(folders: Sequence[str]) -> None:
    """Write the page of every folder."""
    from odesim.store.verdicts import stored

    target = Path("docs") / "verdicts"
    target.mkdir(parents=True, exist_ok=True)
    for folder in folders:
        content = stored(Path(folder))
        system = derivations.restored(content["system"])
        if system is None:
            raise UsageError(f"{folder} holds verdicts of {content['system']}, which is outside of odesim")
        (target / f"{system.name}.md").write_text(table(system, content["verdicts"]), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

"""The five papers as pages of the gallery: the main figure, with the confirmed and the refuted claims."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from written import DOCS, page, prose, table

PAGES = DOCS / "gallery"
ROW = re.compile(
    r"^\| (?P<place>.*?) \| `(?P<claim>[^`]+)`(?:, (?P<variant>.*?))? \| (?P<answer>[a-z]+) \| (?P<rest>.*) \|$"
)


def papers() -> tuple[list[str], dict[str, Any]]:
    """Write the page of every system with stored verdicts, and a table of all; their names, and the grade of each."""
    import derivations

    counted, grades = [], {}
    names = [name for name in derivations.folders() if (DOCS / "verdicts" / f"{name}.md").is_file()]
    for name in names:
        rows = _verdicts(name)
        grades[name] = _grade(name, rows)
        page(PAGES / f"{name}.md", _page(name, rows, grades[name]))
        counts = Counter(row["answer"] for row in rows)
        counted.append((f"[`{name}`](gallery/{name}.md)", derivations.system(name).title, *_counts(counts)))
    page(PAGES / "papers.txt", table(("paper", "model", *_answers()), counted))
    return names, grades


def _grade(name: str, rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The grade of a paper, of its stored verdicts and of the laws of its claims."""
    import derivations
    from odesim.evidence.grade import grade, printed_at, reproduces
    from odesim.evidence.verification import claims_of

    answers = {(row["claim"], row["variant"] or "main"): row["answer"] for row in rows}
    verdicts = [
        {
            "claim": claim.id,
            "variant": form.name,
            "answer": answers[claim.id, form.name],
            "identity": form.identity,
            "published": printed_at(claim, form),
            "reproduces": reproduces(form.law or claim.law),
        }
        for claim in claims_of(derivations.system(name))
        for form in claim.variants
        if (claim.id, form.name) in answers
    ]
    return grade(verdicts).record()


def _answers() -> tuple[str, ...]:
    from derivations.claim import ANSWERS

    return (*ANSWERS, "identity")


def _counts(counts: Mapping[str, int]) -> list[str]:
    return [str(counts.get(answer, 0)) for answer in _answers()]


def _verdicts(name: str) -> list[dict[str, Any]]:
    """The forms of claims and their answers, each once, from the table of stored verdicts."""
    lines = (DOCS / "verdicts" / f"{name}.md").read_text(encoding="utf-8").splitlines()
    found = {}
    for match in filter(None, map(ROW.match, lines)):
        row = match.groupdict()
        found.setdefault((row["claim"], row["variant"]), {**row, "cells": row["rest"].split(" | ")})
    return list(found.values())


def _page(name: str, rows: list[dict[str, Any]], graded: Mapping[str, Any]) -> list[str]:
    import derivations
    from odesim.evidence.verification import claims_of

    system = derivations.system(name)
    statements = {(claim.id, form.name): _stated(claim, form) for claim in claims_of(system) for form in claim.variants}
    counts = Counter(row["answer"] for row in rows)
    lines = [
        f"# {system.title}",
        "",
        f"`{name}` · {system.source.authors}, *{system.source.title}*, {system.source.venue}",
        "",
    ]
    lines += [f"[The system](../systems/{name}.md) · [every numbered statement](../verdicts/{name}.md) · "
              f"[errata](../reference/errata.md#errata-{name})", ""]  # fmt: skip
    lines += _figure(name)
    said = ", ".join(f"{number} {answer}" for answer, number in zip(_answers(), _counts(counts), strict=True))
    lines += [f"**Grade: {graded['name']}**, because {graded['because']}.", ""]
    if graded["against"]:
        lines += [f"Published claims that are refuted: {', '.join(graded['against'])}.", ""]
    lines += [
        "## Verdicts",
        "",
        f"The paper has {len({r['claim'] for r in rows})} claims with {len(rows)} forms. Their verdicts: {said}.",
        "",
    ]
    lines += ["*(ours)* marks statements and constants that odesim derived and that the paper does not contain.", ""]
    for answer, title in (("refuted", "Refuted"), ("inconclusive", "Open"), ("confirmed", "Confirmed")):
        chosen = [row for row in rows if row["answer"] == answer]
        if chosen:
            lines += [
                f"## {title}",
                "",
                *table(("claim", "place", "statement", "measured"), _lines(chosen, statements)),
                "",
            ]
    lines += [
        "```console",
        f"$ odesim verify --system {name}",
        f"$ odesim report runs/verify-{name}-* --out {name}.html",
    ]
    return [*lines, "```"]


def _stated(claim: Any, form: Any) -> str:
    """The statement of a claim, followed by that of the form, if the form has one."""
    stated = prose(claim.statement)
    return f"{stated} *In this form:* {prose(form.statement)}" if form.statement else stated


def _lines(rows: Iterable[Mapping[str, Any]], statements: Mapping[Any, str]) -> Iterable[tuple[str, ...]]:
    for row in rows:
        form = f", {row['variant']}" if row["variant"] else ""
        stated = statements.get((row["claim"], row["variant"] or "main"), "")
        yield f"`{row['claim']}`{form}", row["place"], stated, row["cells"][1]


def _figure(name: str) -> list[str]:
    """The main figure, which stands among the images under the name SYSTEM-FIGURE.png, with its caption."""
    from odesim.show import figures

    found = sorted((DOCS / "images" / "papers").glob(f"{name}-*.png"))
    lines = []
    for path in found:
        figure = path.stem.removeprefix(f"{name}-")
        ((_, _, module),) = figures.modules(name, figure)
        lines += [f"```{{image}} ../images/papers/{path.name}", f":alt: {figure} of {name}", "```", ""]
        lines += [f"*{prose(module.CAPTION)} `odesim figures --system {name} --only {figure}`.*", ""]
    return lines

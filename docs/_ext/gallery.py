"""The pages of the gallery, written by the build from the declarations that are shipped: one each, a table of all."""

import concurrent.futures
import math
import multiprocessing
from collections.abc import Iterable, Mapping
from typing import Any

from entries import PAGES, told
from papers import papers
from written import cell, only, page, prose, table

NUMBERS = {"error_final": "error", "best_cosines": "best cosines", "predicted_times": "predicted times"}


def write(workers: int, sgd: bool) -> list[str]:
    """Write every page and the table; the names of the pages."""
    from derivations import outside

    tasks = [(name, path, sgd) for name, path in outside.gallery().items()]
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(workers, mp_context=context) as pool:
        every = dict(zip(outside.gallery(), pool.map(told, tasks), strict=True))
    for name, facts in every.items():
        page(PAGES / f"{name}.md", _page(name, facts))
    rows = [row for name, facts in every.items() for row in _rows(name, facts)]
    head = ("model", "claim", "predicted", "measured", "verdict")
    page(PAGES / "table.txt", table(head, rows))
    of_papers, grades_of_papers = papers()
    grades = {name: facts["grade"] for name, facts in every.items()} | grades_of_papers
    page(PAGES / "grades.txt", _grades(grades))
    only(PAGES, [*every, *of_papers])
    only(PAGES, [*every, *of_papers], "*.png")
    return [*every, *of_papers]


def _rows(name: str, facts: Mapping[str, Any]) -> Iterable[tuple[str, ...]]:
    """The lines of an entry in the table of all; one without a claim of its own says what stands in its place."""
    entry = f"[`{name}`](gallery/{name}.md)"
    for at, claim in enumerate(facts["claims"]):
        yield (
            "" if at else entry,
            prose(claim["statement"]),
            _predicted(claim),
            _number(claim["estimate"]),
            claim["answer"],
        )
    if not facts["claims"]:
        yield entry, "only the generated claims", "", "", ""


def _grades(grades: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The table of all entries and papers with their grades, the best first, and how many have which."""
    from odesim.evidence.grade import MEANINGS

    counts = {name: sum(found["name"] == name for found in grades.values()) for name in MEANINGS}
    said = ", ".join(f"{count} *{name}*" for name, count in counts.items())
    order = sorted(grades, key=lambda name: (list(MEANINGS).index(grades[name]["name"]), name))
    rows = [(f"[`{name}`](gallery/{name}.md)", grades[name]["name"], grades[name]["because"]) for name in order]
    meanings = [f"- *{name}*: {meaning}." for name, meaning in MEANINGS.items()]
    head = ("model or paper", "grade", "reason")
    return [f"Of {len(grades)} models and papers: {said}.", "", *meanings, "", *table(head, rows)]


def _page(name: str, facts: Mapping[str, Any]) -> list[str]:
    import derivations

    system = derivations.system(name)
    declared = system.parameters.declaration
    source = f"[{declared.source}]({declared.link})" if declared.link else declared.source
    paper = f", *{declared.paper}*" if declared.paper else ""
    lines = [f"# {system.title}", "", f"`{name}` · {source}{paper}", "", prose(system.about), ""]
    lines += [f"```{{image}} {name}.png", f":alt: {cell(facts['alt'])}", "```", ""]
    lines += [_caption(name, facts), ""]
    lines += [f"**Grade: {facts['grade']['name']}**, because {cell(facts['grade']['because'])}.", ""]
    if facts["claims"]:
        head = ("claim", "statement", "printed in the source", "predicted", "measured", "verdict")
        rows = [
            (
                f"`{c['claim']}`",
                prose(c["statement"]),
                prose(c["published"]) or "no (derived for this gallery)",
                _predicted(c),
                _number(c["estimate"]),
                c["answer"],
            )
            for c in facts["claims"]
        ]
        lines += ["## Claims and verdicts", "", *table(head, rows), ""]
        if any(c["seen"] for c in facts["claims"]):
            lines += ["The measurements would detect these deviations from the claims:", ""]
        lines += [f"- `{c['claim']}`: {c['seen'][0]}." for c in facts["claims"] if c["seen"]]
        lines += ["", "```console", f"$ odesim verify --system {name}", "```", ""]
        lines += [
            "This command also tests the claims that odesim generates for every declaration "
            "(back ends, integrators, drift, SGD).",
            "",
        ]
    path = f"../../derivations/gallery/{name}.toml"
    lines += ["## The declaration", "", f"```{{literalinclude}} {path}", ":language: toml", "```", ""]
    lines += ["## What to change", "", *_changes(name, facts), ""]
    lines += ["## The equations", "", f"`odesim derive --system {name} --format latex` prints these equations.", ""]
    return [*lines, facts["equations"]]


def _caption(name: str, facts: Mapping[str, Any]) -> str:
    said = "Solid lines show the flow. Dashed lines show the numbers of the claims. "
    again = " --stage all" if facts["stages"] else ""
    if facts["sgd"]:
        made = sorted(set(facts["sgd"]))
        said += "Bands show the range of 4 replicas of compressed SGD, which has exactly the distribution of SGD ("
        said += "; ".join(made) + ")."
    elif facts["warning"]:
        said += f"There is no band of SGD, for this reason: {facts['warning']}."
    return f"*{said.strip()} This command computes the flow: `odesim integrate --system {name}{again}`.*"


def _changes(name: str, facts: Mapping[str, Any]) -> list[str]:
    rows = []
    for run in facts["runs"]:
        asked = " ".join(f"-p {key}={value}" for key, value in run["parameters"].items())
        option = f"`--preset {run['preset']}`" if run["preset"] else "(defaults)"
        rows.append((option, f"`{asked}`" if asked else "", run["meaning"], _outcome(run["numbers"])))
    example = next((run["preset"] for run in facts["runs"] if run["preset"]), None)
    lines = table(("preset", "same as", "effect", "final values"), rows)
    if example:
        lines += ["", "```console", f"$ odesim integrate --system {name} --preset {example}", "```"]
    return lines


def _outcome(numbers: Mapping[str, Any]) -> str:
    words = []
    for key, value in numbers.items():
        shown = ", ".join(_number(x) for x in value) if isinstance(value, list) else _number(value)
        words.append(f"{NUMBERS.get(key, key.removesuffix('_final').replace('_', ' '))} {shown}")
    return "; ".join(words)


def _predicted(claim: Mapping[str, Any]) -> str:
    value = claim["predicted"]
    if isinstance(value, list | tuple):
        ends = zip(("≥", "≤"), value, strict=True)
        return " and ".join(f"{sign} {_number(end)}" for sign, end in ends if end is not None and math.isfinite(end))
    bound = {"at most": "≤ ", "at least": "≥ "}.get(claim["bound"], "")
    return bound + _number(value)


def _number(value: Any) -> str:
    """A number to six digits; what is below rounding is 0 to it."""
    if value is None:
        return ""
    return f"{value:.6g}" if abs(value) >= 1e-4 or value == 0 else f"{value:.1e}"

"""The page that leads from a paper to keys: each of its fragments is a declaration, with the tier that it says."""

import re
import tomllib
from pathlib import Path

import pytest

import odesim
from derivations import outside

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "start-from-a-paper.md").read_text(encoding="utf-8")
FRAGMENT = re.compile(r"`(\[\[?[\w.]+\]\]?) ([^`]+)`")
TIERS = ("exact", "mixed", "sampled")


def pairs(text):
    """The assignments of a fragment, one a line: commas within brackets and quotes do not separate them."""
    return re.sub(r", (?=\w+ = )(?![^\[{]*[\]}])", "\n", text)


def merged(fragments):
    """The tables of some fragments, of which a later one adds to an earlier."""
    tables = {}
    for header, text in fragments:
        for table, given in tomllib.loads(f"{header}\n{pairs(text)}\n").items():
            if table == "inputs" and "cluster" in given:
                inputs = tables.setdefault("inputs", {})
                inputs["cluster"] = [*inputs.get("cluster", []), *given["cluster"]]
            else:
                tables.setdefault(table, {}).update(given)
    return tables


def rows():
    """(assumption, tables, tier) of every line with fragments; alternatives after "or" are lines of their own."""
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.split(" | ")]
        if line.startswith("| ") and len(cells) == 3 and FRAGMENT.search(cells[1]):
            for form in cells[1].split(", or "):
                found = FRAGMENT.findall(form)
                if found:
                    yield cells[0].strip("| "), merged(found), cells[2].strip("| ").split()[0].strip(",")


ROWS = list(rows())


def declared(tables):
    """The system of some tables; what they do not say is one unit on isotropic inputs."""
    student = {"unit": "erf(w)"} | tables.get("student", {})
    labelled = "cluster" in tables.get("inputs", {})
    teacher = {} if labelled else {"teacher": tables.get("teacher", {})}
    return odesim.declare(**{**tables, "student": student, **teacher})


def test_there_is_a_line_for_each_part_of_a_model():
    assert len(ROWS) >= 30 and {tier for *_, tier in ROWS} <= set(TIERS)
    tables = {table for _, found, _ in ROWS for table in found}
    assert tables == {"student", "teacher", "training", "inputs", "parameters", "memory"}


@pytest.mark.parametrize(("assumption", "tables", "tier"), ROWS, ids=[row[0][:40] for row in ROWS])
def test_a_line_is_a_declaration_and_its_keys_are_known(assumption, tables, tier):
    declared(tables)
    for table, given in tables.items():
        for key in given:
            if table not in ("parameters", "memory", "means"):
                with pytest.raises(odesim.UsageError):
                    declared({**tables, table: {**given, f"{key}_x": given[key]}})


@pytest.mark.slow
@pytest.mark.parametrize(("assumption", "tables", "tier"), ROWS, ids=[row[0][:40] for row in ROWS])
def test_a_line_is_a_declaration_of_its_tier(assumption, tables, tier):
    system = declared(tables)
    limit = system.parameters.declaration.limit
    run = odesim.integrate(system, until=1.0 if limit == "batch" else 0.01, save_points=2, d=100)
    assert run.summary["tier"] == tier


def test_a_wrong_key_would_be_found():
    with pytest.raises(odesim.UsageError):
        declared({"training": {"limits": "online"}})


def test_entries_and_pages_that_it_names_exist():
    assert "saxe_2019" in outside.gallery() and "`saxe_2019`" in PAGE
    for page in ("index", "own-model"):
        assert "start-from-a-paper.md" in (DOCS / f"{page}.md").read_text(encoding="utf-8")
    assert "docs/start-from-a-paper.md" in (DOCS.parent / "README.md").read_text(encoding="utf-8")

"""Promises of the pages: tutorials answer a question, development notes stay apart, one number has one source."""

import re
from pathlib import Path

import pytest

import derivations
from derivations import outside
from odesim.request.case import Case

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
TUTORIALS = sorted(path for path in (DOCS / "tutorials").glob("*.md") if path.stem != "index")
DEVELOPMENT = ("odesim-in-one-page", "decisions/index", "reliability", "verdicts/changes", "development/timings")


def text_of(path):
    return path.read_text(encoding="utf-8")


def toctree(page):
    """The pages that a page puts into the sidebar, as paths from the folder of documents."""
    found = []
    for block in re.findall(r"```\{toctree\}\n(.*?)```", text_of(page), re.DOTALL):
        for line in block.splitlines():
            if line.strip() and not line.startswith(":"):
                found.append((page.parent / line.strip()).resolve().relative_to(DOCS).as_posix())
    return found


def reached(start):
    """All pages of the sidebar below a page."""
    found, waiting = set(), [start]
    while waiting:
        page = waiting.pop()
        for child in toctree(DOCS / f"{page}.md") if (DOCS / f"{page}.md").is_file() else []:
            if child not in found:
                found.add(child)
                waiting.append(child)
    return found


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_begins_with_a_question_and_ends_with_a_figure(path):
    text = text_of(path)
    first = re.search(r"^# [^\n]+\n\n(.+?)\n\n", text, re.MULTILINE | re.DOTALL)[1]
    assert first.rstrip().endswith("?"), first
    cells = re.findall(r"```\{code-cell\} python\n(.*?)```", text, re.DOTALL)
    assert "plt.subplots(" in cells[-1] and "set(xlabel=" in cells[-1]
    assert "## The answer" in text and text.index("## The answer") > text.index(cells[-2][:40])


def test_the_sidebar_of_users_has_no_development_notes():
    users = reached("index")
    assert {"tutorials/index", "how-to/index", "glossary", "reference/python", "own-model"} <= users
    assert users & set(DEVELOPMENT) == set()
    notes = reached("development/index")
    assert set(DEVELOPMENT) <= notes and notes & users == set()
    assert "(development/index.md)" in text_of(DOCS / "index.md")


TIMED = re.compile(r"EPYC|H100|\d ?(?:ms|µs|us)\b")
"""A machine, or a time on one."""


def test_pages_of_users_hold_no_timings():
    for name in reached("index") - {"gallery"}:
        path = DOCS / f"{name}.md"
        if path.is_file() and not name.startswith(("gallery/", "reference/", "verdicts")):
            assert TIMED.findall(text_of(path)) == [], name


def words():
    """The rows of the glossary: (word of the field, what it is here, link)."""
    rows = re.findall(r"^\| (.+?) \| (.+?) \| \[.+?\]\((.+?)\) \|$", text_of(DOCS / "glossary.md"), re.MULTILINE)
    return [(word, here, link) for word, here, link in rows if word != "word of the field"]


def test_the_glossary_is_sorted_and_its_links_lead_somewhere():
    rows = words()
    assert len(rows) > 30
    names = [word.casefold() for word, _, _ in rows]
    assert names == sorted(names)
    for _, _, link in rows:
        path = (DOCS / link.partition("#")[0]).resolve()
        assert path.is_file() or path.parent.name == "reference", link


def test_the_glossary_has_the_words_of_the_field():
    said = " ".join(word for word, _, _ in words()).casefold()
    for word in ("order parameter", "overlap", "gram matrix", "teacher", "student", "information exponent",
                 "hitting time", "plateau", "equivalence test", "learning rate", "batch", "gradient flow", "online sgd",
                 "readout", "right-hand side", "tolerance", "replica", "confidence interval"):  # fmt: skip
        assert word in said, word


def test_names_of_python_in_the_glossary_are_there():
    import odesim

    for name in re.findall(r"`odesim\.(\w+)", text_of(DOCS / "glossary.md")):
        assert name in odesim.__all__


@pytest.fixture
def counted(monkeypatch):
    """Number of forms of each answer, by system, from the tables of verdicts."""
    import sys

    monkeypatch.setattr(sys, "path", [str(DOCS / "_ext"), *sys.path])
    from collections import Counter

    from papers import _verdicts

    return {name: Counter(row["answer"] for row in _verdicts(name)) for name in derivations.folders()}


def test_the_totals_of_the_readme_are_those_of_the_tables(counted):
    readme = " ".join(text_of(ROOT / "README.md").split())
    total = sum(counted.values(), start=type(next(iter(counted.values())))())
    said = re.search(
        r"The five papers give (\d+) testable statements\..*? confirms (\d+) of them.*? (\d+) are bounds that "
        r"hold by a wide margin, (\d+) are refuted, and (\d+) stay open\. The last (\d+) hold by construction",
        readme,
    )
    assert said is not None
    kinds = ("confirmed", "consistent", "refuted", "inconclusive", "identity")
    assert [int(number) for number in said.groups()] == [total.total(), *(total[kind] for kind in kinds)]


def test_the_number_of_models_is_that_of_the_gallery():
    assert f"{len(outside.gallery())} models of the literature" in text_of(ROOT / "README.md")


def test_the_critical_step_has_one_value_on_all_pages():
    """The claims of the model state it to ten digits; every page that states it rounds that value."""
    law, *others = re.findall(r"step (4\.05\d+)", text_of(Path(outside.gallery()["saad_solla_1995_step"])))
    assert set(others) == {law}
    for path in DOCS.rglob("*.md"):
        if "_build" not in path.parts and "gallery" not in path.parts:
            for number in re.findall(r"\b4\.05\d+\b", text_of(path)):
                assert f"{float(law):.{len(number) - 2}f}" == number, path


def test_stated_defaults_are_those_of_a_request():
    case = Case.build("liao", {})
    from odesim.cli.options import Rtol, SavePoints

    (points,), (rtol,) = SavePoints.__metadata__, Rtol.__metadata__
    assert f"[default: {case.save_points}]" in points.help
    assert float(re.search(r"default: (\S+)\]", rtol.help)[1]) == case.rtol
    assert f"`--rtol`, {case.rtol:.0e}".replace("e-0", "e-") in text_of(DOCS / "background" / "exact.md")


def test_the_exit_codes_of_the_readme_are_those_of_every_help():
    from odesim.cli.examples import CODES

    readme = re.findall(r"^\| (\d+) \| ", text_of(ROOT / "README.md"), re.MULTILINE)
    assert readme == re.findall(r"(?:^|; |: )(\d+) ", CODES)

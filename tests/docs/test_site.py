"""Computations of the build of the site, without Sphinx: pages, tables, links; `make docs` builds the site itself."""

import re
import sys
from pathlib import Path

import pytest

import derivations

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def extensions(monkeypatch):
    """The folder of what extends Sphinx, where it looks for them."""
    monkeypatch.setattr(sys, "path", [str(ROOT / "docs" / "_ext"), *sys.path])


def test_a_page_of_latex_becomes_formulas_and_words():
    import odesim

    from equations import markdown  # isort: skip

    page = markdown(odesim.derive("ren_2025", "latex"))
    assert page.count("\\begin{aligned}") == page.count("$$") // 2 == 6
    assert "\\textbf" not in page and "\\begin{document}" not in page and "**Source.**" not in page
    assert "- student He(4, w): a polynomial: Isserlis, a finite sum." in page and "`Q_ww`" in page


def test_a_broken_link_and_what_is_fetched_are_found(tmp_path):
    from check import main, wrong

    (tmp_path / "other.html").write_text('<h1 id="there">x</h1>')
    page = '<a href="other.html#there">a</a><a href="https://arxiv.org/abs/1">b</a><img src="a.png">'
    (tmp_path / "a.png").write_bytes(b"")
    (tmp_path / "index.html").write_text(page)
    assert wrong(tmp_path) == ([], 2, 1) and main(tmp_path) == 0
    for added, said in (
        ('<a href="other.html#gone">', "no such place"), ('<a href="gone.html">', "no such file"),
        ('<script src="https://a.example/m.js">', "fetches https"), ('<link rel="icon" href="//a.example">', "fetches"),
        ('<p style="background: url(https://x.example/i.png)">', "fetches"),
    ):  # fmt: skip
        (tmp_path / "index.html").write_text(page + added)
        (found,) = wrong(tmp_path)[0]
        assert said in found and main(tmp_path) == 1


def test_the_page_of_a_paper_counts_what_the_readme_says():
    from papers import _verdicts

    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    said = dict(re.findall(r"^\| `(\w+)` \|.*\| (\d+ in \d+ forms) \|$", readme, re.MULTILINE))
    assert set(said) == set(derivations.folders())
    for name, words in said.items():
        rows = _verdicts(name)
        assert f"{len({row['claim'] for row in rows})} in {len(rows)} forms" == words


def test_every_paper_has_its_main_figure():
    from papers import _figure

    for name in derivations.folders():
        (image, *_) = _figure(name)
        assert image.startswith("```{image} ../images/papers/")


def test_what_is_kept_is_made_again_when_its_key_changes(tmp_path, monkeypatch):
    import written

    monkeypatch.setattr(written, "KEPT", tmp_path)
    made = []

    def make(folder):
        made.append(folder)
        return {"count": len(made)}

    found = [written.remembered("a", key, make)["count"] for key in ("x", "x", "y", "y")]
    assert found == [1, 1, 2, 2] and made == [tmp_path / "a"] * 2


def test_every_command_and_its_options_are_in_the_reference():
    from reference import _codes, _commands

    from odesim.cli.examples import EXAMPLES

    text = "\n".join(_commands())
    assert [f"## odesim {name}" in text for name in EXAMPLES] == [True] * len(EXAMPLES)
    assert "| `--rtol` | `R` | Relative tolerance [default: 1e-8]. |" in text
    assert [code for code, _ in _codes()] == ["`0`", "`1`", "`2`", "`3`", "`4`", "`70`", "`130`"]


def test_all_errata_and_parameters_are_in_the_reference():
    from reference import _errata, _systems

    errata, systems = "\n".join(_errata()), "\n".join(_systems())
    for name in derivations.folders():
        assert f"(errata-{name})=" in errata and f"## {name}\n" in systems
    assert errata.count("\n### errata-") > 50 and "| `m_star` |" in systems


def test_the_panels_of_an_entry_have_the_lines_of_its_claims():
    import odesim
    from derivations.declare.claims import stated

    from pictures import panels  # isort: skip

    system = derivations.system("ren_2025")
    first, second = panels(system, stated.claims(system), odesim.integrate("ren_2025", save_points=11))
    assert [value for value, _ in first.times] == [2.087970568376, 12.527823410257] and first.thresholds == [0.5]
    assert len(first.curves) == 6 and second.variable == "error"


def test_the_table_of_grades_counts_them_and_begins_with_the_best():
    from odesim.evidence.grade import grade

    import gallery  # isort: skip

    verdict = {"claim": "floor", "variant": "main", "answer": "confirmed", "published": "eq. (7)"}
    found = {
        "zeta": grade([{**verdict, "reproduces": "number"}]).record(),
        "alpha": grade([]).record(),
        "beta": grade([{**verdict, "reproduces": "law"}]).record(),
    }
    lines = gallery._grades(found)
    assert lines[0] == "Of 3 models and papers: 1 *number reproduced*, 1 *law reproduced*, 1 *qualitative*."
    rows = [line for line in lines if line.startswith("| [`")]
    assert [row.split("`")[1] for row in rows] == ["zeta", "beta", "alpha"]
    assert "it states no claim" in rows[-1] and "eq. (7)" in rows[0]


def test_the_page_of_a_paper_has_its_grade():
    from papers import _grade, _verdicts  # isort: skip

    found = {name: _grade(name, _verdicts(name)) for name in derivations.folders()}
    assert {record["name"] for record in found.values()} == {"number reproduced"}
    assert "eq-5-sol (printed)" in found["liao"]["against"]

"""Equations that an article includes: one `align`, which needs amsmath alone."""

import re
import subprocess

import pytest

import odesim
from derivations import outside
from odesim.cli import _run as command
from odesim.show.page import latex

from .test_printed import TIERS, engine, statement


def fragments():
    """The fragment of every tier, and of every model of the gallery."""
    for system, stage, tier in TIERS:
        yield "-".join((system, stage, tier)), latex.fragment(statement(system, stage, tier))
    for name in outside.gallery():
        yield name, odesim.derive(name, "latex-fragment")


def test_a_fragment_is_one_align_without_a_preamble():
    for name, found in fragments():
        kinds = set(re.findall(r"\\begin\{(align\*?)\}", found))
        assert (
            len(kinds) == 1 and found.startswith(r"\begin{align") and found.rstrip().endswith(rf"\end{{{kinds.pop()}}}")
        ), name
        assert not re.search(r"\\(documentclass|usepackage|begin\{document\}|textbf)", found), name
        assert sorted(re.findall(r"\\begin\{(\w+\*?)\}", found)) == sorted(re.findall(r"\\end\{(\w+\*?)\}", found)), (
            name
        )
        assert found.count("{") == found.count("}"), name


def test_a_fragment_has_the_equations_of_the_document():
    for one in TIERS:
        page, found = latex.page(statement(*one)), latex.fragment(statement(*one))
        for mark in (r"\mathrm{d}t} &=", "(t+", " &= "):
            assert found.count(mark) == page.count(mark), one
        assert found.count(" &= ") >= len(statement(*one).equations)


def test_the_command_prints_fragments_and_says_where_sympy_is(capsys):
    assert command(["derive", "--system", "liao", "--format", "sympy"]) == 2
    assert 'odesim.derive(.., format="sympy") returns them' in capsys.readouterr().err
    assert command(["derive", "--system", "liao", "--format", "latex-fragment"]) == 0
    assert capsys.readouterr().out.startswith(r"\begin{align}")


@pytest.mark.slow
def test_every_fragment_compiles_inside_an_article(tmp_path):
    head = "\\documentclass{article}\n\\usepackage{amsmath,amssymb}\n\\allowdisplaybreaks\n\\begin{document}\n"
    for name, found in fragments():
        (tmp_path / name).mkdir()
        (tmp_path / name / "page.tex").write_text(f"{head}Text.\n{found}Text.\n\\end{{document}}\n", encoding="utf-8")
        call = [engine(), "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
        done = subprocess.run(call, cwd=tmp_path / name, capture_output=True, text=True, errors="replace", timeout=300)
        assert done.returncode == 0, done.stdout[-2000:]

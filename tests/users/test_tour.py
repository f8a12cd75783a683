"""The tour of the documentation, cell by cell as a notebook runs it: no cell fails, and none shows a screenful."""

import ast
import re
from pathlib import Path

import pytest

import odesim

TOUR = Path(__file__).parents[2] / "docs" / "tour.md"
CELLS = re.findall(r"```\{code-cell\} python\n(.*?)```", TOUR.read_text(encoding="utf-8"), re.DOTALL)


def executed(cell, names):
    """Run a cell; the value of its last expression, which a notebook shows."""
    tree = ast.parse(cell)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last else None


@pytest.mark.slow
def test_the_tour_runs_cell_by_cell(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    names: dict = {}
    for cell in CELLS:
        shown = executed(cell, names)
        assert len(repr(shown)) < 6000, cell
        if isinstance(shown, odesim.Trajectory | odesim.Comparison | odesim.Verdicts | odesim.System | odesim.Run):
            assert len(repr(shown).splitlines()) <= 12, cell
            assert "<table>" in shown._repr_html_(), cell
    assert "did you mean 'until'?" in capsys.readouterr().out
    assert names["data"]["gamma2"].sel(teacher=1).shape == names["data"]["gamma2"].isel(teacher=0).shape


def test_the_tour_has_thirty_cells():
    assert len(CELLS) == 30
    for cell in CELLS:
        ast.parse(cell)

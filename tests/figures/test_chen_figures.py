"""The tables and figures of chen: that they are found, draw what is stored, and measure what they say."""

import importlib

import numpy as np
import pytest

from odesim.show import figures

NAMES = ["fig1", "fig3", "fig45", "standins", "table1", "table9", "tables456", "tables78"]
TINY = {"n": 300, "seeds": 1, "settings": [3], "filters": 128, "epochs": 4}


def tiny(name):
    """The one table of a figure, at a size that takes seconds."""
    (need,) = importlib.import_module(f"figures.chen.{name}").needs(quick=True)
    return shrunk(need)


def shrunk(need):
    arguments = {key: TINY.get(key, value) for key, value in need.arguments.items()}
    return figures.Table(need.name, need.measure, arguments)


def test_the_figures_of_chen_are_found_by_name():
    assert [name for _, name, _ in figures.modules("chen")] == NAMES


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fig3", "fig45", "standins", "table9", "tables456", "tables78"])
def test_a_figure_is_drawn_from_what_is_stored(name, tmp_path):
    stored = figures.obtain(tiny(name), tmp_path)
    assert importlib.import_module(f"figures.chen.{name}").draw([stored]).axes


def test_table_1_holds_ours_beside_the_papers_numbers(tmp_path):
    table1 = importlib.import_module("figures.chen.table1")
    kinds = {}
    for need in table1.needs(quick=True):
        if need.arguments["setting"] == 3:
            kinds.setdefault((need.name, need.arguments["activation"]), shrunk(need))
    stored = [figures.obtain(need, tmp_path) for need in kinds.values()]
    rows = table1.rows(stored)
    assert [row["kind"] for row in rows] == ["mixture", "mixture", "single", "single"]
    assert [row["paper"][0] for row in rows] == [99.99, 95.93, 72.69, 74.81]
    # 300 examples: a mixture is far above chance, and every accuracy is one.
    assert rows[0]["accuracy"] > 80 and all(0 <= row["accuracy"] <= 100 for row in rows)
    assert table1.draw(stored).axes


def test_table_1_has_every_row_and_setting_of_the_paper():
    made = importlib.import_module("figures.chen.table1").needs()
    rows = {tuple(need.arguments.get(n) for n in ("setting", "activation", "filters")) for need in made}
    mixtures = {(s, a, None) for s in (1, 2, 3, 4) for a in ("cubic", "linear")}
    singles = {(s, a, f) for s in (1, 2, 3, 4) for a in ("cubic", "linear") for f in (128, 512)}
    assert rows == mixtures | singles and len(made) == 24
    assert all(need.arguments["n"] == 16000 for need in made)


def test_the_linear_line_of_table_1_is_the_chance_that_the_signal_is_the_larger():
    # 1/2 + P(alpha > gamma)/2 for uniform laws, on a grid of mid-points.
    table1 = importlib.import_module("figures.chen.table1")
    u = (np.arange(3000) + 0.5) / 3000
    for setting, top in ((1, 3.0), (3, 2.0)):
        larger = ((0.5 + 1.5 * u)[:, None] > 0.5 + (top - 0.5) * u).mean()
        assert table1.CENTRELESS[setting] == pytest.approx(50 + 50 * larger, abs=0.02)


def test_figure_1_is_one_embedding_with_the_routing_of_both_mixtures(tmp_path):
    pytest.importorskip("sklearn")
    fig1 = importlib.import_module("figures.chen.fig1")
    stored = figures.obtain(figures.Table("chen-fig1", fig1.measure, {"n": 200, "epochs": [0, 5], "seed": 0}), tmp_path)
    assert stored["place"].shape == (200, 2) and stored["expert"].shape == (2, 2, 200)
    # Theta = 0 at the start: the routing noise alone decides, so both mixtures route alike, near log 4 = 1.386.
    assert (stored["expert"][0, 0] == stored["expert"][1, 0]).all() and stored["entropy"][0, 0] > 1.3
    assert len(fig1.draw([stored]).axes) == 4


def test_figure_1_says_what_it_needs(monkeypatch):
    import sys

    from odesim.errors import MissingError

    monkeypatch.setitem(sys.modules, "sklearn.manifold", None)
    with pytest.raises(MissingError, match="scikit-learn"):
        importlib.import_module("figures.chen.fig1").measure(8, [0], 0)


def test_every_claim_a_figure_names_exists():
    from odesim.evidence.verification import claims_of
    from odesim.request.case import find_system

    known = {claim.id for claim in claims_of(find_system("chen"))}
    for name in NAMES:
        assert set(importlib.import_module(f"figures.chen.{name}").CLAIMS) <= known

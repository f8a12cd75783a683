"""The figures of pruning: that they are found, draw what is stored, and name claims that exist."""

import importlib

import numpy as np
import pytest

from odesim.show import figures

NAMES = ["accounting", "collapse", "digits", "fig3", "fig45", "separation"]


def test_the_figures_of_pruning_are_found_by_name():
    assert [name for _, name, _ in figures.modules("pruning")] == NAMES


@pytest.mark.parametrize(
    "name",
    ["accounting", *(pytest.param(n, marks=pytest.mark.slow) for n in ("collapse", "digits", "fig45", "separation"))],
)
def test_a_figure_is_drawn_from_what_is_stored(name, tmp_path):
    if name == "digits":
        pytest.importorskip("sklearn")
    (need,) = importlib.import_module(f"figures.pruning.{name}").needs(quick=True)
    assert importlib.import_module(f"figures.pruning.{name}").draw([figures.obtain(need, tmp_path)]).axes


def test_the_accounting_gives_the_papers_ratios_and_not_its_totals(tmp_path):
    (need,) = importlib.import_module("figures.pruning.accounting").needs()
    stored = figures.obtain(need, tmp_path)
    ours, paper = np.asarray(stored["ours"]), np.asarray(stored["paper"])
    assert abs(ours[1] - paper[1]) < 1 and abs(ours[4] - paper[4]) < 1  # shares of the parameters
    assert ours[0] < 0.3 * paper[0] and ours[3] < 0.35 * paper[3]  # totals of a variant with four times the experts


def test_every_claim_a_figure_names_exists():
    from odesim.evidence.verification import claims_of
    from odesim.request.case import find_system

    known = {claim.id for claim in claims_of(find_system("pruning"))}
    for name in NAMES:
        assert set(importlib.import_module(f"figures.pruning.{name}").CLAIMS) <= known

"""The tables and figures of pmoe: that they are found, draw what is stored, and measure what they say."""

import importlib

import numpy as np
import pytest

from odesim.show import figures

NAMES = ["assumption", "fig4", "fig567", "flowtime", "levels", "onepass", "routers", "spurious", "tables12"]
TINY = {
    "sizes": [2, 4, 8], "seeds": 1, "speeds": [1.0], "widths": [40, 80], "agree": [0.5, 0.95], "experts": [2, 4],
    "draws": 4, "steps": 20,
}  # fmt: skip


def tiny(need):
    """The same need at a size for tests."""
    if isinstance(need, figures.Table):
        return figures.Table(need.name, need.measure, {key: TINY.get(key, v) for key, v in need.arguments.items()})
    return figures.Request(need.system, need.parameters, {**need.options, "until": 20.0, "save_points": 11})


def stored_of(name, folder):
    """The needs of a figure, computed at a small size for tests."""
    module = importlib.import_module(f"figures.pmoe.{name}")
    return module, [figures.obtain(tiny(need), folder) for need in module.needs(quick=True)]


def test_the_figures_of_pmoe_are_found_by_name():
    assert [name for _, name, _ in figures.modules("pmoe")] == NAMES


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("fig4", "routers", "tables12")])
def test_a_figure_is_drawn_from_what_is_stored(name, tmp_path):
    module, stored = stored_of(name, tmp_path)
    assert module.draw(stored).axes


@pytest.mark.slow
def test_figure_4_is_drawn_from_digits(tmp_path):
    pytest.importorskip("sklearn")
    module, stored = stored_of("fig4", tmp_path)
    assert module.draw(stored).axes


def test_router_success_grows_with_samples_and_l(tmp_path):
    module, stored = stored_of("routers", tmp_path)
    table, need = stored
    assert table["share"].astype(float).max() <= 1 + 1e-12
    assert (np.diff(need["independent"].astype(float)) > 0).all()
    assert module.draw(stored).axes


def test_table_2_holds_the_papers_numbers(tmp_path):
    module, stored = stored_of("tables12", tmp_path)
    printed = stored[1]
    ratio = printed["pmoe_seconds"].astype(float) / printed["wrn_seconds"].astype(float)
    assert np.allclose(ratio, [0.600, 0.593, 0.598, 0.584], atol=6e-4)
    assert module.draw(stored).axes


def test_every_claim_a_figure_names_exists():
    from odesim.evidence.verification import claims_of
    from odesim.request.case import find_system

    known = {claim.id for claim in claims_of(find_system("pmoe"))}
    for name in NAMES:
        assert set(importlib.import_module(f"figures.pmoe.{name}").CLAIMS) <= known

"""The figures of kawata: found by name, and drawn from stored requests of the smallest size."""

import dataclasses
import importlib

import numpy as np
import pytest

from odesim.show import figures

NAMES = ["endtoend", "exceptional", "exponents", "fig1a", "fig1b", "fig2", "samples", "signal"]
TINY = {"J": 6, "neurons": 12, "seeds": 1, "dimensions": [20, 24, 30], "width": 6}


def shrink(need):
    """The same need with a dozen neurons."""
    if isinstance(need, figures.Table):
        return figures.Table(need.name, need.measure, {k: TINY.get(k, v) for k, v in need.arguments.items()})
    return dataclasses.replace(need, parameters={**need.parameters, "neurons": TINY["neurons"]})


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """The folder in which the needs are stored once for all figures."""
    return tmp_path_factory.mktemp("runs")


def test_the_figures_of_kawata_are_found_by_name():
    assert [name for _, name, _ in figures.modules("kawata")] == NAMES


@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("samples", "exponents", "exceptional")])
def test_a_figure_is_drawn_from_what_is_stored(name, root, tmp_path):
    module = importlib.import_module(f"figures.kawata.{name}")
    stored = [figures.obtain(shrink(need), root) for need in module.needs(quick=True)]
    figure = figures.draw(module, stored, quick=True)
    figure.savefig(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 5000
    assert len(module.CAPTION) > 40 and module.CLAIMS


@pytest.mark.slow
@pytest.mark.parametrize("name", ["samples", "exponents", "exceptional"])
def test_a_scaling_is_drawn_with_positive_numbers(name, root):
    module = importlib.import_module(f"figures.kawata.{name}")
    needs = module.needs(quick=True)
    stored = [figures.obtain(shrink(n) if isinstance(n, figures.Table) else n, root) for n in needs]
    axis = figures.draw(module, stored).axes[0]
    drawn = [line.get_ydata() for line in axis.get_lines()]
    assert drawn and all((np.asarray(y, float)[np.isfinite(np.asarray(y, float))] > 0).all() for y in drawn)

"""The picture of a comparison: a row for each component, differences in units of chance, said in words."""

import matplotlib
import numpy as np
import pytest

import odesim
from odesim.show import compared, plot
from odesim.study.comparison import ratio

matplotlib.use("Agg")


@pytest.fixture(scope="module")
def comparison():
    return odesim.compare("liao", m=3, m_star=1, d=100, step_size=1e-3, batch=64, seeds=4, until=0.2, save_points=9)


def test_every_component_has_a_row_its_curves_and_its_agreement(comparison):
    data = comparison.trajectory().dataset()
    figure = plot.figures(data)["comparison"]
    assert len(figure.axes) == 2 * 7
    assert "entry" in figure.axes[0].get_title(loc="left")
    said = comparison.summary()["judgements"]["gamma1"]["sentence"]
    assert figure.axes[1].get_title(loc="left").replace("\n", " ") == said
    assert "4 replicas" in figure.get_suptitle() and "batch 64" in figure.get_suptitle()
    low, _ = figure.axes[1].get_ylim()
    assert low > 1e-7  # the axis begins where the difference does, not at the rounding of the common start


def test_the_summary_has_distances_over_ranges_and_standard_errors(comparison):
    summary = comparison.summary()
    assert set(summary["standard_errors"]) == set(summary["components"]) == set(summary["components_over_range"])
    assert all(0.2 < value < 5 for value in summary["standard_errors"].values())
    assert ratio(np.array([0.0, 2.0]), np.array([0.0, 1.0]), 1.0) == 2.0
    assert ratio(np.zeros(2), np.zeros(2), 1.0) is ratio(np.ones(2), np.full(2, 1e-16), 1.0) is None


def test_few_replicas_have_a_band_from_the_least_to_the_largest():
    values = np.arange(12.0).reshape(4, 3)
    low, high, words = compared.band(values)
    assert words == "min to max of 4" and low[0] == 0.0 and high[0] == 9.0
    assert compared.band(np.zeros((12, 3)))[2] == "10 to 90 % of 12"

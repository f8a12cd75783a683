"""Words for pictures, plain numbers on short axes, and how many seeds stand behind a figure."""

import matplotlib
import pytest
from matplotlib.figure import Figure

from odesim.show import figures
from odesim.show.alt import describe
from odesim.show.axes import plain_logs

matplotlib.use("Agg")


def drawn(values, scale="log"):
    figure = Figure()
    axis = figure.subplots()
    axis.plot(values, values, label=r"$\gamma^{(2)}$")
    axis.set_xscale(scale)
    axis.set_xlabel("dimension $d$")
    axis.set_ylabel("time")
    return figure, axis


def test_a_picture_is_described_by_its_axes_ranges_and_names():
    figure, axis = drawn([10, 1000])
    axis.set_title("two runs")
    words = describe(figure)
    assert words.startswith("two runs, plot of time (") and "against dimension d (" in words
    assert "logarithmic" in words and "gamma^(2)" in words and "$" not in words


def test_a_table_is_read_out():
    figure = Figure()
    figure.subplots().table([["a", "1"], ["b", "2"]], colLabels=["name", "value"])
    assert describe(figure) == "table: name, value; a, 1; b, 2."


@pytest.mark.parametrize(("values", "ticks"), [([20, 45], {"20", "30"}), ([30, 900], {"50", "100", "200", "500"})])
def test_a_short_logarithmic_axis_has_plain_numbers(values, ticks):
    figure, axis = drawn(values)
    plain_logs(figure)
    low, high = axis.get_xlim()
    shown = {axis.xaxis.get_major_formatter()(t) for t in axis.xaxis.get_majorticklocs() if low <= t <= high}
    assert ticks <= shown


def test_a_long_logarithmic_axis_and_ticks_chosen_by_hand_stay():
    figure, axis = drawn([1, 1e6])
    before = axis.xaxis.get_major_formatter()
    axis.set_yticks([1.0, 7.0])
    plain_logs(figure)
    assert axis.xaxis.get_major_formatter() is before and list(axis.get_yticks()) == [1.0, 7.0]


def test_a_caption_says_how_many_seeds():
    table = figures.Table("t", drawn, {"seeds": 10})
    assert figures.seeds_of([table]) == "10 seeds."
    assert figures.seeds_of([figures.Request("liao", {}, {"seed": s}) for s in (0, 1)]) == "2 seeds."
    assert figures.seeds_of([figures.Table("t", drawn, {"share": 1})]) == ""

"""The picture of a comparison: matched entries, loss, times of both runs, and the judgement in words."""

import matplotlib
import numpy as np
import pytest

import odesim
from odesim.show import compared, plot
from odesim.show.symbols import as_mathematics, label_of
from odesim.study import panels
from odesim.study.comparison import ratio

matplotlib.use("Agg")
RUN = {"m": 3, "m_star": 2, "d": 100, "init": "orthogonal", "until": 12.0, "save_points": 61, "seed": 2}


@pytest.fixture(scope="module")
def comparison():
    return odesim.compare("liao", **RUN, method="compressed", step_size=1e-3, batch=256, seeds=5)


@pytest.fixture(scope="module")
def data(comparison):
    return comparison.trajectory().dataset()


def panel(figure, label):
    (found,) = (axis for axis in figure.axes if axis.get_label() == label)
    return found


def test_the_picture_has_three_panels_one_legend_and_the_judgement(comparison, data):
    figure = plot.figures(data)["comparison"]
    assert [axis.get_label() for axis in figure.axes] == ["order parameters", "loss", "half-way times"]
    (legend,) = figure.legends
    said = [text.get_text() for text in legend.get_texts()]
    assert said[:4] == ["teacher 1", "teacher 2", "ODE", "SGD, 5 replicas"]
    assert comparison.summary()["agreement"] in legend.get_title().get_text().replace("\n", " ")
    assert "5 replicas" in figure.get_suptitle() and "$B = 256$" in figure.get_suptitle()
    assert all(axis.get_legend() is None for axis in figure.axes)


def test_one_colour_stands_for_one_teacher_in_every_panel(data):
    figure = plot.figures(data)["comparison"]
    lines = panel(figure, "order parameters").lines
    colours = list(dict.fromkeys(line.get_color() for line in lines))
    marks = panel(figure, "half-way times").containers
    assert [mark.lines[0].get_color() for mark in marks] == colours and len(colours) == 2
    assert len(lines) == 2 * (1 + 5)  # the flow and every replica of both teachers


def test_matched_pairs_are_shown_and_the_rest_is_a_band(comparison, data):
    chosen = panels.choose(comparison.reference, {n: comparison.first.state[n].dims for n in comparison.reference})
    assert chosen.name == "gamma2" and chosen.colours == (0, 1)
    final = np.abs(comparison.reference["gamma2"][0, -1])
    for i, j in chosen.indices:
        assert final[i, j] == final[:, j].max()
    values = comparison.second.state["gamma2"].values
    rest = np.array([values[:, :, i, j] for i in range(3) for j in range(2) if (i, j) not in chosen.indices])
    assert np.allclose(data["others_low"], np.quantile(rest.reshape(-1, 61 * 5).reshape(4 * 5, 61), 0.05, axis=0))
    first = np.array([comparison.reference["gamma2"][0, :, i, j] for i, j in chosen.indices])
    assert np.array_equal(data["shown_first"].values, first)


def test_half_way_times_are_those_of_the_hitting_times_of_that_level(comparison, data):
    """The flow passes the same level at a time that SciPy's interpolation of the stored curve finds."""
    from scipy.interpolate import PchipInterpolator

    for k in range(2):
        curve = data["shown_first"].values[k]
        level = (curve[0] + curve[-1]) / 2
        roots = PchipInterpolator(comparison.times, curve - level).roots(extrapolate=False)
        assert data["half_first"].values[k] == pytest.approx(roots[0], abs=0.05)  # a fifth of the spacing, and a bend


def test_ten_replicas_are_a_band_and_runs_that_never_move_have_differences():
    found = odesim.compare("liao", m=3, m_star=1, d=100, step_size=1e-3, batch=64, seeds=10, until=0.2, save_points=9)
    figure = plot.figures(found.trajectory().dataset())["comparison"]
    words = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "SGD, 10 to 90 % of 10" in words
    assert len(panel(figure, "order parameters").collections) >= 2


def test_two_equal_flows_are_equal_up_to_rounding():
    runs = [odesim.integrate("liao", m=2, m_star=1, d=100, until=1e-6, save_points=5) for _ in range(2)]
    figure = plot.figures(odesim.compare(*runs).trajectory().dataset())["comparison"]
    assert "agree over the whole run" in figure.legends[0].get_title().get_text()


def test_a_model_of_one_number_per_unit_has_a_colour_for_each():
    values = np.linspace(0, 1, 5)[None, :, None] * np.array([1.0, -2.0, 0.5])
    chosen = panels.choose({"a": values}, {"a": ("time", "unit")})
    assert chosen.indices == ((0,), (1,), (2,)) and chosen.colours == (0, 1, 2)


def test_a_stored_comparison_of_an_earlier_version_has_its_differences(data):
    old = data.drop_vars([n for n in data if str(n).startswith(("shown", "others", "half", "loss_"))])
    figure = compared.draw(old)
    assert [axis.get_label() for axis in figure.axes] == ["differences"]


@pytest.mark.parametrize(
    "symbol",
    ["gamma^(2)_ij", "kappa_{m,j,c}", "<w_mj, v_k>", "w . w*_c", "one_M_ww", "Q_ww", "phi_s(z)", "w_{mj} . v_c", "p_1"],
)
def test_matplotlib_reads_every_symbol(symbol):
    from matplotlib.mathtext import MathTextParser

    assert MathTextParser("path").parse(as_mathematics(symbol)).width > 0


def test_every_component_of_every_system_has_a_label_that_can_be_drawn():
    from matplotlib.mathtext import MathTextParser

    import derivations

    for name in derivations.names():
        run = odesim.integrate(name, until=1.0, save_points=3)
        for variable, values in run.state.items():
            label = label_of(values.meaning, variable)
            assert label and "(" not in label.partition("$")[0].rpartition(" ")[2]
            MathTextParser("path").parse(label)


def test_the_summary_has_distances_over_ranges_and_standard_errors(comparison):
    summary = comparison.summary()
    assert set(summary["standard_errors"]) == set(summary["components"]) == set(summary["components_over_range"])
    assert all(0.2 < value < 10 for value in summary["standard_errors"].values())
    assert ratio(np.array([0.0, 2.0]), np.array([0.0, 1.0]), 1.0) == 2.0
    assert ratio(np.zeros(2), np.zeros(2), 1.0) is ratio(np.ones(2), np.full(2, 1e-16), 1.0) is None


def test_few_replicas_have_a_band_from_the_least_to_the_largest():
    values = np.arange(12.0).reshape(4, 3)
    low, high, words = compared.band(values)
    assert words == "min to max of 4" and low[0] == 0.0 and high[0] == 9.0
    assert compared.band(np.zeros((12, 3)))[2] == "10 to 90 % of 12"

"""One variable against time: matched entries in colours, the rest grey, labels as mathematics, the legend beside."""

import matplotlib
import numpy as np
import pytest

import odesim
from odesim.show import plot

matplotlib.use("Agg")


@pytest.fixture(scope="module")
def run():
    return odesim.integrate("liao", m=5, m_star=3, d=400, until=40, save_points=41)


def labels(axis):
    legend = axis.get_legend() or axis.figure.legends[0]
    return [text.get_text().replace("\n", " ") for text in legend.get_texts()]


def test_the_matched_pairs_have_the_colours_of_their_teachers_and_the_legend_lies_below_the_data(run):
    axis = run.plot("gamma2")
    assert labels(axis) == ["teacher 1", "teacher 2", "teacher 3", "other entries"]
    named = [line for line in axis.lines if line.get_label().startswith("teacher")]
    assert [line.get_color() for line in named] == ["#0072B2", "#D55E00", "#009E73"]
    curves = {run["gamma2"][:, i, j].tobytes() for i in range(5) for j in range(3)}
    drawn = [np.asarray(line.get_ydata()).tobytes() for line in axis.lines if np.size(line.get_ydata())]
    assert set(drawn) == curves and len(drawn) == 15
    axis.figure.draw_without_rendering()
    assert axis.figure.legends[0].get_window_extent().y1 < axis.get_window_extent().y0
    assert axis.get_ylabel().replace("\n", " ") == r"expert alignment $\gamma^{(2)}_{ij}$"
    assert axis.figure.get_suptitle() == "liao: ODE · $d = 400$, $m = 5$, $m^{*} = 3$, seed 0"


def test_given_axes_are_drawn_into_and_a_scalar_needs_no_legend(run):
    from matplotlib.figure import Figure

    axis = Figure().subplots()
    assert run.plot("loss", ax=axis) is axis and axis.get_legend() is None
    assert axis.get_ylabel() == "population loss $L$" and axis.figure.get_suptitle() == ""
    with pytest.raises(odesim.UsageError, match="no variable 'gama2'"):
        run.plot("gama2")


def test_replicas_are_thin_behind_the_first():
    run = odesim.simulate(
        "liao", method="compressed", m=3, m_star=2, d=100, until=0.2, seeds=12, step_size=1e-3, batch=8, save_points=9
    )
    axis = run.plot("gamma2")
    assert {"thick: replica 1 of 12", "thin: replicas 2 to 8"} <= set(labels(axis))
    thick = [line for line in axis.lines if line.get_linewidth() > 0.5 and np.size(line.get_ydata())]
    assert len(thick) == 2
    first = {run["gamma2"][0, :, i, j].tobytes() for i in range(3) for j in range(2)}
    assert all(np.asarray(line.get_ydata()).tobytes() in first for line in thick)


def test_a_system_without_a_picture_of_its_own_has_a_panel_for_what_moves(run):
    data = run.dataset().assign(still=("time", np.ones(41)))
    figure = plot.components(data[["gamma2", "loss", "still"]])
    assert [axis.get_label() for axis in figure.axes] == ["gamma2", "loss"]
    assert "expert" in figure.axes[0].get_ylabel()


def test_a_comparison_draws_a_component_of_both_runs_and_its_legend_fits_a_column():
    from matplotlib.figure import Figure

    committee = odesim.declare(
        student={"unit": "erf(w/sqrt(2))", "units": 3}, teacher={"units": 2}, training={"limit": "online", "step": 0.5}
    )
    found = odesim.compare(committee, d=100, seeds=12, until=2, save_points=9)
    axis = Figure(figsize=(3.3, 2.4), layout="constrained").subplots()
    assert found.plot("M_ww", ax=axis) is axis
    names = ["teacher 1", "teacher 2", "ODE", "SGD, 10 to 90 % of 12", "90 % band of SGD, theory"]
    assert labels(axis) == names and len(axis.collections) == 4
    assert axis.get_ylabel() == r"$w_{i} \cdot w^{*}_{j}$"
    curves = [np.asarray(line.get_ydata()) for line in axis.lines]
    flow = [found.first["M_ww"][:, i, j] for i in range(3) for j in range(2)]
    assert sum(any(np.array_equal(curve, one) for one in flow) for curve in curves) == 2
    ends = [row for end in ("low", "high") for row in found.band.arrays[f"shown_{end}"].values]
    assert sum(any(np.array_equal(curve, one, equal_nan=True) for one in ends) for curve in curves) == 4
    axis.figure.draw_without_rendering()
    assert axis.get_legend().get_window_extent().x1 < axis.get_window_extent().x1
    assert labels(found.plot())[-1] == names[-1] and labels(found.plot("loss"))[0] == "ODE"
    assert found.plot("off_M_ww").get_ylabel() and found.plot("M_ww").figure.get_suptitle()
    with pytest.raises(odesim.UsageError, match="no variable 'M_w' against time; did you mean 'M_ww'"):
        found.plot("M_w")

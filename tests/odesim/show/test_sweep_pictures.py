"""The picture of a sweep: hitting times first, over the first swept name, coloured by the second."""

import json

import matplotlib
import numpy as np
import pytest
import xarray

from derivations.drawing import COLUMN
from odesim.cli import main
from odesim.show.sweep_pictures import Measure, draw, measures, swept_axes
from odesim.store.folder import manifest_of
from odesim.sweeps import swept
from tests.odesim.show.readable import faults

matplotlib.use("Agg")


def command(*words):
    with pytest.raises(SystemExit) as ended:
        main([*words, "--quiet"])
    return int(ended.value.code or 0)


@pytest.fixture(scope="module")
def grid(tmp_path_factory):
    """A sweep over two sizes and seeds, as the command leaves it."""
    folder = tmp_path_factory.mktemp("grids") / "grid"
    over = ["--over", "d=100,1e4,1e6", "--over", "init=random,orthogonal", "--over", "seed=0..2"]
    sizes = ["-p", "m=4", "-p", "m_star=2", "--until", "6*sqrt(d)"]
    assert command("sweep", "--system", "liao", *sizes, *over, "--workers", "1", "--out", str(folder)) == 0
    return folder


def panel(figure, name):
    (found,) = [axis for axis in figure.axes if axis.get_label() == name]
    return found


def test_the_picture_can_be_read_in_a_column(grid):
    _, figure = figure_of(grid)
    assert figure.get_figwidth() == COLUMN and faults(figure) == []


def figure_of(folder):
    import derivations

    manifest, data = swept.read(folder)
    return data, draw(data, manifest, derivations.system("liao"))["sweep"]


def test_the_command_leaves_the_picture_and_its_hash(grid):
    assert (grid / "sweep.png").stat().st_size > 10_000
    assert "sweep.png" in manifest_of(grid)["files"]


def test_hitting_times_come_first_over_the_first_name_and_coloured_by_the_second(grid):
    data, figure = figure_of(grid)
    assert [axis.get_label() for axis in figure.axes][:2] == ["T_gamma1", "T_gamma2"]
    axis = panel(figure, "T_gamma2")
    assert axis.get_xscale() == axis.get_yscale() == "log"
    assert axis.get_xlabel() == "$d$" and axis.get_ylabel() == r"hitting time $T_{\gamma2}$"
    curves = {(line.get_color(), line.get_linestyle()): line for line in axis.lines if np.size(line.get_xdata()) == 3}
    first = data["T_gamma2"].min(["expert", "teacher"]).median("seed")
    for shade, init in (("#0072B2", "random"), ("#D55E00", "orthogonal")):
        line = curves[shade, "-"]
        assert np.array_equal(line.get_xdata(), [100, 1e4, 1e6])
        assert np.array_equal(line.get_ydata(), first.sel(init=init))
    words = [text.get_text().replace("\n", " ") for text in figure.legends[0].get_texts()]
    assert "initial students: random" in words and "first to be reached" in words
    assert "median of 3 runs, bars from least to largest" in words
    title = figure.get_suptitle().replace("\n", " ")
    assert title == "liao: ODE over $d$ and initial students · $m = 4$, $m^{*} = 2$, 3 seeds"


def test_what_is_not_reached_is_counted_and_not_drawn(grid):
    data, figure = figure_of(grid)
    last = data["T_gamma2"].min("expert").max("teacher")
    missing = int((~np.isfinite(last)).sum())
    assert missing > 0
    (said,) = panel(figure, "T_gamma2").texts
    assert said.get_text() == f"{missing} of 18 not reached"
    for line in panel(figure, "T_gamma2").lines:
        assert np.isfinite(line.get_ydata()).all()


def test_a_report_shows_the_picture_of_a_sweep(grid):
    from odesim.show import report

    (picture,) = report.read_sweep(str(grid)).pictures
    assert picture.name == "sweep.png"


def test_plot_draws_a_sweep_again_and_as_svg(grid, capsys):
    with pytest.raises(SystemExit):
        main(["plot", str(grid), "--svg", "--json"])
    pictures = json.loads(capsys.readouterr().out)["pictures"]
    assert pictures == [str(grid / "sweep.png"), str(grid / "sweep.svg")]
    assert {"sweep.png", "sweep.svg", "sweep.nc"} <= set(manifest_of(grid)["files"])
    assert command("show", str(grid)) == 0


def test_a_sweep_without_pictures_and_one_in_which_nothing_differs(tmp_path, capsys):
    words = ["--system", "liao", "-p", "m=2", "-p", "m_star=1", "--until", "1e-9", "--workers", "1"]
    grid = str(tmp_path / "none")
    assert command("sweep", *words, "--over", "d=100,200", "--out", grid, "--no-figures") == 0
    assert not (tmp_path / "none" / "sweep.png").exists()
    grid = str(tmp_path / "one")
    assert command("sweep", *words, "--over", "d=100", "--out", grid) == 0
    assert not (tmp_path / "one" / "sweep.png").exists()
    assert command("plot", grid) == 2
    assert "so there is nothing to draw" in capsys.readouterr().err


def test_seeds_alone_are_the_axis_and_numbers_of_the_integrator_are_no_measure():
    outcome = (("seed",), np.array(["completed"] * 4))
    counts = {"evaluations": ("seed", np.arange(4.0)), "small": ("seed", 1e-12 * np.arange(4.0))}
    data = xarray.Dataset(
        {"outcome": outcome, "loss_final": ("seed", np.arange(4.0)), "final_loss": ("seed", np.arange(4.0)), **counts},
        {"seed": np.arange(4)},
        {"system": "liao"},
    )
    assert swept_axes(data) == ["seed"]
    found = [m.name for m in measures(data, ["seed"], None) if m.varies]
    assert found == ["final_loss"]  # loss_final is the same number
    figure = draw(data, {})["sweep"]
    assert panel(figure, "final_loss").get_ylabel().replace("\n", " ") == "population loss at the end"


def test_an_axis_is_logarithmic_from_a_decade_on_and_words_are_places():
    def drawn(values, measured):
        data = xarray.Dataset(
            {"outcome": ("x", np.array(["completed"] * 3)), "loss_final": ("x", np.asarray(measured))},
            {"x": values},
            {"system": "liao"},
        )
        return panel(draw(data, {})["sweep"], "loss_final")

    assert drawn([1.0, 3.0, 9.0], [1.0, 2.0, 20.0]).get_xscale() == "linear"
    assert drawn([1.0, 3.0, 10.0], [1.0, 2.0, 3.0]).get_xscale() == "log"
    assert drawn([1.0, 3.0, 9.0], [1.0, 2.0, 20.0]).get_yscale() == "log"
    named = drawn(["a", "b", "c"], [1.0, 2.0, 3.0])
    assert [text.get_text() for text in named.get_xticklabels()] == ["a", "b", "c"]


def test_many_values_of_the_second_name_have_a_colour_each():
    shape = (3, 12)
    data = xarray.Dataset(
        {"outcome": (("d", "m"), np.full(shape, "completed")), "T": (("d", "m"), np.arange(1.0, 37).reshape(shape))},
        {"d": [10, 100, 1000], "m": np.arange(12)},
        {"system": "liao"},
    )
    axis = panel(draw(data, {})["sweep"], "T")
    assert len({line.get_color() for line in axis.lines}) == 12


def test_hitting_times_are_drawn_even_where_the_grid_does_not_move_them():
    assert Measure("T_half", "", {"": np.ones((1, 3, 1, 1))}, is_time=True).varies
    assert not Measure("loss", "", {"": np.ones((1, 3, 1, 1))}).varies
    assert not Measure("T_half", "", {"": np.full((1, 3, 1, 1), np.inf)}, is_time=True).varies

"""Pictures of simulations show runs that were made: replica by replica, with their signs, from all experts."""

import matplotlib
import numpy as np
import pytest
import xarray

import odesim
from odesim.show import plot

matplotlib.use("Agg")


def lines(axis):
    return [line for line in axis.lines if np.size(line.get_xdata()) > 2 and line.get_gid() != "theory"]


def panel(figure, name):
    """The panel of that label."""
    (found,) = [axis for axis in figure.axes if axis.get_label() == name]
    return found


def legend(figure):
    """The words of the one legend, below all panels."""
    return [text.get_text().replace("\n", " ") for text in figure.legends[0].get_texts()]


def drawn(axis):
    """The lines of one replica."""
    return [line for line in lines(axis) if line.get_linewidth() > 0.5]


def labels(figure):
    return [axis.get_label() for axis in figure.axes]


@pytest.fixture(scope="module")
def pruned():
    """Five replicas of a pruning run whose experts have both signs."""
    sizes = {"d": 24, "n": 12, "k": 4, "l": 3, "m": 6, "important": 1, "missigned": 0, "weak": 1}
    return odesim.simulate(
        "pruning", method="compressed", step_size=0.5, batch=8, seeds=5, until=400, save_points=5, **sizes
    )


def test_every_line_of_a_simulation_is_one_of_its_replicas(pruned):
    figure = plot.figures(pruned)["trajectories"]
    made = {values.tobytes() for values in pruned["Delta"].transpose(0, 2, 1).reshape(-1, 5)}
    drawn = [line for axis in figure.axes if axis.get_label().startswith("Delta") for line in lines(axis)]
    assert len(drawn) == 5 * 4
    assert all(np.asarray(line.get_ydata()).tobytes() in made for line in drawn)
    thick = [line for line in drawn if line.get_linewidth() > 0.5]
    assert {np.asarray(line.get_ydata()).tobytes() for line in thick} == {v.tobytes() for v in pruned["Delta"][0].T}
    assert ["thick: replica 1 of 5", "thin: replicas 2 to 5"] == [w for w in legend(figure) if "replica" in w]
    assert "5 replicas" in figure.get_suptitle() and "$B = 8$" in figure.get_suptitle()


def test_experts_of_both_signs_have_columns_and_are_shown_with_their_own_proficiency(pruned):
    sign = pruned["a"]
    assert sorted(set(sign)) == [-1.0, 1.0]
    figure = plot.figures(pruned)["trajectories"]
    for value, name in ((1, "p1"), (-1, "p2")):
        (axis,) = [axis for axis in figure.axes if axis.get_label() == f"p1{value:+d}"]
        thick = {np.asarray(line.get_ydata()).tobytes() for line in lines(axis) if line.get_linewidth() > 0.5}
        assert thick == {pruned[name][0, :, s].tobytes() for s in np.flatnonzero(sign == value)}


def test_signed_overlaps_do_not_shrink_with_the_number_of_replicas():
    runs = {
        seeds: odesim.simulate(
            "kawata", method="compressed", step_size=1e-3, batch=4, seeds=seeds, until=0.02, save_points=5, neurons=12
        )
        for seeds in (2, 31)
    }
    sizes = []
    for run in runs.values():
        found = lines(panel(plot.figures(run)["overlaps"], "kappa"))
        sizes.append(np.median([np.asarray(line.get_ydata())[-1] for line in found]))
    assert sizes[1] > sizes[0] / 2


def test_a_panel_of_one_replica_never_holds_the_lines_of_another_panel():
    """Replica 1 comes to the plateau at 1 and has a panel for it; replica 2 does not."""
    times = np.linspace(0, 1, 21)
    near, far = 1 - 0.9 * np.exp(-5 * times), 0.5 * times
    gamma = np.array([near, far])[:, :, None, None]
    loss = np.array([10 + 5 * times, 20 + 5 * times])
    dims = ("seed", "time", "expert", "teacher")
    run = xarray.Dataset(
        {"gamma1": (dims, gamma), "gamma2": (dims, gamma), "loss": (dims[:2], loss)},
        {"time": times},
        {"system": "liao", "method": "compressed", "stage": "train"},
    )
    figure = plot.figures(run)["trajectories"]
    assert labels(figure) == ["alignment", "gap", "loss"]
    assert all(np.asarray(line.get_ydata()).max() <= 1 for line in lines(panel(figure, "gap")))
    assert len(lines(panel(figure, "loss"))) == 2


def test_a_run_in_which_nothing_moves_has_a_picture_all_the_same():
    for name, given in (
        ("chen", {"preset": "quick"}),
        ("pmoe", {"preset": "tiny-separate"}),
        ("kawata", {"neurons": 3}),
    ):
        run = odesim.integrate(name, until=1e-9, save_points=2, **given)
        assert all(figure.axes for figure in plot.figures(run).values())
    run = odesim.integrate("ren_2025", until=1e-9, save_points=2)
    assert labels(plot.figures(run)["order_parameters"]) == ["M_ww"]


def test_panels_without_a_label_get_the_lines_of_their_own_place():
    from matplotlib.figure import Figure

    def draw(run):
        figure = Figure()
        for k, axis in enumerate(figure.subplots(2)):
            axis.plot(run["time"], run["x"] + 10 * k)
        return {"two": figure}

    data = xarray.Dataset({"x": (("seed", "time"), np.zeros((3, 5)))}, {"time": np.arange(5.0)}, {"method": "explicit"})
    figure = plot.of_replicas(data, draw)["two"]
    for k, axis in enumerate(figure.axes):
        assert {float(line.get_ydata()[0]) for line in lines(axis)} == {10.0 * k} and len(lines(axis)) == 3


def synthetic(neurons):
    """A run of kawata of so many neurons, half of which leave at a time."""
    time = np.linspace(0, 100.0, 101)
    kappa = np.full((101, neurons, 2), 1e-3) * np.linspace(1, 2, neurons)[None, :, None]
    kappa[50:, ::2] = 1.0
    names = {"time": time}
    dims = ("time", "neuron")
    data = {"kappa": ((*dims, "cluster"), kappa), "xi": (dims, np.full((101, neurons), 1e-3))}
    return xarray.Dataset(data, names, {"system": "kawata", "method": "flow", "stage": "phase1"})


def test_few_neurons_are_lines_and_many_are_bands_with_five_of_them():
    few = panel(plot.figures(synthetic(6))["overlaps"], "kappa")
    assert len(lines(few)) == 12 and not few.collections
    figure = plot.figures(synthetic(200))["overlaps"]
    many = panel(figure, "kappa")
    bands = [c for c in many.collections if len(c.get_paths()) and len(c.get_paths()[0].vertices) > 10]
    assert len(lines(many)) == 10 and len(bands) == 2
    assert "200 neurons, 10 to 90 % and 5 of them" in legend(figure)
    assert labels(figure) == ["kappa"]  # the global overlap is constant


def test_a_cluster_has_its_colour_in_every_panel():
    run = odesim.integrate("kawata", M=1, J=1, d=10**4, neurons=5)
    figure = plot.figures(run)["overlaps"]
    colours = [{line.get_color() for line in drawn(panel(figure, name))} for name in ("kappa", "nu")]
    assert colours[0] == colours[1] == {"#0072B2", "#D55E00"}
    kept = panel(figure, "kappa")
    assert kept.get_xscale() == "log"
    inside = [t for t in run.time if kept.get_xlim()[0] <= t <= kept.get_xlim()[1]]
    assert max(np.diff(np.log10(inside))) < 0.05  # no polygons: twenty saved times in every decade


def test_pruning_shows_its_error_fall_and_gives_one_colour_to_one_expert():
    run = odesim.integrate("pruning", d=40, n=30, k=12, l=5, m=10, important=2)
    figure = plot.figures(run)["trajectories"]
    error = panel(figure, "f_error")
    left = np.interp(error.get_xlim()[0], run.time, run["f_error"])
    assert left > 0.9 * run["f_error"][0] > 2 * run["f_error"][-1]
    named = {}
    for axis in figure.axes:
        for line in drawn(axis):
            if line.get_label().startswith("expert"):
                named.setdefault(line.get_label(), set()).add(line.get_color())
    assert len(named) == 8 and all(len(found) == 1 for found in named.values())
    assert len(set.union(*named.values())) == 8
    assert "other experts" in legend(figure)


def test_liao_sorts_unused_experts_by_the_teacher_they_lean_to():
    run = odesim.integrate("liao", m=8, m_star=2, d=10**4, seed=3, until=300, save_points=61)
    picture = plot.figures(run)["alignment"].axes[1].images[0].get_array()
    rest = np.abs(np.asarray(picture))[2:]
    homes = rest.argmax(axis=1)
    assert list(homes) == sorted(homes)
    for j in range(2):
        assert list(rest[homes == j].max(axis=1)) == sorted(rest[homes == j].max(axis=1), reverse=True)


def test_liao_draws_student_overlaps_in_no_teachers_colour_and_distances_from_one_beside():
    run = odesim.integrate("liao", m=6, m_star=2, d=10**4, seed=3, until=400, save_points=101)
    figure = plot.figures(run)["trajectories"]
    teachers = {line.get_color() for line in lines(panel(figure, "alignment"))}
    for name in ("min_I2", "anti_aligned", "loss"):
        assert not teachers & {line.get_color() for line in lines(panel(figure, name))}
    gap = panel(figure, "gap")
    assert gap.get_yscale() == "log"
    found = np.abs(run["gamma2"][-1]).max(axis=0).max()
    assert min(np.nanmin(line.get_ydata()) for line in lines(gap)) <= 1 - found + 1e-12


def test_more_than_eight_teachers_have_a_colour_each():
    run = odesim.integrate("liao", m=14, m_star=12, d=100, until=2, save_points=5)
    axis = panel(plot.figures(run)["trajectories"], "alignment")
    assert len({line.get_color() for line in lines(axis)}) == 12


def test_chen_has_one_legend_a_column_for_every_feature_with_experts_and_no_empty_panel():
    run = odesim.integrate("chen", preset="quick", until=1.5, save_points=31, rtol=1e-5, seed=1)
    figure = plot.figures(run)["trajectories"]
    assert len(figure.legends) == 1 and all(lines(axis) for axis in figure.axes)
    colours = {}
    for axis in figure.axes:
        for line in lines(axis):
            if line.get_label().startswith("expert"):
                colours.setdefault(line.get_label(), set()).add(line.get_color())
    assert len(colours) == 8 and all(len(found) == 1 for found in colours.values())
    figure.draw_without_rendering()
    right = max(axis.get_window_extent().x1 for axis in figure.axes)
    assert right > 0.97 * figure.bbox.x1  # no empty third


def test_pmoe_has_loss_error_and_v_on_axes_of_their_own():
    run = odesim.integrate("pmoe", preset="tiny-separate", until=200, save_points=21)
    figure = plot.figures(run)["trajectories"]
    assert {"loss", "error", "v"} <= set(labels(figure)) and "population" not in str(labels(figure))
    assert {line.get_label() for line in lines(panel(figure, "v"))} == {"$v$ of class +1", "$v$ of class -1"}
    assert len(lines(panel(figure, "loss"))) == 1


@pytest.mark.parametrize(
    ("name", "until", "panels"),
    [
        ("ren_2025", 14.0, ["M_ww", "gap M_ww", "error"]),  # under the correlation loss the loss is -E[f f*]
        ("kawata_neuron", 30.0, ["local_M_ww", "error"]),  # the global overlap stays at zero, to rounding
        ("saad_solla_1995", 400.0, ["M_ww", "gap M_ww", "Q_ww", "error"]),  # the loss is half the error
        ("simsek_2023", 100.0, ["M_ww", "Q_ww", "a", "error"]),
    ],
)
def test_a_declared_model_has_no_constant_panel_and_no_loss_beside_its_error(name, until, panels):
    run = odesim.integrate(name, until=until, save_points=101)
    figure = plot.figures(run)["order_parameters"]
    assert labels(figure) == panels or labels(figure) == [panel for panel in panels if panel != "error"]
    for axis in figure.axes:
        low, high = axis.get_ylim()
        ways = [np.nanmax(line.get_ydata()) - np.nanmin(line.get_ydata()) for line in drawn(axis)]
        assert max(ways) > 0.05 * (high - low)
        assert "_" not in axis.get_ylabel().replace("w_{i}", "").replace("_{j", "").replace("_{i", "")


def test_units_of_a_declared_model_have_the_colour_of_their_teacher():
    run = odesim.integrate("saad_solla_1995", until=300.0, save_points=101)
    figure = plot.figures(run)["order_parameters"]
    best = np.abs(run["M_ww"][-1]).argmax(axis=0)
    teachers = {int(best[j]): line.get_color() for j, line in enumerate(drawn(panel(figure, "M_ww")))}
    norms = {line.get_color(): np.asarray(line.get_ydata()) for line in drawn(panel(figure, "Q_ww"))}
    for i, shade in teachers.items():
        assert np.array_equal(norms[shade], run["Q_ww"][:, i, i])


def test_a_curve_ends_where_rounding_begins():
    run = odesim.integrate("ben_arous_2021", until=20.0, save_points=101)
    gap = panel(plot.figures(run)["order_parameters"], "gap M_ww")
    (line,) = drawn(gap)
    known = np.isfinite(line.get_ydata())
    assert known[0] and not known[-1] and list(known) == sorted(known, reverse=True)
    assert np.array_equal(np.asarray(line.get_ydata())[known], 1 - run["M_ww"][known, 0, 0])


def test_an_overlap_of_free_norm_that_passes_one_keeps_its_distance_from_it():
    """SGD of a free norm goes beyond 1 and comes back; a flow that is there to rounding does not."""
    from matplotlib.figure import Figure

    from derivations.drawing import gap

    time = np.arange(4.0)
    axis = Figure().subplots()
    gap(axis, time, [np.array([0.9, 1.01, 0.99, 1.001]), np.array([0.9, 0.999, 1 + 1e-9, 1 - 1e-9])], ["b", "r"])
    free, sphere = (np.asarray(line.get_ydata()) for line in axis.lines)
    assert free == pytest.approx([0.1, 0.01, 0.01, 0.001])
    assert sphere[:2] == pytest.approx([0.1, 0.001]) and np.isnan(sphere[2:]).all()


def test_student_overlaps_that_stay_at_zero_have_no_panel():
    run = odesim.integrate("liao", m=4, m_star=2, d=10**4, init="orthogonal", until=100, save_points=31)
    assert "min_I2" not in labels(plot.figures(run)["trajectories"])


def test_criteria_that_agree_share_a_line_of_the_legend_that_fits_the_picture():
    stages = odesim.integrate(
        "pruning", stage="tune,score", d=30, n=20, k=8, l=4, m=8, important=1, until={"tune": 5e3}, save_points=5
    )
    figure = plot.figures(stages[1])["pruning"]
    figure.draw_without_rendering()
    (one,) = figure.legends
    box = one.get_window_extent()
    assert box.x0 >= 0 and box.x1 <= figure.bbox.x1
    assert {"random"} < set(", ".join(legend(figure)).replace("\n", " ").split(", "))


def test_neurons_of_kawata_at_the_plateau_have_a_panel_of_their_distance_from_it():
    figure = plot.figures(odesim.integrate("kawata", save_points=101))["overlaps"]
    axis = panel(figure, "gap kappa")
    assert axis.get_yscale() == "log" and axis.get_ylabel() == r"$1-|\kappa|$"
    assert all(line.get_ydata()[0] > 0.9 and np.nanmin(line.get_ydata()) < 0.1 for line in axis.lines)
    assert "gap xi" not in labels(figure)

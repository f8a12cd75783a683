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


@pytest.fixture(scope="module")
def pruned():
    """Five replicas of a pruning run whose experts have both signs."""
    sizes = {"d": 24, "n": 12, "k": 4, "l": 3, "m": 6, "important": 1, "missigned": 0, "weak": 1}
    return odesim.simulate(
        "pruning", method="compressed", step_size=0.05, batch=8, seeds=5, until=40, save_points=5, **sizes
    )


def test_every_line_of_a_simulation_is_one_of_its_replicas(pruned):
    figure = plot.figures(pruned)["trajectories"]
    made = {values.tobytes() for values in pruned["Delta"].transpose(0, 2, 1).reshape(-1, 5)}
    drawn = [line for axis in figure.axes if axis.get_label().startswith("Delta") for line in lines(axis)]
    assert len(drawn) == 5 * 4
    assert all(np.asarray(line.get_ydata()).tobytes() in made for line in drawn)
    thick = [line for line in drawn if line.get_linewidth() > 0.5]
    assert {np.asarray(line.get_ydata()).tobytes() for line in thick} == {v.tobytes() for v in pruned["Delta"][0].T}
    assert "replicas 2 to 5 of 5" in figure.get_supxlabel()
    assert "5 replicas" in figure.get_suptitle() and "batch 8" in figure.get_suptitle()


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
        drawn = lines(panel(plot.figures(run)["overlaps"], "xi"))
        sizes.append(np.median([np.asarray(line.get_ydata())[-1] for line in drawn]))
    assert sizes[1] > sizes[0] / 2


def test_neurons_of_all_experts_are_drawn_and_the_picture_says_how_many():
    names = {"time": np.arange(3.0)}
    neurons = 4 * 50
    xi = np.repeat(np.arange(1.0, neurons + 1)[None] / neurons, 3, axis=0)
    run = xarray.Dataset({"xi": (("time", "neuron"), xi)}, names, {"system": "kawata", "method": "flow", "stage": "p"})
    figure = plot.figures(run)["overlaps"]
    drawn = {round(float(np.asarray(line.get_ydata())[0]) * neurons) - 1 for line in lines(panel(figure, "xi"))}
    assert len(drawn) == 60 and {index // 50 for index in drawn} == {0, 1, 2, 3}
    assert "60 of 200 neurons" in figure.axes[0].get_title()

"""The title says which run a picture is of; theory stands beside the run, and where it should."""

import matplotlib
import numpy as np
import pytest

import derivations
import odesim
from derivations.drawing import COLOURED, MARKS, PALETTE, Reference, colour, mark, marked
from odesim.show import plot
from odesim.show.title import title

matplotlib.use("Agg")


@pytest.fixture(scope="module")
def liao():
    """A short run of liao, long enough for its first anti-alignment."""
    return odesim.integrate("liao", m=6, m_star=2, d=10**4, seed=3, until=40, save_points=41)


def theory(axis):
    return [line for line in axis.lines if line.get_gid() == "theory" and np.size(line.get_xdata())]


def legend(figure):
    (one,) = figure.legends
    assert all(axis.get_legend() is None for axis in figure.axes)
    return [text.get_text().replace("\n", " ") for text in one.get_texts()]


def panel(figure, name):
    (found,) = [axis for axis in figure.axes if axis.get_label() == name]
    return found


def test_a_title_is_one_line_of_model_method_sizes_and_seed(liao):
    said = title(liao.dataset(), derivations.system("liao"))
    assert said == "liao: ODE · $d = 10^4$, $m = 6$, $m^{*} = 2$, seed 3"
    assert all(figure.get_suptitle() == said for figure in plot.figures(liao).values())


def test_a_title_has_no_code_words_and_of_a_simulation_step_batch_and_replicas():
    run = odesim.simulate(
        "liao", method="compressed", m=3, m_star=1, d=100, init="orthogonal", step_size=1e-3, batch=4, seeds=2,
        until=0.01, save_points=3,
    )  # fmt: skip
    said = title(run.dataset(), derivations.system("liao"))
    assert (
        said == "liao: compressed SGD · $d = 100$, $m = 3$, $m^{*} = 1$, seed 0, 2 replicas, $\\eta = 0.001$, $B = 4$"
    )
    words = title(odesim.integrate("kawata", preset="phases", until=1.0, save_points=2).dataset())
    assert "width3" not in words and "ridge" not in words


@pytest.mark.parametrize(
    ("name", "flow", "sgd"),
    [
        ("saad_solla_1995_step", "$\\eta = 1$", "$\\eta = 1$, seed 0, 1 replica, $\\eta/d = 0.05$"),
        ("ren_2025", "seed 0", "seed 0, 1 replica, $\\eta = 0.01$"),
    ],
)
def test_a_flow_has_no_step_and_an_online_limit_has_eta(name, flow, sgd):
    run = odesim.integrate(name, d=20, until=0.1, save_points=2)
    assert flow in title(run.dataset(), odesim.system(name)) and "eta/d" not in title(run.dataset())
    step = 0.05 if "step" in name else 0.01
    run = odesim.simulate(name, method="compressed", d=20, until=0.1, save_points=2, step_size=step, seeds=1)
    said = title(run.dataset(), odesim.system(name))
    assert sgd in said and "step" not in said.replace(name, "")


def test_a_long_title_is_folded_and_a_later_stage_named(liao):
    said = title(liao.dataset(), derivations.system("liao"), width=30)
    assert len(said.splitlines()) == 2
    run = odesim.integrate("pmoe", preset="tiny-separate", until=1, save_points=3)
    assert title(run.dataset(), derivations.system("pmoe")).startswith("pmoe, experts: ODE")


def test_a_title_names_a_level_of_description_that_is_not_the_first():
    for tier, words in (("exact", "liao: ODE ·"), ("riccati_paper", "liao: ODE (riccati paper) ·")):
        run = odesim.integrate("liao", tier=tier, m=3, m_star=1, d=100, until=0.1, save_points=2)
        assert title(run.dataset(), derivations.system("liao")).startswith(words)


def test_liao_shows_the_predicted_anti_alignment_the_named_level_and_the_scaled_clock(liao):
    figure = plot.figures(liao)["trajectories"]
    (at,) = [line.get_xdata()[0] for line in theory(panel(figure, "min_I2"))]
    rate = liao["norm_w"] ** -2.0
    z = (liao["I2"][0] * (rate[:, None] + rate) / 2)[np.triu_indices(6, 1)]
    assert at == pytest.approx(1 / (9 * -z.min()))
    assert at == pytest.approx(liao.summary["first_anti_alignment_time"], rel=0.1)
    words = legend(figure)
    assert words[-3:] == ["0.9: found", r"$\sqrt{d}/(4.5\,u)$: found, as $d\to\infty$",
                          r"$\sqrt{d}/(9\,\max|z_-|)$: anti-aligned, as $d\to\infty$"]  # fmt: skip
    (above,) = panel(figure, "alignment").child_axes
    assert above.get_xlabel() == r"$t/\sqrt{d}$" and above._functions[0](40.0) == pytest.approx(0.4)


def test_kawata_predicts_the_first_neuron_and_names_its_threshold():
    run = odesim.integrate("kawata", preset="vanilla", d=10**6, neurons=40, until=6e7, save_points=31)
    figure = plot.figures(run)["overlaps"]
    moments = [float(line.get_xdata()[0]) for line in theory(panel(figure, "kappa")) if line.get_label() != "_child"]
    first = [t for t in moments if t > 0]
    shown = dict(zip(legend(figure), figure.legends[0].legend_handles, strict=True))
    shades = {line.get_color() for line in theory(panel(figure, "kappa")) if len(set(line.get_xdata())) == 1}
    assert shades == {"#0072B2", "#D55E00"}  # each in the colour of its cluster, the legend in none
    assert shown["predicted: the first"].get_color() == "0.55"
    assert min(first) == pytest.approx(run["T_kappa"].min(), rel=0.05)
    assert any(0.5 in line.get_ydata() for line in theory(panel(figure, "kappa")))


def test_pruning_and_chen_have_their_levels():
    from derivations.chen.parameters import Parameters
    from derivations.chen.theory import ceiling

    sizes = {"d": 24, "n": 12, "k": 4, "l": 3, "m": 6, "important": 1, "missigned": 0, "weak": 1}
    run = odesim.integrate("pruning", until=40, save_points=5, **sizes)
    figure = plot.figures(run)["trajectories"]
    assert theory(panel(figure, "Delta+1"))[0].get_ydata()[0] == pytest.approx(1.5 * np.log(3))
    assert ceiling(Parameters()) == 0.875
    assert ceiling(Parameters(gamma=(0.5, 3.0))) == pytest.approx(0.925)
    assert ceiling(Parameters(laws="points", alpha=(1.0,), gamma=(2.0,))) == 1.0
    assert ceiling(Parameters(laws="points", alpha=(1.0,), gamma=(1.0,))) == 0.875


def test_a_reference_is_one_thing():
    with pytest.raises(ValueError, match="needs one of"):
        Reference("loss", "twice", level=1.0, at=2.0)
    with pytest.raises(ValueError, match="needs one of"):
        Reference("loss", "nothing")


def test_eight_have_eight_colours_and_more_are_told_apart_by_marks():
    assert len({colour(k) for k in range(8)}) == COLOURED == 8 and PALETTE[-1] not in {colour(k) for k in range(8)}
    assert len({(colour(k), mark(k)) for k in range(56)}) == 56 and len(MARKS) == 7
    starts = {marked(k, 80, 3)["markevery"][0] for k in range(3)}
    assert len(starts) == 3


def test_a_curve_of_theory_is_drawn_and_a_moment_before_a_logarithmic_axis_begins_moves_its_beginning():
    from matplotlib.figure import Figure

    from odesim.show import beside

    figure = Figure()
    axis = figure.subplots()
    axis.set_label("a")
    axis.plot([10, 100], [0, 1], label="run")
    axis.set_xscale("log")
    axis.set_xlim(10, 100)
    wanted = [
        Reference("a", "law", x=[10, 100], y=[0, 2]),
        Reference("a", "early", at=3.0),
        Reference("a", "late", at=1e3),
    ]
    beside.add({"f": figure}, [*wanted, Reference("b", "elsewhere", level=1.0)])
    assert axis.get_xlim()[0] == pytest.approx(2.0) and axis.get_xlim()[1] == pytest.approx(100)
    assert axis.get_legend_handles_labels()[1] == ["run", "law", "early"]


def test_one_legend_lies_below_the_panels_and_names_everything_once():
    from matplotlib.figure import Figure

    from odesim.show.legend import gather

    figure = Figure(figsize=(5, 3), layout="constrained")
    for axis, names in zip(
        figure.subplots(1, 2), (("other", "expert 10", "expert 9"), ("expert 9", "ODE")), strict=True
    ):
        for name in names:
            axis.plot([0, 1], [0, 1], label=name.replace("other", "other experts"))
        axis.axhline(0.5, gid="theory", label="level")
        axis.legend()
    gather(figure)
    assert legend(figure) == ["expert 9", "expert 10", "ODE", "other experts", "level"]
    figure.draw_without_rendering()
    below = figure.legends[0].get_window_extent()
    assert all(axis.get_window_extent().y0 >= below.y1 for axis in figure.axes)
    assert 0 <= below.x0 and below.x1 <= figure.bbox.x1

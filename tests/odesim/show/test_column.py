"""Every standard picture can be read at the width of one column: text of six points, nothing overlaps."""

import matplotlib
import pytest
from matplotlib.figure import Figure

import odesim
from derivations.drawing import COLUMN
from odesim.show import plot
from odesim.show.notebook import plot as plot_one
from tests.odesim.show.readable import faults

matplotlib.use("Agg")

COMMITTEE = odesim.declare(
    student={"units": 2, "unit": "erf(w/sqrt(2))"},
    teacher={"units": 2},
    training={"limit": "online", "step": 0.5},
    start={"norm": 0.5, "overlap": 0.2},
)
RUNS = {
    "liao": ("liao", {"until": 90}),
    "liao of many": ("liao", {"m": 30, "m_star": 25, "d": 10**4, "until": 20}),
    "liao cascade": ("liao", {"tier": "cascade", "until": 50}),
    "kawata": ("kawata", {}),
    "kawata R3": ("kawata", {"tier": "R3", "d": 10**4, "neurons": 5, "until": 1e4}),
    "chen": ("chen", {"preset": "quick", "until": 0.5, "save_points": 41}),
    "chen of six features": ("chen", {"tier": "explore", "until": 0.05, "K": 6}),
    "pmoe": ("pmoe", {}),
    "pmoe of four experts": ("pmoe", {"preset": "tiny-separate"}),
    "pruning": ("pruning", {}),
    "pruning homogeneous": ("pruning", {"tier": "homogeneous", "until": 2000}),
    "committee": (COMMITTEE, {"until": 200}),
    "ren_2025": ("ren_2025", {}),
}
SGD = {"method": "compressed", "seeds": 3, "step_size": 1e-2, "batch": 64}


def check(figures):
    assert figures
    for name, figure in figures.items():
        assert figure.get_figwidth() == COLUMN
        assert faults(figure) == [], name


@pytest.mark.parametrize("name", RUNS)
def test_a_run_can_be_read_in_a_column(name):
    system, options = RUNS[name]
    check(plot.figures(odesim.integrate(system, **options)))


def test_replicas_of_sgd_can_be_read_in_a_column():
    check(plot.figures(odesim.simulate("liao", d=1000, until=5, save_points=21, **SGD)))


@pytest.mark.parametrize(
    ("system", "options"), [(COMMITTEE, {"d": 200, "until": 30}), ("liao", {"d": 500, "until": 30})]
)
def test_a_comparison_can_be_read_in_a_column(system, options):
    given = SGD if system == "liao" else {"seeds": 8, "method": "compressed"}
    check(plot.figures(odesim.compare(system, **given, **options).trajectory()))


def test_stages_can_be_read_in_a_column():
    for run in odesim.integrate("liao", d=1000, m=12, m_star=5, stage="all", until={"train": 60}):
        check(plot.figures(run))


def test_one_variable_in_a_figure_of_its_own_can_be_read_in_a_column():
    run = odesim.integrate("liao", d=1000, until=40)
    check({name: plot_one(run, name, None).figure for name in ("gamma2", "loss")})


def test_faults_are_found():
    figure = Figure(figsize=(7, 2))
    axis = figure.add_axes((0.2, 0.3, 0.7, 0.1))
    axis.set_label("flat")
    axis.set_xlabel("small", fontsize=8)
    figure.text(0.5, 0.8, "one", fontsize=14)
    figure.text(0.5, 0.8, "other", fontsize=14)
    figure.text(0.9, 0.6, "a long text", fontsize=14)
    words = " ".join(faults(figure))
    for said in ("small: 'small'", "overlap: 'one' and 'other'", "outside: 'a long text'", "flat: 'flat'"):
        assert said in words


def test_the_time_of_a_data_set_has_a_short_label_and_the_clock_as_its_meaning():
    run = odesim.integrate("liao", m=2, m_star=1, d=100, until=1, save_points=3)
    time = run.dataset()["time"]
    assert time.attrs["long_name"] == "time t" and time.attrs["meaning"] == run.clock


def test_ticks_of_many_steps_are_short_numbers_with_a_power_of_ten():
    with plot.style():
        figure = Figure(figsize=(COLUMN / 2, 1.4), layout="constrained")
        figure.subplots().plot([180_000, 235_000], [0.0, 1.0])
    figure.draw_without_rendering()
    words = [text.get_text() for text in figure.axes[0].get_xticklabels()]
    assert "1.75" in words[0] and "10^" in figure.axes[0].xaxis.get_offset_text().get_text()

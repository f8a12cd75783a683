"""The band of the flow in a comparison: its ends, its coverage by SGD, its place in the picture, and refusals."""

import matplotlib
import numpy as np
import pytest

import odesim
from odesim.errors import UsageError
from odesim.show import compared
from odesim.study import flow_band

matplotlib.use("Agg")
ERF = {"unit": "erf(w/sqrt(2))", "units": 2}
START = {"norm": 0.5, "overlap": 0.5}
RUN = {"d": 300, "until": 12, "save_points": 61}


def committee(**training):
    training = {"limit": "online", "step": 0.5, **training}
    return odesim.declare(student=ERF, teacher={"units": 2, "noise": 0.3}, training=training, start=START)


@pytest.fixture(scope="module")
def beside():
    return odesim.compare(committee(), **RUN, seeds=200)


def test_ninety_percent_of_sgd_is_inside_the_band(beside):
    summary = beside.summary()
    # Set before: four standard errors over the replicas, and what 3 % of the width make of a coverage (.009).
    room = 4 * summary["inside_90_standard_error"] + 0.009
    assert abs(summary["inside_90"] - 0.9) < room < 0.07
    assert summary["inside_90_expected"] == 0.9
    assert summary["band"] == "90% band of the error at d = 300, step 0.001667, batch 1"
    assert f"{summary['inside_90']:.3f}" in repr(beside)


def test_a_band_of_another_dimension_does_not_hold_these_replicas(beside):
    # The control: sizes four times as large halve the band, which then holds .589 = P(|z| < .822) of the replicas.
    wrong = odesim.bands(committee(), **{**RUN, "d": 1200})
    error = beside.second["error"][:, 1:]
    inside = (error >= wrong["error_low"][1:]) & (error <= wrong["error_high"][1:])
    assert inside.mean() < 0.72


def test_the_share_is_that_of_its_ends_and_they_are_those_of_bands(beside):
    answer = odesim.bands(committee(), **RUN)
    data = beside.trajectory().dataset()
    width = answer["error_high"] - answer["error_low"]
    for end in ("low", "high"):
        assert np.abs(data[f"error_{end}"].values - answer[f"error_{end}"])[1:].max() < 0.03 * width.max()
        shown = answer[f"M_ww_{end}"]
        own = np.stack([shown[:, k, int(column)] for k, column in enumerate(data["shown_colour"].values)])
        assert np.allclose(data[f"shown_{end}"].values, own, atol=0.03 * np.ptp(own))
    error = beside.second["error"][:, 1:]
    inside = (error >= data["error_low"].values[1:]) & (error <= data["error_high"].values[1:])
    assert inside.mean() == pytest.approx(beside.summary()["inside_90"], abs=1e-12)


def test_sparse_times_are_joined_by_lines():
    times, chosen = np.linspace(0, 4, 5), np.array([0, 2, 4])
    assert np.allclose(flow_band._along(times, chosen, np.array([0.0, 2.0, 0.0])), [0, 1, 2, 1, 0])
    cut = flow_band._along(times, chosen, np.array([0.0, 2.0]))
    assert np.allclose(cut[:3], [0, 1, 2]) and np.isnan(cut[3:]).all()


def test_more_times_than_the_band_has_change_nothing_but_the_pairs(beside):
    finer = odesim.compare(committee(), d=300, until=12, save_points=241, seeds=3).trajectory().dataset()
    coarse = beside.trajectory().dataset()
    at = np.searchsorted(finer["time"].values, coarse["time"].values - 1e-9)
    width = np.ptp(coarse["error_high"].values - coarse["error_low"].values)
    assert np.abs(finer["error_high"].values[at] - coarse["error_high"].values)[2:].max() < 0.03 * width


def test_the_picture_draws_the_band_behind_the_replicas(beside, tmp_path):
    stored = odesim.load(beside.trajectory().save(tmp_path / "run", pictures=False)).dataset()
    figure = compared.draw(stored)
    assert "90 % band of SGD, theory" in [text.get_text() for text in figure.legends[0].get_texts()]
    panel, loss = figure.axes[0], figure.axes[1]
    ends = [line for line in panel.lines if line.get_linestyle() == "--"]
    assert len(ends) == 2 * stored.sizes["shown"]
    assert np.array_equal(ends[0].get_ydata(), stored["shown_low"].values[0])
    assert any(np.array_equal(line.get_ydata(), stored["loss_high"].values) for line in loss.lines)
    old = stored.drop_vars([str(name) for name in stored if str(name).endswith(("_low", "_high"))])
    assert [axis.get_label() for axis in compared.draw(old).axes] == [axis.get_label() for axis in figure.axes]


def test_a_large_step_moves_the_band_off_the_gradient_flow():
    model = odesim.declare(student=ERF, teacher={"units": 2}, training={"step": 0.005}, start=START)
    both = odesim.compare(model, d=200, until=20, save_points=41, seeds=12)
    data, flow = both.trajectory().dataset(), both.first["error"]
    assert data["error_low"].values[-1] > flow[-1]
    assert both.summary()["inside_90"] > 0.7


def test_behind_a_saddle_the_band_ends_unless_the_mixture_is_asked_for():
    model = odesim.declare(
        student=ERF, teacher={"units": 2, "noise": 0.1}, training={"limit": "online", "step": 1.0}, start={"norm": 0.5}
    )
    start = {"Q_ww": 0.25 * np.eye(2), "M_ww": np.zeros((2, 2))}
    asked = {"d": 300, "until": 60, "save_points": 31, "seeds": 20, "initial": start}
    short = odesim.compare(model, **asked)
    assert "later the distribution is a mixture of flows, which --band adds" in short.summary()["band"]
    assert np.isnan(short.trajectory().dataset()["error_low"].values[-1])
    whole = odesim.compare(model, **asked, band=True)
    ends = whole.trajectory().dataset()
    assert np.isfinite(ends["error_low"].values).all() and "later" not in whole.summary()["band"]
    assert abs(whole.summary()["inside_90"] - 0.9) < 0.15  # 20 replicas: .067 a standard error at one time


@pytest.mark.parametrize(
    ("changes", "run", "reason"),
    [
        ({}, {"band": False}, "no band: --no-band was given"),
        ({"training": {"step": 0.01, "momentum": 0.5}}, {}, "there are no bands for SGD with momentum"),
        ({"student": {"unit": "tanh(w)"}, "teacher": {}}, {}, "no band: tier sampled is not compiled"),
        (
            {"student": {"unit": "tanh(w)", "units": 2}, "teacher": {"units": 2}},
            {},
            "no band: tier sampled is not exact",
        ),
        ({"student": {**ERF, "units": 4}, "teacher": {"units": 4}}, {}, "no band: the state has 26 entries"),
        ({}, {"batch": 3}, "no band: the equations of this model are those of the batch 1"),
    ],
    ids=["left out", "momentum", "grid", "sampled", "large", "batch"],
)
def test_a_comparison_without_a_band_says_why(changes, run, reason):
    tables = {
        "student": ERF, "teacher": {"units": 2}, "training": {"limit": "online", "step": 0.5}, "start": START
    } | changes  # fmt: skip
    both = odesim.compare(odesim.declare(**tables), d=100, until=0.5, save_points=3, seeds=2, **run)
    summary = both.summary()
    assert summary["band"].startswith(reason) and "inside_90" not in summary
    assert not [name for name in both.trajectory().dataset() if str(name).startswith("shown_low")]


def test_a_system_of_a_paper_has_no_band_by_itself():
    both = odesim.compare("liao", m=2, m_star=1, d=100, step_size=1e-3, batch=64, until=0.1, seeds=2, save_points=3)
    assert both.summary()["band"] == "no band: by default only declared models have one; --band tries to compute it"


def test_two_runs_and_a_sweep_take_no_band(beside):
    with pytest.raises(UsageError, match="band is an option for a single comparison"):
        odesim.compare(beside.first, beside.second, band=True)
    with pytest.raises(UsageError, match="band is an option for a single comparison"):
        odesim.compare(committee(), over={"d": [100, 200]}, until=1, band=False)
    stored = odesim.compare(beside.first, beside.second)
    assert stored.summary()["band"].startswith("no band: compare computes one only for SGD that it simulates itself")
    assert "band" not in odesim.compare(beside.second, beside.second).summary()

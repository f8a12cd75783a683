"""Bands and hitting times: closed laws of escapes, coverage by compressed SGD, warnings, refusals and folders."""

import numpy as np
import pytest
from scipy.stats import norm

import odesim
from odesim.study.bands import mixture_quantiles
from odesim.study.escape import LEVELS

ERF = "erf(w/sqrt(2))"


def retrieval(eta):
    return odesim.declare(
        student={"unit": "He(2, w)"}, teacher={"noise": 0.3},
        training={"limit": "online", "step": eta, "weights": "sphere"},
    )  # fmt: skip


def committee(step=1.0, noise=0.1, **tables):
    training = {"limit": "online", "step": step, **tables.pop("training", {})}
    teacher = {"units": 2, "noise": noise}
    start = {"norm": 0.5, **tables.pop("start", {})}
    return odesim.declare(
        student={"unit": ERF, "units": 2}, teacher=teacher, training=training, start=start, **tables
    )  # fmt: skip


@pytest.mark.parametrize("eta", [0.05, 1 / 12.09])
def test_phase_retrieval_escapes_by_its_closed_law(eta):
    d, level = 10**6, 0.5
    answer = odesim.bands(
        retrieval(eta), d=d, until=400, fresh_initial=True, of="first time abs(M_ww) >= 0.5", save_points=41
    )
    [hitting] = answer.summary()["hitting"]
    x = eta * (12 + 0.3**2)
    rate, variance = 2 * eta * (2 - x), 2 / (2 - x)
    bend = 4 * eta * (1 - 6 * eta) / rate
    reach = level / np.sqrt(1 - bend * level**2)
    closed = [(np.log(d) / 2 + np.log(reach) - np.log(np.sqrt(variance) * norm.ppf(1 - p / 2))) / rate for p in LEVELS]
    assert np.allclose(hitting["quantiles"], closed, rtol=1e-3)
    assert hitting["rate"] == pytest.approx(rate, rel=1e-6) and hitting["directions"] == 1


def test_a_committee_escapes_as_chains_did():
    # Quantiles of 400 runs of another program at d = 300, and their errors.
    seen, error = np.array([51.4, 61.8, 70.8, 83.9, 111.2]), np.array([1.0, 0.7, 0.6, 1.4, 3.7])
    answer = odesim.bands(committee(), d=300, until=150, fresh_initial=True, of="first time error <= 0.0252")
    [hitting] = answer.summary()["hitting"]
    assert np.abs((np.array(hitting["quantiles"]) - seen) / error).max() < 3
    assert answer.summary()["flows"] > 20 and 10 < answer.summary()["linear_until"] < 40


def test_a_crossing_fluctuates_as_the_quantity_does():
    training = {"limit": "online", "step": 0.5}
    model = odesim.declare(student={"unit": "w"}, teacher={"noise": 0.5}, training=training)
    d, start = 2000, {"Q_ww": [[1.0]], "M_ww": [[0.0]]}
    answer = odesim.bands(model, d=d, until=4, initial=start, of="first time error <= 0.5")
    quantiles = np.array(answer.summary()["hitting"][0]["quantiles"])
    runs = odesim.simulate(model, method="compressed", d=d, until=4, initial=start, seeds=300, save_points=801)
    below = np.asarray(runs["error"]) <= 0.5
    times = runs.time[below.argmax(axis=1)]
    # Order statistics: the share of runs before each quantile is binomial.
    for p, quantile in zip(LEVELS, quantiles, strict=True):
        share = (times <= quantile + 0.005).mean()
        assert abs(share - p) < 4.5 * np.sqrt(p * (1 - p) / 300) + 0.03


def share_inside(model, times, seeds, **given):
    answer = odesim.bands(model, save_at=times, **given)
    runs = odesim.simulate(model, method="compressed", save_at=times, seeds=seeds, **given)
    error = np.asarray(runs["error"])
    shown = np.searchsorted(answer["time"], runs.time - 1e-9)  # times of SGD are numbers of steps times the step size
    np.testing.assert_allclose(answer["time"][shown], runs.time, rtol=1e-12)
    inside = (error >= answer["error_low"][shown]) & (error <= answer["error_high"][shown])
    half = np.abs(error - answer["error_centre"][shown]) <= norm.ppf(0.95) * answer["error_sd"][shown] / np.sqrt(2)
    return inside.mean(), half.mean()


def test_runs_lie_inside_their_band():
    start = {"Q_ww": 0.25 * np.eye(2), "M_ww": np.array([[0.12, 0.02], [-0.03, 0.10]])}
    inside, half = share_inside(committee(0.5, 0.3), [2.0, 6.0, 10.0], 200, d=200, initial=start)
    assert abs(inside - 0.9) < 0.04
    assert half < 0.84  # a band of half the variance, which covers .755, is told apart


@pytest.mark.slow
@pytest.mark.parametrize("d", [200, 800, 3200])
def test_coverage_at_every_dimension(d):
    start = {"Q_ww": 0.25 * np.eye(2), "M_ww": np.array([[0.12, 0.02], [-0.03, 0.10]])}
    inside, half = share_inside(committee(0.5, 0.3), list(np.arange(2.0, 41.0, 2.0)), 400, d=d, initial=start)
    assert abs(inside - 0.9) < 0.03 and half < 0.84


@pytest.mark.slow
@pytest.mark.parametrize(
    "tables", [{"inputs": {"blocks": [[1.6, 0.5], [0.4, 0.5]]}}, {"training": {"step": [[0, 1.0], [5, 0.2]]}}]
)
def test_coverage_with_blocks_of_inputs_and_with_schedules(tables):
    model = committee(0.5, 0.1, start={"overlap": 0.1}, **tables)
    inside, _ = share_inside(model, [1.0, 2.0, 4.0, 6.0, 8.0, 10.0], 200, d=400, seed=2)
    assert abs(inside - 0.9) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("d", [300, 1000])
def test_coverage_through_a_plateau(d):
    inside, _ = share_inside(committee(), list(np.arange(4.0, 133.0, 4.0)), 400, d=d, seed=1, fresh_initial=True)
    assert abs(inside - 0.9) < 0.04


def test_steps_of_a_flow_are_kept():
    # SGD of step 1e-3 in d = 1,000 is far from the flow: the floor of its error is three times the plateau's.
    answer = odesim.bands("saad_solla_1995", d=1000, step_size=1e-3, until=4, save_points=5)
    runs = odesim.simulate(
        "saad_solla_1995", method="compressed", d=1000, step_size=1e-3, until=4, save_points=5, seeds=60
    )
    error = np.asarray(runs["error"])[:, -1]
    z = (error.mean() - answer["error_centre"][-1]) / (error.std() / np.sqrt(60))
    flow = odesim.integrate("saad_solla_1995", d=1000, until=4, save_points=5)["error"]
    assert abs(z) < 4.5 and np.allclose(answer["error"], flow, rtol=1e-5)
    assert answer["error_centre"][-1] > 3 * flow[-1]


def cubic(**changed):
    training = {"limit": "online", "step": 0.01, "weights": "sphere", "loss": "correlation"}
    return odesim.declare(student={"unit": "He(3, w)"}, training=training, start={"overlap": 0.3}, **changed)


def test_rare_samples_are_told_and_nothing_is_drawn():
    answer = odesim.bands(cubic(), d=2000, until=2, save_points=5, of="first time M_ww >= 0.4")
    assert answer.sentences[0].startswith("no band at d = 2000: a few rare samples dominate")
    assert not any(name.endswith(("_low", "_high")) for name in answer.keys())
    assert answer.summary()["gaussian"] is False and answer.summary()["hitting"] == []
    assert not answer.plot().axes[0].collections
    large = odesim.bands(cubic(), d=10**8, until=2, save_points=5)
    assert large.summary()["gaussian"] is True


def test_quantiles_of_a_mixture_are_those_of_draws():
    rng = np.random.default_rng(0)
    means, deviations = np.array([0.0, 3.0, 10.0]), np.array([1.0, 0.2, 2.0])
    which = rng.integers(0, 3, 400_000)
    low, high = mixture_quantiles(means, deviations, 0.9)
    draws = rng.normal(means[which], deviations[which])
    for quantile, p in ((low, 0.05), (high, 0.95)):
        assert abs((draws <= quantile).mean() - p) < 4.5 * np.sqrt(p * (1 - p) / 400_000)


@pytest.mark.parametrize(
    ("system", "given", "sentence"),
    [
        ("momentum_committee", {}, "momentum"),
        ("patel_2023", {}, "episodes"),
        ("chen", {"step_size": 0.01, "batch": 4}, "finite set"),
        (committee(training={"batch": [[0, 1], [5, 8]]}), {"until": 10}, "time-dependent batch"),
        (committee(), {"level": 1.5}, "between 0 and 1"),
        (committee(), {"of": "when M_ww is large"}, "cannot be read"),
        (committee(), {"of": "final N_ww"}, "no quantity 'N_ww'"),
        (committee(), {"of": "final M_ww[3,1]"}, "no entry [3,1]"),
        (committee(), {"batch": 8}, "-p batch=8"),
        ("dandi_2024", {}, "smooth flow"),
    ],
)
def test_what_has_no_band_is_refused(system, given, sentence):
    with pytest.raises(odesim.UsageError) as caught:
        odesim.bands(system, **{"until": 1, "save_points": 3, **given})
    said = str(caught.value)
    assert sentence.replace("-p ", "") in said.replace("-p ", "") and "\n" not in said


def test_a_folder_gives_the_answer_back(tmp_path):
    answer = odesim.bands(committee(), d=300, until=4, save_points=5, of="first time error <= 0.1", fresh_initial=True)
    answer.save(tmp_path / "kept")
    again = odesim.load(tmp_path / "kept")
    assert again.summary() == answer.summary() and again.sentences == answer.sentences
    for name in again.keys():
        numbers = again[name].dtype.kind == "f"
        assert np.array_equal(again[name], answer[name], equal_nan=numbers)
    assert (tmp_path / "kept" / "tables" / "hitting.csv").is_file() and (tmp_path / "kept" / "bands.png").is_file()
    assert "<table>" in again._repr_html_() and again.tables() == answer.tables()
    data = again.dataset()
    assert data["M_ww_low"].dims == ("time", "unit", "teacher") and data["covariance"].dims == (
        "time",
        "entry",
        "entry_",
    )
    page = odesim.report(tmp_path / "kept", tmp_path / "page.html")
    assert answer.sentences[0] in page.read_text(encoding="utf-8")

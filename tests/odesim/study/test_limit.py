"""`odesim compare --over`: the distance of SGD from its flow against a size, and its exponent."""

import json

import numpy as np
import pytest
import xarray
from scipy import stats

import odesim
from derivations.contract import UsageError
from odesim.ask import sweep as ask
from odesim.show import limit as picture
from odesim.study import limit

SIZES = np.array([100.0, 400.0, 1600.0, 6400.0])
COMMITTEE = {"student": {"units": 2, "unit": "erf(w/sqrt(2))"}, "teacher": {"units": 2},
             "training": {"limit": "online", "step": 0.5}, "start": {"norm": 0.5, "overlap": 0.2}}  # fmt: skip


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Comparisons of a committee at four dimensions, six replicas each."""
    wanted = ask.compared(odesim.declare(**COMMITTEE), {"d": [100, 400, 1600, 6400]}, {}, until=10.0, seeds=6)
    return ask.run(wanted, tmp_path_factory.mktemp("limit"))


def test_the_interval_holds_the_exponent_as_often_as_it_says():
    rng, held, sets, runs = np.random.default_rng(0), 0, 400, 6
    for _ in range(sets):
        start = rng.normal(0, 0.1, (4, 1))  # every size has a start of its own
        distance = 3 * SIZES[:, None] ** -0.5 * np.exp(start + rng.normal(0, 0.3, (4, runs)))
        fitted = limit.exponent(SIZES, distance, SIZES**-0.5)
        held += fitted.low < -0.5 < fitted.high
    assert held / sets > 0.95 - 3 * np.sqrt(0.95 * 0.05 / sets)


def test_another_exponent_is_told_from_that_of_noise():
    rng = np.random.default_rng(1)
    distance = SIZES[:, None] ** -0.25 * np.exp(rng.normal(0, 0.1, (4, 8)))
    fitted = limit.exponent(SIZES, distance, SIZES**-0.5)
    assert fitted.noise < fitted.low < -0.25 < fitted.high
    slope = stats.linregress(np.log(SIZES), np.log(distance).mean(axis=1)).slope
    assert fitted.estimate == pytest.approx(slope, rel=1e-12)


@pytest.mark.parametrize(
    ("sizes", "distance", "words"),
    [
        ([100.0, 400.0], np.ones((2, 3)), "needs 3 sizes, got 2"),
        ([100.0, 400.0, 1600.0], np.zeros((3, 3)), "above zero"),
        ([100.0, 400.0, 1600.0], np.full((3, 3), np.nan), "not finite"),
    ],
)
def test_no_exponent_is_made_of_what_has_none(sizes, distance, words):
    with pytest.raises(UsageError, match=words):
        limit.exponent(np.array(sizes), distance, np.ones(len(sizes)))


def test_every_cell_is_the_comparison_at_its_size(found):
    alone = odesim.compare(odesim.declare(**COMMITTEE), d=400, until=10.0, seeds=6, seed=0)
    np.testing.assert_array_equal(found[limit.DISTANCE].sel(d=400).values, alone.overall)
    np.testing.assert_array_equal(found["distance_M_ww"].sel(d=400).values, alone.distance["M_ww"].max(axis=1))
    np.testing.assert_allclose(found[limit.NOISE].values, found["d"].values ** -0.5, rtol=1e-12)


def test_noise_falls_like_the_root_of_the_batch():
    declared = odesim.declare(**COMMITTEE)
    data = odesim.compare(declared, over={"batch": [1, 4, 16]}, d=100, until=1.0, seeds=3)
    np.testing.assert_allclose(data[limit.NOISE].values, [0.1, 0.05, 0.025], rtol=1e-12)


def test_the_flow_is_the_limit_of_online_sgd(found):
    estimate, low, high = found.attrs[limit.EXPONENT]
    assert low < -0.5 < high
    assert high < -0.2
    assert f"d^{estimate:.3f}" in limit.sentence(found)
    assert "the interval contains -0.5" in limit.sentence(found)


def test_the_python_call_gives_the_same_data_set(found):
    data = odesim.compare(odesim.declare(**COMMITTEE), over={"d": [100, 400, 1600, 6400]}, until=10.0, seeds=6)
    xarray.testing.assert_identical(data, found)
    with pytest.raises(UsageError, match="two runs, or a system"):
        odesim.compare(*[odesim.integrate("ren_2025", until=0.1)] * 2, over={"d": [1, 2]})


def test_a_stored_data_set_keeps_its_exponent(found, tmp_path):
    path = tmp_path / "data.nc"
    found.drop_attrs(deep=False).assign_attrs({k: v for k, v in found.attrs.items() if k != "declaration"}).to_netcdf(
        path
    )
    assert limit.record(xarray.load_dataset(path)) == limit.record(found)


def test_the_picture_shows_every_replica_and_both_slopes(found):
    (axes,) = picture.draw(found).axes
    points, fitted, noise = axes.get_lines()
    assert len(points.get_xdata()) == 24
    assert axes.get_xscale() == axes.get_yscale() == "log"
    for line, slope in ((fitted, found.attrs[limit.EXPONENT][0]), (noise, -0.5)):
        assert np.diff(np.log(line.get_ydata())) / np.diff(np.log(line.get_xdata())) == pytest.approx(slope, rel=1e-9)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--over", "d=100,200", "--over", "batch=1,4"), "one --over"),
        (("--over", "d=100,200", "--method", "flow"), "--method must be one of"),
        (("--over", "unit=a,b"), "has no parameter 'unit'"),
    ],
)
def test_a_request_that_cannot_be_met_is_a_sentence(words, sentence, monkeypatch, tmp_path, capsys):
    from odesim.cli import main

    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as caught:
        main(["compare", "--system", "saad_solla_1995_step", *words])
    assert caught.value.code == 2
    assert sentence in capsys.readouterr().err


def test_the_command_prints_the_exponent_and_goes_on_after_an_interruption(monkeypatch, tmp_path, capsys):
    from odesim.cli import main

    monkeypatch.chdir(tmp_path)
    words = ["compare", "--system", "saad_solla_1995_step", "--over", "d=50,100,200", "--until", "2", "--seeds", "3"]
    for extra in ([], ["--resume"]):
        with pytest.raises(SystemExit) as caught:
            main([*words, "--out", "found", "--json", "--quiet", *extra])
        assert not caught.value.code
        told = json.loads(capsys.readouterr().out)
        assert told["exponent"]["interval"][0] < told["exponent"]["estimate"] < told["exponent"]["interval"][1]
        assert [cell["d"] for cell in told["results"]] == [50, 100, 200]

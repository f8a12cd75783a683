"""Listed times: a run is saved there and nowhere else, and is the run that saves more often."""

import numpy as np
import pandas
import pytest
import sympy
import xarray

import odesim
from odesim.cli import _run as command

LIAO = {"m": 4, "m_star": 2, "d": 100}
TIMES = [0.5, 3.0, 20.0]
SGD = {**LIAO, "method": "compressed", "step_size": 0.02, "batch": 4, "seeds": 2}


@pytest.mark.parametrize(
    "times",
    [TIMES, tuple(TIMES), np.array(TIMES), xarray.DataArray(TIMES), pandas.Series(TIMES), "0.5, 3, 2e1"],
    ids=["list", "tuple", "numpy", "xarray", "pandas", "word"],
)
def test_states_are_saved_at_the_listed_times_alone(times):
    run = odesim.integrate("liao", **LIAO, save_at=times)
    fine = odesim.integrate("liao", **LIAO, until=20.0, save_points=41)
    assert run.time.tolist() == TIMES and run.outcome.time == 20.0
    np.testing.assert_array_equal(run["gamma2"], fine["gamma2"][[1, 6, 40]])  # the same steps, read at other times
    assert run.summary == fine.summary


def test_the_start_is_saved_where_it_is_listed():
    run = odesim.integrate("liao", **LIAO, save_at=[0, 1])
    np.testing.assert_array_equal(run["I2"][0], odesim.integrate("liao", **LIAO, until=1.0)["I2"][0])


def test_sgd_is_saved_at_the_nearest_steps():
    run = odesim.simulate("liao", **SGD, save_at=[0.1, 1.0, 2.0])
    whole = odesim.simulate("liao", **SGD, until=2.0, save_points=101)  # every step
    assert run.step.tolist() == [5, 50, 100] and run.time == pytest.approx([0.1, 1.0, 2.0])
    np.testing.assert_array_equal(run["gamma2"], whole["gamma2"][:, [5, 50, 100]])
    both = odesim.compare("liao", **{k: v for k, v in SGD.items() if k != "method"}, save_at=[0.1, 1.0, 2.0])
    assert both.times == pytest.approx([0.1, 1.0, 2.0])


def test_a_later_stage_is_saved_at_times_of_the_common_clock():
    first = odesim.integrate("liao", **LIAO, until=2.0)
    later = first.continue_(save_at=[2.5, 4.0])
    np.testing.assert_allclose(later["I2"][1], first.continue_(until=4.0)["I2"][-1], rtol=0, atol=1e-12)
    with pytest.raises(odesim.UsageError, match="begins at 1, but the continued run begins at 2"):
        first.continue_(save_at=[1.0, 4.0])


def test_a_map_is_saved_at_whole_steps():
    run = odesim.integrate("liao", **LIAO, save_at=[0.25, 1.0], solver="euler", step=0.05)
    assert run.time.tolist() == [0.25, 1.0]
    with pytest.raises(odesim.UsageError, match="must be whole numbers of steps"):
        odesim.integrate("liao", **LIAO, save_at=[0.26, 1.0], solver="euler", step=0.05)
    with pytest.raises(odesim.UsageError, match="must be whole numbers of steps"):
        odesim.integrate("pruning", save_at=[0.5, 1.0])


def test_sweeps_keep_the_curve_at_the_listed_times():
    data = odesim.sweep("liao", {"seed": [0, 1]}, **LIAO, save_at=[1.0, 2.0])
    alone = odesim.integrate("liao", **LIAO, seed=1, save_at=[1.0, 2.0])
    np.testing.assert_array_equal(np.moveaxis(data["curve_gamma2"].sel(seed=1).values, -1, 0), alone["gamma2"])


def test_the_command_takes_them_and_a_stored_run_is_the_same(tmp_path):
    words = ["-p", "m=4", "-p", "m_star=2", "-p", "d=100", "--save-at", "0.5,3,20", "--no-figures", "--quiet"]
    assert command(["integrate", "--system", "liao", *words, "--out", str(tmp_path / "run")]) == 0
    stored = odesim.load(tmp_path / "run")
    assert stored.time.tolist() == TIMES and stored.manifest["request"]["save_at"] == TIMES
    np.testing.assert_array_equal(stored["gamma2"], odesim.integrate("liao", **LIAO, save_at=TIMES)["gamma2"])


def test_a_file_of_options_lists_them(tmp_path):
    (tmp_path / "mine.toml").write_text("save-at = [0.5, 3, 20]\n[parameters]\nm = 4\nm_star = 2\nd = 100\n")
    run = odesim.integrate("liao", config=tmp_path / "mine.toml")
    assert run.time.tolist() == TIMES
    with pytest.raises(odesim.UsageError, match="give only one of the two"):
        odesim.integrate("liao", config=tmp_path / "mine.toml", save_points=7)


def test_requests_without_listed_times_keep_their_names():
    from odesim.request.case import Case

    assert "save_at" not in Case.build("liao", LIAO).request()


WRONG = [
    ({"save_at": [2, 1]}, "needs increasing times of at least 0"),
    ({"save_at": [-1, 1]}, "needs increasing times of at least 0"),
    ({"save_at": []}, "needs increasing times of at least 0"),
    ({"save_at": [0]}, "the last above 0"),
    ({"save_at": 3.0}, "save_at= is a list of times such as 1,10,100"),
    ({"save_at": [[1, 2]]}, "is a list of times"),
    ({"save_at": ["a"]}, "a time of save_at= must be a finite number"),
    ({"save_at": [1, np.inf]}, "must be a finite number"),
    ({"save_at": [1, 2], "until": 5.0}, "ends at the last time of save_at=, which is 2, but until= is 5"),
    ({"save_at": [1, 2], "save_points": 5}, "give only one of the two"),
    ({"save_at": [1, 2], "stage": "all"}, "gives the times of one stage"),
]


@pytest.mark.parametrize(("given", "words"), WRONG, ids=[words for _, words in WRONG])
def test_times_that_cannot_be_are_one_sentence(given, words):
    with pytest.raises(odesim.UsageError, match=words):
        odesim.integrate("liao", **LIAO, **given)


def test_a_small_flow_is_saved_at_listed_times():
    m = sympy.Symbol("m")
    flow = odesim.Flow({m: -m})
    data = flow.integrate({m: [1.0, 2.0]}, save_at=np.array([0.5, 3.0]))
    assert data["time"].values.tolist() == [0.5, 3.0]
    np.testing.assert_allclose(data["m"], np.outer([1.0, 2.0], np.exp([-0.5, -3.0])), rtol=1e-8)
    for given, words in (({"save_points": 3}, "give only one of the two"), ({"until": 1.0}, "ends at the last time")):
        with pytest.raises(odesim.UsageError, match=words):
            flow.integrate({m: 1.0}, save_at=[1.0, 2.0], **given)
    with pytest.raises(odesim.UsageError, match="until must be a finite number above 0"):
        flow.integrate({m: 1.0})

"""States between saved times: those of a run that saves them, to the tolerance and whatever else was saved."""

import numpy as np
import pytest
import sympy

import odesim

RTOL = 1e-8
TIGHT = 100 * RTOL
"""An escape multiplies the error of a run, of which the tolerance is 1e-8 (`test_accuracy`)."""
COARSE, FINE = 5, 41


@pytest.mark.parametrize(
    ("system", "request_"),
    [
        ("liao", {"m": 5, "m_star": 2, "d": 100, "until": 50.0}),
        ("kawata", {"C": 2, "k_star": 3, "d": 30, "neurons": 6, "until": 5.0}),  # independent blocks
        ("ren_2025", {"until": 14.0}),
        ("pruning", {"tier": "flow", "until": 200.0}),  # it jumps
        ("pruning", {"tier": "recursion", "until": 200.0}),
        ("pmoe", {"tier": "L1", "until": 20.0}),
        ("liao", {"m": 5, "m_star": 2, "d": 100, "until": 50.0, "solver": "euler", "step": 0.05}),
    ],
    ids=["smooth", "blocks", "declared", "jumps", "recursion", "patches", "euler"],
)
def test_states_between_are_those_of_a_run_that_saves_them(system, request_):
    coarse = odesim.integrate(system, **request_, save_points=COARSE)
    fine = odesim.integrate(system, **request_, save_points=FINE)
    between = coarse(fine.time)
    assert set(between) == {"time", *fine.state}
    for name, variable in fine.state.items():
        scale = float(np.nanmax(np.abs(np.asarray(variable, float)), initial=1e-300))
        # an entry that is small throughout is known to the absolute tolerance
        np.testing.assert_allclose(between[name], variable, rtol=0, atol=TIGHT * max(scale, 0.01), err_msg=name)


def test_accuracy_follows_the_tolerance_and_not_the_number_of_saved_states():
    """Cubic splines through so few states are off by far more."""
    from scipy.interpolate import CubicSpline

    request_ = {"m": 5, "m_star": 2, "d": 100, "until": 50.0}
    coarse = odesim.integrate("liao", **request_, save_points=9)
    exact = odesim.integrate("liao", **request_, rtol=1e-12, save_points=161)
    error = np.abs(coarse(exact.time)["gamma2"] - exact["gamma2"]).max()
    spline = np.abs(CubicSpline(coarse.time, coarse["gamma2"])(exact.time) - exact["gamma2"]).max()
    assert error < 1e-7 < 1e-3 < spline


def test_a_time_takes_its_axis_away_and_times_come_in_any_order():
    run = odesim.integrate("liao", m=4, m_star=2, d=100, until=2.0, save_points=3)
    assert run(0.3)["gamma2"].shape == (4, 2) and run(0.3)["time"] == 0.3
    some = run([1.7, 1.0, 0.3])
    np.testing.assert_array_equal(some["gamma2"][1], run["gamma2"][1])  # a saved one, as it is
    np.testing.assert_array_equal(some["gamma2"][2], run(0.3)["gamma2"])
    np.testing.assert_array_equal(run(run.time)["I2"], run["I2"])


def test_stored_runs_and_later_stages_have_states_between(tmp_path):
    runs = odesim.integrate("liao", stage="train,prune,tune", m=4, m_star=2, d=100, until={"train": 40.0, "tune": 60.0})
    last = runs[-1]
    known = odesim.integrate(after=runs[1], stage="tune", save_at=[47.03, 60.0])[0]
    np.testing.assert_allclose(last(47.03)["gamma2"], known["gamma2"][0], rtol=0, atol=1e-10)
    stored = odesim.load(last.save(tmp_path / "run", pictures=False))
    np.testing.assert_array_equal(stored(47.03)["gamma2"], last(47.03)["gamma2"])


def test_sgd_has_states_at_its_saved_times_alone():
    run = odesim.simulate(
        "liao", method="compressed", m=3, m_star=1, d=50, step_size=0.1, batch=4, seeds=2, save_at=[1.0, 2.0]
    )
    np.testing.assert_array_equal(run(1.0)["gamma2"], run["gamma2"][:, 0])
    np.testing.assert_array_equal(run([2.0, 1.0])["gamma2"], run["gamma2"][:, ::-1])
    with pytest.raises(odesim.UsageError, match=r"1\.5 is not one of them: list the times that you need in save_at="):
        run(1.5)


@pytest.mark.parametrize("time", [3.0, -1.0, float("nan"), "x", None, [[1.0]], []])
def test_other_times_are_one_sentence(time):
    run = odesim.integrate("liao", m=3, m_star=1, d=50, until=2.0, save_points=3)
    with pytest.raises(odesim.UsageError, match=r"outside of the run|takes a time or an array of times"):
        run(time)


def test_a_run_is_a_mapping_with_parameters(tmp_path):
    run = odesim.integrate("liao", m=np.array(3), m_star=1, d=50, until=2.0, save_points=3)
    gamma = sympy.Symbol("gamma2")
    for one in (run, odesim.load(run.save(tmp_path / "run", pictures=False))):
        assert len(one) == len(list(one)) == len(one.values()) and dict(one.items()).keys() == set(one)
        assert one.parameters["m"] == 3 and one.parameters["d"] == 50 and one.time[-1] == 2.0
        assert gamma in one and np.array_equal(one[gamma], one["gamma2"])
        assert sympy.Symbol("nothing") not in one


def test_an_end_time_may_be_a_sympy_expression():
    d = sympy.Symbol("d")
    run = odesim.integrate("liao", m=3, m_star=1, d=100, until=sympy.sqrt(d) / 5, save_points=3)
    assert run.time[-1] == pytest.approx(2.0)
    moved = odesim.linearise(run, state={sympy.Symbol("gamma2"): run["gamma2"][-1]})
    np.testing.assert_array_equal(moved.y, odesim.linearise(run).y)

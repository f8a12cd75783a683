"""Losses of finished runs: divergence is said with the critical step, and no mean square is negative."""

import json

import numpy as np
import pytest

import odesim
from odesim.cli import _run as command
from odesim.flow.losses import divergence, zero_within_error


def linear(units=1, **training):
    return odesim.declare(
        student={"unit": "w", "units": units}, teacher={"unit": "w"}, start={"overlap": 0.1, "norm": 0.5},
        training={"limit": "online", **training},
    )  # fmt: skip


@pytest.mark.parametrize(("units", "batch"), [(1, 1), (1, 3), (2, 1)])
def test_the_loss_of_linear_units_grows_above_the_critical_step_and_falls_below_it(units, batch):
    """eta_c = 2 B / K, from E|f - y|^2 of the recursion u -> u - (eta K / d) mean_b (u . x_b) x_b at large d."""
    critical = 2.0 * batch / units
    below, above = (
        odesim.integrate(linear(units, step=share * critical, batch=batch), until=50, d=1000) for share in (0.9, 1.3)
    )
    assert below.summary["critical_step"] == above.summary["critical_step"] == pytest.approx(critical)
    assert below["loss"][-1] < 1e-3 * below["loss"][0] and "diverged" not in below.summary
    assert above["loss"][-1] > 1e3 * above["loss"][0]
    assert above.summary["diverged"].startswith("the loss diverged, from ")
    assert above.summary["diverged"].endswith(f"the critical step is {critical:.4g}")
    assert above.outcome.kind == "completed"


def test_sgd_that_diverges_says_so():
    run = odesim.simulate(linear(step=4.0), method="compressed", d=100, until=20, seeds=2)
    assert run.summary["diverged"].endswith("a smaller step size may not (2 of 2 replicas)")
    calm = odesim.simulate(linear(step=0.5), method="compressed", d=100, until=5, seeds=2)
    assert "diverged" not in calm.summary


def test_the_command_says_it_too(tmp_path, capsys):
    path = tmp_path / "linear.toml"
    path.write_text(
        '[student]\nunit = "w"\n[teacher]\n[training]\nlimit = "online"\nstep = 4.0\n[start]\noverlap = 0.1\n'
    )
    words = ["integrate", "--system", str(path), "--until", "20", "--out", str(tmp_path / "run"), "--no-figures"]
    assert command([*words, "--json"]) == 0
    told = capsys.readouterr()
    assert "the critical step is 2" in told.err and "diverged" in json.loads(told.out)["summary"]


def test_growth_from_an_optimum_is_no_divergence():
    assert divergence(np.array([1e-20, 0.5]), [np.array([[1.0], [1.2]])], "") == ""
    assert divergence(np.array([1.0, 1e-9]), [np.array([[1e-9], [1e9]])], "") == ""
    assert divergence(np.array([-1.0, -1e9]), [np.array([[1.0], [1e9]])], "x").endswith("x")


def test_a_mean_square_is_not_negative_where_it_was():
    system = odesim.declare(
        student={"unit": "relu(w)", "units": 2}, teacher={"units": 2}, start={"norm": 0.5, "overlap": 0.3}
    )
    for rtol in (1e-4, 1e-8):
        run = odesim.integrate(system, until=400, rtol=rtol)
        assert run["loss"].min() >= 0 and run["error"].min() >= 0 and run.summary["loss_final"] >= 0


def test_what_is_negative_beyond_its_error_stays():
    values = np.array([1.0, 0.1, -1e-4])
    assert zero_within_error(values, 1e-8) is values
    assert zero_within_error(np.array([np.nan, 1.0, -1e-9]), 1e-8)[2] == 0.0

"""SGD whose step, noise, decay and rates change in time: against its limit, and step by step."""

import numpy as np
import pytest

import odesim
from tests.derivations.declare import judged

INITIAL = judged.committee()
TABLES = {
    "name": "scheduled",
    "student": {"units": 3, "unit": "erf(w/sqrt(2))", "output": "trained"},
    "teacher": {"units": 2, "noise": [[0, 0.3], [4, 0.0]]},
    "parameters": {"kappa": 1.0},
}
ONLINE = {
    "limit": "online",
    "step": [[0, "kappa"], [4, 0.25]],
    "decay": "0.01*exp(-t/5)",
    "rates": {"w": "1 - 0.5*step(t - 2)", "a": 0.3},
}


def scores(run, flow):
    return judged.z_of_runs(run, flow, ("Q_ww", "M_ww", "a"))


@pytest.mark.parametrize(
    ("method", "options", "count"),
    [
        ("compressed", {"d": 1000}, 96),
        ("compressed", {"d": 1000, "backend": "jax"}, 96),
        ("compressed", {"d": 1000, "batch": 3}, 96),
        pytest.param("explicit", {"d": 500}, 48, marks=pytest.mark.slow),
    ],
)
def test_online_sgd_follows_the_schedule(method, options, count):
    model = odesim.declare(**TABLES, training=ONLINE)
    times = [0, 1, 3, 5, 8]
    flow = odesim.integrate(model, initial=INITIAL, save_at=times, batch=options.get("batch", 1))
    # The numbers of the same replicas belong together: of 48 replicas alone their root mean square is .8 to 1.6.
    asked = {"initial": INITIAL, "method": method, "seeds": count, "save_at": times, **options}
    runs = [odesim.simulate(model, seed=k, **asked) for k in range(1 if count > 48 else 4)]
    z = np.concatenate([scores(run, flow) for run in runs])
    assert np.sqrt((z**2).mean()) < 1.5 and np.abs(z).max() < 4.5
    # Without the jumps the flow is many standard errors away.
    other = odesim.integrate(model, initial=INITIAL, save_at=times, step=1.0, rate_w=1.0)
    assert np.sqrt((scores(runs[0], other) ** 2).mean()) > 5


@pytest.mark.parametrize(("method", "backend"), [("explicit", "jax"), ("compressed", "jax"), ("compressed", "numba")])
def test_a_jump_is_at_the_first_step_that_is_not_before_it(method, backend):
    # 0.3/0.1 is 2.9999999999999996, and .35/.1 lies between two steps.
    for time, moved in ((0.3, 3), (0.35, 4)):
        model = odesim.declare(
            **{**TABLES, "teacher": {"units": 2}}, training={**ONLINE, "rates": [[0, 1.0], [time, 0.0]], "step": 0.5}
        )
        run = odesim.simulate(
            model, initial=INITIAL, method=method, backend=backend, d=10, until=0.7, save_points=8, batch=1
        )
        changes = np.abs(np.diff(np.asarray(run["M_ww"])[0], axis=0)).max(axis=(1, 2)) > 1e-12
        assert changes.tolist() == [k < moved for k in range(7)]


@pytest.mark.parametrize("method", ["explicit", "compressed"])
def test_small_steps_of_a_flow_follow_its_rates(method):
    model = odesim.declare(**TABLES, training={"rates": {"w": "1/(1 + t)", "a": [[0, 0.0], [0.5, 3.0]]}})
    options = {"initial": INITIAL, "d": 30, "save_at": [0, 0.4, 0.8, 1.6]}
    flow = odesim.integrate(model, **options)
    run = odesim.simulate(model, method=method, step_size=4e-3, batch=256, seeds=24, **options)
    for name in ("M_ww", "a"):
        ends = np.asarray(run[name])[:, -1]
        error = ends.std(0, ddof=1) / np.sqrt(24)
        moved = np.abs(flow[name][-1] - flow[name][0]).max()
        assert np.abs(ends.mean(0) - flow[name][-1]).max() < 4.5 * error.max() + 5e-3 * moved, name
        assert moved > 20 * error.max(), name
    assert np.ptp(np.asarray(run["a"])[:, :2], axis=1).max() == 0.0  # the readouts do not move before .5


def test_blocks_of_inputs_and_groups_have_their_schedules():
    model = odesim.declare(
        name="grouped",
        student={"fast": {"unit": "erf(w)"}, "slow": {"unit": "erf(w)", "output": "trained"}},
        teacher={"unit": "erf(w)", "noise": 0.1},
        inputs={"blocks": [[1.6, 0.5], [0.4, 0.5]]},
        training={"limit": "online", "step": 0.6, "rates": {"fast_w": [[0, 1.0], [2, 0.2]], "slow_a": "exp(-t)"}},
        start={"overlap": 0.3},
    )
    flow = odesim.integrate(model, d=2000, save_at=[0, 1, 3, 5])
    run = odesim.simulate(model, method="compressed", d=2000, seeds=64, save_at=[0, 1, 3, 5])
    z = []
    for name in ("fast_M_ww", "slow_M_ww", "slow_a"):
        values = np.asarray(run[name])[:, 1:]
        z.append(((values.mean(0) - np.asarray(flow[name])[1:]) / (values.std(0, ddof=1) / 8)).ravel())
    z = np.concatenate(z)
    assert np.sqrt((z**2).mean()) < 1.8 and np.abs(z).max() < 4.5
    sampled = odesim.integrate(model, d=2000, save_at=[0, 1, 3, 5], tier="sampled")
    for name in ("fast_M_ww", "slow_M_ww", "slow_a"):
        assert np.asarray(sampled[name]) == pytest.approx(np.asarray(flow[name]), abs=2e-3)


def test_the_loss_beside_sgd_has_the_noise_of_its_time():
    model = odesim.declare(**TABLES, training=ONLINE)
    run = odesim.simulate(model, initial=INITIAL, method="compressed", d=1000, save_at=[0, 2, 5])
    assert np.asarray(run["loss"] - run["error"] / 2)[0] == pytest.approx([0.045, 0.045, 0.0], abs=1e-12)

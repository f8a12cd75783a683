"""From a request to a simulated trajectory: options, checkpoints, hitting times, failures."""

import numpy as np
import pytest

from odesim.errors import MissingError, UsageError, exit_code
from odesim.request.case import Case
from odesim.sgd.simulation import Simulation, simulate


def case(**options):
    given = {"m": 3, "m_star": 1, "d": 40, **options.pop("parameters", {})}
    return Case.build("liao", given, until=options.pop("until", 0.1), save_points=6, **options)


def request(method="compressed", step_size=0.01, batch=4, *, of=None, **options):
    return Simulation.build(of or case(), method=method, step_size=step_size, batch=batch, **options)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"step_size": 0.0}, "--step-size must be above 0, but 0 was given"),
        ({"step_size": -0.1}, "--step-size must be above 0, but -0.1 was given"),
        ({"step_size": float("nan")}, "--step-size must be above 0"),
        ({"step_size": 1.0}, "is less than one step"),
        ({"batch": 0}, "--batch must be at least 1, but 0 was given"),
        ({"seeds": 0}, "--seeds must be at least 1, but 0 was given"),
        ({"precision": "float32"}, "--method compressed runs in float64 only"),
        ({"method": "guessed"}, "--method"),
        ({"method": "explicit", "of": {"backend": "numba"}}, "--method explicit runs in JAX only"),
        ({"device": "gpu", "of": {"backend": "numba"}}, "--device gpu runs in JAX only"),
        ({"of": {"rtol": 1e-6}}, "--rtol has no meaning for SGD"),
    ],
)
def test_a_wrong_option_is_refused_in_one_sentence(options, sentence):
    of = case(**options.pop("of", {}))
    with pytest.raises(UsageError, match=sentence) as caught:
        request(of=of, **options)
    assert "\n" not in str(caught.value) and exit_code(caught.value) == 2


@pytest.mark.parametrize("backend", ["numba", "jax"])
def test_a_dimension_too_small_for_compressed_is_refused(backend):
    # n = 8 vectors and a gradient of rank 6 outside their span.
    small = case(parameters={"d": 13}, backend=backend)
    with pytest.raises(UsageError, match=r"needs d >= 14 here .* but d = 13"):
        simulate(request(of=small, batch=8))


def test_replicas_that_do_not_fit_are_refused():
    with pytest.raises(UsageError, match=r"GB are free: lower --seeds or d, or use --method compressed"):
        simulate(request("explicit", of=case(parameters={"d": 10**9}), seeds=50))


def test_small_weights_need_little_memory(monkeypatch):
    # 50 replicas of 5 vectors in 40 dimensions are 80 kB; a machine whose memory is nearly full can hold them.
    monkeypatch.setattr("odesim.sgd.effort.free_memory", lambda: 2_000_000)
    assert simulate(request("explicit", of=case(until=0.02), seeds=50, device="cpu")).time[-1] == 0.02
    monkeypatch.setattr("odesim.sgd.effort.free_memory", lambda: 200_000)
    with pytest.raises(UsageError, match=r"GB are free"):
        simulate(request("explicit", of=case(until=0.02), seeds=50, device="cpu"))


def test_a_gpu_that_is_not_there_is_missing(monkeypatch):
    import jax

    if any(device.platform == "gpu" for device in jax.devices()):
        pytest.skip("a GPU is here")
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    with pytest.raises(MissingError, match="JAX finds none here") as caught:
        simulate(request(device="gpu"))
    assert exit_code(caught.value) == 4


@pytest.mark.parametrize(("method", "backend"), [("compressed", "numba"), ("compressed", "jax"), ("explicit", "jax")])
def test_a_resumed_simulation_equals_an_uninterrupted_one(method, backend, tmp_path):
    from odesim.store import Checkpoint

    simulation = request(method, of=case(backend=backend), seeds=2, device="cpu")
    whole = simulate(simulation)
    checkpoint = Checkpoint(tmp_path, simulation.digest)

    def stop(time, until):
        if time > 0.055:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate(simulation, progress=stop, checkpoint=checkpoint)
    resumed = simulate(simulation, checkpoint=checkpoint)
    for name, variable in whole.state.items():
        assert np.array_equal(variable.values, resumed[name]), name


def test_the_clock_counts_steps_times_their_size():
    run = simulate(request(seeds=2))
    assert run.step.tolist() == [0, 2, 4, 6, 8, 10]
    assert np.allclose(run.time, 0.01 * run.step, rtol=1e-15)
    assert run["gamma2"].shape == (2, 6, 3, 1) and run.outcome.kind == "completed"


def test_all_replicas_start_where_the_flow_starts():
    from odesim.flow.solve import solve

    run, flow = simulate(request(seeds=3)), solve(case())
    for name in ("gamma1", "gamma2", "zeta1", "zeta2", "I1", "I2", "I3"):
        assert np.abs(run[name][:, 0] - flow[name][0]).max() < 1e-14
    assert np.abs(run["loss"][:, 0] - flow["loss"][0]).max() < 1e-12


def test_fresh_initial_draws_another_start_for_every_replica():
    run = simulate(request(seeds=2, fresh_initial=True))
    assert abs(run["gamma2"][0, 0] - run["gamma2"][1, 0]).max() > 1e-3


def test_a_divergence_is_an_outcome_with_the_last_good_state():
    # A step of 1e199 squares to more than float64 holds.
    wild = case(parameters={"renormalise": True}, until=1e200)
    run = simulate(request(of=wild, step_size=1e199))
    assert run.outcome.kind == "failed" and run.outcome.exit_code == 3
    assert "no longer finite" in run.outcome.reason and "smaller step size" in run.outcome.reason
    assert all(np.isfinite(v.values).all() for v in run.state.values())
    assert run.outcome.time == run.time[-1]


def test_hitting_times_are_the_first_saved_time_past_the_threshold():
    from derivations.liao.parameters import Parameters
    from derivations.liao.tiers import equations
    from odesim.sgd.simulation import hitting_times

    times = np.array([0.0, 0.5, 1.0, 1.5])
    gamma = np.zeros((2, 4, 1, 1))
    gamma[0, :, 0, 0] = [0.1, 0.89, 0.95, 0.5]
    pair = np.tile(np.array([[1.0, -0.2], [-0.2, 1.0]]), (2, 4, 1, 1))
    pair[1, 3, 0, 1] = pair[1, 3, 1, 0] = -0.5
    state = {"gamma1": gamma, "gamma2": -gamma, "I2": pair}
    found = hitting_times(equations(Parameters(m=2, m_star=1, d=50), "exact"), state, times)
    assert found["T_gamma1"].dims == ("seed", "expert", "teacher")
    assert found["T_gamma1"].values.ravel().tolist() == [1.0, np.inf]
    assert np.isinf(found["T_gamma2"].values).all()
    assert found["T_I2"].values[1].tolist() == [[np.inf, 1.5], [1.5, np.inf]]
    assert "first saved time" in found["T_I2"].meaning


@pytest.mark.parametrize(
    ("piece", "count", "seconds", "expected"),
    [(1, 1, 5.0, 1), (8, 8, 0.01, 32), (100, 100, 4.0, 25), (100, 40, 0.1, 100), (8, 8, 0.0, 8)],
)
def test_pieces_of_steps_aim_at_a_second(piece, count, seconds, expected):
    from odesim.sgd.descent import next_piece

    assert next_piece(piece, count, seconds) == expected

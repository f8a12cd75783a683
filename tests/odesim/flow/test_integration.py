"""Integration end to end: integrators, back ends, hitting times, outcomes, resumption, and numbers known elsewhere."""

import dataclasses
import functools
import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from derivations.contract import Crossing, Dense, Equations, Layout
from derivations.liao import initial
from derivations.liao.parameters import Parameters
from odesim.errors import UsageError
from odesim.flow import record, solve
from odesim.flow import roots as roots_of
from odesim.flow.problem import compile_functions, initial_condition
from odesim.flow.solvers import diffrax, step
from odesim.flow.solvers.dop853 import dop853_steps
from odesim.flow.solvers.scipy import scipy_steps
from odesim.request.case import Case

C1 = 0.20662096414190703726
SMALL = {"m": 4, "m_star": 2, "d": 150}
OVERLAPS = ("gamma1", "gamma2", "zeta1", "zeta2", "I1", "I2", "I3")


def run(parameters=SMALL, **options):
    """The trajectory of a small case."""
    return solve.solve(Case.build("liao", parameters, **options))


def aligned_start(g2: float, d: int = 10**6):
    """m = m* = 1 with every overlap zero except gamma2 (unit norms)."""
    rows = np.zeros((4, 4))
    rows[0, 0] = rows[2, 1] = rows[3, 2] = 1.0
    rows[1, 2], rows[1, 3] = g2, math.sqrt(1 - g2**2)
    arrays = dict(zip(("V", "W", "V_star", "W_star"), np.split(rows, 4), strict=True))
    start = initial.from_weights(Parameters(m=1, m_star=1, d=4), arrays)
    return dataclasses.replace(start, parameters=Parameters(m=1, m_star=1, d=d), scale=d**-0.5)


@pytest.mark.slow
def test_two_integrators_and_two_back_ends_agree_along_a_whole_run():
    scipy_run = run(until=25.0, rtol=1e-11, save_points=26)
    jax_run = run(until=25.0, rtol=1e-11, save_points=26, backend="jax")
    for name in OVERLAPS:
        assert np.abs(scipy_run[name] - jax_run[name]).max() < 1e-9, name
    for name in ("T_gamma1", "T_gamma2", "T_I2"):
        finite = np.isfinite(scipy_run[name])
        assert (finite == np.isfinite(jax_run[name])).all()
        assert np.abs(scipy_run[name][finite] - jax_run[name][finite]).max(initial=0) < 1e-8, name
    assert np.isfinite(scipy_run["T_gamma2"]).any()


def test_saved_states_equal_runs_that_end_there():
    long = run(until=30.0, rtol=1e-10, save_points=7)
    for k in (2, 4):
        short = run(until=float(long.time[k]), rtol=1e-10, save_points=2)
        for name in OVERLAPS:
            # interpolation between steps must not cost more than the tolerance does along the run
            assert np.abs(long[name][k] - short[name][-1]).max() < 1e-8, (k, name)


def test_flow_of_explicit_weights_by_quadrature_has_the_same_overlaps():
    """Gradient flow of raw rows in R^4, its expectation by a tensor rule in R^4: no Gram matrix, no lemma."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(4, 4)) * 0.8
    rows[2:] = np.linalg.qr(rng.normal(size=(4, 2)))[0].T
    arrays = dict(zip(("V", "W", "V_star", "W_star"), np.split(rows, 4), strict=True))
    flow = run({}, initial=arrays, until=1.0, rtol=1e-10, save_points=2)

    nodes, weights = np.polynomial.hermite_e.hermegauss(22)
    x = np.stack(np.meshgrid(*[nodes] * 4, indexing="ij"), -1).reshape(-1, 4)
    measure = np.prod(np.stack(np.meshgrid(*[weights / weights.sum()] * 4, indexing="ij"), -1), -1).reshape(-1)
    gate = 1 / (1 + np.exp(-x @ rows[2]))
    target = gate * ((x @ rows[3]) ** 3 - 3 * x @ rows[3])

    def descent(t, flat):
        v, w = flat.reshape(2, 4)
        unit_v, unit_w = v / np.linalg.norm(v), w / np.linalg.norm(w)
        p, z = 1 / (1 + np.exp(-x @ unit_v)), x @ unit_w
        residual = measure * (p * (z**3 - 3 * z) - target)
        g_v = (residual * p * (1 - p) * (z**3 - 3 * z)) @ x
        g_w = (residual * p * 3 * (z**2 - 1)) @ x
        g_v = (g_v - (g_v @ unit_v) * unit_v) / np.linalg.norm(v)
        g_w = (g_w - (g_w @ unit_w) * unit_w) / np.linalg.norm(w)
        return -np.concatenate([g_v, g_w])

    final = solve_ivp(descent, (0, 1.0), rows[:2].reshape(-1), rtol=1e-7, atol=1e-9).y[:, -1].reshape(2, 4)
    unit = np.vstack([final / np.linalg.norm(final, axis=1, keepdims=True), rows[2:]])
    expected = initial.components(unit @ unit.T, 1, 1)
    for name in OVERLAPS:
        # 22 nodes per axis integrate the logistic factors to about 1e-6
        assert np.abs(flow[name][-1] - expected[name]).max() < 1e-5, name
    assert np.linalg.norm(final, axis=1) == pytest.approx(np.linalg.norm(rows[:2], axis=1), abs=1e-6)


def test_expert_recovery_time_of_one_pair_is_the_closed_form_and_the_router_follows_5_49_later():
    start = aligned_start(1e-3)
    case = Case.build("liao", {"m": 1, "m_star": 1, "d": 10**6}, until=240.0, rtol=1e-10, save_points=2)
    found = solve.solve(case, initial=start)
    closed = 2 / 9 * (1e3 - 1 / 0.9 + math.atanh(0.9))  # gamma1 frozen at 0
    assert found["T_gamma2"][0, 0] == pytest.approx(222.301, abs=1e-3)
    assert found["T_gamma2"][0, 0] == pytest.approx(closed, rel=2e-5)
    assert found["T_gamma1"][0, 0] - found["T_gamma2"][0, 0] == pytest.approx(5.49, abs=0.01)


def test_leading_order_stops_where_its_closed_form_reaches_the_edge():
    rows = np.eye(6, 8)
    rows[2], rows[3] = 0, 0
    rows[2, 5], rows[2, 6] = 0.02, math.sqrt(1 - 0.02**2)
    rows[3, 7] = 1.0
    start = initial.from_weights(
        Parameters(m=2, m_star=1, d=8),
        {"V": rows[:2], "W": rows[2:4], "V_star": rows[4:5], "W_star": rows[5:6]},
    )
    case = Case.build("liao", {"m": 2, "m_star": 1, "d": 8, "tier": "riccati"}, until=50.0, rtol=1e-10)
    found = solve.solve(case, initial=start)
    assert found.outcome.kind == "stopped"
    assert found.outcome.time == pytest.approx((1 / 0.02 - 1 / 0.999) / 4.5, rel=1e-8)
    assert found.time[-1] == found.outcome.time


def test_first_anti_alignment_comes_at_the_predicted_time_at_a_million_dimensions():
    case = Case.build("liao", {"d": 10**6}, until=60.0, save_points=2, seed=4)
    start = initial_condition(case)
    rate = start.constants["norm_w"] ** -2
    z = np.tril(start.state["I2"] * (rate[:, None] + rate) / 2, -1).min()
    found = solve.solve(case)
    assert found["T_I2"].min() * 9 * -z == pytest.approx(1.0, abs=0.02)


def test_paper_size_run_shows_the_pattern_of_both_initialisations():
    random = run({"m": 25, "m_star": 5, "d": 1000}, until=12.0, save_points=13)
    assert random["T_I2"].min() < 2.5  # the first pair anti-aligns at t = 1 to 2
    assert random["T_I2"].min() < random["T_gamma2"].min()
    assert random["loss"][3] < 20 < 26 < random["loss"][0]  # most of the fall is annihilation
    orthogonal = run({"m": 25, "m_star": 5, "d": 1000, "init": "orthogonal"}, until=12.0, save_points=3)
    assert np.sort(orthogonal["T_gamma2"].min(axis=0))[-1] < 8.0  # all experts found between t = 2 and 6
    assert orthogonal["T_I2"].min() > 4.0


def test_loss_only_falls_and_the_gram_matrix_stays_semidefinite():
    found = run(until=40.0, rtol=1e-9, save_points=81)
    assert found.invariants["loss_increase"] < 1e-7
    assert found.invariants["gram_min_eigenvalue"] > -1e-6
    assert found.invariants["overlap_excess"] < 1e-7


def test_halving_the_tolerance_moves_the_answer_as_the_order_predicts():
    reference = run(until=4.0, rtol=1e-12, save_points=2)
    errors = []
    for rtol in (1e-6, 1e-8, 1e-10):
        found = run(until=4.0, rtol=rtol, save_points=2)
        errors.append(max(np.abs(found[name][-1] - reference[name][-1]).max() for name in OVERLAPS))
    assert errors[0] > 5 * errors[1]
    assert errors[1] > 2 * errors[2]  # near the error of the reference itself
    assert errors[1] < 1e-8


def test_a_crossing_up_and_down_within_one_step_is_found():
    exact = np.sin
    t0, t1 = 1.0, 2.2  # above 0.95 only in between: arcsin 0.95 = 1.2532
    known = dict.fromkeys((field.name for field in dataclasses.fields(Equations)), None)
    known |= {"crossings": (Crossing("T", "y", 0.95),), "layout": Layout((Dense("y", (1,)),))}
    equations = object.__new__(Equations)
    equations.__dict__.update(known)
    recorder = record.Recorder(equations, t0, np.array([exact(t0)]), np.array([t0, t1]))
    ends = [np.array([f(t)]) for t in (t0, t1) for f in (np.sin, np.cos)]
    interior = step.cubic_interior(t0, ends[0], ends[1], t1, ends[2], ends[3])
    segment = step.Segment(t0, ends[0], t1, ends[2], lambda t: np.array([exact(t)]), interior)
    recorder.take(segment)
    assert recorder.hits["T"][0] == pytest.approx(math.asin(0.95), abs=1e-12)


def test_an_entry_that_crosses_later_in_a_step_than_the_cubic_says_is_found():
    """(6, 2) at d = 1000: at 1e-5 a step of 0.15 crosses after the point at which its cubic does (1.934, not 2.011)."""
    case = {"m": 6, "m_star": 2, "d": 1000}
    loose, tight = (run(case, seed=3, until=2.5, rtol=rtol, save_points=2) for rtol in (1e-5, 1e-10))
    reached = np.isfinite(tight["T_I2"]) & (tight["T_I2"] > 0)
    assert reached.any() and (np.isfinite(loose["T_I2"]) == np.isfinite(tight["T_I2"])).all()
    np.testing.assert_allclose(loose["T_I2"][reached], tight["T_I2"][reached], rtol=1e-4)


@pytest.mark.parametrize("solver", ["DOP853", "Radau", "CVODE"])
def test_every_evaluation_is_counted(solver, monkeypatch):
    calls = []

    def counting(equations, backend):
        functions = dict(compile_functions(equations, backend))
        flow = functions["flow"]
        functions["flow"] = lambda t, y, *arguments: calls.append(t) or flow(t, y, *arguments)
        del functions["derivative"]
        return functions

    monkeypatch.setattr("odesim.flow.problem.compile_functions", counting)
    counted = run(until=5.0, save_points=51, solver=solver).statistics["evaluations"]
    assert counted == len(calls)
    monkeypatch.undo()
    compiled = run(until=5.0, save_points=51, solver=solver).statistics["evaluations"]
    assert compiled == pytest.approx(counted, rel=0.02)  # sums are rounded in another order


def test_an_interrupted_run_goes_on_from_its_checkpoint(tmp_path):
    from odesim.store import Checkpoint

    case = Case.build("liao", SMALL, until=20.0, rtol=1e-10, save_points=21)
    whole = solve.solve(case)
    checkpoint = Checkpoint(tmp_path, case.digest)

    def stop(time, end):
        if time > 9.0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solve.solve(case, progress=stop, checkpoint=checkpoint)
    resumed = solve.solve(case, checkpoint=checkpoint)
    for name in OVERLAPS:
        assert np.abs(resumed[name] - whole[name]).max() < 1e-7, name
    hit = np.isfinite(whole["T_gamma2"])
    assert np.abs(resumed["T_gamma2"][hit] - whole["T_gamma2"][hit]).max() < 1e-6


def test_every_reduced_tier_runs_in_both_back_ends():
    for tier, sizes in (("cascade", {}), ("riccati_paper", {}), ("linear", {"m": 2, "m_star": 2})):
        parameters = {**SMALL, **sizes, "tier": tier}
        numba, jax = (run(parameters, until=2.0, rtol=1e-9, save_points=5, backend=b) for b in ("numba", "jax"))
        for name in numba.state:
            if numba.state[name].dtype.kind == "f":
                assert np.abs(numba[name] - jax[name]).max() < 1e-7, (tier, name)


def test_a_right_hand_side_of_jax_is_integrated_by_every_integrator():
    numba = run(until=12.0, rtol=1e-9, save_points=5)
    for solver, close in (("DOP853", 1e-9), ("automatic", 1e-9), ("CVODE", 1e-7)):
        jax = run(until=12.0, rtol=1e-9, save_points=5, backend="jax", solver=solver)
        assert jax.statistics["solver"].startswith("CVODE" if solver == "CVODE" else "DOP853")
        for name in ("gamma2", "I2", "loss"):
            assert np.abs(numba[name] - jax[name]).max() < close, (solver, name)
        reached = np.isfinite(numba["T_gamma2"])
        assert (reached == np.isfinite(jax["T_gamma2"])).all()
        np.testing.assert_allclose(jax["T_gamma2"][reached], numba["T_gamma2"][reached], rtol=10 * close)


@pytest.mark.parametrize("solver", ["Dopri8", "Dopri5", "Tsit5"])
def test_evaluations_of_diffrax_are_those_that_the_device_makes(solver):
    import jax

    calls = []

    def flow(t, y):
        jax.debug.callback(lambda: calls.append(1))
        return -y * y

    jax.config.update("jax_enable_x64", True)
    statistics = step.Statistics(solver)
    y, end = np.array([1.0, 2.0]), 50.0
    span = step.Span(0.0, y, end, 1e-6, 1e-9, statistics)
    last = list(diffrax.diffrax_steps(solver, flow, (), span))[-1]
    jax.effects_barrier()
    np.testing.assert_allclose(last.y1, y / (1.0 + y * end), rtol=1e-4)
    # Beside the stages: the slope saved after every accepted step, those before the first, one at a call's start.
    spare = 3 + statistics.steps // diffrax.CHUNK
    assert statistics.evaluations + statistics.steps <= len(calls) <= statistics.evaluations + statistics.steps + spare


def test_each_function_of_a_run_is_compiled_once(monkeypatch):
    made, real = [], diffrax.diffrax_functions
    real.cache_clear()
    monkeypatch.setattr(diffrax, "diffrax_functions", lambda *given: made.append(real(*given)) or made[-1])
    # The smallest equations with hitting times: XLA takes 40 s for those of the exact tier.
    parameters = {"m": 3, "m_star": 1, "d": 100, "init": "orthogonal", "tier": "riccati"}
    case = Case.build("liao", parameters, backend="jax", solver="Tsit5", rtol=1e-11, until=60.0)
    run = solve.solve(case)
    assert run.statistics["steps"] > 2 * diffrax.CHUNK and np.isfinite(run["T_gamma2"]).any()
    assert [function._cache_size() for function in made[0]] == [1, 1, 1]


def test_evaluations_that_are_not_counted_are_not_told():
    counted = run({**SMALL, "tier": "riccati"}, until=2.0, save_points=2, backend="jax").statistics
    assert counted["evaluations"] == 13 * (counted["steps"] + counted["rejected"])
    statistics = step.Statistics("Kvaerno3")
    diffrax.count(statistics, "Kvaerno3", 3, 1)
    assert statistics.known() == {"solver": "Kvaerno3", "steps": 3, "rejected": 1}


@pytest.mark.parametrize(
    ("steps", "stages", "first"), [(functools.partial(scipy_steps, "RK45"), 6, 3), (dop853_steps, 12, 2)]
)
def test_steps_that_are_repeated_are_counted(steps, stages, first):
    statistics = step.Statistics("")

    def jumping(t, y):
        return np.where(t < 0.5, -y, 200.0 - 300.0 * y)

    list(steps(jumping, step.Span(0.0, np.ones(2), 1.0, 1e-6, 1e-9, statistics)))
    assert statistics.rejected and statistics.rejected > 3
    # At the start: the slope, by SciPy twice, and one more for the length of the first step.
    assert statistics.evaluations == first + stages * (statistics.steps + statistics.rejected)


def test_steps_that_are_not_counted_are_not_told():
    assert "rejected" in run(until=2.0, save_points=2, solver="DOP853").statistics
    assert "rejected" not in run(until=2.0, save_points=2, solver="CVODE").statistics


def test_refused_options_are_sentences():
    with pytest.raises(UsageError, match="has no solver 'Tsit5'"):
        run(solver="Tsit5")
    with pytest.raises(UsageError, match="at least 1e-13"):
        run(rtol=1e-15)


def test_numerical_failure_is_an_outcome_with_the_last_good_state(monkeypatch):
    case = Case.build("liao", SMALL, until=5.0)

    def poisoned(equations, backend):
        functions = dict(compile_functions(equations, backend))
        flow = functions["flow"]
        functions["flow"] = lambda t, y, *a: flow(t, y, *a) * (np.nan if t > 1.0 else 1.0)
        del functions["derivative"]
        return functions

    monkeypatch.setattr("odesim.flow.problem.compile_functions", poisoned)
    found = solve.solve(case)
    assert found.outcome.kind == "failed"
    assert 0 < found.outcome.time <= 1.0
    assert np.isfinite(found["gamma2"]).all()


def test_the_first_root_of_a_cubic_is_the_smallest_of_all_its_roots():
    rng = np.random.default_rng(0)
    for _ in range(500):
        cubic = rng.standard_normal(4) * 10.0 ** rng.integers(-6, 6, 4)
        most = rng.uniform(0.1, 1.0)
        roots = [root.real for root in np.roots(cubic) if abs(root.imag) < 1e-9 and 0.0 <= root.real <= most]
        found = roots_of.first_root(cubic, most)
        assert (found is None) == (not roots)
        assert found is None or found == pytest.approx(min(roots), rel=1e-6, abs=1e-8)
    assert (
        roots_of.first_root([0.0, 0.0, 1.0, -0.5], 1.0) == 0.5
        and roots_of.first_root([0.0, 1.0, 0.0, -0.25], 1.0) == 0.5
    )


def test_the_cubic_of_a_step_is_that_of_least_squares():
    values = np.random.default_rng(1).standard_normal(5)
    assert np.allclose(record.TO_CUBIC @ values, np.polyfit(record.FRACTIONS, values, 3), rtol=1e-12)

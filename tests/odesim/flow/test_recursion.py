"""Recursions: whole steps, saved times, checkpoints, both back ends."""

import dataclasses
import itertools

import numpy as np
import pytest

import odesim
from odesim.cli import _run as command
from odesim.flow import driver, recursion, solve
from odesim.flow.problem import prepare
from odesim.request.case import Case
from odesim.store import Checkpoint
from odesim.sweeps import sweep

SIZES = {"n": 4, "p": 2, "m": 6, "d": 5, "mode": "joint", "k": 2, "l": 2}


def case(**options) -> Case:
    """A small recursion."""
    return Case.build("pmoe", {**SIZES, "step": 0.25}, **options)


def test_steps_are_applied_one_after_the_other():
    problem = prepare(case(until=2.0, save_points=9))
    y = problem.start
    for _ in range(8):
        y = y + 0.25 * problem.functions["flow"](0.0, y, *problem.arguments)
    run = recursion.solve(problem)
    end = np.concatenate([run.state[name].values[-1].ravel() for name in ("pre", "route")])
    assert np.array_equal(end, y)
    assert run.statistics["steps"] == 8


def test_given_times_must_be_whole_steps():
    problem = prepare(case(until=2.0))
    run = recursion.solve(problem, np.array([0.0, 0.5, 1.75]))
    assert run.time.tolist() == [0.0, 0.5, 1.75]
    with pytest.raises(odesim.UsageError, match="whole numbers"):
        recursion.solve(problem, np.array([0.0, 0.6]))


def test_jax_takes_the_same_steps():
    runs = [solve.solve(case(until=2.0, save_points=3, backend=backend)) for backend in ("numba", "jax")]
    assert np.abs(runs[0].state["pre"].values - runs[1].state["pre"].values).max() < 1e-14


def test_a_hitting_time_is_the_first_step_past_the_threshold():
    from derivations.contract import Crossing

    problem = prepare(case(until=2.0, save_points=9))
    free = recursion.solve(problem)
    series = free.state["pre"].values.reshape(9, -1)
    steady = np.flatnonzero(
        (np.diff(series, axis=0) > 1e-9).all(axis=0) | (np.diff(series, axis=0) < -1e-9).all(axis=0)
    )
    entry = int(steady[0])
    level = (series[3, entry] + series[4, entry]) / 2
    direction = 1 if series[4, entry] > series[3, entry] else -1
    crossing = Crossing("hit", "pre", float(level), direction)
    watched = dataclasses.replace(problem, equations=dataclasses.replace(problem.equations, crossings=(crossing,)))
    assert recursion.solve(watched).extras["hit"].values.reshape(-1)[entry] == pytest.approx(1.0)


def test_an_interrupted_recursion_goes_on(tmp_path):
    class Stop:
        """A progress that stops the run half way."""

        calls = 0

        def __call__(self, now: float, until: float) -> None:
            self.calls += 1
            if self.calls == 4:
                raise KeyboardInterrupt

    from odesim.store import Checkpoint

    request = case(until=2.0, save_points=9)
    checkpoint = Checkpoint(tmp_path, request.digest)
    with pytest.raises(KeyboardInterrupt):
        solve.solve(request, Stop(), checkpoint)
    again = solve.solve(request, None, checkpoint)
    whole = solve.solve(request)
    assert np.array_equal(again.state["pre"].values, whole.state["pre"].values)


def test_steps_that_blow_up_are_an_outcome():
    problem = prepare(case(until=2.0, save_points=9))
    broken = dataclasses.replace(problem, functions={**problem.functions, "flow": lambda t, y, *a: y * np.inf})
    run = recursion.solve(broken)
    assert run.outcome.kind == "failed"
    assert run.outcome.time == 0.0


def test_euler_is_the_race_written_by_hand():
    # Tier explore of chen: x' = x^2 / sqrt(sum x^4) in each expert (moments of the strengths cancel in the quotient).
    options = {"tier": "explore", "M": 2, "J": 3, "K": 2, "seed": 1, "until": 0.1, "save_points": 11}
    run = odesim.integrate("chen", solver="euler", step=0.005, **options)
    x = run["feat"][0].copy()
    for _ in range(20):
        x += 0.005 * x**2 / np.sqrt(np.einsum("mjk->m", x**4))[:, None, None]
    assert run.time.tolist() == pytest.approx(np.linspace(0, 0.1, 11).tolist())
    assert (run.statistics["solver"], run.statistics["steps"], run.statistics["step"]) == ("euler", 20, 0.005)
    assert np.abs(run["feat"][-1] - x).max() < 1e-14


@pytest.mark.parametrize("backend", ["numba", "jax"])
def test_euler_differs_from_the_flow_by_its_step(backend):
    options = {"M": 2, "J": 2, "K": 2, "tier": "explore", "seed": 3, "until": 0.04, "save_points": 3}
    flow = odesim.integrate("chen", rtol=1e-11, **options)["feat"]
    errors = []
    for step in (2e-4, 1e-4, 5e-5):
        run = odesim.integrate("chen", solver="euler", step=step, backend=backend, **options)
        errors.append(np.abs(run["feat"] - flow).max())
    ratios = [errors[0] / errors[1], errors[1] / errors[2]]
    assert errors[0] > 1e-6
    assert all(abs(ratio - 2) < 0.25 for ratio in ratios)  # of first order


def test_euler_at_liaos_optimum_is_stable_up_to_two_over_the_largest_rate_of_the_overlaps():
    # The Gram matrix has the rate 2 * 5.28 (spectrum of the optimum), so that 2/10.57 = .189 is the limit; descent of
    # the weights would bear 2/6.47 = .309: it is the recursion of the order parameters.
    rows = np.eye(6)
    students = rows[:4] + 1e-3 * np.random.default_rng(0).normal(size=(4, 6))
    students /= np.linalg.norm(students, axis=1, keepdims=True)
    weights = {"V": students[:2], "W": students[2:], "V_star": rows[:2], "W_star": rows[2:4]}
    ends = {}
    for step in (0.18, 0.2):
        run = odesim.integrate("liao", initial=weights, solver="euler", step=step, until=300 * step, save_points=2)
        ends[step] = np.abs(run["gamma2"][-1] - np.eye(2)).max()
    assert ends[0.18] < 1e-9
    assert ends[0.2] > 1e-3


def test_a_terminal_hit_ends_descent():
    options = {"tier": "riccati", "m": 3, "m_star": 2, "d": 100, "until": 100.0, "save_points": 11, "seed": 2}
    run = odesim.integrate("liao", solver="euler", step=0.001, **options)
    flow = odesim.integrate("liao", **options)
    assert run.outcome.kind == flow.outcome.kind == "stopped"
    assert run.outcome.time == pytest.approx(flow.outcome.time, abs=0.05)
    assert run.time[-1] == run.outcome.time and np.isfinite(run["gamma2"]).all()


@pytest.mark.parametrize(
    ("system", "request_", "sentence"),
    [
        ("pmoe", {**SIZES, "solver": "euler", "step": 0.1, "until": 1.0}, "a recursion; leave it out"),
        ("pruning", {"solver": "euler", "step": 0.1, "until": 2.0}, "an exact recursion"),
        ("pruning", {"solver": "euler", "step": 0.1, "until": 2.0, "tier": "flow"}, "whose right-hand side jumps"),
        ("chen", {"solver": "euler"}, "give it with step="),
        ("chen", {"solver": "euler", "step": -1}, "above 0"),
        ("chen", {"solver": "euler", "step": 0.1, "rtol": 1e-5, "M": 2, "J": 2}, "rtol= has no meaning"),
        ("chen", {"solver": "euler", "step": 3.0, "until": 1.0, "M": 2, "J": 2}, "less than one step"),
    ],
)
def test_euler_is_refused_where_it_has_no_meaning(system, request_, sentence):
    with pytest.raises(odesim.UsageError, match=sentence):
        odesim.integrate(system, **request_)


def test_a_step_belongs_to_euler():
    with pytest.raises(odesim.UsageError, match="--step is the step of --solver euler"):
        Case.build("liao", {}, step=0.1)
    without = Case.build("liao", {})
    assert "step" not in without.request()
    first, second = (Case.build("liao", {}, solver="euler", step=h) for h in (0.1, 0.2))
    assert first.digest != second.digest != without.digest


EULER = {"tier": "explore", "M": 2, "J": 2, "K": 2, "until": 0.04, "save_points": 2, "solver": "euler"}
FIXED = {name: value for name, value in EULER.items() if name in ("tier", "M", "J", "K")}


def test_a_cell_of_euler_is_the_run_of_integrate_at_its_step(tmp_path):
    options = {name: value for name, value in EULER.items() if name not in FIXED}
    over = {"step": ("1e-3", 2e-3), "seed": (0, 1)}
    data = sweep.run(sweep.Sweep.build("chen", over, FIXED, **options), tmp_path)
    assert data["step"].values.tolist() == [1e-3, 2e-3]
    for step, seed in itertools.product((1e-3, 2e-3), (0, 1)):
        alone = odesim.integrate("chen", step=step, seed=seed, **EULER)
        assert np.array_equal(data["final_feat"].sel(step=step, seed=seed).values, alone["feat"][-1])
    one = sweep.run(sweep.Sweep.build("chen", {"seed": (1,)}, FIXED, step=2e-3, **options), tmp_path)
    assert np.array_equal(one["final_feat"].values[0], data["final_feat"].sel(step=2e-3, seed=1).values)


def test_a_parameter_called_step_is_swept_unless_the_solver_is_euler():
    recursions = sweep.Sweep.build("pmoe", {"step": (0.1, 0.25)}, SIZES, until=1.0)
    assert [cell.case.parameters.step for cell in recursions.cells] == [0.1, 0.25]
    assert [cell.value("step") for cell in recursions.cells] == [0.1, 0.25]
    assert {cell.case.step for cell in recursions.cells} == {None}


def test_the_step_of_euler_is_swept_from_a_file_too(tmp_path):
    (tmp_path / "euler.toml").write_text('solver = "euler"\n')
    wanted = sweep.Sweep.build("chen", {"step": (1e-3, 2e-3)}, FIXED, config=tmp_path / "euler.toml")
    assert [cell.case.step for cell in wanted.cells] == [1e-3, 2e-3]


WORDS = ["--system", "liao", "-p", "m=3", "-p", "m_star=1", "-p", "d=50", "--until", "0.4", "--quiet"]
SGD = ["--step-size", "0.01", "--batch", "8", "--save-points", "5"]
DESCENT = ["--solver", "euler", "--step"]


def test_compare_holds_sgd_against_descent_at_a_step(tmp_path):
    out = tmp_path / "compared"
    assert command(["compare", *WORDS, *SGD, *DESCENT, "0.02", "--no-figures", "--out", str(out)]) == 0
    run = odesim.load(out).trajectory
    alone = odesim.integrate("liao", solver="euler", step=0.02, m=3, m_star=1, d=50, until=0.4, save_points=5)
    compared = [name.removeprefix("panel_first_") for name in run.state if name.startswith("panel_first_")]
    for component in compared:
        values = alone[component].reshape(len(alone.time), -1)
        most = values[:, np.ptp(values, axis=0).argmax()]
        assert np.array_equal(run.state[f"panel_first_{component}"].values, most)
    assert len(compared) > 3
    assert (
        alone["gamma2"][-1].tolist() != odesim.integrate("liao", m=3, m_star=1, d=50, until=0.4)["gamma2"][-1].tolist()
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["sweep", *WORDS, "--over", "seed=0,1", "--step", "0.1"], "--step is the step of --solver euler"),
        (["sweep", *WORDS, "--over", "seed=0,1", "--solver", "euler"], "give it with --step"),
        (["sweep", *WORDS, "--over", "step=0.1,0.2"], "--over step needs --solver euler"),
        (["sweep", *WORDS, *DESCENT, "0.1", "--over", "step=0.1,0.2"], "step is swept and fixed"),
        (["sweep", *WORDS, *DESCENT[:2], "--over", "step=0.1,-1"], "--step must be above 0"),
        (["sweep", *WORDS, *DESCENT[:2], "--over", "step=0.1,1e-1"], "--over step needs different values"),
        (["compare", *WORDS, *SGD, "--step", "0.1"], "--step is the step of --solver euler"),
        (["compare", *WORDS, *SGD, "--solver", "euler"], "give it with --step"),
        (["compare", *WORDS, *SGD, *DESCENT, "0.03"], "whole numbers of steps of --step=0.03"),
    ],
)
def test_a_step_is_refused_alike_by_every_command(words, sentence, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("odesim.sgd.simulation.simulate", None)  # nothing is computed before the refusal
    assert command(words) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    "given",
    [
        ("pruning", {"k": 8, "m": 4, "stride": 10.0}, {"until": 2000.0}),
        ("pmoe", {**SIZES, "step": 0.25}, {"backend": "jax"}),
    ],
)
def test_steps_in_pieces_are_the_same_steps(given, monkeypatch):
    name, parameters, options = given
    case = Case.build(name, parameters, save_points=4, **options)
    whole = solve.solve(case)
    monkeypatch.setattr(driver.Pace, "count", lambda pace, remaining: min(remaining, 3))
    pieces = solve.solve(case)
    assert whole.outcome == pieces.outcome
    assert whole.statistics["steps"] == pieces.statistics["steps"] > 30
    for component in whole.state:
        assert np.array_equal(whole.state[component], pieces.state[component])
    for extra in whole.extras:  # hitting times among them
        assert np.array_equal(whole.extras[extra], pieces.extras[extra], equal_nan=True)


def test_a_recursion_of_endless_steps_hears_ctrl_c_and_goes_on(tmp_path):
    case = Case.build("pruning", {"k": 8, "m": 4, "stride": 0.1}, until=2000.0, save_points=2)
    whole, checkpoint = solve.solve(case), Checkpoint(tmp_path, case.digest)
    seen: list[float] = []

    def progress(done: float, until: float) -> None:
        seen.append(done)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solve.solve(case, progress=progress, checkpoint=checkpoint)
    assert 0.0 < seen[0] < case.until  # between the only two times that are saved
    again = solve.solve(case, checkpoint=checkpoint)
    assert all(np.array_equal(whole.state[name], again.state[name]) for name in whole.state)

"""Optimal schedules: closed forms of one-dimensional models, published settings, constraints, refusals, SGD."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

import odesim
from derivations.contract import UsageError

NOISE = 0.25
LINEAR = {
    "student": {"unit": "w"},
    "teacher": {"noise": NOISE**0.5},
    "training": {"limit": "online", "step": 0.3},
    "start": {"norm": 1.0, "overlap": 0.5},
}
"""Streaming least squares: E' = -2uE + u^2 (E + s^2), E(0) = 1, optimal u = E/(E + s^2)."""
PUBLISHED = {1: 0.481518968566, 5: 0.0884910112687, 10: 0.0360848383071, 100: 0.00265063439357}
CONSTANTS = {1: (0.726383, 0.482530131716), 5: (0.421735, 0.100270842260), 10: (0.256851, 0.0477826947881),
             100: (0.0371826, 0.00540937774405)}  # fmt: skip
EXCESS = {(1, 5): 3e-9, (1, 20): 1e-11, (5, 5): 8e-6, (5, 20): 3e-8, (10, 5): 9e-5, (10, 20): 3e-7,
          (100, 5): 2.2e-2, (100, 20): 2.5e-4}  # fmt: skip
"""Largest excess over the optimum by horizon and knots, relative."""


def exact_error(until):
    """The least final error of streaming least squares, from ln(1/E) + s^2 (1/E - 1) = T."""
    return brentq(lambda E: np.log(1 / E) + NOISE * (1 / E - 1) - until, 1e-6, 1, xtol=1e-16)


def least(until, knots=20, **options):
    model = odesim.declare(**LINEAR)
    return odesim.optimise(model, minimise="final error", until=until, knots=knots, between=(0, 2), **options)


@pytest.mark.parametrize(
    ("until", "knots"),
    [
        (1, 5),
        (10, 20),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in EXCESS if case not in [(1, 5), (10, 20)]),
    ],
)
def test_streaming_least_squares_has_its_closed_optimum(until, knots):
    answer = least(until, knots)
    exact, numbers = exact_error(until), answer.summary()
    assert exact == pytest.approx(PUBLISHED[until], rel=1e-10)
    assert -1e-10 < answer.value / exact - 1 <= 1.1 * EXCESS[until, knots]
    assert numbers["polished_value"] == pytest.approx(exact, rel=1e-8)
    assert numbers["greedy_value"] == pytest.approx(exact, rel=1e-6)  # a monotone state: greed is optimal
    assert (numbers["constant"], numbers["constant_value"]) == pytest.approx(CONSTANTS[until], rel=1e-5)
    assert numbers["constant_value"] == pytest.approx(CONSTANTS[until][1], rel=1e-8)
    assert answer["polished_schedule"][-1] == pytest.approx(exact / (exact + NOISE), rel=1e-6)
    # The last state and costate are parallel, so are all in a monotone one-dimensional state of three entries.
    assert answer["alignment"][-1] == pytest.approx(1.0, abs=1e-12)


def test_least_time_of_phase_retrieval_has_its_closed_form():
    answer = odesim.optimise("arnaboldi_2023", minimise="first time M_ww >= .9", between=(0, 0.16), knots=10, until=60)
    numbers, s2 = answer.summary(), 0.09

    def best(m):
        return (1 - m**2) / (12 * (1 - m**2) + s2)

    def speed(t, y):
        u, m = best(y[0]), y[0]
        return [u * m * (4 * (1 - 6 * u) * (1 - m**2) - 2 * u * s2)]

    def passed(t, y):
        return y[0] - 0.9

    passed.terminal = True
    exact = solve_ivp(speed, (0, 60), [0.05], events=passed, rtol=1e-12, atol=1e-14, method="DOP853").t[-1]
    assert exact == pytest.approx(22.5801562997, rel=1e-10)
    assert 0 <= answer.value / exact - 1 <= 1e-6
    assert numbers["greedy_value"] == pytest.approx(exact, rel=1e-8)
    assert numbers["constant_value"] == pytest.approx(22.5812811192, rel=1e-8)
    assert numbers["constant"] == pytest.approx(0.0823535605, rel=1e-4)
    assert answer["alignment"].min() > 1 - 1e-9


@pytest.mark.slow
def test_more_knots_come_closer_to_the_least_time():
    excess = []
    for knots in (5, 20):
        answer = odesim.optimise(
            "arnaboldi_2023", minimise="first time M_ww >= .9", between=(0, 0.16), knots=knots, until=60
        )
        excess.append(answer.value - 22.5801562997)
    assert 0 < excess[1] < 2e-7 < excess[0] < 3e-5


def test_a_budget_is_kept_and_its_multiplier_is_constant():
    budget, until = 1.5, 5.0
    answer = least(until, 10, budget=budget)
    assert answer.summary()["integral"] == pytest.approx(budget, rel=1e-9)
    knots, u = answer["knot"], answer["schedule"]

    def slope(t, y):
        v = np.interp(t, knots, u)
        return [-2 * v * y[0] + v**2 * (y[0] + NOISE), -(-2 * v + v**2) * y[1]]

    # E forwards; the costate p = dE(T)/dE(t) is 1 at the end, so that p(t) = p(0) times its growth.
    run = solve_ivp(slope, (0, until), [1.0, 1.0], t_eval=np.linspace(0, until, 201), rtol=1e-10, max_step=0.05)
    error, costate = run.y[0], run.y[1] / run.y[1, -1]
    v = np.interp(run.t, knots, u)
    multiplier = costate * (2 * error - 2 * v * (error + NOISE))
    inside = v > 1e-3
    assert inside.mean() > 0.5
    assert np.std(multiplier[inside]) < 0.03 * np.mean(multiplier[inside])
    free, best_constant = exact_error(until), answer.summary()["constant_value"]
    assert free < answer.value < best_constant and answer.summary()["greedy_value"] is None


def test_the_schedule_is_a_model_that_integrate_takes(tmp_path):
    answer = least(5, 5, noise=0.4)
    answer.save(tmp_path / "best", pictures=False)
    run = odesim.integrate(tmp_path / "best" / "optimum.toml", config=tmp_path / "best" / "run.toml", rtol=1e-11)
    assert run.origin.parameters["noise"] == 0.4
    assert float(run["error"][-1]) == pytest.approx(answer.value, rel=1e-6)
    asked = odesim.integrate(answer.asked.known, config=tmp_path / "best" / "run.toml", rtol=1e-11)
    assert float(asked["error"][-1]) == float(run["error"][-1])
    again = odesim.load(tmp_path / "best")
    assert again.files() == answer.files() and again.tables() == answer.tables()
    direct = odesim.integrate(answer.model(), **answer.parameters(), until=5)
    assert float(direct["error"][-1]) == pytest.approx(answer.value, rel=1e-6)


@pytest.mark.slow
def test_compressed_sgd_follows_the_promised_schedule():
    answer = least(5, 8)
    run = odesim.simulate(answer.model(), method="compressed", d=8000, until=5, seeds=64, seed=3, save_points=2)
    errors = np.asarray(run["error"])[:, -1]
    score = (errors.mean() - answer.value) / (errors.std(ddof=1) / np.sqrt(errors.size))
    assert errors.size == 64 and abs(score) < 4
    # Power: the best constant promises another value, which the same runs refute.
    other = (errors.mean() - answer.summary()["constant_value"]) / (errors.std(ddof=1) / np.sqrt(errors.size))
    assert abs(other) > 6


@pytest.mark.slow
def test_a_committee_on_its_plateau_needs_more_than_greed():
    model = odesim.declare(
        student={"unit": "erf(w/sqrt(2))", "units": 2}, teacher={"units": 2, "noise": 0.1},
        training={"limit": "online", "step": 1.0}, start={"norm": 0.5},
    )  # fmt: skip
    start = {"Q_ww": 0.25 * np.eye(2), "M_ww": np.array([[0.01, -0.005], [0.003, 0.008]])}
    answer = odesim.optimise(model, minimise="final error", until=100, between=(0, 5), initial=start)
    numbers = answer.summary()
    assert answer.value == pytest.approx(2.300e-3, rel=1e-3)
    assert numbers["polished_value"] == pytest.approx(2.295e-3, rel=1e-3)
    assert numbers["greedy_value"] == pytest.approx(2.58e-2, rel=5e-3)
    assert numbers["constant_value"] == pytest.approx(1.095e-2, rel=5e-3) and 1.0 < numbers["constant"] < 1.3
    assert numbers["alignment"] < 0.01 and answer["alignment"][-1] == pytest.approx(1.0, abs=1e-9)
    # Steps of the sketch at t = 0, 10, .., 100.
    steps = np.interp(np.linspace(0, 100, 11), answer["polished_time"], answer["polished_schedule"])
    np.testing.assert_allclose(steps, [0.61, 1.53, 1.56, 1.58, 1.60, 1.60, 1.57, 1.49, 1.31, 0.46, 0.13], atol=0.01)
    assert "not optimal" in " ".join(answer.sentences)


@pytest.mark.parametrize(("early", "late"), [(1.0, 0.1), (0.1, 1.0)])
def test_the_best_step_along_a_curriculum_has_its_closed_equation(early, late):
    # E' = -h (2 - h) E + h^2 s(t)^2 is least at h = E/(E + s^2), and greed is optimal for one rising order parameter.
    tables = {**LINEAR, "teacher": {"noise": f"{early} + ({late} - {early})*t/10"}}
    answer = odesim.optimise(odesim.declare(**tables), until=10.0, knots=20, between=(0.0, 1.0), overlap=0.0)

    def velocity(t, error):
        return -(error**2) / (error + (early + (late - early) * t / 10) ** 2)

    own = solve_ivp(velocity, (0, 10), [2.0], rtol=1e-11, atol=1e-13).y[0, -1]
    assert answer.summary()["polished_value"] == pytest.approx(own, rel=1e-5)
    assert own <= answer.value < own * (1 + 1e-4)


def test_what_lessons_cannot_be_optimised_is_said():
    with pytest.raises(odesim.UsageError, match="declared models with one stage"):
        odesim.optimise("mori_2024", until=220.0)
    with pytest.raises(odesim.UsageError, match="jump at t = 5"):
        odesim.optimise("mignacco_mori_2025", until=10.0)


@pytest.mark.slow
def test_noise_and_decay_may_vary_too():
    model = odesim.declare(**LINEAR)
    answer = odesim.optimise(model, vary="decay", minimise="final error", until=4, knots=4, between=(0, 1))
    zero = float(odesim.integrate(model, decay=0.0, until=4)["error"][-1])
    assert answer.value <= zero * (1 + 1e-9)


@pytest.mark.parametrize(
    ("system", "options", "sentence"),
    [
        ("saad_solla_1995", {}, "gradient flow, the limit of small steps: it has no step"),
        ("liao", {}, "declared model"),
        (LINEAR, {"vary": "batch"}, "vary= must be one of step, decay, noise"),
        (LINEAR, {"minimise": "error"}, "cannot be read"),
        (LINEAR, {"between": (2, 1)}, "must be two increasing"),
        (LINEAR, {"between": "1"}, "two numbers"),
        (LINEAR, {"knots": 0}, "between 1 and 500"),
        (LINEAR, {"vary": "decay"}, "between= is missing"),
        (LINEAR, {"minimise": "first time error <= 1e-9"}, "no constant between the bounds reaches"),
    ],
)
def test_what_cannot_be_optimised_is_refused(system, options, sentence):
    chosen = odesim.declare(**system) if isinstance(system, dict) else system
    with pytest.raises(UsageError, match=sentence):
        odesim.optimise(chosen, until=3, **options)


def test_giant_steps_have_no_schedule_here():
    training = {"limit": "batch", "batch": "3*d", "step": 0.5}
    model = odesim.declare(student={"unit": "w"}, teacher={"noise": 0.1}, training=training)
    with pytest.raises(UsageError, match="giant steps"):
        odesim.optimise(model, until=3)

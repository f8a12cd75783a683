"""Values of training that change in time: closed forms, pieces run one after the other, and what is refused."""

import numpy as np
import pytest
from scipy.integrate import quad

import odesim
from derivations.contract import UsageError
from derivations.declare import reading, schedules
from derivations.statement import Statement
from odesim.flow.problem import prepare
from odesim.request.case import Case

COMMITTEE = {
    "name": "committee",
    "student": {"units": 2, "unit": "erf(w/sqrt(2))", "output": "trained"},
    "teacher": {"units": 2, "noise": [[0, 0.3], [2, 0.0]]},
    "start": {"overlap": 0.2},
}
SCHEDULED = {
    "limit": "online",
    "step": "kappa/(1 + t/10)*(1 - 0.5*step(t - 3))",
    "decay": "0.02*exp(-t)",
    "rates": {"w": 1.0, "a": [[0, 0.0], [1, "0.5 + 0.1*relu(t - 2)"]]},
}


def committee(**training):
    return odesim.declare(**COMMITTEE, training={**SCHEDULED, **training}, parameters={"kappa": 1.2})


def linear(step, noise=0.0, **training):
    """One linear unit: M' = eta (1 - M)."""
    return odesim.declare(
        name="linear",
        student={"unit": "w"},
        teacher={"noise": noise},
        training={"limit": "online", "step": step, **training},
        start={"norm": 0.5, "overlap": 0.0},
        parameters={"kappa": 0.8},
    )


@pytest.mark.parametrize("backend", ["numba", "jax"])
@pytest.mark.parametrize(
    ("step", "eta"),
    [
        ("kappa/(1 + t)", lambda t: 0.8 / (1 + t)),
        ([[0, 1.0], [2, 0.25], [3.5, "0.1*t"]], lambda t: 1.0 if t < 2 else 0.25 if t < 3.5 else 0.1 * t),
        ("0.2 + abs(t - 2)/4 + 0.1*sign(3 - t)", lambda t: 0.2 + abs(t - 2) / 4 + (0.1 if t < 3 else -0.1)),
        ("0.1 + relu(1 - t/2)*0.5*(1 + sin(2*t))", lambda t: 0.1 + max(1 - t / 2, 0) * 0.5 * (1 + np.sin(2 * t))),
    ],
)
def test_a_linear_unit_follows_the_integral_of_its_step(step, eta, backend):
    times = np.array([0.0, 1.0, 2.0, 3.0, 3.5, 5.0])
    run = odesim.integrate(linear(step, noise=0.4), backend=backend, save_at=times, rtol=1e-10)
    corners = (2.0, 3.0, 3.5)
    for k, t in enumerate(times):
        area = quad(eta, 0, t, points=[c for c in corners if c < t] or None, limit=200)[0] if t else 0.0
        assert float(run["M_ww"][k, 0, 0]) == pytest.approx(1 - np.exp(-area), abs=1e-8)

    def error(t):  # E' = (eta^2 - 2 eta) E + eta^2 noise^2 by its integrating factor
        def factor(s):
            if s == t:
                return 1.0
            inside = [c for c in corners if s < c < t] or None
            return np.exp(quad(lambda u: eta(u) ** 2 - 2 * eta(u), s, t, points=inside, limit=200)[0])

        gained = quad(lambda s: eta(s) ** 2 * 0.16 * factor(s), 0, t, points=[c for c in corners if c < t] or None)[0]
        return 1.25 * factor(0.0) + gained

    for k in (2, 5):
        assert float(run["error"][k]) == pytest.approx(error(times[k]), rel=1e-7)


def test_pairs_are_runs_one_after_the_other(tmp_path):
    model = committee(step=[[0, 1.0], [2, 0.25]], decay=0.0, rates={"a": [[0, 0.3], [2, 2.0]]})
    times = [0, 1, 2, 3, 4]
    whole = odesim.integrate(model, save_at=times, rtol=1e-10)
    first = odesim.integrate(model, step=1.0, noise=0.3, rate_a=0.3, until=2, rtol=1e-10, save_at=[0, 1, 2])
    state = {name: np.asarray(first[name])[-1] for name in ("Q_ww", "M_ww", "a")}
    second = odesim.integrate(
        model, step=0.25, noise=0.0, rate_a=2.0, until=2, rtol=1e-10, save_at=[0, 1, 2], initial={**state, **fixed()}
    )
    for name in state:
        assert np.asarray(whole[name])[:3] == pytest.approx(np.asarray(first[name]), abs=1e-9)
        assert np.asarray(whole[name])[2:] == pytest.approx(np.asarray(second[name]), abs=1e-9)
    # The noise that a saved loss has is that of its time, from the jump on that after it.
    assert np.asarray(whole["loss"] - whole["error"] / 2) == pytest.approx(np.array([0.045, 0.045, 0, 0, 0]), abs=1e-12)


def fixed():
    return {"P_ww": np.eye(2), "a_star": np.ones(2)}


def test_a_rate_of_a_flow_is_another_clock():
    def model(**training):
        return odesim.declare(**{**COMMITTEE, "teacher": {"units": 2}}, training=training)

    plain = odesim.integrate(model(), save_at=[0, np.log(2), np.log(4)], rtol=1e-10)
    slowed = odesim.integrate(model(rates="1/(1 + t)"), save_at=[0, 1, 3], rtol=1e-10)
    for name in ("Q_ww", "M_ww", "a"):
        assert np.asarray(slowed[name]) == pytest.approx(np.asarray(plain[name]), abs=1e-8)


@pytest.mark.parametrize("solver", ["Radau", "CVODE", "DOP853"])
def test_every_integrator_stops_at_the_jumps(solver):
    times = [0, 1.5, 2.5, 5]
    expected = odesim.integrate(committee(), save_at=times, rtol=1e-11)
    found = odesim.integrate(committee(), save_at=times, rtol=1e-9, solver=solver)
    for name in ("Q_ww", "M_ww", "a", "loss"):
        assert np.asarray(found[name]) == pytest.approx(np.asarray(expected[name]), abs=2e-8)


def test_a_map_changes_at_the_first_step_from_a_jump_on():
    exact = odesim.integrate(committee(), save_at=[0, 1.5, 5], rtol=1e-10)
    errors = []
    for step in (2e-3, 1e-3):
        found = odesim.integrate(committee(), solver="euler", step=step, save_at=[0, 1.5, 5])
        errors.append(np.abs(np.asarray(found["M_ww"] - exact["M_ww"])).max())
    assert errors[1] < 1e-3 and errors[1] == pytest.approx(errors[0] / 2, rel=0.02)


def test_a_sampled_tier_has_the_same_schedule():
    exact = odesim.integrate(committee(), save_at=[0, 1.5, 2.5, 5])
    for tier in ("sampled", "mixed"):
        found = odesim.integrate(committee(), save_at=[0, 1.5, 2.5, 5], tier=tier)
        for name in ("Q_ww", "M_ww", "a", "loss"):
            assert np.asarray(found[name]) == pytest.approx(np.asarray(exact[name]), abs=2e-3)


def test_a_piece_that_is_not_in_force_may_have_no_value():
    # 1/(t - 1) is infinite at t = 1, where the first piece holds.
    model = committee(step=[[0, 1.0], [2, "1/(t - 1)"]], rates={})
    for options in ({}, {"backend": "jax"}, {"tier": "sampled"}):
        run = odesim.integrate(model, save_at=[0, 1, 3], **options)
        assert np.isfinite(np.asarray(run["M_ww"])).all() and np.isfinite(np.asarray(run["loss"])).all()


@pytest.mark.parametrize("until", [1.5, 2.0])
def test_a_run_goes_on_with_the_schedule(until):
    whole = odesim.integrate(committee(), until=5, rtol=1e-10)
    first = odesim.integrate(committee(), until=until, rtol=1e-10)
    (second,) = odesim.integrate(after=first, until=5, rtol=1e-10)
    for name in ("Q_ww", "M_ww", "a", "loss"):
        assert np.asarray(second[name])[-1] == pytest.approx(np.asarray(whole[name])[-1], abs=1e-8)
    assert np.allclose(second["t"], second["time"], rtol=0, atol=1e-12)
    there, again = (odesim.linearise(run, 4.0) for run in (whole, second))
    assert again.slope == pytest.approx(there.slope, abs=1e-8)
    assert second(2.5)["M_ww"] == pytest.approx(whole(2.5)["M_ww"], abs=1e-8)
    fresh = odesim.integrate(committee(), initial=first, until=1)  # a new run, whose clock begins at 0
    assert float(fresh["t"][0]) == 0.0


def test_states_between_saved_ones_and_linearisations_belong_to_their_time():
    run = odesim.integrate(committee(), save_at=[0, 1, 5], rtol=1e-10)
    exact = odesim.integrate(committee(), save_at=[0, 1.5, 2.5, 4], rtol=1e-10)
    for k, t in enumerate((1.5, 2.5, 4.0), 1):
        assert run(t)["M_ww"] == pytest.approx(np.asarray(exact["M_ww"])[k], abs=1e-8)
    late = odesim.linearise(run, 4.0)
    names = late.problem.equations.unpack(late.slope)
    moved = odesim.integrate(committee(), save_at=[0, 3.999, 4.001], rtol=1e-12)
    difference = (np.asarray(moved["M_ww"])[2] - np.asarray(moved["M_ww"])[1]) / 0.002
    assert names["M_ww"] == pytest.approx(difference, abs=1e-7)


def test_the_equations_in_sympy_are_those_of_every_time():
    run = odesim.integrate(committee(), save_at=[0, 0.5, 1.5, 2.5, 4])
    slope = odesim.derive(committee(), "sympy").lambdify()
    for k in range(5):
        state = {name: np.asarray(run[name])[k] for name in ("Q_ww", "M_ww", "a", "t")}
        there = odesim.linearise(run, float(run["time"][k]))
        expected = there.problem.equations.unpack(there.slope)
        for name, value in slope(state).items():
            assert value == pytest.approx(expected[name], abs=1e-12)


def test_a_number_takes_the_place_of_a_schedule():
    model = committee()
    assert [one.name for one in schedules.active(model.parameters())] == ["step", "decay", "noise", "rate_a"]
    case = Case.build(model, {"step": 0.5, "noise": 0.1, "decay": 0.0, "rate_a": 1.0}, until=1.0)
    assert schedules.active(case.parameters) == () and prepare(case).smooth.breaks == ()
    assert prepare(Case.build(model, {"step": 0.5}, until=1.0)).smooth.breaks == (1.0, 2.0)


def test_the_page_says_how_values_change():
    page = odesim.derive(committee(), "text")
    assert (
        "eta(t) = kappa/(1 + t/10)*(1 - 0.5*step(t - 3))" in page and "sigma(t) = 0.3 from 0 on, 0.0 from 2 on" in page
    )
    assert "r_a = 0.0 from 0 on, 0.5 + 0.1*relu(t - 2) from 1 on, the factor of the step for a" in page


def test_a_model_without_schedules_has_no_clock():
    model = odesim.declare(**{**COMMITTEE, "teacher": {"units": 2}}, training={"step": 0.1, "rates": {"w": 2.0}})
    stated: Statement = prepare(Case.build(model, {}, until=1.0)).equations.code.statement()
    assert "t" not in {str(variable.target) for variable in stated.state}


@pytest.mark.parametrize(
    ("training", "sentence"),
    [
        (
            {"limit": "flow", "step": "1/(1 + t)"},
            "so step must be constant: for a time-dependent speed write rates = '..'",
        ),
        ({"step": [[0, 1.0], [10, 0.5], [5, 0.2]]}, "times of step must increase from 0, but 5 follows 10"),
        ({"step": [[1, 1.0]]}, "times of step must increase from 0, but the first is 1"),
        ({"step": []}, r"step is a number, an expression in t, or a list of pairs such as \[\[0, 1.0\]"),
        ({"step": [[0, 1.0, 2.0]]}, "step is a number, an expression in t, or a list of pairs"),
        (
            {"step": "step(t*t - 1)"},
            "a value jumps or bends only at fixed times: step.* must have an argument that is linear in t",
        ),
        ({"step": "sign(exp(t))"}, "a value jumps or bends only at fixed times"),
        ({"step": "2 - w"}, "unknown name 'w' in '2 - w'"),
        ({"step": "He(2, t)"}, "step takes the functions .*, not He"),
        ({"step": "1 - 2*step(t)"}, "step is -1 at t = 0, but must be above 0"),
        ({"step": "log(t)"}, "step has no value at t = 0"),
        ({"decay": "t - 1"}, "decay is -1 at t = 0, but must be at least 0"),
        ({"rates": {"a": "-t - 1"}}, "rate_a is -1 at t = 0"),
        ({"rates": {"b": "t"}}, "rates names 'b', which is not trained"),
    ],
)
def test_wrong_schedules_are_refused_in_a_sentence(training, sentence):
    with pytest.raises(UsageError, match=sentence):
        committee(**training)


def test_a_value_that_leaves_its_domain_is_refused_before_the_run():
    model = committee(step="1 - t/4", rates={})
    odesim.integrate(model, until=3)
    with pytest.raises(UsageError, match=r"step is -0\.\d+ at t = \d.* must be at least 0"):
        odesim.integrate(model, until=5)
    with pytest.raises(UsageError, match=r"step is .* at t = .* must be at least 0"):
        odesim.simulate(model, method="compressed", d=50, until=5)


def test_a_step_size_and_a_schedule_are_two_answers():
    with pytest.raises(UsageError, match=r"is a constant, but step is 'kappa.*': replace it by .*step=0.5"):
        odesim.simulate(committee(), method="compressed", d=50, step_size=0.01, until=1)


def test_t_is_the_time_where_a_value_uses_it(tmp_path):
    path = tmp_path / "t.toml"
    path.write_text(
        '[student]\nunit = "erf(t)"\n[teacher]\nunit = "erf(v)"\n[training]\nlimit = "online"\n'
        'step = "1/(1 + t)"\n[parameters]\n'
    )
    assert reading.from_file(path).students[0].slots == ("t",)  # a slot of this name is another thing
    path.write_text(path.read_text().replace("erf(t)", "erf(w + t)") + 't = {default = 1.0, per = "unit"}\n')
    with pytest.raises(UsageError, match="the name 't' is already the name of a variable of a run"):
        reading.from_file(path)

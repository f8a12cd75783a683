"""Shared numbers of [parameters] that change in time: closed motions, runs one after the other, SGD, and refusals."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import odesim
from derivations.contract import UsageError
from derivations.declare.tiers import settled

STEP, NOISE = 0.4, 0.3


def linear(beta, kappa=1.0, **tables):
    """A student beta(t) w.x of a teacher kappa(t) w*.x."""
    return odesim.declare(
        student={"unit": "beta*w"}, teacher={"unit": "kappa*w", "noise": NOISE},
        training={"limit": "online", "step": STEP, "until": 4}, start={"norm": 0.8, "overlap": 0.1},
        parameters={"beta": beta, "kappa": kappa}, **tables,
    )  # fmt: skip


def committee(beta, **tables):
    return odesim.declare(
        student={"unit": "erf(beta*w)", "units": 2}, teacher={"unit": "erf(w)", "units": 2, "noise": 0.1},
        training={"limit": "online", "step": 0.8, "until": 4, **tables.pop("training", {})},
        start={"overlap": 0.2}, parameters={"beta": beta}, **tables,
    )  # fmt: skip


def closed(beta, kappa, times):
    """M and Q at some times, by the motion of two numbers, written by hand."""

    def slope(t, y):
        m, q = y
        b, k = beta(t), kappa(t)
        squared = b**2 * q - 2 * b * k * m + k**2 + NOISE**2
        return [STEP * b * (k - b * m), 2 * STEP * b * (k * m - b * q) + STEP**2 * b**2 * squared]

    return solve_ivp(slope, (0, times[-1]), [0.08, 0.64], t_eval=times, rtol=1e-10, atol=1e-12, max_step=0.02).y


CHANGING = [
    ("0.5 + exp(-t)", 1.0, lambda t: 0.5 + np.exp(-t), lambda t: 1.0),
    (1.0, "cos(t/2)", lambda t: 1.0, lambda t: np.cos(t / 2)),
    ([[0, 0.5], [2, "1 - t/8"]], "0.5*step(3 - t)", lambda t: 0.5 if t < 2 else 1 - t / 8, lambda t: 0.5 * (t < 3)),
    ("1.5 - abs(t - 2)", 1.0, lambda t: 1.5 - abs(t - 2), lambda t: 1.0),
]


@pytest.mark.parametrize("backend", ["numba", "jax"])
@pytest.mark.parametrize(("beta", "kappa", "beta_of", "kappa_of"), CHANGING)
def test_a_linear_unit_follows_its_closed_motion(beta, kappa, beta_of, kappa_of, backend):
    times = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    wanted = closed(beta_of, kappa_of, times)
    run = odesim.integrate(linear(beta, kappa), backend=backend, save_at=times, rtol=1e-10)
    np.testing.assert_allclose(run["M_ww"].ravel(), wanted[0], atol=1e-7)
    np.testing.assert_allclose(run["Q_ww"].ravel(), wanted[1], atol=1e-7)
    sampled = odesim.integrate(linear(beta, kappa), backend=backend, save_at=times, tier="sampled", rtol=1e-8)
    np.testing.assert_allclose(sampled["Q_ww"].ravel(), wanted[1], atol=2e-3)


@pytest.mark.parametrize("tier", ["exact", "mixed", "sampled"])
def test_pieces_are_runs_one_after_the_other(tier):
    asked = {"tier": tier, "save_at": [0, 1, 2, 3, 4], "rtol": 1e-10}
    whole = odesim.integrate(committee([[0, 1.5], [2, 0.6]]), **asked)
    first = odesim.integrate(committee(1.5), **{**asked, "save_at": [0, 1, 2]})
    state = {name: first[name][-1] for name in ("Q_ww", "M_ww")}
    second = odesim.integrate(committee(0.6), **{**asked, "save_at": [0, 1, 2]}, initial=state)
    for name in ("Q_ww", "M_ww", "error"):
        np.testing.assert_allclose(whole[name][:2], first[name][:2], rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(whole[name][2:], second[name], rtol=1e-7, atol=1e-9)


def test_a_number_takes_the_place_of_the_schedule_and_a_schedule_that_of_a_number():
    asked = {"save_at": [0, 1, 4]}
    wanted = odesim.integrate(committee(0.6), **asked)
    replaced = odesim.integrate(committee("1/(1 + t)"), beta=0.6, **asked)
    np.testing.assert_allclose(replaced["M_ww"], wanted["M_ww"], rtol=1e-7)
    scheduled = odesim.integrate(committee("1/(1 + t)"), **asked)
    for model in (committee(0.6), committee({"default": 0.6, "meaning": "slope", "minimum": 0.1})):
        given = odesim.integrate(model, beta="1/(1 + t)", **asked)
        np.testing.assert_allclose(given["M_ww"], scheduled["M_ww"], rtol=1e-9)
    assert abs(float(scheduled["M_ww"][-1, 0, 0]) - float(wanted["M_ww"][-1, 0, 0])) > 1e-2


def expected_overlap(beta, kappa, d, until):
    """E[M] of online SGD, exact at every d: M' = M + (step/d) beta (kappa - beta M) at the time of the step."""
    m = 0.08
    for k in range(round(until * d)):
        t = k / d
        m += STEP / d * beta(t) * (kappa(t) - beta(t) * m)
    return m


@pytest.mark.parametrize(
    ("method", "backend", "seeds"),
    [
        ("compressed", "numba", 4000),
        ("compressed", "jax", 2000),
        ("explicit", "jax", 1500),
    ],
)
def test_sgd_takes_the_value_of_the_time_of_its_step(method, backend, seeds):
    d, until = 12, 4
    model = linear([[0, 1.5], [2, "0.3 + t/10"]], "1 + 0.5*t")

    def beta(t):
        return 1.5 if t < 2 else 0.3 + t / 10

    wanted = expected_overlap(beta, lambda t: 1 + 0.5 * t, d, until)
    constant = expected_overlap(lambda t: 1.5, lambda t: 1.0, d, until)
    initial = {"Q_ww": [[0.64]], "M_ww": [[0.08]]}
    runs = odesim.simulate(
        model, method=method, d=d, until=until, seeds=seeds, save_points=2, initial=initial, backend=backend
    )
    found = np.asarray(runs["M_ww"])[:, -1, 0, 0]
    error = found.std() / np.sqrt(seeds)
    assert abs(found.mean() - wanted) < 4.5 * error
    assert abs(found.mean() - constant) > 9 * error  # numbers that stay as they were


def test_units_losses_rules_and_predictions_may_name_it():
    for tables in (
        {"student": {"unit": "w"}, "training": {"limit": "online", "rule": "clip(dl, beta)*df", "step": 0.5}},
        {"student": {"unit": "w"}, "training": {"limit": "online", "loss": "beta*(f - y)^2/2", "step": 0.5}},
        {"student": {"unit": "w"}, "teacher": {"unit": "w", "prediction": "beta*y"},
         "training": {"limit": "online", "step": 0.5}},
    ):  # fmt: skip
        tables = {"teacher": {"unit": "w"}, "start": {"overlap": 0.1}, **tables}
        asked = {"save_at": [0, 1, 2], "rtol": 1e-9}
        changing = odesim.declare(**tables, parameters={"beta": [[0, 1.0], [1, 0.4]]})
        run = odesim.integrate(changing, **asked)
        first, second = (odesim.declare(**tables, parameters={"beta": value}) for value in (1.0, 0.4))
        begun = odesim.integrate(first, save_at=[0, 1], rtol=1e-9)
        state = {name: begun[name][-1] for name in ("Q_ww", "M_ww")}
        ended = odesim.integrate(second, save_at=[0, 1], rtol=1e-9, initial=state)
        np.testing.assert_allclose(run["M_ww"][-1], ended["M_ww"][-1], rtol=1e-6)
        assert abs(float(run["M_ww"][-1, 0, 0]) - float(odesim.integrate(first, **asked)["M_ww"][-1, 0, 0])) > 1e-3


def test_a_series_is_made_for_one_slope():
    model = odesim.declare(
        student={"unit": "tanh(beta*w)"}, teacher={"unit": "tanh(w)"}, start={"norm": 1.0, "overlap": 0.2},
        training={"weights": "sphere", "until": 2}, parameters={"beta": "1 + t"},
    )  # fmt: skip
    assert settled(model.parameters()) == "sampled" and settled(model.parameters(beta=1.0)) == "exact"
    with pytest.raises(UsageError, match="the means of tanh are series for one slope, but beta is time-dependent"):
        odesim.integrate(model, tier="exact")
    pieces = odesim.integrate(model, beta=[[0, 1.0], [1, 2.0]], save_at=[0, 1, 2])
    begun = odesim.integrate(model, beta=1.0, save_at=[0, 1])
    assert float(pieces["M_ww"][1, 0, 0]) == pytest.approx(float(begun["M_ww"][1, 0, 0]), abs=2e-3)


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({"parameters": {"beta": "1 - t"}}, "changes its sign by t = 1; take tier=sampled"),
        (
            {"parameters": {"beta": {"default": "1 + t", "maximum": 3}}},
            "beta is 3.004 at t = 2.004, but must be at most",
        ),
        ({"parameters": {"beta": "1 + M_ww[1,1]"}}, "parameter beta can depend only on time, but contains M_ww[1,1]"),
        ({"parameters": {"beta": "1 + u"}}, "unknown name 'u'"),
        (
            {"training": {"decay": "0.1*beta"}},
            "beta is time-dependent, but [training] decay takes constant numbers only",
        ),
        ({"inputs": {"blocks": [["beta", 0.5], [1.0, 0.5]]}}, "but [inputs] blocks takes constant numbers only"),
        ({"memory": {"s": {"start": 0.0, "rate": "beta"}}}, "but [memory] rate takes constant numbers only"),
    ],
)
def test_what_takes_no_number_that_changes_is_refused(tables, words):
    with pytest.raises(UsageError) as refused:
        odesim.integrate(committee(**{"beta": "1 + t", **tables}) if "parameters" not in tables else given(tables))
    assert words in str(refused.value)


def given(tables):
    return committee(tables["parameters"]["beta"])


@pytest.mark.parametrize("tables", [{}, {"training": {"step": "0.8/(1 + t)", "batch": 3}}])
def test_its_derivatives_are_those_of_the_loss_of_a_sample(tables):
    found = odesim.verify(committee("0.5 + 0.5*exp(-t)", **tables), claims=["drift", "second-order", "microscope"])
    assert [verdict.answer for verdict in found] == ["confirmed"] * 3


def test_what_is_asked_of_one_model_for_all_times_is_refused():
    model = committee("1 + t")
    for call in (odesim.exponents, odesim.atlas, lambda asked: odesim.export(asked, to="numpy")):
        with pytest.raises(UsageError, match=r"chang|time-dependent") as refused:
            call(model)
        assert "beta" in str(refused.value) or "time-dependent values" in str(refused.value)
    assert odesim.exponents(model, beta=1.0).summary()

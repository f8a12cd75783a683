"""Derivatives of final values and hitting times: closed forms, differences of runs, refusals."""

from pathlib import Path

import numpy as np
import pytest

import odesim
from derivations.contract import UsageError
from odesim.machine import device
from odesim.request.case import Case
from odesim.study import parameter_dependence as dependence
from odesim.study.sensitivity import derivatives

ROOT = Path(__file__).parents[3]
LINEAR = {
    "student": {"unit": "w"},
    "teacher": {"noise": 0.5},
    "training": {"limit": "online", "step": 0.4},
    "start": {"norm": 0.5, "overlap": 0.3},
}
COMMITTEE = {
    "student": {"unit": "erf(w/sqrt(2))", "units": 2},
    "teacher": {"units": 2, "noise": 0.3},
    "training": {"limit": "online", "step": 0.5},
    "start": {"norm": 0.5, "overlap": 0.2},
}


@pytest.fixture(autouse=True)
def double():
    with device.double():
        yield


def slopes_of(function, point):
    """Derivatives of an analytic function by the complex step, exact to rounding."""
    return np.array([function(*(np.array(point) + 1e-30j * e)).imag / 1e-30 for e in np.eye(len(point))])


def run_differences(system, measure, name, until, **parameters):
    """Derivative of a final value by Richardson differences of runs at tight tolerances."""
    value = parameters[name]
    step = 2e-3 * max(abs(value), 0.1)

    def final(x):
        run = odesim.integrate(system, **{**parameters, name: x}, until=until, rtol=1e-12, atol=1e-14)
        return float(run[measure][-1])

    coarse, fine = ((final(value + h) - final(value - h)) / (2 * h) for h in (step, step / 2))
    return (4 * fine - coarse) / 3


@pytest.mark.parametrize("mode", ["forward", pytest.param("adjoint", marks=pytest.mark.slow)])
def test_least_squares_has_its_closed_form(mode):
    def error(step, noise, norm, overlap):
        rate = 2 * step - step**2
        floor = step**2 * noise**2 / rate
        start = 1 + norm**2 - 2 * norm * overlap
        return floor + (start - floor) * np.exp(-3.0 * rate)

    names, point = ["step", "noise", "norm", "overlap"], [0.4, 0.5, 0.5, 0.3]
    case = Case.build(odesim.declare(**LINEAR), {}, until=3.0)
    (answer,) = derivatives(case, ["final error"], names, mode)
    scale = answer.value / error(*point)
    assert scale == pytest.approx(1.0, rel=1e-9) or scale == pytest.approx(0.5, rel=1e-9)
    np.testing.assert_allclose(answer.slopes, scale * slopes_of(error, point), rtol=1e-8)


@pytest.mark.parametrize("mode", ["forward", "adjoint"])
def test_phase_retrieval_has_its_closed_hitting_time(mode):
    def time(step, noise, start, level=0.9):
        speed = 4 * step * (1 - 6 * step) - 2 * step**2 * noise**2
        bend = 4 * step * (1 - 6 * step) / speed
        return np.log(level**2 / (1 - bend * level**2) * (1 - bend * start**2) / start**2) / (2 * speed)

    point = [0.1, 0.3, 0.05]
    case = Case.build("arnaboldi_2023", {}, until=60.0)
    (answer,) = derivatives(case, ["first time M_ww >= .9"], ["step", "noise", "overlap"], mode)
    assert answer.value == pytest.approx(time(*point), rel=1e-10)
    np.testing.assert_allclose(answer.slopes, slopes_of(time, point), rtol=1e-8)
    # The figures of the specification, whose differences were good to 4e-8.
    np.testing.assert_allclose(answer.slopes, [129.14580967, 2.88108450, -126.742714], rtol=1e-7)


@pytest.mark.slow
def test_the_floor_of_phase_retrieval_is_stationary():
    case = Case.build("arnaboldi_2023", {}, until=400.0)
    (answer,) = derivatives(case, ["final error"], ["step", "noise", "overlap"])
    step, noise = 0.1, 0.3
    exact = [2 * noise**2 / (1 - 6 * step) ** 2, 4 * step * noise / (1 - 6 * step)]
    assert answer.value == pytest.approx(2 * step * noise**2 / (1 - 6 * step), rel=1e-9)
    np.testing.assert_allclose(answer.slopes[:2], exact, rtol=1e-8)
    assert abs(answer.slopes[2]) < 1e-8


@pytest.mark.parametrize("measure", ["error", pytest.param("loss", marks=pytest.mark.slow)])
def test_a_committee_agrees_with_differences_of_runs(measure):
    model = odesim.declare(**COMMITTEE)
    parameters = {"step": 0.5, "noise": 0.3, "overlap": 0.2, "norm": 0.5, "gram": 0.1, "decay": 0.01}
    case = Case.build(model, parameters, until=20.0)
    (answer,) = derivatives(case, [f"final {measure}"], list(parameters))
    exact = [run_differences(model, measure, name, 20.0, **parameters) for name in parameters]
    np.testing.assert_allclose(answer.slopes, exact, rtol=1e-7, atol=1e-9)


@pytest.mark.slow
def test_both_modes_agree_on_several_measures():
    case = Case.build(odesim.declare(**COMMITTEE), {}, until=20.0)
    measures = ["final max(abs(M_ww))", "first time mean(Q_ww) >= 0.2", "final M_ww[1,2]"]
    forward, adjoint = (derivatives(case, measures, ["step", "overlap"], mode) for mode in ("forward", "adjoint"))
    for one, two in zip(forward, adjoint, strict=True):
        assert one.value == pytest.approx(two.value, rel=1e-9)
        np.testing.assert_allclose(one.slopes, two.slopes, rtol=1e-7)


def test_a_schedule_has_derivatives_by_its_numbers_and_by_the_time_of_its_jump():
    model = odesim.declare(
        student={"unit": "w"}, teacher={"unit": "line*u", "noise": 0.2}, start={"overlap": 0.2},
        training={"limit": "online", "step": "rate*(1 - 0.5*step(t - turn))"},
        parameters={"rate": 0.3, "line": 1.3, "turn": 4.0},
    )  # fmt: skip
    parameters = {"rate": 0.3, "line": 1.3, "turn": 4.0, "noise": 0.2}
    case = Case.build(model, parameters, until=6.0)
    (answer,) = derivatives(case, ["final error"], list(parameters))
    exact = [run_differences(model, "error", name, 6.0, **parameters) for name in parameters]
    np.testing.assert_allclose(answer.slopes, exact, rtol=2e-7)
    assert abs(answer.slopes[2]) > 1e-4
    with pytest.raises(UsageError, match="step has no value here"):
        derivatives(case, ["final error"], ["step"])


def test_a_system_that_is_not_declared_has_derivatives():
    parameters = {"rho": 1.0, "d": 100}
    case = Case.build("kawata", parameters, until=2.0)
    (answer,) = derivatives(case, ["final loss"], ["rho"])
    assert answer.slopes[0] == pytest.approx(run_differences("kawata", "loss", "rho", 2.0, **parameters), rel=1e-6)


def test_at_the_edge_of_a_domain_the_difference_is_one_sided():
    case = Case.build(odesim.declare(**LINEAR), {"noise": 0.0, "decay": 0.0}, until=3.0)
    (answer,) = derivatives(case, ["final error"], ["noise", "decay"])
    assert answer.slopes[0] == pytest.approx(0.0, abs=1e-9)  # the error is even in the noise
    model, step = odesim.declare(**LINEAR), 1e-3
    errors = [
        odesim.integrate(model, noise=0.0, decay=k * step, until=3.0, rtol=1e-12, atol=1e-14)["error"][-1]
        for k in range(3)
    ]
    one_sided = (-3 * errors[0] + 4 * errors[1] - errors[2]) / (2 * step)
    assert answer.slopes[1] == pytest.approx(one_sided, rel=1e-5)


def test_a_level_that_is_not_reached_and_one_that_is_there():
    case = Case.build("arnaboldi_2023", {}, until=5.0)
    (answer,) = derivatives(case, ["first time M_ww >= .9"], ["step"])
    assert np.isinf(answer.value) and np.isnan(answer.slopes).all()
    with pytest.raises(UsageError, match="holds at the start"):
        derivatives(case, ["first time M_ww >= .01"], ["step"])


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("d", "limit of large d does not contain"),
        ("units", r"whole number \(a size\)"),
        ("seed", "random numbers are held fixed"),
        ("sample_seed", "random numbers are held fixed"),
        ("tier", "selects the equations"),
        ("points", "selects the equations"),
        ("overlap", "no value here"),
        ("stepp", "did you mean 'step'"),
    ],
)
def test_what_has_no_derivative_is_refused_with_its_reason(name, reason):
    model = odesim.declare(**{**COMMITTEE, "start": {"norm": 0.5}})
    with pytest.raises(UsageError, match=reason):
        dependence.require(Case.build(model, {}), [name])


def test_giant_steps_and_recursions_are_refused():
    training = {"limit": "batch", "batch": "3*d", "step": 0.5}
    model = odesim.declare(student={"unit": "w"}, teacher={"noise": 0.1}, training=training)
    with pytest.raises(UsageError, match="giant steps"):
        derivatives(Case.build(model, {"overlap": 0.1}, until=3), ["final error"], ["noise"])
    with pytest.raises(UsageError, match="smooth flow"):
        derivatives(Case.build("pmoe", {}, until=2), ["final loss"], ["step"])


def test_no_source_takes_the_adjoint_that_integrates_backwards():
    forbidden = "Back" + "solveAdjoint"
    texts = [path for folder in ("odesim", "derivations") for path in (ROOT / folder).rglob("*.py")]
    assert len(texts) > 100
    assert not [path for path in texts if forbidden in path.read_text(encoding="utf-8")]


def test_the_answer_is_a_table_with_the_largest_elasticity_first(tmp_path):
    answer = odesim.gradient("arnaboldi_2023", of=["final error", "final M_ww"], to=["noise", "step"], until=400)
    assert answer.value["final error"] == pytest.approx(0.045, rel=1e-8)
    assert answer.of("final error") == pytest.approx({"noise": 0.3, "step": 1.125}, rel=1e-7)
    header, rows = answer.tables()["derivatives"]
    assert header[-1] == "elasticity" and [row[2] for row in rows[:2]] == ["step", "noise"]
    assert [row[-1] for row in rows[:2]] == pytest.approx([2.5, 2.0], rel=1e-7)
    answer.save(tmp_path / "kept")
    again = odesim.load(tmp_path / "kept")
    assert again.of("final error") == answer.of("final error") and again.plot() is not None
    with pytest.raises(UsageError, match="is not in this answer"):
        answer.of("final loss")


def test_without_names_every_parameter_with_a_derivative_is_taken():
    answer = odesim.gradient(odesim.declare(**LINEAR), of="final error", until=2)
    assert set(answer.of("final error")) == {"step", "batch", "noise", "decay", "gram", "norm", "overlap"}
    # One more sample in a step divides the second-order term: d/dB = -step d/dstep of that term at B = 1.
    step, floor = 0.4, 0.4**2 * 0.25

    def error(batch):
        rate = 2 * step - step**2 / batch
        start = 1 + 0.25 - 2 * 0.5 * 0.3
        return floor / batch / rate + (start - floor / batch / rate) * np.exp(-2 * rate)

    scale = answer.value["final error"] / error(1.0)
    assert answer.of("final error")["batch"] == pytest.approx(scale * slopes_of(error, [1.0])[0], rel=1e-7)

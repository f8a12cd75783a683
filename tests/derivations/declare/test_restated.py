"""Schedules that are given with a run: the model that declares them, in every command's request, and refusals."""

import random

import numpy as np
import pytest
import sympy

import odesim
from derivations.contract import UsageError
from derivations.declare import restated
from odesim.request.case import Case

TABLES = {
    "name": "committee",
    "student": {"units": 2, "unit": "erf(w/sqrt(2))", "output": "trained"},
    "teacher": {"units": 2, "noise": 0.2},
    "training": {"limit": "online", "step": 0.5, "batch": 2, "rates": {"a": 0.5}, "until": 4},
    "start": {"overlap": 0.2},
    "parameters": {"kappa": 1.2},
    "preset": [{"name": "slow", "meaning": "a small step", "parameters": {"step": 0.1}}],
}
TIMES = [0, 1, 2, 3, 4]


def declared(table="training", **entries):
    return odesim.declare(**{**TABLES, table: {**TABLES[table], **entries}})


MODEL = declared()
GIVEN = [
    ({"step": "kappa/(1 + t)"}, declared(step="kappa/(1 + t)")),
    ({"step": '[[0, 0.5], [2, "0.2*t"]]'}, declared(step=[[0, 0.5], [2, "0.2*t"]])),
    ({"step": np.array([[0, 0.5], [2, 0.1]])}, declared(step=[[0, 0.5], [2, 0.1]])),
    ({"step": sympy.exp(-sympy.Symbol("t") / 4) ** 2}, declared(step="exp(-t/2)")),
    ({"step": "1/(1 + M_ww[1,1])"}, declared(step="1/(1 + M_ww[1,1])")),
    ({"rate_a": "0.1*t", "decay": "0.01*exp(-t)"}, declared(rates={"a": "0.1*t"}, decay="0.01*exp(-t)")),
    ({"noise": "0.3*step(2 - t)"}, declared("teacher", noise="0.3*step(2 - t)")),
    ({"batch": [[0, 1], [2, 8]]}, declared(batch=[[0, 1], [2, 8]])),
]


@pytest.mark.parametrize(("given", "model"), GIVEN, ids=[" ".join(given) for given, _ in GIVEN])
def test_a_run_with_a_schedule_is_a_run_of_the_model_that_declares_it(given, model):
    run = odesim.integrate(MODEL, save_at=TIMES, **given)
    wanted = odesim.integrate(model, save_at=TIMES)
    for name in ("Q_ww", "M_ww", "a", "error"):
        np.testing.assert_allclose(run[name], wanted[name], rtol=1e-9, atol=1e-12)
    without = odesim.integrate(MODEL, save_at=TIMES)
    assert abs(float(run["error"][-1]) - float(without["error"][-1])) > 1e-6


def test_compressed_sgd_takes_the_same_steps():
    asked = {"method": "compressed", "d": 50, "until": 2, "seeds": 3}
    run = odesim.simulate(MODEL, step="kappa/(1 + t)", **asked)
    wanted = odesim.simulate(declared(step="kappa/(1 + t)"), **asked)
    np.testing.assert_array_equal(run["M_ww"], wanted["M_ww"])


def test_one_value_for_all_rates_becomes_one_for_each():
    tables = {**TABLES["training"], "rates": 0.5}
    model = odesim.declare(**{**TABLES, "training": tables})
    found = restated.with_schedules(model, {"rate_a": "0.1*t"}).parameters()
    assert (found.rate_w, found.rate_a) == (0.5, None)


def test_the_step_of_one_stage_may_change():
    stages = [{"name": "first", "until": 2}, {"name": "second", "until": 4, "step": 0.3}]
    model, wanted = (
        odesim.declare(**TABLES, stage=[stages[0], {**stages[1], "step": step}]) for step in (0.3, "1/(1 + t)")
    )
    asked = {"stage": "all", "save_points": 5}
    runs = odesim.integrate(model, second_step="1/(1 + t)", **asked), odesim.integrate(wanted, **asked)
    np.testing.assert_allclose(runs[0][-1]["M_ww"], runs[1][-1]["M_ww"], rtol=1e-9)


def test_a_schedule_takes_the_place_of_a_preset_and_of_a_file_and_a_number_of_both(tmp_path):
    file = tmp_path / "options.toml"
    file.write_text('until = 2\n[parameters]\nstep = [[0, 0.5], [1, "0.2*t"]]\n', encoding="utf-8")
    words = [
        one.parameters.declaration.schedules[0].text if one.by_name["step"] is None else one.by_name["step"]
        for one in (
            Case.build(MODEL, {}, preset="slow"),
            Case.build(MODEL, {}, preset="slow", config=file),
            Case.build(MODEL, {"step": "1/(1 + t)"}, preset="slow", config=file),
            Case.build(MODEL, {"step": "0.25"}, preset="slow", config=file),
        )
    ]
    assert words == [0.1, "0.5 from 0 on, 0.2*t from 1 on", "1/(1 + t)", 0.25]


def test_a_stored_run_has_the_schedule_and_goes_on_with_another(tmp_path):
    first = odesim.integrate(MODEL, until=2, step="kappa/(1 + t)")
    first.save(tmp_path / "first", pictures=False)
    stored = odesim.load(tmp_path / "first")
    own = stored.trajectory.origin.required().parameters().declaration
    assert [one.text for one in own.schedules] == ["kappa/(1 + t)"] and not MODEL.parameters().declaration.schedules
    [second] = odesim.integrate(after=stored, until=4, step="0.5*kappa/(1 + t)")
    whole = odesim.integrate(MODEL, until=4, step='[[0, "kappa/(1 + t)"], [2, "0.5*kappa/(1 + t)"]]', save_at=[0, 2, 4])
    np.testing.assert_allclose(second["M_ww"][-1], whole["M_ww"][-1], rtol=1e-6)
    begun = odesim.integrate(MODEL, until=2)
    [constant] = odesim.integrate(MODEL, after=begun, until=4, step="0.3")
    [changed] = odesim.integrate(MODEL, after=begun, until=4, step="0.3*step(t + 1)")
    np.testing.assert_allclose(constant["M_ww"][-1], changed["M_ww"][-1], rtol=1e-6)


def test_claims_are_left_out_of_the_changed_model():
    claim = {"id": "end", "statement": "The end", "measure": "final error", "law": {"equals": 0.1, "margin": 1.0}}
    model = odesim.declare(**TABLES, claim=[claim])
    assert "[[claim]]" in model.declaration
    assert "[[claim]]" not in Case.build(model, {"step": "1/(1 + t)"}).system.declaration


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"step": "1/(1 + u)"}, "parameter step: unknown name 'u'"),
        ({"step": "[[0, 1], ["}, "parameter step is a number, an expression in t, or pairs such as"),
        ({"step": [[1, 2]]}, "times of step must increase from 0, but the first is 1"),
        ({"step": "t - 1"}, "step is -1 at t = 0, but must be above 0"),
        ({"step": "nan"}, "parameter step must be a finite number"),
        ({"d": "1 + t"}, "parameter d must be a whole number"),
        ({"batch": "3*d"}, "is only for giant steps (limit = 'batch')"),
        ({"rate_w": "1 + t"}, "unknown parameter 'rate_w'"),
    ],
)
def test_what_is_no_schedule_is_refused(given, words):
    with pytest.raises(UsageError, match=r"^[^\n]*$") as refused:
        Case.build(MODEL, given)
    assert words in str(refused.value)


def test_a_flow_has_no_step_that_changes():
    with pytest.raises(UsageError, match="in a flow, time is steps x step"):
        odesim.integrate("saad_solla_1995", step="1/(1 + t)")


def test_three_hundred_mutated_values_end_in_a_sentence_or_a_case():
    draw = random.Random(5)
    texts = ["kappa/(1 + t)", '[[0, 0.5], [2, "0.2*t"]]', "1 - 0.5*step(t - 2)", "exp(-M_ww[1,1])", "1/3", "none"]
    refused = 0
    for _ in range(300):
        text = list(draw.choice(texts))
        for _ in range(draw.randint(1, 4)):
            text[draw.randrange(len(text))] = draw.choice('0123456789.+-*/^()[]," tMsexpn')
        try:
            Case.build(MODEL, {draw.choice(["step", "decay", "noise", "rate_a", "batch"]): "".join(text)})
        except UsageError:
            refused += 1
    assert 100 < refused < 300

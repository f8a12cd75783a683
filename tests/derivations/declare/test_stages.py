"""Models of several stages: equations, labels, parameters and clock, against single stages and hand computation."""

import dataclasses

import numpy as np
import pytest
from scipy.linalg import expm

import odesim
from derivations.declare import parameter_class, written
from derivations.declare.parameter_class import between
from odesim.request.case import Case

TEACHERS = {
    "name": "switch",
    "student": {"units": 2, "unit": "erf(w/sqrt(2))", "output": "trained"},
    "teacher": {"gram": 0.3, "one": {}, "two": {}},
    "start": {
        "Q_ww": [[0.4, 0.02], [0.02, 0.4]], "one_M_ww": [[0.03], [-0.03]], "two_M_ww": [[-0.02], [0.05]],
        "a": [0.3, -0.2],
    },
}  # fmt: skip
"""Two teachers of one network, with the start of Lee, Goldt & Saxe 2021."""
ONLINE = {"limit": "online", "step": 1.2, "trained": ["w", "a"], "rates": {"a": 0.5}}
FIRST = {"name": "first", "teacher": ["one"], "until": 15}
SECOND = {"name": "second", "teacher": ["two"], "until": 30}


def switch(second=SECOND, training=ONLINE, **more):
    return odesim.declare(**TEACHERS, training=training, stage=[FIRST, second], **more)


def errors(run, stage, k=-1):
    return float(np.asarray(run[f"error_{stage}"])[k])


@pytest.mark.parametrize("backend", ["numba", "jax"])
def test_a_teacher_that_changes(backend):
    model = switch()
    assert [stage.name for stage in model.stages] == ["first", "second"]
    one, two = odesim.integrate(model, stage="all", d=10**9, backend=backend)
    # The first stage is that of declaration 1 of the specification, whose digits these are.
    assert errors(one, "first") == pytest.approx(0.003225, abs=5e-7)
    assert two.time[0] == 15 and two.time[-1] == 30
    for name in ("error_first", "error_second", "Q_ww", "a"):
        assert np.asarray(two[name])[0] == pytest.approx(np.asarray(one[name])[-1], abs=1e-12)
    assert np.asarray(one["error"]) == pytest.approx(np.asarray(one["error_first"]), abs=1e-14)
    assert np.asarray(two["error"]) == pytest.approx(np.asarray(two["error_second"]), abs=1e-14)
    assert errors(two, "first") > 50 * errors(one, "first") and errors(two, "second") < errors(one, "second") / 10


def test_each_stage_is_a_model_of_one_teacher():
    # What makes no label has no part in the motion of the rest: a model without it moves alike.
    alone = odesim.declare(
        name="alone", student=TEACHERS["student"], teacher={"one": {}}, training={**ONLINE, "until": 15},
        start={"Q_ww": TEACHERS["start"]["Q_ww"], "one_M_ww": TEACHERS["start"]["one_M_ww"], "a": [0.3, -0.2]},
    )  # fmt: skip
    one = odesim.integrate(switch(), d=10**9, rtol=1e-10)
    other = odesim.integrate(alone, d=10**9, rtol=1e-10)
    for name in ("Q_ww", "a", "one_M_ww", "error"):
        assert np.asarray(one[name]) == pytest.approx(np.asarray(other[name]), abs=1e-8)


@pytest.mark.parametrize("tier", ["mixed", "sampled"])
def test_tiers_agree(tier):
    exact = odesim.integrate(switch(), stage="all", d=10**9)
    other = odesim.integrate(switch(), stage="all", d=10**9, tier=tier)
    for one, two in zip(exact, other, strict=True):
        for stage in ("first", "second"):
            assert errors(one, stage) == pytest.approx(errors(two, stage), rel=4e-3)


def test_sampled_stages_have_programs_of_their_own():
    # In JAX a stage once ran with the program of another that differed in the teachers of its label alone.
    runs = [
        odesim.integrate(switch(), stage="all", d=10**9, tier="sampled", backend=backend, save_points=5)
        for backend in ("numba", "jax")
    ]
    for one, two in zip(*runs, strict=True):
        for name in ("error", "Q_ww", "a"):
            assert np.asarray(one[name]) == pytest.approx(np.asarray(two[name]), abs=2e-5)


def test_what_makes_no_label_is_left_out_of_functions():
    model = switch()
    text = written.module(model.parameters.declaration.stages[0])
    assert "def unit_1(" in text and "unit_2" not in text
    whole = written.module(dataclasses.replace(model.parameters.declaration, stages=(), labels=()))
    assert "def unit_2(" in whole


def test_a_stage_that_trains_readouts_alone():
    # With w at rest da/dt = -(K a - k), K and k constant: linear, solved by the exponential of a matrix.
    model = odesim.declare(
        **TEACHERS, training={"limit": "flow", "trained": ["w", "a"], "teacher": ["one"]},
        stage=[{"name": "first", "until": 2}, {"name": "second", "until": 5, "trained": ["a"]}],
    )  # fmt: skip
    one, two = odesim.integrate(model, stage="all", rtol=1e-11)
    for name in ("Q_ww", "one_M_ww", "two_M_ww"):
        assert np.ptp(np.asarray(two[name]), axis=0) == pytest.approx(0.0, abs=1e-13)
    Q, M = np.asarray(one["Q_ww"])[-1], np.asarray(one["one_M_ww"])[-1, :, 0]
    size = np.sqrt(1 + np.diag(Q))
    K = 2 / np.pi * np.arcsin(Q / np.outer(size, size))
    k = 2 / np.pi * np.arcsin(M / size / np.sqrt(2))
    rest = np.linalg.solve(K, k)
    start = np.asarray(one["a"])[-1]
    assert np.asarray(two["a"])[-1] == pytest.approx(rest + expm(-3.0 * K) @ (start - rest), abs=1e-9)


CHANGING = {**ONLINE, "step": "1.2/(1 + t/20)", "decay": [[0, 0.0], [4, 0.02], [7, 0.01]]}


REMEMBERING = {"training": {**ONLINE, "step": "1/sqrt(b2)"}, "memory": {"b2": {"start": 0.5, "rate": "g2"}}}


@pytest.mark.parametrize("tables", [{"training": ONLINE}, {"training": CHANGING}, REMEMBERING])
def test_two_stages_with_the_same_keys_are_one(tables):
    whole = odesim.declare(**TEACHERS, **{**tables, "training": {**tables["training"], "until": 10}})
    parts = odesim.declare(**TEACHERS, **tables, stage=[{"name": "one", "until": 4}, {"name": "other", "until": 10}])
    single = odesim.integrate(whole, d=10**9, rtol=1e-11)
    runs = odesim.integrate(parts, stage="all", d=10**9, rtol=1e-11)
    for name in ("Q_ww", "one_M_ww", "a", "error"):
        assert np.asarray(runs[-1][name])[-1] == pytest.approx(np.asarray(single[name])[-1], abs=1e-10)
    assert "error_one" not in runs[0]  # all stages have one label


def test_a_run_that_is_split_is_the_whole():
    model = switch({**SECOND, "step": "1.2/(1 + (t - 15)/20)", "noise": [[0, 0.1], [20, 0.3]]})
    whole = odesim.integrate(model, stage="all", d=10**9, rtol=1e-10)
    first = odesim.integrate(model, stage="first", d=10**9, rtol=1e-10)
    (second,) = odesim.integrate(after=first, stage="second", rtol=1e-10)
    (early,) = odesim.integrate(after=first, stage="second", until=22, rtol=1e-10)
    (late,) = odesim.integrate(after=early, stage="second", until=30, rtol=1e-10)
    for name in ("Q_ww", "a", "error_first", "error_second"):
        assert np.array_equal(np.asarray(second[name]), np.asarray(whole[1][name]))
        assert np.asarray(late[name])[-1] == pytest.approx(np.asarray(second[name])[-1], abs=1e-9)
    assert second["t"][-1] == pytest.approx(30, abs=1e-12) and late["t"][0] == 22


def test_end_times_are_those_of_the_clock():
    runs = odesim.integrate(switch(), stage="first,second", until={"first": 3, "second": 5}, d=10**9)
    assert [(float(run.time[0]), float(run.time[-1])) for run in runs] == [(0, 3), (3, 5)]
    assert odesim.integrate(switch(), d=10**9).time[-1] == 15


def test_parameters_of_stages():
    model = switch({**SECOND, "step": "1.2/(1 + t/20)", "rates": {"w": 0.7}})
    names = [field.name for field in dataclasses.fields(model.parameters)]
    assert {"step", "rate_a", "second_step", "second_rate_w"} <= set(names) and "first_step" not in names
    one, two = model.stages
    stated = model.parameters(step=0.9, second_step=0.3)
    assert one.adapt(stated).step == 0.9 and two.adapt(stated).step == 0.3
    assert two.stated(two.adapt(stated)) == stated
    ways = between(model.parameters.declaration, model.parameters.declaration.stages[1])
    assert ways.explicit(frozenset({"second_step", "d"})) == {"step", "d"}
    runs = odesim.integrate(model, stage="all", d=10**9, second_step=0.3, until={"first": 2, "second": 3})
    assert runs[1].origin.parameters["second_step"] == 0.3 and runs[1].origin.parameters["step"] == 1.2
    # The number takes effect in its stage, and in no other.
    other = odesim.integrate(model, stage="all", d=10**9, until={"first": 2, "second": 3})
    assert np.array_equal(runs[0]["Q_ww"], other[0]["Q_ww"])
    assert not np.allclose(runs[1]["Q_ww"][-1], other[1]["Q_ww"][-1], rtol=1e-3)
    later = odesim.integrate(after=other[0], stage="second", second_step=0.3, until=3)[0]
    assert later["Q_ww"][-1] == pytest.approx(runs[1]["Q_ww"][-1], abs=1e-12)


def test_a_number_of_all_stages_is_none_of_the_model():
    stages = [{**FIRST, "batch": 2, "step": 0.5}, {**SECOND, "batch": 3, "step": 0.4}]
    model = odesim.declare(**TEACHERS, training=ONLINE, stage=stages)
    names = [field.name for field in dataclasses.fields(model.parameters)]
    assert "batch" not in names and "step" not in names and {"first_batch", "second_batch"} <= set(names)
    with pytest.raises(odesim.UsageError, match="unknown parameter 'step'"):
        Case.build(model, {"step": 0.3})
    assert odesim.integrate(model, until=1, first_step=0.3).outcome.kind == "completed"


def test_parameters_of_a_stage_are_restored():
    import pickle

    model = switch({**SECOND, "step": 0.3})
    adapted = model.stages[1].adapt(model.parameters(second_step=0.2))
    again = pickle.loads(pickle.dumps(adapted))
    assert again == adapted and again.declaration.stage == "second" and again.step == 0.2


def test_a_rule_in_one_stage():
    # The numbers that a rule alone reads are constants of the stage that has it.
    model = odesim.declare(
        name="ruled", student=TEACHERS["student"], teacher={"units": 2}, training=ONLINE,
        parameters={"F": {"default": "2.6 - 1.6*j", "per": "unit"}},
        stage=[{"name": "back", "until": 2}, {"name": "feed", "until": 4, "rule": {"w": "F*dl*dphi"}}],
    )  # fmt: skip
    one, two = odesim.integrate(model, stage="all", d=10**9)
    assert "F" not in one and np.asarray(two["F"]).tolist() == [1.0, -0.6000000000000001]
    alone = odesim.declare(
        name="alone", student=TEACHERS["student"], teacher={"units": 2},
        training={**ONLINE, "rule": {"w": "F*dl*dphi"}}, parameters={"F": {"default": "2.6 - 1.6*j", "per": "unit"}},
    )  # fmt: skip
    last = {name: np.asarray(one[name])[-1] for name in ("Q_ww", "M_ww", "a")}
    other = odesim.integrate(alone, initial=last, d=10**9, until=2)
    assert np.asarray(two["Q_ww"])[-1] == pytest.approx(np.asarray(other["Q_ww"])[-1], abs=1e-9)


def test_losses_of_stages():
    model = odesim.declare(
        name="losses", student={"unit": "w"}, teacher={}, training={"limit": "online", "step": 0.3},
        stage=[{"name": "regress", "until": 1}, {"name": "classify", "until": 2, "loss": "logistic"}],
        start={"overlap": 0.3},
    )  # fmt: skip
    one, two = odesim.integrate(model, stage="all", d=10**9)
    assert one.origin.tier == "exact" and two.origin.tier == "sampled"
    assert "classification_error" in two and "classification_error" not in one


def test_a_label_without_stages():
    model = odesim.declare(**TEACHERS, training={**ONLINE, "teacher": ["one"], "until": 15})
    run = odesim.integrate(model, d=10**9)
    assert float(run["error"][-1]) == pytest.approx(0.003225, abs=5e-7) and "error_train" not in run


def test_pages_name_what_is_in_force():
    text = odesim.derive(switch(), stage="second", format="text")
    assert "f* = f*_two" in text and "f*_one(x)" not in text and "error_first: the error of the label by one" in text
    space = {}
    exec(odesim.derive(switch(), stage="second", format="python").split("if __name__")[0], space)


def test_equal_models_with_classes_of_their_own_are_one_model():
    """A session with many models forgets the class of parameters that an equal declaration had."""
    one = switch()
    one.check(one.parameters())
    parameter_class._parameters_of.cache_clear()
    two = switch()
    two.check(two.parameters())
    assert type(two.stages[1].adapt(two.parameters())).declaration.stage == "second"
    assert two.stages[1].stated(two.stages[1].adapt(two.parameters())).step == two.parameters().step

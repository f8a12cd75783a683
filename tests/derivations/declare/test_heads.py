"""Several heads: what the equations say, by digits, by one head alone, by samples, and what is refused."""

import dataclasses
import tomllib

import numpy as np
import pytest

import odesim
from derivations.contract import UsageError
from derivations.declare import evaluate, responses, sampled
from derivations.declare.claims import generated
from derivations.declare.claims.states import start, state
from derivations.declare.parameter_class import rows
from derivations.declare.tiers import equations, settled
from odesim.evidence.laboratory import Laboratory
from odesim.flow.problem import compile_functions

BOTH = {"one": "trained", "two": "trained"}
TEACHERS = {"gram": 0.3, "one": {}, "two": {}}
LEE = {
    "student": {"units": 2, "unit": "erf(w/sqrt(2))", "output": BOTH},
    "teacher": TEACHERS,
    "training": {"limit": "online", "step": 1.2, "trained": ["w", "a"], "rates": {"a": 0.5}},
    "start": {
        "Q_ww": [[0.4, 0.02], [0.02, 0.4]], "one_M_ww": [[0.03], [-0.03]], "two_M_ww": [[-0.02], [0.05]],
        "a_one": [0.3, -0.2], "a_two": [0.25, 0.3],
    },
}  # fmt: skip
"""Two teachers and two heads, as in Lee, Goldt & Saxe 2021."""
NOISY = {"one": {"noise": 0.3}, "two": {}}
CLOSED = {
    "erf": LEE,
    "polynomials": {
        "student": {"units": 2, "unit": "w^2 + w", "output": {"one": "trained", "two": "1/j"}},
        "teacher": {"noise": 0.2, "one": {"unit": "w^2"}, "two": {"unit": "w", "units": 2}},
        "training": {"limit": "online", "step": 0.3, "decay": 0.1},
    },
    "groups": {
        "student": {
            "fast": {"units": 2, "unit": "erf(w)", "output": {"one": "trained", "two": "mean"}},
            "slow": {"units": 1, "unit": "erf(3*w)", "output": {"two": "trained"}},
        },
        "teacher": {"noise": 0.2, "both": {"unit": "erf(2*w)", "units": 2, "output": {"one": "sum", "two": "1/j"}}},
        "training": {"limit": "online", "step": 0.5, "head": ["one", "two"]},
    },
    "biases": {
        "student": {"units": 2, "unit": "erf(w + b)", "output": BOTH},
        "teacher": {"one": {"unit": "erf(w)"}, "two": {"unit": "erf(2*w)"}},
        "parameters": {"b": {"default": 0.2, "per": "unit"}},
    },
    "flow": {
        "student": {"units": 2, "unit": "relu(w)", "output": BOTH}, "teacher": {"one": {}, "two": {"unit": "w"}},
    },
    "correlation": {
        "student": {"units": 2, "unit": "He(2, w)", "output": {"one": "trained", "two": "sum"}}, "teacher": TEACHERS,
        "training": {"limit": "online", "loss": "correlation", "weights": "sphere", "step": 0.1},
    },
    "normalised": {
        "student": {"units": 2, "unit": "erf(w)", "output": BOTH}, "teacher": TEACHERS,
        "training": {"weights": "normalised"},
    },
    "blocks": {
        "student": {"units": 2, "unit": "erf(w)", "output": BOTH}, "teacher": TEACHERS,
        "inputs": {"blocks": [[2.0, 0.5], [0.5, 0.5]]}, "training": {"limit": "online", "step": 0.4},
    },
}  # fmt: skip
SAMPLED = {
    "softmax": {"training": {"loss": "softmax"}},
    "logistic": {"training": {"loss": "logistic"}},
    "hinge of one": {"training": {"loss": "hinge", "head": "two"}},
    "own": {"training": {"loss": "log(1 + (f - y)^2/scale)"}, "parameters": {"scale": 2.0}},
    "together": {"training": {"loss": "(f_one*f_two - y_one*y_two)^2/2 + 0.1*(f_one - y_one)^2"}},
    "routed": {
        "student": {"units": 3, "unit": "softmax(w)*tanh(v)", "output": {"one": "trained", "two": "mean"}},
        "teacher": {"one": {"unit": "tanh(w)"}, "two": {"unit": "w"}},
    },
}  # fmt: skip
SAMPLE = {"student": {"units": 2, "unit": "tanh(w)", "output": BOTH}, "teacher": {"noise": 0.2, **TEACHERS}}


def declared(tables, **training):
    return odesim.declare(**{"name": "heads", **tables, "training": {**tables.get("training", {}), **training}})


def of_samples(name):
    tables = {**SAMPLE, **SAMPLED[name]}
    return declared({**tables, "training": {"limit": "online", "step": 0.5, **tables.get("training", {})}})


@pytest.mark.parametrize("backend", ["numba", "jax"])
def test_two_teachers_and_two_heads_have_their_digits(backend):
    run = odesim.integrate(declared(LEE, head="one"), until=15, save_points=2, backend=backend)
    assert float(run["error_one"][-1]) == pytest.approx(0.003225, abs=5e-7)
    assert float(run["error_two"][-1]) == pytest.approx(0.341150, abs=5e-7)
    assert float(run["error"][-1]) == float(run["error_one"][-1])
    # The readout of the other head rests.
    assert np.ptp(np.asarray(run["a_two"]), axis=0) == pytest.approx(0)


@pytest.mark.parametrize("name", ["erf", "polynomials", "groups", "flow"])
def test_compiled_loops_equal_arrays(name):
    system = declared(CLOSED[name])
    found = start(system.parameters, 1)
    made = equations(found.parameters, "exact")
    y, given = made.start(found), made.arguments(found)
    loops, plain = (compile_functions(made, backend) for backend in ("numba", "numpy"))
    assert loops["flow"](0.0, y, *given) == pytest.approx(plain["flow"](0.0, y, *given), rel=1e-11, abs=1e-12)
    for role in ("loss", "watch"):
        assert loops[role](y, *given) == pytest.approx(plain[role](y, *given), rel=1e-11, abs=1e-12)


def closed(name):
    """A random state of a model with closed forms, its functions of arrays and their arguments."""
    system = declared(CLOSED[name])
    assert settled(system.parameters()) == "exact"
    found = state(system.parameters, 1)
    made = equations(found.parameters, "exact")
    return system, found, made, compile_functions(made, "numpy")


@pytest.mark.parametrize("name", CLOSED)
def test_closed_forms_equal_means_over_samples(name):
    """Flow, loss and the errors of heads, by Stein's lemma on one side and derivatives of every sample on the other."""
    _, found, made, functions = closed(name)
    y, given = made.start(found), made.arguments(found)
    exact = made.unpack(functions["flow"](0.0, y, *given))
    size = max(float(np.abs(values).max()) for values in exact.values())
    p = dataclasses.replace(found.parameters, points=2**16, tier="sampled")
    other = equations(p, "sampled")
    there = dataclasses.replace(found, parameters=p)
    sampled_functions = compile_functions(other, "numpy")
    given_ = other.arguments(there)
    mean = other.unpack(sampled_functions["flow"](0.0, y, *given_))
    for key, values in exact.items():
        assert np.asarray(mean[key]) == pytest.approx(np.asarray(values), abs=4e-3 * size), key
    for role in ("loss", "watch"):
        assert sampled_functions[role](y, *given_) == pytest.approx(functions[role](y, *given), rel=4e-3), role


@pytest.mark.parametrize("name", ["flow", "normalised"])
def test_the_flow_is_the_gradient_of_its_loss(name):
    system, _, made, functions = closed(name)
    assert generated.gradient(Laboratory(system), {}, 0) < 1e-6
    found = state(system.parameters, 2)
    y, given = made.start(found), made.arguments(found)
    slope = made.unpack(functions["flow"](0.0, y, *given))
    for word in ("a_one", "a_two"):
        place = made.start(dataclasses.replace(found, state={**found.state, word: found.state[word] + [1e-5, 0.0]})) - y
        ends = [functions["loss"](y + sign * place, *given) for sign in (1, -1)]
        assert slope[word][0] == pytest.approx(-(ends[0] - ends[1]) / 2e-5, rel=1e-6)


@pytest.mark.parametrize("name", SAMPLED)
def test_at_every_point_the_motion_is_that_by_automatic_differentiation(name):
    system = of_samples(name)
    assert settled(system.parameters()) == "sampled"
    assert generated.own_points(Laboratory(system), {}, 1) < 1e-8
    assert generated.own_points(Laboratory(system), {}, 1, twist=1e-4) > 1e-5


@pytest.mark.parametrize("tier", ["exact", "sampled"])
def test_one_head_is_one_answer(tier):
    training = {"limit": "online", "step": 0.7, "trained": ["w", "a"], "rates": {"a": 0.3}}
    arrays = {"Q_ww": [[0.5, 0.1], [0.1, 0.4]], "M_ww": [[0.2, 0.1], [-0.1, 0.3]]}
    student, teacher = {"units": 2, "unit": "erf(w)"}, {"units": 2, "noise": 0.2}
    plain = odesim.declare(
        name="plain", student={**student, "output": "trained"}, teacher=teacher, training=training,
        start={**arrays, "a": [0.4, 0.8]},
    )  # fmt: skip
    headed = odesim.declare(
        name="headed", student={**student, "output": {"one": "trained"}},
        teacher={"noise": 0.2, "both": {"units": 2, "output": {"one": "sum"}}}, training=training,
        start={"Q_ww": arrays["Q_ww"], "both_M_ww": arrays["M_ww"], "a_one": [0.4, 0.8]},
    )  # fmt: skip
    one, two = (odesim.integrate(model, until=2, save_points=3, tier=tier) for model in (plain, headed))
    for name, other in (("Q_ww", "Q_ww"), ("M_ww", "both_M_ww"), ("a", "a_one"), ("error", "error_one")):
        assert np.asarray(one[name]) == pytest.approx(np.asarray(two[other]), rel=1e-9, abs=1e-10)


def test_heads_that_share_nothing_learn_by_themselves():
    """Two groups, each with a head and a teacher of its own, are two networks."""
    group = {"units": 1, "unit": "erf(w)"}
    both = odesim.declare(
        name="both",
        student={"left": {**group, "output": {"one": "sum"}}, "right": {**group, "output": {"two": "sum"}}},
        teacher={"one": {"unit": "erf(w)"}, "two": {"unit": "erf(2*w)"}}, training={"limit": "online", "step": 0.5},
        start={"left_Q_ww": [[0.5]], "right_Q_ww": [[0.3]], "left_right_Q_ww": [[0.0]], "left_one_M_ww": [[0.2]],
               "left_two_M_ww": [[0.0]], "right_one_M_ww": [[0.0]], "right_two_M_ww": [[0.1]]},
    )  # fmt: skip
    run = odesim.integrate(both, until=3, save_points=4)
    for side, head, unit, q, m in (("left", "one", "erf(w)", 0.5, 0.2), ("right", "two", "erf(2*w)", 0.3, 0.1)):
        alone = odesim.declare(
            name=side, student=group, teacher={"unit": unit}, training={"limit": "online", "step": 0.5},
            start={"Q_ww": [[q]], "M_ww": [[m]]},
        )  # fmt: skip
        known = odesim.integrate(alone, until=3, save_points=4)
        assert np.asarray(run[f"{side}_Q_ww"]) == pytest.approx(np.asarray(known["Q_ww"]), rel=1e-8)
        assert np.asarray(run[f"error_{head}"]) == pytest.approx(np.asarray(known["error"]), rel=1e-8)


@pytest.mark.parametrize("name", ["softmax", "logistic", "hinge of one", "own", "together"])
def test_written_losses_are_those_of_samples(name):
    made = of_samples(name).parameters().declaration
    rng, count = np.random.default_rng(3), len(made.force)
    f, y = rng.standard_normal((2, count, 50))
    numbers = {"scale": 2.0} if made.names else {}
    space = {**sampled.per_sample(made)}
    assert "def loss" in responses.loss(made)
    value, *_ = space["loss"](*f, *y, *numbers.values())
    assert value == pytest.approx(np.asarray(evaluate.loss_of_heads(made, f, y, numbers)), rel=1e-5, abs=1e-6)


def test_softmax_of_two_heads_is_logistic_in_their_difference():
    made = of_samples("softmax").parameters().declaration
    f, y = np.random.default_rng(4).standard_normal((2, 2, 50))
    value, one, two = sampled.per_sample(made)["loss"](*f, *y)
    sign = np.sign(y[0] - y[1])
    assert value == pytest.approx(np.logaddexp(0.0, -sign * (f[0] - f[1])), rel=1e-12)
    assert one == pytest.approx(-two, abs=1e-15)


def test_errors_of_heads_add_up_and_are_kept_by_a_text():
    system = declared(CLOSED["polynomials"])
    run = odesim.integrate(system, until=0.1, save_points=3)
    total = np.asarray(run["error_one"]) + np.asarray(run["error_two"])
    assert np.asarray(run["error"]) == pytest.approx(total, rel=1e-12)
    assert np.asarray(run["loss"]) == pytest.approx(total / 2 + 0.2**2, rel=1e-12)
    tables = tomllib.loads(system.declaration)
    assert odesim.declare(**tables).digest == system.digest


def test_an_other_head_in_force_is_another_model():
    digests = {declared(LEE, **more).digest for more in ({}, {"head": "one"}, {"head": "two"})}
    assert len(digests) == 3
    assert declared(LEE, head=["two", "one"]).parameters().declaration.head == ()


def test_readouts_of_heads_start_and_move_by_names_of_their_own():
    tables = {**LEE, "start": {"norm": 0.5, "a": 0.4, "a_two": 0.9}}
    system = declared(tables, rates={"a_two": 0.0})
    found = start(system.parameters, 0)
    assert found.state["a_one"] == pytest.approx(0.4) and found.state["a_two"] == pytest.approx(0.9)
    assert start(system.parameters, 0, a_one=0.1).state["a_one"] == pytest.approx(0.1)
    run = odesim.integrate(system, until=0.5, save_points=2)
    assert np.ptp(np.asarray(run["a_two"]), axis=0) == pytest.approx(0)
    assert np.ptp(np.asarray(run["a_one"]), axis=0).min() > 1e-3


def test_readouts_that_trained_does_not_name_rest():
    run = odesim.integrate(declared(LEE, trained=["w", "a_one"], rates=0.5), until=0.5, save_points=2)
    assert np.ptp(np.asarray(run["a_two"]), axis=0) == pytest.approx(0)
    assert np.ptp(np.asarray(run["a_one"]), axis=0).min() > 1e-3


def test_readouts_of_a_head_start_at_one_number_in_all_groups():
    tables = {**CLOSED["groups"], "start": {"a_one": 0.4, "slow_a_two": 0.7}}
    found = start(declared(tables).parameters, 0)
    assert found.state["fast_a_one"] == pytest.approx(0.4) and found.state["slow_a_two"] == pytest.approx(0.7)


def test_the_page_writes_heads():
    text = odesim.derive(declared(LEE, head="one"), format="text")
    for line in (
        "f_one(x) = sum_i a^one_i phi(w_i.x)",
        "d/dt a^one_i = -eta r_a (sum_k a^one_k K_ik - sum_j b^one_j K_ij)",
        "d/dt a^two_i = 0",
        "E_ik = sum_m,n g_im g_kn E[phi_i' phi_k' phi_m phi_n] + sigma^2 g_ik E[phi_i' phi_k']",
    ):
        assert line in text, line
    assert "the head of the largest y_o" in odesim.derive(of_samples("softmax"), format="text")


def test_names_of_arrays_and_shapes():
    system = declared(CLOSED["groups"])
    at = rows(system.parameters())
    assert [name for name in at.layout.places("fast_a_one", 100)] and "slow_a_two" in start(system.parameters, 0).state
    constants = start(system.parameters, 0).constants
    assert constants["fast_a_two"] == pytest.approx(0.5)
    assert constants["both_a_star_two"] == pytest.approx([1.0, 0.5])


REFUSED = [
    ({"training": {"head": "tow"}}, "no head is called 'tow'; did you mean 'two'?"),
    ({"training": {"head": 3}}, "head is a name or a list of names, but 3 was given"),
    ({"student": {"unit": "erf(w)"}, "teacher": {}, "training": {"head": "one"}}, "the network has one output"),
    ({"teacher": {"one": {}, "two": {}, "g": {}}}, "teacher group g contributes to no head: give it the name"),
    ({"teacher": {}}, "the teacher contributes to no head"),
    ({"teacher": {"one": {}}}, "head two has no label: write [teacher.two]"),
    ({"teacher": {"all": {"output": {"one": "sum", "tow": "sum"}}}}, "to the head 'tow', which no student has"),
    ({"teacher": {"one": {"output": {"one": "trained"}}, "two": {}}}, "a teacher's readout is not trained"),
    ({"student": {"unit": "erf(w)"}, "teacher": {"output": {"one": "sum"}}}, "the teacher has heads, but no group"),
    ({"student": {"unit": "erf(w)", "output": {"star": "sum"}}}, "head star would be a_star, which already has"),
    ({"student": {"unit": "erf(w)", "output": {"a_b": "sum"}}}, "a head's name is made of at most 20 letters"),
    ({"student": {"unit": "erf(w)", "output": {}}}, "output has 1 to 8 heads"),
    ({"student": {"unit": "erf(w)", "output": {"one": "summ"}}}, "did you mean 'sum'?"),
    ({"student": {"unit": "erf(w)", "output": {"one": 3}}}, "not 3"),
    (
        {"student": {"x1": {"unit": "erf(w)", "output": BOTH}, "x2": {"unit": "erf(w)"}},
         "teacher": {"one": {"unit": "w"}, "two": {"unit": "w"}}},
        "group x2 of students needs output = {one = 'sum'}",
    ),
    ({"training": {"rule": "dl*df"}}, "heads and rules cannot be combined yet"),
    ({"training": {"loss": "softmax", "head": "one"}}, "softmax needs two heads"),
    ({"student": {"unit": "erf(w)"}, "teacher": {}, "training": {"loss": "softmax"}}, "softmax needs two heads"),
    ({"training": {"loss": "f_one*y_three"}}, "y_three"),
    ({"training": {"loss": "f_one + f_two*y_two", "head": "one"}}, "f_two, which is not an output or label"),
    ({"training": {"loss": "f_one*y_one + f"}}, "names f_one and f or y"),
    ({"training": {"loss": "y_one^2"}}, "does not depend on f"),
    ({"start": {"a_one": [0.1, 0.2, 0.3]}}, "a_one has 3 numbers, but there are 2 units"),
    ({"start": {"a_three": 0.1}}, "unknown key 'a_three'"),
    ({"training": {"rates": {"a_three": 0.1}}}, "a_three"),
    ({"training": {"trained": ["w", "a_three"]}}, "a_three"),
    ({"training": {"teacher": ["one"]}}, "teacher selects the groups that make a single label"),
    ({"training": {"head": ["one", "one"]}}, "head names a head twice"),
    ({"training": {"head": "one", "rates": {"a_two": 0.3}}}, "rates names 'a_two', which is not trained"),
    ({"parameters": {"f_one": 1.0}}, "f_one is already a name that belongs to a head: choose another"),
    ({"start": {"a_tow": 0.3}}, "did you mean 'a_two'?"),
]  # fmt: skip


@pytest.mark.parametrize(("tables", "said"), REFUSED, ids=[said[:40] for _, said in REFUSED])
def test_refusals(tables, said):
    whole = {**{key: LEE[key] for key in ("student", "teacher")}, **tables}
    with pytest.raises(UsageError) as caught:
        odesim.declare(name="heads", **whole)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_labels_of_clusters_and_the_leading_tier_are_refused():
    with pytest.raises(UsageError, match="heads and labels of clusters cannot be combined yet"):
        odesim.declare(
            name="heads", student=LEE["student"],
            inputs={"means": {"m": {"norm": 1.0}}, "cluster": [
                {"p": 0.5, "mean": "m", "label": 1}, {"p": 0.5, "mean": "-m", "label": -1}]},
        )  # fmt: skip
    with pytest.raises(UsageError, match="tier leading: it supports only one output"):
        odesim.integrate(declared(CLOSED["normalised"]), tier="leading", until=0.1)

"""Copies of students as teachers, and what changes when a stage begins, against weights and hand computation."""

import dataclasses
import re

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import odesim
from derivations.declare import beginnings
from derivations.declare.initial import enter
from derivations.declare.model import velocities as model_velocities
from derivations.declare.of_training import Change
from odesim.request.case import Case
from tests.derivations.declare.judged import root_mean_square, z_of_laws, z_of_runs, z_scores

AGAIN = {"copy": "student", "w": "fresh"}
CHAIN = {
    "student": {"unit": "w"},
    "teacher": {"noise": 0.3, "one": {}, "copy": {"from": "student"}},
    "training": {"limit": "online", "step": 0.5},
    "stage": [
        {"name": "first", "teacher": ["one"], "until": 6},
        {"name": "second", "teacher": ["copy"], "until": 12, "begin": AGAIN},
        {"name": "third", "teacher": ["copy"], "until": 18, "begin": AGAIN},
    ],
    "start": {"norm": 0.3, "overlap": 0.0},
}
"""Linear students that learn from the one before them."""


def network(unit="erf(w/sqrt(2))", second=None, **training):
    """Two units with trained readouts: learnt, then held by a copy of themselves, then begun anew."""
    stages = [
        {"name": "first", "teacher": ["one"], "until": 4},
        {"name": "second", "teacher": ["copy"], "until": 8, "begin": second or {"copy": "student"}},
        {"name": "third", "teacher": ["one", "copy"], "until": 10, "begin": {"w": "fresh", "a": 0.5}},
    ]
    return odesim.declare(
        student={"unit": unit, "units": 2, "output": "trained"},
        teacher={"noise": 0.1, "one": {"units": 2}, "copy": {"from": "student"}},
        training={"limit": "online", "step": 0.5, **training}, stage=stages, start={"norm": 0.7},
    )  # fmt: skip


def linear(gram, label, time):
    """The Gram matrix [student, copy, teacher] after online SGD of a linear student with step 1/2 and noise .3."""

    def rate(_, y):
        G = gram.copy()
        G[0], G[:, 0] = y, y
        D = G[0] - G[label]
        found = -0.5 * D
        found[0] = -D[0] + 0.25 * (G[0, 0] - 2 * G[0, label] + G[label, label] + 0.09)
        return found

    found = gram.copy()
    found[0] = solve_ivp(rate, (0, time), gram[0], rtol=1e-11, atol=1e-13).y[:, -1]
    found[:, 0] = found[0]
    return found


@pytest.mark.parametrize("backend", ["numba", "jax"])
def test_students_that_learn_from_copies(backend):
    runs = odesim.integrate(odesim.declare(**CHAIN), stage="all", d=10**15, rtol=1e-10, backend=backend)
    gram = np.diag([0.09, 0.09, 1.0])
    for number, run in enumerate(runs):
        gram = linear(gram, 1 if number else 2, 6.0)
        found = [np.asarray(run[name])[-1].ravel()[0] for name in ("Q_ww", "copy_M_ww", "one_M_ww")]
        if number:
            assert found == pytest.approx(gram[0], abs=1e-6)  # of new directions in d = 1e15: overlaps of 3e-8
            assert np.asarray(run["one_copy_P_ww"]).ravel()[0] == pytest.approx(gram[1, 2], abs=1e-6)
        else:
            assert [found[0], found[2]] == pytest.approx([gram[0, 0], gram[0, 2]], abs=1e-8)
        gram[1] = gram[0]
        gram[:, 1] = gram[:, 0]
        gram[1, 1] = gram[0, 0]
        gram[0] = gram[:, 0] = 0
        gram[0, 0] = 0.09


def begun(changes, d=9, seed=0):
    """The start of the network in d dimensions, what `changes` make of it, and its rows."""
    case = Case.build(network(), {"d": d}, stage="second")
    initial = enter(case.parameters, None, np.random.default_rng(seed))
    declared = dataclasses.replace(initial.parameters.declaration, changes=changes)
    kind = type("Changed", (type(initial.parameters),), {"declaration": declared})
    changed = dataclasses.replace(
        initial, parameters=kind(**{f.name: getattr(initial.parameters, f.name) for f in dataclasses.fields(kind)})
    )
    return changed, beginnings.begin(changed, np.random.default_rng(seed + 1))


def test_a_copy_is_what_students_are():
    initial = enter(Case.build(network(), {"d": 30}).parameters, None, np.random.default_rng(0))
    assert np.array_equal(initial.state["copy_M_ww"], initial.state["Q_ww"])
    assert np.array_equal(initial.constants["one_copy_P_ww"], initial.state["one_M_ww"].T)
    assert np.array_equal(initial.constants["copy_a_star"], initial.state["a"])
    assert np.array_equal(initial.constants["one_P_ww"], np.eye(2))


def test_changes_are_made_from_left_to_right():
    copy, fresh = Change("copy", "copy", "student"), Change("fresh", "w", "w")
    before, after = begun((copy, fresh, Change("number", "a", 0.5)))
    assert np.array_equal(after.constants["copy_P_ww"], before.state["Q_ww"])
    assert np.array_equal(after.constants["copy_a_star"], before.state["a"]) and after.state["a"].tolist() == [0.5, 0.5]
    assert not np.allclose(after.state["Q_ww"], before.state["Q_ww"])
    _, other = begun((fresh, copy))
    assert np.array_equal(other.constants["copy_P_ww"], other.state["Q_ww"])
    assert np.array_equal(other.constants["one_P_ww"], np.eye(2))


def test_new_directions_are_those_of_random_vectors():
    # In d dimensions two random directions have cosines of mean 0 and variance 1/d, whatever stays beside them.
    d, draws = 9, 4000
    before, _ = begun((Change("fresh", "w", "w"),), d)
    found = [beginnings.begin(before, np.random.default_rng(seed)) for seed in range(draws)]
    cosines = np.array([
        [*(one.state["one_M_ww"] / 0.7).ravel(), one.state["Q_ww"][0, 1] / 0.49,
         one.state["copy_M_ww"][1, 0] / 0.7 / np.sqrt(one.constants["copy_P_ww"][0, 0])]
        for one in found
    ])  # fmt: skip
    assert all(np.diag(one.state["Q_ww"]) == pytest.approx(0.49, abs=1e-12) for one in found[:20])
    z = cosines.mean(0) / (cosines.std(0) / draws**0.5)
    assert np.abs(z).max() < 4.5
    squares = d * cosines**2
    z = (squares.mean(0) - 1) / (squares.std(0) / draws**0.5)
    assert np.abs(z).max() < 4.5


def test_new_directions_where_there_is_no_room_outside():
    # Six rows in five dimensions: the Gram matrix of all has no more than rank five.
    before, _ = begun((), 6)
    small = dataclasses.replace(before, parameters=dataclasses.replace(before.parameters, d=5))
    declared = dataclasses.replace(small.parameters.declaration, changes=(Change("fresh", "w", "w"),))
    type(small.parameters).declaration = declared
    after = beginnings.begin(small, np.random.default_rng(0))
    gram = beginnings.rows(small.parameters).gram({**after.state, **after.constants})
    values = np.linalg.eigvalsh(gram)
    assert values[0] > -1e-12 and (values > 1e-9).sum() <= 5


def test_a_student_that_is_its_label_rests():
    # The loss of a copy is 0, also where units have a kink and their correlation with the copy is 1.
    for unit, tier in (("erf(w/sqrt(2))", "exact"), ("relu(w)", "exact")):
        model = odesim.declare(
            student={"unit": unit, "units": 2, "output": "trained"},
            teacher={"one": {}, "copy": {"from": "student"}}, training={"teacher": ["copy"], "until": 1},
            start={"norm": 0.7},
        )  # fmt: skip
        run = odesim.integrate(model, d=50, tier=tier)
        assert np.ptp(np.asarray(run["Q_ww"]), axis=0) == pytest.approx(0.0, abs=1e-10)
        assert np.asarray(run["error"]) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("tier", ["exact", "sampled"])
def test_the_back_ends_agree(tier):
    # Stages differ in who makes the label: none may run with the program of another.
    runs = [
        odesim.integrate(network(second=AGAIN), stage="all", d=1000, tier=tier, backend=backend)
        for backend in ("numba", "jax")
    ]
    for one, two in zip(*runs, strict=True):
        for name in ("error", "Q_ww", "copy_M_ww", "a"):
            assert np.asarray(one[name]) == pytest.approx(np.asarray(two[name]), abs=2e-5)


def test_tiers_agree():
    exact, sampled = (
        odesim.integrate(network(second=AGAIN), stage="all", d=1000, tier=tier) for tier in ("exact", "sampled")
    )
    for one, two in zip(exact, sampled, strict=True):
        assert np.asarray(one["error"])[-1] == pytest.approx(np.asarray(two["error"])[-1], rel=4e-3)


NAMES = ("Q_ww", "one_M_ww", "copy_M_ww", "a")


@pytest.mark.parametrize(("method", "backend", "seeds"), [
    ("explicit", "jax", 40), ("compressed", "jax", 40), ("compressed", "numba", 24),
])  # fmt: skip
def test_sgd_follows_the_flow(method, backend, seeds):
    model = network()
    flows = odesim.integrate(model, stage="all", d=1000, save_points=2)
    runs = odesim.simulate(model, stage="all", method=method, d=1000, seeds=seeds, backend=backend, save_points=2)
    for run, flow in zip(runs, flows, strict=True):
        assert root_mean_square(z_of_runs(run, flow, NAMES)) < 2.0
    assert np.asarray(runs[0]["copy_P_ww"]).shape == (2, 2)
    assert np.asarray(runs[1]["copy_P_ww"]).shape == (seeds, 2, 2)  # every replica has a copy of its own


def vectors(run):
    return np.concatenate([np.asarray(run[name])[:, -1].reshape(len(run["Q_ww"]), -1) for name in NAMES], axis=1)


BESIDE = {
    "giant": {"training": {"limit": "batch", "batch": "3*d", "step": 1.0, "rates": {"a": 0.2}}},
    "memory": {"training": {"limit": "online", "step": "0.5/sqrt(b2)"}, "memory": {"b2": {"start": 0.5, "rate": "g2"}}},
    "rule": {"training": {"limit": "online", "step": 0.5, "rule": {"w": "clip(dl, 1)*df"}}},
    "look": {"training": {"limit": "online", "step": 0.5, "look": {"size": 0.2, "use": "last"}}},
    "schedule": {"training": {"limit": "online", "step": [[0, 0.5], [3, 0.2]]}},
    "sphere": {"training": {"limit": "online", "step": 0.5, "weights": "sphere"}},
    "momentum": {"training": {"limit": "online", "step": 0.05, "momentum": 0.9}},
    "velocities": {"training": {"limit": "online", "step": 0.5, "momentum": {"time": 1.0}}},
    "episode": {
        "student": {"unit": "sign(w)"}, "teacher": {"one": {}, "copy": {"from": "student"}},
        "training": {"limit": "online", "rule": "-R*sign(w)",
                     "episode": {"samples": 3, "success": "step(f*y)", "reward": "n/T"}},
        "start": {"norm": 1.0, "overlap": 0.3},
    },
}  # fmt: skip


FAST = ("giant", "episode", "velocities")


@pytest.mark.parametrize(
    "other", [pytest.param(name, marks=() if name in FAST else pytest.mark.slow) for name in BESIDE]
)
def test_copies_beside_other_features(other):
    ends = (3, 6) if other == "giant" else (2, 4)
    tables = {
        "student": {"unit": "erf(w/sqrt(2))", "units": 2, "output": "trained"},
        "teacher": {"noise": 0.1, "one": {"units": 2}, "copy": {"from": "student"}},
        "start": {"norm": 0.7, "overlap": 0.2},
        "stage": [{"name": "first", "teacher": ["one"], "until": ends[0]},
                  {"name": "second", "teacher": ["copy"], "until": ends[1], "begin": AGAIN}],
    }  # fmt: skip
    model, seeds = odesim.declare(**{**tables, **BESIDE[other]}), 40
    flows = odesim.integrate(model, stage="all", d=600, save_points=4 if other == "giant" else 3)
    runs = odesim.simulate(
        model, stage="all", method="compressed", d=600, seeds=seeds, save_points=4 if other == "giant" else 3
    )
    for run, flow in zip(runs, flows, strict=True):
        z = [z_scores(np.asarray(run[name])[:, -1], np.asarray(flow[name])[-1]) for name in NAMES if name in run.state]
        assert root_mean_square(np.concatenate(z)) < 2.2


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["numba", "jax"])
def test_explicit_and_compressed_sgd_have_one_law(backend):
    model, count = network(second=AGAIN), 6_000
    explicit = odesim.simulate(model, stage="all", method="explicit", d=9, seeds=count, save_points=2, seed=5)
    compressed = odesim.simulate(
        model, stage="all", method="compressed", d=9, seeds=count, save_points=2, seed=6, backend=backend
    )
    # Overlaps of new directions are one draw of the seed, which both runs must share.
    same = odesim.simulate(
        model, stage="all", method="compressed", d=9, seeds=count, save_points=2, seed=5, backend=backend
    )
    for one, two in zip(explicit, same, strict=True):
        assert np.abs(z_of_laws(vectors(one), vectors(two))).max() < 4.5
    # Control: other new directions are another law.
    assert np.abs(z_of_laws(vectors(explicit[-1]), vectors(compressed[-1]))).max() > 4.5


def test_a_run_goes_on_within_a_stage():
    model = odesim.declare(**CHAIN)
    first = odesim.integrate(model, d=10**6, rtol=1e-11)
    (whole,) = odesim.integrate(after=first, stage="second", rtol=1e-11)
    (half,) = odesim.integrate(after=first, stage="second", until=9, rtol=1e-11)
    (rest,) = odesim.integrate(after=half, stage="second", until=12, rtol=1e-11)
    assert np.asarray(rest["copy_M_ww"])[-1] == pytest.approx(np.asarray(whole["copy_M_ww"])[-1], abs=1e-9)
    assert np.asarray(rest["copy_M_ww"])[0] == pytest.approx(np.asarray(half["copy_M_ww"])[-1], abs=0)


def test_sgd_goes_on_within_a_stage():
    model = odesim.declare(**CHAIN)
    first = odesim.simulate(model, method="compressed", d=30, seeds=3)
    (half,) = odesim.simulate(after=first, stage="second", method="compressed", until=9)
    (rest,) = odesim.simulate(after=half, stage="second", method="compressed", until=12)
    assert np.array_equal(np.asarray(rest["copy_M_ww"])[:, 0], np.asarray(half["copy_M_ww"])[:, -1])
    assert np.array_equal(np.asarray(rest["copy_P_ww"]), np.asarray(half["copy_P_ww"]))
    assert np.ptp(np.asarray(rest["copy_P_ww"]).ravel()) > 0


def test_a_stage_asked_for_alone_begins_as_it_says():
    run = odesim.integrate(network(second={"a": 0.25}), stage="second", d=50)
    assert np.asarray(run["a"])[0].tolist() == [0.25, 0.25]


def test_a_start_may_name_the_weights():
    rng = np.random.default_rng(0)
    weights = {"w": rng.normal(size=(2, 20)), "one_w_star": rng.normal(size=(2, 20))}
    run = odesim.integrate(network(), stage="first", initial=weights)
    assert np.asarray(run["copy_P_ww"]) == pytest.approx(weights["w"] @ weights["w"].T)


def test_numbers_of_another_name():
    model = odesim.declare(
        student={"unit": "v*w", "output": "trained"}, teacher={"one": {"unit": "w"}},
        training={"teacher": ["one"]},
        stage=[{"name": "s", "until": 1, "begin": {"w": "fresh", "a": 2}}],
    )  # fmt: skip
    initial = Case.build(model, {"d": 10}, stage="s").parameters.declaration.changes
    assert initial == (Change("fresh", "w", "w"), Change("number", "a", 2.0))


def test_readouts_of_one_head_begin_as_those_of_another():
    model = odesim.declare(
        student={"unit": "erf(w)", "units": 2, "output": {"one": "trained", "two": "trained"}},
        teacher={"one": {}, "two": {}}, training={"limit": "flow"}, start={"a_one": [0.3, -0.2], "norm": 0.5},
        stage=[{"name": "first", "head": "one", "until": 1},
               {"name": "second", "head": "two", "until": 2, "begin": {"a_two": "a_one", "a_one": 0.1}}],
    )  # fmt: skip
    first, second = odesim.integrate(model, stage="all", d=50)
    assert np.array_equal(np.asarray(second["a_two"])[0], np.asarray(first["a_one"])[-1])
    assert np.asarray(second["a_one"])[0].tolist() == [0.1, 0.1]


@pytest.mark.parametrize("momentum", [0.5, {"time": 1.0}])
def test_velocities_stay_where_vectors_are_copied_and_drawn_anew(momentum):
    # In weights: rows [w, one, copy, v]; a copy is the rows of w, and v is what it was.
    rng = np.random.default_rng(0)
    w, one, v = rng.normal(size=(2, 12)), rng.normal(size=(2, 12)), rng.normal(size=(2, 12))
    model = network(second={"copy": "student"}, momentum=momentum)
    case = Case.build(model, {"d": 12}, stage="second")
    old = rng.normal(size=(2, 12))
    arrays = {
        "Q_ww": w @ w.T, "one_M_ww": w @ one.T, "copy_M_ww": w @ old.T, "one_P_ww": one @ one.T,
        "one_copy_P_ww": one @ old.T, "copy_P_ww": old @ old.T, "a": np.ones(2), "copy_a_star": np.zeros(2),
        "VV_ww": v @ v.T, "VQ_ww": v @ w.T, "one_VM_ww": v @ one.T, "copy_VM_ww": v @ old.T, "velocity_a": np.ones(2),
    }  # fmt: skip
    after = begun_of(case, arrays)
    known = {**after.state, **after.constants}
    assert known["copy_VM_ww"] == pytest.approx(v @ w.T) and known["VQ_ww"] == pytest.approx(v @ w.T)
    assert known["one_VM_ww"] == pytest.approx(v @ one.T) and known["copy_P_ww"] == pytest.approx(w @ w.T)
    fresh = begun_of(Case.build(model, {"d": 12}, stage="third"), arrays)
    known = {**fresh.state, **fresh.constants}
    assert known["VV_ww"] == pytest.approx(v @ v.T) and known["copy_VM_ww"] == pytest.approx(v @ old.T)
    assert not np.allclose(known["VQ_ww"], v @ w.T)
    gram, _ = model_velocities(fresh)
    assert np.linalg.eigvalsh(gram)[0] > -1e-10


def begun_of(case, arrays):
    return beginnings.begin(enter(case.parameters, arrays, np.random.default_rng(0)), np.random.default_rng(1))


def test_the_page_says_it():
    text = odesim.derive(network(second=AGAIN), stage="second", format="text")
    assert "copy: a copy of student, which is fixed" in text
    assert "at the beginning: copy := student; w := random directions" in text


def refused(sentence, copy=None, begin=None, **tables):
    made = {**CHAIN, **tables}
    if copy is not None:
        made["teacher"] = {**made["teacher"], "copy": copy}
    if begin is not None:
        made["stage"] = [made["stage"][0], {"name": "second", "until": 12, "begin": begin}]
    with pytest.raises(odesim.UsageError, match=re.escape(sentence)):
        odesim.declare(**made)


@pytest.mark.parametrize(
    ("sentence", "tables"),
    [
        ("copy = 'teacher': a copy can only be made of students; known are student", {"copy": {"from": "teacher"}}),
        ("unknown key 'units'", {"copy": {"from": "student", "units": 2}}),
        ("a copy needs another teacher", {"teacher": {"copy": {"from": "student"}}}),
        ("a copy needs another teacher", {"teacher": {"from": "student"}, "stage": []}),
        ("stage second: begin: 'v' is neither a copy nor a vector or number", {"begin": {"v": "fresh"}}),
        ("begin: w are vectors and can only begin 'fresh', not 'random'", {"begin": {"w": "random"}}),
        ("begin: copy = 'one', but [teacher.copy] is a copy from 'student'", {"begin": {"copy": "one"}}),
        ("begin is a table such as", {"begin": "copy"}),
        ("begin is a table such as", {"begin": {}}),
        ("begin: 'a' is neither a copy nor a vector or number", {"begin": {"a": 1}}),
        ("copies and [inputs] cannot be combined yet", {"inputs": {"blocks": [[0.5, 2.0], [0.5, 1.0]]}}),
        ("new directions and [inputs] cannot be combined yet",
         {"teacher": {"one": {}}, "inputs": {"blocks": [[0.5, 0.5], [1.5, 0.5]]},
          "stage": [{"name": "s", "until": 1, "begin": {"w": "fresh"}}]}),
        ("copies and normalised weights cannot be combined yet", {"training": {"weights": "normalised"}}),
        ("copies and scalars of each unit (b) cannot be combined yet",
         {"student": {"unit": "erf(w + b)"}, "teacher": {"one": {"unit": "w"}, "copy": {"from": "student"}},
          "parameters": {"b": {"default": 0.0, "per": "unit"}}}),
        ("copy_M_ww belongs to a copy and follows from the students: leave it out",
         {"start": {"Q_ww": [[1.0]], "one_M_ww": [[0.1]], "copy_M_ww": [[1.0]]}}),
    ],
)  # fmt: skip
def test_refusals(sentence, tables):
    refused(sentence, **tables)


def test_copies_and_heads_are_refused():
    with pytest.raises(odesim.UsageError, match="copies and several heads cannot be combined yet"):
        odesim.declare(
            student={"unit": "erf(w)", "output": {"one": "trained"}},
            teacher={"one": {}, "copy": {"from": "student"}}, training={},
        )  # fmt: skip
    with pytest.raises(odesim.UsageError, match="begin: a_one takes a number, or the name of another number"):
        odesim.declare(
            student={"unit": "erf(w)", "output": {"one": "trained", "two": "trained"}}, teacher={"one": {}, "two": {}},
            stage=[{"name": "s", "until": 1, "begin": {"a_one": "a_three"}}],
        )  # fmt: skip

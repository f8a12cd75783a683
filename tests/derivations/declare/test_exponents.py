"""Exponents of teachers: known rows, the literature, the symmetries that bound transforms, and the measured flow."""

import math

import numpy as np
import pytest

import odesim
from derivations.declare import exponents, label_symmetries, leading, teacher_label
from odesim.request.case import Case

SPHERE = {"loss": "correlation", "weights": "sphere"}
FALLING = math.sqrt(2 * math.log(2))
"""sign(w^3 - c^2 w) has E[y w] = 2 phi(0) (2 exp(-c^2/2) - 1), which vanishes at this c."""


def declared(unit, teacher=None, student="He(2, w) + He(3, w)", **tables):
    return odesim.declare(student={"unit": student}, teacher={"unit": unit, **(teacher or {})}, **tables)


def of(system, **parameters):
    """The exponents of the one label of a system."""
    (found,) = exponents.exponents(Case.build(system, parameters).parameters)
    return found


def order(steps):
    return [(step.order, step.text) for step in steps]


@pytest.mark.parametrize(
    ("unit", "information", "generative"),
    [
        ("He(3, w)", 3, 1),
        ("He(4, w)", 4, 2),
        ("He(2, w)", 2, 2),
        ("He(12, w)", 12, 2),
        ("relu(w)", 1, 1),
        ("erf(w/sqrt(2))", 1, 1),
        ("abs(w)", 2, 2),
        ("cos(3*w)", 2, 2),
        ("sign(w)", 1, 1),
        ("clip(w, 1)", 1, 1),
        ("relu(w - 0.7)", 1, 1),
        ("sin(w) - exp(-0.5)*w", 3, 1),
        ("sign(w^3 - 2*log(2)*w)", 3, 3),
        ("w^3/sqrt(6) - 3*w/sqrt(6)", 3, 1),
        ("He(3, w) + 1e-12*w", 1, 1),  # rational arithmetic: no tolerance
    ],
)
def test_rows_of_one_direction(unit, information, generative):
    found = of(declared(unit))
    assert (found.information, found.leap, found.generative, found.exact) == (
        information,
        information,
        generative,
        True,
    )
    assert order(found.steps) == [(information, "w")]


@pytest.mark.parametrize(
    ("unit", "steps", "transformed"),
    [
        ("u + 0.6*u*v + 0.35*u*v*w", [(1, "u"), (1, "v"), (1, "w")], None),
        ("u*v*w", [(3, "u, v, w")], [(2, "u, v, w")]),
        ("u^2*v", [(1, "v"), (2, "u")], None),
        ("u + He(4, v)", [(1, "u"), (4, "v")], [(1, "u"), (2, "v")]),
        ("He(3, u) + He(3, v)", [(3, "u, v")], [(1, "u + v"), (2, "u - v")]),
        ("(u^2 - v^2)/2", [(2, "u, v")], None),
        ("u*v", [(2, "u, v")], None),
        ("cos(u*v)", [(2, "u, v")], None),
        ("relu(u)*v", [(1, "v"), (1, "u")], None),
        ("step(u)*He(2, v)", [(2, "v"), (1, "u")], [(1, "u"), (2, "v")]),
        ("(u + v)/sqrt(2) + 0.3*(u^2 - v^2)", [(1, "u + v"), (1, "u - v")], None),
        ("erf(u)*erf(v)*erf(w)*erf(z)", [(4, "u, v, w, z")], [(2, "u, v, w, z")]),
    ],
)
def test_directions_are_found_in_this_order(unit, steps, transformed):
    found = of(declared(unit))
    assert order(found.steps) == steps and found.exact
    assert order(found.generative_steps) == (transformed or steps)
    assert found.leap == max(k for k, _ in steps) and found.information == steps[0][0]
    assert found.generative_leap == max(k for k, _ in transformed or steps)


@pytest.mark.parametrize(
    ("name", "parameters", "stated"),
    [
        ("ben_arous_2021", {}, (3, 3, 1)),  # Ben Arous, Gheissari & Jagannath 2021: He_3 has the exponent 3
        ("arnaboldi_2023", {}, (2, 2, 2)),  # phase retrieval: d log d
        ("repetita_iuvant_2024", {}, (3, 3, 1)),  # Dandi et al. 2024: repeated samples learn He_3 in O(d)
        ("ren_2025", {"teachers": 4}, (4, 4, 2)),  # Ren et al. 2025: He_4, all directions at one order
        ("simsek_2025", {"teachers": 4}, (3, 3, 1)),  # He_3 teachers with overlaps
        ("martin_2024", {}, (2, 2, 2)),  # quadratic units
        ("collins_woodfin_2023", {}, (1, 1, 1)),  # least squares
        ("saad_solla_1995", {}, (1, 2, 1)),  # the symmetric plateau: differences of teachers come at order 2
        ("relu_committee", {}, (1, 2, 1)),
        ("dandi_2024", {}, (1, 1, 1)),  # Dandi et al. 2024: one giant step sees both directions of tanh(u + He_3(v))
    ],
)
def test_the_gallery_has_the_exponents_of_its_papers(name, parameters, stated):
    found = of(name, **parameters)
    assert (found.information, found.leap, found.generative) == stated


def test_a_committee_is_symmetric_before_it_is_specialised():
    found = of("saad_solla_1995", teachers=2)
    assert order(found.steps) == [(1, "w_1 + w_2"), (2, "w_1 - w_2")] and found.exact
    assert order(of("saad_solla_1995").steps)[1] == (2, "the rest of w_1, w_2, w_3")


def test_relu_students_do_not_see_the_third_order():
    # E[relu He_3] = 0: a teacher of He_3 and He_4 is seen at 4, and one of He_3 alone never.
    found = of("kawata_neuron")
    assert (found.information, found.student.order) == (3, 4)
    blind = of(declared("He(3, w)", student="relu(w)")).student
    assert blind.order is None and "share no order" in blind.reason


def test_a_bias_and_a_norm_change_what_a_student_sees():
    bias = {"b": {"default": 0.5, "per": "unit"}}
    assert of(declared("He(3, w)", student="relu(w + b)", parameters=bias)).student.order == 3
    seen = [of(declared("He(1, w) + He(3, w)", student="He(3, w)", start={"norm": norm})).student.order
            for norm in (1.0, 0.5)]  # fmt: skip
    assert seen == [3, 1]  # He_3 of a field of norm 1/2 has a part He_1
    wick = declared("He(1, w) + He(3, w)", student="wick(3, w)", start={"norm": 0.5})
    assert of(wick).student.order == 3


@pytest.mark.parametrize(
    ("student", "teacher"),
    [
        ("He(3, w)", "He(3, w) + He(4, w)"), ("relu(w)", "He(3, w) + He(4, w)"), ("tanh(w)", "erf(w)"),
        ("He(2, w)", "relu(w)"), ("He(4, w) + w^3", "cos(w) + He(5, w)"), ("sign(w)", "He(5, w)"),
    ],
)  # fmt: skip
def test_the_student_sees_the_order_of_tier_leading(student, teacher):
    parameters = Case.build(declared(teacher, student=student, training=SPHERE), {}).parameters
    (found,) = exponents.exponents(parameters)
    assert found.student.order == leading.shared_degree(parameters)[0]


@pytest.mark.parametrize("loss", ["correlation", "squared"])
@pytest.mark.parametrize(
    ("unit", "teacher", "k"),
    [("He(2, w)", None, 2), ("He(3, w)", None, 3), ("erf(w)", None, 1), ("relu(w)", "He(3, w) + He(4, w)", 4)],
)
def test_overlaps_grow_as_their_power_k_minus_1(unit, teacher, k, loss):
    # M' ~ M^(k-1) of the exact flow at small M, read from short runs at two overlaps.
    tables = {"unit": teacher} if teacher else {}
    training = {"loss": loss, "weights": "sphere"}
    growth = []
    for overlap in (0.01, 0.02):
        system = odesim.declare(student={"unit": unit}, teacher=tables, training=training, start={"overlap": overlap})
        run = odesim.integrate(system, until=1e-3, rtol=1e-12, atol=1e-16, save_points=3)
        growth.append(float(run["M_ww"][-1, 0, 0] - run["M_ww"][0, 0, 0]))
    assert of(system).student.order == k
    assert math.log2(growth[1] / growth[0]) == pytest.approx(k - 1, abs=0.02)


@pytest.mark.parametrize(
    ("unit", "z_of", "least"),
    [
        ("He(3, w)", lambda w: w**3 - 3 * w, 1),
        ("He(4, w)", lambda w: w**4 - 6 * w**2 + 3, 2),
        ("sign(w^3 - 2*log(2)*w)", lambda w: np.sign(w**3 - FALLING**2 * w), 3),
    ],
)
def test_transforms_of_samples_agree_with_the_generative_exponent(unit, z_of, least):
    # E[T(y) He_k] over a million samples: none below the generative exponent, and one at it.
    w = np.random.default_rng(3).normal(size=1_000_000)
    y = z_of(w)
    he = [w, w**2 - 1, w**3 - 3 * w]
    transforms = [y, np.tanh(y), np.abs(y) + y, y > 0, np.sign(y) * np.abs(y) ** 0.5, np.cos(y)]
    z = np.array([[float((t * h).mean() / (t * h).std()) * 1e3 for t in transforms] for h in he])
    assert of(declared(unit)).generative == least
    assert np.abs(z[: least - 1]).max(initial=0.0) < 4.5
    assert np.abs(z[least - 1]).max() > 20


def test_label_noise_changes_nothing():
    for unit in ("He(3, w)", "u^2*v", "erf(w)"):
        clean, noisy = of(declared(unit)), of(declared(unit, {"noise": 0.7}))
        assert order(clean.steps) == order(noisy.steps)
        assert order(clean.generative_steps) == order(noisy.generative_steps)


def test_a_loss_of_signs_sees_the_sign():
    for loss in ("logistic", "hinge"):
        found = of(declared("He(3, w)", training={"loss": loss}))
        assert (found.information, found.generative, found.binary) == (1, 1, True)  # E[w sign(He_3)] is not 0
        blind = of(declared("w^3 - 2*log(2)*w", training={"loss": loss}))
        assert (blind.information, blind.generative) == (3, 3)
        assert of(declared("He(4, w)", {"noise": 0.5}, training={"loss": loss})).information == 2
        line = of(declared("w", {"units": 7}, training={"loss": loss}))
        assert (line.information, line.directions) == (1, 1)


def test_every_head_has_an_answer():
    system = odesim.declare(
        student={"unit": "erf(w)", "output": {"one": "trained", "two": "trained"}},
        teacher={"one": {"unit": "He(3, w)"}, "two": {"unit": "u*v"}},
    )
    one, two = exponents.exponents(Case.build(system, {}).parameters)
    assert (one.head, one.information, one.student.order) == ("one", 3, 3)
    assert (two.head, two.information, two.student.order) == ("two", 2, None)


def test_groups_predictions_and_copies_of_units():
    groups = odesim.declare(
        student={"unit": "erf(w)"},
        teacher={"prediction": "one*two", "one": {"unit": "w"}, "two": {"unit": "He(2, w)"}},
    )
    found = of(groups)
    assert order(found.steps) == [(3, "one_w, two_w")]
    assert order(found.generative_steps) == [(1, "one_w"), (2, "two_w")] and found.exact
    # A teacher and its negative cancel at odd orders; the sum of two such relu is abs.
    same = declared("relu(w)", {"units": 2, "gram": -1.0})
    assert (of(same).information, of(same).directions) == (2, 1)


@pytest.mark.parametrize(
    ("prediction", "unit", "stated"),
    [
        ("sign(line)", "w^3 - 2*log(2)*w", (3, 3)),
        ("abs(line)", "w", (2, 2)),
        ("line^2", "He(3, w)", (2, 2)),
        ("clip(line, 1)", "He(3, w)", (1, 1)),
    ],
)
def test_a_prediction_of_one_direction_may_have_kinks_and_jumps(prediction, unit, stated):
    system = odesim.declare(student={"unit": "erf(w)"}, teacher={"prediction": prediction, "line": {"unit": unit}})
    found = of(system)
    assert (found.information, found.generative) == stated and found.exact


def test_correlated_vectors_span_the_directions():
    found = of(declared("u^2*v", {"gram": [[1.0, 0.6], [0.6, 1.0]]}))
    # E[u^2 v x] = v + 2 (u.v) u: one direction of order 1, and with it known the other one.
    assert order(found.steps) == [(1, "0.61 u + 0.51 v"), (1, "1.09 u - 1.14 v")]
    first = found.steps[0].basis[0]
    u, v = np.array([1.0, 0.0]), np.array([0.6, 0.8])
    expected = v + 2 * 0.6 * u
    assert np.abs(first) == pytest.approx(np.abs(expected / np.linalg.norm(expected)), abs=1e-12)


def test_a_linear_committee_has_one_direction():
    found = of(declared("w", {"units": 7}))
    assert (found.directions, found.information) == (1, 1)
    assert found.steps[0].text == "w_1 + w_2 + .. + w_7"


@pytest.mark.parametrize(
    ("unit", "teacher", "count", "least"),
    [
        ("u*v*w", {}, 24, [2]),  # 6 permutations, 4 even sign changes
        ("erf(w)", {"units": 3}, 6, [1, 2]),
        ("He(2, w)", {"units": 4}, 384, [2]),
        ("u + He(4, v)", {}, 2, [1, 2]),
        ("relu(w)", {"units": 3, "gram": 0.3}, 6, [1, 2]),
        ("He(2, u) + He(3, u)*v", {}, 2, [2, 1]),  # (-u, -v): u^3 v is invariant, though v is not
    ],
)
def test_symmetries_bound_every_transform(unit, teacher, count, least):
    (label,) = teacher_label.labels(Case.build(declared(unit, teacher), {}).parameters)
    steps = of(declared(unit, teacher)).steps
    assert len(label_symmetries.symmetries(label)) == count
    assert label_symmetries.least_orders(label, [step.basis for step in steps]) == least


def test_bounds_that_differ_are_called_at_most():
    # E[u | sign] = 0 here, so that the true order of u is 3, but no symmetry says so.
    system = declared("sign(u^3 - 2*log(2)*u) + He(4, v)")
    found = of(system)
    assert order(found.steps) == [(3, "u"), (4, "v")] and not found.exact
    assert order(found.generative_steps) == [(2, "v"), (3, "u")]
    answer = odesim.exponents(system)
    assert "generative at most 2" in answer.sentences[0] and not answer.summary()["generative_exact"]


def test_a_transform_that_is_invariant_has_no_forbidden_tensor():
    # Of the committee relu with overlaps .3: E[T(y) z_perp] = 0 by the bound; by four million samples, |z| < 4.5.
    system = declared("relu(w)", {"units": 3, "gram": 0.3})
    rest = of(system).steps[1].basis
    rows = np.linalg.cholesky(np.full((3, 3), 0.3) + 0.7 * np.eye(3))
    z = np.random.default_rng(5).normal(size=(400_000, 3))
    y = np.maximum(z @ rows.T, 0).sum(axis=1)
    scores = [float((t * p).mean() / (t * p).std()) * len(z) ** 0.5 for t in (y, y**2, y > 1) for p in (z @ rest.T).T]
    assert np.abs(scores).max() < 4.5


def test_costs_of_an_exponent():
    assert [exponents.samples(k) for k in (1, 2, 3, 4, 5)] == ["d", "d log d", "d^2", "d^3", "d^4"]
    assert [exponents.flow_time(k) for k in (1, 2, 3, 4, 5)] == ["1", "log d", "d^0.5", "d", "d^1.5"]
    for k in (1, 2, 3, 5, 6):  # tier leading says the same
        assert leading.scaling(k) == f"O({exponents.flow_time(k)})"

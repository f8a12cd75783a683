"""Rules in the equations: closed forms, means over points and over Gauss-Hermite nodes.

The judge of a rule is `evaluate`, which reads it off the declaration and differentiates automatically.
"""

import dataclasses

import numpy as np
import pytest

import odesim
from derivations.declare import sampled
from derivations.declare.claims import sample_gradient
from derivations.declare.claims.states import quieted, state
from derivations.declare.initial import enter
from derivations.declare.parameter_class import rows
from derivations.declare.tiers import equations, settled
from odesim.flow.problem import compile_functions


def declared(unit, rule, *, student=None, teacher=None, parameters=None, inputs=None, **training):
    tables = {"parameters": parameters, "inputs": inputs}
    return odesim.declare(
        name="ruled",
        student={"unit": unit, "units": 2, **(student or {})},
        teacher={"noise": 0.2, **(teacher or {})},
        training={"rule": rule, **training},
        **{key: value for key, value in tables.items() if value is not None},
    )


FEEDBACK = {"F": {"default": "1 - 0.4*j", "per": "unit"}}
BIAS = {"b": {"default": 0.2, "per": "unit"}}
TRAINED = {"output": "trained"}
MODELS = {
    "feedback": lambda **t: declared(
        "erf(w/sqrt(2))", {"w": "F*dl*dphi"}, student=TRAINED, teacher={"units": 2}, parameters=FEEDBACK, **t
    ),
    "straight through": lambda **t: declared("sign(w)", "dl", teacher={"unit": "erf(w)", "units": 2}, **t),
    "pseudo-derivative": lambda **t: declared("relu(w)", "dl*step(w + 0.2)", student=TRAINED, **t),
    "with a bias": lambda **t: declared(
        "relu(w + b)", "dl*step(w)*b", teacher={"unit": "relu(w)"}, parameters=BIAS, trained=["w", "b"], **t
    ),
    "two slots": lambda **t: declared(
        "v*w + 0.5*w", {"w": "F*dl*dphi", "v": "-0.3*y*v"}, parameters=FEEDBACK, **t
    ),
    "one slot of two": lambda **t: declared(
        "v*w + 0.5*w + b*v", {"v": "0.7*dl*df"}, teacher={"unit": "v*w"}, parameters=BIAS, trained=["v", "w", "b"], **t
    ),
    "no error": lambda **t: declared("v*w + 0.5*w", {"w": "dl*(1 + v)", "v": "0.2*v"}, **t),
    "hebb": lambda **t: declared("w", "-y", teacher={"unit": "w^2 + w"}, **t),
    "two eigenvalues": lambda **t: declared(
        "w^2 + w", "dl*w", inputs={"blocks": [[2.0, 0.25], [0.5, 0.75]]}, **t
    ),
    "sphere": lambda **t: declared("w^2 + w", "dl*(w + 0.3)", weights="sphere", **t),
    "correlation": lambda **t: declared("w^2 + w", "dl*(w^2 - 0.5)", weights="sphere", loss="correlation", **t),
    "tanh on a sphere": lambda **t: declared(
        "tanh(w)", "0.5*dl*dphi", student=TRAINED, weights="sphere", **t
    ),
}  # fmt: skip
SAMPLED = {
    "clipped": lambda **t: declared("tanh(w)", "clip(dl, 0.5)*df", **t),
    "everything": lambda **t: declared(
        "tanh(w + b)",
        {"w": "clip(grad, 0.5) + 0.1*l*w", "a": "clip(dl, 1)*df + 0.1*f", "b": "dl*dphi*a*F"},
        student=TRAINED, parameters={**BIAS, **FEEDBACK}, teacher={"unit": "tanh(w)"}, trained=["w", "a", "b"], **t,
    ),
    "routed": lambda **t: declared("softmax(w)*w", "clip(dl, 1)*df", student=TRAINED, teacher={"unit": "tanh(w)"}, **t),
    "logistic": lambda **t: declared("tanh(w)", "dl*step(-f*y)*df", loss="logistic", **t),
    "two eigenvalues": lambda **t: declared(
        "tanh(w)", "clip(dl, 0.5)*df", inputs={"blocks": [[2.0, 0.25], [0.5, 0.75]]}, **t
    ),
}  # fmt: skip


def by_samples(initial):
    """The drift of every order parameter by the points of tier sampled, from rules that are interpreted."""
    normals, weights = sampled.nodes(initial.parameters)
    made = sample_gradient.drift_of(sample_gradient.at_points(initial, normals.T, weights), initial)
    return {name: values[0] for name, values in made.items()}


def by_equations(initial, tier, backend="numba"):
    found = equations(initial.parameters, tier)
    slope = compile_functions(found, backend)["flow"](0.0, found.start(initial), *found.arguments(initial))
    return rows(initial.parameters).layout.unpack(np.asarray(slope))


@pytest.mark.parametrize("backend", ["numba", "jax"])
@pytest.mark.parametrize("name", SAMPLED)
@pytest.mark.parametrize("limit", ["flow", "online"])
def test_at_its_points_tier_sampled_moves_as_the_rules_say(name, limit, backend):
    initial = quieted(state(SAMPLED[name](limit=limit).parameters, 1))
    found, expected = by_equations(initial, "sampled", backend), by_samples(initial)
    for parameter, values in expected.items():
        scale = np.abs(values).max()
        # A large batch makes the second-order term small, and leaves 1e-12 of it.
        assert found[parameter] == pytest.approx(values, abs=1e-11 * scale)


@pytest.mark.parametrize("name", MODELS)
def test_closed_forms_agree_with_interpreted_rules(name):
    model = MODELS[name](limit="online")
    initial = state(model.parameters, 1)
    assert settled(initial.parameters) in ("exact", "mixed")
    quiet = quieted(initial)
    scores, judged = [], sample_gradient.moments(quiet, 2)
    found = by_equations(quiet, settled(quiet.parameters))
    for parameter, batches in sample_gradient.drift_of(judged, quiet).items():
        error = batches.std(0, ddof=1) / np.sqrt(len(batches))
        far = np.abs(found[parameter] - batches.mean(0))
        assert (far <= 6 * error + 1e-12).all()
        scores.append(error.max() / np.abs(batches.mean(0)).max())
    assert min(scores) < 0.02, "the judge knows at least one number to two per cent"


@pytest.mark.parametrize("name", [name for name in MODELS if name not in ("straight through", "pseudo-derivative",
                                  "with a bias", "tanh on a sphere")])  # fmt: skip
def test_the_second_order_term_is_that_of_rules(name):
    model = MODELS[name](limit="online")
    initial = state(model.parameters, 1)
    assert settled(initial.parameters) == "exact"
    loud, quiet = (by_equations(at, "exact") for at in (initial, quieted(initial)))
    made = sample_gradient.second_of(sample_gradient.moments(initial, 2), initial)
    for parameter, batches in made.items():
        error = batches.std(0, ddof=1) / np.sqrt(len(batches))
        far = np.abs(loud[parameter] - quiet[parameter] - batches.mean(0))
        assert (far <= 6 * error + 1e-12).all()


def test_a_rule_that_is_the_gradient_changes_no_digit():
    plain = odesim.declare(name="plain", student={"unit": "erf(w)", "units": 2}, teacher={"noise": 0.3},
                           training={"limit": "online", "step": 0.4})  # fmt: skip
    ruled = odesim.declare(name="plain", student={"unit": "erf(w)", "units": 2}, teacher={"noise": 0.3},
                           training={"limit": "online", "step": 0.4, "rule": "grad"})  # fmt: skip
    one, two = (odesim.integrate(model, d=1000, until=5, save_points=6, rtol=1e-10) for model in (plain, ruled))
    assert np.asarray(one["M_ww"]) == pytest.approx(np.asarray(two["M_ww"]), abs=1e-12)
    assert ruled.digest != plain.digest


def test_feedback_alignment_has_the_digits_of_the_specification():
    # Integrated by other code, with the closed forms of erf units.
    model = odesim.declare(
        name="dfa",
        student={"units": 2, "unit": "erf(w/sqrt(2))", "output": "trained"},
        teacher={"units": 2, "output": "sum", "noise": 0.1},
        training={"limit": "online", "step": 1.0, "trained": ["w", "a"], "rates": {"a": 0.5},
                  "rule": {"w": "F*dl*dphi"}, "until": 12},
        parameters={"F": {"default": "2.6 - 1.6*j", "per": "unit"}},
        start={"Q_ww": [[0.5, 0.05], [0.05, 0.5]], "M_ww": [[0.1, 0.0], [0.0, 0.1]], "a": [0.2, 0.1]},
    )  # fmt: skip
    for backend in ("numba", "jax"):
        run = odesim.integrate(model, save_at=[0, 2, 12], rtol=1e-9, backend=backend)
        assert np.asarray(run["a"])[1:] == pytest.approx(
            np.array([[0.353329, 0.002756], [0.848062, -0.362956]]), abs=6e-7
        )
        assert np.asarray(run["M_ww"])[-1, 0] == pytest.approx([0.965657, 0.969942], abs=6e-7)
        assert np.asarray(run["error"])[1:] == pytest.approx([0.4572843, 0.0497528], abs=6e-8)
    # A number by -p takes the place of the expression in j, and of the list of readouts.
    again = odesim.integrate(model, F=1.0, a=0.3, save_at=[0, 1])
    assert np.asarray(again["F"]).tolist() == [1.0, 1.0] and np.asarray(again["a"])[0].tolist() == [0.3, 0.3]


def perceptron(rule, **more):
    """Student and teacher are signs: closed forms are known."""
    return odesim.declare(name="perceptron", student={"unit": "sign(w)"}, teacher={},
                          training={"limit": "online", "step": 1.0, "rule": rule}, **more)  # fmt: skip


@pytest.mark.parametrize("rule", ["-y*step(-f*y)", "-y", "w*step(-f*y)"])
def test_perceptron_hebb_and_adatron_have_their_closed_forms(rule):
    q, rho = 1.3, 0.4
    Q, theta = q**2, np.arccos(rho)
    e = (theta - rho * np.sqrt(1 - rho**2)) / np.pi
    root = np.sqrt(2 * np.pi)
    own, along, square = {
        "-y*step(-f*y)": (q * (1 - rho) / root, -(1 - rho) / root, theta / np.pi),
        "-y": (-2 * q * rho / root, -2 / root, 1.0),
        "w*step(-f*y)": (Q * e, q * (rho * e - (1 - rho**2) ** 1.5 / np.pi), Q * e),
    }[rule]
    model = perceptron(rule, start={"Q_ww": [[Q]], "M_ww": [[q * rho]]})
    parameters = model.parameters(tier="sampled", points=2**18)
    start = enter(parameters, None, np.random.default_rng(0))
    found = by_equations(start, "sampled")
    assert found["M_ww"][0, 0] == pytest.approx(-along, rel=2e-4)
    assert found["Q_ww"][0, 0] == pytest.approx(-2 * own + square, rel=2e-4)


def test_polynomials_that_are_no_products_have_exact_means():
    # E[He_3(z)^3 He_3(z*)^3 dphi ..]: moments of two correlated normal numbers, by SymPy.
    import sympy

    model = odesim.declare(
        name="cubic", student={"unit": "He(3, w)"}, teacher={},
        training={"rule": "dl^3*df", "weights": "sphere", "limit": "online", "loss": "correlation", "step": 1e-3},
        start={"overlap": 0.05},
    )  # fmt: skip
    z, g, m = sympy.symbols("z g m")
    other = m * z + sympy.sqrt(1 - m**2) * g
    c = -((other**3 - 3 * other) ** 3) * (3 * z**2 - 3)

    def mean(expression):
        found = sympy.Integer(0)
        for (i, j), value in sympy.Poly(sympy.expand(expression), z, g).terms():
            if i % 2 == 0 and j % 2 == 0:
                found += value * sympy.factorial2(i - 1) * sympy.factorial2(j - 1)
        return sympy.expand(found)

    along, own, square = (sympy.lambdify(m, mean(e)) for e in (c * other, c * z, c**2))
    assert settled(model.parameters()) == "exact"
    for overlap in (0.05, 1e-3, 1e-5):
        initial = quieted(enter(model.parameters(overlap=overlap), None, np.random.default_rng(0)))
        expected = -1e-3 * (along(overlap) - own(overlap) * overlap)
        for backend in ("numba", "jax"):
            assert by_equations(initial, "exact", backend)["M_ww"][0, 0] == pytest.approx(expected, rel=2e-6)
    initial = enter(model.parameters(), None, np.random.default_rng(0))
    quiet = quieted(initial)
    gain = by_equations(initial, "exact")["M_ww"] - by_equations(quiet, "exact")["M_ww"]
    assert gain[0, 0] == pytest.approx(-0.5 * 1e-6 * square(0.05) * 0.05, rel=1e-9)


def test_a_weak_recovery_is_followed_where_means_are_exact():
    model = odesim.declare(
        name="weak", student={"unit": "He(2, w)"}, teacher={},
        training={"rule": "dl*df + 0.1*y^2*df", "weights": "sphere", "loss": "correlation", "until": 6},
        start={"overlap": 1e-4},
    )  # fmt: skip
    run = odesim.integrate(model, save_points=20)
    assert run.summary["tier"] == "exact" and "sampling_error" not in run.summary
    assert np.asarray(run["M_ww"])[-1, 0, 0] ** 2 > 0.5
    page = odesim.derive(model)
    assert "Gauss-Hermite" in str(page)


REFUSED = [
    ({"rule": "v*dl"}, "rule names 'v', which is neither a field of this unit"),
    ({"rule": {"b": "dl"}}, "rule names 'b', which is not trained or does not exist"),
    ({"rule": {"a": "dl"}, "trained": ["w"]}, "rule names 'a', which is not trained or does not exist"),
    ({"rule": 3}, "a rule is an expression"),
    ({"rule": "softmax(w)*dl"}, "softmax has no meaning in a rule"),
    ({"rule": "exp(w*w)"}, "not integrable"),
    ({"rule": "dl/f"}, "can be 0"),
    ({"rule": "dl*df", "weights": "normalised"}, "use sphere or free"),
    ({"rule": "dl*slope"}, "rule names 'slope'"),
]


@pytest.mark.parametrize(("training", "said"), REFUSED)
def test_rules_that_are_refused(training, said):
    with pytest.raises(odesim.UsageError, match=said):
        odesim.declare(student={"unit": "tanh(w)"}, teacher={}, training=training)


def test_a_rule_of_two_slots_needs_names():
    with pytest.raises(odesim.UsageError, match=r"there are 2 of them: rule = \{v = '..', w = '..'\}"):
        odesim.declare(student={"unit": "v*w"}, teacher={}, training={"rule": "dl*df"})
    with pytest.raises(odesim.UsageError, match="rule of v has no effect: v is not trained"):
        odesim.declare(student={"unit": "v*w"}, teacher={}, training={"rule": {"v": "dl"}, "trained": ["w"]})


def test_a_rule_beside_what_it_cannot_stand_with():
    with pytest.raises(odesim.UsageError, match="depends on its norm"):
        odesim.declare(student={"unit": "wick(2, w)"}, teacher={}, training={"rule": "dl*df"})
    with pytest.raises(odesim.UsageError, match="both your own name and a reserved name of samples"):
        odesim.declare(student={"unit": "l"}, teacher={"unit": "w"}, training={"rule": {"l": "dl*l"}})
    with pytest.raises(odesim.UsageError, match="no unit and no rule uses F"):
        odesim.declare(student={"unit": "w"}, teacher={}, parameters=FEEDBACK)
    with pytest.raises(odesim.UsageError, match="starts at the same number in every unit"):
        odesim.declare(student={"unit": "w + F"}, teacher={"unit": "w"}, parameters=FEEDBACK)
    with pytest.raises(odesim.UsageError, match="write df"):
        odesim.declare(student={"unit": "softmax(w)*w", "units": 2}, teacher={"unit": "w"}, training={"rule": "dphi"})
    with pytest.raises(odesim.UsageError, match="tier leading"):
        odesim.integrate(
            odesim.declare(student={"unit": "He(2, w)"}, teacher={}, training={"rule": "dl*df", "weights": "sphere"}),
            tier="leading", until=1,
        )  # fmt: skip


def test_tier_exact_says_why_a_rule_has_none():
    model = odesim.declare(student={"unit": "tanh(w)"}, teacher={}, training={"rule": "clip(dl, 1)*df"})
    with pytest.raises(odesim.UsageError, match="is not a product of dl, y or 1 and a function of w"):
        odesim.integrate(model, tier="exact", until=1)


def test_a_slot_may_be_called_clip():
    model = odesim.declare(student={"unit": "clip(clip, 2)"}, teacher={"unit": "v"})
    assert dataclasses.asdict(model.parameters())["units"] == 1

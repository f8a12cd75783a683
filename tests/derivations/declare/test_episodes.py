"""Episodes: the numbers of the RL perceptron, closed forms by quadrature, single episodes, claims and refusals."""

import itertools
import re

import jax
import numpy as np
import pytest
from scipy.special import erf
from scipy.stats import binom

import odesim
from derivations.contract import UsageError
from derivations.declare import episodes, rewarded, tiers
from derivations.declare import model as models
from derivations.declare.claims import generated
from derivations.declare.initial import enter
from derivations.declare.statements import statement
from odesim.evidence.laboratory import Laboratory
from odesim.sgd.bind import bind_jax, module_of
from tests.derivations.declare import judged

ALL = "step(n - T + 0.5)"
RULE = "-((1 + penalty)*R - penalty)*sign(w)"


def episode(samples=8, success="step(f*y)", reward=ALL):
    return {"samples": samples, "success": success, "reward": reward}


def perceptron(**more):
    """Declaration 3 of the specification of training."""
    training = {"limit": "online", "episode": episode(), "rule": RULE, "until": 1000, **more}
    return odesim.declare(
        name="perceptron", student={"unit": "sign(w)"}, training=training, parameters={"penalty": 0.02},
        start={"norm": 1.0, "overlap": 0.0},
    )  # fmt: skip


PATEL = {
    0.0: {
        50: (0.267573029, 1.652178959, 0.208167915), 100: (1.364190009, 5.881326493, 0.562519031),
        200: (21.4218218, 512.447456, 0.946306299), 1000: (None, None, 0.997111325),
    },
    0.02: {
        50: (0.300483955, 0.449614358, 0.448127092), 100: (10.8812272, 128.170588, 0.961133441),
        200: (None, None, 0.991457883), 1000: (None, None, 0.998877343),
    },
}  # fmt: skip
"""Overlap, squared norm and cosine of the stored integration of the authors' equations, by penalty and time."""


@pytest.mark.parametrize("backend", ["numba", "jax"])
@pytest.mark.parametrize("penalty", PATEL)
def test_the_rl_perceptron_has_all_digits_of_its_authors(penalty, backend):
    times, more = [0, *PATEL[penalty]], {"backend": backend, "rtol": 1e-10, "atol": 1e-12}
    run = odesim.integrate(perceptron(), save_at=times, penalty=penalty, **more)
    assert run.summary["tier"] == "exact"
    m, q = (np.asarray(run[name])[1:, 0, 0] for name in ("M_ww", "Q_ww"))
    for found, wanted in zip(zip(m, q, m / np.sqrt(q), strict=True), PATEL[penalty].values(), strict=True):
        assert all(one is None or two == pytest.approx(one, rel=2e-8) for two, one in zip(found, wanted, strict=True))


# -- closed forms against quadrature in the plane of both fields, all successes of an episode enumerated

SIGN, STEP = np.sign, lambda x: 1.0 * (x > 0)
MODELS = {
    "signs": ({"unit": "sign(w)"}, "sign(w)", episode(3), "-(1.3*R - 0.3)*sign(w)",
              (SIGN, SIGN, lambda f, y: STEP(f * y), lambda n, T: STEP(n - T + 0.5),
               lambda z, f, y, R: -(1.3 * R - 0.3) * SIGN(z))),
    "linear": ({"unit": "w"}, "sign(w)", episode(3, reward="n/T"), "-(R - 0.3)*y + 0.2*R*dl*df",
               (lambda z: z, SIGN, lambda f, y: STEP(f * y), lambda n, T: n / T,
                lambda z, f, y, R: -(R - 0.3) * y + 0.2 * R * (f - y))),
    "squares": ({"unit": "erf(w)"}, "erf(-2*w)", episode(4, "step(-f*y)", "n^2 - T"), "-R*w + 0.2*R^2*w",
                (erf, lambda z: erf(-2 * z), lambda f, y: STEP(-f * y), lambda n, T: n**2 - T,
                 lambda z, f, y, R: (-R + 0.2 * R**2) * z)),
    "steps": ({"unit": "step(w)"}, "sign(w)", episode(2, "step((f - 0.5)*y)*step(2 - y)", "n"), "R*(w + 1)*f - y",
              (STEP, SIGN, lambda f, y: STEP((f - 0.5) * y), lambda n, T: n, lambda z, f, y, R: R * (z + 1) * f - y)),
    "tanh": ({"unit": "sign(w)"}, "w", episode(3, "step(y)*step(f)", "n - 1"), "tanh(kappa*R)*relu(-w) + abs(w)*R",
             (SIGN, lambda z: z, lambda f, y: STEP(y) * STEP(f), lambda n, T: n - 1,
              lambda z, f, y, R: np.tanh(0.7 * R) * np.maximum(-z, 0) + np.abs(z) * R)),
}  # fmt: skip
GRAM = np.array([[0.7, 0.35], [0.35, 1.0]])


def closed(name, **training):
    student, teacher, own, rule, _ = MODELS[name]
    limit = {"limit": "online", "step": 0.8, "batch": 2, "episode": own, "rule": rule}
    return odesim.declare(
        name=name, student=student, teacher={"unit": teacher}, training=limit | training, parameters={"kappa": 0.7},
        start={"Q_ww": [[GRAM[0, 0]]], "M_ww": [[GRAM[0, 1]]]},
    )  # fmt: skip


def plane():
    """Both fields (2, N) and weights (N,), in polar coordinates by the sectors between changes of sign."""
    factor = np.linalg.cholesky(GRAM)
    nodes, of_angle = np.polynomial.legendre.leggauss(100)
    r = 6.5 * (nodes + 1)
    of_radius = 6.5 * of_angle * r * np.exp(-(r**2) / 2)
    edges = np.sort([np.arctan2(-row[0], row[1]) % np.pi for row in factor])
    edges = np.concatenate([edges, edges + np.pi, edges[:1] + 2 * np.pi])
    fields, weights = [], []
    for low, high in itertools.pairwise(edges):
        angle = low + (high - low) * (nodes + 1) / 2
        share = of_radius[:, None] * of_angle * (high - low) / (4 * np.pi)
        fields.append(np.stack([np.outer(r, np.cos(angle)).ravel(), np.outer(r, np.sin(angle)).ravel()]))
        weights.append(share.ravel())
    return factor @ np.concatenate(fields, axis=1), np.concatenate(weights)


def expected(name):
    """dQ/dt and dM/dt without decay, by the coefficients of all samples of an episode."""
    _, _, own, _, (phi, label, success, reward, c) = MODELS[name]
    z, w = plane()
    f, y = phi(z[0]), label(z[1])
    s, T = success(f, y), own["samples"]
    p = w @ s
    drift, square = np.zeros(2), 0.0
    for others in itertools.product((0, 1), repeat=T - 1):
        chance = np.prod([p if one else 1 - p for one in others])
        found = c(z[0], f, y, reward(s + sum(others), T))
        drift += chance * (z * found) @ w
        square += chance * found**2 @ w
    eta, B = 0.8, 2
    return -2 * eta * drift[0] + eta**2 * square / (B * T), -eta * drift[1]


@pytest.mark.parametrize("name", MODELS)
def test_closed_forms_are_means_over_the_plane_of_both_fields(name):
    lab = Laboratory(closed(name))
    parameters = lab.system.parameters()
    assert tiers.settled(parameters) == "exact"
    initial = enter(parameters, None, np.random.default_rng(0))
    q, m = expected(name)
    rates = lab.functions(initial, "exact").flow(initial.state)
    assert rates["Q_ww"] == pytest.approx(q, rel=2e-9) and rates["M_ww"] == pytest.approx(m, rel=2e-9)
    points = lab.functions(initial, "sampled").flow(initial.state)
    size = max(abs(q), abs(m))
    assert points["Q_ww"] == pytest.approx(q, abs=0.02 * size) and points["M_ww"] == pytest.approx(m, abs=0.02 * size)


OPEN = [
    ({"unit": "w"}, {"unit": "w"}, "step(f*y)", "-R*y", "depends on the label 'w', which has more than two values"),
    ({"unit": "w"}, {"unit": "sign(w)"}, "step(f - y)", "R*w", "depends on more than the signs of f and y"),
    ({"unit": "w"}, {"unit": "w"}, "step(kappa - f*y)", "R*w", "depends on other numbers than f and y"),
    ({"unit": "w^2 - 1"}, {"unit": "w"}, "step(f*y)", "R*w", "the sign of 'w^2 - 1' is not the sign of its field"),
    ({"unit": "sign(w)"}, {"unit": "w"}, "step(f*y)", "tanh(R*w)", "has a function of both the reward and fields"),
    ({"unit": "sign(w)", "output": "trained"}, {"unit": "w"}, "step(f*y)", "R*w", "one student and one teacher decide"),
    ({"unit": "sign(w)"}, {"unit": "w", "noise": 0.1}, "step(f*y)", "R*w", "if labels have noise"),
    ({"unit": "sign(w)", "units": 2}, {"unit": "w"}, "step(f*y)", "R*w", "for one student unit and one teacher unit"),
    ({"unit": "sign(w - 1)"}, {"unit": "w"}, "step(f*y)", "R*w", "has jumps or kinks at other places than 0"),
]  # fmt: skip


@pytest.mark.parametrize(("student", "teacher", "success", "rule", "reason"), OPEN)
def test_other_models_have_tier_sampled(student, teacher, success, rule, reason):
    training = {"limit": "online", "episode": episode(3, success), "rule": {"w": rule}}
    model = odesim.declare(student=student, teacher=teacher, training=training, parameters={"kappa": 0.5},
                           start={"overlap": 0.3})  # fmt: skip
    assert odesim.integrate(model, until=0.1, points=2**12).summary["tier"] == "sampled"
    for tier in ("exact", "mixed"):
        with pytest.raises(UsageError, match=re.escape(reason)):
            odesim.integrate(model, until=0.1, tier=tier)


# -- single episodes, and points

SAMPLED = {
    "committee": {
        "student": {"units": 2, "unit": "tanh(w + b)", "output": "trained"},
        "teacher": {"units": 2, "unit": "erf(w)", "noise": 0.2}, "parameters": {"b": {"default": 0.1, "per": "unit"}},
        "training": {"episode": episode(3, reward="n/T"), "rule": {"w": "R*dl*df", "a": "(1 + R)*grad"},
                     "trained": ["w", "a", "b"]},
    },
    "curved": {
        "student": {"units": 2, "unit": "erf(w)"}, "teacher": {"unit": "w"}, "parameters": {"kappa": 0.4},
        "training": {"episode": episode(4, "step(kappa - abs(f - y))", "n^2/T - 1"),
                     "rule": "tanh(R)*dl*df + R^3*w/40"},
    },
    "single": {
        "student": {"unit": "w"}, "teacher": {"noise": 0.5},
        "training": {"episode": episode(1, reward="2*n - 1"), "rule": "-R*y", "weights": "sphere"},
    },
    "clusters": {
        "student": {"unit": "tanh(w)"}, "teacher": {"unit": "w"},
        "inputs": {"means": {"mu": 1.2},
                   "cluster": [{"p": 0.3, "mean": "mu"}, {"p": 0.7, "mean": "-mu", "scale": 0.6}]},
        "training": {"episode": episode(3), "rule": "(R - 0.4)*dl*df"},
    },
    "blocks": {
        "student": {"unit": "sign(w)"}, "teacher": {"unit": "sign(w)", "noise": 0.1},
        "inputs": {"blocks": [[0.5, 0.6], [2.0, 0.4]]},
        "training": {"episode": episode(3), "rule": "-(R - 0.4)*sign(w)"},
    },
}  # fmt: skip


def sampled_model(name, **training):
    tables = dict(SAMPLED[name])
    return odesim.declare(name=name, **tables | {"training": {"limit": "online", **tables["training"], **training}})


@pytest.mark.parametrize("limit", ["online", "flow"])
@pytest.mark.parametrize("name", SAMPLED)
def test_at_its_own_points_the_motion_is_that_of_the_definition(name, limit):
    lab = Laboratory(sampled_model(name, limit=limit))
    assert generated.own_points(lab, {}, 1) < 1e-10
    assert generated.own_points(lab, {}, 1, 1e-4) > 1e-5


@pytest.mark.parametrize("name", ["committee", "curved", "single"])
def test_coefficients_of_compressed_sgd_are_the_definition_in_weight_space(name):
    d, rng = 9, np.random.default_rng(3)
    parameters = sampled_model(name).parameters(d=d)
    made, T = models.model(parameters), parameters.episode_samples
    start = enter(parameters, None, rng)
    gram = np.asarray(made.place(start))
    rows = np.concatenate([np.linalg.cholesky(gram), np.zeros((len(gram), d - len(gram)))], axis=1)
    x, labels = rng.normal(size=(5 * T, d)), 0.3 * rng.normal(size=(1, 5 * T))
    trained, numbers, scalars = made.sizes(parameters)[0], made.bound(start, gram), made.scalars(start)
    vv = (rows[:trained] ** 2).sum(1)
    with jax.enable_x64(True):
        coefficients = bind_jax(made)["coefficients"]
        found = np.asarray(coefficients(rows @ x.T, labels, vv, scalars, *numbers))
        along, own = made.moves(rows, scalars, x, labels, *numbers)
        assert found[:trained] @ x == pytest.approx(np.asarray(along), abs=1e-12)
        assert found[trained:].sum(1) == pytest.approx(np.asarray(own), abs=1e-12)
        fields, noises = rows @ np.roll(x, 1, 0).T, np.roll(labels, 1, 1)
        turned = np.asarray(coefficients(fields, noises, vv, scalars, *numbers))
    # Samples of other episodes have other rewards.
    assert (np.abs(np.roll(found, 1, 1) - turned).max() > 1e-3) == (T > 1)
    if T == 1:
        single = module_of(made).coefficients(rows @ x[0], labels[:, 0], vv, scalars, *numbers)
        assert single == pytest.approx(found[:, 0], abs=1e-12)


def test_the_number_of_samples_is_a_parameter():
    other = perceptron(episode=episode(5))
    for tier in ("exact", "sampled"):
        runs = [
            odesim.integrate(model, until=20, points=2**14, tier=tier, **more)
            for model, more in ((other, {}), (perceptron(), {"episode_samples": 5}))
        ]
        assert np.asarray(runs[0]["M_ww"]) == pytest.approx(np.asarray(runs[1]["M_ww"]), rel=1e-9)
        assert "5 samples" in runs[1].summary["conventions"]["episode"]


def test_chances_are_binomial_and_have_derivatives_at_both_ends():
    for count, p in itertools.product((0, 1, 4, 99), (0.0, 0.3, 1.0)):
        wanted = binom.pmf(np.arange(count + 1), count, p)
        assert episodes.chances(np, count, p) == pytest.approx(wanted, abs=1e-12)
    with jax.enable_x64(True):
        for p, wanted in ((0.0, [-3, 3, 0, 0]), (1.0, [0, 0, -3, 3])):
            slope = jax.jacobian(lambda p: episodes.chances(jax.numpy, 3, p))(p)
            assert np.asarray(slope) == pytest.approx(wanted, abs=1e-12)


def test_rules_of_first_degree_need_three_rewards():
    one, two = (sampled_model(name).parameters().declaration for name in ("committee", "curved"))
    assert rewarded.linear(one) and not rewarded.linear(two)


# -- beside other keys

BESIDE = {
    "heavy-ball": {"momentum": 0.8, "step": 0.1},
    "memory of momentum": {"momentum": {"time": 1.5}},
    "values that change": {"step": [[0, 0.5], [0.4, "0.5/(1 + t)"]], "decay": "0.1*exp(-t)"},
    "sphere": {"weights": "sphere"},
    "flow": {"limit": "flow", "step": 0.05, "rates": 0.5},
}


@pytest.mark.parametrize("name", BESIDE)
def test_other_keys_act_in_closed_forms_and_at_points_alike(name):
    model, times = closed("linear", **BESIDE[name]), {"save_at": [0, 0.5, 1.0]}
    exact, points = (odesim.integrate(model, tier=tier, points=2**16, **times) for tier in ("exact", "sampled"))
    plain = odesim.integrate(closed("linear"), **times)
    for block in ("Q_ww", "M_ww"):
        assert np.asarray(points[block]) == pytest.approx(np.asarray(exact[block]), abs=4e-3)
    assert np.abs(np.asarray(exact["Q_ww"]) - np.asarray(plain["Q_ww"])).max() > 0.01
    if name != "flow":
        run = odesim.simulate(model, method="compressed", d=3000, seeds=24, backend="jax", **times)
        z = judged.z_of_runs(run, exact, ["M_ww"] if name == "sphere" else ["Q_ww", "M_ww"])
        assert np.abs(z).max() < 4.5


def test_memories_read_the_gradients_of_episodes():
    tables = {"student": {"unit": "w"}, "teacher": {"unit": "sign(w)"}, "start": {"norm": 0.8, "overlap": 0.4}}
    tables["memory"] = {"b2": {"start": 0.5, "rate": "g2"}}
    training = {"limit": "online", "step": "0.6/sqrt(b2)", "batch": 2, "episode": episode(3)}
    model = odesim.declare(**tables, training={**training, "rule": MODELS["linear"][3]})
    times = {"save_at": [0, 1.0, 2.0]}
    exact, points = (odesim.integrate(model, tier=tier, points=2**16, **times) for tier in ("exact", "sampled"))
    run = odesim.simulate(model, method="compressed", d=2000, seeds=32, **times)
    for block in ("Q_ww", "M_ww", "b2"):
        assert np.asarray(points[block]) == pytest.approx(np.asarray(exact[block]), abs=4e-3)
    assert np.abs(judged.z_of_runs(run, exact, ["Q_ww", "M_ww", "b2"])).max() < 4.5


def test_blocks_of_the_inputs_have_closed_forms():
    tables = {"student": {"unit": "sign(w)"}, "inputs": {"blocks": [[0.5, 0.6], [2.0, 0.4]]}}
    training = {"limit": "online", "episode": episode(3), "rule": RULE, "step": 0.5}
    model = odesim.declare(**tables, training=training, parameters={"penalty": 0.3}, start={"overlap": 0.3})
    times = {"save_at": [0, 1.0, 2.0]}
    exact, points = (odesim.integrate(model, tier=tier, points=2**16, **times) for tier in ("exact", "sampled"))
    runs = [
        odesim.simulate(model, method=method, d=d, seeds=32, **times)
        for method, d in (("compressed", 2000), ("explicit", 500))
    ]
    for block in ("Q_ww", "M_ww"):
        assert np.asarray(points[block]) == pytest.approx(np.asarray(exact[block]), abs=4e-3)
        assert all(np.abs(judged.z_of_runs(run, exact, [block])).max() < 4.5 for run in runs)


def test_stages_share_episodes_and_have_rules_of_their_own():
    stages = [{"name": "taught", "until": 1.0, "rule": "-y"}, {"name": "rewarded", "until": 2.0}]
    training, eta = {"limit": "online", "episode": episode(3), "rule": RULE, "step": 0.7}, 0.7
    tables = {"student": {"unit": "sign(w)"}, "start": {"norm": 1.0, "overlap": 0.1}}
    model = odesim.declare(**tables, training=training, stage=stages, parameters={"penalty": 0.3})
    run = odesim.integrate(model, stage="taught")
    assert np.asarray(run["M_ww"])[-1, 0, 0] == pytest.approx(0.1 + eta * np.sqrt(2 / np.pi), rel=1e-7)  # Hebb's rule
    alone = odesim.declare(**tables, training={"limit": "online", "rule": "-y", "batch": 3, "step": eta})
    other = odesim.integrate(alone, until=1.0)
    assert np.asarray(run["Q_ww"])[-1] == pytest.approx(np.asarray(other["Q_ww"])[-1], rel=1e-7)  # 1/(T B) in both
    whole = odesim.integrate(model, stage="taught,rewarded")
    assert np.asarray(whole[-1]["M_ww"])[-1, 0, 0] > np.asarray(run["M_ww"])[-1, 0, 0]


REFUSED = [
    ({"rule": "R*w"}, "rule names R, the reward of an episode, but [training] has no episode"),
    (
        {"episode": episode(), "rule": "-y"},
        "nothing depends on the reward, because no rule contains R; leave out episode",
    ),
    ({"episode": episode()}, "nothing depends on the reward"),
    ({"episode": 8, "rule": "R*w"}, "episode is a table such as"),
    ({"episode": {"samples": 8, "success": "step(f)"}, "rule": "R*w"}, "an episode lacks its reward"),
    ({"episode": episode(success="f*y"), "rule": "R*w"}, "a success must be 0 or 1: write step(..)"),
    ({"episode": episode(success="step(f) + step(y)"), "rule": "R*w"}, "a success must be 0 or 1: write step(..)"),
    ({"episode": episode(success="step(w)"), "rule": "R*w"}, "unknown name 'w'"),
    ({"episode": episode(success="step(softmax(f))"), "rule": "R*w"}, "softmax has no meaning in a success"),
    ({"episode": episode(success="step(kappa)"), "rule": "R*w"}, "depends neither on f nor on y"),
    ({"episode": episode(reward="T"), "rule": "R*w"}, "does not depend on n"),
    ({"episode": episode(reward="f*n"), "rule": "R*w"}, "unknown name 'f'"),
    ({"episode": episode(0), "rule": "R*w"}, "samples is a whole number from 1 to 100"),
    ({"episode": episode(101), "rule": "R*w"}, "samples is a whole number from 1 to 100"),
    ({"episode": episode() | {"sample": 3}, "rule": "R*w"}, "unknown key 'sample'"),
    ({"episode": episode(reward="log(n)"), "rule": "R*w"}, "the reward 'log(n)' is not a number at n = 0"),
    ({"episode": episode(), "rule": "R*w", "look": {"size": 0.1}}, "episode and look cannot be combined"),
    ({"episode": episode(), "rule": "R*grad/(1 + gnorm)"}, "episode and gnorm cannot be combined"),
    ({"episodes": episode(), "rule": "R*w"}, "did you mean 'episode'?"),
]


@pytest.mark.parametrize(("training", "sentence"), REFUSED)
def test_what_is_no_episode_is_refused_in_one_sentence(training, sentence):
    with pytest.raises(UsageError, match=re.escape(sentence)) as caught:
        odesim.declare(student={"unit": "w"}, training={"limit": "online", **training}, parameters={"kappa": 0.5})
    assert "\n" not in str(caught.value)


def test_heads_predictions_and_names_that_are_taken_are_refused():
    training, one = {"episode": episode(), "rule": "R*w"}, {"unit": "w"}
    two = {"student": {"unit": "w", "output": {"one": "trained", "two": "trained"}}, "teacher": {"one": {}, "two": {}}}
    for tables, sentence in (
        ({**two, "training": training}, "heads and rules"),
        ({**two, "training": {"episode": episode()}}, "episode and several heads"),
        ({"student": {"unit": "w", "prediction": "tanh(f)"}, "training": training}, "episode and prediction"),
        ({"student": one, "training": training, "parameters": {"T": 3.0}}, "rename your parameter"),
        ({"student": one, "training": training, "parameters": {"odds": 3.0}}, "rename your parameter"),
        ({"student": one, "training": training, "parameters": {"right_hand": 3.0}}, "rename your parameter"),
    ):
        with pytest.raises(UsageError, match=re.escape(sentence)):
            odesim.declare(**tables)


def test_the_page_says_how_rewards_come():
    text = statement(perceptron().parameters(), "exact").text
    assert "R_n = step(n - T + 0.5), s = step(f*y)" in text and "K ~ binomial of the T - 1 other samples" in text
    text = statement(perceptron().parameters(units=2), "sampled").text
    assert "no closed form: the success of a sample has closed forms only for one student unit" in text


@pytest.mark.slow
@pytest.mark.parametrize("name", ["drift", "episodes", "second-order", "tiers", "microscope"])
def test_generated_claims_are_confirmed_and_their_controls_refuted(name):
    assert judged.answer(perceptron(), name) == "confirmed"
    assert judged.answer(perceptron(), name, judged.control) == "refuted"

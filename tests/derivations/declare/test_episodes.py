"""Episodes: the numbers of the RL perceptron, closed forms by quadrature, single episodes, claims and refusals."""

import itertools

import jax
import numpy as np
import pytest
from scipy.special import erf

import odesim
from derivations.contract import UsageError
from derivations.declare import episodes, evaluate, rewarded, system, tiers
from derivations.declare import model as models
from derivations.declare.claims import generated, sample_episodes
from derivations.declare.initial import enter
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
    ({"unit": "w"}, {"unit": "w"}, "step(f*y)", "R*y*w", "reads the label 'w', which takes more than two values"),
    ({"unit": "w"}, {"unit": "sign(w)"}, "step(f - y)", "R*w", "does not depend on the signs of f and y alone"),
    ({"unit": "w"}, {"unit": "w"}, "step(kappa - f*y)", "R*w", "depends on numbers beside f and y"),
    ({"unit": "w^2 - 1"}, {"unit": "w"}, "step(f*y)", "R*w", "the sign of 'w^2 - 1' is not that of its field"),
    ({"unit": "sign(w)"}, {"unit": "w"}, "step(f*y)", "tanh(R*w)", "mixes the reward and fields in one function"),
    ({"unit": "sign(w)", "output": "trained"}, {"unit": "w"}, "step(f*y)", "R*w", "one student and one teacher decide"),
    ({"unit": "sign(w)"}, {"unit": "w", "noise": 0.1}, "step(f*y)", "R*w", "where labels have noise"),
    ({"unit": "sign(w)", "units": 2}, {"unit": "w"}, "step(f*y)", "R*w", "for one student unit and one teacher unit"),
    ({"unit": "sign(w - 1)"}, {"unit": "w"}, "step(f*y)", "R*w", "jumps or bends elsewhere than at 0"),
]  # fmt: skip


@pytest.mark.parametrize(("student", "teacher", "success", "rule", "reason"), OPEN)
def test_other_models_have_tier_sampled(student, teacher, success, rule, reason):
    training = {"limit": "online", "episode": episode(3, success), "rule": {"w": rule}}
    model = odesim.declare(student=student, teacher=teacher, training=training, parameters={"kappa": 0.5},
                           start={"overlap": 0.3})  # fmt: skip
    assert odesim.integrate(model, until=0.1, points=2**12).summary["tier"] == "sampled"
    for tier in ("exact", "mixed"):
        with pytest.raises(UsageError, match=reason):
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
        "training": {"episode": episode(4, "step(kappa - abs(f - y))", "n^2/T - 1"), "rule": "tanh(R)*dl*df + R^3*w/40"},
    },
    "single": {
        "student": {"unit": "w"}, "teacher": {"noise": 0.5},
        "training": {"episode": episode(1, reward="2*n - 1"), "rule": "-R*y", "weights": "sphere"},
    },
    "clusters": {
        "student": {"unit": "tanh(w)"}, "teacher": {"unit": "w"},
        "inputs": {"cluster": [{"probability": 0.3, "mean": 0.8, "variance": 2.0},
                               {"probability": 0.7, "mean": -0.5, "variance": 0.5}]},
        "training": {"episode": episode(3), "rule": "(R - 0.4)*dl*df"},
    },
    "blocks": {
        "student": {"unit": "sign(w)"}, "teacher": {"unit": "sign(w)", "noise": 0.1},
        "inputs": {"eigenvalues": [0.5, 2.0], "share": [0.6, 0.4]},
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

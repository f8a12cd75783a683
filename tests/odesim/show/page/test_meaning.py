"""Is the form that a page evaluates what it shows it to be?  Expectations by quadrature and Monte Carlo, slopes by
finite differences: the comparison with the compiled code cannot say this."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
import sympy as sp
from scipy import integrate, special, stats

import derivations
from derivations.chen import rules
from derivations.chen.kernels import slope as slope_of
from derivations.chen.parameters import ACTIVATIONS as CHEN_ACTIVATIONS
from derivations.contract import load
from derivations.equations.interpreter import Evaluator
from derivations.kawata.parameters import ACTIVATIONS
from derivations.liao.tiers import riccati
from derivations.pmoe.rules import soft_top
from derivations.pruning.statements import rules as tokens_of_pruning
from derivations.statement import function, indices_of

from .tiers import Compiled


def statement(system, tier, **parameters):
    found = derivations.system(system)
    stage = next(s for s in found.stages if s.kind == "dynamics" and s.name != "router")
    return load(stage.statement)(found.parameters(**parameters, tier=tier), tier)


def kernels(stated, **values):
    """The kernels of a statement as functions of a name and numbers; state and constants do not matter."""
    series = [d for d in stated.arrays if any(i.upper == sp.oo for t in d.targets for i in indices_of(t))]
    alone = dataclasses.replace(stated, definitions=(*series, *stated.kernels), state=())
    run = Evaluator(alone, values)

    def at(name, *numbers):
        arguments = (sp.Float(x, 17) if isinstance(x, float) else x for x in numbers)
        return float(run.value(function(name)(*arguments)))

    return at


GATES = {
    "logistic": (special.expit, lambda x: special.expit(x) * special.expit(-x)),
    "probit": (special.ndtr, lambda x: np.exp(-x * x / 2) / np.sqrt(2 * np.pi)),
}


@pytest.mark.parametrize("name", GATES)
@pytest.mark.parametrize("beta", [1.0, 0.6])
def test_coefficients_of_the_gate_are_means(name, beta):
    stated = statement("liao", "cascade", gate=name, temperature=beta, m=2, m_star=1)
    state = {"gamma1": np.zeros(1), "gamma2": np.zeros(1)}
    run = Evaluator(stated, {"m": 2, "m_star": 1, "a": np.ones(1), "b": np.ones(1), **state})
    x, w = np.polynomial.hermite_e.hermegauss(160)
    for n in (0, 1, 2, 3, 7, 12):
        wanted = (w / w.sum()) @ (GATES[name][0](beta * x) * special.eval_hermitenorm(n, x))
        assert run.values["c_bar"][n] * math.sqrt(math.factorial(n)) == pytest.approx(
            wanted, abs=1e-13 * math.sqrt(math.factorial(n))
        )


@pytest.mark.parametrize("name", GATES)
@pytest.mark.parametrize("degree", [2, 3])
def test_kernels_of_a_pair_are_means_over_four_fields(name, degree):
    of = kernels(statement("liao", "exact", m=1, m_star=1, gate=name, degree=degree))
    U = np.random.default_rng(0).standard_normal((4, 6))
    U /= np.linalg.norm(U, axis=1, keepdims=True)
    v1, v2, w1, w2 = U
    x, w = np.polynomial.hermite_e.hermegauss(26)
    points = np.stack(np.meshgrid(x, x, x, x, indexing="ij")).reshape(4, -1)
    weight = np.einsum("a,b,c,d->abcd", *[w / w.sum()] * 4).ravel()
    f = np.linalg.cholesky(U @ U.T) @ points
    gate, slope = GATES[name]
    given = [float(y) for y in (v1 @ v2, w1 @ w2, v1 @ w1, v1 @ w2, v2 @ w1, v2 @ w2)]
    low, p = degree - 1, degree
    means = {"K": (gate, gate, p, p), "Lam1": (slope, slope, p, p), "Lam2": (slope, gate, low, p)}
    means |= {"Lam3": (gate, slope, low, p), "Lam4": (slope, gate, p, low), "Lam5": (gate, gate, low, low)}
    he = special.eval_hermitenorm
    for kernel, (a, b, s, t) in means.items():
        wanted = weight @ (a(f[0]) * b(f[1]) * he(s, f[2]) * he(t, f[3]))
        assert of(kernel, *given) == pytest.approx(wanted, abs=1e-6), kernel
    wanted = weight @ (slope(f[0]) * gate(f[1]))
    assert of("S", sp.Integer(1), sp.Integer(0), given[0]) == pytest.approx(wanted, abs=1e-6)


def test_repulsion_of_an_expert_and_its_router_is_eighteen_c3():
    stated = statement("liao", "riccati", m=2, m_star=1)
    state = {"gamma1": np.zeros((2, 1)), "gamma2": np.zeros((2, 1)), "I2": np.eye(2), "I3_self": np.zeros(2)}
    run = Evaluator(stated, {"m": 2, "m_star": 1, "a": np.ones(2), "b": np.ones(2), **state})
    assert float(run.values["r"]) == pytest.approx(-18 * math.sqrt(6) * run.values["c_bar"][3], rel=1e-12)
    assert sp.expand(riccati.repulsion(3)) != 0


SIGMAS = {
    "relu": lambda z: max(z, 0.0), "erf": lambda z: math.erf(z / math.sqrt(2)), "exp": math.exp, "cos": math.cos,
    "probit": lambda z: special.ndtr(z),
    "polynomial": lambda z: sum(
        c * special.eval_hermitenorm(n, z) / math.sqrt(math.factorial(n)) for n, c in enumerate((0.1, 0.2, -0.3, 0.4))
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_coefficients_of_the_shifted_activation_are_means(name):
    sigma = {"sigma": (0.1, 0.2, -0.3, 0.4)} if name == "polynomial" else {}
    stated = statement("kawata", "exact", activation=name, orthogonal=False, **sigma)
    values = (
        {"sigma": np.array([0.1, 0.2, -0.3, 0.4, *[0.0] * 20]), "width": 4, "degree": 4} if sigma else {"degree": 4}
    )
    of = kernels(stated, **values)
    for order, t in itertools.product((0, 1, 2, 5), (-0.7, 0.4)):

        def density(z, order=order, t=t):
            return (
                SIGMAS[name](z + t) * special.eval_hermitenorm(order, z) * math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
            )

        wanted = integrate.quad(density, -13, 13, points=[-t], epsabs=1e-12, limit=400)[0] / math.sqrt(
            math.factorial(order)
        )
        assert of("alpha", sp.Integer(order), t) == pytest.approx(wanted, abs=1e-10)


def differences(run, state, name, step=1e-5):
    """dL/d(state[name]) by central differences of the loss that the page states."""
    found = np.zeros_like(state[name])
    for entry in np.ndindex(found.shape):
        ends = []
        for side in (step, -step):
            moved = {**state, name: state[name].copy()}
            moved[name][entry] += side
            ends.append(Evaluator(run.statement, {**run.constants, **moved}).loss())
        found[entry] = (ends[0] - ends[1]) / (2 * step)
    return found


def test_the_motion_of_kawata_is_descent_of_the_stated_loss_on_the_sphere():
    run = Compiled("kawata", "phase1", "exact", {"C": 2, "J": 3, "d": 30}, backend="numpy")
    _, state = run.state(np.random.default_rng(0))
    g = {name: -differences(run, state, name) for name in state}
    along = (state["kappa"] * g["kappa"]).sum(1) + state["xi"] * g["xi"] + (state["nu"] * g["nu"]).sum(1)
    rates = Evaluator(run.statement, {**run.constants, **state}).rates()
    np.testing.assert_allclose(rates["xi"], g["xi"] - state["xi"] * along, atol=1e-8)
    np.testing.assert_allclose(rates["nu"], g["nu"] - state["nu"] * along[:, None], atol=1e-8)


def test_the_motion_of_pruning_is_descent_of_the_stated_loss():
    given = {"d": 5, "n": 6, "l": 2, "k": 4, "m": 3, "important": 1, "missigned": 0, "weak": 0}
    run = Compiled("pruning", "tune", "recursion", given, backend="numpy")
    _, state = run.state(np.random.default_rng(0))
    rates = Evaluator(run.statement, {**run.constants, **state}).rates()
    np.testing.assert_allclose(rates["h"], -run.constants["eta_r"] * differences(run, state, "h"), atol=1e-9)
    np.testing.assert_allclose(rates["u"], -run.constants["eta_e"] * differences(run, state, "u"), atol=1e-9)


def test_the_routers_of_pmoe_descend_the_stated_loss():
    run = Compiled("pmoe", "joint", "L1", {"k": 3, "l": 5, "n": 5, "p": 3, "m": 12}, backend="numpy")
    _, state = run.state(np.random.default_rng(0))
    rates = Evaluator(run.statement, {**run.constants, **state}).rates()
    slope = differences(run, state, "route")  # every patch is routed, so that nothing jumps
    wanted = -run.constants["lambda_r"] * slope @ run.constants["gram"]
    np.testing.assert_allclose(rates["route"], wanted, atol=1e-10)
    slope = differences(run, state, "response")
    metric = run.constants["gram"] * run.constants["act"] / 12
    np.testing.assert_allclose(rates["response"], -np.einsum("szw,sw->sz", metric, slope), atol=1e-9)


@pytest.mark.parametrize("tier", ["L0", "L1"])
def test_several_classes_of_pmoe_descend_the_stated_loss(tier):
    given = {"k": 2, "l": 4, "n": 4, "p": 2, "m": 8, "classes": 3, "delta_d": 0.3}
    run = Compiled("pmoe", "joint", tier, given, backend="numpy")
    _, state = run.state(np.random.default_rng(0))
    rates = Evaluator(run.statement, {**run.constants, **state}).rates()
    slope = differences(run, state, "route")  # every patch is routed, so that nothing jumps
    wanted = -run.constants["lambda_r"] * slope @ run.constants["gram"]
    np.testing.assert_allclose(rates["route"], wanted, atol=1e-10)
    if tier == "L0":
        wanted = -differences(run, state, "pre") @ run.constants["gram"] / 8
        np.testing.assert_allclose(rates["pre"], wanted, atol=1e-9)
        return
    metric = run.constants["gram"] * run.constants["act"] / 8
    wanted = -np.einsum("sijzw,sjw->siz", metric, differences(run, state, "response"))
    np.testing.assert_allclose(rates["response"], wanted, atol=1e-9)


def test_the_kernel_of_infinite_width_is_the_chance_of_two_signs():
    of = kernels(statement("pmoe", "L2"))
    for rho in (-0.8, 0.0, 0.3, 0.95):
        law = stats.multivariate_normal([0, 0], [[1, rho], [rho, 1]])
        assert of("kappa0", rho) == pytest.approx(law.cdf([0, 0]), abs=1e-6)


@pytest.mark.parametrize(
    ("system", "tier", "loss", "slope"), [("pmoe", "L2", "cost", "v"), ("chen", "p3", "cost", "q")]
)
def test_slopes_of_the_logistic_loss(system, tier, loss, slope):
    of = kernels(statement(system, tier))
    for u in (-2.0, 0.1, 3.0):
        assert of(slope, u) == pytest.approx((of(loss, u - 1e-5) - of(loss, u + 1e-5)) / 2e-5, abs=1e-9)


@pytest.mark.parametrize("name", CHEN_ACTIVATIONS)
def test_slopes_of_the_activations(name):
    of = kernels(statement("chen", "p3", activation=name), power=np.array(2.5))
    assert slope_of(name) is not None
    for z in (-1.3, -0.2, 0.7):
        wanted = (of("act", z + 1e-6) - of("act", z - 1e-6)) / 2e-6
        assert of("slope", z) == pytest.approx(wanted, abs=1e-8)


def test_the_law_of_the_chosen_expert_by_drawing_the_noise():
    h = np.array([0.3, -0.2, 0.9, -0.4, 0.5])
    draws = 200_000
    noise = np.random.default_rng(0).random((draws, 5))
    share = np.bincount((h + noise).argmax(axis=1), minlength=5) / draws
    p = rules.winning(h[:, None])[:, 0]
    assert p.sum() == pytest.approx(1, abs=1e-13)
    assert p[3] == 0 and share[3] == 0  # its largest value is below the smallest of the winner
    error = np.sqrt(np.maximum(p * (1 - p), 1e-12) / draws)
    assert (np.abs(share - p) / error).max() < 4.5


def test_nodes_cut_at_kinks_integrate_what_has_them():
    g = np.array([[0.2, 1.0], [1.1, 1.0], [-0.6, 0.4]])
    x, w = rules.pieces(g, 1.0, 2.0)
    np.testing.assert_allclose(w.sum(axis=1), 1.0, rtol=1e-14)
    for k in range(2):
        found = w[k] @ rules.winning(np.outer(g[:, k], x[k]))[0]
        kinks = sorted(
            {1 / abs(a - b) for a, b in itertools.combinations(g[:, k], 2) if 1 < 1 / max(abs(a - b), 1e-9) < 2}
        )
        law = integrate.quad(
            lambda b, k=k: rules.winning((b * g[:, k])[:, None])[0, 0], 1, 2, points=kinks or None, epsabs=1e-13
        )
        assert found == pytest.approx(law[0], abs=1e-11)


def pooled(h, sigma, tokens, kept):
    """The softmax-weighted activation of the tokens of largest logit."""
    chosen = sorted(tokens, key=lambda p: -h[p])[:kept]
    weight = np.exp(h[chosen])
    return weight @ sigma[chosen] / weight.sum()


@pytest.mark.parametrize("task", [0, 1])
def test_means_over_tokens_by_listing_all_samples(task):
    rng = np.random.default_rng(task)
    h, sigma, n, kept = rng.standard_normal(6), rng.random(6), 5, 3
    pi = np.array([0, 0, 0.4, 0.3, 0.2, 0.1])
    total = 0.0
    for tokens in itertools.product(range(2, 6), repeat=n - 1):
        total += np.prod(pi[list(tokens)]) * pooled(h, sigma, [task, *tokens], kept)
    assert tokens_of_pruning.iid(h + 0j, sigma, task, pi, n, kept, 200).real == pytest.approx(total, abs=1e-12)
    samples = list(itertools.combinations(range(2, 6), 3))
    wanted = np.mean([pooled(h, sigma, [task, *tokens], 2) for tokens in samples])
    assert tokens_of_pruning.distinct(h + 0j, sigma, task, pi, 4, 2, 200).real == pytest.approx(wanted, abs=1e-12)


def test_the_soft_top_takes_as_many_patches_as_there_are_places():
    rng = np.random.default_rng(0)
    count = rng.integers(0, 3, (6, 5)) + np.eye(6, 5)
    soft = soft_top(rng.standard_normal((3, 5)), count, 2, 0.1)
    taken = np.minimum(2, count.sum(axis=1))
    np.testing.assert_allclose(soft.sum(axis=2), np.broadcast_to(taken, (3, 6)), rtol=1e-12)


@pytest.mark.parametrize(
    ("system", "tier", "given"),
    [
        ("pruning", "homogeneous", {"k": 4, "important": 1, "missigned": 0, "weak": 0}),
        ("kawata", "R3", {"C": 2, "neurons": 3, "d": 30}),
    ],
)
def test_what_a_page_calls_conserved_does_not_move(system, tier, given):
    stage = derivations.system(system).stages[0].name
    run = Compiled(system, stage, tier, given, backend="numpy")
    _, state = run.state(np.random.default_rng(2))
    rates = Evaluator(run.statement, {**run.constants, **state}).rates()
    for kept in run.statement.conserved:
        ends, scale = [], 0.0
        for side in (1e-3, -1e-3):
            moved = {name: value + side * rates[name] for name, value in state.items()}
            ends.append(Evaluator(run.statement, {**run.constants, **moved}).at(kept.left, kept.right))
        for name in state:  # as much would move if one variable stood still
            moved = {**state, name: state[name] + 1e-3 * rates[name]}
            alone = Evaluator(run.statement, {**run.constants, **moved}).at(kept.left, kept.right)
            scale = max(scale, np.abs(alone - ends[0]).max())
        assert np.abs(ends[0] - ends[1]).max() < 1e-5 * scale

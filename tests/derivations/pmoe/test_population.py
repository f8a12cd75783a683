"""The levels L0, L1, L2: against differences of the d-dimensional loss, against each other, and what they conserve."""

import numpy as np
import pytest

import odesim
from derivations.pmoe import initial, model, routing_loops, tiers, world
from derivations.pmoe.parameters import Parameters, settle
from odesim.flow.problem import compile_functions

LAZY = {"n": 12, "p": 6, "d": 40, "l": 3, "delta_d": 0.2, "irrelevant": "random", "exact": 1, "pool": 200}


def compiled(parameters: Parameters, stage: str, tier: str, backend: str = "numba", arrays=None, rng=0):
    """(flow, start) of a tier at a drawn initial condition or one of weights."""
    p = settle(parameters, stage)
    enter = {"joint": initial.enter_joint, "experts": initial.enter_experts}[stage]
    start = enter(p, arrays, np.random.default_rng(rng))
    equations = {"joint": tiers.joint, "experts": tiers.experts}[stage](start.parameters, tier)
    functions = compile_functions(equations, backend)
    arguments = equations.arguments(start)
    return (lambda y: functions["flow"](0.0, y, *arguments)), equations.start(start), functions, arguments, start


@pytest.mark.parametrize(("mode", "gate", "taken"), [("joint", "softmax", 3), ("cnn", "one", 7)])
def test_one_step_is_the_gradient_of_the_d_dimensional_loss(mode, gate, taken, weights, gradient):
    """Central differences of the loss over all coordinates; their error is 1e-10."""
    arrays = weights(k=1 if mode == "cnn" else 3)
    run = odesim.integrate("pmoe", initial=arrays, mode=mode, l=taken, lam=0.05, step=0.1, until=0.1, save_points=2)
    m = arrays["out"].size
    eta = 0.1 / m
    hidden = arrays["hidden"] - eta * gradient(arrays, "hidden", taken, gate)
    assert np.abs(hidden @ arrays["patterns"].T - run.state["pre"].values[-1]).max() < 1e-10
    if mode == "joint":
        router = arrays["router"] - 0.05 * 0.1 * gradient(arrays, "router", taken, gate)
        assert np.abs(router @ arrays["patterns"].T - run.state["route"].values[-1]).max() < 1e-10


@pytest.mark.parametrize("tier", ["L0", "L1", "L2"])
@pytest.mark.parametrize(
    "extra",
    [{}, {"gate": "uniform"}, {"gate": "sharp"}, {"tie_rule": "fractional"}, {"tie_rule": "jitter", "jitters": 3}],
)
def test_numba_and_numpy_agree(tier, extra):
    p = Parameters(
        mode="joint", n=7, p=3, k=3, l=3, m=12, d=8, delta_d=0.3, lam=0.2, softness=0.05, sigma_r=0.5, **extra
    )
    loops, y, functions, arguments, _ = compiled(p, "joint", tier)
    arrays, _, other, _, _ = compiled(p, "joint", tier, "numpy")
    tight = 1e-11 if "fractional" not in extra.values() else 1e-8  # bisection against Newton for the soft threshold
    assert np.abs(loops(y) - arrays(y)).max() < tight
    assert functions["loss"](y, *arguments) == pytest.approx(other["loss"](y, *arguments), rel=1e-9)
    assert np.allclose(functions["watch"](y, *arguments), other["watch"](y, *arguments), atol=1e-9)


@pytest.mark.parametrize("gate", ["softmax", "sharp", "one"])
def test_observables_are_those_of_the_model(gate):
    """error, v1, v2, E n_s(z), shares of a class that are found, and Assumption 4.4, sample by sample."""
    p = Parameters(mode="joint", n=6, p=3, k=3, l=2, m=12, d=8, sigma_r=0.6, gate=gate, lam=0.0)
    _, y, functions, arguments, start = compiled(p, "joint", "L0")
    c, route, p = start.constants, start.state["route"], start.parameters
    found = functions["watch"](y, *arguments)
    measured = model.measure(start, start.state["pre"], route)
    assert found[:3] == pytest.approx(measured[-3:], rel=1e-12)
    taken = model.top_l(route[..., None], c["counts"].T, p.l)  # (k, P, compositions)
    share = model.gates(route[..., None], taken, p.l, model.GATES[gate])
    gates = np.where(taken > 0, share / np.where(taken > 0, taken, 1.0), 0.0)
    assert found[4:19] == pytest.approx((taken @ c["weight"]).ravel(), rel=1e-12)
    holds = []
    for a, sign in enumerate((1.0, -1.0)):
        own = c["label"] == sign
        there = taken[:, a, own] > 0
        best = there & (gates[:, a, own] >= gates[:, :, own].max(axis=1) * (1 - 1e-12))
        assert found[19 + 3 * a : 22 + 3 * a] == pytest.approx(2 * there @ c["weight"][own], rel=1e-12)
        holds.append(best.all(axis=1).any())
    assert found[3] == float(all(holds))


def test_the_soft_rule_routes_l_patches_and_hardens():
    """sum n_s = l for every composition, and the hard rule at width 1e-6."""
    rng = np.random.default_rng(3)
    counts = rng.multinomial(7, np.ones(5) / 5, size=20).astype(float)
    g = rng.standard_normal((2, 5))

    def taken(rule, *given):
        found = np.empty((2, counts.size))
        rule(g, counts, *given, found)
        return found.reshape(2, *counts.shape)

    assert np.allclose(taken(routing_loops.soft_top, 3.0, 0.3).sum(axis=-1), 3, atol=1e-12)
    hard = taken(routing_loops.top_copies, 3.0)
    assert np.allclose(taken(routing_loops.soft_top, 3.0, 1e-6), hard, atol=1e-9)
    assert (taken(routing_loops.soft_top, 7.0, 0.3) == counts).all()


def test_the_expected_routed_counts_telescope():
    """At constant v: c(z) = (v/2l)(E_+[n] - E_-[n]), E n of the i-th best = E min(l, S_i) - E min(l, S_(i-1))."""
    from scipy.stats import binom

    p = settle(Parameters(mode="separate", n=9, p=4, l=3, pi=(0.1, 0.2, 0.3, 0.4)))
    g = np.array([0.3, -0.2, 0.5, 0.1, 0.0, -0.4])
    counts, label, weight = world.population(p)
    routed = model.top_l(g[None, :, None], counts.T, 3)[0]
    best = np.argsort(-g)
    for y, own in ((1, 0), (-1, 1)):
        found = routed @ (weight * (label == y)) * 2
        previous = 0.0
        for i, z in enumerate(best):
            ahead = best[: i + 1]
            share = sum(p.pi[w - 2] for w in ahead if w >= 2)
            k = np.arange(9)
            now = binom.pmf(k, 8, share) @ np.minimum(3, k + (own in ahead))
            assert found[z] == pytest.approx(now - previous, abs=1e-13)
            previous = now


def test_the_levels_approach_each_other_with_width():
    """From the same neurons: the rms difference of responses falls at least like m^(-1/2), 8 from m = 100 to 6400."""

    def gap(m: int, first: str, second: str) -> float:
        def responses(tier: str, seed: int) -> np.ndarray:
            run = odesim.integrate("pmoe", tier=tier, m=m, step=0.25, until=40.0, save_points=5, seed=seed, **LAZY)
            return run.state["response"].values

        # Of single draws of neurons the quotient is 3 to 25, of six 6 to 17.
        return float(np.sqrt(np.mean([(responses(first, s) - responses(second, s)) ** 2 for s in range(6)])))

    assert 4 < gap(100, "L0", "L1") / gap(6400, "L0", "L1") < 24
    assert 4 < gap(100, "L1", "L2") / gap(6400, "L1", "L2") < 24


def test_the_pseudo_network_descends_and_its_signal_is_the_metric_form():
    """-dL/dflow = (1/m) sum_s c' (Gam o A_s) c (Schur: the metric is positive), here by differences of the loss."""
    p = Parameters(mode="separate", m=40, **{**LAZY, "routers": "perfect"})
    flow, y, functions, arguments, start = compiled(p, "experts", "L1")
    move = flow(y)
    h = 1e-5
    slope = (functions["loss"](y + h * move, *arguments) - functions["loss"](y - h * move, *arguments)) / (2 * h)
    s, c = start.state, start.constants
    experts, _, _ = model.weigh_experts(
        s["route"][..., None], s["response"][..., None], c["counts"].T, c["label"], start.parameters.l, 0
    )
    drive = experts @ c["weight"]
    metric = c["gram"] * c["act"] / start.parameters.m
    assert slope == pytest.approx(-np.einsum("sz,szw,sw->", drive, metric, drive), rel=1e-6)
    assert np.linalg.eigvalsh(metric).min() > -1e-14
    # the vector P_{r,s} of the proofs: sum_r a^2 |P_r|^2/4 is the same form
    active = np.where(s["pre"] >= 0, drive[:, None], 0.0)
    squares = np.einsum("smz,zw,smw->sm", active, c["gram"], active)
    assert (c["out"] ** 2 * squares).sum() / start.parameters.m == pytest.approx(-slope, rel=1e-6)


def test_joint_routers_conserve_u_with_unit_products():
    """<w_s, u> for <u, z> = 1 on all patterns: conserved to rounding along 200 chattering steps."""
    run = odesim.integrate("pmoe", mode="joint", tier="L1", step=1.0, until=200.0, lam=0.02, m=40, k=4, **LAZY)
    gram = run.extras["gram"].values
    u = np.linalg.solve(gram, np.ones(len(gram)))
    values = run.state["route"].values @ u
    assert np.abs(values - values[0]).max() < 1e-12
    assert np.abs(run.state["route"].values[-1] - run.state["route"].values[0]).max() > 1e-3
    assert run.invariants["router_drift"] < 1e-12


def test_with_one_expert_and_all_patches_the_mixture_is_the_cnn(weights):
    arrays = weights(k=1)
    cnn = odesim.integrate("pmoe", initial=arrays, mode="cnn", until=20.0, save_points=5)
    one = odesim.integrate("pmoe", initial=arrays, mode="joint", l=7, gate="one", lam=0.0, until=20.0, save_points=5)
    assert np.array_equal(cnn.state["pre"].values, one.state["pre"].values)
    # equal route values and a softmax: every gate is 1/n, and the output n times smaller
    flat = {**arrays, "router": np.zeros((1, 9))}
    soft = odesim.integrate("pmoe", initial=flat, mode="joint", l=7, gate="frozen", until=1.0, save_points=3)
    uniform = odesim.integrate("pmoe", initial=flat, mode="joint", l=7, gate="uniform", until=1.0, save_points=3)
    assert np.allclose(soft.state["pre"].values, uniform.state["pre"].values, atol=1e-15)


def test_activations_change_like_one_over_the_root_of_the_width():
    """Shares of changed activations at flow 200 by another program: 0.0906, 0.0317, 0.0101 at m = 40, 400, 4000."""
    found = [
        np.mean([
            odesim.integrate("pmoe", m=m, until=200.0, save_points=2, seed=s, data_seed=s, **LAZY)
            .state["flips"].values[-1]
            for s in range(3)
        ])
        for m in (40, 400, 4000)
    ]  # fmt: skip
    assert 0.03 < found[0] < 0.2
    assert 2 < found[0] / found[1] < 5
    assert 2 < found[1] / found[2] < 5


def test_neurons_slide_along_zero_and_the_recursion_converges_like_its_step():
    """Patterns at acute angles: final states at steps h and h/2 differ by O(h); another program saw 7e-5 at 0.01."""
    options = {"mode": "cnn", "n": 5, "p": 3, "m": 8, "d": 5, "irrelevant": "random", "delta_d": 0.3, "until": 20.0}
    ends = [
        odesim.integrate("pmoe", step=h, save_points=2, seed=3, **options).state["pre"].values[-1]
        for h in (0.1, 0.01, 0.005)
    ]
    assert np.abs(ends[1] - ends[2]).max() < 2e-3
    assert np.abs(ends[0] - ends[2]).max() < 0.1


def test_the_recursion_refuses_the_options_of_an_integrator():
    with pytest.raises(odesim.UsageError, match="recursion"):
        odesim.integrate("pmoe", rtol=1e-5, until=1.0)
    with pytest.raises(odesim.UsageError, match="less than one step"):
        odesim.integrate("pmoe", until=0.1, step=0.5)


def test_saved_times_are_whole_numbers_of_steps():
    run = odesim.integrate("pmoe", until=10.0, step=0.3, save_points=5, n=4, p=2)
    assert np.allclose(run.time / 0.3, np.round(run.time / 0.3))
    assert run.time[-1] == pytest.approx(9.9)


def test_the_state_of_a_limit_does_not_depend_on_the_order_of_patterns(weights):
    arrays = weights()
    order = np.array([0, 1, 5, 3, 2, 4])
    back = np.argsort(order)
    other = {**arrays, "patterns": arrays["patterns"][order], "index": back[arrays["index"]]}
    first, second = (
        odesim.integrate("pmoe", initial=a, mode="joint", l=3, lam=0.05, until=30.0, save_points=4, tier="L1")
        for a in (arrays, other)
    )
    assert np.abs(first.state["response"].values[..., order] - second.state["response"].values).max() < 1e-11

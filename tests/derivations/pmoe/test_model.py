"""Training: explicit vectors, counts, and the recursion are one; the mean of its steps is the flow."""

import numpy as np
import pytest

import odesim
from derivations.alphabet.experts import softmax_on, top_l
from derivations.alphabet.frame import Samples
from derivations.pmoe import initial, model, tiers
from derivations.pmoe.parameters import Parameters, settle
from odesim.flow.problem import compile_functions
from odesim.sgd.frame import atoms_of
from odesim.sgd.frame_step import Compiled, counted


def drawn(p: Parameters, uniform: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Count of each pattern in random samples (P, B), and their labels (B,)."""
    samples = counted(Samples(*model.draw(uniform, *model.law(p))), p.p + 2)
    return samples.copies, samples.labels


def both(mode: str, **options) -> list:
    """Explicit and compressed training of one request."""
    options = {"mode": mode, "step_size": 0.01, "batch": 16, "until": 40.0, "save_points": 5, "seed": 1, **options}
    return [odesim.simulate("pmoe", method=method, **options) for method in ("explicit", "compressed")]


@pytest.mark.parametrize("mode", ["separate", "joint", "cnn"])
@pytest.mark.parametrize("data", ["online", "fixed"])
def test_training_on_counts_is_training_on_vectors(mode, data):
    """The same samples from the same seed; 20 steps of rounding."""
    explicit, compressed = both(mode, data=data, delta_d=0.3, b1=(0.2,), b2=(-0.1,), N=40 if data == "fixed" else 0)
    for name in explicit.state:
        assert np.abs(explicit.state[name].values - compressed.state[name].values).max() < 1e-12, name
    moved = explicit.state["pre"].values
    assert np.abs(moved[:, -1] - moved[:, 0]).max() > 1e-3


@pytest.mark.parametrize("mode", ["joint", "separate", "cnn"])
def test_full_batches_of_a_file_are_the_recursion(mode, weights):
    arrays = weights(k={"joint": 3, "separate": 2, "cnn": 1}[mode])
    m = arrays["out"].size
    request = {
        "initial": arrays,
        "mode": mode,
        "l": 7 if mode == "cnn" else 3,
        "until": 200 * 0.02 * m,
        "save_points": 21,
    }
    if mode == "joint":
        request["lam"] = 0.05
    sgd = odesim.simulate("pmoe", method="explicit", step_size=0.02, batch=30, **request)
    flow = odesim.integrate("pmoe", step=0.02 * m, **request)
    assert np.allclose(sgd.time, flow.time)
    for name in ("pre", "route", "response", "loss", "error"):
        assert np.abs(sgd.state[name].values[0] - flow.state[name].values).max() < 1e-9, name


@pytest.mark.parametrize("mode", ["joint", "separate", "cnn"])
def test_the_mean_step_is_the_population_flow(mode):
    """200000 samples drawn by the model: drives of experts and routers within 4.5 standard errors, batch by batch."""
    p = settle(Parameters(mode=mode, n=8, p=3, delta_d=0.2, m=24, d=6, sigma_r=0.4, routers="random", lam=1.0))
    stage = "joint" if mode == "joint" else "experts"
    start = {"joint": initial.enter_joint, "experts": initial.enter_experts}[stage](p, None, np.random.default_rng(5))
    equations = {"joint": tiers.joint, "experts": tiers.experts}[stage](p, "L0")
    flow = compile_functions(equations, "numpy")["flow"]
    moved = equations.unpack(flow(0.0, equations.start(start), *equations.arguments(start)))
    s, c, rng, found = start.state, start.constants, np.random.default_rng(6), []
    for _ in range(40):
        counts, labels = drawn(p, rng.random((8, 5000)))
        value, slope = model.activate(s["pre"])
        phi = model.respond(c["out"], value)[..., None]
        weigh = model.weigh_joint if mode == "joint" else model.weigh_experts
        experts, routers, _ = weigh(s["route"][..., None], phi, counts, labels, *model.numbers(p))
        pull = experts.mean(axis=-1)[:, None] * slope
        found.append(
            np.concatenate([
                (c["out"][..., None] / p.m * pull @ c["gram"]).ravel(),
                (p.lam * routers.mean(axis=-1) @ c["gram"]).ravel()
            ])
        )  # fmt: skip
    mean, error = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / np.sqrt(40)
    expected = np.concatenate([moved["pre"].ravel(), moved["route"].ravel()])
    assert (np.abs(mean - expected) <= 5 * error + 1e-15).all()


def test_the_spread_of_a_batch_is_that_of_the_closed_form():
    """CNN at v = 1/2: tr Cov(c)/|c|^2 = 2 (1 + (n-1)^2/p + (n-1)(1 - 1/p)) - 1 per sample; 25.5 at n = p = 8."""
    p = settle(Parameters(mode="cnn", n=8, p=8, d=10))
    counts, labels = drawn(p, np.random.default_rng(0).random((8, 200_000)))
    share = labels * counts * 0.5 / 8
    expected = 2 * (1 + 49 / 8 + 7 * (1 - 1 / 8)) - 1
    assert expected == 25.5
    c = np.array([0.5, -0.5]) * 0.5 / 8
    assert share.var(axis=1).sum() / (c @ c) == pytest.approx(expected, rel=0.02)


def test_top_l_takes_the_largest_and_breaks_ties_by_index():
    route = np.array([[[0.3], [0.5], [0.5], [0.1]]])
    counts = np.array([[2.0], [1.0], [4.0], [3.0]])
    assert model.top_l(route, counts, 4)[0, :, 0].tolist() == [0, 1, 3, 0]
    assert model.top_l(route, counts, 6)[0, :, 0].tolist() == [1, 1, 4, 0]
    assert model.top_l(route, counts, 10)[0, :, 0].tolist() == [2, 1, 4, 3]


def test_ties_go_to_the_first_patch_whether_samples_share_an_order_or_not():
    counts = np.ones((3, 2))
    equal = np.zeros((1, 3, 2))
    assert model.top_l(equal, counts, 1)[0].T.tolist() == [[1, 0, 0], [1, 0, 0]]
    assert model.top_l(equal[:, :, :1], counts, 1)[0].T.tolist() == [[1, 0, 0], [1, 0, 0]]
    last_two = np.array([[[0.0, 0.0], [1.0, 1.0], [1.0, 1.0]]])
    assert model.top_l(last_two, counts, 1)[0].T.tolist() == [[0, 1, 0], [0, 1, 0]]


def test_top_l_against_sorting():
    rng = np.random.default_rng(1)
    counts = rng.multinomial(9, np.ones(6) / 6, size=30).T.astype(float)
    route = rng.standard_normal((2, 6, 1))
    found = model.top_l(route, counts, 4)
    assert np.array_equal(model.top_l(np.repeat(route, 30, axis=2), counts, 4), found)
    for s in range(2):
        for b in range(30):
            patches = np.repeat(np.arange(6), counts[:, b].astype(int))
            chosen = patches[np.argsort(-route[s, patches, 0], kind="stable")[:4]]
            assert np.array_equal(np.bincount(chosen, minlength=6), found[s, :, b])


def test_counts_and_patches_are_two_forms_of_one_sample():
    rng = np.random.default_rng(2)
    counts = rng.multinomial(7, np.ones(4) / 4, size=12).T.astype(float)
    tokens = atoms_of(counts)
    again = counted(Samples(tokens, np.ones(tokens.shape), np.ones(12)), 4)
    assert again.tokens is None
    assert np.array_equal(again.copies, counts)


def test_the_derivative_of_the_relu_at_zero_is_one():
    assert model.activate(np.array([-1e-300, 0.0, 1.0]))[1].tolist() == [0.0, 1.0, 1.0]


@pytest.mark.parametrize("mode", ["joint", "cnn"])
def test_an_answer_of_zero_is_wrong_in_training_as_in_the_flow(mode, weights):
    arrays = {**weights(k={"joint": 3, "cnn": 1}[mode])}
    arrays["out"] = np.zeros_like(arrays["out"])  # a network that answers 0 to everything, and stays there
    request = {"initial": arrays, "mode": mode, "l": 7 if mode == "cnn" else 3, "until": 0.1, "save_points": 2}
    sgd = odesim.simulate("pmoe", method="explicit", step_size=0.01, batch=30, **request)
    flow = odesim.integrate("pmoe", step=0.1, **request)
    assert sgd.state["error"].values[0, 0] == pytest.approx(1, rel=1e-12)
    assert flow.state["error"].values[0] == pytest.approx(1, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["explicit", "compressed"])
def test_jax_trains_as_numpy_does(method, weights):
    arrays = weights()
    request = {"initial": arrays, "mode": "joint", "l": 3, "lam": 0.05, "until": 5.0, "step_size": 0.02, "batch": 30}
    first = odesim.simulate("pmoe", method=method, **request)
    second = odesim.simulate("pmoe", method=method, backend="jax", **request)
    for name in ("pre", "route"):
        assert np.abs(first.state[name].values - second.state[name].values).max() < 1e-12


def test_balls_of_no_size_are_points_and_small_ones_are_near():
    options = {
        "method": "explicit",
        "mode": "separate",
        "step_size": 0.01,
        "batch": 16,
        "until": 20.0,
        "save_points": 2,
    }
    point = odesim.simulate("pmoe", **options)
    near = odesim.simulate("pmoe", rho=1e-6, data="fixed", **options)
    fixed = odesim.simulate("pmoe", data="fixed", **options)
    assert np.abs(near.state["pre"].values - fixed.state["pre"].values).max() < 1e-5
    assert point.outcome.kind == "completed"
    with pytest.raises(odesim.UsageError, match="points"):
        odesim.simulate("pmoe", **{**options, "method": "compressed"}, rho=0.1)


def test_gates_of_balls_smear_by_the_gaussian_formula():
    """x = c + s xi: E[x 1(<w, x> >= 0)] = c Phi(h/tau) + s^2 w phi(h/tau)/tau, tau = s |w| (Stein)."""
    from scipy.stats import norm

    rng, s = np.random.default_rng(3), 0.3
    c, w = np.array([1.0, 0, 0, 0]), np.array([0.2, -0.4, 0.1, 0.3])
    x = c + s * rng.standard_normal((400_000, 4))
    h, tau = w @ c, s * np.linalg.norm(w)
    expected = c * norm.cdf(h / tau) + s**2 * w * norm.pdf(h / tau) / tau
    assert np.abs((x * model.activate(x @ w)[1][:, None]).mean(axis=0) - expected).max() < 5 / np.sqrt(400_000)


def test_training_refuses_rules_that_only_flows_have():
    with pytest.raises(odesim.UsageError, match="tie_rule"):
        odesim.simulate("pmoe", method="compressed", step_size=0.1, batch=4, mode="joint", tie_rule="fractional")


def test_the_clock_of_a_step_is_the_step_size_times_m():
    run = odesim.simulate("pmoe", method="compressed", step_size=0.01, batch=4, m=50, until=5.0)
    assert run.step is not None
    assert run.step[-1] == 10
    assert run.time[-1] == pytest.approx(5.0)


def test_an_interrupted_run_goes_on_as_if_nothing_had_happened():
    from odesim.sgd.frame import FrameChains

    p = settle(Parameters(mode="joint", n=5, p=2, m=8, k=2, l=2), "joint")
    starts = [initial.enter_joint(p, None, np.random.default_rng(k)) for k in range(2)]

    def engine() -> FrameChains:
        return FrameChains(model.JOINT, starts, None, compressed=True, batch=4, step_size=0.1, seed=3)

    whole, first, second = engine(), engine(), engine()
    whole.advance(10)
    first.advance(4)
    second.restore(first.state())
    second.advance(6)
    assert np.array_equal(whole.grams(), second.grams())


@pytest.mark.parametrize("spread", [1.0, 300.0, 2000.0])
def test_gates_of_routes_that_all_samples_share_are_those_of_every_sample(spread):
    rng = np.random.default_rng(0)
    route, copies = spread * rng.uniform(-0.5, 0.5, (3, 6, 1)), rng.integers(0, 3, (6, 50)).astype(float)
    copies[0] += 1.0  # no sample is empty
    taken = top_l(route, copies, 3)
    alone = softmax_on(taken, np.broadcast_to(route, taken.shape))
    np.testing.assert_allclose(softmax_on(taken, route), alone, rtol=1e-13, atol=1e-300)
    assert np.allclose(alone.sum(axis=1), 1.0)


@pytest.mark.parametrize("spread", [1.0, 2000.0])
@pytest.mark.parametrize("gate", [0, 1, 2, 3])
def test_compiled_sums_are_those_of_every_sample(gate, spread):
    rng = np.random.default_rng(gate)
    route, response = spread * rng.uniform(-0.5, 0.5, (3, 6)), rng.standard_normal((3, 6))
    route[1, 2] = route[1, 4]  # a tie
    copies, labels = rng.integers(0, 3, (6, 50)).astype(float), rng.choice([-1.0, 1.0], 50)
    copies[0] += 1.0  # no sample is empty
    batch = Samples(None, copies, labels, rng.integers(0, 4, 50).astype(float))
    for frame_model, weigh in ((model.JOINT, model.weigh_joint), (model.EXPERTS, model.weigh_experts)):
        found = Compiled(frame_model.loops).sums(route, response, batch, (3, gate))
        expected = weigh(route[..., None], response[..., None], copies, labels, 3, gate)[:2]
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, (batch.weight * other).sum(axis=-1), rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    "given",
    [
        {"p": 5, "pi": (0.1, 0.4, 0.2, 0.2, 0.1)},
        {"p": 3, "composition": "deterministic", "counts": (4, 0, 1), "n": 6},
        {"p": 0, "n": 1, "l": 1},
    ],
)
def test_compiled_draws_are_those_of_the_model(given):
    start = initial.enter_joint(settle(Parameters(mode="joint", **given)), None, np.random.default_rng(0))
    uniform = np.random.default_rng(0).random((start.parameters.n, 200))
    law, width = model.law(start.parameters), model.sizes(start).frame
    found, drawn = Compiled(model.JOINT.loops).draw(uniform, law, width), Samples(*model.draw(uniform, *law))
    expected = counted(drawn, width)
    assert np.array_equal(found.copies, expected.copies) and np.array_equal(found.labels, expected.labels)

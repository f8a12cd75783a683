"""The tier with noise patches: against the explicit model, Stein's identity, both back ends, and its limits."""

import dataclasses

import numpy as np
import pytest

import odesim
from derivations.chen import cloud, initial, model, tiers
from derivations.chen.parameters import Parameters
from derivations.equations.tier import equations_of
from odesim.errors import UsageError
from odesim.evidence.laboratory import Laboratory
from odesim.flow.problem import compile_functions
from odesim.request.case import find_system
from odesim.sgd.patterns import PatternChains, sample
from tests.controls.stated import flow_of, namespace

SIZE = {"M": 3, "J": 2, "K": 2, "P": 4, "d": 14, "rho": 2.0, "tier": "full", "n_test": 4}


@pytest.fixture(scope="module")
def lab():
    return Laboratory(find_system("chen"))


def strong(seed=1, residual=4, **parameters):
    """Margins, logits and noise fields of order one, with `residual` directions beyond the signals."""
    p = Parameters(**{**SIZE, **parameters})
    rng = np.random.default_rng(seed)
    filters, routers = 0.5 * rng.normal(size=(2, p.M, p.J, p.K)), 0.4 * rng.normal(size=(2, p.M, p.K))
    rest = np.concatenate([0.6 * rng.normal(size=(p.M * p.J, residual)), 0.4 * rng.normal(size=(p.M, residual))])
    return initial.from_overlaps(p, *filters, *routers, rest=rest)


def flat(flow, routers_too=True):
    """Derivatives of filters (M, J, L) and routers (M, L) in the coordinates [v, c, rest]."""
    m, j, _ = flow["feat"].shape
    rest = flow["rest"]
    filters = np.concatenate([flow["feat"], flow["cen"], rest[: m * j].reshape(m, j, -1)], axis=-1)
    return filters, np.concatenate([flow["gfeat"], flow["gcen"], rest[m * j :]], axis=-1)


def test_with_three_patches_it_is_the_exact_tier(lab):
    p = Parameters(**{**SIZE, "P": 3})
    start = initial.random(p, np.random.default_rng(0))
    ours = tiers.equations(p, "full")
    assert ours.about.name == "full" and "rest" not in start.state
    first, second = (lab.functions(start, tier).flow(start.state) for tier in ("full", "p3"))
    assert all((first[name] == second[name]).all() for name in second)


def test_weak_noise_patches_lead_back_to_three(lab):
    start = strong(sigma_p=1e-3, nodes=12)
    both = lab.functions(start, "full"), lab.functions(start, "p3")
    flow, exact = (functions.flow(start.state) for functions in both)
    # Sobol points against Gauss-Legendre nodes: 1e-3 of the size of a derivative.
    for name in ("feat", "cen", "gcen", "gfeat"):
        assert np.abs(flow[name] - exact[name]).max() < 2e-3 * np.abs(exact[name]).max()
    assert np.abs(flow["rest"]).max() < 1e-4
    assert both[0].loss(start.state) == pytest.approx(both[1].loss(start.state), abs=2e-4)


def descent_of_model(start):
    """Mean and standard error of minus the gradients of the explicit model, filters (M, J, d) then routers (M, d)."""
    p, rng, means = start.parameters, np.random.default_rng(3), []
    engine = PatternChains(model.MODEL, [start], None, compressed=False, batch=10, step_size=1.0, seed=0)
    for _ in range(30):
        e = sample(model.MODEL, p, rng, 20_000, p.d)
        G, _, R, *_ = engine.pass_over(engine.weights[0], e, e.dense.sum(axis=1), rng.random((p.M, 20_000)))
        means.append(np.concatenate([G.ravel(), R.ravel()]))
    return np.mean(means, axis=0), np.std(means, axis=0, ddof=1) / np.sqrt(len(means))


def z_scores(flow, p, mean, error):
    """Deviation of the flow from the model's mean step, without normalisation of the experts' norms."""
    filters, routers = flat(flow)
    size = np.sqrt((mean[: p.M * p.J * p.d].reshape(p.M, -1) ** 2).sum(axis=1))
    beyond = ((0, 0), (0, p.d - filters.shape[-1]))  # six directions where nothing may happen
    predicted = np.concatenate(
        [(size[:, None, None] * np.pad(filters, ((0, 0), *beyond))).ravel(), np.pad(routers / p.rho, beyond).ravel()]
    )
    return (mean - predicted) / error


@pytest.mark.parametrize("activation", ["cubic", pytest.param("tanh", marks=pytest.mark.slow)])
def test_the_flow_is_the_mean_step_of_the_explicit_model(lab, activation):
    start = strong(points=2**15, activation=activation)
    flow = lab.functions(start, "full").flow(start.state)
    z = z_scores(flow, start.parameters, *descent_of_model(start))
    # 126 entries with 29 degrees of freedom: |t| > 4.2 in one set of 50; the seeds are fixed.
    assert z.size == 126 and np.abs(z).max() < 4.2 and 0.8 < np.sqrt((z**2).mean()) < 1.25


TIER = ("derivations.chen.tiers.example_types", "derivations.chen.tiers.full")
MUTATIONS = {
    "router blind to noise patches": ("SC * GFEAT[M, E] + SIGN[B] * ZETA[M, N]", "SC * GFEAT[M, E]"),
    "experts blind to noise patches": ("nested(sigma(noise), J, D)", "nested(0 * sigma(noise), J, D)"),
    "no drift of filters along them": ("nested(PULL[M, J, D, N] * part, D, N)", "nested(0 * part, D, N)"),
    "no drift of routers along them": ("DRIFT_N[M, B, N] * SIGN[B]", "0 * DRIFT_N[M, B, N]"),
    "mirrored points with the wrong sign": ("SIGN[B] * slope(SIGN[B] * OMEGA", "slope(SIGN[B] * OMEGA"),
    "no slope along them": ("SIGN[B] * slope(SIGN[B] * OMEGA[M, J, D, N])", "SIGN[B]"),
}


@pytest.fixture(scope="module")
def measured():
    start = strong(points=2**13)
    return start, descent_of_model(start)


@pytest.mark.slow
@pytest.mark.parametrize("name", [None, *MUTATIONS])
def test_every_term_of_the_noise_patches_matters(name, measured):
    start, (mean, error) = measured
    old, new = MUTATIONS[name] if name is not None else ("sp", "sp")
    statement = namespace(TIER, old, new)["statement"](start.parameters)
    equations = equations_of(statement)
    flow = flow_of(statement)(0.0, equations.start(start), *statement.arguments(start))
    worst = np.abs(z_scores(equations.unpack(flow), start.parameters, mean, error)).max()
    assert worst < 4.5 if name is None else worst > 8


def stein(start, seed):
    """E[G_m sigma'(w_mj . xi) xi] of expert 0 by Stein's identity, filters (J, L), cubic experts, one noise patch.

    tau^2 (E[G sigma''] w_j + sum_j' E[dG/df sigma'_j sigma'_j'] w_j' + sum_l E[dG/dh_l sigma'_j] theta_l), with the
    derivatives of G by JAX.
    """
    import jax
    import jax.numpy as jnp

    from derivations.chen import route

    p = start.parameters
    strengths, patches = cloud.points(p, 2 * p.K + 4, seed)
    filters, routers = flat(start.state)
    w, s = filters[0], start.state

    def weight(h, f, label):
        pi = jax.nn.softmax(h)
        return route.probabilities(h, jnp)[0] * pi[0] * label / (1 + jnp.exp(label * pi[0] * f))

    value, by_h, by_f = (jax.jit(jax.vmap(g)) for g in (weight, jax.jacfwd(weight, 0), jax.jacfwd(weight, 1)))
    found, direct, types = np.zeros_like(w), np.zeros_like(w), 4 * p.K * (p.K - 1)
    for k in range(p.K):
        for other in set(range(p.K)) - {k}:
            for label in (1.0, -1.0):
                for eps in (1.0, -1.0):
                    for side in (1.0, -1.0):
                        xi = side * patches[:, 0]
                        a, b, c = label * strengths[:, 0], strengths[:, 1], eps * strengths[:, 2]
                        h = a[:, None] * s["gfeat"][:, k] + b[:, None] * s["gcen"][:, k] + xi @ routers.T
                        h = h + c[:, None] * s["gfeat"][:, other]
                        rows = (np.outer(a, s["feat"][0, j, k]) for j in range(p.J))
                        f = sum(row.ravel() ** 3 for row in rows) + sum(
                            (b * s["cen"][0, j, k]) ** 3 for j in range(p.J)
                        )
                        f = f + sum((c * s["feat"][0, j, other]) ** 3 for j in range(p.J))
                        omega = xi @ w.T
                        f = f + (omega**3).sum(axis=1)
                        labels = np.full(len(f), label)
                        g, dh, df = (np.asarray(part(h, f, labels)) for part in (value, by_h, by_f))
                        slope = 3 * omega**2
                        mixed = (
                            np.einsum("n,nj,ni->ji", df, slope, slope) @ w + np.einsum("nl,nj->jl", dh, slope) @ routers
                        )
                        found += ((g[:, None] * 6 * omega).sum(axis=0)[:, None] * w + mixed) / (2 * types * len(f))
                        direct += np.einsum("n,nj,nl->jl", g, slope, xi) / (2 * types * len(f))
    return p.sigma_p**2 / p.d * found, direct


@pytest.mark.slow
def test_steins_identity_gives_the_same_drift_along_the_noise_patches():
    start = strong(points=4096)
    pairs = [stein(start, seed) for seed in range(6)]
    by_stein, direct = np.array([a for a, _ in pairs]), np.array([b for _, b in pairs])
    error = np.sqrt((by_stein.var(axis=0, ddof=1) + direct.var(axis=0, ddof=1)) / 6)
    t = (by_stein.mean(axis=0) - direct.mean(axis=0)) / error
    # 16 entries with about 5 degrees of freedom.
    assert np.abs(t).max() < 6 and np.sqrt((t**2).mean()) < 1.8
    assert np.abs(direct.mean(axis=0)).max() > 10 * error.max()


@pytest.mark.parametrize("activation", ["cubic", pytest.param("tanh", marks=pytest.mark.slow)])
def test_numba_and_jax_agree(activation):
    start = strong(points=64, activation=activation, P=5)
    found = []
    for backend in ("numba", "jax"):
        functions = Laboratory(find_system("chen"), backend=backend).functions(start, "full")
        flow = functions.flow(start.state)
        found.append(np.concatenate([*(flow[name].ravel() for name in flow), [functions.loss(start.state)]]))
    assert np.abs(found[0] - found[1]).max() < 1e-12


def right_hand_side(points, seed, **parameters):
    """The derivatives of experts and of routers at the reference state, with another scrambling of the points."""
    start = strong(points=points, **parameters)
    strengths, patches = cloud.points(start.parameters, 2 * 2 + 4, seed)
    equations = tiers.equations(start.parameters)
    statement = tiers.statement(start.parameters, "full")
    numbers = statement.numbers(start) | {"strengths": strengths}
    numbers |= dict(zip(("patch_v", "patch_c", "patch_r"), np.split(patches, (2, 4), axis=2), strict=True))
    arguments = [numbers[name] for name in statement.named(statement.arguments(start))]
    y = compile_functions(equations, "numba")["flow"](0.0, equations.start(start), *arguments)
    return [part.ravel() for part in flat(equations.unpack(y))]


def test_doubling_the_points_shows_the_stated_error():
    found = {}
    for points in (512, 1024, 2048, 4096):  # 8192 would be another kernel to compile
        sets = [right_hand_side(points, seed) for seed in range(8)]
        # The spread over scramblings, relative to the size of the derivative.
        found[points] = [
            np.sqrt(np.var([each[part] for each in sets], axis=0, ddof=1).sum()) / np.linalg.norm(sets[0][part])
            for part in (0, 1)
        ]
    for points, errors in found.items():
        stated = cloud.stated_error(points)
        assert max(errors) < 1.5 * stated and max(errors) > stated / 4, (points, errors, stated)
    slope = np.polyfit(np.log(list(found)), np.log([max(each) for each in found.values()]), 1)[0]
    assert -1.0 < slope < -0.5  # faster than Monte Carlo's -1/2
    assert f"{cloud.stated_error(4096):.1g}" in tiers.equations(Parameters(**{**SIZE, "points": 4096})).about.validity


def test_every_expert_moves_at_unit_speed_and_routers_keep_their_sum(lab):
    start = strong(points=256)
    filters, routers = flat(lab.functions(start, "full").flow(start.state))
    assert np.sqrt((filters**2).sum(axis=(1, 2))) == pytest.approx(1, abs=1e-12)
    assert np.abs(routers.sum(axis=0)).max() < 1e-14 * np.abs(routers).max() * 100


def test_no_basis_of_the_residual_span_is_preferred(lab):
    start = strong(points=4096)
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    turned = dataclasses.replace(start, state={**start.state, "rest": start.state["rest"] @ turn})
    first, second = (lab.functions(each, "full").flow(each.state) for each in (start, turned))
    for name in ("feat", "gcen"):
        assert np.abs(first[name] - second[name]).max() < 4 * cloud.stated_error(4096) * np.abs(first[name]).max()
    assert np.abs(first["rest"] @ turn - second["rest"]).max() < 4 * cloud.stated_error(4096)


def weights_file(seed=0, d=14, size=0.25):
    """Weights with signals along no axis: an initial file for flow and training alike."""
    rng = np.random.default_rng(seed)
    frame = np.linalg.qr(rng.normal(size=(d, d)))[0][:4]
    return {
        "W": size * rng.normal(size=(3, 2, d)), "Theta": 0.02 * rng.normal(size=(d, 3)), "V": frame[:2], "C": frame[2:]
    }  # fmt: skip


def test_weights_of_a_file_have_their_gram_matrix():
    arrays = weights_file()
    start = initial.from_weights(Parameters(**SIZE), arrays)
    rows = np.concatenate([arrays["W"].reshape(6, 14), arrays["Theta"].T])
    frame = np.vstack([arrays["V"], arrays["C"]])
    rows = rows - rows @ frame.T @ frame
    assert np.abs(start.state["rest"] @ start.state["rest"].T - rows @ rows.T).max() < 1e-13
    assert start.state["rest"].shape == (9, 9)
    assert "rest" not in initial.from_weights(Parameters(**{**SIZE, "tier": "p3"}), arrays).state


def test_drawn_residual_weights_have_the_law_of_drawn_weights():
    # Of 8 filters in 14 - 4 = 10 dimensions beyond the signals: mean and variance of Wishart entries, z-scores.
    p, rng = Parameters(**{**SIZE, "J": 4, "M": 2, "sigma_0": 1.0}), np.random.default_rng(0)
    rows = np.array([initial.draw_residual(p, rng) for _ in range(4000)])[:, :8]
    grams = rows @ np.swapaxes(rows, 1, 2)
    assert np.abs((grams.mean(axis=0) - 10 * np.eye(8)) / (grams.std(axis=0) / np.sqrt(4000))).max() < 4
    assert grams.var(axis=0) == pytest.approx(10 * (1 + np.eye(8)), rel=0.15)
    model_start = initial.enter(p, None, np.random.default_rng(1))
    w = model.place(model_start, None, np.random.default_rng(2), compressed=False)
    inner = w.filters.reshape(8, 14)[:, 4:]
    assert np.abs(inner @ inner.T - (model_start.state["rest"] @ model_start.state["rest"].T)[:8, :8]).max() < 1e-13


@pytest.fixture(scope="module")
def trajectory(tmp_path_factory):
    path = tmp_path_factory.mktemp("chen") / "weights.npz"
    np.savez(path, **weights_file())
    options = {"initial": path, "until": 0.6, "save_points": 3, "P": 4, "sigma_p": 1.5, "rho": 6.0, "n_test": 4}
    return options, odesim.integrate("chen", tier="full", points=2048, rtol=1e-5, **options)


@pytest.mark.slow
def test_online_training_approaches_the_flow_as_examples_grow(trajectory):
    options, flow = trajectory
    assert flow.outcome.kind == "completed" and flow["feat"].shape == (3, 3, 2, 2)
    errors = []
    for n in (250, 4000, 64_000):
        run = odesim.simulate("chen", method="explicit", data="online", step_size=0.01, batch=n, seeds=2, **options)
        gaps = [run[name][:, -1] - flow[name][-1] for name in ("feat", "cen", "gcen", "gfeat")]
        errors.append(np.sqrt(sum((gap**2).sum() for gap in gaps) / 2))
    # n^(-1/2) from the examples, and at the end the step's own error of order 0.01.
    assert errors[0] / errors[1] > 2.5 and errors[1] / errors[2] > 1.8 and errors[2] < 0.03
    exact = odesim.integrate("chen", tier="p3", rtol=1e-5, **options)
    left_out = np.sqrt(sum(((exact[n][-1] - flow[n][-1]) ** 2).sum() for n in ("feat", "cen", "gcen", "gfeat")))
    assert left_out > 3 * errors[2]  # the noise patches matter here, and p3 neglects them


def test_the_run_reports_its_gram_matrix_and_what_is_conserved(trajectory):
    _, flow = trajectory
    gram = flow["gram"]
    assert gram.shape == (3, 9, 9) and np.linalg.eigvalsh(gram).min() > -1e-14
    assert flow.invariants["router_sum"] < 1e-12 and flow.invariants["loss_increase"] <= 0
    assert np.abs(gram[-1] - gram[0]).max() > 0.02


def test_an_expert_that_nobody_is_sent_to_rests(lab):
    start = strong(points=64, sigma_p=0.05)
    gcen, gfeat = start.state["gcen"].copy(), 0 * start.state["gfeat"]
    gcen[2] = gcen[:2].min() - 6.0  # more than one below the others at every strength of the centres, noise and all
    rest = start.state["rest"].copy()
    rest[-3:] = 0
    lost = dataclasses.replace(start, state={**start.state, "gcen": gcen, "gfeat": gfeat, "rest": rest})
    for tier in ("p3", "full"):
        flow = lab.functions(lost, tier).flow(lost.state)
        assert (flow["feat"][2] == 0).all() and (flow["cen"][2] == 0).all() and np.abs(flow["feat"][:2]).max() > 0.1
        assert all(np.isfinite(part).all() for part in flow.values())
    assert (flow["rest"][4:6] == 0).all()


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"points": 1000}, "power of two"),
        ({"points": 16}, "give points=32 or more"),
        ({"M": 512, "J": 4, "K": 64, "d": 500}, "for one right-hand side"),
    ],
)
def test_clouds_of_the_wrong_size_are_refused(parameters, words):
    with pytest.raises(UsageError, match=words):
        odesim.integrate("chen", until=0.1, **{**SIZE, **parameters})

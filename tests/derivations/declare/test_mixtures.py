"""Inputs from clusters: flow and SGD against other engines, each other, and the loss of samples."""

import numpy as np
import pytest
from scipy import integrate, stats

import odesim
from derivations.declare import exact, initial, parameter_class, sampled, system
from derivations.declare.claims import sample_gradient, states
from odesim.flow.problem import compile_functions
from tests.derivations.declare import judged
from tests.derivations.declare.test_inputs import parameters_of
from tests.derivations.declare.test_inputs_sgd import states as after_steps

ALONG = np.array([(0.2, 0.1), (-0.15, 0.2), (0.1, -0.25), (-0.05, -0.1)])
AMONG = ALONG @ ALONG.T / 4
AMONG[np.diag_indices(4)] = 0.25
XOR = {
    "student": {"unit": "relu(w)", "units": 4, "output": "trained"},
    "inputs": {
        "blocks": [[1.0, 0.5], [0.25, 0.5]],
        "means": {"mu": 2.0, "nu": 2.0},
        "cluster": [
            {"p": 0.25, "mean": f"{sign}{name}", "label": label}
            for name, label in (("mu", 1.0), ("nu", -1.0))
            for sign in ("", "-")
        ],
    },
}
START = {
    "a": np.array([0.5, 0.5, -0.5, -0.5]),
    "Q_ww": np.array([AMONG / 2] * 2),
    "mean_M_wm": np.array([ALONG / 2] * 2),
}
LOGISTIC = {
    "student": {"unit": "w"},
    "training": {"loss": "logistic", "limit": "online", "step": 1.0, "decay": 0.05},
    "inputs": {
        "blocks": [[1.0, 0.3], [1.0, 0.7]],
        "means": {"mu": 1.2},
        "cluster": [
            {"p": 0.6, "mean": "mu", "label": 1.0, "eigenvalues": [1.5, 0.5]},
            {"p": 0.4, "mean": "-mu", "label": -1.0, "eigenvalues": [0.4, 1.0]},
        ],
    },
    "start": {"Q_ww": [[[0.075]], [[0.175]]], "mean_M_wm": [[[0.015]], [[0.035]]]},
}
TEACHER = {
    "student": {"unit": "erf(w) + 0.3*w^2", "units": 2},
    "teacher": {"unit": "erf(w)", "noise": 0.2},
    "inputs": {
        "blocks": [[1.5, 0.3], [0.5, "rest"]],
        "means": {"mu": {"norm": 1.5, "teacher": [0.5]}, "nu": 1.0},
        "cluster": [{"p": 0.3, "mean": "mu"}, {"p": 0.3, "mean": "0.5*nu - mu", "scale": 0.6}, {"p": 0.4}],
    },
    "start": {"norm": 0.7, "overlap": 0.3},
}


@pytest.mark.parametrize("backend", ["numba", "jax"])
def test_a_network_learns_the_xor_of_clusters_as_in_another_engine(backend):
    run = odesim.integrate(odesim.declare(**XOR), until=8, save_points=5, backend=backend, rtol=1e-10, initial=START)
    assert run["error"][[0, 1, 2, 4]] == pytest.approx([1.052918941694, 0.789349556465, 0.566671123477, 0.282137396373])
    assert run["a"][-1] == pytest.approx([0.75617072, 0.74594983, -0.83260143, -0.60882973], abs=2e-8)


def test_online_the_mixed_tier_follows_it_too():
    made = odesim.declare(**XOR, training={"limit": "online", "step": 0.2})
    run = odesim.integrate(made, until=40, save_points=5, initial=START)
    assert run.summary["tier"] == "mixed"
    # Means over two sets of points differ by 7e-5 in the engine that gave these numbers, and by 2e-4 here.
    assert run["error"][[1, 2, 4]] == pytest.approx([0.81406, 0.59262, 0.29871], abs=3e-4)


def test_logistic_regression_of_two_clusters_goes_the_way_of_another_engine():
    run = odesim.integrate(odesim.declare(**LOGISTIC), until=24, save_points=25, points=2**10, rtol=1e-10)
    assert run["loss"][[1, 6, 24]] == pytest.approx([0.490570670, 0.305774436, 0.265789252], abs=6e-10)
    norms = [0.15355525, 0.35895419, 0.44958465, 1.37779803, 0.59237101, 2.24865990]
    assert run["Q_ww"][[1, 6, 24]].ravel() == pytest.approx(norms, abs=6e-9)
    overlaps = [0.16874151, 0.41112613, 0.40391196, 1.10852075, 0.47690402, 1.45659772]
    assert run["mean_M_wm"][[1, 6, 24]].ravel() == pytest.approx(overlaps, abs=6e-9)
    assert max(run.summary["sampling_error"]) < 1e-11


def test_logistic_regression_is_that_of_one_field_by_quadrature():
    """Loss, share of wrong labels and motion of one linear unit are integrals over its field."""
    p = parameters_of(LOGISTIC, points=2**8)
    start = initial.enter(p, None, np.random.default_rng(0))
    made = sampled.equations(p, "sampled")
    y = made.start(start)
    functions = compile_functions(made, "numpy")
    z, w = np.polynomial.hermite_e.hermegauss(120)
    w = w / w.sum()
    Q, M = np.array([0.075, 0.175]), np.array([0.015, 0.035])
    eigenvalue, sign, share = np.array([[1.5, 0.5], [0.4, 1.0]]), np.array([1.0, -1.0]), np.array([0.6, 0.4])
    loss, drift_q, drift_m, square, wrong = 0.0, 0.0, 0.0, 0.0, 0.0
    for lam, s, q in zip(eigenvalue, sign, share, strict=True):
        mean, spread = s * M.sum(), np.sqrt(lam @ Q)
        f = mean + spread * z
        slope = -s / (1 + np.exp(s * f))
        loss += q * w @ np.logaddexp(0, -s * f)
        wrong += q * stats.norm.cdf(-s * mean / spread)
        kappa, bend = w @ slope, w @ (slope * z) / spread
        drift_q, drift_m = (
            drift_q + q * (lam * bend * Q + kappa * s * M),
            drift_m + q * (lam * bend * M + kappa * s * 1.44 * np.array([0.3, 0.7])),
        )
        square = square + q * lam * (w @ slope**2)
    rates = made.unpack(functions["flow"](0.0, y, *made.arguments(start)))
    assert functions["loss"](y, *made.arguments(start)) == pytest.approx(loss, rel=1e-12)
    assert functions["watch"](y, *made.arguments(start))[1] == pytest.approx(wrong, rel=1e-12)
    wanted = -2 * (drift_q + 0.05 * Q) + np.array([0.3, 0.7]) * square
    assert rates["Q_ww"].ravel() == pytest.approx(wanted, rel=1e-11)
    assert rates["mean_M_wm"].ravel() == pytest.approx(-(drift_m + 0.05 * M), rel=1e-11)


# -- the second-order term of erf units

UNEQUAL = [{"p": 0.3, "mean": "mu", "eigenvalues": [1.5, 0.4]}, {"p": 0.7, "mean": "nu - 0.5*mu"}]
SCALES = [{"p": 0.5, "scale": 2.0}, {"p": 0.5, "scale": 0.4}]
BY_LABEL = [{**one, "label": label} for one, label in zip(UNEQUAL, (1.0, -0.6), strict=True)]
BLOCKS = {"blocks": [[1.3, 0.3], [0.6, "rest"]]}
MEANS = {**BLOCKS, "means": {"mu": {"norm": 1.2, "teacher": [0.4]}, "nu": 0.7}}
FREE = {**BLOCKS, "means": {"mu": 1.2, "nu": 0.7}}
ONE = {"student": {"unit": "1.3*erf(0.8*w)"}, "teacher": {}, "start": {"overlap": 0.3}}
PAIR = {"student": {"unit": "1.3*erf(0.8*w)", "units": 2}}
TILTED = {
    "means": {**ONE, "inputs": {**MEANS, "cluster": UNEQUAL}},
    "one cluster": {**ONE, "inputs": {**MEANS, "cluster": [{"mean": "mu - nu"}]}},
    "scales": {**ONE, "inputs": {**BLOCKS, "cluster": SCALES}},
    "normalised": {**ONE, "inputs": {**MEANS, "cluster": UNEQUAL}, "training": {"weights": "normalised"}},
    "labels": {**PAIR, "inputs": {**FREE, "cluster": BY_LABEL}},
    "labels of scales": {
        **PAIR, "inputs": {**BLOCKS, "cluster": [{**c, "label": y} for c, y in zip(SCALES, (1.0, 2.0), strict=True)]},
    },
    "correlation": {**PAIR, "inputs": {**FREE, "cluster": BY_LABEL}, "training": {"loss": "correlation"}},
}  # fmt: skip


@pytest.mark.parametrize("name", list(TILTED))
def test_tilted_means_of_erf_units_are_those_over_a_grid_of_their_fields(name):
    """Two fields without noise: tier sampled then has an error of rounding, and shares no closed form."""
    model = TILTED[name]
    model = {**model, "training": {"limit": "online", "step": 0.3, **model.get("training", {})}}
    closed, over_grid = rates_of(model), rates_of(model, "sampled")
    size = max(float(np.abs(rate).max()) for rate in over_grid.values())
    for part, rate in closed.items():
        assert rate == pytest.approx(over_grid[part], abs=1e-12 * size), part
    still = rates_of({**model, "training": {**model["training"], "step": 1e-12}})
    assert np.abs(still["Q_ww"] - 1e-12 / 0.3 * closed["Q_ww"]).max() > 1e-3 * np.abs(still["Q_ww"]).max()


# -- identities


def rates_of(tables, tier="exact", **numbers):
    """The motion of every order parameter at a drawn start."""
    p = parameters_of(tables, **numbers)
    start = initial.enter(p, None, np.random.default_rng(3))
    made = exact.equations(p) if tier == "exact" else sampled.equations(p, tier)
    y = made.start(start)
    return made.unpack(compile_functions(made, "numpy")["flow"](0.0, y, *made.arguments(start)))


def test_a_cluster_that_is_parted_into_two_alike_changes_nothing():
    one, parts = rates_of(TEACHER), [*TEACHER["inputs"]["cluster"][:2], {"p": 0.15}, {"p": 0.25}]
    two = rates_of({**TEACHER, "inputs": {**TEACHER["inputs"], "cluster": parts}})
    for name, rate in one.items():
        assert two[name] == pytest.approx(rate, abs=1e-14), name


def test_one_cluster_without_a_mean_is_no_cluster():
    plain = {**TEACHER, "inputs": {"blocks": TEACHER["inputs"]["blocks"]}}
    one, two = rates_of(plain), rates_of({**plain, "inputs": {**plain["inputs"], "cluster": [{"p": 1.0}]}})
    for name, rate in one.items():
        assert two[name] == pytest.approx(rate, abs=1e-15), name


def test_a_mean_along_a_vector_is_a_bias_of_its_unit():
    """With the mean m e_1 of all inputs, a unit phi(w) has the bias w . m, which moves with w."""
    tables = {
        "student": {"unit": "gelu(w)"},
        "teacher": {"unit": "w^2"},
        "inputs": {"means": {"mu": {"norm": 0.8, "teacher": [1.0]}}, "cluster": [{"mean": "mu"}]},
        "start": {"norm": 0.9, "overlap": 0.4},
    }
    shifted = {
        "student": {"unit": "gelu(w + 0.288)"},  # .9 * .4 * .8
        "teacher": {"unit": "(w + 0.8)^2"},
        "start": tables["start"],
    }
    one, two = (parameters_of(t) for t in (tables, shifted))
    found = [odesim.integrate(odesim.declare(**t), until=1e-6, save_points=2)["error"][0] for t in (tables, shifted)]
    assert one != two and found[0] == pytest.approx(found[1], rel=1e-12)


# -- the loss of samples, differentiated by JAX

CASES = {
    "xor": (XOR, "exact"),
    "teacher of clusters": (TEACHER, "exact"),
    "squares online": (
        {**TEACHER, "student": {"unit": "w^2 + 0.2*w", "units": 2, "output": "trained"}, "teacher": {"unit": "w^2"},
         "training": {"limit": "online", "step": 0.3, "decay": 0.1}}, "exact",
    ),
    "sphere": ({**TEACHER, "training": {"weights": "sphere"}, "start": {"overlap": 0.3}}, "exact"),
    "normalised": ({**TEACHER, "training": {"weights": "normalised"}}, "exact"),
    "biases": (
        {**XOR, "student": {"unit": "relu(w + b)", "units": 2, "output": "trained"},
         "parameters": {"b": {"default": 0.2, "per": "unit"}}}, "exact",
    ),
    "correlation of labels": ({**XOR, "training": {"loss": "correlation", "weights": "sphere"}}, "exact"),
    "one block": (
        {**TEACHER, "inputs": {**TEACHER["inputs"], "blocks": [[0.7, "rest"]]},
         "student": {"unit": "exp(w/2)", "units": 2}, "teacher": {"unit": "cos(w)"}}, "none",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", [n if n in ("xor", "squares online") else pytest.param(n, marks=pytest.mark.slow)
                                  for n in CASES])  # fmt: skip
def test_the_motion_is_that_of_the_loss_of_samples(name):
    tables, tier = CASES[name]
    kind = system.system(parameters_of(tables).declaration).parameters
    start = states.start(kind, 1)
    moments, rates = sample_gradient.moments(start, 1), []
    for each in (states.quieted(start), start):
        made = exact.equations(each.parameters) if tier == "exact" else sampled.equations(each.parameters, "sampled")
        y = made.start(each)
        rates.append(made.unpack(compile_functions(made, "numpy")["flow"](0.0, y, *made.arguments(each))))
    drift = sample_gradient.drift_of(moments, states.quieted(start))
    second = sample_gradient.second_of(moments, start) if kind().declaration.limit == "online" else {}
    for found, wanted in ((drift, rates[0]), (second, {k: rates[1][k] - rates[0][k] for k in second})):
        judged.assert_means_of(found, wanted, 1e-9 if tier == "exact" else 5e-3)


# -- SGD

SMALL = {
    "student": {"unit": "erf(w)", "units": 2, "output": "trained"},
    "teacher": {"unit": "erf(w)", "noise": 0.2, "spread": "random"},
    "training": {"decay": 0.1},
}
MEANS = {"mu": {"norm": 1.5, "teacher": [0.5], "spread": [0.2, 0.3, 0.5]}, "nu": 1.0}
LAWS = {
    "means and scales": [{"p": 0.3, "mean": "mu"}, {"p": 0.7, "mean": "0.5*nu - mu", "scale": 0.4}],
    "labels": [{"p": 0.5, "mean": "mu", "label": 1.0}, {"p": 0.5, "eigenvalues": [0.3, 2.0, 0.9], "label": -1.0}],
}
DIMENSIONS = {
    "tiny, small and large": ([[2.0, "4/d"], [0.7, "6/d"], [0.3, "rest"]], 300),
    "around the number of vectors": ([[2.0, "7/d"], [0.7, "8/d"], [0.3, "rest"]], 51),
    "all small": ([[2.0, "4/d"], [0.7, "4/d"], [0.3, "rest"]], 13),
}


def mixed(law, blocks, weights):
    """A small network on three blocks and two clusters."""
    training = {"weights": weights} if weights == "normalised" else {**SMALL["training"], "weights": weights}
    labels = law == "labels"
    means = {"mu": {k: v for k, v in MEANS["mu"].items() if k != "teacher"}} if labels else MEANS
    return {
        **{key: value for key, value in SMALL.items() if key != "teacher" or not labels},
        **({"teacher": {"noise": 0.2}} if labels else {}),
        "inputs": {"blocks": DIMENSIONS[blocks][0], "means": means, "cluster": LAWS[law]},
        "training": training,
    }


@pytest.mark.slow
@pytest.mark.parametrize("weights", ["free", "sphere", "normalised"])
@pytest.mark.parametrize(("batch", "steps"), [(1, 1), (3, 4)])
@pytest.mark.parametrize("blocks", list(DIMENSIONS))
@pytest.mark.parametrize("law", list(LAWS))
def test_explicit_and_compressed_steps_have_one_law(law, blocks, batch, steps, weights):
    tables, d, replicas = mixed(law, blocks, weights), DIMENSIONS[blocks][1], 3000
    begun, one = after_steps(tables, "explicit", replicas, batch, steps, 1, d=d)
    again, two = after_steps(tables, "compressed", replicas, batch, steps, 2, d=d)
    assert begun == pytest.approx(again, abs=1e-12)
    judged.assert_one_law(one, two)


@pytest.mark.slow
def test_one_eigenvalue_for_all_clusters_is_another_law():
    """The control: compressed steps of clusters of the mean covariance are told from explicit ones."""
    tables = mixed("means and scales", "around the number of vectors", "free")
    alike = [{**cluster, "scale": 0.58} for cluster in LAWS["means and scales"]]  # .3 + .7 * .4
    _, one = after_steps(tables, "explicit", 3000, 3, 4, 1, d=51)
    _, two = after_steps(
        {**tables, "inputs": {**tables["inputs"], "cluster": alike}}, "compressed", 3000, 3, 4, 2, d=51
    )
    assert judged.least_chance(one, two)[0] < 1e-4


ONLINE = {
    "logistic": ({**LOGISTIC, "start": {"Q_ww": [[[0.075]], [[0.175]]], "mean_M_wm": [[[0.03]], [[0.07]]]}}, 6),
    "xor": ({**XOR, "training": {"limit": "online", "step": 0.2}, "start": {"norm": 0.5}}, 12),
    "three clusters": (
        {**TEACHER, "student": {"unit": "erf(w)", "units": 2}, "training": {"limit": "online", "step": 0.5}}, 8,
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", list(ONLINE))
def test_sgd_follows_the_online_limit(name):
    (tables, until), d, seeds = ONLINE[name], 1000, 64
    made = odesim.declare(**tables)
    flow = odesim.integrate(made, d=d, until=until, save_points=6, points=2**16)
    names = [n for n in flow if n.split("_")[-2:-1] in (["Q"], ["M"])] + (["a"] if name == "xor" else [])
    start = {n: np.asarray(flow[n])[0] for n in names}
    sgd = odesim.simulate(made, method="compressed", d=d, until=until, save_points=6, seeds=seeds, initial=start)
    z = []
    for order in names:
        values = np.asarray(sgd[order])[:, 1:].reshape(seeds, -1)
        wanted = np.asarray(flow[order])[1:].ravel()
        seen = values.std(0) > 1e-9
        z.append(((values.mean(0) - wanted) / (values.std(0, ddof=1) / np.sqrt(seeds)))[seen])
    z = np.concatenate(z)
    least = 0.6 if len(z) > 60 else 0.3  # a few numbers at five times of one run, which are correlated
    assert least < np.sqrt((z**2).mean()) < 1.6 and np.abs(z).max() < 5


# -- pages


def test_a_printed_file_goes_the_way_of_the_run():
    made = odesim.declare(
        **{**XOR, "start": {"Q_ww": START["Q_ww"].tolist(), "mean_M_wm": START["mean_M_wm"].tolist()}}
    )
    space = {"__name__": "printed"}
    exec(odesim.derive(made, "python"), space)
    state = {"Q_ww": START["Q_ww"], "mean_M_wm": START["mean_M_wm"], "a": START["a"]}
    rates = space["rates"](state, space["parameters"]())
    start = initial.enter(parameters_of(XOR), START, np.random.default_rng(0))
    equations = exact.equations(start.parameters)
    y = equations.start(start)
    wanted = equations.unpack(compile_functions(equations, "numpy")["flow"](0.0, y, *equations.arguments(start)))
    for name, rate in wanted.items():
        assert rates[name] == pytest.approx(rate, rel=1e-12, abs=1e-14), name


def test_a_page_has_the_mean_of_a_unit_alone():
    """E[relu(z + b)] by quadrature in z, at a mean and a variance."""
    import sympy

    from derivations.declare.kernels import shapes_of
    from derivations.declare.statements import closed

    p = parameters_of(CASES["biases"][0])
    names = closed.Names(parameter_class.rows(p))
    (shape,) = shapes_of(p.declaration, ())
    found = closed.alone(names, 0, shape)
    values = {"S_Q_ww[i,i]": 0.7, "mu[i]": -0.4, "b[i]": 0.3}
    seen = float(found.subs({s: values[s.name] for s in found.free_symbols}))
    wanted = integrate.quad(lambda z: max(z + 0.3, 0) * stats.norm.pdf(z, -0.4, 0.7**0.5), -0.3, 12)[0]
    assert seen == pytest.approx(wanted, rel=1e-9) and isinstance(found, sympy.Expr)

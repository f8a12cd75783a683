"""Looks at samples and `gnorm`: known numbers, single samples by their definition, claims, pages and refusals."""

import itertools

import jax
import numpy as np
import pytest

import odesim
from derivations.declare import evaluate, sampled, system
from derivations.declare import model as models
from derivations.declare.claims import claims, finer_grid, generated
from derivations.declare.initial import enter
from odesim.evidence.laboratory import Laboratory
from odesim.sgd.bind import bind_jax, module_of
from tests.derivations.declare import judged

PAIR = {
    "student": {"units": 2, "unit": "tanh(w + b)", "output": "trained"},
    "teacher": {"unit": "tanh(w)", "noise": 0.3},
}
PAIR["parameters"] = {"b": {"default": 0.1, "per": "unit"}}
MODELS = {
    "last": {**PAIR, "training": {"look": {"size": 0.7, "times": 2}, "decay": 0.1, "rates": {"w": 0.8, "a": 0.5}}},
    "sum": {**PAIR, "training": {"look": {"size": -0.5, "use": "sum", "times": 3}, "weights": "sphere"}},
    "gnorm": {**PAIR, "training": {"rule": {"w": "grad/(1 + gnorm)", "a": "df*gnorm"}}},
    "both": {**PAIR, "training": {"look": {"size": 0.7}, "rule": {"w": "grad/(1 + gnorm)"}, "batch": 2}},
    "routed": {
        "student": {"units": 2, "unit": "softmax(v)*erf(w)"}, "teacher": {"unit": "erf(w)"},
        "training": {"look": {"size": 0.9, "use": "sum"}, "rule": {"w": "clip(dl, 1)*df/(1 + gnorm)"}},
    },
}  # fmt: skip


def declared(name, **more):
    tables = dict(MODELS[name])
    return odesim.declare(name=name, **tables | {"training": {"limit": "online", **tables["training"], **more}})


def third(**more):
    """Declaration 5 of the specification of training."""
    training = {"limit": "online", "loss": "correlation", "weights": "sphere", "step": 0.001, "until": 200, **more}
    return odesim.declare(name="third", student={"unit": "He(3, w)"}, training=training, start={"overlap": 0.05})


LOOK = {"size": 0.004, "use": "last"}


@pytest.mark.parametrize("backend", ["numba", "jax"])
def test_two_looks_leave_a_start_that_one_does_not(backend):
    times = [0, 50, 100, 150, 200]
    run = odesim.integrate(third(look=LOOK), save_at=times, backend=backend)
    assert np.asarray(run["M_ww"]).ravel() == pytest.approx([0.05, 0.0851, 0.1387, 0.2268, 0.3633], abs=6e-5)
    run = odesim.integrate(third(look=LOOK), save_at=[0, 200], backend=backend, look_size=0.0)
    assert np.asarray(run["M_ww"])[-1, 0, 0] == pytest.approx(0.0602, abs=6e-5)
    if backend == "numba":  # the closed forms of one look
        once = odesim.integrate(third(), save_at=[0, 200])
        assert np.asarray(once["M_ww"]) == pytest.approx(np.asarray(run["M_ww"]), abs=1e-8)


def test_the_drift_without_an_overlap_is_that_of_moments_in_closed_form():
    # E[c~ z*] = 54 rho^2 E[He_3^3 He_1] = 54 x 324 rho^2, by SymPy.
    rho, until = 0.004, 1e-3
    run = odesim.integrate(third(look=LOOK), save_at=[0, until], overlap=0.0, rtol=1e-12)
    assert np.asarray(run["M_ww"])[-1, 0, 0] == pytest.approx(1e-3 * 17496 * rho**2 * until, rel=1e-4)


def a_sample(name, count=4, d=6):
    """A model at random rows (n, d) with samples x (count, d) and label noise."""
    kind = system.system(declared(name)).parameters if not hasattr(declared(name), "parameters") else None
    parameters = (kind or declared(name).parameters)(d=d)
    made, rng = models.model(parameters), np.random.default_rng(3)
    start = enter(parameters, None, rng)
    rows = np.linalg.cholesky(np.asarray(made.place(start)))
    rows = np.concatenate([rows, np.zeros((len(rows), d - len(rows)))], axis=1)
    x, labels = rng.normal(size=(count, d)), 0.3 * rng.normal(size=(1, count))
    return made, parameters, start, rows, x, labels, made.bound(start, np.asarray(made.place(start)))


@pytest.mark.parametrize("name", MODELS)
def test_compressed_coefficients_are_the_definition_in_weight_space(name):
    made, parameters, start, rows, x, labels, numbers = a_sample(name)
    trained, _ = made.sizes(parameters)
    d, scalars, vv = x.shape[1], made.scalars(start), (rows[:trained] ** 2).sum(1)
    lengths = (x * x).sum(1)[None] / d
    with jax.enable_x64(True):
        found = np.asarray(bind_jax(made)["coefficients"](rows @ x.T, labels, lengths, vv, scalars, *numbers))
        along, own = made.moves(rows, scalars, x, labels, *numbers)
        assert found[:trained] @ x == pytest.approx(np.asarray(along), abs=1e-12)
        assert found[trained:].sum(1) == pytest.approx(np.asarray(own), abs=1e-12)
    single = module_of(made).coefficients(rows @ x[0], labels[:, 0], lengths[:, 0], vv, scalars, *numbers)
    assert single == pytest.approx(found[:, 0], abs=1e-12)
    other = module_of(made).coefficients(rows @ x[0], labels[:, 0], np.ones(1), vv, scalars, *numbers)
    assert np.abs(other - single).max() > 1e-4  # the length of the sample counts


@pytest.mark.parametrize("times", [1, 2])
def test_the_sum_of_looks_is_plain_steps_on_each_sample(times):
    """u - h (c(z) + c(z')) x of a virtual step of the same size: steps of plain SGD on one sample."""
    eta, tables = 1.3, {"student": {"units": 2, "unit": "tanh(w)"}, "teacher": {"noise": 0.3}}
    training = {"limit": "online", "step": eta}
    twice = odesim.declare(**tables, training={**training, "look": {"size": eta, "use": "sum", "times": times}})
    parameters = system.system(twice).parameters() if not hasattr(twice, "parameters") else twice.parameters()
    made, rng, d = models.model(parameters), np.random.default_rng(5), 7
    start = enter(parameters, None, rng)
    gram = np.asarray(made.place(start))
    numbers = made.bound(start, gram)
    rows = np.concatenate([np.linalg.cholesky(gram), np.zeros((len(gram), d - len(gram)))], axis=1)
    x, labels = rng.normal(size=(1, d)), rng.normal(size=(1, 1))
    with jax.enable_x64(True):
        moved = np.array(rows)
        moved[:2] -= eta / d * np.asarray(made.moves(rows, np.empty(0), x, labels, *numbers)[0])
        wanted = np.array(rows)
        for _ in range(times + 1):
            gradient = jax.grad(lambda v: made.losses(v, np.empty(0), x, labels, *numbers).sum())(wanted)
            wanted[:2] -= eta / d * np.asarray(gradient)[:2]
    assert moved == pytest.approx(wanted, abs=1e-13)


def test_gnorm_is_the_norm_of_the_gradient_over_the_root_of_d():
    made, _, start, rows, x, labels, numbers = a_sample("gnorm", count=1)
    with jax.enable_x64(True):
        gradient = jax.grad(lambda v: made.losses(v, made.scalars(start), x, labels, *numbers).sum())(rows)[:2]
        norm = np.sqrt((np.asarray(gradient) ** 2).sum() / x.shape[1])
        along, _ = made.moves(rows, made.scalars(start), x, labels, *numbers)
    assert np.asarray(along) == pytest.approx(np.asarray(gradient) / (1 + norm), abs=1e-12)


@pytest.mark.parametrize("limit", ["online", "flow"])
@pytest.mark.parametrize("name", MODELS)
def test_at_its_own_points_the_motion_is_that_of_automatic_differentiation(name, limit):
    lab = Laboratory(declared(name, limit=limit))
    assert generated.own_points(lab, {}, 1) < 1e-10
    assert generated.own_points(lab, {}, 1, 1e-4) > 1e-5


POLYNOMIALS = [
    {"student": {"unit": "He(3, w)"}, "training": {"loss": "correlation", "weights": "sphere", "look": LOOK}},
    {
        "student": {"units": 2, "unit": "w + 0.3*He(2, w)", "output": "trained"}, "teacher": {"noise": 0.3, "units": 1},
        "training": {"look": {"size": 0.3, "use": "sum", "times": 1}, "rates": {"a": 0.5}},
    },
]  # fmt: skip


@pytest.mark.parametrize(("tables", "limit"), [*itertools.product(POLYNOMIALS, ["online", "flow"])])
def test_polynomials_have_exact_means_over_a_grid(tables, limit):
    lab = Laboratory(odesim.declare(**{**tables, "training": {"limit": limit, **tables["training"]}}))
    assert finer_grid.finer_grid(lab, {}, 1) < 1e-8  # rounding in means of degree 26; the tolerance of the claim
    assert finer_grid.finer_grid(lab, {}, 1, 1e-4) > 1e-5


@pytest.mark.parametrize("name", ["both", "sum"])
def test_generated_claims_hold(name):
    model = declared(name)
    assert {claim.id for claim in claims(model)} >= {"microscope", "drift", "own-points", "second-order"}
    for claim in ("drift", "own-points"):
        assert judged.answer(model, claim) == "confirmed", claim
        assert judged.answer(model, claim, judged.control) == "refuted", claim


@pytest.mark.slow
@pytest.mark.parametrize("name", ["both", "gnorm", "last"])
def test_the_microscope_and_the_second_order_term_are_judged(name):
    model = declared(name, step=0.5)
    assert judged.answer(model, "microscope") == "confirmed"
    assert judged.answer(model, "second-order") in ("confirmed", "inconclusive")  # sampled on both sides
    assert judged.answer(model, "second-order", judged.control) != "confirmed"


def test_the_page_says_what_is_looked_at():
    text = str(odesim.derive(third(look=LOOK)))
    for said in ("z^(1)_i = z_i - rho c_i(z)", "c~_i = c_i(z^(1))", "E_ik = E[c~_i c~_k]", "Gauss-Hermite nodes"):
        assert said in text
    text = str(odesim.derive(declared("sum")))
    assert "c~_i = c_i(z) + sum_n c_i(z^(n))" in text and "rho = -0.5" in text
    assert "gnorm = (sum_b (dl/d z_b)^2)^1/2" in str(odesim.derive(declared("gnorm")))


def test_looks_stay_through_stages():
    stages = [{"name": "one", "until": 1.0}, {"name": "two", "until": 2.0, "trained": ["w"]}]
    tables = {**MODELS["last"], "training": {"limit": "online", "look": {"size": 0.7}}}
    whole = odesim.declare(**tables | {"training": {**tables["training"], "until": 2.0, "trained": ["w"]}})
    parts = odesim.declare(**tables | {"training": {**tables["training"], "trained": ["w"]}}, stage=stages)
    one, two = odesim.integrate(whole, save_at=[0, 2]), odesim.integrate(parts, stage="all")[-1]
    assert np.asarray(two["M_ww"])[-1] == pytest.approx(np.asarray(one["M_ww"])[-1], abs=1e-6)
    assert np.abs(np.asarray(odesim.integrate(whole, save_at=[0, 2], look_size=0.0)["M_ww"])[-1]
                  - np.asarray(one["M_ww"])[-1]).max() > 1e-3  # fmt: skip


REFUSED = [
    ({"look": 0.5}, {}, r"look is a table such as \{size = 0\.5, use = 'last'\}, but 0\.5 was given"),
    ({"look": {"use": "sum"}}, {}, "look needs the size of its virtual step"),
    ({"look": {"size": "1/(1 + t)"}}, {}, "the size of a look must be a constant number"),
    ({"look": {"size": 1, "use": "first"}}, {}, "use is one of last, sum, but 'first' was given"),
    ({"look": {"size": 1, "times": 21}}, {}, "times is a whole number from 1 to 20"),
    ({"look": {"size": 1, "step": 2}}, {}, "unknown key 'step'"),
    ({"look": {"size": 1}, "weights": "normalised"}, {}, "look and weights = 'normalised' cannot be combined"),
    ({"look": {"size": 1}}, {"student": {"unit": "wick(2, w)"}}, r"look and the unit 'wick\(2, w\)' cannot"),
    ({"look": {"size": 1}}, {"student": {"unit": "exp(w)"}}, "exp of a field has no mean after a virtual step"),
    ({"look": {"size": 1}, "loss": "exp(-f*y)"}, {}, "look and \"a user's loss\" cannot be combined: exp of a field"),
    ({"look": {"size": 1}}, {"inputs": {"blocks": [[2.0, 1.0]]}}, r"look and \[inputs\] cannot be combined"),
    ({"look": {"size": 1}, "momentum": 0.9}, {}, "look and momentum cannot be combined"),
    ({"look": {"size": 1}, "trained": []}, {}, "look has no effect, because no vector is trained"),
    ({"look": {"size": 1}, "rates": {"w": "1/(1 + t)"}}, {"memory": {"b2": {"start": 1, "rate": "g2"}}},
     "look and rate_w, which changes, cannot be combined"),
    ({"rule": "grad/(1 + gnorm)"}, {"inputs": {"blocks": [[2.0, 1.0]]}}, r"gnorm and \[inputs\] cannot be combined"),
    ({"rule": "grad/(1 + gnorm)", "momentum": 0.9}, {}, "gnorm and momentum cannot be combined"),
    ({"rule": "grad/gnorm"}, {}, "a quotient whose denominator can be 0 has no finite mean"),
]  # fmt: skip


@pytest.mark.parametrize(("training", "tables", "said"), REFUSED)
def test_what_is_refused(training, tables, said):
    with pytest.raises(odesim.UsageError, match=said):
        odesim.declare(**{"student": {"unit": "erf(w)"}, "teacher": {}, **tables}, training=training)


def test_heads_do_not_take_looks():
    heads = {
        "student": {"unit": "erf(w)", "output": {"one": "trained", "two": "sum"}},
        "teacher": {"one": {}, "two": {}},
    }
    with pytest.raises(odesim.UsageError, match="look and several heads cannot be combined"):
        odesim.declare(**heads, training={"look": {"size": 1}})
    with pytest.raises(odesim.UsageError, match="stage one: unknown key 'sizes'"):
        odesim.declare(
            student={"unit": "erf(w)"}, teacher={}, stage=[{"name": "one", "until": 1, "look": {"sizes": 1.0}}]
        )


def test_tiers_and_sizes_that_do_not_fit_are_refused():
    with pytest.raises(odesim.UsageError, match="derived for the gradient, not for virtual steps"):
        odesim.integrate(third(look=LOOK), tier="leading", until=1)
    with pytest.raises(odesim.UsageError, match="not a sum of products over pairs of units"):
        odesim.integrate(declared("last"), tier="exact", until=1)
    with pytest.raises(odesim.UsageError, match="gnorm is not a sum of products over pairs of units"):
        odesim.integrate(declared("gnorm"), tier="mixed", until=1)
    with pytest.raises(odesim.UsageError, match=r"compressed SGD needs d >= 5 here"):
        odesim.simulate(declared("last"), method="compressed", batch=2, d=4, until=1)


def test_a_schedule_of_a_rate_reaches_the_virtual_step():
    """A rate that jumps from 0 to 1: until then nothing moves, also not in a virtual step."""
    training = {"limit": "online", "look": {"size": 0.7}, "rates": {"w": [[0, 0.5], [1, 1.0]]}}
    tables = {"student": {"unit": "tanh(w)"}, "teacher": {"noise": 0.2}, "start": {"Q_ww": [[0.5]], "M_ww": [[0.1]]}}
    flow = odesim.integrate(odesim.declare(**tables, training=training), save_at=[0, 1, 2])
    first = odesim.integrate(odesim.declare(**tables, training={**training, "rates": {"w": 0.5}}), save_at=[0, 1])
    assert np.asarray(flow["M_ww"])[1] == pytest.approx(np.asarray(first["M_ww"])[1], abs=1e-6)
    run = odesim.simulate(
        odesim.declare(**tables, training=training), method="compressed", d=2000, save_at=[0, 1, 2], seeds=48
    )
    assert np.abs(judged.z_of_runs(run, flow, ["Q_ww", "M_ww"])).max() < 4.5


def test_explicit_sgd_by_rules_sees_no_written_text(monkeypatch):
    """Explicit SGD does not use the generated functions: its result is the same after these are broken."""
    made, _, start, rows, x, labels, numbers = a_sample("both", count=2)
    before = made.moves(rows, made.scalars(start), x, labels, *numbers)
    monkeypatch.setattr("derivations.declare.looks_text.coefficients", lambda *given: "")
    monkeypatch.setattr("derivations.declare.virtual_steps.looked", lambda *given: None)
    after = made.moves(rows, made.scalars(start), x, labels, *numbers)
    assert all((np.asarray(one) == np.asarray(two)).all() for one, two in zip(before, after, strict=True))
    assert evaluate.moves is not made.moves and sampled.per_sample(declared("both").parameters.declaration)


def test_a_stage_may_look_twice():
    # From where one look has come, two looks go on as a model of two looks does from there.
    tables = {
        "student": {"unit": "He(3, w)"}, "teacher": {}, "start": {"overlap": 0.05},
        "training": {"limit": "online", "loss": "correlation", "weights": "sphere", "step": 0.001},
    }  # fmt: skip
    stages = [{"name": "one", "until": 100}, {"name": "two", "until": 200, "look": {"size": 0.004}}]
    model = odesim.declare(**tables, stage=stages)
    first, second = odesim.integrate(model, stage="all", rtol=1e-10)
    assert model.parameters().two_look_size == 0.004 and not hasattr(model.parameters(), "look_size")
    twice = {**tables, "training": {**tables["training"], "look": {"size": 0.004}, "until": 100}}
    alone = odesim.declare(**{**twice, "start": {"overlap": float(np.asarray(first["M_ww"])[-1, 0, 0])}})
    wanted = np.asarray(odesim.integrate(alone, rtol=1e-10)["M_ww"])[-1]
    assert np.asarray(second["M_ww"])[-1] == pytest.approx(wanted, abs=1e-8)
    for method in ("explicit", "compressed"):
        runs = odesim.simulate(model, stage="all", until={"one": 1, "two": 2}, method=method, d=30, seeds=2)
        assert np.array_equal(np.asarray(runs[1]["M_ww"])[:, 0], np.asarray(runs[0]["M_ww"])[:, -1])

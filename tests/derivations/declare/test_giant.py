"""Giant steps as a map: against steps of vectors by quadrature, published numbers, and what is refused."""

import pickle

import numpy as np
import pytest
from scipy.special import erf

import odesim
from derivations.declare import exact
from derivations.declare.statements import statement
from odesim.show.page import python

START = {"Q_ww": [[0.5, 0.05], [0.05, 0.5]], "M_ww": [[0.2, 0.0], [0.0, 0.1]]}
STEP, SHARE, NOISE, DECAY = 0.6, 3.0, 0.2, 0.02
GIANT = 1.5


def committee(unit="erf(w/sqrt(2))", **training):
    """The committee of experiment 8 of the specification of training."""
    return odesim.declare(
        name="committee", student={"units": 2, "unit": unit}, start=START,
        teacher={"units": 2, "noise": NOISE, "unit": "erf(w/sqrt(2))"},
        training={"limit": "batch", "step": STEP, "batch": "3*d", "until": 3, **training},
    )  # fmt: skip


# -- steps of vectors, whose means are taken by quadrature


def nodes(each=24):
    """A tensor of Gauss-Hermite nodes (4, N) of the normal law, and weights."""
    one, weight = np.polynomial.hermite_e.hermegauss(each)
    weight = weight / weight.sum()
    axes = np.meshgrid(*[one] * 4, indexing="ij")
    return np.array([a.ravel() for a in axes]), np.prod([w.ravel() for w in np.meshgrid(*[weight] * 4)], axis=0)


POINTS = nodes()


def means(gram):
    """E[c z] (2, 4) and E[c c] (2, 2) of two erf units beside two, at a Gram matrix of students, then teachers."""
    x, w = POINTS
    z = np.linalg.cholesky(gram) @ x
    error = erf(z[:2] / np.sqrt(2)).sum(0) - erf(z[2:] / np.sqrt(2)).sum(0)
    slope = np.sqrt(2 / np.pi) * np.exp(-(z[:2] ** 2) / 2)
    c = error * slope
    return (c * w) @ z.T, (c * w) @ c.T + NOISE**2 * (slope * w) @ slope.T


def trajectory(steps, weights="free", decay=DECAY, beta=0.0, damp=1.0, nesterov=False, share=SHARE):
    """Gram matrices (steps + 1, 6, 6) of students, teachers and velocities, which are vectors here.

    The noise of every step has coordinates of its own.
    """
    gram = np.eye(4)
    gram[:2, :2], gram[:2, 2:], gram[2:, :2] = START["Q_ww"], START["M_ww"], np.transpose(START["M_ww"])
    rows = np.zeros((4, 4 + 2 * steps))
    rows[:, :4] = np.linalg.cholesky(gram)
    u, rest, v, found = rows[:2], rows[2:], np.zeros_like(rows[:2]), []
    for k in range(steps + 1):
        every = np.vstack([u, rest, v])
        found.append(every @ every.T)
        if k == steps:
            return np.array(found)
        drift, second = means(found[-1][:4, :4])
        g = drift @ np.linalg.pinv(every[:4]).T
        g[:, 4 + 2 * k : 6 + 2 * k] += np.linalg.cholesky(second / share)
        if weights == "sphere":
            norms = np.linalg.norm(u, axis=1, keepdims=True)
            g = g - (g * u).sum(1, keepdims=True) / norms**2 * u
        else:
            g = g + decay * u
        v = beta * v + damp * g
        u = u - STEP * (damp * g + beta * v if nesterov else v)
        u = u * norms / np.linalg.norm(u, axis=1, keepdims=True) if weights == "sphere" else u
    raise AssertionError


FORMS = {
    "free": ({"decay": DECAY}, {}),
    "sphere": ({"weights": "sphere"}, {"weights": "sphere", "decay": 0.0}),
    "heavy": ({"decay": DECAY, "momentum": 0.5}, {"beta": 0.5}),
    "nesterov": ({"decay": DECAY, "momentum": 0.5, "nesterov": True}, {"beta": 0.5, "nesterov": True}),
    "time": ({"decay": DECAY, "momentum": {"time": 4}}, {"beta": 0.75, "damp": 0.25}),
    "infinite": ({"decay": DECAY, "batch": "inf"}, {"share": 1e12}),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_map_is_a_step_of_vectors(form):
    training, options = FORMS[form]
    run, wanted = odesim.integrate(committee(**training), save_at=[0, 1, 2, 3]), trajectory(3, **options)
    # 24 nodes in each of four variables know these means to 1e-7 at norms of at most 1.
    assert np.asarray(run["Q_ww"]) == pytest.approx(wanted[:, :2, :2], abs=2e-6)
    assert np.asarray(run["M_ww"]) == pytest.approx(wanted[:, :2, 2:4], abs=2e-6)
    if "momentum" in training:
        assert np.asarray(run["VV_ww"]) == pytest.approx(wanted[:, 4:, 4:], abs=2e-6)
        assert np.asarray(run["VQ_ww"]) == pytest.approx(wanted[:, 4:, :2], abs=2e-6)
        assert np.asarray(run["VM_ww"]) == pytest.approx(wanted[:, 4:, 2:4], abs=2e-6)
    # The noise of the batch is seen: without it, or with half of it, the map is another.
    other = trajectory(3, **{**options, "share": 6.0})
    assert np.abs(other[:, :2, :2] - wanted[:, :2, :2]).max() > 1e-3


@pytest.mark.parametrize("form", ["free", "sphere", "nesterov"])
def test_back_ends_and_tiers_have_one_map(form):
    model, times = committee(**FORMS[form][0]), [0, 1, 2, 3]
    names = ("Q_ww", "M_ww", *(("VV_ww", "VM_ww") if form == "nesterov" else ()))
    exact = odesim.integrate(model, save_at=times)
    traced = odesim.integrate(model, save_at=times, backend="jax")
    sampled = odesim.integrate(model, save_at=times, tier="sampled", points=2**16)
    for name in names:
        assert np.asarray(traced[name]) == pytest.approx(np.asarray(exact[name]), abs=1e-12)
        assert np.asarray(sampled[name]) == pytest.approx(np.asarray(exact[name]), abs=2e-3)
    if form != "sphere":
        mixed = odesim.integrate(model, save_at=times, tier="mixed", points=2**16)
        for name in names:
            assert np.asarray(mixed[name]) == pytest.approx(np.asarray(exact[name]), abs=2e-3)


def test_a_step_of_the_overlaps_by_euler_is_another():
    first = np.asarray(odesim.integrate(committee(decay=DECAY, step=GIANT), until=1)["Q_ww"])[-1, 0, 0]
    assert first == pytest.approx(1.238, abs=5e-4)
    tables = {"student": {"units": 2, "unit": "erf(w/sqrt(2))"}, "teacher": {"units": 2}, "start": START}
    flow = odesim.declare(name="flow", training={"limit": "flow"}, **tables)
    euler = odesim.integrate(flow, solver="euler", step=GIANT, until=GIANT)
    assert np.asarray(euler["Q_ww"])[-1, 0, 0] == pytest.approx(0.155, abs=5e-4)


def test_a_polynomial_committee_has_exact_noise():
    """Two He_2 units beside a teacher: E[c c] by points of tier sampled and by Isserlis."""
    model = odesim.declare(
        name="quadratic", student={"units": 2, "unit": "He(2, w)", "output": "mean"}, teacher={},
        start={"overlap": 0.3}, training={"limit": "batch", "step": 0.1, "batch": "2*d", "until": 2},
    )  # fmt: skip
    exact, sampled = (odesim.integrate(model, until=2, tier=tier, points=2**15) for tier in ("exact", "sampled"))
    assert np.asarray(sampled["Q_ww"])[-1] == pytest.approx(np.asarray(exact["Q_ww"])[-1], abs=4e-3)
    assert np.abs(np.asarray(exact["Q_ww"])[-1] - np.asarray(exact["Q_ww"])[0]).max() > 0.02


# -- the first step of the published example


def test_the_first_step_of_two_relu_units_is_that_of_its_means():
    one, weight = np.polynomial.hermite_e.hermegauss(200)
    weight = np.outer(weight, weight) / weight.sum() ** 2
    y = np.tanh(one[:, None] + one[None] ** 3 - 3 * one[None])
    along = np.array([(weight * one[:, None] * y).sum(), (weight * one[None] * y).sum()])
    assert along == pytest.approx([0.3576620530, -0.2984198111], abs=2e-4)  # tanh of a cubic is steep for nodes
    along, square, eta = np.array([0.3576620530, -0.2984198111]), (weight * y * y).sum(), 0.6
    own, other = (0.5 - 1 / (2 * np.pi)) / 2, -1 / 8
    seen = along / (2 * np.sqrt(2))
    within, across = own**2 + other**2 + seen @ seen, 2 * own * other - seen @ seen
    first = (0.5 * (0.75 - 1 / np.pi) + square / 2) / 2
    second = -(0.5 * (0.5 - 1 / np.pi) + square / 4) / 2
    wanted = 1 - 2 * eta * own + eta**2 * (within + first / 3), -2 * eta * other + eta**2 * (across + second / 3)
    assert wanted == pytest.approx((0.85354, 0.10981), abs=3e-5)
    run = odesim.integrate("dandi_2024", points=2**18)
    assert np.asarray(run["Q_ww"])[-1, 0] == pytest.approx(wanted, abs=3e-4)
    overlaps = [np.asarray(run[name])[-1, :, 0] for name in ("M_wu", "M_wv")]
    assert overlaps[0] == pytest.approx([0.0758715788, -0.0758715788], abs=2e-4)
    assert overlaps[1] == pytest.approx([-0.0633044016, 0.0633044016], abs=2e-4)


# -- values, memories and stages


def test_values_change_at_whole_steps():
    whole = odesim.integrate(committee(step=[[0, 1.5], [1.5, 0.5]], decay="0.1*t"), save_at=[0, 1, 2, 3])
    state = {}
    for k, (step, decay) in enumerate([(1.5, 0.0), (1.5, 0.1), (0.5, 0.2)]):
        part = odesim.integrate(committee(step=step, decay=decay), until=1, initial=state or None)
        state = {name: np.asarray(part[name])[-1] for name in ("Q_ww", "M_ww")}
        assert np.asarray(whole["Q_ww"])[k + 1] == pytest.approx(state["Q_ww"], abs=1e-12)
    traced = odesim.integrate(committee(step=[[0, 1.5], [1.5, 0.5]], decay="0.1*t"), until=3, backend="jax")
    assert np.asarray(traced["Q_ww"])[-1] == pytest.approx(state["Q_ww"], abs=1e-12)


@pytest.mark.parametrize("tier", ["exact", "sampled"])
def test_a_step_takes_its_values_by_the_memories_that_it_makes(tier):
    tables = {
        "student": {"units": 2, "unit": "erf(w/sqrt(2))"}, "teacher": {"units": 2, "noise": NOISE}, "start": START,
        "training": {"limit": "batch", "step": "2/sqrt(b2)", "batch": "3*d"},
        "memory": {"b2": {"start": 0.5, "rate": "g2"}},
    }  # fmt: skip
    run = odesim.integrate(odesim.declare(name="norm", **tables), until=1, tier=tier, points=2**16)
    gram = np.eye(4)
    gram[:2, :2], gram[:2, 2:], gram[2:, :2] = START["Q_ww"], START["M_ww"], np.transpose(START["M_ww"])
    drift, second = means(gram)
    square = np.trace(drift @ np.linalg.solve(gram, drift.T) + second / SHARE)
    assert float(np.asarray(run["b2"])[-1]) == pytest.approx(0.5 + square, rel=1e-6 if tier == "exact" else 2e-3)
    plain = {**tables, "training": {**tables["training"], "step": 2 / float(np.asarray(run["b2"])[-1]) ** 0.5}}
    plain.pop("memory")
    other = odesim.integrate(odesim.declare(name="plain", **plain), until=1, tier=tier, points=2**16)
    assert np.asarray(run["Q_ww"])[-1] == pytest.approx(np.asarray(other["Q_ww"])[-1], abs=1e-12)


def test_stages_go_on_in_steps():
    tables = {
        "student": {"units": 2, "unit": "erf(w)", "output": "trained"}, "teacher": {"units": 2}, "start": START,
        "training": {"limit": "batch", "step": 0.8, "batch": "3*d"},
        "stage": [
            {"name": "one", "until": 1, "trained": ["w"]},
            {"name": "two", "until": 3, "batch": "5*d", "step": 0.2},
        ],
    }  # fmt: skip
    first, second = odesim.integrate(odesim.declare(name="staged", **tables), stage="all")
    assert (first.time[-1], second.time[-1]) == (1, 3)
    sgd = odesim.simulate(odesim.declare(name="staged", **tables), stage="all", method="compressed", d=2000, seeds=8)
    for name in ("Q_ww", "M_ww", "a"):
        assert np.asarray(sgd[1][name])[:, -1].mean(0) == pytest.approx(np.asarray(second[name])[-1], abs=0.03)


# -- the batch, times and pages


def test_a_batch_is_rounded_to_whole_samples_and_counts_over_d():
    model = odesim.declare(
        name="rounded", student={"units": 2, "unit": "erf(w)"}, teacher={"units": 2}, start=START,
        parameters={"alpha": 2.5}, training={"limit": "batch", "batch": "alpha*d"},
    )  # fmt: skip
    five = odesim.integrate(model, until=2, d=5)  # 12.5 samples, of which Python's rounding makes 12
    assert five.summary["conventions"]["batch"] == "alpha*d, 12 samples of a step"
    other = odesim.integrate(model, until=2, d=1000, batch=2400)
    assert np.asarray(five["Q_ww"]) == pytest.approx(np.asarray(other["Q_ww"]), abs=1e-12)
    assert pickle.loads(pickle.dumps(model.parameters())) == model.parameters()
    with pytest.raises(odesim.UsageError, match="of the order of d samples"):
        odesim.integrate(model, d=5, alpha=0.1)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rtol": 1e-8}, "rtol= has no meaning for tier exact, which is a recursion"),
        ({"solver": "Radau"}, "solver= has no meaning for tier exact, which is a recursion"),
        ({"solver": "euler", "step": 0.5}, "solver= has no meaning for tier exact"),
        ({"save_at": [0, 0.5, 1]}, "whole numbers of steps of 1"),
        ({"until": 0.2}, "less than one step of 1"),
        ({"batch": 1}, "parameter batch must be at least 2"),
    ],
)
def test_a_map_has_no_integrator_and_no_times_between_steps(options, said):
    with pytest.raises(odesim.UsageError, match=said):
        odesim.integrate(committee(), **options)


PLAIN = {"student": {"units": 2, "unit": "erf(w)"}, "teacher": {"units": 2}, "start": START}
REFUSED = [
    ({"training": {"limit": "batch"}}, "limit 'batch' needs of the order of d samples: batch = '3\\*d'"),
    ({"training": {"limit": "batch", "batch": 1}}, "limit 'batch' needs of the order of d samples: batch = '3\\*d'"),
    ({"training": {"limit": "batch", "batch": "7"}}, "limit 'batch' needs of the order of d samples"),
    ({"training": {"limit": "batch", "batch": "3*e"}}, "unknown name 'e'"),
    ({"training": {"limit": "batch", "batch": [[0, 3]]}}, "a time-dependent batch cannot be combined"),
    ({"training": {"limit": "online", "batch": "3*d"}}, "is only for giant steps"),
    ({"training": {"batch": "inf"}}, "is only for giant steps"),
    ({"training": {"limit": "batches", "batch": "3*d"}}, "did you mean 'batch'"),
    ({"training": {"limit": "batch", "batch": "3*d", "look": {"size": 0.1, "times": 4}}},
     "limit 'batch' and look with times = 4 cannot be combined"),
    ({"training": {"limit": "batch", "batch": "3*d"}, "inputs": {"blocks": [[0.5, 2.0], [0.5, 1.0]]}},
     "limit 'batch' and \\[inputs\\] cannot be combined"),
    ({"training": {"limit": "batch", "batch": "3*d", "weights": "sphere", "momentum": 0.5}},
     "momentum on the sphere would need a transport"),
    ({"training": {"limit": "batch", "batch": "3*d", "weights": "sphere", "step": "1/b2"},
      "memory": {"b2": {"start": 1.0, "rate": "g2"}}}, "g2 in giant steps is that of free weights"),
    ({"training": {"limit": "batch", "batch": "3*d"},
      "teacher": {"units": 2, "noise": "0.1*(2*probit(xi) - 1)/sqrt(probit(xi)*probit(-xi))"}}, "has no variance"),
    ({"training": {"limit": "batch", "batch": "3*d", "reuse": True}}, "a batch is not used again"),
    ({"training": {"limit": "batch", "batch": "3*d", "samples": 100}}, "every sample is new"),
]  # fmt: skip


@pytest.mark.parametrize(("tables", "said"), REFUSED)
def test_what_does_not_combine_is_refused(tables, said):
    with pytest.raises(odesim.UsageError, match=said) as caught:
        odesim.declare(name="refused", **{**PLAIN, **tables})
    assert "\n" not in str(caught.value)


def test_what_a_tier_cannot_is_refused():
    for more in ({"weights": "sphere"}, {}):
        model = odesim.declare(
            name="mixed", student={"units": 2, "unit": "relu(w)"}, start={"overlap": 0.3},
            training={"limit": "batch", "batch": "3*d", **more, **({} if more else {"step": "1/b2"})},
            memory={} if more else {"b2": {"start": 1.0, "rate": "g2"}},
        )  # fmt: skip
        assert odesim.integrate(model, until=1).origin.tier == "sampled"
        with pytest.raises(odesim.UsageError, match="would mix closed and sampled terms; use tier=sampled"):
            odesim.integrate(model, until=1, tier="mixed")
    with pytest.raises(odesim.UsageError, match="descent on the mean over all samples has no second-order term"):
        odesim.integrate(committee(batch="inf"), tier="mixed")
    with pytest.raises(odesim.UsageError, match="batch= is missing"):
        odesim.simulate(committee(batch="inf"), method="compressed")


def test_a_page_says_what_a_step_does():
    page = statement(committee(decay=DECAY, momentum=0.5, nesterov=True).parameters(), "auto")
    for line in (
        "nu_i'.u = beta nu_i.u + D_i[u] for a vector u at rest",
        "w_i' = w_i - eta (D_i + beta nu_i'), from which the overlaps of vectors and with velocities follow",
        "N_ik = sum_a,b D_i[u_a] (G^+)_ab D_k[u_b] + E_ik d/B over all vectors u",
    ):
        assert line in page.text
    infinite = statement(committee(batch="inf").parameters(), "auto").text
    assert "E_ik" not in infinite and "d/B" not in infinite
    assert "|w_i| w_i'/|w_i'| after the step" in statement(committee(weights="sphere").parameters(), "auto").text
    assert r"\nu_i'" in page.latex and r"(G^+)_{ab}" in page.latex


@pytest.mark.parametrize("form", ["free", "sphere", "nesterov", "infinite"])
def test_the_python_of_a_page_is_the_map(form):
    model = committee(**FORMS[form][0])
    space: dict = {"__name__": "page"}
    exec(python.page(exact.printed(model.parameters())), space)
    run, p = odesim.integrate(model, save_at=[0, 1, 2, 3]), space["parameters"]()
    state = {name: np.asarray(run[name])[0] for name in space["shapes"](p)}
    for _ in range(3):
        change = space["rates"](state, p)
        state = {name: value + change[name] for name, value in state.items()}
    for name, value in state.items():
        assert value == pytest.approx(np.asarray(run[name])[-1], abs=1e-12)

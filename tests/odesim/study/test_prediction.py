"""Predictions on given samples against networks written out patch by patch."""

import itertools

import numpy as np
import pytest

import odesim
from derivations.contract import UsageError

CHEN = {"M": 3, "J": 2, "K": 2}


def pmoe_weights(seed=0, k=3, each=4, d=7, patterns=5):
    """Explicit weights and unit patterns."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(patterns, d))
    return {
        "patterns": x / np.linalg.norm(x, axis=1, keepdims=True), "hidden": rng.normal(size=(k, each, d)),
        "out": rng.normal(size=(k, each)), "router": rng.normal(size=(k, d)),
    }  # fmt: skip


def pmoe_network(w, x, taken, softmax):
    """f of one sample x (n, d), patch by patch."""
    f = 0.0
    for s in range(len(w["out"])):
        route = x @ w["router"][s]
        kept = np.argsort(-route, kind="stable")[:taken]
        gate = np.exp(route[kept]) / np.exp(route[kept]).sum() if softmax else np.ones(taken)
        f += sum(
            g * (w["out"][s] * np.maximum(w["hidden"][s] @ x[j], 0)).sum() for g, j in zip(gate, kept, strict=True)
        )
    return f / taken


@pytest.mark.parametrize("tier", ["L0", "L1", "L2"])
def test_pmoe_answers_as_its_network_does(tier):
    w = pmoe_weights()
    run = odesim.integrate("pmoe", initial=w, mode="joint", tier=tier, n=4, l=2, until=1.0, save_points=3)
    index = np.array(list(itertools.product(range(5), repeat=4)))
    y = np.where(np.arange(len(index)) % 2 == 0, 1, -1)
    found = odesim.predict(run, {"index": index, "y": y}, time=0.0)
    expected = np.array([pmoe_network(w, w["patterns"][row], 2, True) for row in index])
    np.testing.assert_allclose(found["output"], expected, atol=1e-12)
    np.testing.assert_allclose(found["margin"], y * expected, atol=1e-12)
    counts = (index[:, :, None] == np.arange(5)).sum(axis=1)
    again = odesim.predict(run, {"counts": counts})
    assert np.array_equal(again["output"], odesim.predict(run, {"index": index}, run.time[-1])["output"])
    assert np.abs(again["output"] - found["output"]).max() > 1e-3


def test_the_error_of_a_pmoe_run_is_that_of_its_predictions():
    run = odesim.integrate("pmoe", mode="cnn", n=3, p=2, m=30, d=6, until=20.0, save_points=3)
    rows = [(task, *rest) for task in (0, 1) for rest in itertools.product((2, 3), repeat=2)]
    y = [1 if row[0] == 0 else -1 for row in rows]
    for k, time in enumerate(run.time):
        margin = odesim.predict(run, {"index": rows, "y": y}, time)["margin"]
        assert run["error"][k] == pytest.approx((margin <= 0).mean(), abs=1e-12)
        assert run["loss"][k] == pytest.approx(np.log1p(np.exp(-margin)).mean(), abs=1e-12)


def chen_network(w, theta, x):
    """F of one sample x (P, 2 K) of cubic experts."""
    logits = theta @ x.sum(axis=0)
    m = int(logits.argmax())
    pi = np.exp(logits[m]) / np.exp(logits).sum()
    return m, pi * sum((w[m] @ patch) ** 3 for patch in x).sum()


def test_chen_answers_as_its_network_does_for_flow_and_training():
    rng = np.random.default_rng(2)
    weights = {"W": rng.normal(size=(3, 2, 4)), "Theta": rng.normal(size=(4, 3))}
    weights |= {"V": np.eye(4)[:2], "C": np.eye(4)[2:]}
    x, y = rng.normal(size=(50, 3, 4)), np.where(rng.random(50) < 0.5, 1.0, -1.0)
    expected = [chen_network(weights["W"], weights["Theta"].T, sample) for sample in x]
    flow = odesim.integrate("chen", initial=weights, until=0.01, save_points=2)
    sgd = odesim.simulate("chen", method="explicit", step_size=1e-3, batch=20, seeds=2, until=2e-3, initial=weights,
                          save_points=2, n_test=10)  # fmt: skip
    for found in (odesim.predict(flow, {"X": x, "y": y}, 0.0), odesim.predict(sgd, {"X": x, "y": y}, 0.0)):
        np.testing.assert_allclose(np.atleast_2d(found["margin"]), [y * [f for _, f in expected]] * len(
            np.atleast_2d(found["margin"])), rtol=1e-9)  # fmt: skip
        assert (np.atleast_2d(found["expert"]) == [m for m, _ in expected]).all()
    assert odesim.predict(sgd, {"X": x})["output"].dims == ("seed", "sample")


def pruning_network(w, u, a, tokens, taken):
    """f of one sample by sorting."""
    f = 0.0
    for s in range(len(a)):
        kept = np.argsort(-w[s][tokens], kind="stable")[:taken]
        gate = np.exp(w[s][tokens[kept]])
        f += a[s] * (gate / gate.sum() * np.maximum(u[s][:, tokens[kept]], 0).sum(axis=0)).sum()
    return f


@pytest.mark.parametrize("tier", ["recursion", "flow"])
def test_pruning_answers_as_its_network_does(tier):
    rng = np.random.default_rng(1)
    w, u, a = rng.normal(size=(4, 6)), rng.normal(size=(4, 3, 6)), np.array([1.0, -1.0, 1.0, -1.0])
    run = odesim.integrate("pruning", initial={"w": w, "W": u, "a": a}, tier=tier, l=3, n=8, eta_e=0.1, until=2.0,
                           save_points=3)  # fmt: skip
    tokens = rng.integers(6, size=(40, 5))
    found = odesim.predict(run, {"tokens": tokens, "y": np.ones(40)}, 0.0)
    expected = [pruning_network(w, u, a, row, 3) for row in tokens]
    np.testing.assert_allclose(found["output"], expected, atol=1e-12)
    enumerated = np.array([[task, *[q] * 7] for task in (0, 1) for q in range(2, 6)])
    signs = np.where(enumerated[:, 0] == 0, 1, -1)
    margin = odesim.predict(run, {"tokens": enumerated, "y": signs})["margin"]
    assert run["margin"][-1] == pytest.approx(margin.min(), abs=1e-12)
    sgd = odesim.simulate("pruning", method="explicit", step_size=0.1, batch=4, until=1.0, l=3, n=8, save_points=2,
                          initial={"w": w, "W": u, "a": a})  # fmt: skip
    given = {"tokens": tokens} if "a" in {**sgd.state, **sgd.extras} else {"tokens": tokens, "a": a}
    np.testing.assert_allclose(odesim.predict(sgd, given, 0.0)["output"][0], expected, atol=1e-12)


def test_mistakes_are_named():
    run = odesim.integrate("pmoe", mode="cnn", n=3, p=1, m=20, d=5, until=1.0, save_points=3)
    with pytest.raises(UsageError, match=r"was not saved; the nearest saved time is 0\.5"):
        odesim.predict(run, {"index": [[0, 2, 2]]}, 0.4)
    with pytest.raises(UsageError, match="samples are given by index or counts"):
        odesim.predict(run, {"X": [[0, 2, 2]]})
    with pytest.raises(UsageError, match="whole numbers from 0 to 2"):
        odesim.predict(run, {"index": [[0, 2, 3]]})
    with pytest.raises(UsageError, match="every expert needs l = 3"):
        odesim.predict(run, {"index": [[0, 2]]})
    with pytest.raises(UsageError, match="y must hold"):
        odesim.predict(run, {"index": [[0, 2, 2]], "y": [0.5]})
    routers = odesim.integrate("pmoe", mode="separate", stage="router", n=4, p=2, until=0.5, save_points=2)
    with pytest.raises(UsageError, match="trains only the routers"):
        odesim.predict(routers, {"index": [[0, 2, 2, 3]]})
    liao = odesim.integrate("liao", m=2, m_star=1, d=10, until=0.1, save_points=2)
    with pytest.raises(
        UsageError, match="system liao cannot evaluate its network on given samples; chen, pmoe, pruning can"
    ):
        odesim.predict(liao, {})

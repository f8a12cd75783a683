"""Router loss, Lambert's margin, separability of patterns, and levels L1 and L2 as recursions."""

import math

import numpy as np
import pytest

import odesim
from derivations.pmoe import separability
from derivations.pmoe.signal import kernel

SEPARATE = {"mode": "separate", "n": 5, "p": 3, "d": 6}


@pytest.mark.parametrize("samples", [0, 40])
def test_the_router_loss_falls_at_the_rate_of_its_gradient(samples):
    run = odesim.integrate("pmoe", stage="router", N_r=samples, until=0.4, save_points=5, **SEPARATE)
    loss = run["router_loss_samples"]
    # dl/dt = -|grad w_1|^2 - |grad w_2|^2 = -2 |mean y sum_j x_j|^2, the same at all times: the loss is linear.
    drift = np.diff(run["route"][:, 0], axis=0)[0] / 0.1
    mean = np.linalg.solve(run["gram"], drift)
    np.testing.assert_allclose(np.diff(loss) / 0.1, -2 * mean @ run["gram"] @ mean, rtol=1e-9)
    apart = run["route"][:, 0] - run["route"][:, 1]
    np.testing.assert_allclose(run["router_loss"], -(apart[:, 0] - apart[:, 1]) / 2, atol=1e-14)
    if samples == 0:
        np.testing.assert_allclose(loss, run["router_loss"], atol=1e-14)
    else:
        assert np.abs(loss[-1] - run["router_loss"][-1]) > 1e-3


def test_the_router_loss_of_training_is_that_of_drawn_samples():
    sgd = odesim.simulate("pmoe", stage="router", method="explicit", step_size=0.1, batch=10, until=0.3, save_points=4,
                          seed=3, **SEPARATE)  # fmt: skip
    route, rng = sgd["route"][0, -1], np.random.default_rng(0)
    index = rng.integers(2, 5, size=(200_000, 4))
    y = np.where(rng.random(200_000) < 0.5, 1.0, -1.0)
    apart = route[0] - route[1]
    values = -y * (apart[np.where(y > 0, 0, 1)] + apart[index].sum(axis=1))
    error = values.std() / math.sqrt(len(values))
    assert abs(values.mean() - sgd["router_loss"][0, -1]) < 4 * error


def test_lamberts_margin_stands_beside_the_integrated_one():
    run = odesim.integrate("pmoe", preset="tiny-cnn", tier="L3", until=2000.0, save_points=11, rtol=1e-11)
    np.testing.assert_allclose(run["margin_closed"], run["margin"][:, 0], atol=1e-8)
    u, start = run["margin_closed"], run["margin"][0, 0]
    grown = u + np.exp(u) - start - math.exp(start)  # at the rate (1/2 - delta_d kappa0)/(2 n^2), n = 9, delta_d = 0
    np.testing.assert_allclose(grown, run.time / (4 * 81), rtol=1e-9, atol=1e-12)


def test_classes_of_different_margins_have_no_closed_form():
    run = odesim.integrate("pmoe", preset="tiny-cnn", tier="L3", b1=0.3, b2=-0.2, until=10.0, save_points=3)
    assert np.abs(run["margin"][-1, 0] - run["margin"][-1, 1]) > 1e-4
    assert "margin_closed" not in run.state


@pytest.mark.parametrize("angle", [0.1, 0.3])
def test_given_patterns_carry_their_distances_and_their_bound_of_separability(angle):
    o, q = separability.tilted(angle)
    patterns, rng = np.vstack([o, q]), np.random.default_rng(0)
    start = {"patterns": patterns, "hidden": rng.normal(size=(1, 4, 6)), "out": rng.normal(size=(1, 4))}
    run = odesim.integrate("pmoe", initial=start, mode="cnn", n=3, until=0.5, save_points=2)
    expected = np.linalg.norm(patterns[:, None] - patterns, axis=-1)
    np.testing.assert_allclose(run["distance"], expected, atol=1e-12)
    bound = np.linalg.norm(o[0] - o[1]) / (2 * math.sin(angle))
    assert float(run["beta_star"]) == pytest.approx(bound, rel=1e-9)
    # the largest margin of all compositions is positive exactly below the bound
    inside, outside = math.floor(bound) + 1, math.ceil(bound) + 2
    assert separability.margin(o, q, inside) > 1e-6 > separability.margin(o, q, outside)


def test_independent_patterns_are_separable_at_every_size():
    run = odesim.integrate("pmoe", mode="cnn", n=3, p=2, d=6, m=8, until=0.5, save_points=2)
    assert math.isinf(float(run["beta_star"]))


@pytest.mark.parametrize("tier", ["L1", "L2"])
@pytest.mark.parametrize("mode", ["cnn", "separate"])
def test_levels_of_frozen_routers_are_recursions_at_a_step(tier, mode):
    # phi += step (Gam o A_s/m) c_s or step K c_s/k, with c_s = E[y v n_s]/l by hand over the two samples of a
    # deterministic composition.
    request = {"mode": mode, "n": 4, "p": 2, "composition": "deterministic", "counts": (2, 1), "m": 40, "d": 8,
               "routers": "perfect" if mode == "separate" else "auto", "l": 4 if mode == "cnn" else 2}  # fmt: skip
    run = odesim.integrate("pmoe", tier=tier, solver="euler", step=0.5, until=5.0, save_points=11, **request)
    phi, k = run["response"][0].copy(), len(run["response"][0])
    start = odesim.integrate("pmoe", tier="L0", step=0.5, until=0.5, save_points=2, **request)
    active = (start["pre"][0] >= 0) * run["out"][..., None]
    if tier == "L1":
        metric = run["gram"] * np.einsum("smz,smw->szw", active, active) / 40
    else:
        metric = np.repeat(kernel(run["gram"])[None], k, axis=0) / k
    for _ in range(10):
        c = np.zeros_like(phi)
        for y, counts in ((1, [1, 0, 2, 1]), (-1, [0, 1, 2, 1])):
            routed = np.zeros((k, 4))
            for s in range(k):
                left = request["l"]
                for z in np.argsort(-run["route"][0, s], kind="stable"):
                    routed[s, z] = min(left, counts[z])
                    left -= routed[s, z]
            f = (routed * phi).sum() / request["l"]
            c += 0.5 * y / (1 + math.exp(y * f)) * routed / request["l"]
        phi += 0.5 * np.einsum("szw,sw->sz", metric, c)
    np.testing.assert_allclose(run["response"][-1], phi, atol=1e-12)
    assert run.statistics["steps"] == 10

"""Initial conditions: drawn, from weights, from inner products; and what is refused."""

import math

import numpy as np
import pytest

import odesim
from derivations.pmoe import initial, world
from derivations.pmoe.parameters import Parameters, settle


def test_responses_at_the_start_have_the_kernel_as_covariance():
    """phi_s ~ N(0, kappa1(Gam)/k), kappa1(1) = 1/2: over 4000 draws of 2 x 20 neurons."""
    p = settle(Parameters(mode="separate", m=40, p=1, delta_d=0.5))
    gram = world.gram_of(p)
    rng = np.random.default_rng(0)
    found = np.array([initial.response(*initial.neurons(p, gram, rng)) for _ in range(4000)])
    rho = 0.5
    kappa1 = (math.sqrt(1 - rho**2) + rho * (math.pi - math.acos(rho))) / (2 * math.pi)
    products = (found[:, :, 0] * found[:, :, 1]).mean()
    assert products == pytest.approx(kappa1 / 2, rel=0.08)
    assert (found**2).mean() == pytest.approx(0.25, rel=0.05)


def test_paired_neurons_give_a_zero_network():
    p = settle(Parameters(mode="joint", m=40, init="paired"))
    pre, out = initial.neurons(p, world.gram_of(p), np.random.default_rng(0))
    assert np.abs(initial.response(pre, out)).max() < 1e-15


def test_perfect_routers_rank_o1_first_and_o2_last_or_conversely():
    p = settle(Parameters(mode="joint", k=4, routers="perfect"), "joint")
    route = initial.enter_joint(p, None, np.random.default_rng(0)).state["route"]
    assert (route[::2].argmax(axis=1) == 0).all()
    assert (route[1::2].argmax(axis=1) == 1).all()
    single = settle(Parameters(mode="joint", k=4, routers="single"), "joint")
    route = initial.enter_joint(single, None, np.random.default_rng(0)).state["route"]
    assert (route[2:, :2].max(axis=1) < route[2:, 2:].min(axis=1)).all()


def test_weights_and_their_inner_products_start_the_same_run(weights):
    arrays = weights()
    x = arrays["patterns"]
    products = {
        "gram": x @ x.T, "pre": arrays["hidden"] @ x.T, "out": arrays["out"], "route": arrays["router"] @ x.T,
        "index": arrays["index"], "y": arrays["y"],
    }  # fmt: skip
    runs = [
        odesim.integrate("pmoe", initial=a, mode="joint", l=3, lam=0.02, until=10.0, save_points=3)
        for a in (arrays, products)
    ]
    for name in ("pre", "route", "loss"):
        assert np.abs(runs[0].state[name].values - runs[1].state[name].values).max() < 1e-13


def test_sizes_come_from_the_file(weights, tmp_path):
    path = tmp_path / "start.npz"
    np.savez(path, **weights(k=1))
    run = odesim.integrate("pmoe", initial=path, until=2.0, save_points=3)
    assert run.origin.parameters["mode"] == "cnn"
    assert run.origin.parameters["n"] == 7
    assert run.state["pre"].values.shape == (3, 1, 4, 6)
    assert run.state["response"].dims == ("time", "expert", "pattern")


def test_without_samples_the_population_is_that_of_the_parameters(weights):
    arrays = {name: a for name, a in weights(k=2).items() if name not in ("index", "y")}
    run = odesim.integrate("pmoe", initial=arrays, n=4, l=2, until=1.0, save_points=2)
    assert run.summary["compositions"] == 2 * math.comb(3 + 3, 3)
    no_router = {name: a for name, a in weights(k=1).items() if name not in ("router", "index", "y")}
    assert odesim.integrate("pmoe", initial=no_router, n=4, until=1.0).origin.parameters["mode"] == "cnn"


@pytest.mark.parametrize(
    ("change", "options", "says"),
    [
        ({"hidden": None}, {}, "lacks hidden"),
        ({"extra": np.ones((2, 2))}, {}, "unknown arrays extra"),
        ({"y": np.arange(30)}, {}, "must be \\+1 or -1"),
        ({"y": np.ones(3)}, {}, "3"),
        ({"index": np.full((30, 7), 9)}, {}, "from 0 to 5"),
        ({"out": np.ones((2, 4))}, {}, "shape"),
        ({"router": np.ones((3, 4))}, {}, "shape"),
        ({"index": None}, {}, "both index"),
        ({"hidden": np.full((3, 4, 9), np.nan)}, {}, "finite"),
        ({}, {"k": 4}, "disagrees"),
        ({}, {"n": 6}, "disagrees"),
        ({}, {"l": 9}, "at most n"),
        ({}, {"mode": "separate"}, "k = 2"),
    ],
)
def test_files_that_do_not_fit_are_refused(change, options, says, weights):
    arrays = {name: a for name, a in {**weights(), **change}.items() if a is not None}
    with pytest.raises(odesim.UsageError, match=says):
        odesim.integrate("pmoe", initial=arrays, until=1.0, **options)


def test_coinciding_patterns_of_a_file_are_refused(weights):
    arrays = weights()
    arrays["patterns"][3] = arrays["patterns"][2]
    with pytest.raises(odesim.UsageError, match="coincide"):
        odesim.integrate("pmoe", initial=arrays, until=1.0)


def test_explicit_weights_have_the_products_of_the_start():
    from derivations.pmoe import model

    p = settle(Parameters(mode="joint", d=12, p=4, delta_d=0.4, irrelevant="random", m=12), "joint")
    start = initial.enter_joint(p, None, np.random.default_rng(0))
    placed = model.place(start, None, np.random.default_rng(1), False)
    assert np.allclose(placed.frame @ placed.frame.T, start.constants["gram"], atol=1e-14)
    assert np.allclose(placed.neurons @ placed.frame.T, start.state["pre"], atol=1e-13)
    assert np.allclose(placed.routers @ placed.frame.T, start.state["route"], atol=1e-13)


def test_what_a_stage_settles_is_checked_too():
    with pytest.raises(odesim.UsageError, match="m = 2 neurons cannot be divided equally among k = 4 experts"):
        odesim.integrate("pmoe", stage="joint", m=2, until=1.0)

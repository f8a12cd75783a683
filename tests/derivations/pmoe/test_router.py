"""Routers of separate training: the exact law, its covariance, and the sample complexity that follows."""

import dataclasses

import numpy as np
import pytest

import odesim
from derivations.pmoe import router, world
from derivations.pmoe.parameters import Parameters, settle


def sizes(**values) -> Parameters:
    return settle(Parameters(**values), "router")


@pytest.mark.parametrize("balanced", [False, True])
def test_the_sample_mean_has_the_exact_mean_and_covariance(balanced):
    p = sizes(n=6, p=3, N_r=40, pi=(0.2, 0.3, 0.5), balanced=balanced)
    draws = router.sample_means(p, np.random.default_rng(0), 60_000)
    expected = router.covariance(p) / 40
    error = np.sqrt(np.outer(np.diag(expected), np.diag(expected)) + expected**2) / np.sqrt(60_000)
    assert np.abs(draws.mean(axis=0) - router.mean_counts(p)).max() < 5 * np.sqrt(np.diag(expected).max() / 60_000)
    assert (np.abs(np.cov(draws.T) - expected) <= 6 * error + 1e-12).all()


def test_samples_one_by_one_have_the_same_law_as_the_sums():
    p = sizes(n=6, p=3, N_r=40)
    rng = np.random.default_rng(1)
    one = []
    for _ in range(4000):
        counts, y = world.sample(p, rng, 40)
        one.append((y[:, None] * counts).mean(axis=0))
    expected = router.covariance(p) / 40
    assert np.abs(np.cov(np.array(one).T) - expected).max() < 6 * expected.max() / np.sqrt(4000)


@pytest.mark.parametrize(
    ("balanced", "expected"), [(False, (62, 213, 738, 2613, 9343)), (True, (33, 68, 138, 275, 560))]
)
def test_samples_for_ninety_per_cent(balanced, expected):
    """Independent evaluations of the Gaussian orthant law at p = 8, n = 16 .. 256; 2 % for the draws of both."""
    found = [
        router.samples_for(p, world.gram_of(p))
        for p in (sizes(n=n, p=8, balanced=balanced) for n in (16, 32, 64, 128, 256))
    ]
    assert np.allclose(found, expected, rtol=0.03)


@pytest.mark.parametrize(
    ("given", "simulated", "law"),
    [
        ({"n": 16, "p": 8, "delta_d": 0.5, "N_r": 200}, 0.885, 0.887),
        ({"n": 32, "p": 4, "N_r": 600}, 0.894, 0.898),
        ({"n": 64, "p": 8, "N_r": 200}, 0.659, 0.661),
        ({"n": 64, "p": 8, "N_r": 200, "balanced": True}, 0.969, 0.973),
        ({"n": 9, "p": 3, "delta_d": -0.6, "N_r": 12}, 0.689, 0.707),
    ],
)
def test_success_against_an_independent_program(given, simulated, law):
    """Monte Carlo of another program with standard error 0.001 to 0.003; ours has 0.0035."""
    p = sizes(**given)
    gram = world.gram_of(p)
    assert router.success(p, gram, 20_000) == pytest.approx(simulated, abs=0.015)
    assert router.gaussian_success(p, gram) == pytest.approx(law, abs=0.012)


def test_a_router_finds_its_pattern_where_it_is_above_every_irrelevant_one():
    gram = np.eye(5)
    means = np.array([
        [0.5, -0.5, 0.1, -0.2, 0.3],  # both found
        [0.2, -0.5, 0.1, -0.2, 0.3],  # q_3 is above o1 for router 1
        [0.5, -0.1, 0.1, -0.2, 0.3],  # q_2 is above o2 for router 2, which sees all values with the other sign
        [0.5, -0.2, 0.1, -0.2, 0.3],  # a tie is not above
    ])  # fmt: skip
    assert router.outranks(gram, means).tolist() == [[True, True], [False, True], [True, False], [True, False]]


def test_class_imbalance_alone_needs_6_57_n_squared_over_p_squared():
    """4 z^2 with z = 1.2816 the normal 90 % quantile, once n is large."""
    p = sizes(n=40_000, p=2)
    need = router.samples_for(p, world.gram_of(p))
    assert need * 4 / 40_000**2 == pytest.approx(4 * 1.2815515**2, rel=0.03)


def test_a_pattern_closer_than_o1_cannot_be_outranked():
    p = sizes(n=8, p=1, b1=(0.9,), b2=(-0.3,))
    assert router.samples_for(p, world.gram_of(p)) == np.inf


def test_the_flow_of_the_routers_is_the_population_gradient():
    run = odesim.integrate("pmoe", stage="router", p=2, n=4, delta_d=0.3, b1=(0.5, 0.0), until=2.0, save_points=2)
    moved = run.state["route"].values[-1] - run.state["route"].values[0]
    gram = world.gram_of(Parameters(p=2, n=4, delta_d=0.3, b1=(0.5, 0.0)))
    assert np.allclose(moved[0], gram[0] - gram[1], atol=1e-9)  # 2 times (o1 - o2)/2
    assert np.allclose(moved.sum(axis=0), 0, atol=1e-12)


def test_training_in_d_dimensions_gives_the_sample_mean_whatever_the_batches():
    """Explicit vectors, 5 batches: routers move by eta_r times the label-weighted sum of patches of each batch."""
    options = {"stage": "router", "step_size": 0.5, "batch": 20, "until": 2.5, "seed": 4, "save_points": 2}
    first = odesim.simulate("pmoe", method="explicit", **options)
    second = odesim.simulate("pmoe", method="compressed", **options)
    a, b = (run.state["route"].values[0, -1] for run in (first, second))
    assert np.abs(a - b).max() < 1e-12
    start = first.state["route"].values[0, 0]
    assert np.abs(a.sum(axis=0) - start.sum(axis=0)).max() < 1e-12


def test_experts_after_the_routers_stage_start_from_its_end():
    from odesim.flow import pipeline

    runs = pipeline.run(pipeline.build("pmoe", {"tier": "L2", "n": 5, "p": 2}, "all", save_points=3))
    assert [run.origin.stage for run in runs] == ["router", "experts"]
    assert np.array_equal(runs[0].state["route"].values[-1], runs[1].state["route"].values[0])


def test_trained_routers_move_by_reach_times_the_sample_mean():
    p = dataclasses.replace(sizes(n=5, p=2, N_r=30), reach=3.0)
    gram, route = world.gram_of(p), np.ones((2, 4))
    moved = router.trained(p, gram, route, np.random.default_rng(2))
    c = router.sample_means(p, np.random.default_rng(2), 1)[0]
    assert np.allclose(moved, 1 + 3 * np.array([gram @ c, -(gram @ c)]))

"""A start by overlaps: the same run as from weights, published numbers, SGD, and what is refused."""

import numpy as np
import pytest

import odesim
from derivations.contract import UsageError
from derivations.liao import overlaps


def blocks_of(start):
    """The overlaps and constants of an initial condition, as a file would hold them."""
    return {**start.state, **start.constants}


def unrelated(m, m_star, **given):
    """Unit vectors without any overlap but the given ones."""
    found = {name: np.zeros((m, m_star)) for name in overlaps.CROSS}
    found |= {"I1": np.eye(m), "I2": np.eye(m), "I3": np.zeros((m, m))}
    return found | {name: np.array(values, float) for name, values in given.items()}


def test_overlaps_of_weights_give_the_run_of_the_weights(vectors, tmp_path):
    v = vectors(m=3, m_star=2, d=9, seed=4)
    np.savez(tmp_path / "start.npz", **blocks_of(v.initial))
    first = odesim.integrate("liao", initial=v.arrays, until=1.0)
    second = odesim.integrate("liao", initial=tmp_path / "start.npz", until=1.0, d=9)
    for name in overlaps.BLOCKS:
        assert np.array_equal(first[name], second[name])
    assert np.array_equal(first["norm_v"], second["norm_v"])
    assert (second.origin.parameters["m"], second.origin.parameters["m_star"]) == (3, 2)


def test_the_recovery_of_a_dead_pair_takes_the_published_time():
    # Specification, section 3.9: m = 2, m* = 1, u = (1, .5), z = -3, every other overlap zero, unit norms, d = 300:
    # T_rec = 229.712 by independent code; the loss there is .554.
    size = np.sqrt(300)
    start = unrelated(2, 1, gamma2=[[1 / size], [0.5 / size]], I2=[[1, -3 / size], [-3 / size, 1]])
    run = odesim.integrate("liao", initial=start, d=300, until=240, save_points=2401)
    assert run["T_gamma2"].min() == pytest.approx(229.712, abs=2e-3)
    assert run["loss"][2297] == pytest.approx(0.554, abs=1e-3)


def test_a_start_at_a_dimension_that_no_file_of_weights_could_hold():
    # Alone, gamma' = 9 S00(gamma1) gamma^2 (1 - gamma^2) * 2, with S00(0) = 1/4: recovery near 1 / (4.5 gamma(0)).
    start = unrelated(1, 1, gamma2=[[1e-6]])
    run = odesim.integrate("liao", initial=start, d=10**12, until=3e5, save_points=3)
    assert run["T_gamma2"][0, 0] == pytest.approx(1e6 / 4.5, rel=1e-4)


@pytest.mark.parametrize(("method", "d"), [("explicit", 3), ("explicit", 30), ("compressed", 30)])
def test_sgd_starts_there_too(method, d, vectors):
    start = blocks_of(vectors(m=2, m_star=1, d=3, seed=1).initial)  # six vectors in three dimensions
    run = odesim.simulate("liao", method=method, step_size=1e-3, batch=50, initial=start, d=d, until=2e-3)
    for name in overlaps.BLOCKS:
        np.testing.assert_allclose(run[name][0, 0], start[name], atol=1e-7)  # roots of a singular matrix
    np.testing.assert_allclose(run["norm_v"][0, 0], start["norm_v"], rtol=1e-7)


def test_sgd_from_overlaps_drifts_as_the_flow_does():
    start = unrelated(2, 1, gamma2=[[0.3], [0.2]], gamma1=[[0.2], [0.1]])
    flow = odesim.integrate("liao", initial=start, d=30, until=0.02, save_points=2)
    runs = odesim.simulate(
        "liao", method="compressed", step_size=2e-3, batch=20000, seeds=20, initial=start, d=30, until=0.02,
        save_points=2,
    )  # fmt: skip
    moved = runs["gamma2"][:, -1]
    error = moved.std(axis=0, ddof=1) / np.sqrt(20)
    assert (np.abs(moved.mean(axis=0) - flow["gamma2"][-1]) < 4 * error + 1e-3).all()
    assert (np.abs(flow["gamma2"][-1] - start["gamma2"]) > 10 * error).all()  # the drift is seen


def without(name):
    start = unrelated(2, 1)
    del start[name]
    return start


@pytest.mark.parametrize(
    ("start", "sentence"),
    [
        (without("I3"), "lacks I3; a start by overlaps needs the blocks"),
        (unrelated(2, 1, I2=[[1, 0.5], [0.4, 1]]), "I2 is not symmetric"),
        (unrelated(2, 1, I1=2 * np.eye(2)), "entry 0 of the diagonal of I1 is 2"),
        (unrelated(2, 1, teacher_gram=0.5 * np.eye(2)), "diagonal of teacher_gram is 0.5"),
        (unrelated(2, 1, gamma2=[[0.9], [0.9]]), "no vectors have these overlaps: the smallest eigenvalue .* is -0.27"),
        (unrelated(2, 1, gamma1=[[np.nan], [0]]), "array gamma1 holds a number that is not finite"),
        (unrelated(2, 1, zeta1=np.zeros((1, 2))), r"expected shape \(2, 1\) for zeta1"),
        (unrelated(2, 1, norm_w=[1.0, 0.0]), "norm_w must be positive"),
        (unrelated(2, 1, speed=[1.0]), "unknown arrays speed"),
        (unrelated(2, 1) | {"V": np.ones((2, 3))}, "lacks W, V_star, W_star; system liao needs"),
    ],
)
def test_what_no_vectors_have_is_refused_in_one_sentence(start, sentence):
    with pytest.raises(UsageError, match=sentence):
        odesim.integrate("liao", initial=start, until=0.1)


def test_vectors_must_fit_into_the_dimension():
    with pytest.raises(UsageError, match="span 6 dimensions, but d = 5"):
        odesim.integrate("liao", initial=unrelated(2, 1), d=5, until=0.1)
    with pytest.raises(UsageError, match="m=3 disagrees"):
        odesim.integrate("liao", initial=unrelated(2, 1), m=3, until=0.1)

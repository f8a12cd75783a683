"""New neurons beside given gates, random flips, and features behind a gate, against vectors that are there."""

import numpy as np

import odesim
from derivations.kawata import initial, phases, ridge
from derivations.kawata.claims import online
from derivations.kawata.parameters import Parameters

P = Parameters(C=2, M=3, J=5, d=11, k_star=3, rho=2.0, bias=(-0.5, 0.5))


def gates(rng: np.random.Generator):
    """Explicit gates (3, 11) that add up to zero, with their overlaps with the frame of the first five axes."""
    vectors = rng.standard_normal((3, P.d))
    vectors -= vectors.mean(axis=0)
    return vectors, {"theta": vectors[:, :5], "gate_gram": vectors @ vectors.T}


def test_new_neurons_beside_gates_fit_into_the_space_that_there_is():
    vectors, known = gates(np.random.default_rng(0))
    found = phases.draw_beside_gates({**known, "gram": np.eye(5)}, 40, P.d - 5, np.random.default_rng(1))
    outside = vectors[:, 5:] @ vectors[:, 5:].T  # what the gates have off the frame
    whole = np.block([[outside, found["gate_direction"]], [found["gate_direction"].T, found["directions"]]])
    values = np.linalg.eigvalsh(whole)
    assert values.min() > -1e-10 and (values > 1e-10).sum() == P.d - 5  # 43 vectors in 6 dimensions
    np.testing.assert_allclose(np.diag(found["directions"]), 1.0, atol=1e-12)


def test_overlaps_of_new_neurons_with_gates_have_the_law_of_uniform_directions():
    vectors, known = gates(np.random.default_rng(2))
    rng, found = np.random.default_rng(3), []
    for _ in range(400):
        found.append(phases.draw_beside_gates({**known, "gram": np.eye(5)}, 20, P.d - 5, rng)["gate_direction"])
    x = np.concatenate(found, axis=1)
    outside = vectors[:, 5:] @ vectors[:, 5:].T
    products = x[:, None] * x[None]
    error = products.std(axis=-1) / np.sqrt(400)  # neurons of one draw are not independent: the draw is the unit
    assert (np.abs(products.mean(axis=-1) - outside / 6) < 4.5 * error).all()


def previous(rng: np.random.Generator):
    """The end of a Phase III of explicit neurons in 11 dimensions behind explicit gates."""
    vectors, known = gates(rng)
    w = rng.standard_normal((15, P.d))
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    inside, rest = w[:, :5], w[:, 5:]
    length = np.linalg.norm(rest, axis=1)
    names = {name: value for name, value in initial.split(inside, 2).items()}
    directions = rest / length[:, None]
    arrays = {**names, "a": np.ones(15), "b": np.linspace(-0.5, 0.5, 15), "gram": np.eye(5), **known}
    arrays |= {"directions": directions @ directions.T, "gate_direction": vectors[:, 5:] @ directions.T}
    return w, vectors, arrays


def test_phase_four_flips_neurons_at_random_and_all_of_a_neuron_at_once():
    w, vectors, arrays = previous(np.random.default_rng(4))
    flips = []
    for seed in range(20):
        start = phases.enter_ridge(P, arrays, np.random.default_rng(seed))
        m = initial.join(start.state)
        sign = np.sign((m * w[:, :5]).sum(axis=1))
        np.testing.assert_allclose(m, sign[:, None] * w[:, :5], atol=1e-12)
        rest = sign[:, None] * w[:, 5:] / np.linalg.norm(w[:, 5:], axis=1, keepdims=True)
        np.testing.assert_allclose(start.constants["directions"], rest @ rest.T, atol=1e-12)
        np.testing.assert_allclose(start.constants["gate_direction"], vectors[:, 5:] @ rest.T, atol=1e-12)
        flips.append(sign)
    up = int((np.array(flips) > 0).sum())
    assert abs(up - 150) < 4.5 * np.sqrt(75)  # of 300 fair coins


def test_features_behind_a_gate_are_those_of_the_experts_that_are_active():
    w, vectors, arrays = previous(np.random.default_rng(5))
    start = initial.from_arrays(P, arrays)
    c, samples = start.constants, 200_000
    counts = np.zeros((15, 2))
    first, second, seen = np.zeros((15, 2)), np.zeros((15, 2)), np.zeros(2)
    for features, _, _, cluster in ridge.blocks(start, samples, np.random.default_rng(6)):
        for k in range(2):
            of = features[:, cluster == k]
            first[:, k], second[:, k] = first[:, k] + of.sum(axis=1), second[:, k] + (of**2).sum(axis=1)
            counts[:, k] += (of != 0).sum(axis=1)
            seen[k] += of.shape[1]
    # The same by inputs drawn in all 11 dimensions: x = rho v_c + noise, expert m active where theta_m . x >= 0.
    rng = np.random.default_rng(7)
    for k in range(2):
        x = rng.standard_normal((samples, P.d))
        x[:, 3 + k] += P.rho
        active = (x @ vectors.T >= 0)[:, initial.expert_of(P, 15)]
        field = x @ w.T + c["b"]
        features = active * np.maximum(field, 0.0) / P.J
        for moment, found in ((features, first), (features**2, second)):
            error = np.sqrt(moment.var(axis=0) * (1 / samples + 1 / seen[k]))
            assert (np.abs(moment.mean(axis=0) - found[:, k] / seen[k]) < 5 * error + 1e-12).all()
        assert (np.abs((features != 0).mean(axis=0) - counts[:, k] / seen[k]) < 0.02).all()


def test_sgd_behind_gates_goes_on_from_where_it_was_with_all_overlaps():
    rng = np.random.default_rng(8)
    w, theta = rng.standard_normal((4, 20)), rng.standard_normal((2, 20))
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    rest = w[:, 5:] / np.linalg.norm(w[:, 5:], axis=1, keepdims=True)
    arrays = {**initial.split(w[:, :5], 2), "a": np.ones(4), "b": np.zeros(4), "gram": np.eye(5), "theta": theta[:, :5]}
    arrays |= {"gate_gram": theta @ theta.T, "directions": rest @ rest.T, "gate_direction": theta[:, 5:] @ rest.T}
    request = dict(
        stage="phase3", method="compressed", M=2, J=2, d=20, k_star=3, step_size=0.01, batch=1, save_points=2
    )
    first = odesim.simulate("kawata", initial=arrays, until=5.0, **request)
    np.testing.assert_allclose(first["along_gates"][0, 0], w @ theta.T, atol=1e-12)
    assert np.abs(first["along_gates"][0, 1] - w @ theta.T).max() > 0.01
    second = odesim.simulate("kawata", initial=online.placed(first, 1, arrays), until=5.0, **request)
    for name in ("kappa", "xi", "nu", "overlap", "along_gates"):
        np.testing.assert_allclose(second[name][0, 0], first[name][0, 1], atol=1e-10, err_msg=name)

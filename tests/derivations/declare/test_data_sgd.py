"""SGD on a user's own samples: rows are drawn with replacement, and Gaussian theory holds where it should."""

import numpy as np
import pytest
from scipy import stats

import odesim
from derivations.contract import Eigenspaces, UsageError
from derivations.declare import initial, model
from derivations.vectors import grams_by_block, thin_root
from odesim.request.case import Case
from odesim.sgd import given_frame, spaces
from odesim.sgd.simulation import Simulation, condition_of, explicit_rows, make_engine
from tests.derivations.declare.test_inputs import PLATEAU


def heavy(seed, count, d):
    """Rows far from Gaussian: few, with heavy tails, a mean, and correlated columns."""
    rng = np.random.default_rng(seed)
    return rng.standard_t(4, size=(count, d)) @ rng.normal(size=(d, d)) / np.sqrt(d) + 2.0


def second_moments(rows, delta, steps, step, noise):
    """E[delta delta^T] after SGD on least squares that draws rows (N, d) of mean 0 with replacement, one at a time.

    delta <- delta - h x (x.delta - noise z):  S <- S - h (C S + S C) + h^2 mean_i x x^T (x^T S x + noise^2).
    """
    C = rows.T @ rows / len(rows)
    S, mean = np.outer(delta, delta), delta
    for _ in range(steps):
        weight = np.einsum("ia,ab,ib->i", rows, S, rows) + noise**2
        S = S - step * (C @ S + S @ C) + step**2 * (rows.T * weight) @ rows / len(rows)
        mean = mean - step * C @ mean
    return S, mean


def test_least_squares_on_rows_has_the_moments_of_drawing_them_with_replacement():
    rows, noise, step, steps, seeds = heavy(1, 12, 5), 0.5, 0.02, 40, 3000
    rng = np.random.default_rng(2)
    w, teacher = rng.normal(size=(1, 5)), rng.normal(size=(1, 5))
    made = odesim.declare(
        student={"unit": "w"}, teacher={"noise": noise}, inputs={"data": rows}, training={"step": step}
    )
    run = odesim.simulate(
        made, method="explicit", until=steps * step, save_points=3, seeds=seeds, initial={"w": w, "w_star": teacher}
    )
    assert run.summary["passes"] == pytest.approx(steps / 12)
    centred = rows - rows.mean(0)
    C = centred.T @ centred / len(rows)
    vectors = np.linalg.eigh(C)[1][:, ::-1]
    # A wrong theory, in which rows are Gaussian: E[x x^T S x x^T] = 2 C S C + tr(C S) C.
    z, wrong = [], []
    for k, taken in ((1, steps // 2), (2, steps)):
        S, mean = second_moments(centred, (w - teacher)[0], taken, step, noise)
        turned = vectors.T @ S @ vectors
        parts = vectors.T @ teacher[0], vectors.T @ mean
        overlap = (parts[0] + parts[1]) * parts[0]  # E[w_l] w*_l in every eigenspace
        square = np.diag(turned) + 2 * parts[1] * parts[0] + parts[0] ** 2
        for name, wanted in (("M_ww", overlap), ("Q_ww", square)):
            values = run[name][:, k, :, 0, 0]
            error = values.std(0, ddof=1) / np.sqrt(seeds)
            z += list((values.mean(0) - wanted) / error)
        wrong += list((values.mean(0) - gaussian(C, (w - teacher)[0], taken, step, noise, vectors, parts[0])) / error)
    assert np.sqrt(np.mean(np.square(z))) < 1.5 and np.abs(z).max() < 4
    assert np.abs(wrong).max() > 8


def gaussian(C, delta, steps, step, noise, vectors, teacher):
    """E[w_l^2] in every eigenspace, were the rows Gaussian of covariance C."""
    S, mean = np.outer(delta, delta), delta
    for _ in range(steps):
        S = S - step * (C @ S + S @ C) + step**2 * (2 * C @ S @ C + (np.trace(C @ S) + noise**2) * C)
        mean = mean - step * C @ mean
    return np.diag(vectors.T @ S @ vectors) + 2 * (vectors.T @ mean) * teacher + teacher**2


def test_rows_of_a_gaussian_file_have_the_law_of_compressed_sgd():
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(20_000, 12)) * np.arange(1, 13) ** -0.5
    made = odesim.declare(
        student={"unit": "erf(w/sqrt(2))", "units": 2}, teacher={"spread": rng.normal(size=(1, 12)) / 4},
        inputs={"data": rows, "bins": 12}, training={"step": 0.1, "batch": 2},
    )  # fmt: skip
    both = [odesim.simulate(made, method=m, until=2, save_points=2, seeds=1000) for m in ("explicit", "compressed")]
    assert "passes" not in both[1].summary
    pairs = [(run["M_ww"][:, -1].sum(1), run["Q_ww"][:, -1].sum(1)) for run in both]
    for one, two in zip(*pairs, strict=True):
        for x, y in zip(one.reshape(1000, -1).T, two.reshape(1000, -1).T, strict=True):
            assert stats.ks_2samp(x, y).pvalue > 1e-4


@pytest.mark.slow
def test_sgd_on_a_gaussian_file_follows_the_online_limit():
    rng = np.random.default_rng(4)
    d, seeds = 500, 48
    rows = rng.normal(size=(30_000, d)) * np.where(np.arange(d) < d // 2, np.sqrt(1.6), np.sqrt(0.4))
    tables = {key: value for key, value in PLATEAU.items() if key not in ("start", "parameters", "inputs")}
    made = odesim.declare(**{**tables, "teacher": {"units": 2, "spread": "random"}}, inputs={"data": rows, "bins": 16})
    flow = odesim.integrate(made, until=8, save_points=5)
    sgd = odesim.simulate(made, method="explicit", until=8, save_points=5, seeds=seeds)
    z = []
    for name in ("Q_ww", "M_ww"):
        values, wanted = np.asarray(sgd[name])[:, 1:].sum(2), np.asarray(flow[name])[1:].sum(1)
        z.append(((values.mean(0) - wanted) / (values.std(0, ddof=1) / np.sqrt(seeds))).ravel())
    z = np.concatenate(z)
    assert 0.5 < np.sqrt((z**2).mean()) < 1.7 and np.abs(z).max() < 5


def test_explicit_weights_hold_the_teacher_of_the_file():
    rng = np.random.default_rng(6)
    rows, teacher = heavy(5, 50, 20), rng.normal(size=(2, 20))
    made = odesim.declare(
        student={"unit": "w", "units": 3}, teacher={"units": 2, "spread": teacher},
        inputs={"data": rows, "bins": 6}, training={"step": 0.01},
    )  # fmt: skip
    p = made.parameters()
    start, own = initial.enter(p, None, rng), model.model(p)
    gram, held = own.place(start), own.spaces(p)
    assert held is not None
    vectors = explicit_rows(own, None, gram[None], 20, 3, held, 1)[0]
    centred = rows - rows.mean(0)
    basis = np.linalg.eigh(centred.T @ centred)[1][:, ::-1]
    assert np.abs(vectors[3:]) == pytest.approx(np.abs(teacher @ basis), abs=1e-9)  # but for signs
    assert grams_by_block(vectors, held.dimension) == pytest.approx(gram, abs=1e-9)


def test_weights_beside_a_frame_have_the_gram_matrices_given_and_are_turned():
    rng = np.random.default_rng(7)
    one = {"probability": np.ones(1), "mean_weights": np.zeros((1, 0)), "label": None}
    held = Eigenspaces(np.ones((1, 3)), np.array([1, 4, 15]), lambda: np.ones((1, 20)), **one)
    frame = rng.normal(size=(2, 20))
    frame[:, 1:5] = 0.0  # nothing of the frame in the second block
    full = np.vstack([rng.normal(size=(2, 20)), frame])
    full[:2, 0] = [0.3, -1.0] * frame[0, :1]  # what fits beside it in one dimension
    grams = grams_by_block(full, held.dimension)
    made = given_frame.weights(np.array([grams, grams]), frame, held, 0)
    assert np.array_equal(made[:, 2:], np.array([frame, frame]))
    for each in made:
        assert grams_by_block(each, held.dimension) == pytest.approx(grams, abs=1e-9)
    assert np.abs(made[0, :2, 5:] - made[1, :2, 5:]).max() > 0.1
    assert np.abs(spaces.weights(grams[None], held, 0, 2)[0, 2:] - frame).max() > 0.1


def test_no_room_beside_a_teacher_is_said():
    rng = np.random.default_rng(8)
    made = odesim.declare(
        student={"unit": "w"}, teacher={"spread": rng.normal(size=(1, 6))}, inputs={"data": heavy(9, 30, 6)},
        training={"step": 0.01}, start={"overlap": 0.2},
    )  # fmt: skip
    with pytest.raises(UsageError, match="block 1 of the inputs has 1 coordinates"):
        odesim.simulate(made, method="explicit", until=0.1, save_points=2)


def test_another_seed_draws_other_rows_and_the_same_seed_the_same():
    made = odesim.declare(student={"unit": "w"}, teacher={}, inputs={"data": heavy(1, 12, 5)}, training={"step": 0.01})
    options = {"method": "explicit", "until": 0.2, "save_points": 2}
    runs = [odesim.simulate(made, seed=seed, **options)["M_ww"] for seed in (1, 1, 2)]
    assert np.array_equal(runs[0], runs[1]) and not np.array_equal(runs[0], runs[2])


def test_the_digest_of_a_simulation_knows_the_samples():
    digests = set()
    for seed in (1, 2):
        made = odesim.declare(
            student={"unit": "w"}, teacher={}, inputs={"data": heavy(seed, 12, 5)}, training={"step": 0.01}
        )
        digests.add(Simulation.build(Case.build(made), method="explicit").digest)
    assert len(digests) == 2


def test_vectors_in_few_dimensions_have_no_part_outside_of_them():
    rng = np.random.default_rng(0)
    for _ in range(3000):
        dimension = int(rng.integers(1, 4))
        rows = rng.normal(size=(4, dimension)) * rng.uniform(1e-3, 1, (4, 1))
        half = thin_root(rows @ rows.T)
        assert half.shape == (4, dimension)
        assert half @ half.T == pytest.approx(rows @ rows.T, abs=1e-11)


def test_the_loss_of_sgd_on_a_file_is_that_of_its_samples():
    rows = heavy(1, 30, 5)
    rng = np.random.default_rng(2)
    weights = {"w": rng.normal(size=(2, 5)), "w_star": rng.normal(size=(1, 5))}
    made = odesim.declare(
        student={"unit": "tanh(w)", "units": 2}, teacher={}, inputs={"data": rows}, training={"step": 1e-9}
    )
    options = {"until": 1e-9, "save_points": 2, "initial": weights, "seeds": 2}
    run = odesim.simulate(made, method="explicit", **options)
    centred = rows - rows.mean(0)
    f, wanted = np.tanh(centred @ weights["w"].T).sum(1), np.tanh(centred @ weights["w_star"].T).sum(1)
    assert run["loss"][:, 0] == pytest.approx(np.mean((f - wanted) ** 2) / 2)
    assert "error" not in run.keys() and run.summary["median_final_loss"] == pytest.approx(run["loss"][0, 1])
    gaussian_run = odesim.simulate(made, method="compressed", **options)
    assert abs(gaussian_run["loss"][0, 0] / run["loss"][0, 0] - 1) > 0.005  # heavy tails, five coordinates


def test_a_resumed_run_on_samples_is_the_uninterrupted_one():
    made = odesim.declare(student={"unit": "w"}, teacher={}, inputs={"data": heavy(1, 12, 5)}, training={"step": 0.01})
    simulation = Simulation.build(Case.build(made), method="explicit", seeds=2)
    starts = [condition_of(simulation)] * 2
    whole, first, second = (make_engine(simulation, made.stages[0].truth(made.parameters()), starts, None)[0]
                            for _ in range(3))  # fmt: skip
    assert whole.advance(5) and first.advance(2)
    second.restore(first.state())
    assert second.advance(3)
    assert np.array_equal(whole.grams(), second.grams())

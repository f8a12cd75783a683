"""Streams, checkpoints and numerics of the engines."""

import math

import numpy as np
import pytest
from conftest import start_rows

KINDS = ("numba", "jax", "float64")


def made(kind, batch=6, replicas=3, seed=4, d=40, step=1e-3):
    """An engine of three liao replicas (m = 3, m_star = 1) at its start."""
    from derivations.liao.model import MODEL
    from derivations.liao.parameters import Parameters
    from odesim.sgd.engines import NumbaChains, TracedReplicas

    rows = start_rows(3, 1, d)
    grams, parameters = np.tile(rows @ rows.T, (replicas, 1, 1)), Parameters(m=3, m_star=1, d=d)
    if kind == "numba":
        return NumbaChains(MODEL, parameters, grams, d, batch, step, seed, threads=1)
    many = None if kind == "jax" else np.tile(rows, (replicas, 1, 1))
    return TracedReplicas(
        MODEL, parameters, grams, d, batch, step, seed, rows=many, dtype="float64" if many is None else kind
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("batch", [1, 6])
def test_a_run_resumed_from_its_state_equals_an_uninterrupted_one(kind, batch):
    whole, first, second = made(kind, batch), made(kind, batch), made(kind, batch)
    whole.advance(9)
    first.advance(4)
    stored = first.state()
    first.advance(3)  # what happens after the checkpoint is lost
    second.restore(stored)
    second.advance(5)
    assert np.array_equal(whole.grams(), second.grams())


@pytest.mark.parametrize("kind", KINDS)
def test_replicas_are_streams_of_their_own(kind):
    engine = made(kind)
    engine.advance(2)
    grams = engine.grams()
    assert min(abs(grams[0] - grams[1]).max(), abs(grams[1] - grams[2]).max()) > 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_a_replica_does_not_depend_on_how_many_run_beside_it(kind):
    one, three = made(kind, replicas=1), made(kind, replicas=3)
    one.advance(5)
    three.advance(5)
    # XLA may sum a batched product in another order: round-off of a few operations on numbers of order 1.
    assert np.abs(one.grams()[0] - three.grams()[0]).max() < 1e-13


def test_another_seed_gives_another_run():
    first, second = made("jax", seed=1), made("jax", seed=2)
    first.advance(1)
    second.advance(1)
    assert abs(first.grams() - second.grams()).max() > 1e-6


@pytest.mark.parametrize("batch", [7])
@pytest.mark.parametrize("kind", [pytest.param("jax", marks=pytest.mark.slow), "float64"])
def test_small_blocks_and_groups_of_replicas_have_the_same_law(kind, batch, monkeypatch):
    # Blocks of 5 samples, a remainder, and one replica at a time, against one block of all.
    from scipy import stats

    from odesim.sgd import traced

    final = []
    for limit in (1 << 26, 5 * (40 if kind == "float64" else 8) * 8):
        monkeypatch.setattr(traced, "BLOCK_BYTES", limit)
        monkeypatch.setattr(traced, "FEWEST", 1)
        traced.explicit.cache_clear(), traced.compressed.cache_clear()
        engine = made(kind, batch, replicas=150, seed=limit % 1000)
        engine.advance(2)
        final.append(engine.grams()[:, [0, 3, 0, 3], [0, 3, 3, 7]])
    traced.explicit.cache_clear(), traced.compressed.cache_clear()
    assert min(stats.ks_2samp(a, b).pvalue for a, b in zip(final[0].T, final[1].T, strict=True)) > 1e-3


def test_a_remainder_block_completes_a_prime_batch():
    import jax
    import jax.numpy as jnp

    from odesim.sgd.traced import accumulate

    seen = accumulate(jax, lambda total, index, count: total + count * (1 + 1000 * index), jnp.zeros(()), 17, 5)
    assert float(seen) == 5 * (1 + 1001 + 2001) + 2 * 3001


def test_float32_follows_float64_within_its_precision():
    # The two draw different random numbers from one key, so the same samples are not compared: their medians are.
    from scipy import stats

    final = []
    for kind in ("float64", "float32"):
        engine = made(kind, 16, replicas=600)
        engine.advance(3)
        final.append(engine.grams()[:, [0, 3, 0], [0, 3, 3]])
    assert engine.state()["values"].dtype == np.float32
    assert min(stats.ks_2samp(a, b).pvalue for a, b in zip(final[0].T, final[1].T, strict=True)) > 1e-3


def test_an_interrupted_step_leaves_all_replicas_where_they_were(monkeypatch):
    engine = made("numba")
    engine.advance(3)
    before = engine.state()

    def interrupt(steps):
        raise KeyboardInterrupt

    monkeypatch.setattr(engine.chains[1], "advance", interrupt)
    with pytest.raises(KeyboardInterrupt):
        engine.advance(4)
    after = engine.state()
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_the_smallest_overlaps_survive_the_factor():
    # d = 1e12: overlaps with the teacher of size 1e-6 to the last digits, those of students to round-off of 1.
    from derivations.liao import initial
    from derivations.liao.model import place
    from derivations.liao.parameters import Parameters
    from odesim.sgd.compressed import factor

    start = initial.enter(Parameters(m=25, m_star=5, d=10**12), None, np.random.default_rng(0))
    gram = place(start)
    rows = factor(gram, 50)
    back = rows @ rows.T
    assert np.abs(back - gram).max() < 2e-15
    assert np.abs(back[:50, 50:] / gram[:50, 50:] - 1).max() < 1e-14
    assert np.all(np.triu(rows[np.r_[50:60, 0:50]], 1) == 0)


def test_linearly_dependent_vectors_have_a_factor():
    from odesim.sgd.compressed import factor

    rows = np.array([[1.0, 0.2], [1.0, 0.2], [-0.5, 0.3], [1.0, 0.0]])
    back = factor(rows @ rows.T, 3)
    assert np.abs(back @ back.T - rows @ rows.T).max() < 1e-14  # eigenvectors and QR: some ten eps


@pytest.mark.parametrize("library", ["numba", "jax"])
def test_the_factor_of_coefficients_is_exact_at_any_scale_and_rank(library):
    # A row 1e-10 times the others keeps its own relative precision, a repeated row is an exact copy.
    rng = np.random.default_rng(0)
    C = rng.normal(size=(5, 30))
    C[2] *= 1e-10
    C[4] = C[1]
    S = C @ C.T
    if library == "numba":
        from odesim.sgd.loops import semidefinite_factor

        L = S.copy()
        semidefinite_factor(L)
    else:
        from odesim.sgd.matrices import semidefinite_factor

        L = np.asarray(semidefinite_factor(S))
    scale = np.sqrt(np.outer(np.diag(S), np.diag(S)))
    assert np.abs((L @ L.T - S) / scale).max() < 1e-14
    assert np.array_equal(L, np.tril(L))


def test_a_wishart_factor_has_the_mean_and_variance_of_its_law():
    # E W = nu I and var W_ij = nu (1 + delta_ij), nu = 7.
    from odesim.sgd.loops import bartlett

    rng = np.random.default_rng(1)
    made = np.array([bartlett(3, 7, rng) for _ in range(20_000)])
    W = made @ np.swapaxes(made, 1, 2)
    nu, error = 7.0, math.sqrt(14.0 / 20_000)
    assert np.abs(W.mean(0) - nu * np.eye(3)).max() < 4 * error
    assert np.abs(W.var(0) / (nu * (1 + np.eye(3))) - 1).max() < 0.1

"""The normal numbers of large samples: Threefry against JAX's own, the law, and independence of replicas and steps."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from jax.extend.random import threefry_2x32

from odesim.code.traced import wide
from odesim.sgd import normals

MOMENTS = {1: 1.0, 2: 2.0, 3: 15.0, 4: 96.0, 6: 10170.0}
"""Variances of z^k."""


def drawn(dtype: str, seed: int = 0, shape: tuple[int, int] = (4000, 1000)) -> np.ndarray:
    make = jax.jit(lambda key: normals.standard_normal(key, shape, dtype))
    return np.asarray(make(jax.random.key(seed)))


def test_threefry_is_that_of_jax() -> None:
    low, high = jax.random.key_data(jax.random.key(20_251))
    words = jnp.arange(16, dtype=jnp.uint32) * jnp.uint32(2_654_435_761)
    keys = (low, high, low ^ high ^ jnp.uint32(normals.PARITY))
    ours = normals.threefry(keys, words[:8], words[8:])
    np.testing.assert_array_equal(np.concatenate(ours), threefry_2x32(jnp.stack([low, high]), words))


@pytest.mark.parametrize(("dtype", "units"), [("float32", 4.0), ("float64", 2.0)])
def test_the_sine_is_exact_to_the_last_places(dtype: str, units: float) -> None:
    t = np.linspace(-0.5, 0.5, 2001).astype(dtype)
    error = np.abs(np.asarray(normals._sine(jnp.asarray(t)), float) - np.sin(np.pi * t.astype(float)))
    assert error.max() <= units * np.finfo(dtype).eps


def test_the_logarithm_is_exact_to_the_last_places() -> None:
    words = np.random.default_rng(0).integers(0, 2**32, 100_000).astype(np.float32)
    ends = np.concatenate(
        [1.0 - np.arange(200) * 2.0**-24, 2.0 ** -np.arange(34.0), np.sqrt(0.5) + np.arange(-9, 9) / 2**24]
    )
    u = np.concatenate([(words + np.float32(0.5)) * np.float32(2.0**-32), ends.astype(np.float32)])
    found, exact = np.asarray(normals._logarithm(jnp.asarray(u)), float), np.log(u.astype(float))
    assert np.all(np.abs(found - exact) <= 2.0 * np.spacing(np.abs(exact).astype(np.float32)))
    assert found[words.size] == 0.0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_moments_tails_and_law(dtype: str) -> None:
    x = drawn(dtype).astype(float).ravel()
    for k, variance in MOMENTS.items():
        moment = 0.0 if k % 2 else float(scipy.stats.norm.moment(k))
        assert abs((x**k).mean() - moment) < 5.0 * np.sqrt(variance / x.size), k
    for level in (1.0, 2.0, 3.0, 4.0, 4.5, 5.0):
        for tail in (x > level, x < -level):
            expected = x.size * scipy.stats.norm.sf(level)
            assert scipy.stats.poisson.sf(tail.sum() - 1, expected) > 1e-6, level
            assert scipy.stats.poisson.cdf(tail.sum(), expected) > 1e-6, level
    assert scipy.stats.kstest(x[:: x.size // 200_000], "norm").pvalue > 1e-5
    assert np.unique(x).size > (0.999 * x.size if dtype == "float64" else 1_000_000)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_two_halves_columns_and_keys_are_independent(dtype: str) -> None:
    x = drawn(dtype).astype(float)
    replica, step = (drawn(dtype, seed).astype(float) for seed in (1, 2))
    for first, second in ((x[:2000], x[2000:]), (x[:, :-1], x[:, 1:]), (x[:-1], x[1:]), (x, replica), (replica, step)):
        for a, b in ((first, second), (first**2 - 1.0, second**2 - 1.0), (np.abs(first) - np.sqrt(2 / np.pi), second)):
            z = (a * b).mean() * np.sqrt(a.size) / np.sqrt((a * a).mean() * (b * b).mean())
            assert abs(z) < 5.0


def test_wide_vectors_change_no_number() -> None:
    def make(key):
        return normals.standard_normal(key, (64, 100), "float32")

    key = jax.random.key(5)
    np.testing.assert_array_equal(wide(make)(key), jax.jit(make)(key))


def test_a_batch_of_keys_gives_the_numbers_of_each() -> None:
    keys = jax.vmap(lambda k: jax.random.fold_in(jax.random.key(7), k))(jnp.arange(3))
    together = jax.vmap(lambda key: normals.standard_normal(key, (7, 5), "float64"))(keys)
    alone = [normals.standard_normal(key, (7, 5), "float64") for key in keys]
    np.testing.assert_allclose(together, np.array(alone), rtol=1e-14, atol=1e-15)


def test_an_odd_number_of_rows_is_the_beginning_of_an_even_one() -> None:
    seven, eight = (drawn("float32", 3, (rows, 9)) for rows in (7, 8))
    np.testing.assert_array_equal(seven, eight[:7])


@pytest.mark.slow
def test_the_numbers_are_the_same_on_any_number_of_threads() -> None:
    code = (
        "import hashlib, jax, numpy as np; from odesim.sgd import normals; "
        "x = jax.jit(lambda k: normals.standard_normal(k, (4000, 1000), 'float32'))(jax.random.key(3)); "
        "print(hashlib.sha256(np.asarray(x).tobytes()).hexdigest())"
    )
    found = set()
    for flags in ("--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1", ""):
        environment = {**os.environ, "XLA_FLAGS": flags}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        found.add(done.stdout.strip())
    assert len(found) == 1

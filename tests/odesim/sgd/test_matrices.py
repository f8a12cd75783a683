"""Methods only for GPUs: halves of samples, rounds of steps, factors by the library, products in three parts."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_engines import made

from odesim.sgd import frame_traced, matrices, normals, pattern_traced, scalar_traced, traced
from odesim.sgd.engines import TracedReplicas

CASES = [("float64", 6, 20, 1e-12), ("float64", 1, 3, 1e-12), ("float32", 6, 20, 2e-5), ("jax", 6, 1, 1e-13)]
"""Kinds of engines, batches, steps (a round and a rest), and how far rounding may take Gram matrices of order 1."""


@pytest.fixture
def on_a_gpu(monkeypatch):
    """Programs as they are written for a GPU, from the call of this on; a CPU runs them."""

    def forget() -> None:
        for program in (traced.explicit, traced.compressed, scalar_traced.explicit, scalar_traced.compressed):
            program.cache_clear()

    def switch() -> None:
        for module in (normals, traced, matrices, frame_traced, pattern_traced):
            monkeypatch.setattr(module, "default", lambda: SimpleNamespace(platform="gpu"))
        forget()

    yield switch
    forget()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rows", [1, 7, 8])
def test_the_pieces_are_the_rows_of_one_array(rows, dtype, on_a_gpu):
    key = jax.random.key(3)
    whole = np.asarray(normals.standard_normal(key, (rows, 300), dtype))
    on_a_gpu()
    found = normals.pieces(key, (rows, 300), dtype)
    half = (rows + 1) // 2
    assert [(where.start, where.stop, len(x)) for where, x in found] == [(0, half, half), (half, rows, rows - half)]
    assert np.abs(np.concatenate([x for _, x in found]) - whole).max() < 8.0 * np.finfo(dtype).eps


@pytest.mark.parametrize("steps", [0, 15, 16, 37])
def test_rounds_and_a_rest_are_all_the_steps(steps, on_a_gpu):
    def run(steps):
        return traced.repeated(lambda k, total: (total * 7 + k) % 10_007, steps, jnp.int64(1))

    straight = int(jax.jit(run)(steps))
    on_a_gpu()
    assert int(jax.jit(lambda steps: run(steps))(steps)) == straight


@pytest.mark.parametrize("singular", [False, True])
def test_many_matrices_have_the_factors_of_each(singular, on_a_gpu):
    C = np.random.default_rng(0).normal(size=(4, 5, 30))
    C[:, 2] *= 1e-10
    if singular:
        C[1, 4] = C[1, 1]
    S = C @ C.transpose(0, 2, 1)
    each = np.array([matrices.semidefinite_factor(one) for one in S])
    on_a_gpu()
    together = np.asarray(jax.jit(jax.vmap(matrices.semidefinite_factor))(S))
    scale = np.sqrt(np.einsum("rii,rjj->rij", S, S))
    assert np.abs((together @ together.transpose(0, 2, 1) - S) / scale).max() < 1e-14
    assert np.abs(together - each).max() < 1e-12 * np.abs(each).max()


@pytest.mark.parametrize("distance", [1.0, 1e-5, 1e-9, 0.0])
def test_many_matrices_have_triangles_as_exact_as_by_qr(distance, on_a_gpu):
    # Two rows that are nearly the same: of their Gram matrix alone the difference would be known to 1e-16 / distance^2.
    A = np.random.default_rng(0).normal(size=(4, 5, 12))
    A[:, 1] *= 1e-8
    A[2, 4] = A[2, 3] + distance * A[2, 4]
    on_a_gpu()
    L = np.asarray(jax.jit(jax.vmap(matrices.triangle))(A))
    assert np.array_equal(L, np.tril(L))
    scale = np.linalg.norm(A, axis=2)
    assert (
        np.abs(L @ L.transpose(0, 2, 1) - A @ A.transpose(0, 2, 1)) / (scale[:, :, None] * scale[:, None])
    ).max() < 3e-15
    apart = np.linalg.norm(L[2, 4] - L[2, 3]) - np.linalg.norm(A[2, 4] - A[2, 3])
    assert abs(apart) < 1e-14 * scale[2].max()


def test_a_second_factor_is_used_only_where_it_is_exact():
    A = np.random.default_rng(0).normal(size=(3, 5, 12))
    assert bool(matrices._twice(jnp.asarray(A))[1])
    A[1, 4] = A[1, 3] + 1e-9 * A[1, 4]
    assert not bool(matrices._twice(jnp.asarray(A))[1])


@pytest.mark.parametrize(("kind", "batch", "steps", "rounding"), CASES)
def test_the_programs_of_a_gpu_take_the_steps_of_a_cpu(kind, batch, steps, rounding, on_a_gpu):
    here = made(kind, batch)
    here.advance(steps)
    on_a_gpu()
    there = made(kind, batch)
    there.advance(steps)
    assert np.abs(there.grams() - here.grams()).max() < rounding


def test_labels_and_means_go_with_the_halves_of_their_samples(on_a_gpu):
    from bare_models.cluster import MODEL, Parameters

    rows = np.random.default_rng(5).normal(size=(3, 20)) / np.sqrt(20)
    gram = (rows @ rows.T)[None]
    found = []
    for switch in (lambda: None, on_a_gpu):
        switch()
        engine = TracedReplicas(MODEL, Parameters(20), gram, 20, 7, 0.05, 3, rows=rows[None])
        engine.advance(4)
        found.append(engine.grams())
    assert np.abs(found[0] - found[1]).max() < 1e-12


def test_scalars_move_with_the_halves_of_their_samples(on_a_gpu):
    from test_scalars import engine

    found = []
    for switch in (lambda: None, on_a_gpu):
        switch()
        run = engine("float64", "erf with biases", 7, 2)
        run.advance(4)
        found.append(run.grams())
    assert np.abs(found[0] - found[1]).max() < 1e-12


@pytest.mark.gpu
@pytest.mark.parametrize(("kind", "batch", "steps", "rounding"), CASES)
def test_a_gpu_takes_the_steps_of_a_cpu(kind, batch, steps, rounding, gpu):
    code = (
        "import json, sys; sys.path[:0] = json.loads(sys.argv[1])\n"
        f"from test_engines import made; engine = made({kind!r}, {batch}); engine.advance({steps})\n"
        "print(json.dumps(engine.grams().tolist()))"
    )
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "JAX_ENABLE_X64": "1"}
    command = [sys.executable, "-c", code, json.dumps(sys.path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    engine = made(kind, batch)
    engine.advance(steps)
    assert gpu in engine.at[0].devices()
    assert np.abs(engine.grams() - np.array(json.loads(done.stdout))).max() < rounding


@pytest.mark.gpu
def test_a_gpu_multiplies_float32_without_losing_digits(gpu):
    rng = np.random.default_rng(1)
    left, right = (rng.normal(size=size).astype("float32") for size in ((64, 1000), (1000, 4096)))
    exact = left.astype(float) @ right.astype(float)
    error = np.abs(np.asarray(jax.jit(matrices.product)(left, right), float) - exact)
    assert error.max() / np.sqrt(1000.0) < 2e-6  # ten bits alone: 2e-3

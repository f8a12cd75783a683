"""SGD of many replicas at once in JAX: explicit weights in d dimensions, or the compressed chain.

Randomness is counter-based and keyed by (replica, step, block), so a batched run equals a looped one and a
resumed run an uninterrupted one.  Blocks of samples bound the memory at any d and batch.
"""

import functools
from collections.abc import Callable
from typing import Any

from derivations.contract import Model
from odesim.code.traced import Sizes, joined, wide
from odesim.sgd import bind, normals

BLOCK_BYTES = 1 << 21
"""Memory of the samples held at once: a block that stays in a core's cache between being drawn and being used."""
GPU_BLOCK_BYTES = 1 << 28
"""The same on a GPU, which wants large products."""
LARGE_BYTES = 1 << 27
"""Up to this size a block holds at least `FEWEST` samples, so that every pass over the weights serves many."""
FEWEST = 256
EPSILON = 2.22e-16


def held_bytes() -> int:
    """The memory of the samples held at once on the device in use."""
    import jax

    return BLOCK_BYTES if jax.default_backend() == "cpu" else GPU_BLOCK_BYTES


def block_size(batch: int, d: int, itemsize: int) -> int:
    """How many samples of d numbers make a block, at least one.

    It does not depend on the number of replicas, because the random numbers are keyed by block: `over_replicas` lets
    fewer run at once instead.
    """
    fits = held_bytes() // (d * itemsize)
    return min(batch, max(1, fits, min(FEWEST, LARGE_BYTES // (d * itemsize))))


@functools.cache
def explicit(model: Model, numbers: Any, trained: int, d: int, batch: int, dtype: Any) -> Callable[..., Any]:
    """`advance(weights (R, n, d), keys (R,), arrays, first_step, steps, step_size)` -> weights, over replicas.

    `numbers` are those of `constants_of`.  One step: fields = x.[trained, frame] for every sample, coefficients,
    gradient = coef^T x / batch, update.
    """
    import jax
    import jax.numpy as jnp

    functions = bind.bind_jax(model)
    size = block_size(batch, d, jnp.dtype(dtype).itemsize)

    def gradient(weights: Any, key: Any, numbers: Any) -> Any:
        vectors = _unit(jnp, weights, trained) if model.normalised else weights

        def add(total: Any, index: Any, count: int) -> Any:
            sample, label = jax.random.split(jax.random.fold_in(key, index))
            x = normals.standard_normal(sample, (count, d), dtype)
            x, labels = _labelled(model, functions, numbers, label, x, weights[trained:])
            coef = functions["coefficients"](_product(x, vectors.T).T, labels, *numbers)
            return total + _product(coef, x)

        return accumulate(jax, add, jnp.zeros((trained, d), dtype), batch, size) / batch

    def step(weights: Any, key: Any, numbers: Any, step_size: Any) -> Any:
        g = gradient(weights, key, numbers)
        v = weights[:trained]
        a, b = functions["update"]((v * v).sum(1), (v * g).sum(1), (g * g).sum(1), step_size, *numbers)
        moved = a[:, None] * v + b[:, None] * g
        return jnp.concatenate([moved, weights[trained:]]).astype(dtype)

    return over_replicas(step, numbers, size * d * jnp.dtype(dtype).itemsize)


@functools.cache
def compressed(model: Model, numbers: Any, trained: int, fixed: int, d: int, batch: int) -> Callable[..., Any]:
    """`advance(factors (R, n, n), keys, arrays, first_step, steps, step_size)` of the compressed chain, jitted."""
    import jax
    import jax.numpy as jnp

    functions = bind.bind_jax(model)
    n, rank = trained + fixed, min(batch, trained)
    size = batch if batch < trained else block_size(batch, n, 8)

    def sample(X: Any, key: Any, numbers: Any, count: int) -> tuple[Any, Any]:
        vectors = _unit(jnp, X, trained) if model.normalised else X
        first, label = jax.random.split(key)
        y = normals.standard_normal(first, (count, n), "float64")
        y, labels = _labelled(model, functions, numbers, label, y, X[trained:])
        return y, functions["coefficients"](vectors @ y.T, labels, *numbers)

    def gradient(X: Any, key: Any, numbers: Any) -> tuple[Any, Any]:
        """The gradient in the span, times the batch, and a factor of the coefficients' Gram matrix."""
        if batch < trained:
            y, coef = sample(X, jax.random.fold_in(key, 0), numbers, batch)
            return coef @ y, coef

        def add(total: Any, index: Any, count: int) -> Any:
            y, coef = sample(X, jax.random.fold_in(key, index), numbers, count)
            return total[0] + coef @ y, total[1] + coef @ coef.T

        zero = (jnp.zeros((trained, n)), jnp.zeros((trained, trained)))
        G, S = accumulate(jax, add, zero, batch, size)
        return G, semidefinite_factor(S)

    def step(X: Any, key: Any, numbers: Any, step_size: Any) -> Any:
        sample_key, wishart_key = jax.random.split(key)
        G, half = gradient(X, sample_key, numbers)
        G, Z = G / batch, half @ bartlett(jax, rank, d - n, wishart_key) / batch
        v = X[:trained]
        squares = (G * G).sum(1) + (Z * Z).sum(1)
        a, b = functions["update"]((v * v).sum(1), (v * G).sum(1), squares, step_size, *numbers)
        moved = jnp.concatenate([a[:, None] * v + b[:, None] * G, b[:, None] * Z], axis=1)
        rest = jnp.linalg.qr(moved[:, fixed:].T, mode="r").T
        return X.at[:trained].set(jnp.concatenate([moved[:, :fixed], rest], axis=1))

    return over_replicas(step, numbers, size * n * 8)


def semidefinite_factor(S: Any) -> Any:
    """The lower factor of a positive semi-definite matrix, as `loops.semidefinite_factor` has it."""
    import jax
    import jax.numpy as jnp

    n = S.shape[0]
    smallest = 4.0 * n * EPSILON * jnp.diagonal(S)

    def eliminate(k: Any, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        rest, L = carry
        good = rest[k, k] > smallest[k]
        column = jnp.where(good & (jnp.arange(n) >= k), rest[:, k], 0.0) / jnp.sqrt(jnp.where(good, rest[k, k], 1.0))
        return rest - jnp.outer(column, column), L.at[:, k].set(column)

    return jax.lax.fori_loop(0, n, eliminate, (S, jnp.zeros_like(S)))[1]


def arrays_of(numbers: tuple[Any, ...]) -> list[Any]:
    """The arrays among a model's numbers."""
    import jax

    return [value for value in jax.tree.leaves(numbers) if hasattr(value, "shape")]


def constants_of(numbers: tuple[Any, ...]) -> Sizes:
    """A model's numbers without its arrays, which may differ between replicas: what a compiled program is known by."""
    import jax

    leaves, nested = jax.tree.flatten(numbers)
    return nested, tuple(None if hasattr(value, "shape") else value for value in leaves)


def over_replicas(step: Callable[..., Any], numbers: Any, block_bytes: int) -> Callable[..., Any]:
    """Steps of all replicas, as many of them at once as keep their blocks of samples within `held_bytes`."""
    import jax

    group = max(1, held_bytes() // block_bytes)

    @wide
    def advance(state: Any, keys: Any, arrays: list[Any], first_step: Any, steps: Any, step_size: Any) -> Any:
        def one(replica: tuple[Any, Any, list[Any]]) -> Any:
            state, key, arrays = replica

            def body(k: Any, inner: Any) -> Any:
                return step(inner, jax.random.fold_in(key, first_step + k), joined(numbers, arrays), step_size)

            return jax.lax.fori_loop(0, steps, body, state)

        count = keys.shape[0]
        rounds = -(-count // group)
        if rounds == 1:
            return jax.vmap(one)((state, keys, arrays))
        size = -(-count // rounds)
        # The last replica fills up the last round: a shorter round would be compiled a second time.
        filled = jax.numpy.minimum(jax.numpy.arange(rounds * size), count - 1)
        grouped = jax.tree.map(
            lambda values: values[filled].reshape(rounds, size, *values.shape[1:]), (state, keys, arrays)
        )
        # Not `jax.lax.map(.., batch_size=size)`, which cannot group arrays that are empty (a model without scalars).
        done = jax.lax.map(jax.vmap(one), grouped)
        return jax.tree.map(lambda values: values.reshape(rounds * size, *values.shape[2:])[:count], done)

    return advance


def accumulate(jax: Any, add: Callable[[Any, Any, int], Any], zero: Any, batch: int, size: int) -> Any:
    """The total over blocks of `size` samples and one shorter block for the remainder."""
    blocks, rest = divmod(batch, size)
    total = add(zero, 0, size)
    if blocks > 1:
        total = jax.lax.fori_loop(1, blocks, lambda index, total: add(total, index, size), total)
    return add(total, blocks, rest) if rest else total


def _product(left: Any, right: Any) -> Any:
    """A matrix product in the full precision of its type (a GPU would multiply float32 in ten bits)."""
    import jax.numpy as jnp

    return jnp.matmul(left, right, precision="highest")


def _unit(jnp: Any, weights: Any, trained: int) -> Any:
    lengths = jnp.sqrt((weights[:trained] ** 2).sum(1, keepdims=True))
    return jnp.concatenate([weights[:trained] / lengths, weights[trained:]])


def _labelled(model: Model, functions: Any, numbers: Any, key: Any, x: Any, frame: Any) -> tuple[Any, Any]:
    """Samples moved to their means, and their labels; models without labels get an empty array."""
    import jax
    import jax.numpy as jnp

    uniforms, normals = model.noise
    if uniforms + normals == 0:
        return x, jnp.zeros((0, x.shape[0]), x.dtype)
    first, second = jax.random.split(key)
    labels = functions["draw"](
        jax.random.uniform(first, (uniforms, x.shape[0]), x.dtype),
        jax.random.normal(second, (normals, x.shape[0]), x.dtype),
        *numbers,
    )
    return x + _product(functions["mean"](labels, *numbers).T, frame).astype(x.dtype), labels


def bartlett(jax: Any, rank: int, freedom: float, key: Any) -> Any:
    gamma_key, normal_key = jax.random.split(key)
    shapes = 0.5 * (freedom - jax.numpy.arange(rank))
    diagonal = jax.numpy.sqrt(2.0 * jax.random.gamma(gamma_key, shapes))
    below = jax.numpy.tril(jax.random.normal(normal_key, (rank, rank)), -1)
    return below + jax.numpy.diag(diagonal)

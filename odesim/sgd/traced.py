"""SGD of many replicas at once in JAX: explicit weights in d dimensions, or the compressed chain.

Randomness is counter-based and keyed by (replica, step, block), so a batched run equals a looped one and a resumed run
an uninterrupted one. Samples are drawn in blocks, which bounds the memory at any d and batch.
"""

import functools
from collections.abc import Callable
from typing import Any

from derivations.contract import Model
from odesim.code.traced import Sizes, joined, wide
from odesim.machine.device import default
from odesim.sgd import bind, matrices, normals
from odesim.sgd.matrices import product

BLOCK_BYTES = 1 << 21
"""Memory of the samples of a block, so that it stays in the cache of a core until it is used."""
GPU_BLOCK_BYTES = 1 << 28
"""The same for a GPU, which needs large products."""
LARGE_BYTES = 1 << 27
"""Memory up to which a block has at least `FEWEST` samples, so that every pass over the weights serves many samples."""
FEWEST = 256
ROUND = 16
"""Steps in a loop of known length on a GPU."""


def held_bytes() -> int:
    """Return the memory of the samples of a block on the device."""

    return BLOCK_BYTES if default().platform == "cpu" else GPU_BLOCK_BYTES


def block_size(batch: int, d: int, itemsize: int) -> int:
    """Return the number of samples of d numbers in a block, at least one.

    It does not depend on the number of replicas, because the random numbers are keyed by block: `over_replicas` reduces
    the number of simultaneous replicas instead.
    """
    fits = held_bytes() // (d * itemsize)
    return min(batch, max(1, fits, min(FEWEST, LARGE_BYTES // (d * itemsize))))


@functools.cache
def explicit(model: Model, numbers: Any, trained: int, d: int, batch: int, dtype: Any) -> Callable[..., Any]:
    """Return `advance(weights (R, n, d), keys (R,), arrays, first_step, steps, step_size)` -> weights, over replicas.

    `numbers` are those of `constants_of`. One step: fields = x.[trained, frame] for every sample, coefficients,
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
            labels = labels_of(model, functions, numbers, label, count, dtype)
            for rows, x in normals.pieces(sample, (count, d), dtype):
                x = _moved(model, functions, numbers, labels[:, rows], x, weights[trained:])
                coef = functions["coefficients"](product(x, vectors.T).T, labels[:, rows], *numbers)
                total = total + product(coef, x)
            return total

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
    """Return the jitted `advance(factors (R, n, n), keys, arrays, first_step, steps, step_size)` of the compressed
    chain.
    """
    import jax
    import jax.numpy as jnp

    functions = bind.bind_jax(model)
    n, rank = trained + fixed, min(batch, trained)
    size = batch if batch < trained else block_size(batch, n, 8)

    def sample(X: Any, key: Any, numbers: Any, count: int) -> tuple[Any, Any]:
        vectors = _unit(jnp, X, trained) if model.normalised else X
        first, label = jax.random.split(key)
        labels = labels_of(model, functions, numbers, label, count, "float64")
        y = normals.standard_normal(first, (count, n), "float64")
        y = _moved(model, functions, numbers, labels, y, X[trained:])
        return y, functions["coefficients"](vectors @ y.T, labels, *numbers)

    def gradient(X: Any, key: Any, numbers: Any) -> tuple[Any, Any]:
        """Return the gradient in the span, times the batch, and a factor of the coefficients' Gram matrix."""
        if batch < trained:
            y, coef = sample(X, jax.random.fold_in(key, 0), numbers, batch)
            return coef @ y, coef

        def add(total: Any, index: Any, count: int) -> Any:
            y, coef = sample(X, jax.random.fold_in(key, index), numbers, count)
            return total[0] + coef @ y, total[1] + coef @ coef.T

        zero = (jnp.zeros((trained, n)), jnp.zeros((trained, trained)))
        G, S = accumulate(jax, add, zero, batch, size)
        return G, matrices.semidefinite_factor(S)

    def step(X: Any, key: Any, numbers: Any, step_size: Any) -> Any:
        sample_key, wishart_key = jax.random.split(key)
        G, half = gradient(X, sample_key, numbers)
        G, Z = G / batch, half @ matrices.bartlett(rank, d - n, wishart_key) / batch
        v = X[:trained]
        squares = (G * G).sum(1) + (Z * Z).sum(1)
        a, b = functions["update"]((v * v).sum(1), (v * G).sum(1), squares, step_size, *numbers)
        moved = jnp.concatenate([a[:, None] * v + b[:, None] * G, b[:, None] * Z], axis=1)
        rest = matrices.triangle(moved[:, fixed:])
        return X.at[:trained].set(jnp.concatenate([moved[:, :fixed], rest], axis=1))

    return over_replicas(step, numbers, size * n * 8)


def arrays_of(numbers: tuple[Any, ...]) -> list[Any]:
    """Return the arrays among a model's numbers."""
    import jax

    return [value for value in jax.tree.leaves(numbers) if hasattr(value, "shape")]


def constants_of(numbers: tuple[Any, ...]) -> Sizes:
    """Return a model's numbers without its arrays, which may differ between replicas. They are the key of a compiled
    program.
    """
    import jax

    leaves, nested = jax.tree.flatten(numbers)
    return nested, tuple(None if hasattr(value, "shape") else value for value in leaves)


def over_replicas(
    step: Callable[..., Any], numbers: Any, block_bytes: int, at_time: Callable[..., Any] | None = None,
    counted: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    """Take steps of all replicas. The number of simultaneous replicas keeps their blocks of samples within
    `held_bytes`.

    `shared` arrays go to every step of every replica. `at_time` returns step size and numbers of a step by its number,
    if they change. A `counted` step also has its number as an argument.
    """
    import jax

    group = max(1, held_bytes() // block_bytes)

    @wide
    def advance(
        state: Any, keys: Any, arrays: list[Any], first_step: Any, steps: Any, step_size: Any, *shared: Any
    ) -> Any:
        def one(replica: tuple[Any, Any, list[Any]]) -> Any:
            state, key, arrays = replica

            def body(k: Any, inner: Any) -> Any:
                h, now = step_size, joined(numbers, arrays)
                if at_time is not None:
                    h, now = at_time(first_step + k, h, *now)
                told = {"count": first_step + k} if counted else {}
                return step(inner, jax.random.fold_in(key, first_step + k), now, h, *shared, **told)

            return repeated(body, steps, state)

        count = keys.shape[0]
        rounds = -(-count // group)
        if rounds == 1:
            return jax.vmap(one)((state, keys, arrays))
        size = -(-count // rounds)
        # The last replica is repeated to complete the last round, because a shorter round would be compiled again.
        filled = jax.numpy.minimum(jax.numpy.arange(rounds * size), count - 1)
        grouped = jax.tree.map(
            lambda values: values[filled].reshape(rounds, size, *values.shape[1:]), (state, keys, arrays)
        )
        # Not `jax.lax.map(.., batch_size=size)`, which cannot group arrays that are empty (a model without scalars).
        done = jax.lax.map(jax.vmap(one), grouped)
        return jax.tree.map(lambda values: values.reshape(rounds * size, *values.shape[2:])[:count], done)

    return advance


def repeated(body: Callable[[Any, Any], Any], steps: Any, state: Any) -> Any:
    """Compute `state = body(k, state)` for k = 0 .. steps - 1. On a GPU the steps are taken in loops of the fixed
    length `ROUND`.

    A GPU asks the host before every turn of a loop of unknown length and waits for it (60 us on an H100, a fifth of a
    step of eight replicas).
    """
    import jax

    if default().platform == "cpu":
        return jax.lax.fori_loop(0, steps, body, state)

    def turn(k: Any, state: Any) -> Any:
        return jax.lax.fori_loop(0, ROUND, lambda i, inner: body(k * ROUND + i, inner), state)

    rounds = steps // ROUND
    state = jax.lax.fori_loop(0, rounds, turn, state)
    return jax.lax.fori_loop(rounds * ROUND, steps, body, state)


def accumulate(jax: Any, add: Callable[[Any, Any, int], Any], zero: Any, batch: int, size: int) -> Any:
    """Return the total over blocks of `size` samples and one shorter block for the remainder."""
    blocks, rest = divmod(batch, size)
    total = add(zero, 0, size)
    if blocks > 1:
        total = jax.lax.fori_loop(1, blocks, lambda index, total: add(total, index, size), total)
    return add(total, blocks, rest) if rest else total


def _unit(jnp: Any, weights: Any, trained: int) -> Any:
    lengths = jnp.sqrt((weights[:trained] ** 2).sum(1, keepdims=True))
    return jnp.concatenate([weights[:trained] / lengths, weights[trained:]])


def labels_of(model: Model, functions: Any, numbers: Any, key: Any, count: int, dtype: Any) -> Any:
    """Return the labels (rows, samples) of `count` samples; models without labels get an empty array."""
    import jax
    import jax.numpy as jnp

    uniforms, normals = model.noise
    if uniforms + normals == 0:
        return jnp.zeros((0, count), dtype)
    first, second = jax.random.split(key)
    uniform = jax.random.uniform(first, (uniforms, count), dtype)
    return functions["draw"](uniform, jax.random.normal(second, (normals, count), dtype), *numbers)


def _moved(model: Model, functions: Any, numbers: Any, labels: Any, x: Any, frame: Any) -> Any:
    """Return samples shifted to their means; a model without labels does not shift them."""
    if not any(model.noise):
        return x
    return x + product(functions["mean"](labels, *numbers).T, frame).astype(x.dtype)

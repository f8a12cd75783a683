"""Compressed SGD in JAX with coefficients that depend on the length of a sample (see `length_loops` for the step)."""

import functools
from collections.abc import Callable
from typing import Any

from derivations.contract import ScalarModel
from odesim.sgd import bind, matrices, normals, traced


@functools.cache
def compressed(
    model: ScalarModel, numbers: tuple[Any, ...], trained: int, fixed: int, further: int, d: int, batch: int
) -> Callable[..., Any]:
    """Return the jitted `advance((factors (R, n, n), scalars (R, s)), keys, arrays, first_step, steps, step_size)`.

    The samples of a batch are processed one after the other, so that a step takes O(batch trained^2) operations.
    """
    import jax
    import jax.numpy as jnp

    functions = bind.bind_jax(model)
    settle = functions.get("settle")
    n, rank = trained + fixed, min(batch, trained)
    places = jnp.arange(rank)

    def sample(state: Any, key: Any, numbers: Any, used: Any) -> tuple[Any, Any, Any, Any]:
        """Draw one sample for `used` known directions outside the span: y (n,), g (rank,), rest, rows (..,)."""
        X, scalars = state
        first, label, length = jax.random.split(key, 3)
        drawn = normals.standard_normal(first, (1, n + rank), "float64")[0]
        y, g = drawn[:n], jnp.where(places < used, drawn[n:], 0.0)
        freedom = d - n - used
        square = 2.0 * jax.random.gamma(length, jnp.maximum(0.5 * freedom, 0.5))
        square = jnp.where(freedom > 0, square, 0.0)
        labels = traced.labels_of(model, functions, numbers, label, 1, y.dtype)
        lengths = ((y @ y + g @ g + square) / d).reshape(1, 1)
        vv = (X[:trained] ** 2).sum(1)
        rows = functions["coefficients"]((X @ y)[:, None], labels, lengths, vv, scalars, *numbers)[:, 0]
        return y, g, jnp.sqrt(square), rows

    def gradient(state: Any, key: Any, numbers: Any) -> tuple[Any, Any, Any]:
        """Return the gradient in the span, its factor outside, and the further rows, times the batch."""

        def added(index: Any, total: Any, used: Any) -> tuple[Any, Any, Any]:
            y, g, rest, rows = sample(state, jax.random.fold_in(key, index), numbers, used)
            G, Z, sums = total
            c = rows[:trained]
            G, Z, sums = G + jnp.outer(c, y), Z + jnp.outer(c, g), sums + rows[trained:]
            return (G, Z, sums), c * rest, used

        def first(index: Any, total: Any) -> Any:
            (G, Z, sums), column, used = added(index, total, index)
            return G, Z + jnp.where(places == used, column[:, None], 0.0), sums

        def later(index: Any, total: Any) -> Any:
            (G, Z, sums), column, _ = added(index, total, rank)
            return G, matrices.triangle(jnp.concatenate([Z, column[:, None]], axis=1)), sums

        zero = (jnp.zeros((trained, n)), jnp.zeros((trained, rank)), jnp.zeros(further))
        total = jax.lax.fori_loop(0, rank, first, zero)
        return jax.lax.fori_loop(rank, batch, later, total) if batch > rank else total

    def step(state: Any, key: Any, numbers: Any, step_size: Any, count: Any = None) -> Any:
        X, scalars = state
        G, Z, sums = gradient(state, key, numbers)
        G, Z = G / batch, Z / batch
        v = X[:trained]
        squares = (v * v).sum(1), (v * G).sum(1), (G * G).sum(1) + (Z * Z).sum(1)
        if settle is not None:
            step_size, scalars, numbers = settle(count, step_size, X @ X.T, squares[2], scalars, *numbers)
        a, b, scalars = functions["update"](*squares, sums / batch, scalars, step_size, *numbers)
        moved = jnp.concatenate([a[:, None] * v + b[:, None] * G, b[:, None] * Z], axis=1)
        rest = matrices.triangle(moved[:, fixed:])
        return X.at[:trained].set(jnp.concatenate([moved[:, :fixed], rest], axis=1)), scalars

    return traced.over_replicas(step, numbers, n * 8, functions.get("at_time"), counted=settle is not None)

"""SGD of many replicas at once in JAX: explicit weights in d dimensions, or the compressed chain.

Randomness is counter-based and keyed by (replica, step, block), so a batched run equals a looped one and a
resumed run an uninterrupted one.  Blocks of samples bound the memory at any d and batch.
"""

from collections.abc import Callable
from typing import Any

from derivations.contract import Model
from odesim.sgd import bind

BLOCK_BYTES = 1 << 26
"""Memory of one block of samples of all replicas: large enough for fast products, small beside any machine."""


def block_size(batch: int, d: int, itemsize: int, replicas: int) -> int:
    """The largest divisor of `batch` whose samples of d numbers fit into `BLOCK_BYTES` (at least one sample)."""
    limit = max(1, BLOCK_BYTES // (d * itemsize * replicas))
    return max(size for size in range(1, min(batch, limit) + 1) if batch % size == 0)


def explicit(
    model: Model, numbers: tuple[Any, ...], trained: int, d: int, batch: int, replicas: int, dtype: Any
) -> Callable[..., Any]:
    """`advance(weights (R, n, d), keys (R,), arrays, first_step, steps, step_size)` -> weights, over replicas.

    One step: fields = x.[trained, frame] for every sample, coefficients, gradient = coef^T x / batch, update.
    """
    import jax
    import jax.numpy as jnp

    functions = bind.bind_jax(model)
    size = block_size(batch, d, jnp.dtype(dtype).itemsize, replicas)
    blocks = batch // size

    def gradient(weights: Any, key: Any, numbers: list[Any]) -> Any:
        vectors = _unit(jnp, weights, trained) if model.normalised else weights

        def block(total: Any, index: Any) -> tuple[Any, None]:
            sample, label = jax.random.split(jax.random.fold_in(key, index))
            x = jax.random.normal(sample, (size, d), dtype)
            x, labels = _labelled(model, functions, numbers, label, x, weights[trained:], size)
            coef = functions["coefficients"](vectors @ x.T, labels, *numbers)
            return total + coef @ x, None

        zero = jnp.zeros((trained, d), dtype)
        return jax.lax.scan(block, zero, jnp.arange(blocks))[0] / batch

    def step(weights: Any, key: Any, numbers: list[Any], step_size: Any) -> Any:
        g = gradient(weights, key, numbers)
        v = weights[:trained]
        a, b = functions["update"]((v * v).sum(1), (v * g).sum(1), (g * g).sum(1), step_size, *numbers)
        moved = a[:, None] * v + b[:, None] * g
        return jnp.concatenate([moved, weights[trained:]]).astype(dtype)

    return _loop(step, numbers)


def compressed(
    model: Model, numbers: tuple[Any, ...], trained: int, fixed: int, d: int, batch: int, replicas: int
) -> Callable[..., Any]:
    """`advance(factors (R, n, n), keys, arrays, first_step, steps, step_size)` of the compressed chain, jitted."""
    import jax
    import jax.numpy as jnp

    functions = bind.bind_jax(model)
    n, rank = trained + fixed, min(batch, trained)
    size = block_size(batch, n, 8, replicas)

    def gradient(X: Any, key: Any, numbers: list[Any]) -> tuple[Any, Any, Any]:
        vectors = _unit(jnp, X, trained) if model.normalised else X

        def block(carry: Any, index: Any) -> tuple[Any, Any]:
            sample, label = jax.random.split(jax.random.fold_in(key, index))
            y = jax.random.normal(sample, (size, n))
            y, labels = _labelled(model, functions, numbers, label, y, X[trained:], size)
            coef = functions["coefficients"](vectors @ y.T, labels, *numbers)
            G, S = carry
            return (G + coef @ y, S + coef @ coef.T), coef

        zero = (jnp.zeros((trained, n)), jnp.zeros((trained, trained)))
        (G, S), coef = jax.lax.scan(block, zero, jnp.arange(batch // size))
        return G / batch, S, coef

    def step(X: Any, key: Any, numbers: list[Any], step_size: Any) -> Any:
        sample_key, wishart_key = jax.random.split(key)
        G, S, coef = gradient(X, sample_key, numbers)
        if batch >= trained:
            values, vectors = jnp.linalg.eigh(S)
            half = vectors * jnp.sqrt(jnp.where(values > 0, values, 0.0))
        else:
            half = jnp.moveaxis(coef, 0, 1).reshape(trained, batch)
        O = half @ _bartlett(jax, rank, d - n, wishart_key) / batch
        v = X[:trained]
        squares = (G * G).sum(1) + (O * O).sum(1)
        a, b = functions["update"]((v * v).sum(1), (v * G).sum(1), squares, step_size, *numbers)
        moved = jnp.concatenate([a[:, None] * v + b[:, None] * G, b[:, None] * O], axis=1)
        rest = jnp.linalg.qr(moved[:, fixed:].T, mode="r").T
        return X.at[:trained].set(jnp.concatenate([moved[:, :fixed], rest], axis=1))

    return _loop(step, numbers)


def arrays_of(numbers: tuple[Any, ...]) -> list[Any]:
    """The arrays among a model's numbers, which may differ between replicas; the others are compiled in."""
    return [value for value in numbers if hasattr(value, "shape")]


def _loop(step: Callable[..., Any], numbers: tuple[Any, ...]) -> Callable[..., Any]:
    import jax

    def merge(arrays: list[Any]) -> list[Any]:
        remaining = iter(arrays)
        return [next(remaining) if hasattr(value, "shape") else value for value in numbers]

    @jax.jit
    def advance(state: Any, keys: Any, arrays: list[Any], first_step: Any, steps: Any, step_size: Any) -> Any:
        def one(state: Any, key: Any, arrays: list[Any]) -> Any:
            def body(k: Any, inner: Any) -> Any:
                return step(inner, jax.random.fold_in(key, first_step + k), merge(arrays), step_size)

            return jax.lax.fori_loop(0, steps, body, state)

        return jax.vmap(one)(state, keys, arrays)

    return advance


def _unit(jnp: Any, weights: Any, trained: int) -> Any:
    lengths = jnp.sqrt((weights[:trained] ** 2).sum(1, keepdims=True))
    return jnp.concatenate([weights[:trained] / lengths, weights[trained:]])


def _labelled(
    model: Model, functions: Any, numbers: tuple[Any, ...], key: Any, x: Any, frame: Any, size: int
) -> tuple[Any, Any]:
    """Samples moved to their means, and their labels; models without labels get an empty array."""
    import jax
    import jax.numpy as jnp

    uniforms, normals = model.noise
    if uniforms + normals == 0:
        return x, jnp.zeros((0, size))
    first, second = jax.random.split(key)
    labels = functions["draw"](
        jax.random.uniform(first, (uniforms, size)), jax.random.normal(second, (normals, size)), *numbers
    )
    return x + (functions["mean"](labels, *numbers).T @ frame).astype(x.dtype), labels


def _bartlett(jax: Any, rank: int, freedom: float, key: Any) -> Any:
    gamma_key, normal_key = jax.random.split(key)
    shapes = 0.5 * (freedom - jax.numpy.arange(rank))
    diagonal = jax.numpy.sqrt(2.0 * jax.random.gamma(gamma_key, shapes))
    below = jax.numpy.tril(jax.random.normal(normal_key, (rank, rank)), -1)
    return below + jax.numpy.diag(diagonal)

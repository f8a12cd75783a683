"""Products and factors of matrices in traced SGD, each in the form that is fastest on the device."""

import functools
from collections.abc import Callable
from typing import Any

from odesim.machine.device import default

EPSILON = 2.22e-16
TENSOR_CORES = 8
"""Compute capability from which NVIDIA's tensor cores multiply float32, by ten bits at a time."""
ORTHONORMAL = 0.1
"""Largest distance from the identity, in norm, of the products of rows for which a second factor makes them exact."""


def product(left: Any, right: Any) -> Any:
    """Return a matrix product in the full precision of its type."""
    import jax.numpy as jnp

    return jnp.matmul(left, right, precision=_precision() if left.dtype == jnp.float32 else "highest")


@functools.cache
def _precision() -> Any:
    """Return the precision setting with which this device multiplies float32 without loss of digits.

    By default a GPU rounds to ten bits. Tensor cores compute the full product from three such products, with errors of
    fields of 0.2e-6 on an H100. This takes half the time of the setting `highest`, whose errors are 0.6e-6.
    """
    import jax

    device = default()
    capability = str(getattr(device, "compute_capability", "")).partition(".")[0]
    if device.platform == "gpu" and capability.isdigit() and int(capability) >= TENSOR_CORES:
        return jax.lax.DotAlgorithmPreset.TF32_TF32_F32_X3
    return "highest"


def semidefinite_factor(S: Any) -> Any:
    """Return the lower factor L of a positive semi-definite matrix S = L L^T, like `loops.semidefinite_factor`.

    For many replicas on a GPU it is the library's Cholesky factor if no pivot vanishes, because the elimination starts
    four kernels for every column.
    """

    return _eliminate(S) if default().platform == "cpu" else _together(_eliminate, _definite)(S)


def triangle(A: Any) -> Any:
    """Return a lower triangle L with L L^T = A A^T of a matrix A (n, m), n <= m, as exact as by a QR decomposition of
    A^T.

    The library of a GPU decomposes each matrix on one multiprocessor. For many replicas on a GPU, L therefore comes
    from Cholesky factors (`_twice`) if all matrices allow it.
    """

    return _by_qr(A) if default().platform == "cpu" else _together(_by_qr, _twice)(A)


@functools.cache
def _together(one: Callable[[Any], Any], fast: Callable[[Any], tuple[Any, Any]]) -> Callable[[Any], Any]:
    """Return `one(matrix)`; for a batch under `jax.vmap` the result of `fast(batch)` -> (result, True if it is
    valid).
    """
    import jax

    @jax.custom_batching.custom_vmap
    def single(matrix: Any) -> Any:
        return one(matrix)

    @single.def_vmap
    def batch(size: int, batched: Any, matrices: Any) -> tuple[Any, bool]:
        found, usable = fast(matrices)
        return jax.lax.cond(usable, lambda: found, lambda: jax.vmap(one)(matrices)), True

    return single


def _definite(S: Any) -> tuple[Any, Any]:
    """Return Cholesky's factors, and True if `_eliminate` would leave no column empty."""
    import jax
    import jax.numpy as jnp

    factors = jax.lax.linalg.cholesky(S, symmetrize_input=False)
    squares = jnp.diagonal(factors, axis1=-2, axis2=-1) ** 2
    # A matrix without a factor gives a factor of NaN.
    return factors, jnp.isfinite(factors).all() & (squares > jax.vmap(_least)(S)).all()


def _twice(A: Any) -> tuple[Any, Any]:
    """Return lower triangles by Cholesky's factors of A A^T = K K^T and of Q Q^T = M M^T, Q = K^-1 A: L = K M.

    The second factor corrects the rounding of A A^T, as long as the rows of Q are nearly orthonormal (Yamamoto,
    Nakatsukasa, Yanagisawa and Fukaya 2015, "Roundoff error analysis of the CholeskyQR2 algorithm").
    """
    import jax
    import jax.numpy as jnp

    def factor(rows: Any) -> tuple[Any, Any]:
        gram = rows @ jnp.swapaxes(rows, -1, -2)
        return gram, jax.lax.linalg.cholesky(gram, symmetrize_input=False)

    _, K = factor(A)
    Q = jax.lax.linalg.triangular_solve(K, A, left_side=True, lower=True)
    gram, M = factor(Q)
    distance = ((gram - jnp.eye(gram.shape[-1])) ** 2).sum((-1, -2))
    return K @ M, (distance < ORTHONORMAL**2).all()  # no number is smaller


def _by_qr(A: Any) -> Any:
    """Return `triangle` of one matrix."""
    import jax.numpy as jnp

    return jnp.linalg.qr(A.T, mode="r").T


def _least(S: Any) -> Any:
    """Return the squared pivots up to which a column is empty."""
    import jax.numpy as jnp

    return 4.0 * S.shape[0] * EPSILON * jnp.diagonal(S)


def _eliminate(S: Any) -> Any:
    """Return `semidefinite_factor` column by column."""
    import jax
    import jax.numpy as jnp

    n = S.shape[0]
    smallest = _least(S)

    def eliminate(k: Any, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        rest, L = carry
        good = rest[k, k] > smallest[k]
        column = jnp.where(good & (jnp.arange(n) >= k), rest[:, k], 0.0) / jnp.sqrt(jnp.where(good, rest[k, k], 1.0))
        return rest - jnp.outer(column, column), L.at[:, k].set(column)

    return jax.lax.fori_loop(0, n, eliminate, (S, jnp.zeros_like(S)))[1]


def bartlett(rank: int, freedom: Any, key: Any) -> Any:
    """Return the lower factor of a Wishart matrix of the identity, by Bartlett's decomposition.

    Its diagonal has roots of chi-squared numbers of `freedom`, `freedom` - 1, .. degrees. Below the diagonal are normal
    numbers.
    """
    import jax

    gamma_key, normal_key = jax.random.split(key)
    shapes = 0.5 * (freedom - jax.numpy.arange(rank))
    diagonal = jax.numpy.sqrt(2.0 * jax.random.gamma(gamma_key, shapes))
    below = jax.numpy.tril(jax.random.normal(normal_key, (rank, rank)), -1)
    return below + jax.numpy.diag(diagonal)

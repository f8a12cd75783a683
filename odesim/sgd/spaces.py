"""SGD on inputs with eigenvalues: weights with given Gram matrices in every eigenspace, and the compressed chain.

Consider a block of d_l coordinates with n vectors and a gradient of rank r = min(batch, trained). If d_l >= n + r, the
state of the block is a factor of its Gram matrix, as for isotropic inputs. The part of a sample outside of the vectors
is N(0, lam_l I), independent of its fields. The gradients there have the Gram matrix lam_l C W C^T / batch^2, with a
Wishart matrix W of d_l - n degrees of freedom. A smaller block keeps its coordinates.

A sample of cluster c of the inputs has the mean of the cluster, which lies in the span of the vectors, and its
eigenvalues. If eigenvalues differ among clusters, C of block l has the coefficients of every sample times the root of
its eigenvalue.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from derivations.contract import Eigenspaces, ScalarModel
from derivations.vectors import grams_by_block, thin_root
from odesim.errors import UsageError
from odesim.machine import streams
from odesim.sgd import bind, matrices, normals, traced
from odesim.sgd.compressed import factor, whole_episodes

Drawn = tuple[Iterable[tuple[slice, Any]], Any]
"""Samples in pieces (their rows, the pieces), and the labels of all samples."""
STREAM = 2**20
"""Number that derives the key of clusters from a key that is split for other numbers; JAX uses 0, 1, .. for its
parts.
"""


@dataclasses.dataclass(frozen=True)
class Clusters:
    """Clusters of the inputs as tuples, which can be part of the key of a compiled program.

    `means` are the weights of the last fixed vectors in the mean of every cluster, `label` the numbers that are added
    to labels (empty for none).
    """

    probability: tuple[float, ...]
    means: tuple[tuple[float, ...], ...]
    label: tuple[float, ...]

    @classmethod
    def of(cls, spaces: Eigenspaces) -> "Clusters":
        """Return the clusters of some inputs."""
        label = () if spaces.label is None else tuple(spaces.label.tolist())
        return cls(tuple(spaces.probability.tolist()), tuple(map(tuple, spaces.mean_weights.tolist())), label)

    def drawn(self, key: Any, count: int) -> Any:
        """Return the clusters (count,) of some samples."""
        import jax
        import jax.numpy as jnp

        if len(self.probability) == 1:
            return jnp.zeros(count, int)
        own = jax.random.fold_in(key, STREAM)
        return jax.random.choice(own, len(self.probability), (count,), p=np.array(self.probability))

    def of_samples(self, values: Any, which: Any) -> Any:
        """Return rows (samples, ..) of values (C, ..) by the clusters of samples; for one cluster its row (1, ..)."""
        import jax.numpy as jnp

        return values if len(self.probability) == 1 else jnp.asarray(values)[which]

    def centres(self, vectors: Any) -> Any:
        """Return the means (C, ..) of clusters as sums of the last vectors (n, ..); None if all are 0."""
        import jax.numpy as jnp

        count = len(self.means[0])
        return jnp.tensordot(np.array(self.means), vectors[len(vectors) - count :], 1) if count else None

    def samples(self, key: Any, shape: tuple[int, int], dtype: Any, labels: Any, frame: Any, scale: Any) -> Drawn:
        """Return samples (count, d) of the clusters in pieces, and their labels (1, count).

        `scale` (C, d) are standard deviations, `frame` the fixed vectors (.., d), whose sums are the means.
        """
        which, centres, pieces = self.drawn(key, shape[0]), self.centres(frame), []
        for rows, normal in normals.pieces(key, shape, dtype):
            x = normal * self.of_samples(scale, which[rows])
            pieces.append((rows, x if centres is None else x + self.of_samples(centres, which[rows]).astype(x.dtype)))
        return pieces, self.labelled(labels, which)

    def labelled(self, labels: Any, which: Any) -> Any:
        """Return labels (1, samples) with those of their clusters added."""
        import jax.numpy as jnp

        return labels + jnp.asarray(self.label, labels.dtype)[which] if self.label else labels


@dataclasses.dataclass(frozen=True)
class Parts:
    """Numbers of the blocks that are stored as factors, and of those that are stored as coordinates.

    It also has the roots (C, L) of the eigenvalues and the dimensions of all blocks. These are tuples, which can be
    part of the key of a compiled program.
    """

    factored: tuple[int, ...]
    kept: tuple[int, ...]
    roots: tuple[tuple[float, ...], ...]
    dimensions: tuple[int, ...]
    clusters: Clusters

    @classmethod
    def of(cls, spaces: Eigenspaces, n: int, rank: int) -> "Parts":
        """Return the parts for n vectors and gradients of a rank."""
        large = spaces.dimension >= n + rank
        return cls(
            tuple(np.flatnonzero(large).tolist()), tuple(np.flatnonzero(~large).tolist()),
            tuple(map(tuple, np.sqrt(spaces.eigenvalue).tolist())), tuple(spaces.dimension.tolist()),
            Clusters.of(spaces),
        )  # fmt: skip

    @property
    def varied(self) -> bool:
        """Return True if clusters differ in their eigenvalues."""
        return any(row != self.roots[0] for row in self.roots)

    @property
    def columns(self) -> np.ndarray:
        """Return the block of every stored coordinate, (D,)."""
        return np.repeat(np.array(self.kept, int), [self.dimensions[k] for k in self.kept])

    @property
    def held(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the roots of the eigenvalues in every cluster, (C, F) for factors and (C, D) for coordinates."""
        roots = np.array(self.roots)
        return roots[:, list(self.factored)], roots[:, self.columns]

    def inputs(self, X: Any, Y: Any, normal: Any, which: Any) -> tuple[Any, Any, Any]:
        """Return samples of clusters `which` in factors (samples, F, n) and in coordinates (samples, D).

        They are computed from standard normal numbers (samples, F n + D). Their means are sums of the last vectors of X
        (F, n, n) and Y (n, D). The roots of their eigenvalues in the blocks of factors come third.
        """
        import jax.numpy as jnp

        F, n = X.shape[:2]
        own, other = (self.clusters.of_samples(values, which) for values in self.held)
        v, w = normal[:, : F * n].reshape(len(normal), F, n) * own[..., None], normal[:, F * n :] * other
        centre = self.clusters.centres(jnp.swapaxes(X, 0, 1))
        if centre is not None:
            v = v + self.clusters.of_samples(centre, which)
            w = w + self.clusters.of_samples(self.clusters.centres(Y), which)
        return v, w, own

    def weighted(self, coef: Any, own: Any) -> Any:
        """Return coefficients (trained, samples) times the roots (samples, F) of eigenvalues, (F, trained, samples).

        If the eigenvalues are the same for all samples, `outside` multiplies by them: (1, trained, samples).
        """
        return coef * own.T[:, None] if self.varied else coef[None]

    def outside(self, half: Any, n: int, key: Any) -> Any:
        """Return the parts (F, trained, r) of the gradients outside of n vectors, times the batch.

        Their Gram matrices are half W half^T, W Wishart matrices, with `half` (.., trained, r) a factor of C C^T.
        """
        import jax

        freedom = np.array([self.dimensions[k] - n for k in self.factored], float)
        wishart = jax.vmap(lambda freedom, key: matrices.bartlett(half.shape[-1], freedom, key))
        found = half @ wishart(freedom, jax.random.split(key, len(freedom)))
        return found if self.varied else self.held[0][0][:, None, None] * found


def vectors(
    gram: np.ndarray, dimension: int, block: int, trained: int, rng: np.random.Generator | None = None
) -> np.ndarray:  # fmt: skip
    """Return rows (n, dimension) with a Gram matrix (n, n), the trained first, rotated at random by `rng`.

    Raises `UsageError` if the dimension is too small. `block` is the number for the message.
    """
    half = thin_root(gram)
    rank = half.shape[1]
    if rank > dimension:
        count = f"{dimension} dimension{'s' if dimension > 1 else ''}"
        fixed = thin_root(gram[trained:, trained:]).shape[1]
        if fixed > dimension:
            raise UsageError(
                f"block {block + 1} of the inputs has {count}, but fixed vectors of rank {fixed} are spread over it: "
                "SGD needs spread = 'random' or a list in [teacher], larger blocks, or a larger d"
            )
        raise UsageError(
            f"block {block + 1} of the inputs has {count}, but this start spreads vectors of rank {rank} over it, the "
            "students' parts among them: SGD needs a random start (no overlap), weights (--initial), or larger blocks"
        )
    if rng is None or not rank:
        return np.hstack([half, np.zeros((len(gram), dimension - rank))])
    return half @ np.linalg.qr(rng.normal(size=(dimension, rank)))[0].T


def weights(grams: np.ndarray, spaces: Eigenspaces, seed: int, trained: int) -> np.ndarray:
    """Return weights (R, n, d) with Gram matrices (R, L, n, n) in the blocks, rotated at random within each."""
    rows, sizes = [], spaces.dimension.tolist()
    for replica, blocks in enumerate(grams):
        rng = streams.generator(seed, "rotation", replica)
        each = enumerate(zip(blocks, sizes, strict=True))
        rows.append(np.hstack([vectors(gram, size, k, trained, rng) for k, (gram, size) in each]))
    return np.array(rows)


def factors(grams: np.ndarray, parts: Parts, trained: int) -> tuple[np.ndarray, np.ndarray]:
    """Return factors (R, F, n, n) of the blocks that are stored as factors, and coordinates (R, n, D) of all others."""
    n, replicas = grams.shape[-1], len(grams)
    large = np.array([[factor(grams[r, k], trained) for k in parts.factored] for r in range(replicas)])
    small = [
        np.hstack([np.zeros((n, 0)), *(vectors(grams[r, k], parts.dimensions[k], k, trained) for k in parts.kept)])
        for r in range(replicas)
    ]
    return large.reshape(replicas, len(parts.factored), n, n), np.array(small)


def grams_of(values: tuple[np.ndarray, np.ndarray], parts: Parts) -> np.ndarray:
    """Return the Gram matrices (R, L, n, n) of factors and coordinates."""
    large, small = values
    n = small.shape[-2]
    gram = np.zeros((len(small), len(parts.dimensions), n, n))
    gram[:, list(parts.factored)] = large @ np.swapaxes(large, -1, -2)
    if parts.kept:
        gram[:, list(parts.kept)] = grams_by_block(small, np.array([parts.dimensions[k] for k in parts.kept]))
    return gram


def _overlaps(X: Any, Y: Any, parts: Parts) -> Any:
    """Return the Gram matrices (L, n, n) of one replica's factors (F, n, n) and coordinates (n, D); (n, n) for one
    block.
    """
    import jax.numpy as jnp

    found = {k: X[place] @ X[place].T for place, k in enumerate(parts.factored)}
    for k in parts.kept:
        own = Y[:, np.flatnonzero(parts.columns == k)]
        found[k] = own @ own.T
    whole = jnp.stack([found[k] for k in range(len(parts.dimensions))])
    return whole if len(found) > 1 else whole[0]


def _product(one: Any, two: Any, kept: Any, other: Any) -> Any:
    """Return inner products (k,) of vectors in the form of factors (F, k, n) and coordinates (k, D)."""
    return (one * two).sum((0, 2)) + (kept * other).sum(1)


def _sample(
    model: ScalarModel, functions: Any, parts: Parts, trained: int, state: Any, key: Any, numbers: Any, count: int
) -> tuple[Any, Any, Any, Any]:  # fmt: skip
    """Return inputs in the stored coordinates, coefficients of the vectors, and sums of the further rows.

    The last result are the roots (count, F) of the samples' eigenvalues in the blocks, with one row for a single
    cluster.
    """
    import jax
    import jax.numpy as jnp

    (X, Y), scalars = state
    first, label = jax.random.split(key)
    which = parts.clusters.drawn(key, count)
    normal = normals.standard_normal(first, (count, X.shape[0] * X.shape[1] + Y.shape[1]), "float64")
    v, w, own = parts.inputs(X, Y, normal, which)
    labels = parts.clusters.labelled(traced.labels_of(model, functions, numbers, label, count, v.dtype), which)
    fields = jnp.einsum("lan,cln->ac", X, v) + Y @ w.T
    vv = _product(X[:, :trained], X[:, :trained], Y[:trained], Y[:trained])
    rows = functions["coefficients"](fields, labels, vv, scalars, *numbers)
    return (v, w), rows[:trained], rows[trained:].sum(1), own


@functools.cache
def compressed(
    model: ScalarModel, numbers: tuple[Any, ...], trained: int, fixed: int, further: int, parts: Parts, batch: int
) -> Callable[..., Any]:
    """Return `advance(((factors, coordinates), scalars), keys, arrays, first_step, steps, step_size)` over replicas."""
    import jax
    import jax.numpy as jnp

    functions = bind.bind_jax(model)
    settle = functions.get("settle")
    sample = functools.partial(_sample, model, functions, parts, trained)
    n, F, D = trained + fixed, len(parts.factored), len(parts.columns)
    width = F * n + D
    size = batch if batch < trained else whole_episodes(traced.block_size(batch, width, 8), model.episode)

    def gradient(state: Any, key: Any, numbers: Any) -> tuple[Any, Any, Any]:
        """Return the gradient in the stored coordinates and the further rows, times the batch, and factors of all C
        C^T.

        The factors are (F, trained, r), or (1, trained, r) to be multiplied by the roots of the eigenvalues.
        """

        def of(v: Any, coef: Any) -> Any:
            return jnp.einsum("ac,cln->lan", coef, v[0]), coef @ v[1]

        if batch < trained:
            v, coef, sums, own = sample(state, jax.random.fold_in(key, 0), numbers, batch)
            return of(v, coef), parts.weighted(coef, own), sums

        def add(total: Any, index: Any, count: int) -> Any:
            v, coef, sums, own = sample(state, jax.random.fold_in(key, index), numbers, count)
            here = parts.weighted(coef, own)
            return jax.tree.map(jnp.add, total, (of(v, coef), here @ jnp.swapaxes(here, 1, 2), sums))

        zero = (jnp.zeros((F, trained, n)), jnp.zeros((trained, D)))
        squares = jnp.zeros((F if parts.varied else 1, trained, trained))
        G, S, sums = traced.accumulate(jax, add, (zero, squares, jnp.zeros(further)), batch, size)
        return G, jax.vmap(matrices.semidefinite_factor)(S), sums

    def step(state: Any, key: Any, numbers: Any, step_size: Any, count: Any = None) -> Any:
        (X, Y), scalars = state
        sample_key, wishart_key = jax.random.split(key)
        (G, H), half, sums = gradient(state, sample_key, numbers)
        G, H = G / batch, H / batch
        Z = parts.outside(half, n, wishart_key) / batch
        v, w = X[:, :trained], Y[:trained]
        squares = _product(v, v, w, w), _product(v, G, w, H), _product(G, G, H, H) + (Z * Z).sum((0, 2))
        if settle is not None:
            gram = _overlaps(X, Y, parts)
            step_size, scalars, numbers = settle(count, step_size, gram, squares[2], scalars, *numbers)
        a, b, scalars = functions["update"](*squares, sums / batch, scalars, step_size, *numbers)
        moved = jnp.concatenate([a[:, None] * v + b[:, None] * G, b[:, None] * Z], axis=2)
        rest = jax.vmap(matrices.triangle)(moved[:, :, fixed:])
        X = X.at[:, :trained].set(jnp.concatenate([moved[:, :, :fixed], rest], axis=2))
        return (X, Y.at[:trained].set(a[:, None] * w + b[:, None] * H)), scalars

    return traced.over_replicas(step, numbers, size * width * 8, functions.get("at_time"), counted=settle is not None)

"""Change of the raw Gram matrix in one step of SGD, sample by sample: the increments whose moments fluctuations need.

A sample x with coefficients c_k moves the trained vector v_k to a_k v_k + b_k c_k x. Its coordinates u in the span of
all vectors are Gaussian. Its part outside of the span enters only by the squared length, whose mean is known. In a step
of B samples the terms that are linear in c are means over the batch, and the products c_k c_l |x|^2 have a factor 1/B.
Products of different samples do not occur in the increment of one sample.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from derivations.contract import Eigenspaces, Initial, Model, ScalarModel, packed
from odesim.code.traced import joined
from odesim.errors import UsageError
from odesim.machine import device
from odesim.sgd import bind, traced
from odesim.sgd.compressed import factor

POINTS = 14
"""Number of scrambled Sobol points as a power of two. The covariance of one step of a committee of erf units is then
accurate to .3 %, and Sigma on its plateau, where errors grow, to 2 % in the worst entry (13: 5 %, 15: 1 %).
"""
MOST = 200_000
"""Largest number of points of a tensor rule."""
LARGE = 1e5
"""Factor that takes d (or 1/h) to its limit. At d = 1000 the remaining terms of order 1/d, and rounding, are 1e-8."""


@dataclasses.dataclass(frozen=True)
class Points:
    """Quadrature points of the samples: normals (N, L n) of the span, label noise, clusters (N,), and weights (N,)."""

    span: np.ndarray
    uniforms: np.ndarray
    normals: np.ndarray
    cluster: np.ndarray
    weights: np.ndarray


def sobol_points(
    spaces: Eigenspaces | None, size: int, noise: tuple[int, int], power: int, seed: int = 0, width: float = 1.0
) -> Points:
    """Return 2^power scrambled Sobol points of `size` normals of the span and the uniforms and normals of labels.

    Normals of the span are scaled by `width`, and the weights correct for it. A sum that rare samples dominate is more
    accurate with more points among these.
    """
    from scipy.special import ndtri
    from scipy.stats import qmc

    uniforms, normals = noise
    several = spaces is not None and len(spaces.probability) > 1
    unit = qmc.Sobol(size + uniforms + normals + several, rng=np.random.default_rng(seed)).random_base2(power)
    unit = np.clip(unit, 1e-16, 1 - 1e-16)
    cluster = np.zeros(len(unit), int)
    if spaces is not None and several:
        cluster = np.searchsorted(np.cumsum(spaces.probability)[:-1], unit[:, -1], side="right")
    gaussian = ndtri(unit[:, : size + normals])
    last = unit[:, size + normals : size + normals + uniforms]
    span = width * gaussian[:, :size]
    weights = np.exp(-(width**2 - 1) / 2 * (gaussian[:, :size] ** 2).sum(1))
    return Points(span, last, gaussian[:, size:], cluster, weights / weights.sum())


def tensor_points(size: int, noise: tuple[int, int], nodes: int) -> Points:
    """Return the product of Gauss-Hermite rules with `nodes` nodes for the normals of the span, 3 for those of labels.

    Increments are quadratic in the noise of a label, so that three nodes give their second moments exactly.
    """
    rules = [np.polynomial.hermite_e.hermegauss(count) for count in (nodes,) * size + (3,) * noise[1]]
    grids = np.meshgrid(*(nodes for nodes, _ in rules), indexing="ij")
    weights = functools.reduce(np.multiply.outer, [w / w.sum() for _, w in rules]).ravel()
    points = np.stack([grid.ravel() for grid in grids], axis=1)
    count = len(points)
    return Points(points[:, :size], np.empty((count, 0)), points[:, size:], np.zeros(count, int), weights)


def points_of(model: Model, parameters: Any, power: int = POINTS, width: float = 1.0) -> Points:
    """Return the quadrature points of a model: exact ones for polynomials of few fields, else 2^power Sobol points.

    Increments of units of degree k are of degree 4k - 2 in the fields. A rule that is exact for the fourth moments is
    used if it has at most `MOST` points, otherwise one that is exact for the second moments.
    """
    trained, fixed = model.sizes(parameters)
    spaces = model.spaces(parameters) if isinstance(model, ScalarModel) else None
    if isinstance(model, ScalarModel) and model.degree and spaces is None:
        for nodes in (8 * model.degree - 3, 4 * model.degree - 1):
            if nodes ** (trained + fixed) * 3 ** model.noise[1] <= MOST:
                return tensor_points(trained + fixed, model.noise, nodes)
    stacked = 1 if spaces is None else spaces.eigenvalue.shape[1]
    return sobol_points(spaces, stacked * (trained + fixed), model.noise, power, width=width)


@dataclasses.dataclass(frozen=True, eq=False)
class Increments:
    """Increments of the raw Gram matrices and trained numbers of a model, at the points of a quadrature.

    `batch` is the number of samples of a step.
    """

    model: Model
    parameters: Any
    points: Points
    batch: float

    def of_step(self, initial: Initial, d: float, step_size: float, count: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the changes of packed Gram matrix and numbers in one step from a state, by sample and in the mean.

        A step is a function F of means w over its samples, of first and second order in 1/d. The increment of one
        sample is F(w) with its own w, and the mean change of a step of B samples is

            E F = E[F(w)]/B + (1 - 1/B) F(E w)

        up to terms of the third order, because different samples are independent.

        Arguments:
            initial: The state, with its constants.
            d: Dimension of the inputs.
            step_size: Step size of SGD.
            count: Number of the step, for time-dependent values.

        Returns:
            Increments of the samples (N, n n L + s), and the mean change (n n L + s,).
        """
        import jax.numpy as jnp

        device.configure("cpu")
        gram = self.model.place(initial)
        trained, fixed = self.model.sizes(self.parameters)
        scalars = self.model.scalars(initial) if isinstance(self.model, ScalarModel) else np.empty(0)
        numbers = self.model.bound(initial, gram)
        stack = gram.reshape(-1, *gram.shape[-2:])
        root = np.array([factor(each, trained) for each in stack])
        spaces = self.model.spaces(self.parameters) if isinstance(self.model, ScalarModel) else None
        variances, means, shift = _law(spaces, root)
        fractions = np.ones(1) if spaces is None else spaces.dimension / spaces.dimension.sum()
        run = _compiled(self.model, traced.constants_of(numbers), trained, trained + fixed)
        single, together = run(
            self._points, jnp.asarray(root), jnp.asarray(scalars), [jnp.asarray(a) for a in traced.arrays_of(numbers)],
            (float(step_size), float(count), float(self.batch), jnp.asarray(d * fractions)),
            tuple(map(jnp.asarray, (variances, means, shift))),
        )  # fmt: skip
        changes = np.asarray(single)
        mean = self.points.weights @ changes
        return changes, mean / self.batch + (1 - 1 / self.batch) * np.asarray(together)

    @functools.cached_property
    def _points(self) -> tuple[Any, ...]:
        """Return the points as arrays of JAX, which are moved to its device once."""
        import jax.numpy as jnp

        points = self.points
        return tuple(map(jnp.asarray, (points.span, points.uniforms, points.normals, points.cluster, points.weights)))

    def packed(self, initial: Initial) -> np.ndarray:
        """Return the packed raw Gram matrix and numbers (n n L + s,) of a state."""
        scalars = self.model.scalars(initial) if isinstance(self.model, ScalarModel) else np.empty(0)
        return packed(self.model.place(initial), scalars)


def _law(spaces: Eigenspaces | None, root: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return eigenvalues (C, L), the coordinates (C, L, n) of the means of clusters, and their contributions to
    labels.
    """
    if spaces is None:
        return np.ones((1, 1)), np.zeros((1, 1, root.shape[-1])), np.zeros(1)
    count = spaces.mean_weights.shape[1]
    means = np.einsum("ck,lkn->cln", spaces.mean_weights, root[:, root.shape[1] - count :])
    shift = np.zeros(len(spaces.probability)) if spaces.label is None else spaces.label
    return spaces.eigenvalue, means, shift


@functools.lru_cache(maxsize=32)
def _compiled(model: Model, sizes: Any, trained: int, n: int) -> Callable[..., Any]:
    """Compile the changes in one step: by sample (N, ..), and that of the means of all samples.

    The functions `statistics` and `step` are w and F of `Increments.of_step`; w consists of the gradient within the
    span of the vectors (L, trained, n), the inner products of the gradients outside of the span (L, trained, trained),
    and the further rows. `statistics` returns them for all samples, as the first axis.
    """
    import jax
    import jax.numpy as jnp

    functions = bind.bind_jax(model)
    at_time = functions.get("at_time")

    def prepared(arrays: Any, setting: Any) -> tuple[Any, Any]:
        step_size, count, _, _ = setting
        numbers = joined(sizes, arrays)
        return at_time(count, step_size, *numbers) if at_time is not None else (step_size, numbers)

    statistics = _statistics(model, functions, prepared, trained, n)
    step = _step(model, functions, prepared, trained)

    def both(points: Any, root: Any, scalars: Any, arrays: Any, setting: Any, law: Any) -> tuple[Any, Any]:
        span, uniforms, normals, cluster, weights = points
        samples = (span.reshape(len(cluster), len(root), -1), uniforms, normals, *(values[cluster] for values in law))
        rest = (root, scalars, arrays, setting)
        w = statistics(samples, *rest)
        mean = jax.tree.map(lambda values: jnp.tensordot(weights, values, 1), w)
        return jax.vmap(step, (0, None, None, None, None))(w, *rest), step(mean, *rest)

    return jax.jit(both)


Prepared = Callable[[Any, Any], tuple[Any, Any]]
"""Step size and numbers of a step, computed from the arrays among the numbers and the setting."""


def _statistics(model: Model, functions: Any, prepared: Prepared, trained: int, n: int) -> Callable[..., Any]:
    """Return the function w of samples (`_compiled`)."""
    import jax.numpy as jnp

    scalar, own = isinstance(model, ScalarModel), slice(0, trained)

    def statistics(samples: Any, root: Any, scalars: Any, arrays: Any, setting: Any) -> tuple[Any, Any, Any]:
        span, uniforms, normals, variance, mean, shift = samples
        numbers = prepared(arrays, setting)[1]
        batch, dimensions = setting[2:]
        labels = jnp.zeros((0, len(shift)))
        coordinates = jnp.sqrt(variance)[:, :, None] * span + mean
        if any(model.noise):
            labels = functions["draw"](uniforms.T, normals.T, *numbers)
            if not scalar:
                coordinates = coordinates + (functions["mean"](labels, *numbers).T @ root[0, trained:])[:, None]
        fields = jnp.einsum("lkn,sln->ks", root, coordinates)
        vv = (root[:, own] ** 2).sum((0, 2))
        if isinstance(model, ScalarModel):
            lengths = (jnp.ones((1, len(shift))),) if model.lengths else ()
            rows = functions["coefficients"](fields, labels + shift, *lengths, vv, scalars, *numbers)
        else:
            sizes = jnp.concatenate([jnp.sqrt(vv), jnp.ones(n - trained)]) if model.normalised else jnp.ones(n)
            rows = functions["coefficients"](fields / sizes[:, None], labels, *numbers)
        coef, further = rows[own].T, rows[trained:].T
        # Blocks of few coordinates lie (almost) in the span of the vectors, which is a part n/d of all coordinates.
        outside = variance * jnp.maximum(dimensions - n, 0.0)
        products = coef[:, None, :, None] * coef[:, None, None, :] * outside[:, :, None, None] / batch
        return coef[:, None, :, None] * coordinates[:, :, None, :], products, further

    return statistics


def _step(model: Model, functions: Any, prepared: Prepared, trained: int) -> Callable[..., Any]:
    """Return the function F of w (`_compiled`): the change of packed Gram matrix and numbers in one step."""
    import jax.numpy as jnp

    settle, own = functions.get("settle"), slice(0, trained)

    def step(w: Any, root: Any, scalars: Any, arrays: Any, setting: Any) -> Any:
        gradient, outside, further = w
        step_size, numbers = prepared(arrays, setting)
        gram = jnp.einsum("lkn,lmn->lkm", root, root)
        along = jnp.einsum("lkn,lmn->lkm", gradient, root)
        second = jnp.einsum("lkn,lmn->lkm", gradient, gradient) + outside
        squares = [jnp.einsum("lkk->k", part[:, own, own]) for part in (gram, along, second)]
        before = scalars
        if settle is not None:
            whole = gram if len(root) > 1 else gram[0]
            step_size, scalars, numbers = settle(setting[1], step_size, whole, squares[2], scalars, *numbers)
        if isinstance(model, ScalarModel):
            a, b, after = functions["update"](*squares, further, scalars, step_size, *numbers)
        else:
            (a, b), after = functions["update"](*squares, step_size, *numbers), scalars
        changed = (a[:, None] - 1.0) * gram[:, own] + b[:, None] * along
        inner = (a[:, None] * a - 1.0) * gram[:, own, own] + b[:, None] * b * second
        mixed = b[:, None] * a * along[:, :, own]
        inner = inner + mixed + jnp.swapaxes(mixed, 1, 2)
        moved = jnp.zeros_like(gram).at[:, own].set(changed).at[:, :, own].set(jnp.swapaxes(changed, 1, 2))
        return jnp.concatenate([moved.at[:, own, own].set(inner).ravel(), after - before])

    return step


def refuse(model: Any) -> None:
    """Raise `UsageError` for a model whose increments in one step are not known sample by sample."""
    if not isinstance(model, Model):
        raise UsageError("bands need a model of Gaussian inputs; this one draws its inputs from a finite set")
    if isinstance(model, ScalarModel) and model.velocities is not None:
        raise UsageError(
            "there are no bands for SGD with momentum, because the velocities fluctuate within the time of a step"
        )
    if isinstance(model, ScalarModel) and model.episode > 1:
        raise UsageError("there are no bands for training by episodes: leave [training] episode out")

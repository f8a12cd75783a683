"""SGD in JAX of models with trained numbers in addition to vectors: explicit weights, or the compressed chain.

Explicit SGD differentiates the loss of the samples by `jax.grad`; the compressed chain uses the model's coefficients.
Random numbers are keyed by (replica, step, block), as in `odesim.sgd.traced`.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from derivations.contract import Initial, ScalarModel, packed
from derivations.vectors import grams_by_block
from odesim.sgd import bind, length_traced, matrices, momentum, normals, own_samples, spaces, traced
from odesim.sgd.compressed import factor, require_room, samples_of, whole_episodes

HELD = ("values", "coordinates")
"""Names of weights or factors, and of the coordinates of small blocks, in a checkpoint."""


@functools.cache
def explicit(
    model: ScalarModel, numbers: tuple[Any, ...], trained: int, further: int, d: int, batch: int, dtype: Any,
    draw: Callable[..., spaces.Drawn], blocks: tuple[int, ...] = (),
) -> Callable[..., Any]:  # fmt: skip
    """Return `advance((weights (R, n, d), scalars (R, s)), keys (R,), arrays, first_step, steps, step_size, *inputs)`.

    One step: the batch mean of the derivatives of the samples' losses in the trained vectors and scalars, or the
    directions of rules in their place, then the update. `draw(key, (samples, d), dtype, labels, fixed vectors,
    *inputs)` returns the samples in pieces, and their labels: `standard` normal samples, those of `Clusters`, or
    `drawn_rows`. `blocks` are the dimensions of the eigenspaces of inputs that have several.
    """
    import jax
    import jax.numpy as jnp

    functions = bind.bind_jax(model)
    settle, accelerate = functions.get("settle"), functions.get("accelerate")
    size = whole_episodes(traced.block_size(batch, d, jnp.dtype(dtype).itemsize), model.episode)

    def slopes(moving: Any, frame: Any, key: Any, numbers: Any, inputs: tuple[Any, ...]) -> Any:
        def total(moving: Any, x: Any, labels: Any) -> Any:
            vectors = jnp.concatenate([moving[0], frame])
            return model.losses(vectors, moving[1], x, labels, *numbers).sum()

        def ruled(moving: Any, x: Any, labels: Any) -> Any:
            assert model.moves is not None
            return model.moves(jnp.concatenate([moving[0], frame]), moving[1], x, labels, *numbers)

        of_samples = jax.grad(total) if model.moves is None else ruled

        def add(sums: Any, index: Any, count: int) -> Any:
            sample, label = jax.random.split(jax.random.fold_in(key, index))
            labels = traced.labels_of(model, functions, numbers, label, count, dtype)
            pieces, labels = draw(sample, (count, d), dtype, labels, frame, *inputs)
            if model.episode > 1:  # a piece may end within an episode
                pieces = [(slice(0, count), jnp.concatenate([x for _, x in pieces]))]
            for rows, x in pieces:
                sums = jax.tree.map(jnp.add, sums, of_samples(moving, x, labels[:, rows]))
            return sums

        sums = traced.accumulate(jax, add, jax.tree.map(jnp.zeros_like, moving), batch, size)
        return jax.tree.map(lambda values: values / batch, sums)

    def step(state: Any, key: Any, numbers: Any, step_size: Any, *inputs: Any, count: Any = None) -> Any:
        weights, scalars, *velocities = state if accelerate is None else momentum.parts(state, trained)
        v, frame = weights[:trained], weights[trained:]
        g, downhill = slopes((v, scalars), frame, key, numbers, inputs)
        means = jnp.concatenate([jnp.zeros(further - scalars.size, dtype), downhill])
        squares = (v * v).sum(1), (v * g).sum(1), (g * g).sum(1)
        if settle is not None:
            cuts = np.cumsum(blocks)[:-1]
            pieces = jnp.split(weights, cuts, axis=1) if blocks else [weights]
            products = [jnp.matmul(piece, piece.T, precision="highest") for piece in pieces]
            gram = jnp.stack(products) if blocks else products[0]
            step_size, scalars, numbers = settle(count, step_size, gram, squares[2], scalars, *numbers)
        if accelerate is not None:
            held = (weights, scalars, *velocities)
            one, two, scalars = momentum.moved(accelerate, held, (g,), means, step_size, numbers)
            return jnp.concatenate([one, frame, two]).astype(dtype), scalars.astype(dtype)
        a, b, scalars = functions["update"](*squares, means, scalars, step_size, *numbers)
        moved = jnp.concatenate([a[:, None] * v + b[:, None] * g, frame])
        return moved.astype(dtype), scalars.astype(dtype)

    block = size * d * jnp.dtype(dtype).itemsize
    return traced.over_replicas(step, numbers, block, functions.get("at_time"), counted=settle is not None)


def standard(key: Any, shape: tuple[int, int], dtype: Any, labels: Any, frame: Any) -> spaces.Drawn:
    """Return standard normal samples in pieces, and their labels."""
    return normals.pieces(key, shape, dtype), labels


def drawn_rows(
    key: Any, shape: tuple[int, int], dtype: Any, labels: Any, frame: Any, samples: Any, *targets: Any
) -> spaces.Drawn:
    """Return rows of samples (N, d), drawn with replacement, and their labels, to which those of a file (N,) are
    added.
    """
    import jax

    which = jax.random.randint(key, shape[:1], 0, len(samples))
    return [(slice(0, shape[0]), samples[which])], sum((one[which] for one in targets), labels)


@functools.cache
def compressed(
    model: ScalarModel, numbers: tuple[Any, ...], trained: int, fixed: int, further: int, d: int, batch: int
) -> Callable[..., Any]:
    """Return the jitted `advance((factors (R, n, n), scalars (R, s)), keys, arrays, first_step, steps, step_size)`."""
    import jax
    import jax.numpy as jnp

    functions = bind.bind_jax(model)
    settle, accelerate = functions.get("settle"), functions.get("accelerate")
    n, rank = trained + fixed + (0 if accelerate is None else trained), min(batch, trained)
    size = batch if batch < trained else whole_episodes(traced.block_size(batch, n, 8), model.episode)

    def sample(state: Any, key: Any, numbers: Any, count: int) -> tuple[Any, Any, Any]:
        """Return inputs in the span, coefficients of the vectors, and the sums of the further rows."""
        X, scalars, *_ = state
        first, label = jax.random.split(key)
        y = normals.standard_normal(first, (count, n), "float64")
        labels = traced.labels_of(model, functions, numbers, label, count, y.dtype)
        vv = (X[:trained] ** 2).sum(1)
        rows = functions["coefficients"](X @ y.T, labels, vv, scalars, *numbers)
        return y, rows[:trained], rows[trained:].sum(1)

    def gradient(state: Any, key: Any, numbers: Any) -> tuple[Any, Any, Any]:
        """Return the gradient in the span, the further rows, both times the batch, and a factor of the coefficients'
        Gram matrix.
        """
        if batch < trained:
            y, coef, sums = sample(state, jax.random.fold_in(key, 0), numbers, batch)
            return coef @ y, coef, sums

        def add(total: Any, index: Any, count: int) -> Any:
            y, coef, sums = sample(state, jax.random.fold_in(key, index), numbers, count)
            return total[0] + coef @ y, total[1] + coef @ coef.T, total[2] + sums

        zero = (jnp.zeros((trained, n)), jnp.zeros((trained, trained)), jnp.zeros(further))
        G, S, sums = traced.accumulate(jax, add, zero, batch, size)
        return G, matrices.semidefinite_factor(S), sums

    def step(state: Any, key: Any, numbers: Any, step_size: Any, count: Any = None) -> Any:
        X, scalars, *velocities = state if accelerate is None else momentum.parts(state, trained)
        sample_key, wishart_key = jax.random.split(key)
        G, half, sums = gradient((X, scalars), sample_key, numbers)
        G, Z = G / batch, half @ matrices.bartlett(rank, d - n, wishart_key) / batch
        v = X[:trained]
        squares = (v * v).sum(1), (v * G).sum(1), (G * G).sum(1) + (Z * Z).sum(1)
        if settle is not None:
            step_size, scalars, numbers = settle(count, step_size, X @ X.T, squares[2], scalars, *numbers)
        if accelerate is not None:
            held = (X, scalars, *velocities)
            one, two, scalars = momentum.moved(accelerate, held, (G, Z), sums / batch, step_size, numbers)
            return momentum.refactored(state[0], one, two, fixed), scalars
        a, b, scalars = functions["update"](*squares, sums / batch, scalars, step_size, *numbers)
        moved = jnp.concatenate([a[:, None] * v + b[:, None] * G, b[:, None] * Z], axis=1)
        rest = matrices.triangle(moved[:, fixed:])
        return X.at[:trained].set(jnp.concatenate([moved[:, :fixed], rest], axis=1)), scalars

    return traced.over_replicas(step, numbers, size * n * 8, functions.get("at_time"), counted=settle is not None)


class ScalarReplicas:
    """Replicas as one JAX program: weights (R, n, d) or compressed factors (R, n, n), and scalars (R, s).

    `rows` are the weights of explicit SGD; without them the chain is compressed. On inputs with eigenvalues the state
    also has the coordinates of small blocks (`spaces`).
    """

    def __init__(
        self, model: ScalarModel, initials: Sequence[Initial], grams: np.ndarray, d: int, batch: int,
        step_size: float, seed: int, *, rows: np.ndarray | None = None, dtype: str = "float64",
    ) -> None:  # fmt: skip
        import jax
        import jax.numpy as jnp

        parameters = initials[0].parameters
        trained, fixed = model.sizes(parameters)
        batch = samples_of(model, batch)
        further = model.further(parameters)
        numbers = [model.bound(initial, gram) for initial, gram in zip(initials, grams, strict=True)]
        held = model.spaces(parameters)
        self.inputs: tuple[Any, ...] = ()
        self.model, self.batch, self.count, self.measure = model, batch, 0, None
        known, values = traced.constants_of(numbers[0]), rows
        self.products: Callable[[Any], np.ndarray] = lambda values: values @ np.swapaxes(values, -1, -2)
        if rows is not None:
            draw: Any = standard
            if held is not None:
                if held.samples is None:
                    draw = spaces.Clusters.of(held).samples
                    self.inputs = (jnp.asarray(np.sqrt(held.variances()), dtype),)
                else:
                    draw, given = drawn_rows, [held.samples(), *([] if held.targets is None else [held.targets()])]
                    self.inputs = tuple(jnp.asarray(each, dtype) for each in given)
                    self.measure, self.count = own_samples.measures(model, known, self.inputs, seed), held.count
            several = held is not None and len(held.dimension) > 1
            blocks = tuple(held.dimension.tolist()) if held is not None and several else ()
            self.run = explicit(model, known, trained, further, d, batch, dtype, draw, blocks)
            if held is not None and several:
                self.products = functools.partial(grams_by_block, dimension=held.dimension)
        elif held is None:
            (require_room if model.velocities is None else momentum.require_room)(d, batch, trained, fixed)
            values = np.array([factor(gram, trained) for gram in grams])
            run = length_traced.compressed if model.lengths else compressed
            self.run = run(model, known, trained, fixed, further, d, batch)
        else:
            parts = spaces.Parts.of(held, trained + fixed, min(batch, trained))
            grams = grams.reshape(len(grams), -1, *grams.shape[-2:])
            values = spaces.factors(grams, parts, trained)
            self.run = spaces.compressed(model, known, trained, fixed, further, parts, batch)
            self.products = functools.partial(spaces.grams_of, parts=parts)
        scalars = np.array([model.scalars(initial) for initial in initials])
        if model.velocities is not None and isinstance(values, np.ndarray):
            values, scalars = momentum.start(model, initials, values, scalars, rows is None)
        self.at = (jax.tree.map(lambda x: jnp.asarray(x, dtype), (values, scalars)), 0)
        self.arrays = [jnp.asarray(np.array(a), dtype) for a in zip(*map(traced.arrays_of, numbers), strict=True)]
        self.keys = jax.vmap(lambda k: jax.random.fold_in(jax.random.key(seed), k))(jnp.arange(len(grams)))
        self.step_size = step_size

    def advance(self, steps: int) -> bool:
        """Take steps in every replica. Return False if a state is no longer finite."""
        import jax
        import jax.numpy as jnp

        state, taken = self.at
        state = self.run(state, self.keys, self.arrays, taken, steps, self.step_size, *self.inputs)
        good = all(bool(jnp.isfinite(values).all()) for values in jax.tree.leaves(state))
        self.at = (state, taken + steps)  # one assignment: an interruption never leaves only one of both
        return good

    def grams(self) -> np.ndarray:
        """Return the raw Gram matrices, summed in float64, packed with the scalars, and the loss of a user's
        samples.
        """
        values, scalars = self.at[0]
        several = isinstance(values, tuple)
        held = tuple(np.asarray(part, float) for part in values) if several else np.asarray(values, float)
        told = [np.asarray(scalars, float)]
        if self.measure is not None:
            told.append(np.asarray(self.measure(values, scalars, self.arrays, self.at[1], self.step_size), float))
        return packed(self.products(held), np.concatenate(told, axis=1))

    def state(self) -> dict[str, np.ndarray]:
        """Return weights or factors, scalars, and the step count; the keys follow from the seed."""
        values, scalars = self.at[0]
        parts = dict(zip(HELD, values if isinstance(values, tuple) else (values,), strict=False))
        arrays = {name: np.asarray(part) for name, part in parts.items()}
        return {**arrays, "scalars": np.asarray(scalars), "steps": np.array(self.at[1])}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Restore a stored state."""
        import jax.numpy as jnp

        parts = tuple(jnp.asarray(arrays[name]) for name in HELD if name in arrays)
        values = parts if isinstance(self.at[0][0], tuple) else parts[0]
        self.at = ((values, jnp.asarray(arrays["scalars"])), int(arrays["steps"]))

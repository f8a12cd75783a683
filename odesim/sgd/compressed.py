"""Compressed SGD of one replica or many: the exact law of the Gram matrix of the weights, at a cost independent of
d.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from derivations.contract import Initial, Model, ScalarModel, packed
from odesim.errors import UsageError

SHARED = (
    "semidefinite_factor", "bartlett", "triangularise", "move", "inner_products", "add", "divide", "collect", "outside",
    "finite", "single_fields", "move_single",
)  # fmt: skip
"""Functions of `odesim.sgd.loops` that steps of all models call."""
STEPS = ("batch_steps", "single_steps")
SCALAR_SHARED = ("squared_norms", "replace", "add_rows")
"""Those of `odesim.sgd.scalar_loops` that all steps of models with trained numbers call."""
SCALAR_STEPS = ("scalar_batch_steps", "scalar_single_steps")
"""Those of `odesim.sgd.scalar_loops` that take the place of `STEPS` in a model with trained numbers."""
LENGTH_STEPS = ("fill_normal", "chi_squared", "add_outside", "length_batch_steps", "length_single_steps")
"""Functions of `odesim.sgd.length_loops`, for coefficients that depend on the length of a sample."""
VELOCITY_STEPS = ("push", "velocity_steps")
"""Functions of `odesim.sgd.velocity_loops`, for SGD with momentum."""


BLOCK = 256
"""Samples of a batch whose coefficients are computed together."""


def whole_episodes(size: int, samples: int) -> int:
    """Return the number of samples nearest to a size that consists of whole episodes, at least one.

    >>> whole_episodes(256, 5), whole_episodes(3, 8)
    (255, 8)
    """
    return max(samples, size - size % samples)


def samples_of(model: Model, batch: int) -> int:
    """Return the number of samples of a batch. For a model with episodes a batch counts episodes."""
    return batch * (model.episode if isinstance(model, ScalarModel) else 1)


def require_room(d: int, batch: int, trained: int, fixed: int) -> None:
    """Raise `UsageError` for a dimension in which the orthogonal part is smaller than the rank of the gradient."""
    needed = trained + fixed + min(batch, trained)
    if d < needed:
        raise UsageError(
            f"compressed SGD needs d >= {needed} here ({trained} trained and {fixed} fixed vectors, and a gradient of "
            f"rank {min(batch, trained)} outside their span), but d = {d}; use --method explicit at small d"
        )


def factor(gram: np.ndarray, trained: int) -> np.ndarray:
    """Return a factor X of a raw Gram matrix, X X^T = gram, rows [trained; frame], lower triangular with the frame
    first.

    Cholesky's factor keeps the overlaps with an orthonormal frame to the last digit, however small. A singular matrix
    (linearly dependent vectors) has no such factor. Its factor comes from its eigenvectors, and each entry is then
    accurate to round-off.
    """
    order = np.concatenate([np.arange(trained, len(gram)), np.arange(trained)])
    ordered = gram[np.ix_(order, order)]
    try:
        triangular = np.linalg.cholesky(ordered)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(ordered)
        half = vectors * np.sqrt(np.where(values > 0, values, 0.0))
        triangular = np.linalg.qr(half.T, mode="r").T
    rows = np.empty(triangular.shape)  # by rows, whatever its factor is
    rows[order] = triangular
    return rows


@functools.lru_cache(maxsize=64)
def compile_numba(model: Model) -> dict[str, Callable[..., Any]]:
    """Return the loops of steps for a model, compiled with its functions, from the cache if possible."""
    from odesim.code import compile
    from odesim.sgd import bind

    chosen = [f"odesim.sgd.loops:{name}" for name in SHARED]
    if isinstance(model, ScalarModel):
        steps = () if model.lengths or model.velocities else SCALAR_STEPS
        chosen += [f"odesim.sgd.scalar_loops:{name}" for name in (*SCALAR_SHARED, *steps)]
        chosen += [f"odesim.sgd.velocity_loops:{name}" for name in VELOCITY_STEPS] if model.velocities else []
        chosen += [f"odesim.sgd.length_loops:{name}" for name in LENGTH_STEPS] if model.lengths else []
        stem = f"compressed_{model.stem}"
    else:
        chosen += [f"odesim.sgd.loops:{name}" for name in STEPS]
        stem = f"compressed_{model.module.replace('.', '_')}"
    text = compile.numba_module(model.module, [*bind.numba_sources(model), *map(compile.source, chosen)])
    return compile.functions_of(stem, text, compile.names_of(chosen))


@dataclasses.dataclass
class Chain:
    """One replica: the factor of its Gram matrix, its generator, its number of steps, and its scalars if any."""

    model: Model
    parameters: Any
    d: int
    batch: int
    step_size: float
    factor: np.ndarray
    numbers: tuple[Any, ...]
    rng: np.random.Generator
    functions: dict[str, Callable[..., Any]]
    steps: int = 0
    scalars: np.ndarray | None = None

    @classmethod
    def start(
        cls, model: Model, parameters: Any, gram: np.ndarray, d: int, batch: int, step_size: float,
        rng: np.random.Generator, *, functions: dict[str, Callable[..., Any]] | None = None,
        initial: Initial | None = None,
    ) -> "Chain":  # fmt: skip
        """Return a replica with the raw Gram matrix `gram` (n, n). Constants and scalars of a model are those of
        `initial`.

        Raises `UsageError` for a model with scalars without `initial`.
        """
        trained, fixed = model.sizes(parameters)
        batch = samples_of(model, batch)
        require_room(d, batch, trained, fixed)
        numbers = model.numbers(parameters, gram) if initial is None else model.bound(initial, gram)
        functions = functions or compile_numba(model)
        made = cls(model, parameters, d, batch, step_size, factor(gram, trained), numbers, rng, functions)
        if isinstance(model, ScalarModel):
            if initial is None:
                raise UsageError(
                    "compressed SGD of a model with trained readouts or biases needs their initial values, but got a "
                    "Gram matrix: pass `initial`"
                )
            made.scalars = np.array(model.scalars(initial), float)
        return made

    def advance(self, steps: int) -> bool:
        """Take `steps` steps. Return False if the state is no longer finite; the factor is then invalid."""
        kind = "single_steps" if self.batch == 1 else "batch_steps"
        trained, _ = self.model.sizes(self.parameters)
        uniforms, normals = self.model.noise
        step_size = float(self.step_size)
        if isinstance(self.model, ScalarModel):
            further = self.model.further(self.parameters)
            block = whole_episodes(BLOCK, self.model.episode)
            form = (float(self.d), self.batch, trained, further, uniforms, normals, self.steps, block)
            name = "velocity_steps" if self.model.velocities else "scalar_" + kind
            take = self.functions["length_" + kind if self.model.lengths else name]
            good = bool(take(self.factor, self.scalars, steps, form, step_size, self.rng, self.numbers))
        else:
            form = (float(self.d), self.batch, trained, self.model.normalised, uniforms, normals)
            good = bool(self.functions[kind](self.factor, steps, form, step_size, self.rng, self.numbers))
        self.steps += steps
        return good

    @property
    def gram(self) -> np.ndarray:
        """Return the raw Gram matrix (n, n) of [trained, frame]."""
        return self.factor @ self.factor.T

    @property
    def saved(self) -> np.ndarray:
        """Return the saved variables: the Gram matrix, packed with the scalars if there are any."""
        return self.gram if self.scalars is None else packed(self.gram, self.scalars)

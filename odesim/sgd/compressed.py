"""Compressed SGD of one replica or many: the law of the Gram matrix of the weights, at a cost free of d."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from derivations.contract import Initial, Model
from odesim.errors import UsageError

LOOPS = (
    "semidefinite_factor",
    "bartlett",
    "triangularise",
    "move",
    "inner_products",
    "batch_steps",
    "single_fields",
    "move_single",
    "single_steps",
)


def require_room(d: int, batch: int, trained: int, fixed: int) -> None:
    """Refuse a dimension in which the orthogonal part cannot hold the gradient's rank."""
    needed = trained + fixed + min(batch, trained)
    if d < needed:
        raise UsageError(
            f"compressed SGD needs d >= {needed} here ({trained} trained and {fixed} fixed vectors, and a gradient of "
            f"rank {min(batch, trained)} outside their span), but d = {d}; use --method explicit at small d"
        )


def factor(gram: np.ndarray, trained: int) -> np.ndarray:
    """A factor X of a raw Gram matrix, X X^T = gram, rows [trained; frame], lower triangular with the frame first.

    Cholesky's factor keeps the overlaps with an orthonormal frame to the last digit, however small; a singular matrix
    (linearly dependent vectors) has none and goes through its eigenvectors, each entry then good to round-off.
    """
    order = np.concatenate([np.arange(trained, len(gram)), np.arange(trained)])
    ordered = gram[np.ix_(order, order)]
    try:
        triangular = np.linalg.cholesky(ordered)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(ordered)
        half = vectors * np.sqrt(np.where(values > 0, values, 0.0))
        triangular = np.linalg.qr(half.T, mode="r").T
    rows = np.empty_like(triangular)
    rows[order] = triangular
    return rows


def compile_numba(model: Model) -> dict[str, Callable[..., Any]]:
    """`batch_steps` and `single_steps` for a model, compiled around its own functions, from the cache if there."""
    import inspect

    from odesim.code import compile
    from odesim.sgd import bind, loops

    def text() -> str:
        engine = [inspect.getsource(inspect.unwrap(getattr(loops, name))) for name in LOOPS]
        return compile.numba_module(model.module, [*bind.numba_sources(model), *engine])

    module = compile.generated("compressed_" + model.module.replace(".", "_"), [model.module], text)
    return {name: getattr(module, name) for name in LOOPS}


@dataclasses.dataclass
class Chain:
    """One replica: the factor of its Gram matrix, its generator, and how many steps it has taken."""

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

    @classmethod
    def start(
        cls, model: Model, parameters: Any, gram: np.ndarray, d: int, batch: int, step_size: float,
        rng: np.random.Generator, functions: dict[str, Callable[..., Any]] | None = None,
        initial: Initial | None = None,
    ) -> "Chain":  # fmt: skip
        """A replica at the raw Gram matrix `gram` (n, n); a model with constants takes them from `initial`."""
        trained, fixed = model.sizes(parameters)
        require_room(d, batch, trained, fixed)
        numbers = model.numbers(parameters, gram) if initial is None else model.bound(initial, gram)
        functions = functions or compile_numba(model)
        return cls(model, parameters, d, batch, step_size, factor(gram, trained), numbers, rng, functions)

    def advance(self, steps: int) -> bool:
        """Take `steps` steps; False where the state stopped being finite (the factor is then not to be used)."""
        run = self.functions["single_steps" if self.batch == 1 else "batch_steps"]
        trained, _ = self.model.sizes(self.parameters)
        uniforms, normals = self.model.noise
        good = run(
            self.factor, steps, float(self.d), self.batch, trained, self.model.normalised, uniforms, normals,
            self.step_size, self.rng, self.numbers,
        )  # fmt: skip
        self.steps += steps
        return bool(good)

    @property
    def gram(self) -> np.ndarray:
        """The raw Gram matrix (n, n) of [trained, frame]."""
        return self.factor @ self.factor.T

"""SGD with momentum in JAX, explicit or compressed, exact in law. Vectors and numbers have velocities.

A step moves every vector u and its velocity v by the mean gradient g of the batch (`accelerate` of the model):

    v <- T_vv v + T_vu u + T_vg g,   u <- T_uv v + T_uu u + T_ug g

Explicit weights (n + S, d) and compressed factors (n + S, n + S) have the S velocities after the n rows of a model
without momentum. The velocities of numbers (s,) follow the numbers. A velocity has no field, so that coefficients
depend on the first n rows only. Velocities that are 0 are rows of zeros in a factor: the Gram matrix with them is
singular and has no Cholesky factor. Source: Polyak 1964; Sutskever, Martens, Dahl & Hinton 2013 (Nesterov's form).
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from derivations.contract import Initial, ScalarModel
from odesim.errors import UsageError
from odesim.sgd import matrices
from odesim.sgd.compressed import factor


def require_room(d: int, batch: int, trained: int, fixed: int) -> None:
    """Raise `UsageError` for a dimension without room for all rows and the part of the gradient outside their span."""
    needed = 2 * trained + fixed + min(batch, trained)
    if d < needed:
        raise UsageError(
            f"compressed SGD with momentum needs d >= {needed} here ({trained} trained vectors, as many velocities, "
            f"{fixed} fixed vectors, and a gradient of rank {min(batch, trained)} outside their span), but d = {d}; "
            "use --method explicit at small d"
        )


def start(
    model: ScalarModel, initials: Sequence[Initial], values: np.ndarray, scalars: np.ndarray, compressed: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the state with velocities: from weights (R, n, d) or factors (R, n, n), and numbers (R, s), of every
    replica.

    If velocities are not 0, as in a continued run, any weights or factors with the Gram matrix of all rows are used.
    """
    assert model.velocities is not None
    parameters = initials[0].parameters
    trained, _ = model.sizes(parameters)
    every = [model.velocities(initial) for initial in initials]
    rows = np.zeros((len(values), values.shape[1] + trained, values.shape[2] + (trained if compressed else 0)))
    rows[:, : values.shape[1], : values.shape[2]] = values
    for k, (gram, _) in enumerate(every):
        if gram[..., values.shape[1] :, :].any():
            rows[k] = _rows(gram, trained, rows.shape[2])
    return rows, np.concatenate([scalars, [pushes for _, pushes in every]], axis=1)


def _rows(gram: np.ndarray, trained: int, columns: int) -> np.ndarray:
    """Return rows [students; fixed; velocities] (n, columns) with a Gram matrix (n, n), the fixed ones in the first
    columns.

    For fewer than n columns (at least the rank), any such rows are returned.
    """
    n = len(gram)
    if columns < n:
        values, vectors = np.linalg.eigh(gram)
        return (vectors * np.sqrt(np.maximum(values, 0.0)))[:, -columns:]
    order = np.r_[:trained, n - trained : n, trained : n - trained]
    rows = np.zeros((n, columns))
    rows[order, :n] = factor(gram[np.ix_(order, order)], 2 * trained)
    return rows


def parts(state: Any, trained: int) -> tuple[Any, Any, Any, Any]:
    """Return rows (n, ..) and numbers (s,) of a state, then the velocities of both."""
    rows, numbers = state
    count, half = rows.shape[0] - trained, numbers.size // 2
    return rows[:count], numbers[:half], rows[count:], numbers[half:]


Gradient = tuple[Any, ...]
"""Mean gradient (S, ..) in pieces along the columns: within the span of the rows, and outside of it."""


def moved(
    accelerate: Callable[..., Any], state: Any, gradient: Gradient, means: Any, step_size: Any, numbers: Any
) -> tuple[Any, Any, Any]:
    """Return the students' rows and their velocities (2 S, columns) after a step, and all numbers (2 s,).

    `state` is the result of `parts`. The first piece of the gradient has the columns of the rows, the others more.
    """
    import jax.numpy as jnp

    rows, scalars, v, pushes = state
    u, (inside, *outside) = rows[: len(v)], gradient
    of_v, of_u, scalars, pushes = accelerate(means, scalars, pushes, step_size, *numbers)
    found = []
    for by_v, by_u, by_g in (of_u, of_v):
        one = by_v[:, None] * v + by_u[:, None] * u + by_g[:, None] * inside
        found.append(jnp.concatenate([one, *(by_g[:, None] * piece for piece in outside)], axis=1))
    return found[0], found[1], jnp.concatenate([scalars, pushes])


def refactored(rows: Any, one: Any, two: Any, fixed: int) -> Any:
    """Return the factor (n + S, n + S) after a step that changed students to `one` and velocities to `two` (S,
    columns).
    """
    import jax.numpy as jnp

    every = jnp.concatenate([one, two])
    rest = matrices.triangle(every[:, fixed:])
    every = jnp.concatenate([every[:, :fixed], rest], axis=1)
    S = len(one)
    return jnp.concatenate([every[:S], rows[S:-S], every[S:]])

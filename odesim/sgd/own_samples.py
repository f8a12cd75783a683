"""Explicit SGD on a user's samples: loss and share of wrong labels during training, and how often samples were
drawn.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from derivations.contract import ScalarModel
from odesim.code.traced import Sizes, joined
from odesim.request.trajectory import Trajectory, Variable
from odesim.sgd import bind, traced

MOST = 4096
"""Largest number of samples for the loss at every saved time, so that the loss costs less than training."""
STREAM = 0x5A5A
"""Number of the key, derived from the seed, that draws these samples and their label noise."""


def measures(model: ScalarModel, numbers: Sizes, given: tuple[Any, ...], seed: int) -> Callable[..., Any]:
    """Return losses (R, 1) as a function of weights (R, n, d), scalars (R, s), arrays of the model, steps, step size.

    They are means over at most `MOST` of the samples (N, d), the same ones with the same label noise at every time.
    `given` are the samples and, where a file has them, their labels (N,). If the loss of the model uses the sign of
    labels, the share of wrong labels without label noise comes second, (R, 2).
    """
    import jax

    functions = bind.bind_jax(model)
    choice, noise = jax.random.split(jax.random.fold_in(jax.random.key(seed), STREAM))
    count = len(given[0])
    chosen = slice(None) if count <= MOST else jax.random.choice(choice, count, (MOST,), replace=False)

    def one(weights: Any, scalars: Any, arrays: list[Any], steps: Any, step_size: Any, rows: Any, *targets: Any) -> Any:
        values = joined(numbers, arrays)
        if "at_time" in functions:
            _, values = functions["at_time"](steps, step_size, *values)
        noises = traced.labels_of(model, functions, values, noise, len(rows), rows.dtype)
        told = [model.losses(weights, scalars, rows, sum(targets, noises), *values).mean()]
        if model.wrong is not None:
            told.append(model.wrong(weights, scalars, rows, sum(targets, 0.0 * noises), *values).mean())
        return jax.numpy.stack(told)

    over = jax.jit(jax.vmap(one, in_axes=(0, 0, 0, None, None, *(None for _ in given))))
    seen = [each[chosen] for each in given]
    return lambda *state: over(*state, *seen)


def with_loss(engine: Any, parameters: Any, saved: np.ndarray, made: Trajectory) -> Trajectory:
    """Return a run with the loss of the samples, if the engine has measured it; otherwise the run itself.

    If the loss uses the sign of labels, the run also has the share of wrong labels. Theoretical values for Gaussian
    inputs with the weights of the run, such as the error, are left out. The summary has `passes`, the mean number of
    times that a sample was drawn.
    """
    if getattr(engine, "measure", None) is None:
        return made
    moving = engine.model.observe(parameters, saved[:1, :1])
    meanings = {"loss": f"mean loss over the samples of the file, at most {MOST} of them"}
    if engine.model.wrong is not None:
        meanings["classification_error"] = "share of wrong labels among these samples"
    courses = {
        name: Variable(("seed", "time"), saved[..., k - len(meanings)], meaning)
        for k, (name, meaning) in enumerate(meanings.items())
    }
    state = {**{name: values for name, values in made.state.items() if name in moving}, **courses}
    kept = {key: value for key, value in made.summary.items()
            if not key.startswith("median_final_") or key.removeprefix("median_final_") in state}  # fmt: skip
    passes = made.statistics["steps"] * engine.batch / engine.count
    told = {f"median_final_{name}": float(np.median(values.values[:, -1])) for name, values in courses.items()}
    told["passes"] = passes
    return dataclasses.replace(made, state=state, summary={**kept, **told})

"""Further checks of simulations of pattern data: training sets and noise of a file."""

from typing import TYPE_CHECKING

from derivations.alphabet.patterns import PatternModel
from derivations.contract import Initial
from odesim.errors import UsageError
from odesim.request.case import Case
from odesim.sgd import frame_simulation

if TYPE_CHECKING:
    from odesim.sgd.simulation import Simulation


def check(case: Case, method: str, batch: int, precision: str, backend: str) -> None:
    """Raise `UsageError` with the reason if a simulation is impossible."""
    frame_simulation.check(case, method, batch, precision, backend)
    model: PatternModel = case.system.dynamics(case.stage).truth(case.parameters)
    given = model.given(case.parameters, case.initial) if method == "compressed" else None
    if given is not None and given.dense.shape[1]:
        raise UsageError(
            "--method compressed has no exact form here: a training set X of dense patches has no coordinates in the "
            "signals; leave X, y out"
        )


def require_noise(simulation: "Simulation", model: PatternModel) -> None:
    """Raise `UsageError` if the routing noise of a file is not one number for every step, expert and training
    example.
    """
    arrays, p = simulation.case.initial, simulation.case.parameters
    if arrays is None or "noise" not in arrays:
        return
    if simulation.case.backend == "jax":
        raise UsageError("routing noise of an initial file is for --backend numba: JAX draws its own")
    given = model.given(p, arrays)
    examples = len(given) if given is not None else model.plan(p).count or simulation.batch
    steps, _, width = arrays["noise"].shape
    if simulation.batch != examples or width != examples:
        raise UsageError(
            f"noise has numbers for {width} examples, the training set {examples} and --batch is {simulation.batch}: "
            "the three must agree (full batches)"
        )
    if simulation.steps > steps:
        raise UsageError(
            f"noise has numbers for {steps} steps, but the run has {simulation.steps}: give --until "
            f"{steps * simulation.step_size:g} at most"
        )


def require_memory(simulation: "Simulation", model: PatternModel, initial: Initial) -> None:
    """Raise `UsageError` if examples and weights do not fit into memory, or their noise has a wrong size."""
    require_noise(simulation, model)
    frame_simulation.require_memory(simulation, model, initial)

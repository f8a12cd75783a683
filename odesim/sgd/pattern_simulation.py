"""What simulations of pattern data ask for beyond those of Gaussian inputs: their own checks and engines."""

from typing import TYPE_CHECKING, Any

from derivations.contract import Initial, load
from derivations.patterns import PatternModel
from odesim.errors import UsageError
from odesim.machine.memory import free_memory
from odesim.request.case import Case

if TYPE_CHECKING:
    from odesim.sgd.simulation import Simulation


def check(case: Case, method: str, batch: int, precision: str, backend: str) -> None:
    """Raise `UsageError` where a simulation cannot be what it claims to be, and say why."""
    model: PatternModel = load(case.system.dynamics(case.stage).model)
    p = case.parameters
    if method == "compressed":
        reason = model.compressible(p)
        if case.initial is not None and "X" in case.initial:
            reason = reason or "a training set X of dense patches has no coordinates in the signals; leave X, y out"
        if reason:
            raise UsageError(f"--method compressed is exact only in the coordinates of the signals: {reason}")
    if precision == "float32" and backend != "jax":
        raise UsageError("--precision float32 needs --backend jax here: the compiled loops run in float64")
    if p.data == "online" and case.initial is not None and "X" in case.initial:
        raise UsageError("-p data=online draws fresh examples, but the initial file brings a training set X, y")
    if p.data == "fixed" and p.n and batch > p.n:
        raise UsageError(
            f"--batch {batch} is more than the n = {p.n} examples of the fixed training set: give --batch {p.n} for "
            "full batches, or -p data=online for fresh examples"
        )


def require_noise(simulation: "Simulation") -> None:
    """Refuse routing noise of a file that is not one number for every step, expert and training example."""
    arrays, p = simulation.case.initial, simulation.case.parameters
    if arrays is None or "noise" not in arrays:
        return
    if simulation.case.backend == "jax":
        raise UsageError("routing noise of an initial file is for --backend numba: JAX draws its own")
    examples = len(arrays["y"]) if "y" in arrays else p.n or simulation.batch
    steps, _, width = arrays["noise"].shape
    if simulation.batch != examples or width != examples:
        raise UsageError(
            f"noise has numbers for {width} examples, the training set {examples} and --batch is {simulation.batch}: "
            "the three must agree (full batches)"
        )
    if simulation.steps > steps:
        raise UsageError(
            f"noise has numbers for {steps} steps, but {simulation.steps} are asked for: give --until "
            f"{steps * simulation.step_size:g} at most"
        )


def case_counts(simulation: "Simulation", model: PatternModel, parameters: Any) -> bool:
    """Whether the engine of a compressed simulation counts its batches."""
    from odesim.sgd.counted import examples_because

    return simulation.case.backend == "numba" and not examples_because(model, parameters, simulation.batch)


def require_memory(simulation: "Simulation", model: PatternModel, initial: Initial) -> None:
    """Refuse examples and weights that cannot be held, and noise that does not fit them."""
    require_noise(simulation)
    p = initial.parameters
    patches, _ = model.noisy(p)
    width = 2 * p.K if simulation.method == "compressed" else p.d
    itemsize = 4 if simulation.precision == "float32" else 8
    counted = simulation.method == "compressed" and case_counts(simulation, model, p)
    drawn = 0 if counted and p.data == "online" else max(p.n, simulation.batch)
    examples = drawn + p.n_test
    weights = p.M * (p.J + 1) * width
    needed = itemsize * (examples * (3 * patches * width + 2 * p.M + 8) + 6 * simulation.replicas * weights)
    available = free_memory()
    if needed > available:
        raise UsageError(
            f"{examples} examples with {patches} noise patches in {width} dimensions and {simulation.replicas} "
            f"replicas need about {needed / 1e9:.1f} GB, but {available / 1e9:.1f} GB are free: lower --batch, n, d or "
            "--seeds"
        )

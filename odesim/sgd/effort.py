"""Effort of a request, estimated in advance. Too much memory raises an error, and a long duration is announced."""

from typing import TYPE_CHECKING, Any

from odesim.errors import UsageError
from odesim.machine.memory import free_memory, require_memory
from odesim.machine.processes import crew_size

if TYPE_CHECKING:
    from derivations.contract import Initial
    from odesim.sgd.simulation import Simulation

LONG = 600.0
"""Seconds above which a duration is announced."""
NEVER = 2.6e6
"""Seconds in a month. A request that takes longer is treated as a mistake."""
PER_STEP, PER_NUMBER = 3e-7, 1e-9
"""Seconds of a step of SGD, and of every number in a sample, measured on a fast core."""
UNITS = ((3.2e7, "years"), (86400.0, "days"), (3600.0, "hours"), (60.0, "minutes"))


def check(simulation: "Simulation", initial: "Initial") -> None:
    """Raise `UsageError` for SGD whose replicas or saved states do not fit into memory, or that would take more than a
    month.

    A replica has at least the overlaps of its state.
    """
    size = sum(values.size for values in initial.state.values())
    replicas, saved = simulation.replicas, min(simulation.case.save_points, simulation.steps + 1)
    require_memory(float(size) * replicas, f"{replicas:.3g} replicas", "--seeds")
    require_memory(
        float(size) * replicas * saved, f"{saved:.3g} saved states of {replicas:.3g} replicas", "--save-points"
    )
    seconds = least_seconds(simulation, size)
    if seconds > NEVER:
        raise UsageError(
            f"{simulation.steps:.3g} steps of {simulation.batch:.3g} samples for {replicas:.3g} replicas "
            f"would take at least {spoken(seconds)}: lower --until, --batch or --seeds, or take a larger "
            "--step-size"
        )


def least_seconds(simulation: "Simulation", size: int) -> float:
    """Return a lower bound of the time of a simulation on one core, from the size of its samples.

    `size` is that of the state. The cost of a counted batch depends on the number of distinct inputs and not on its
    size, so only one sample is counted.
    """
    from odesim.sgd import families

    explicit = simulation.method == "explicit"
    numbers = max(1.0, float(size) ** 0.5) * (getattr(simulation.case.parameters, "d", 1) if explicit else 1.0)
    counted = not explicit and families.family(simulation.case) is not None
    batch = 1.0 if counted else float(families.samples_of_step(simulation.case, simulation.batch))
    cores = crew_size(None)
    return float(simulation.steps) * simulation.replicas * (PER_STEP + PER_NUMBER * batch * numbers) / cores


def announcement(simulation: "Simulation", initial: "Initial") -> str:
    """Return a notice before a simulation that is long or has very few steps; otherwise an empty text."""
    said = []
    seconds = least_seconds(simulation, sum(values.size for values in initial.state.values()))
    if seconds > LONG:
        said.append(f"this takes at least {spoken(seconds)}; Ctrl-C keeps a checkpoint from which --resume continues")
    if simulation.steps < 10:
        steps = "one step" if simulation.steps == 1 else f"{simulation.steps} steps"
        clock = simulation.system.stage(simulation.case.stage).clock
        said.append(
            f"--until {simulation.case.until:g} is {steps} of SGD, because a step advances the clock by "
            f"{simulation.tick:g} ({clock})"
        )
    return "; ".join(said)


def spoken(seconds: Any) -> str:
    """Return a duration in words."""
    for size, name in UNITS:
        if seconds >= size:
            return f"{seconds / size:.3g} {name}"
    return f"{seconds:.0f} seconds"


def require_weights(simulation: "Simulation", n: int, d: int) -> None:
    """Raise `UsageError` if explicit weights do not fit into memory: state, gradient, copies of all replicas, and one
    block.
    """
    from odesim.sgd import families
    from odesim.sgd.traced import block_size

    itemsize = 4 if simulation.precision == "float32" else 8
    block = block_size(families.samples_of_step(simulation.case, simulation.batch), d, itemsize)
    needed = (5 * simulation.replicas * n + 3 * block) * d * itemsize
    available = free_memory()
    if needed > available:
        raise UsageError(
            f"explicit SGD of {simulation.replicas} replicas of {n} vectors in d = {d} needs about "
            f"{needed / 1e9:.1f} GB, but {available / 1e9:.1f} GB are free: "
            "lower --seeds or d, or use --method compressed"
        )

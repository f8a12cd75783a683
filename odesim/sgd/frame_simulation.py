"""Further checks of simulations on finite alphabets (frames, patterns)."""

import importlib
from typing import TYPE_CHECKING, Any

from derivations.contract import Initial
from odesim.errors import UsageError
from odesim.machine.memory import free_memory
from odesim.request.case import Case

if TYPE_CHECKING:
    from odesim.sgd.simulation import Simulation


def check(case: Case, method: str, batch: int, precision: str, backend: str) -> None:
    """Raise `UsageError` with the reason if a simulation is impossible."""
    model: Any = case.system.dynamics(case.stage).truth(case.parameters)
    reason = model.compressible(case.parameters) if method == "compressed" else ""
    if reason:
        raise UsageError(f"--method compressed has no exact form here: {reason}")
    if precision == "float32" and backend != "jax":
        raise UsageError("--precision float32 needs --backend jax here, because the other back end runs in float64")
    reason = model.conflict(case.parameters, case.explicit, case.initial or {}, batch)
    if reason:
        raise UsageError(reason)


def require_memory(simulation: "Simulation", model: Any, initial: Initial) -> None:
    """Raise `UsageError` if weights, samples and fields do not fit into memory, by the estimate of the model's
    engine.
    """
    from odesim.sgd import families

    engine = importlib.import_module(families.FAMILIES[type(model)].engine)
    itemsize = 4 if simulation.precision == "float32" else 8
    s = model.sizes(initial)
    needed = itemsize * engine.entries(model, initial, simulation)
    available = free_memory()
    if needed > available:
        raise UsageError(
            f"batches of {simulation.batch} and {simulation.replicas} replicas of {s.experts} experts with "
            f"{s.neurons} neurons each, on {s.frame} patterns in {s.width} dimensions, need about "
            f"{needed / 1e9:.1f} GB, but {available / 1e9:.1f} GB are free: lower --batch, --seeds, --save-points or "
            "the sizes of the network and its data"
        )

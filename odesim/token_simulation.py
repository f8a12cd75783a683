"""What simulations of token models ask for beyond others: their own checks and engines."""

import os
from typing import TYPE_CHECKING, Any

from derivations.contract import Initial, load
from derivations.tokens import TokenModel
from odesim.case import Case
from odesim.errors import UsageError

if TYPE_CHECKING:
    from odesim.sgd.engines import Engine
    from odesim.simulation import Simulation


def check(case: Case, method: str, batch: int, precision: str, backend: str) -> None:
    """Raise `UsageError` where a simulation cannot be what it claims to be, and say why."""
    model: TokenModel = load(case.system.stage(case.stage).model)
    reason = model.compressible(case.parameters) if method == "compressed" else ""
    if reason:
        raise UsageError(f"--method compressed has no exact form here: {reason}")
    if precision == "float32" and backend != "jax":
        raise UsageError("--precision float32 needs --backend jax here: NumPy runs in float64")


def make_engine(
    simulation: "Simulation", model: TokenModel, initials: list[Initial], threads: int | None
) -> tuple["Engine", str]:
    """The engine with its replicas in place, and the device it runs on.

    Counted batches are drawn on the CPU, where a step costs as much for a batch of one as for one of a million.
    """
    case = simulation.case
    require_memory(simulation, model, initials[0])
    options: dict[str, Any] = {
        "compressed": simulation.method == "compressed",
        "batch": simulation.batch,
        "step_size": simulation.step_size,
        "seed": case.seed,
    }
    if case.backend == "numba":
        from odesim.sgd.tokens import TokenChains

        return TokenChains(model, initials, case.initial, **options), "cpu"
    from odesim import device
    from odesim.sgd.token_traced import TokenReplicas

    platform: Any = simulation.device
    device.configure(platform, threads)
    import jax

    engine = TokenReplicas(model, initials, case.initial, **options, dtype=simulation.precision)
    return engine, jax.devices()[0].device_kind if jax.default_backend() != "cpu" else "cpu"


def require_memory(simulation: "Simulation", model: TokenModel, initial: Initial) -> None:
    """Refuse batches and weights that cannot be held."""
    counted = simulation.method == "compressed" and model.inputs(initial) is not None
    itemsize = 4 if simulation.precision == "float32" else 8
    k, m, d = initial.state["u"].shape
    tokens = 0 if counted else model.uniforms(initial) * simulation.batch
    saved = simulation.case.save_points * simulation.replicas * k * m * d
    needed = itemsize * (8 * k * tokens + 6 * simulation.replicas * k * (m + 1) * d) + 8 * saved
    available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    if needed > available:
        raise UsageError(
            f"batches of {simulation.batch} inputs and {simulation.replicas} replicas of {k} experts with {m} "
            f"neurons on {d} patterns need about {needed / 1e9:.1f} GB, but {available / 1e9:.1f} GB are free: lower "
            "--batch, --seeds, --save-points or the sizes"
        )

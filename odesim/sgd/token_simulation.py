"""What simulations of token models ask for beyond others: their own checks and engines."""

from typing import TYPE_CHECKING

from derivations.contract import Initial, load
from derivations.tokens import TokenModel
from odesim.errors import UsageError
from odesim.machine.memory import free_memory
from odesim.request.case import Case

if TYPE_CHECKING:
    from odesim.sgd.simulation import Simulation

CHAINS, REPLICAS = "odesim.sgd.tokens:TokenChains", "odesim.sgd.token_traced:TokenReplicas"
DESCENT = "odesim.sgd.tokens:descent"
"""The engines of this family, and its mean gradients; counted batches are drawn on the CPU, where a step costs as much
for a batch of one as for one of a million."""


def check(case: Case, method: str, batch: int, precision: str, backend: str) -> None:
    """Raise `UsageError` where a simulation cannot be what it claims to be, and say why."""
    model: TokenModel = load(case.system.dynamics(case.stage).model)
    reason = model.compressible(case.parameters) if method == "compressed" else ""
    if reason:
        raise UsageError(f"--method compressed has no exact form here: {reason}")
    if precision == "float32" and backend != "jax":
        raise UsageError("--precision float32 needs --backend jax here: NumPy runs in float64")


def require_memory(simulation: "Simulation", model: TokenModel, initial: Initial) -> None:
    """Refuse batches and weights that cannot be held."""
    counted = simulation.method == "compressed" and model.inputs(initial) is not None
    itemsize = 4 if simulation.precision == "float32" else 8
    k, m, d = initial.state["u"].shape
    tokens = 0 if counted else model.uniforms(initial) * simulation.batch
    saved = simulation.case.save_points * simulation.replicas * k * m * d
    needed = itemsize * (8 * k * tokens + 6 * simulation.replicas * k * (m + 1) * d) + 8 * saved
    available = free_memory()
    if needed > available:
        raise UsageError(
            f"batches of {simulation.batch} inputs and {simulation.replicas} replicas of {k} experts with {m} "
            f"neurons on {d} patterns need about {needed / 1e9:.1f} GB, but {available / 1e9:.1f} GB are free: lower "
            "--batch, --seeds, --save-points or the sizes"
        )

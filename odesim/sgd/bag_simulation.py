"""What simulations of bags of patches ask for beyond those of Gaussian inputs: their own checks and engines."""

from typing import TYPE_CHECKING

import numpy as np

from derivations.bags import BagModel
from derivations.contract import Initial
from odesim.errors import UsageError
from odesim.machine.memory import free_memory
from odesim.request.case import Case

if TYPE_CHECKING:
    from odesim.sgd.simulation import Simulation

CHAINS, REPLICAS = "odesim.sgd.bags:BagChains", "odesim.sgd.bags_traced:BagReplicas"
DESCENT = "odesim.sgd.bags:descent"
"""The engines of this family, and its mean gradients."""


def check(case: Case, method: str, batch: int, precision: str, backend: str) -> None:
    """Raise `UsageError` where a simulation cannot be what it claims to be, and say why."""
    model: BagModel = case.system.dynamics(case.stage).truth(case.parameters)
    reason = model.compressible(case.parameters)
    if method == "compressed" and reason:
        raise UsageError(f"--method compressed is exact only for patterns that are points: {reason}")
    if precision == "float32" and backend != "jax":
        raise UsageError("--precision float32 needs --backend jax here: the loops over samples run in float64")
    if "data" in case.explicit and case.parameters.data == "online" and "index" in (case.initial or {}):
        raise UsageError("-p data=online draws fresh samples, but the initial file brings a training set index, y")
    if case.parameters.data == "fixed" and case.parameters.N and batch > case.parameters.N:
        raise UsageError(f"--batch {batch} is more than the N = {case.parameters.N} samples of the training set")


def require_memory(simulation: "Simulation", model: BagModel, initial: Initial) -> None:
    """Refuse weights, patches and fields that cannot be held."""
    p = initial.parameters
    alphabet = len(initial.constants["gram"])
    classes = np.asarray(initial.constants["out"])[0, 0].size
    width = alphabet if simulation.method == "compressed" else p.d
    patches = (alphabet if simulation.method == "compressed" else p.n) * simulation.batch * model.uniforms(p) // p.n
    responses = 4 * p.k * patches * classes
    fields = responses if simulation.method == "compressed" else 3 * p.m * patches + 2 * patches * width + responses
    itemsize = 4 if simulation.precision == "float32" else 8
    needed = itemsize * (fields + 4 * simulation.replicas * (p.m + p.k) * width)
    available = free_memory()
    if needed > available:
        raise UsageError(
            f"{simulation.replicas} replicas of m = {p.m} neurons in {width} dimensions and batches of {patches} "
            f"patches "
            f"need about {needed / 1e9:.1f} GB, but {available / 1e9:.1f} GB are free: lower --batch, m, d or --seeds"
        )

"""Options that depend on the family of data and on the step size of a model."""

import dataclasses
import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from derivations.alphabet.frame import FrameModel
from derivations.alphabet.patterns import PatternModel
from derivations.contract import Initial, Model, ScalarModel, load
from odesim.errors import UsageError
from odesim.request.case import Case, values_of
from odesim.sgd import drift
from odesim.sgd.compressed import samples_of
from odesim.sgd.observed import flow_of

if TYPE_CHECKING:
    from odesim.sgd.engines import Engine
    from odesim.sgd.simulation import Simulation


@dataclasses.dataclass(frozen=True)
class Family:
    """Functions for the models of one type, by names that are imported on first use.

    They are the module of the checks (`check`, `require_memory(simulation, model, initial)`), the module of the engine,
    the engines `chains` (NumPy and numba) and `replicas` (JAX), and `descent(model, initial, batch, repeats, rng,
    fresh)` for measurements of the drift.
    """

    checks: str
    engine: str
    chains: str
    replicas: str
    descent: str


FAMILIES = {
    PatternModel: Family(
        "odesim.sgd.pattern_simulation", "odesim.sgd.patterns", "odesim.sgd.counted:chains",
        "odesim.sgd.counted:replicas", "odesim.sgd.patterns:descent",
    ),
    FrameModel: Family(
        "odesim.sgd.frame_simulation", "odesim.sgd.frame", "odesim.sgd.frame:FrameChains",
        "odesim.sgd.frame_traced:FrameReplicas", "odesim.sgd.frame:descent",
    ),
}  # fmt: skip
"""Family of every type of model. Models of Gaussian inputs have their engines in `simulation`."""


def family(case: Case) -> Family | None:
    """Return the family of the stage's model; None for Gaussian inputs."""
    stage = case.system.dynamics(case.stage)
    return FAMILIES.get(type(stage.truth(case.parameters))) if stage.model else None


def has_eigenvalues(case: Case) -> bool:
    """Return True if the inputs of the stage's model have variances other than 1."""
    stage = case.system.dynamics(case.stage)
    model = stage.truth(case.parameters) if stage.model else None
    return isinstance(model, ScalarModel) and model.spaces(case.parameters) is not None


def has_momentum(case: Case) -> bool:
    """Return True if SGD of the stage's model has momentum."""
    stage = case.system.dynamics(case.stage)
    model = stage.truth(case.parameters) if stage.model else None
    return isinstance(model, ScalarModel) and model.velocities is not None


def require_jax(case: Case, method: str) -> bool:
    """Return True if SGD of the stage's model runs in JAX only.

    Raises `UsageError` for the back end numba, and for compressed SGD with momentum on inputs with eigenvalues.
    """
    scaled = has_eigenvalues(case)
    if scaled and "backend" in case.options and case.backend == "numba":
        raise UsageError(
            "SGD with anisotropic inputs ([inputs]) runs in JAX only; leave --backend out or give --backend jax"
        )
    if scaled and has_momentum(case) and method == "compressed":
        raise UsageError(
            "compressed SGD with momentum supports only inputs x ~ N(0, I), not [inputs]; use --method explicit"
        )
    return scaled


def has_samples(case: Case) -> bool:
    """Return True if explicit SGD of the stage's model draws rows of a user's samples."""
    stage = case.system.dynamics(case.stage)
    model = stage.truth(case.parameters) if stage.model else None
    spaces = model.spaces(case.parameters) if isinstance(model, ScalarModel) else None
    return spaces is not None and spaces.samples is not None


def samples_of_step(case: Case, batch: int) -> int:
    """Return the number of samples of one step of SGD. If the model has episodes, the batch counts episodes."""
    stage = case.system.dynamics(case.stage)
    model = stage.truth(case.parameters) if stage.model else None
    return samples_of(model, batch) if isinstance(model, Model) else batch


def check(own: Family | None, case: Case, method: str, batch: int, precision: str, backend: str) -> None:
    """Raise `UsageError` with the reason if a simulation of a family is impossible."""
    if own is not None:
        importlib.import_module(own.checks).check(case, method, batch, precision, backend)


def costly_loss(model: Any, parameters: Any) -> bool:
    """Return True if the population loss costs about as much as the training, so that it is saved only on request."""
    return hasattr(model, "costly_loss") and model.costly_loss(parameters)


def keeps_loss(model: Any, parameters: Any, asked: bool) -> bool:
    """Return True if the population loss is saved during training: it was requested (`asked`), or costs little."""
    return asked or not costly_loss(model, parameters)


def require_loss(case: Case, asked: bool) -> None:
    """Raise `UsageError` for a requested population loss that no tier of the flow has exactly."""
    if not asked:
        return
    stage = case.system.dynamics(case.stage)
    equations = flow_of(stage, case.parameters) if stage.model else None
    if equations is None:
        raise UsageError("--population-loss: this training has no flow and therefore no population loss; leave it out")
    if equations.about.neglects != "nothing" and costly_loss(stage.truth(case.parameters), case.parameters):
        raise UsageError(
            f"--population-loss: the loss of tier {equations.about.name} is not that of this training, because it "
            f"neglects {equations.about.neglects}; leave it out"
        )


def descent_of(model: Any) -> Callable[..., np.ndarray]:
    """Return the function descent(model, initial, batch, repeats, rng, fresh) of a model's family."""
    return load(FAMILIES[type(model)].descent) if type(model) in FAMILIES else drift.descent


def drift_of(model: Any) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    """Return the function drift(model, initial, samples, seed) of a model's family."""
    return drift.gram_drift if isinstance(model, Model) else drift.mean_descent(descent_of(model))


def make_engine(
    simulation: "Simulation", model: Any, initials: list[Initial], threads: int | None
) -> tuple["Engine", str]:
    """Return the engine of a model's family with its replicas, and its device."""
    case = simulation.case
    own = FAMILIES[type(model)]
    importlib.import_module(own.checks).require_memory(simulation, model, initials[0])
    options: dict[str, Any] = {
        "compressed": simulation.method == "compressed",
        "batch": simulation.batch,
        "step_size": simulation.step_size,
        "seed": case.seed,
    }
    if case.backend == "numba":
        return load(own.chains)(model, initials, case.initial, **options), "cpu"
    from odesim.machine import device

    platform: Any = simulation.device
    device.configure(platform, threads)
    engine = load(own.replicas)(model, initials, case.initial, **options, dtype=simulation.precision)
    return engine, device.kind()


def remarks(engine: Any) -> dict[str, str]:
    """Return the method by which an engine makes its batches, if it has a choice; part of the summary."""
    text = getattr(engine, "batches", "")
    return {"batches": text} if text else {}


def at_step(case: Case, step_size: float) -> Case:
    """Return the case with the parameters that the step size implies, and its horizon unless the user gave it."""
    stage = case.system.dynamics(case.stage)
    parameters = stage.stepped(case.parameters, step_size, case.explicit)
    if parameters is case.parameters:
        return case
    changed = {name for name, value in values_of(stage, parameters).items() if value != case.by_name[name]}
    until = case.until if "until" in case.options else stage.horizon(parameters)
    return dataclasses.replace(case, parameters=parameters, explicit=case.explicit | changed, until=until)

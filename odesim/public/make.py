"""Runs: flows and SGD.  Nothing is written."""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from odesim.public.speak import chosen, known, speaking
from odesim.public.watch import ended, watched, whole

if TYPE_CHECKING:
    from derivations.contract import System
    from odesim.request.trajectory import Trajectory
    from odesim.store import Run

CASE = ("preset", "config", "initial", "stage", "seed", "until", "save_points", "save_at", "backend")
FLOW = (*CASE, "rtol", "atol", "solver", "step", "after")
SGD = (
    *CASE,
    "method",
    "step_size",
    "batch",
    "seeds",
    "device",
    "precision",
    "fresh_initial",
    "population_loss",
    "after",
)


@speaking
def integrate(
    system: "str | System | None" = None,
    *,
    preset: str | None = None,
    config: "str | os.PathLike[str] | None" = None,
    initial: "Run | Trajectory | str | os.PathLike[str] | Mapping[str, Any] | None" = None,
    stage: str | Sequence[str] | None = None,
    after: "Run | Trajectory | str | os.PathLike[str] | None" = None,
    seed: int | None = None,
    until: Any = None,
    save_points: int | None = None,
    save_at: Any = None,
    rtol: float | None = None,
    atol: float | None = None,
    backend: str | None = None,
    solver: str | None = None,
    **parameters: Any,
) -> Any:
    """Integrate the ODEs of the order parameters of a system and return the trajectory; nothing is written.

    Arguments:
        system: Name of a system, path of a file that declares one, or a `System`; not needed if `after` or `initial` is
            a run.
        preset: A named parameter set of the system.
        config: A TOML file with options and a table [parameters]; arguments take precedence over it.
        initial: Initial state: an .npz file, a mapping of arrays, or a run of liao or of a declared model. For a run,
            its last state is used, and its parameters unless you give others.
        stage: A stage, several ("train,prune" or a list), or "all". By default the first stage with a clock.
        after: A run of this session or a stored run, which the new stages continue.
        seed: Seed of every random number (0).
        until: End time in the unit of the clock of the stage (see `run.clock`): a number, an expression in the
            parameters such as "2*sqrt(d)" (a string or a SymPy expression), or a mapping from stages to times.
        save_points: Number of equally spaced saved times, both ends included (201).
        save_at: The saved times themselves, increasing, instead of `save_points`; the run ends at the last one.
        rtol: Relative tolerance of the result (1e-8).
        atol: Absolute tolerance; the default depends on the size of the smallest initial entries.
        backend: Library that evaluates the right-hand side, "numba" or "jax".
        solver: The integrator (`odesim integrate --list-solvers`).  "euler" is gradient descent on the order
            parameters with step size `step`.
        parameters: Parameters of the system (`odesim.system(name)` lists them).

    Returns:
        A `Trajectory`. If you ask for several stages or continue a run, a list with a `Trajectory` for each stage. A
        numerical failure raises no error; it is reported in `outcome`.

    Raises:
        UsageError: The request is invalid.
        InterruptedRun: Ctrl-C was pressed; its `result` is the run up to its last good state.

    Example:
        >>> import odesim
        >>> run = odesim.integrate("liao", m=4, m_star=2, d=100, save_at=[1.0, 10.0, 40.0], seed=0)
        >>> run["gamma2"].shape, run.outcome.kind  # (time, expert, teacher)
        ((3, 4, 2), 'completed')
        >>> runs = odesim.integrate("liao", stage="train,prune", m=4, m_star=2, d=100, until=40.0, seed=0)
        >>> [run.origin.stage for run in runs]
        ['train', 'prune']
        >>> odesim.integrate(initial=runs[0], until=1.0).time[0]
        np.float64(0.0)
    """
    from odesim.ask import begin, flow
    from odesim.request.case import EULER, Case
    from odesim.request.trajectory import Stages
    from odesim.store import Held

    step = parameters.pop("step", None) if solver == EULER else None
    if not isinstance(stage, str | None):
        stage = ",".join(map(str, stage))
    if system is not None:
        system = chosen(system)
    system, initial, parameters = begin.from_run(system, initial, parameters, preset=preset, config=config)
    if system is not None or after is None:
        system = chosen(system)
        known(system, parameters, FLOW, "integrate")
    asked = flow.request(
        system, parameters, stage=stage, start=begin.started(after), preset=preset, config=config, initial=initial,
        seed=seed, until=until, save_points=save_points, save_at=save_at, rtol=rtol, atol=atol, backend=backend,
        solver=solver, step=step,
    )  # fmt: skip
    with watched(f"integrating {asked.name}") as progress:
        found = flow.run(asked, progress, Held())
    if isinstance(asked, Case):
        run = ended(found[0], asked)
        return whole([run], run)
    parts = [dataclasses.replace(asked, cases=asked.cases[: k + 1]) for k in range(len(found))]
    stages = Stages(ended(run, part) for run, part in zip(found, parts, strict=True))
    return whole(stages, stages)


@speaking
def simulate(
    system: "str | System | None" = None,
    *,
    method: str,
    step_size: float | None = None,
    batch: int | None = None,
    seeds: int | None = None,
    device: str = "auto",
    precision: str = "float64",
    fresh_initial: bool = False,
    population_loss: bool = False,
    preset: str | None = None,
    config: "str | os.PathLike[str] | None" = None,
    initial: "Run | Trajectory | str | os.PathLike[str] | Mapping[str, Any] | None" = None,
    stage: str | Sequence[str] | None = None,
    after: "Run | Trajectory | str | os.PathLike[str] | None" = None,
    seed: int | None = None,
    until: Any = None,
    save_points: int | None = None,
    save_at: Any = None,
    backend: str | None = None,
    **parameters: Any,
) -> Any:
    """Run finite-sample SGD of a system and return its trajectory; nothing is written.

    Arguments:
        system: Name of a system, path of a file that declares one, or a `System`.
        method: "explicit" for weights in d dimensions, or "compressed" for overlaps alone. Compressed SGD is exact in
            law, and its cost per step does not depend on d.
        step_size: Step size of SGD; by default that of the declared model.
        batch: Number of fresh samples per step; by default that of the declared model.
        seeds: Number of replicas (1, or that of the run that `after` continues).
        device: "auto", "cpu" or "gpu" (through JAX).
        precision: "float64", or "float32" for explicit SGD.
        fresh_initial: Draw initial weights for every replica; by default all replicas have the same start.
        population_loss: Save the population loss even if it costs as much as training: chen at P = 3, pruning with
            data=iid and data=distinct. All other systems always save it.
        preset, config, initial, stage, after, seed, until, backend: As for `integrate`. With several stages, every
            replica continues from the end of its previous stage.
        save_points: Number of saved times, at the nearest steps (201).
        save_at: The saved times themselves, increasing; states are those of the nearest steps.
        parameters: Parameters of the system.

    Returns:
        A `Trajectory` whose variables have the dimensions (seed, time, ...). It also has `step` (time,), the number of
        steps at each saved time. If you ask for several stages or continue a run, a list with a `Trajectory` for each
        stage.

    Raises:
        UsageError: The request is invalid.
        MissingError: There is no GPU.
        InterruptedRun: Ctrl-C was pressed; its `result` is the run up to its last saved state.

    Example:
        >>> import odesim
        >>> run = odesim.simulate("liao", method="compressed", step_size=0.01, batch=8, seeds=3, m=2, m_star=1,
        ...                       d=100, save_at=[0.5, 1.0])
        >>> run["gamma2"].shape, run.step.tolist()
        ((3, 2, 2, 1), [50, 100])
    """
    from odesim.ask import begin, sgd
    from odesim.request.trajectory import Stages
    from odesim.sgd.simulation import Simulation, refuse_tier
    from odesim.store import Held

    if not isinstance(stage, str | None):
        stage = ",".join(map(str, stage))
    if system is not None or after is None:
        system = chosen(system)
        _, initial, parameters = begin.from_run(system, initial, parameters, preset=preset, config=config)
        known(system, parameters, SGD, "simulate")
    wanted = sgd.stages(
        system, parameters, method=method, step_size=step_size, batch=batch, seeds=seeds, device=device,
        precision=precision, fresh_initial=fresh_initial, population_loss=population_loss, preset=preset,
        config=config, initial=initial, stage=stage, start=begin.started(after), seed=seed, until=until,
        save_points=save_points, save_at=save_at, backend=backend,
    )  # fmt: skip
    for one in (wanted,) if isinstance(wanted, Simulation) else wanted.cases:
        refuse_tier(one.case)
    with watched(f"simulating {wanted.name}") as progress:
        found = sgd.run(wanted, progress, Held())
    if isinstance(wanted, Simulation):
        made = ended(found[0], wanted)
        return whole([made], made)
    parts = [dataclasses.replace(wanted, cases=wanted.cases[: k + 1]) for k in range(len(found))]
    stages = Stages(ended(run, part) for run, part in zip(found, parts, strict=True))
    return whole(stages, stages)


def split_request(request: "Mapping[str, Any]", names: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split keyword arguments into options (those of every request, and `names`) and parameters of a system."""
    from odesim.request.case import EULER, OPTIONS

    options = {*OPTIONS, *names, "preset", "config", "initial"}
    if request.get("solver") != EULER:
        options -= {"step"}
    return (
        {name: value for name, value in request.items() if name in options},
        {name: value for name, value in request.items() if name not in options},
    )

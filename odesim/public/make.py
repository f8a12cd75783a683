"""To compute: flows, SGD, both beside each other, and grids of them.  Nothing is written unless a folder is named."""

import contextlib
import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from odesim.public.speak import chosen, known, speaking, trajectory_of
from odesim.public.watch import ended, stop, watched, whole

if TYPE_CHECKING:
    import xarray

    from derivations.contract import System
    from odesim.request.trajectory import Trajectory
    from odesim.store import Run
    from odesim.study.comparison import Comparison

CASE = ("preset", "config", "initial", "stage", "seed", "until", "save_points", "save_at", "backend")
FLOW = (*CASE, "rtol", "atol", "solver", "step", "after")
SGD = (*CASE, "method", "step_size", "batch", "seeds", "device", "precision", "fresh_initial", "population_loss")


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
    """Integrate the population dynamics of a system and return the trajectory; nothing is written.

    `parameters` are those of the system (`odesim.system(name)` lists them), the others the options of the
    command; `initial` is an .npz file, a mapping of arrays, or a run (of liao, or of a declared model), at whose last
    state this one starts, with its parameters unless they are given.  `until` may be an expression in the parameters
    ("2*sqrt(d)").  With `solver="euler"`, `step` is the step of gradient descent on the order parameters
    (`odesim.flow.recursion.euler`), and otherwise a parameter of the system.  Raises `UsageError` for a request that
    cannot be met; a numerical failure is the trajectory's `outcome`.

    Several stages (`stage="train,prune"`, or "all"), and stages that continue a run (`after`, one of this session or
    stored), return a list with a trajectory for each; `until` may then map stages to end times on their clock.

    >>> import odesim
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
    system: "str | System",
    *,
    method: str,
    step_size: float | None = None,
    batch: int | None = None,
    seeds: int = 1,
    device: str = "auto",
    precision: str = "float64",
    fresh_initial: bool = False,
    population_loss: bool = False,
    preset: str | None = None,
    config: "str | os.PathLike[str] | None" = None,
    initial: "Run | Trajectory | str | os.PathLike[str] | Mapping[str, Any] | None" = None,
    stage: str | None = None,
    seed: int | None = None,
    until: Any = None,
    save_points: int | None = None,
    save_at: Any = None,
    backend: str | None = None,
    **parameters: Any,
) -> "Trajectory":
    """Run finite-sample SGD, `method` "explicit" or "compressed"; nothing is written.

    Variables have the dimensions (seed, time, ...) with `seeds` replicas.  The other arguments are the options of
    `odesim simulate`.  With `population_loss` the loss of the flow's first tier is saved at every saved state even
    where it costs as much as the training (chen at P = 3: 20 ms a state; pruning with data=iid and distinct); other
    runs have their `loss` without being asked.
    Raises `UsageError` for a request that cannot be met.
    """
    from odesim.ask import begin, sgd
    from odesim.sgd.simulation import refuse_tier
    from odesim.sgd.simulation import simulate as run
    from odesim.store import Held

    own = chosen(system)
    _, initial, parameters = begin.from_run(own, initial, parameters, preset=preset, config=config)
    known(own, parameters, SGD, "simulate")
    wanted = sgd.request(
        own, parameters, method=method, step_size=step_size, batch=batch, seeds=seeds, device=device,
        precision=precision, fresh_initial=fresh_initial, population_loss=population_loss, preset=preset,
        config=config, initial=initial, stage=stage, seed=seed, until=until, save_points=save_points, save_at=save_at,
        backend=backend,
    )  # fmt: skip
    refuse_tier(wanted.case)
    with watched(f"simulating {own.name}") as progress:
        made = ended(run(wanted, progress, Held()), wanted)
    return whole([made], made)


@speaking
def compare(
    first: "Trajectory | Run | str | System",
    second: "Trajectory | Run | None" = None,
    *,
    method: str = "compressed",
    **request: Any,
) -> "Comparison":
    """Distances between two runs of one system on the times of the second, per replica, with bands.

    Two runs are compared as they are.  For a system both are made: SGD as `simulate` makes it, by `request`
    (`step_size`, `batch`, `seeds`, .., and parameters), and the flow beside it, which takes `rtol`, `atol`, `solver`
    and `step`; without `seeds` there are 5 replicas.  `summary()` says of every component whether the runs agree within
    a margin over the whole run (`odesim.study.agreement`).  Raises `UsageError` where clocks, components or sizes
    differ, and for a request that cannot be met.

    >>> import odesim
    >>> found = odesim.compare("liao", m=2, m_star=1, d=100, step_size=1e-3, batch=64, seeds=3, until=1.0, seed=0)
    >>> found.summary()["replicas"]
    3
    """
    from odesim.ask import begin, sgd
    from odesim.errors import UsageError
    from odesim.request.trajectory import Trajectory
    from odesim.store import Run

    if isinstance(first, Trajectory | Run) != (second is not None) or (second is not None and request):
        raise UsageError("compare takes two runs, or a system with the options of a simulation")
    if second is not None:
        from odesim.study import comparison

        both = [trajectory_of(run, "compare") for run in (first, second)]
        digests = [begin.digest_of_run(run) for run in (first, second)]
        return dataclasses.replace(comparison.compare(*both), asked=begin.compared(both[1], digests))
    system = chosen(first)
    options, parameters = _split(request, ("step_size", "batch", "seeds", "device", "precision", *sgd.FLOW))
    known(system, parameters, (*SGD, "rtol", "atol", "solver", "step"), "compare")
    made: Any = {"step_size": None, "batch": None, **options}
    pair = sgd.pair(system, parameters, method=method, **made)
    with watched(f"comparing flow and SGD of {system.name}") as progress:
        return dataclasses.replace(pair.run(progress), asked=pair.wanted)


@speaking
def observe(
    system: "str | System",
    weights: "str | os.PathLike[str] | Mapping[str, Any]",
    *,
    stage: str | None = None,
    **parameters: Any,
) -> "Trajectory":
    """Weights that were trained elsewhere as a trajectory of order parameters, which `compare` takes.

    `weights` (arrays or an .npz file) holds snapshots `w` (time, unit, d) of every slot, `w_star` (teacher, d), `time`.
    Raises `UsageError` for arrays that are missing, of shapes that disagree or not finite.

    >>> import numpy as np, odesim
    >>> system = odesim.declare(student={"unit": "erf(w)", "units": 2}, teacher={})
    >>> odesim.observe(system, {"w": np.ones((3, 2, 10)), "w_star": np.eye(10)[:1]})["M_ww"].shape
    (3, 2, 1)
    """
    from odesim.study import observation

    system = chosen(system)
    known(system, parameters, ("stage",), "observe")
    return observation.observe(system, weights, parameters, stage=stage)


@speaking
def sweep(
    system: "str | System",
    over: "Mapping[str, Any]",
    *,
    folder: "str | os.PathLike[str] | None" = None,
    workers: int = 1,
    scheduler: str = "local",
    **request: Any,
) -> "xarray.Dataset":
    """Flows, or SGD with `method=`, at every point of a grid, as one data set over the swept names.

    `over` maps parameters, "seed", or options of SGD to their values; `request` holds the other parameters and the
    options of `odesim sweep`.  Cells that `folder` holds already are not computed again, and `load` reads it; without
    one nothing is kept.  A cell that fails is one whose `outcome` says so.  Raises `UsageError` for anything that a
    cell refuses.

    >>> import odesim
    >>> data = odesim.sweep("liao", {"d": [100, 1000], "seed": [0, 1]}, m=2, m_star=1, tier="riccati", until=5.0)
    >>> dict(data["outcome"].sizes)
    {'d': 2, 'seed': 2}
    """
    from pathlib import Path

    from odesim.ask import sweep as ask
    from odesim.request.parse import whole_number
    from odesim.store.claim import claimed
    from odesim.sweeps import swept

    system = chosen(system)
    over = _swept(over)
    options, parameters = _split(request, ("method", "step", *ask.SGD))
    known(system, parameters, (*FLOW[:-1], *SGD, "folder", "workers", "scheduler"), "sweep")
    wanted = ask.request(system, over, parameters, **options)
    place = Path(folder) if folder is not None else None
    crew = whole_number(workers, "--workers")
    with claimed(place) if place is not None else contextlib.nullcontext():
        try:
            with watched(f"sweeping {system.name}") as progress:
                data = ask.run(wanted, place, scheduler=scheduler, workers=crew, report=progress)
        except KeyboardInterrupt:
            kept = (
                f"the finished runs are kept in {place}, and the same call goes on"
                if place
                else "nothing is kept: a folder= keeps what is finished"
            )
            stop(f"interrupted; {kept}", None)
        if place is not None:
            swept.save(wanted, data, place, keep=True)
    return data


def _swept(over: Any) -> dict[str, list[Any]]:
    """The values of every swept name as a list: lists, tuples, ranges, and arrays of one dimension.

    Raises `UsageError` for anything else.
    """
    import numpy as np

    from odesim.errors import UsageError

    refused = UsageError('over= maps names to lists or arrays of values, such as {"d": [100, 1000]}')
    if not isinstance(over, Mapping):
        raise refused
    lists = {}
    for name, values in over.items():
        if getattr(values, "ndim", 0) == 1:  # of NumPy, xarray or pandas
            values = np.asarray(values).tolist()
        if not isinstance(values, Sequence) or isinstance(values, str | bytes):
            raise refused
        lists[str(name)] = list(values)
    return lists


def _split(request: "Mapping[str, Any]", names: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options, those of every request and those called `names`, and parameters of a system."""
    from odesim.request.case import EULER, OPTIONS

    options = {*OPTIONS, *names, "preset", "config", "initial"}
    if request.get("solver") != EULER:
        options -= {"step"}
    return (
        {name: value for name, value in request.items() if name in options},
        {name: value for name, value in request.items() if name not in options},
    )

"""Three independent accounts of the learning dynamics of mixtures of experts, and whether they agree.

Importing this package is light: JAX, SymPy, numba, diffrax and matplotlib load when first used.

>>> import odesim
>>> run = odesim.integrate("liao", m=5, m_star=2, d=100, until=1.0, seed=0)
>>> run.outcome.kind
'completed'

To look: `systems`, `system`, `derive`, `declare`, `linearise`, `predict`.  To compute: `integrate`, `simulate`,
`compare`, `sweep`, `Flow`.  To judge and keep: `verify`, `figures`, `report`, `save`, `load`.  What they return is a
`System`, `Trajectory`, `Run`, `Comparison` or `Verdicts`; a mistake of the caller is a `UsageError`, one sentence.
"""

from typing import TYPE_CHECKING, Any

from odesim.public.keep import figures, load, report, save, verify
from odesim.public.look import declare, derive, linearise, predict, system, systems
from odesim.public.make import compare, integrate, simulate, sweep
from odesim.version import __version__

if TYPE_CHECKING:
    from derivations.contract import System, UsageError
    from odesim.errors import MissingError, NumericalError
    from odesim.evidence.verdicts import Verdicts
    from odesim.request.trajectory import Trajectory
    from odesim.small.hitting import Flow
    from odesim.store import Run
    from odesim.study.comparison import Comparison

__all__ = [
    "Comparison",
    "Flow",
    "MissingError",
    "NumericalError",
    "Run",
    "System",
    "Trajectory",
    "UsageError",
    "Verdicts",
    "__version__",
    "compare",
    "declare",
    "derive",
    "figures",
    "integrate",
    "linearise",
    "load",
    "observe",
    "predict",
    "report",
    "save",
    "simulate",
    "sweep",
    "system",
    "systems",
    "verify",
]

<<<<<<< HEAD

def systems() -> list[str]:
    """The names of all systems: ours, and those that installed packages register (`odesim.systems` entry points)."""
    import derivations

    return derivations.names()


def system(name: str) -> "System":
    """The system called `name`, or that a reference leads to: "module:SYSTEM", "path/to/file.py:SYSTEM".

    Raises `UsageError`, with the nearest name, if there is none, and for a reference that leads nowhere.

    >>> import odesim
    >>> odesim.system("derivations.liao:SYSTEM") is odesim.system("liao")
    True
    """
    from odesim.request.case import find_system

    return find_system(name)


def derive(
    system: "str | System", format: str = "text", *, preset: str | None = None, stage: str | None = None,
    **parameters: Any,
) -> str:  # fmt: skip
    """The equations of motion of a tier, with every definition that they need, as the program evaluates them.

    `format` is "text", "latex" (a document), "python" (a file that runs alone with NumPy and SciPy), "kernels" (the
    module that is compiled) or "explanation" (why the equations close, by which methods, with what error);
    `parameters` are those of the system, `tier` among them.  Raises `UsageError` for a request that cannot be met.

    >>> import odesim
    >>> page = odesim.derive("pruning", tier="homogeneous")
    >>> page.splitlines()[0]
    'pruning, tune, homogeneous: all irrelevant patterns alike, two numbers per expert'
    """
    from odesim.request.case import Case
    from odesim.show.page.render import explain, render

    case = Case.build(system, parameters, preset=preset, stage=stage)
    if format == "explanation":
        return explain(case.system, case.parameters, case.stage)
    return render(case.system, case.parameters, format, case.stage)


def integrate(
    system: "str | System | None" = None,
    *,
    preset: str | None = None,
    config: "str | os.PathLike[str] | None" = None,
    initial: "str | os.PathLike[str] | Mapping[str, Any] | None" = None,
    stage: str | None = None,
    after: "Run | str | os.PathLike[str] | None" = None,
    seed: int | None = None,
    until: "float | Mapping[str, float] | str | None" = None,
    save_points: int | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    backend: str | None = None,
    solver: str | None = None,
    **parameters: Any,
) -> Any:
    """Integrate the population dynamics of a system and return the trajectory; nothing is written.

    `parameters` are those of the system (`odesim systems NAME` lists them), the others the options of the
    command; `initial` is an .npz file or a mapping of arrays.  With `solver="euler"`, `step` is the step of gradient
    descent on the order parameters (`odesim.flow.recursion.euler`), and otherwise a parameter of the system.  Raises
    `UsageError` for a request that cannot be met; a numerical failure is the trajectory's `outcome`.

    Several stages (`stage="train,prune"`, or "all"), and stages that continue a stored run (`after`, a folder or what
    `load` gives), return a list with a trajectory for each; `until` may then map stages to end times on their clock.

    >>> import odesim
    >>> runs = odesim.integrate("liao", stage="train,prune", m=4, m_star=2, d=100, until=40.0, seed=0)
    >>> [run.origin.stage for run in runs]
    ['train', 'prune']
    """
    from odesim.ask import flow
    from odesim.request.case import EULER, Case

    step = parameters.pop("step", None) if solver == EULER else None
    asked = flow.request(
        system, parameters, stage=stage, start=after, preset=preset, config=config, initial=initial, seed=seed,
        until=until, save_points=save_points, rtol=rtol, atol=atol, backend=backend, solver=solver, step=step,
    )  # fmt: skip
    found = flow.run(asked)
    return found[0] if isinstance(asked, Case) else found


def declare(**tables: Any) -> "System":
    """A system from a declaration: the tables of a file that declares a model, as keyword arguments.

    `student`, `teacher`, `training`, `start`, `parameters` are mappings, `event` and `claim` lists of them; expressions
    are texts, or SymPy expressions.  What comes back goes wherever the name of a system goes.  Raises `UsageError` with
    one sentence for what is wrong.

    >>> import odesim
    >>> committee = odesim.declare(student={"unit": "He(2, w)", "units": 2}, teacher={"units": 1})
    >>> committee.name
    'declared'
    """
    from derivations.declare import reading, system

    return system.system(reading.declaration(reading.plain(tables)))


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
    initial: "str | os.PathLike[str] | Mapping[str, Any] | None" = None,
    stage: str | None = None,
    seed: int | None = None,
    until: float | None = None,
    save_points: int | None = None,
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
    from odesim.ask import sgd
    from odesim.sgd.simulation import refuse_tier
    from odesim.sgd.simulation import simulate as run

    wanted = sgd.request(
        system, parameters, method=method, step_size=step_size, batch=batch, seeds=seeds, device=device,
        precision=precision, fresh_initial=fresh_initial, population_loss=population_loss, preset=preset,
        initial=initial, stage=stage, seed=seed, until=until, save_points=save_points, backend=backend,
    )  # fmt: skip
    refuse_tier(wanted.case)
    return run(wanted)


def linearise(
    source: "Case | Trajectory | Run", time: float | None = None, *, state: "Mapping[str, Any] | None" = None,
    method: Any = None,
) -> "Linearisation":  # fmt: skip
    """Jacobian, spectrum and (by `.stationary()`) the nearby stationary point of a smooth flow.

    At `time` of a run or case, or with components replaced by those of `state`; `odesim.study.linearisation.linearise`
    has the details.  Raises `UsageError` where the equations are no smooth flow.
    """
    from odesim.study.linearisation import linearise as run

    return run(source, time, state=state, method=method)


def predict(
    run: "Trajectory | Run", inputs: "Mapping[str, Any]", time: float | None = None
) -> "Mapping[str, Variable]":
    """What the network of a run answers on given samples at a saved time (the last unless given): outputs, margins.

    `inputs` are the arrays that the system describes a sample by (`odesim.study.prediction.predict` lists them).
    Raises `UsageError` for systems without a prediction, unknown times, and samples that do not fit.
    """
    from odesim.study.prediction import predict as answer

    return answer(run, inputs, time)


def compare(
    first: "Trajectory | str | System", second: "Trajectory | None" = None, *, method: str = "compressed",
    **request: Any,
) -> "Comparison":  # fmt: skip
    """Distances between two runs of one system on the times of the second, per replica, with bands.

    Two trajectories are compared as they are.  For a system both are made: SGD as `simulate` makes it, by `request`
    (`step_size`, `batch`, `seeds`, .., and parameters), and the flow beside it, which takes `rtol`, `atol`, `solver`
    and `step`.  Raises `UsageError` where clocks, components or sizes differ, and for a request that cannot be met.

    >>> import odesim
    >>> found = odesim.compare("liao", m=2, m_star=1, d=100, step_size=1e-3, batch=64, seeds=3, until=1.0, seed=0)
    >>> found.summary()["replicas"]
    3
    """
    from derivations.contract import UsageError
    from odesim.request.trajectory import Trajectory

    if isinstance(first, Trajectory) != (second is not None) or (second is not None and request):
        raise UsageError("compare takes two runs, or a system with the options of a simulation")
    if second is not None:
        from odesim.study import comparison

        return comparison.compare(first, second)  # type: ignore[arg-type]
    from odesim.ask import sgd

    options, parameters = _split(request, ("step_size", "batch", "seeds", "device", "precision", *sgd.FLOW))
    made: Any = {"step_size": None, "batch": None, **options}
    return sgd.pair(first, parameters, method=method, **made).run()  # type: ignore[arg-type]


def observe(
    system: "str | System", weights: "str | os.PathLike[str] | Mapping[str, Any]", *, stage: str | None = None,
    **parameters: Any,
) -> "Trajectory":  # fmt: skip
    """Weights that were trained elsewhere as a trajectory of order parameters, which `compare` takes.

    `weights` (arrays or an .npz file) holds snapshots `w` (time, unit, d) of every slot, `w_star` (teacher, d), `time`.
    Raises `UsageError` for arrays that are missing, of shapes that disagree or not finite.

    >>> import numpy as np, odesim
    >>> system = odesim.declare(student={"unit": "erf(w)", "units": 2}, teacher={})
    >>> odesim.observe(system, {"w": np.ones((3, 2, 10)), "w_star": np.eye(10)[:1]})["M_ww"].shape
    (3, 2, 1)
    """
    from odesim.study import observation

    return observation.observe(system, weights, parameters, stage=stage)


def sweep(
    system: "str | System", over: "Mapping[str, Sequence[Any]]", *, folder: "str | os.PathLike[str] | None" = None,
    workers: int = 1, scheduler: str = "local", **request: Any,
) -> "xarray.Dataset":  # fmt: skip
    """Flows, or SGD with `method=`, at every point of a grid, as one data set over the swept names.

    `over` maps parameters, "seed", or options of SGD to their values; `request` holds the other parameters and the
    options of `odesim sweep`.  Cells that `folder` holds already are not computed again; without one nothing is kept.
    A cell that fails is one whose `outcome` says so.  Raises `UsageError` for anything that a cell refuses.

    >>> import odesim
    >>> data = odesim.sweep("liao", {"d": [100, 1000], "seed": [0, 1]}, m=2, m_star=1, tier="riccati", until=5.0)
    >>> dict(data["outcome"].sizes)
    {'d': 2, 'seed': 2}
    """
    from pathlib import Path

    from odesim.ask import sweep as ask

    options, parameters = _split(request, ("method", "step", *ask.SGD))
    wanted = ask.request(system, over, parameters, **options)
    return ask.run(wanted, Path(folder) if folder is not None else None, scheduler=scheduler, workers=workers)


def _split(request: "Mapping[str, Any]", names: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options, those of every request and those called `names`, and parameters of a system."""
    from odesim.request.case import EULER, OPTIONS

    known = {*OPTIONS, *names, "preset", "config", "initial"}
    if request.get("solver") != EULER:
        known -= {"step"}
    return (
        {name: value for name, value in request.items() if name in known},
        {name: value for name, value in request.items() if name not in known},
    )


def verify(
    system: "str | System",
    claims: "Iterable[str] | None" = None,
    *,
    effort: str = "quick",
    seed: int = 0,
    backend: str = "numba",
    workers: int = 1,
) -> "list[Verdict]":
    """The verdicts on the claims of a system (all of them, or those with the given ids); nothing is written.

    With several `workers` as many processes judge them, a module of claims at a time.
    """
    from odesim.evidence import laboratory, verification
    from odesim.evidence.workers import judged
    from odesim.request import case

    chosen = case.find_system(system) if isinstance(system, str) else system
    level: Any = effort
    lab = laboratory.Laboratory(chosen, level, backend, seed)
    forms = [(claim, form) for claim in verification.claims_of(chosen, claims) for form in claim.variants]
    found = {(verdict.claim, verdict.variant): verdict for verdict in judged(lab, forms, workers, "local")}
    return [found[claim.id, form.name] for claim, form in forms]


def figures(
    system: str | None = None, only: str | None = None, *, folder: "str | os.PathLike[str] | None" = None,
    quick: bool = False,
) -> "list[Path]":  # fmt: skip
    """Draw the published figures and ours, of one system or of all, and return their files.

    Runs that they lack are made first and kept; `quick` makes smaller ones, and the captions say so.  Raises
    `MissingError` where the figures are not beside the package, `UsageError` for a figure that is not there.
    """
    from pathlib import Path

    from odesim.show import figures as maker

    return maker.make(maker.modules(system, only), Path(folder) if folder is not None else None, quick=quick)


def report(
    folders: "Iterable[str | os.PathLike[str]]", out: "str | os.PathLike[str]", *, overwrite: bool = False
) -> "Path":
    """Write verdicts, figures and runs of some folders on one self-contained HTML page, and return its path."""
    from odesim.show import report as maker

    return maker.write([os.fspath(folder) for folder in folders], out, overwrite)


def load(folder: "str | os.PathLike[str]") -> Any:
    """What is stored in `folder`, its file hashes verified.

    A `Run` (manifest, summary and trajectory), the `xarray.Dataset` of a sweep, or the list of verdicts (as
    dictionaries) of `odesim verify`.  Raises `UsageError` for a folder that is missing, unfinished or damaged.
    """
    from pathlib import Path

    from odesim import store
    from odesim.store.folder import require

    kind = require(folder, "run", "sweep", "verdicts", instead="`odesim show` lists the figures")
    if kind == "sweep":
        from odesim.sweeps import swept

        return swept.load(Path(folder))
    if kind == "verdicts":
        from odesim.store.verdicts import stored

        return stored(Path(folder))["verdicts"]
    return store.load(folder)
=======
_TYPES = {
    "Comparison": "odesim.study.comparison",
    "Flow": "odesim.small.hitting",
    "MissingError": "odesim.errors",
    "NumericalError": "odesim.errors",
    "Run": "odesim.store",
    "System": "derivations.contract",
    "Trajectory": "odesim.request.trajectory",
    "UsageError": "derivations.contract",
    "Verdicts": "odesim.evidence.verdicts",
}
"""Where the types are, which load NumPy and are therefore imported when first used."""


def __dir__() -> list[str]:
    return sorted(__all__)
>>>>>>> work-d


ELSEWHERE = {
    "Trajectory": "odesim.request.trajectory", "Flow": "odesim.small.hitting", "UsageError": "derivations.contract",
}  # fmt: skip


def __getattr__(name: str) -> Any:
<<<<<<< HEAD
    if name not in ELSEWHERE:
        raise AttributeError(f"module 'odesim' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(ELSEWHERE[name]), name)
=======
    if name in _TYPES:
        import importlib

        return getattr(importlib.import_module(_TYPES[name]), name)
    raise AttributeError(f"module 'odesim' has no attribute {name!r}")
>>>>>>> work-d

"""The options that several commands share, declared once, and the groups in which commands take them."""

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer


def named_systems() -> list[str]:
    """Return the names of systems, for the completion of the shell."""
    import derivations

    return derivations.names()


SystemName = Annotated[
    str,
    typer.Option(
        "--system", "-s", metavar="NAME|FILE", help="The system (see `odesim systems`).", autocompletion=named_systems
    ),
]
SystemOrFrom = Annotated[
    str | None,
    typer.Option(
        "--system", "-s", metavar="NAME|FILE", help="The system (see `odesim systems`) [default: that of --from].",
        autocompletion=named_systems,
    ),
]  # fmt: skip
Parameters = Annotated[
    list[str] | None,
    typer.Option("--parameter", "-p", metavar="KEY=VALUE", help="A parameter, e.g. -p m=25 -p d=1e6; repeatable."),
]
Preset = Annotated[str | None, typer.Option(metavar="NAME", help="A named parameter set of the system.")]
Config = Annotated[
    str | None,
    typer.Option(metavar="FILE.toml", help="Options and, in [parameters], parameters from a file."),
]
InitialFile = Annotated[
    str | None,
    typer.Option("--initial", metavar="FILE.npz", help="Initial arrays; sizes come from the file."),
]
Seed = Annotated[str | None, typer.Option(metavar="N", help="Seed of every random number [default: 0].")]
SeedOrFrom = Annotated[
    str | None, typer.Option(metavar="N", help="Seed of every random number [default: 0, or that of --from].")
]
StageName = Annotated[
    str | None, typer.Option("--stage", metavar="NAME[,NAME..]|all", help="Stages to run [default: the first].")
]
From = Annotated[str | None, typer.Option("--from", metavar="RUN_DIR", help="Continue from the end of a stored run.")]
Until = Annotated[
    str | None,
    typer.Option(
        metavar="T|STAGE=T,..",
        help="End time, a number or an expression such as '2*sqrt(d)', or one for each stage [default: its horizon].",
    ),
]
SavePoints = Annotated[
    str | None,
    typer.Option(
        metavar="N",
        help="Number of equally spaced saved times [default: 201]; some systems add early ones to the default.",
    ),
]
SaveAt = Annotated[
    str | None,
    typer.Option(metavar="T,T,..", help="Saved times, increasing; the run ends at the last [default: --save-points]."),
]
Rtol = Annotated[str | None, typer.Option(metavar="R", help="Relative tolerance [default: 1e-8].")]
Atol = Annotated[
    str | None,
    typer.Option(metavar="A", help="Absolute tolerance [default: depends on the size of the initial state]."),
]
Backend = Annotated[
    str | None, typer.Option(metavar="numba|jax", help="Library that evaluates the right-hand side [default: numba].")
]
Solver = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The integrator (`odesim integrate --list-solvers`) [default: the best for the case].",
    ),
]
Step = Annotated[str | None, typer.Option(metavar="H", help="The step of --solver euler: gradient descent at step H.")]
Out = Annotated[
    str | None,
    typer.Option(metavar="DIR", help="Output folder, created if missing [default: runs/<system>-<digest>]."),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace a finished run in --out.")]
Resume = Annotated[
    bool,
    typer.Option("--resume", help="Continue an unfinished run of the same request; if the run is finished, read it."),
]
NoFigures = Annotated[bool, typer.Option("--no-figures", help="Draw no pictures.")]
Threads = Annotated[int | None, typer.Option(metavar="N", help="Number of threads [default: all cores].")]
Scheduler = Annotated[
    str,
    typer.Option("--scheduler", metavar="local|ADDRESS", help="Local processes, or the address of a dask scheduler."),
]
Workers = Annotated[int | None, typer.Option(metavar="N", help="Number of processes [default: one per core].")]
ListSolvers = Annotated[bool, typer.Option("--list-solvers", help="List the integrators, and integrate nothing.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the resolved request and folder; compute nothing.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print one line and no progress.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of a failure.")]
OptionalSystem = Annotated[
    str, typer.Option("--system", "-s", metavar="NAME|FILE", help="The system (or give two run folders).")
]
AnyFolder = Annotated[
    str, typer.Argument(metavar="DIR", help="A folder of a run, a sweep, verdicts, figures or an answer.")
]
RunOrSweep = Annotated[str, typer.Argument(metavar="DIR", help="A folder of a run, a sweep or an answer.")]
OptionalMethod = Annotated[
    str | None,
    typer.Option(
        "--method",
        metavar="explicit|compressed",
        help="Train weights, or only their overlaps [default: compressed; both if the inputs come from a file].",
    ),
]
Method = Annotated[
    str,
    typer.Option(
        "--method",
        metavar="explicit|compressed",
        help="Train weights in d dimensions, or only their overlaps (exact in law).",
    ),
]
StepSize = Annotated[
    str | None,
    typer.Option("--step-size", metavar="E", help="Step size of SGD [default: a declared model's; others need it]."),
]
Batch = Annotated[
    str | None,
    typer.Option("--batch", metavar="B", help="Samples per step [default: a declared model's; others need it]."),
]
Seeds = Annotated[str | None, typer.Option("--seeds", metavar="K", help="Number of replicas [default: 1; compare: 5].")]
Device = Annotated[str, typer.Option("--device", metavar="auto|cpu|gpu", help="Device of SGD; a GPU needs JAX.")]
Precision = Annotated[
    str,
    typer.Option(
        "--precision", metavar="float64|float32", help="Precision of explicit SGD; all other methods use float64."
    ),
]
FreshInitial = Annotated[
    bool,
    typer.Option(
        "--fresh-initial", help="Draw new initial weights for every replica [default: all replicas start alike]."
    ),
]
PopulationLoss = Annotated[
    bool,
    typer.Option("--population-loss", help="Save the population loss even if it costs as much as training (chen)."),
]
Measures = Annotated[
    list[str] | None,
    typer.Option("--of", metavar="MEASURE", help="'final R' or 'first time R >= c'; repeatable."),
]
TwoRuns = Annotated[list[str] | None, typer.Argument(metavar="[RUN_DIR RUN_DIR]", help="Two stored runs.")]

Group = Mapping[str, tuple[Any, Any]]
"""Options by name: what they are, and their default."""
CASE: Group = {
    "preset": (Preset, None), "config": (Config, None), "initial": (InitialFile, None), "seed": (Seed, None),
    "stage": (StageName, None), "until": (Until, None),
}  # fmt: skip
"""Options that determine the flow, its start and its end."""
SAVED: Group = {"save_points": (SavePoints, None), "save_at": (SaveAt, None)}
REQUEST: Group = {
    **CASE, **SAVED, "rtol": (Rtol, None), "atol": (Atol, None), "backend": (Backend, None), "solver": (Solver, None),
}  # fmt: skip
"""Options of a run besides its parameters: those of `Case.build`."""
CONTINUED: Group = {**REQUEST, "seed": (SeedOrFrom, None)}
"""Options of a run that may continue a stored one."""
EULER: Group = {"step": (Step, None)}
TRAINING: Group = {
    "step_size": (StepSize, None), "batch": (Batch, None), "seeds": (Seeds, None), "device": (Device, "auto"),
    "precision": (Precision, "float64"),
}  # fmt: skip
"""Options of SGD."""
FRESH: Group = {"fresh_initial": (FreshInitial, False)}
LOSS: Group = {"population_loss": (PopulationLoss, False)}
FOLDER: Group = {"out": (Out, None), "overwrite": (Overwrite, False)}
RESUMED: Group = {"resume": (Resume, False)}
DRAWN: Group = {"no_figures": (NoFigures, False), "threads": (Threads, None)}
DRY: Group = {"dry_run": (DryRun, False)}
SAID: Group = {"json": (AsJson, False), "quiet": (Quiet, False), "debug": (Debug, False)}
"""Options of the output."""


def takes(*groups: Group) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Decorator that adds the options of some groups to a command. The command receives them as `**given`.

    >>> @takes(SAID)
    ... def command(name: str, **given: Any) -> int:
    ...     return len(given)
    >>> list(inspect.signature(command).parameters)
    ['name', 'json', 'quiet', 'debug']
    """

    def declared(command: Callable[..., int]) -> Callable[..., int]:
        own = [p for p in inspect.signature(command).parameters.values() if p.kind is not p.VAR_KEYWORD]
        shared = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
            for group in groups
            for name, (kind, default) in group.items()
        ]
        signature = inspect.Signature([*own, *shared], return_annotation=int)
        command.__signature__ = signature  # type: ignore[attr-defined]
        return command

    return declared


def of(given: Mapping[str, Any], *groups: Group) -> dict[str, Any]:
    """Return the given options that belong to some groups."""
    return {name: given[name] for group in groups for name in group}

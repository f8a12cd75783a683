"""Mistakes in the words of Python: sentences written for the command line name `until=`, not `--until`."""

import dataclasses
import functools
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from derivations.contract import System

P = ParamSpec("P")
R = TypeVar("R")

WORDS = "euler|explicit|compressed|all|numba|jax|auto|cpu|gpu|float64|float32|text|flow"
"""Values of options that are words in sentences; in Python they stand between quotes."""
OPTION = re.compile(rf"--([a-z][a-z-]*)(?:[ =]((?:\d[\w.+-]*|{WORDS})(?![\w-])|(?:RUN_DIR|DIR)))?")
RENAMED = {"from": "after", "out": "folder", "claim": "claims", "config": "config"}
"""Options that have another name in Python."""
WHOLE = (
    ("Missing option '--system' (or --from RUN_DIR, which says it)", "a system is missing: its name, or after=run"),
    ("Missing option '--system'", "a system is missing: give its name"),
    ("--stage all", 'stage="all"'),
    ("--until NAME=T,NAME=T", 'until={"NAME": T, ..}'),
    ("--overwrite replaces", "overwrite=True replaces"),
    ("--save-points 101", "save_points=101"),
    ("--step-size 1e-3 --batch 256", "step_size=1e-3, batch=256"),
    ("-p NAME=VALUE", "NAME=VALUE"),
)


def in_python(sentence: str) -> str:
    """A sentence about options as one about arguments.

    >>> in_python("--save-points must be at least 2; give --method compressed, or --from RUN_DIR and -p d=100")
    'save_points= must be at least 2; give method="compressed", or after=run and d=100'
    """
    for before, after in WHOLE:
        sentence = sentence.replace(before, after)
    return re.sub(r"(?<![\w-])-p (?=\w)", "", OPTION.sub(_argument, sentence))


def _argument(found: "re.Match[str]") -> str:
    """One option as an argument, with the value that stands behind it."""
    name, value = found[1].replace("-", "_"), found[2] or ""
    if value in ("RUN_DIR", "DIR"):
        value = "run" if value == "RUN_DIR" else "folder"
    elif value and not value[0].isdigit():
        value = f'"{value}"'
    return f"{RENAMED.get(name, name)}={value}"


def speaking(function: Callable[P, R]) -> Callable[P, R]:
    """A public function whose `UsageError`s name arguments; what else it raises is left alone."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        from derivations.contract import UsageError

        try:
            return function(*args, **kwargs)
        except UsageError as error:
            error.args = (in_python(str(error)), *error.args[1:])
            raise

    return call


def chosen(system: Any) -> "System":
    """The system that is meant: by name, by reference or by path, or itself.  Raises `UsageError` for anything else."""
    from derivations.contract import System, UsageError
    from odesim.request.case import find_system

    if isinstance(system, System):
        return system
    if isinstance(system, os.PathLike):
        system = os.fspath(system)
    if not isinstance(system, str):
        said = "a system is missing" if system is None else f"a system is expected, but {_short(system)} was given"
        raise UsageError(f'{said}: give its name, such as "liao", or a System; odesim.systems() lists them')
    return find_system(system)


def known(system: "System", given: Mapping[str, Any], options: Iterable[str], what: str) -> None:
    """Raise `UsageError` for the first name that is neither a parameter of the system nor an option of `what`."""
    from derivations.contract import UsageError
    from odesim.request.parse import nearest

    parameters = [field.name for field in dataclasses.fields(system.parameters)]
    for name in given:
        if name not in parameters:
            options = [option for option in options if option not in ("system", "parameters", "request")]
            near = nearest(name, [*parameters, *options])
            if not near.startswith("did you mean"):
                near = f"parameters of {system.name}: {', '.join(parameters)}; options: {', '.join(options)}."
            raise UsageError(f"{what} has no argument {name!r}; {near}")


def trajectory_of(run: Any, what: str) -> Any:
    """The trajectory of a run, stored or not.  Raises `UsageError` for anything else."""
    from derivations.contract import UsageError
    from odesim.request.trajectory import Trajectory
    from odesim.store import Run

    if isinstance(run, Run):
        return run.trajectory
    if isinstance(run, Trajectory):
        return run
    raise UsageError(f"{what} needs a run, such as odesim.integrate(..) or odesim.load(folder), but got {_short(run)}")


def _short(value: Any) -> str:
    """What was given, in a few characters."""
    text = repr(value)
    return text if len(text) <= 60 else f"a {type(value).__name__}"

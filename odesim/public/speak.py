"""Messages for Python users: a sentence written for the command line names `until=` in place of `--until`."""

import dataclasses
import functools
import inspect
import numbers
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from derivations.contract import System

P = ParamSpec("P")
R = TypeVar("R")

WORDS = "euler|explicit|compressed|all|numba|jax|auto|cpu|gpu|float64|float32|text|python|flow"
"""Values of options that are ordinary words; in messages for Python they are quoted."""
OPTION = re.compile(rf"--([a-z][a-z-]*)(?:[ =]((?:\d[\w.+-]*|{WORDS})(?![\w-])|(?:RUN_DIR|DIR)))?")
RENAMED = {"from": "after", "out": "folder", "claim": "claims", "config": "config"}
"""Options that have another name in Python."""
WHOLE = (
    ("Missing option '--system' (or --from RUN_DIR, which implies it)", "a system is missing: its name, or after=run"),
    ("Missing option '--system'", "a system is missing: give its name"),
    ("--stage all", 'stage="all"'),
    ("--until NAME=T,NAME=T", 'until={"NAME": T, ..}'),
    ("--no-compare makes", "compared=False makes"),
    ("--overwrite replaces", "overwrite=True replaces"),
    ("--save-points 101", "save_points=101"),
    ("--step-size 1e-3 --batch 256", "step_size=1e-3, batch=256"),
    ("-p NAME=VALUE", "NAME=VALUE"),
)
AXIS = re.compile(r"--over (\w+) (?=must|needs|is )")
"""Beginning of a message on the values of one swept name."""


def in_python(sentence: str) -> str:
    """Rewrite a sentence about options as one about arguments.

    >>> in_python("--save-points must be at least 2; give --method compressed, or --from RUN_DIR and -p d=100")
    'save_points= must be at least 2; give method="compressed", or after=run and d=100'
    >>> in_python("--over d must be a whole number")
    "over['d'] must be a whole number"
    """
    for before, after in WHOLE:
        sentence = sentence.replace(before, after)
    sentence = AXIS.sub(r"over['\1'] ", sentence)
    return re.sub(r"(?<![\w-])-p (?=\w)", "", OPTION.sub(_argument, sentence))


def _argument(found: "re.Match[str]") -> str:
    """Rewrite one option and its value as an argument."""
    name, value = found[1].replace("-", "_"), found[2] or ""
    if value in ("RUN_DIR", "DIR"):
        value = "run" if value == "RUN_DIR" else "folder"
    elif value and not value[0].isdigit():
        value = f'"{value}"'
    return f"{RENAMED.get(name, name)}={value}"


def speaking(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator of public functions whose `UsageError`s name arguments. Other exceptions are unchanged.

    Missing, unknown or wrongly typed arguments raise `UsageError` before anything is computed. Until the function
    returns, JAX computes in float64 (`odesim.machine.device.double`).
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        from derivations.contract import UsageError
        from odesim.machine.device import double

        try:
            require_types(function.__name__, arguments_of(function.__name__, signature, args, kwargs))
            with double():
                return function(*args, **kwargs)
        except UsageError as error:
            error.args = (in_python(str(error)), *error.args[1:])
            raise

    return call


def arguments_of(
    what: str, signature: inspect.Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments of a call by name. Raises `UsageError` for missing, unknown and repeated arguments."""
    from derivations.contract import UsageError
    from odesim.request.parse import nearest

    named = {p.name: p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD}
    free = len(named) < len(signature.parameters)  # it takes parameters of a system
    unknown = [name for name in kwargs if name not in named]
    if unknown and not free:
        hint = nearest(unknown[0], named) if named else "it takes none."
        raise UsageError(f"{what} has no argument {unknown[0]!r}; {hint}")
    try:
        bound = signature.bind_partial(*args, **kwargs).arguments
    except TypeError as error:
        takes = ", ".join(named) or "none"
        raise UsageError(f"{what}: {error}; its arguments are {takes}") from None
    missing = [name for name, p in named.items() if p.default is p.empty and name not in bound]
    if missing:
        examples = "; ".join(f"{name}={EXAMPLES[name]}" for name in missing if name in EXAMPLES)
        raise UsageError(f"{what} needs {', '.join(missing)}" + (f": give {examples}" if examples else ""))
    return {name: value for name, value in {**bound, **kwargs}.items() if name in named or name in kwargs}


EXAMPLES = {
    "system": '"liao", say (odesim.systems() lists them)',
    "name": '"liao", say (odesim.systems() lists them)',
    "method": '"explicit" or "compressed"',
    "of": '"final error", say',
    "over": '{"d": [100, 1000]}, say',
    "source": "a run, such as odesim.integrate(..)",
    "run": "a run, such as odesim.integrate(..)",
    "result": "a run, such as odesim.integrate(..)",
    "first": 'a run, or a system such as "liao"',
    "folder": "the path of a folder",
}
"""Examples of arguments, for messages on missing arguments."""
WORD_ARGUMENTS = (
    "format",
    "preset",
    "method",
    "device",
    "precision",
    "backend",
    "solver",
    "scheduler",
    "effort",
    "only",
    "vary",
    "minimise",
)
NUMBER_ARGUMENTS = ("step_size", "rtol", "atol")
FLAG_ARGUMENTS = ("band", "fresh_initial", "population_loss", "overwrite", "pictures", "quick", "compared")
PATH_ARGUMENTS = ("folder", "out")
OF_TABLES = ("declare",)
"""Functions whose arguments are tables of a declaration; some of these have the names of options."""
REQUIRED = ("scheduler", "effort", "format", "backend", "vary", "minimise", "of", "to")
"""Required arguments, for which None is not allowed."""


def require_types(what: str, given: Mapping[str, Any]) -> None:
    """Raise `UsageError` for the first argument of a wrong type. The type depends only on the name of the argument."""
    from derivations.contract import UsageError

    def is_number(value: Any) -> bool:
        return isinstance(value, numbers.Real | str) and not isinstance(value, bool)

    def is_flag(value: Any) -> bool:
        return isinstance(value, bool) or type(value).__name__ == "bool"  # NumPy's, which need not be imported

    def is_stage(value: Any) -> bool:
        several = isinstance(value, list | tuple) and all(isinstance(name, str) for name in value)
        return isinstance(value, str) or several

    def are_weights(value: Any) -> bool:
        several = isinstance(value, list | tuple) and all(isinstance(one, str | os.PathLike) for one in value)
        return isinstance(value, str | os.PathLike | Mapping) or several

    def are_names(value: Any) -> bool:
        words = [*value, *value.values()] if isinstance(value, Mapping) else [None]
        return all(isinstance(word, str) for word in words)

    def are_times(value: Any) -> bool:
        flat = isinstance(value, list | tuple) or getattr(value, "ndim", 0) == 1
        return flat and all(isinstance(one, numbers.Real) for one in value)

    kinds: dict[str, tuple[Callable[[Any], bool], str]] = {
        **dict.fromkeys(WORD_ARGUMENTS, (lambda value: isinstance(value, str), "a name")),
        **dict.fromkeys(NUMBER_ARGUMENTS, (is_number, "a number")),
        **dict.fromkeys(FLAG_ARGUMENTS, (is_flag, "True or False")),
        **dict.fromkeys(PATH_ARGUMENTS, (lambda value: isinstance(value, str | os.PathLike), "a path")),
        "stage": (is_stage, "the name of a stage, or a list of names"),
        "of": (is_stage, "a measure, or a list of measures"),
        "to": (is_stage, "the name of a parameter, or a list of names"),
        "weights": (are_weights, "a mapping of arrays, a file, or a list of files"),
        "names": (are_names, "a mapping from arrays to slots"),
        "times": (are_times, "a list of numbers"),
        "state": (lambda value: isinstance(value, Mapping), "a mapping of arrays"),
        "inputs": (lambda value: isinstance(value, Mapping), "a mapping of arrays"),
        "claims": (is_stage, "the id of a claim, or a list of ids"),
    }
    for name, value in given.items() if what not in OF_TABLES else ():
        if name not in kinds or (value is None and name not in (*REQUIRED, "weights", "inputs")):
            continue
        holds, words = kinds[name]
        if not holds(value):
            raise UsageError(f"{what}: {name}= must be {words}, but {_short(value)} was given")


def chosen(system: Any) -> "System":
    """Return the system for a name, a reference, a path or a `System`. Raises `UsageError` for anything else."""
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
    """Return the trajectory of a run, stored or not. Raises `UsageError` for anything else."""
    from derivations.contract import UsageError
    from odesim.request.trajectory import Trajectory
    from odesim.store import Run

    if isinstance(run, Run):
        return run.trajectory
    if isinstance(run, Trajectory):
        return run
    raise UsageError(f"{what} needs a run, such as odesim.integrate(..) or odesim.load(folder), but got {_short(run)}")


def _short(value: Any) -> str:
    """Return a short form of a given value for a message."""
    text = repr(value)
    return text if len(text) <= 60 else f"a {type(value).__name__}"

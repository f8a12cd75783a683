"""Source files that a text or a verdict depends on: those of its functions, and all files that they import.

A generated text is valid while the files that derive and write it are unchanged, because SymPy takes seconds to derive
kernels again. These files are found by their import statements, because a list by hand would miss files.
"""

import functools
import hashlib
import importlib.util
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import derivations
from derivations import outside
from derivations.contract import Equations, System
from odesim.errors import UsageError

OURS = ("hermite", "derivations", "odesim")
"""Packages whose imports are followed wherever they are installed. For other installed packages the version is
enough.
"""
IMPORT = re.compile(
    r"\n[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import[ \t]*(\([^)]*\)|(?:\\\n|[^\n#])*)|import[ \t]+((?:\\\n|[^\n#])*))"
)
"""Pattern of import statements anywhere in a file. Parsing the file would take ten times as long.

The line break before a statement is part of the pattern, which is twice as fast as testing for the start of a line.
"""


def roots(equations: Equations) -> tuple[str, ...]:
    """Return the modules that define the functions and kernels of some equations.

    >>> import odesim
    >>> from odesim.flow.problem import prepare
    >>> from odesim.request.case import Case
    >>> roots(prepare(Case.build("pruning", {"tier": "flow"})).equations)[:2]
    ('derivations.pruning.flow_loops', 'derivations.pruning.flow_march')
    """
    code = equations.code
    found = {*makers(code.kernels), *(reference.partition(":")[0] for reference in code.loops)}
    if code.takes is not None:
        found.add(code.takes.__module__)
    return tuple(sorted(found))


def parts(system: System) -> tuple[str, ...]:
    """Return the modules in the strings "module:attribute" of a system, and those of its parameters and checks.

    >>> import odesim
    >>> [name for name in parts(odesim.system("liao")) if name.endswith("model")]
    ['derivations.liao.model']
    """
    texts = [value for one in (system, *system.stages) for value in vars(one).values() if isinstance(value, str)]
    named = {text.partition(":")[0] for text in texts if re.fullmatch(r"\w+(\.\w+)*:\w+", text)}
    return tuple(
        sorted({*(name for name in named if file_of(name)), system.parameters.__module__, *makers(system.check)})
    )


def home(reference: str) -> Path | None:
    """Return the folder of a system's module, without importing it; None if there is none here."""
    if reference in derivations.folders():
        place: Path | str = f"derivations.{reference}"
    else:
        place = outside.place_of(reference)
    file = place if isinstance(place, Path) else file_of(place)
    return file.parent if file is not None else None


def makers(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the modules that define a function, including those bound to it by `functools.partial`."""
    if isinstance(function, functools.partial):
        bound = [value for value in (*function.args, *function.keywords.values()) if callable(value)]
        return tuple(name for one in (function.func, *bound) for name in makers(one))
    return (function.__module__,)


def closure(modules: Iterable[str]) -> dict[str, Path]:
    """Return the files of some modules and of all their direct and indirect imports, by name of the module.

    The search follows `OURS`, the packages of the given modules, and modules that are not installed (a file next to a
    script). Raises `UsageError` for a given module without a file, because its changes could not be detected.
    """
    given = [name for name in modules if not _standard(name)]
    packages = {_top(name) for name in given}
    found: dict[str, Path] = {}
    waiting = list(given)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        path = file_of(name)
        if path is None:
            if name in given:
                raise UsageError(f"functions of {name} cannot be compiled: it has no file; write them into a module")
            continue
        found[name] = path
        waiting += [one for one in imported(name, path) if _top(one) in packages or followed(one)]
    return dict(sorted(found.items()))


def digest(modules: Iterable[str], *more: str) -> str:
    """Return 16 hexadecimal characters that change with any file of `closure(modules)` and with any text of `more`."""
    content = hashlib.sha256()
    for name, path in closure(modules).items():
        text = text_of(path).encode()
        content.update(f"{name} {len(text)}\n".encode() + text)
    content.update("\n".join(more).encode())
    return content.hexdigest()[:16]


@functools.cache
def text_of(path: Path) -> str:
    """Return a source file, read once, because thousands of short runs in one process need their functions."""
    return path.read_text(encoding="utf-8")


@functools.cache
def imported(module: str, path: Path) -> tuple[str, ...]:
    """Return the modules that the file of a module imports anywhere: at the top, in functions, for type checkers."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    return tuple(dict.fromkeys(imported_by(text_of(path), package)))


def imported_by(text: str, package: str = "") -> Iterator[str]:
    """Return the modules that a text imports; relative ones start from `package`. `from a import b` gives a.b if that
    is a module.

    >>> list(imported_by("from math import pi"))
    ['math']
    """
    for origin, names, whole in IMPORT.findall(f"\n{text}"):
        if whole:
            yield from (name.split()[0] for name in whole.replace("\\\n", " ").split(",") if name.strip())
            continue
        origin = _absolute(origin, package)
        listed = re.sub(r"#[^\n]*|[()\\\n]", " ", names).split(",")
        for name in (one.split()[0] for one in listed if one.strip()):
            inner = f"{origin}.{name}"
            yield inner if not _standard(origin) and file_of(inner) is not None else origin


def _absolute(origin: str, package: str) -> str:
    """Return the absolute name of a relative import in a package."""
    dots = len(origin) - len(origin.lstrip("."))
    if not dots:
        return origin
    above = package.split(".")[: len(package.split(".")) - (dots - 1)]
    return ".".join([*above, *filter(None, [origin[dots:]])])


def file_of(module: str) -> Path | None:
    """Return the source file of a module without importing it; None if it has none."""
    loaded = getattr(sys.modules.get(module), "__file__", None)
    if loaded is not None:
        return Path(loaded) if loaded.endswith(".py") else None
    # odesim's files import the same hundred names, and no file appears meanwhile.
    return _known(module) if _top(module) in OURS else _part(module)


def _part(module: str) -> Path | None:
    """Return the source file of a module, from its name alone."""
    top, *inner = module.split(".")
    origin, folders = _place(top)
    if not inner:
        return origin
    for folder in folders:
        whole = os.path.join(folder, *inner)
        for path in (os.path.join(whole, "__init__.py"), f"{whole}.py"):
            if os.path.isfile(path):
                return Path(path)
    return None


_known = functools.cache(_part)


@functools.cache
def _place(top: str) -> tuple[Path | None, tuple[Path, ...]]:
    """Return the file of a module outside of packages, and the folders that are searched for its parts."""
    try:
        spec = importlib.util.find_spec(top)
    except (ValueError, ImportError):  # a module made at run time has no specification
        spec = None
    if spec is None:
        return None, ()
    origin = Path(spec.origin) if spec.origin is not None and spec.origin.endswith(".py") else None
    return origin, tuple(map(Path, spec.submodule_search_locations or ()))


def _top(module: str) -> str:
    return module.partition(".")[0]


def _standard(module: str) -> bool:
    return _top(module) in sys.stdlib_module_names


def followed(module: str) -> bool:
    """Return True if a module is part of this project or a user's file, so that its changes invalidate the cache."""
    return _top(module) in OURS or _local(_top(module))


@functools.cache
def _local(top: str) -> bool:
    """Return True if a module neither belongs to Python nor is installed."""
    if _standard(top):
        return False
    origin, folders = _place(top)
    places = [*folders, *([origin] if origin else [])]
    return bool(places) and not any({"site-packages", "dist-packages"} & set(place.parts) for place in places)

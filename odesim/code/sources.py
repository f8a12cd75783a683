"""The source files that a text or a verdict depends on: those of its functions, and all that they import.

SymPy takes seconds to derive kernels again, so whether a generated text is still true is asked of the files that
derive and write it.  They are found by following import statements, not listed: a list forgets a file.
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
"""Packages that are followed wherever they are installed; of other installed packages the version is enough."""
IMPORT = re.compile(
    r"\n[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import[ \t]*(\([^)]*\)|(?:\\\n|[^\n#])*)|import[ \t]+((?:\\\n|[^\n#])*))"
)
"""Import statements, wherever they stand in a file; parsing it would take ten times as long.

The line break before one is part of it: looking for a character is twice as fast as asking where lines begin.
"""


def roots(equations: Equations) -> tuple[str, ...]:
    """The modules that the functions and kernels of some equations stand in.

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
    """The modules that a system names in its strings "module:attribute", and those of its parameters and checks.

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
    """The folder that a system stands in, which is not imported; None where there is none here."""
    if reference in derivations.folders():
        place: Path | str = f"derivations.{reference}"
    else:
        place = outside.place_of(reference)
    file = place if isinstance(place, Path) else file_of(place)
    return file.parent if file is not None else None


def makers(function: Callable[..., Any]) -> tuple[str, ...]:
    """The modules in which a function was written, and those that it was bound to by `functools.partial`."""
    if isinstance(function, functools.partial):
        bound = [value for value in (*function.args, *function.keywords.values()) if callable(value)]
        return tuple(name for one in (function.func, *bound) for name in makers(one))
    return (function.__module__,)


def closure(modules: Iterable[str]) -> dict[str, Path]:
    """The files of some modules and of all that they import, directly or not, by name of the module.

    Followed are `OURS`, the packages of the modules given, and whatever else is not installed (a file beside a script).
    Raises `UsageError` for a module given that has no file, because nothing would tell when it has changed.
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
    """16 hexadecimal characters that change with any file of `closure(modules)` and with any text of `more`."""
    content = hashlib.sha256()
    for name, path in closure(modules).items():
        text = text_of(path).encode()
        content.update(f"{name} {len(text)}\n".encode() + text)
    content.update("\n".join(more).encode())
    return content.hexdigest()[:16]


@functools.cache
def text_of(path: Path) -> str:
    """A source file, read once: thousands of short runs in one process each ask for their functions."""
    return path.read_text(encoding="utf-8")


@functools.cache
def imported(module: str, path: Path) -> tuple[str, ...]:
    """The modules that the file of a module imports anywhere: at its top, in functions, for type checkers."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    return tuple(dict.fromkeys(imported_by(text_of(path), package)))


def imported_by(text: str, package: str = "") -> Iterator[str]:
    """The modules that a text imports, relative ones from `package`: of `from a import b`, a.b where that is a module.

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
    """The name that a relative one has seen from a package."""
    dots = len(origin) - len(origin.lstrip("."))
    if not dots:
        return origin
    above = package.split(".")[: len(package.split(".")) - (dots - 1)]
    return ".".join([*above, *filter(None, [origin[dots:]])])


def file_of(module: str) -> Path | None:
    """The source file of a module, which is not imported for that; None for one that has none."""
    loaded = getattr(sys.modules.get(module), "__file__", None)
    if loaded is not None:
        return Path(loaded) if loaded.endswith(".py") else None
    # The files of ours ask for the same hundred names, and none appears meanwhile.
    return _known(module) if _top(module) in OURS else _part(module)


def _part(module: str) -> Path | None:
    """The source file of a module by its name alone."""
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
    """The file of a module that is in no package, and the folders in which its parts are looked for."""
    try:
        spec = importlib.util.find_spec(top)
    except (ValueError, ImportError):  # a module made by hand has no specification
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
    """Return True if a module is neither part of Python nor installed."""
    if _standard(top):
        return False
    origin, folders = _place(top)
    places = [*folders, *([origin] if origin else [])]
    return bool(places) and not any({"site-packages", "dist-packages"} & set(place.parts) for place in places)

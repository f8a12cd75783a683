"""What the papers say: one folder per system, found by scanning (there is no registry to edit).

Systems outside this package are found by a reference (`derivations.outside`).
"""

import functools
import importlib
import importlib.util
import pkgutil
from pathlib import Path

from derivations import outside
from derivations.contract import System, UsageError

_references: dict[int, tuple[System, str]] = {}
"""The reference of every system that was asked for, by the object's id (it is kept, so that no other has this id)."""
_unplaced: dict[str, System] = {}
"""Systems that stand in no file, which only this process can find."""


@functools.cache
def folders() -> tuple[str, ...]:
    """The names of the systems of this package: a system is a folder that says so.

    Its file is read and not imported, as most runs need one system of them.  Looked for once: thousands of short runs
    each ask for their system.
    """
    found = [module.name for module in pkgutil.iter_modules(__path__) if module.ispkg]
    return tuple(sorted(name for name in found if _says_system(name)))


def _says_system(name: str) -> bool:
    spec = importlib.util.find_spec(f"{__name__}.{name}")
    return spec is not None and spec.origin is not None and "\nSYSTEM = " in Path(spec.origin).read_text("utf-8")


def names() -> list[str]:
    """The names of all systems: those of their folders, and what other installed packages register.

    The declarations of the gallery have names too (`outside.gallery`).
    """
    return sorted({*folders(), *outside.registered()})


def system(name: str) -> System:
    """The system called `name`, or that a reference leads to: "module:SYSTEM", "path/to/file.py:SYSTEM".

    A folder of ours comes before a registered name.  Raises `KeyError` for a name that is neither, and `UsageError`
    for a reference that leads nowhere.

    >>> system("liao").name
    'liao'
    """
    if name in folders():
        return importlib.import_module(f"{__name__}.{name}").SYSTEM
    if outside.is_reference(name):
        return _known(outside.found(name), outside.normal(name))
    if name in _unplaced:
        return _unplaced[name]
    if name not in outside.named():
        raise KeyError(name)
    return _known(outside.found(outside.named()[name]), name)


def _known(found: System, asked: str) -> System:
    """The system found, its reference kept: as it was first asked for, but the name of one of ours in any case."""
    _references.setdefault(id(found), (found, found.name if _is_ours(found) else asked))
    return found


def _is_ours(system: System) -> bool:
    return system.name in folders() and importlib.import_module(f"{__name__}.{system.name}").SYSTEM is system


def reference(system: System) -> str:
    """The text by which `derivations.system` finds a system again, in this process and, as a rule, in any other.

    The name of a folder of ours; otherwise the reference it was asked for by, or one to the module that it stands in.
    A system that stands in no file has its own name, by which this process alone finds it.

    >>> import derivations
    >>> derivations.reference(derivations.system("liao"))
    'liao'
    """
    if id(system) not in _references:
        _references[id(system)] = (system, _found(system))
    return _references[id(system)][1]


def _found(system: System) -> str:
    if _is_ours(system):
        return system.name
    located = outside.located(system)
    if located is not None:
        return located
    taken = system.name in folders() or system.name in outside.named()
    name = f"{system.name} (made here)" if taken else system.name
    _unplaced[name] = system
    return name


def address(system: System) -> str:
    """The reference of a system for another process.

    Raises `UsageError` for a system that stands in no file, because no other process could import it.
    """
    found = reference(system)
    if found in _unplaced:
        raise UsageError(
            f"system {system.name} stands in no file, so that no other process can import it; "
            "write it into one (SYSTEM = System(...)), or ask for one worker"
        )
    return found

"""Systems of the papers: one folder per system, found by scanning (there is no registry to edit).

Systems outside this package are found by a reference (`derivations.outside`).
"""

import copyreg
import functools
import importlib
import importlib.util
import pickle
import pkgutil
from collections.abc import Callable
from pathlib import Path

from derivations import outside
from derivations.contract import System, UsageError

_references: dict[int, tuple[System, str]] = {}
"""Systems written in Python that were asked for, with their references, by the object's id.

The object is kept, so that no other gets its id.
"""
_unplaced: dict[str, System] = {}
"""Systems written in Python that stand in no file: only this process can find them."""


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
    if name in outside.gallery():
        return outside.declared(outside.gallery()[name], name)
    if name not in outside.registered():
        raise KeyError(name)
    return _known(outside.found(outside.registered()[name]), name)


def _known(found: System, asked: str) -> System:
    """Return the system and keep its reference: as it was first asked for, but the name of one of ours in any case."""
    if not found.declaration:
        _references.setdefault(id(found), (found, found.name if _is_ours(found) else asked))
    return found


def _is_ours(system: System) -> bool:
    return system.name in folders() and importlib.import_module(f"{__name__}.{system.name}").SYSTEM is system


def reference(system: System) -> str:
    """Return the text that stands for a system in requests and run folders.

    The name of a folder of ours; otherwise the reference it was asked for by, or one to the module that it stands in.
    A declared model that was made in Python has its name, and is made again from its declaration (`restored`).  Another
    system that stands in no file has its own name, by which this process alone finds it.

    >>> import derivations
    >>> derivations.reference(derivations.system("liao"))
    'liao'
    """
    if system.declaration:
        return system.reference or _free_name(system)
    if id(system) not in _references:
        _references[id(system)] = (system, _found(system))
    return _references[id(system)][1]


def _found(system: System) -> str:
    if _is_ours(system):
        return system.name
    located = outside.located(system)
    if located is not None and all(asked != located for _, asked in _references.values()):
        return located  # a variable that was bound to another system before would stand for that one
    name, count = _free_name(system), 1
    while name in _unplaced:
        count += 1
        name = f"{_free_name(system)} ({count})"
    _unplaced[name] = system
    return name


def _free_name(system: System) -> str:
    """Return the name of a system that was made in this process, marked where another system is called like that."""
    taken = system.name in folders() or system.name in outside.named()
    return f"{system.name} (made here)" if taken else system.name


def same(first: System, second: System) -> bool:
    """Return True if two objects are one system: the same object, or declared by the same text."""
    return first is second or (first.declaration != "" and first.declaration == second.declaration)


def restored(reference: str, declaration: str = "") -> System | None:
    """Return the system of stored data, or None where Python outside of installed packages would have to run for it.

    A declared model is made of its `declaration`.  Other systems are those of this package, those that an installed
    package registers, and those that this process has asked for already.

    >>> restored("liao").name, restored("models.py:SYSTEM")
    ('liao', None)
    """
    if declaration:
        from derivations.declare.system import of_text

        return of_text(declaration, reference)
    for known, asked in _references.values():
        if asked == reference:
            return known
    if outside.is_reference(reference):
        return None
    try:
        return system(reference)
    except KeyError:
        return None


def address(system: System) -> str:
    """Return the reference of a system for another process, which gets a declared model as its declaration.

    Raises `UsageError` for another system that stands in no file, because no other process could import it.
    """
    found = reference(system)
    if not system.declaration and found in _unplaced:
        raise UsageError(
            f"system {system.name} is not in a file, so other processes cannot import it; write it into a "
            "file (SYSTEM = System(...)), or use one worker"
        )
    return found


def _reduced(system: System) -> tuple[Callable[..., System], tuple[str, ...]]:
    """Return how a system is pickled: as its declaration, or as the reference by which it is imported again."""
    if system.declaration:
        from derivations.declare.system import of_text

        return of_text, (system.declaration, system.reference)
    try:
        return _imported, (address(system),)
    except UsageError as error:
        raise pickle.PicklingError(str(error)) from None


def _imported(reference: str) -> System:
    """Return the system of a pickle: the object in memory, or the one that the reference leads to."""
    found = restored(reference)
    return found if found is not None else system(reference)


copyreg.pickle(System, _reduced)

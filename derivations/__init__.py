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
"""Python systems that were requested, with their references, by the object's id.

The object is stored, so that no other object gets its id.
"""
_unplaced: dict[str, System] = {}
"""Python systems without a file: only this process can find them."""


@functools.cache
def folders() -> tuple[str, ...]:
    """The names of the systems of this package: a system is a folder whose `__init__.py` defines one.

    The file is read and not imported, because most runs need only one system. The result is cached, because thousands
    of short runs each request their system.
    """
    packages = [module.name for module in pkgutil.iter_modules(__path__) if module.ispkg]
    return tuple(sorted(name for name in packages if _says_system(name)))


def _says_system(name: str) -> bool:
    spec = importlib.util.find_spec(f"{__name__}.{name}")
    return spec is not None and spec.origin is not None and "\nSYSTEM = " in Path(spec.origin).read_text("utf-8")


def names() -> list[str]:
    """The names of all systems: those of the folders, and those that other installed packages register.

    The declarations of the gallery have names too (`outside.gallery`).
    """
    return sorted({*folders(), *outside.registered()})


def system(name: str) -> System:
    """The system with this name or reference: "module:SYSTEM", "path/to/file.py:SYSTEM".

    A folder of this package has priority over a registered name. Raises `KeyError` for an unknown name, and
    `UsageError` for a reference to a missing file or object.

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
    """Return the system and store its first reference; for systems of this package the reference is always the name."""
    if not found.declaration:
        _references.setdefault(id(found), (found, found.name if _is_ours(found) else asked))
    return found


def _is_ours(system: System) -> bool:
    return system.name in folders() and importlib.import_module(f"{__name__}.{system.name}").SYSTEM is system


def reference(system: System) -> str:
    """Return the text that identifies a system in requests and run folders.

    The text is the name of a folder of this package; otherwise the user's reference, or a reference to the module of
    the system. A model declared in Python has its name, and is created again from its declaration (`restored`). Any
    other system without a file has its name, which only this process can resolve.

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
        return located  # a variable that was bound to another system before would refer to that one
    name, count = _free_name(system), 1
    while name in _unplaced:
        count += 1
        name = f"{_free_name(system)} ({count})"
    _unplaced[name] = system
    return name


def _free_name(system: System) -> str:
    """Return the name of a system created in this process, with a mark if another system has the same name."""
    taken = system.name in folders() or system.name in outside.named()
    return f"{system.name} (made here)" if taken else system.name


def same(first: System, second: System) -> bool:
    """Return True if two objects are one system: the same object, or declared by the same text."""
    return first is second or (first.declaration != "" and first.declaration == second.declaration)


def restored(reference: str, declaration: str = "") -> System | None:
    """Return the system of stored data, or None if that needs Python code outside of installed packages.

    A declared model is created from its `declaration`. Other systems are those of this package, those that an installed
    package registers, and those that this process has already used.

    >>> restored("liao").name, restored("models.py:SYSTEM")
    ('liao', None)
    """
    if declaration:
        from derivations.declare.written_systems import of_text

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
    """Return the reference of a system for another process; that of a declared model is its declaration.

    Raises `UsageError` for any other system without a file, because no other process could import it.
    """
    text = reference(system)
    if not system.declaration and text in _unplaced:
        raise UsageError(
            f"system {system.name} is not in a file, so other processes cannot import it; write it into a "
            "file (SYSTEM = System(...)), or use one worker"
        )
    return text


def _reduced(system: System) -> tuple[Callable[..., System], tuple[str, ...]]:
    """Return the pickled form of a system: its declaration, or the reference that imports it."""
    if system.declaration:
        from derivations.declare.written_systems import of_text

        return of_text, (system.declaration, system.reference)
    try:
        return _imported, (address(system),)
    except UsageError as error:
        raise pickle.PicklingError(str(error)) from None


def _imported(reference: str) -> System:
    """Return the system of a pickle: the object in memory, or the one with the reference."""
    in_memory = restored(reference)
    return in_memory if in_memory is not None else system(reference)


copyreg.pickle(System, _reduced)

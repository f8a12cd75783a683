"""Systems outside this package: in a module, in a file, in another installed package, or without a file.

A *reference* is a text by which any process can find a system: `module:ATTRIBUTE`, `path/to/file.py:ATTRIBUTE` (also
the folder of a package; the default attribute is `SYSTEM`), a file that declares a model (`model.toml`), the name of a
declaration of the gallery, or a name that an installed package registers under the entry point group `odesim.systems`.
"""

import functools
import importlib
import importlib.metadata
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from derivations.contract import System, UsageError

GROUP = "odesim.systems"
"""The group of entry points of installed packages: name = "module:ATTRIBUTE"."""
ATTRIBUTE = "SYSTEM"
"""Default name of the attribute with the system."""
FOREIGN: dict[str, str] = {}
"""The files of the systems of other authors that this process has used, by module."""


def split(reference: str) -> tuple[str, str]:
    """Module or path, and attribute.

    >>> split("decay.system:DECAY"), split("work/decay.py")
    (('decay.system', 'DECAY'), ('work/decay.py', 'SYSTEM'))
    """
    place, _, attribute = reference.rpartition(":")
    return (place, attribute) if place and attribute.isidentifier() else (reference, ATTRIBUTE)


def last_name(reference: str) -> str:
    """Return the last word of the place in a reference: a file without its extension, a module, a plain name.

    >>> last_name("/home/me/models/decay.py:DECAY"), last_name("package.decay:DECAY"), last_name("committee.toml")
    ('decay', 'decay', 'committee')
    """
    place, _ = split(reference)
    if is_path(reference):
        path = Path(place)
        return path.parent.name if path.name == "__init__.py" else path.stem
    return place.rpartition(".")[2] or place


def is_path(reference: str) -> bool:
    """Return True if a reference is the path of a file or a folder."""
    place, _ = split(reference)
    return is_declaration(reference) or place.endswith(".py") or os.sep in place or "/" in place


def is_declaration(reference: str) -> bool:
    """Return True if a reference is a file that declares a model.

    >>> is_declaration("work/committee.toml")
    True
    """
    return reference.endswith(".toml")


def is_reference(name: str) -> bool:
    """Return True if a text is a reference to a system, as opposed to a plain name."""
    return ":" in name or is_path(name)


@functools.cache
def gallery() -> dict[str, str]:
    """The declarations in the package, known results of the literature: name -> path of the file.

    >>> "saad_solla_1995" in gallery()
    True
    """
    return {path.stem: str(path) for path in sorted(Path(__file__).with_name("gallery").glob("*.toml"))}


@functools.cache
def named() -> dict[str, str]:
    """Sources of systems by plain names: declarations of the gallery, and systems that packages register."""
    return {**registered(), **gallery()}


@functools.cache
def registered() -> dict[str, str]:
    """The systems that installed packages register: name -> "module:ATTRIBUTE".

    Raises `UsageError` if two packages register different systems under one name.
    """
    found: dict[str, str] = {}
    for entry in importlib.metadata.entry_points(group=GROUP):
        if found.setdefault(entry.name, entry.value) != entry.value:
            raise UsageError(
                f"two installed packages register a system {entry.name!r}: {found[entry.name]} and {entry.value}; "
                "uninstall one of them"
            )
    return found


def normal(reference: str) -> str:
    """A reference in its stored form: absolute paths with their attribute, so that any process finds them."""
    if not is_path(reference):
        return reference
    if is_declaration(reference):
        return os.path.realpath(reference)
    place, attribute = split(reference)
    return f"{Path(place).resolve()}:{attribute}"


def found(reference: str) -> System:
    """The system of a reference.

    Raises `UsageError` for a file or module that does not exist or cannot be imported, and for an attribute that is
    missing or not a `System`.
    """
    if "\0" in reference:
        raise UsageError(f"{reference!r} is not the name of a file")
    if is_declaration(reference):
        return declared(reference, normal(reference))
    place, attribute = split(reference)
    module = _of_file(Path(place)) if is_path(reference) else _imported(place, f"module {place}")
    system = getattr(module, attribute, None)
    if not isinstance(system, System):
        known = [name for name, value in vars(module).items() if isinstance(value, System)]
        has = f"it has {', '.join(known)}" if known else "it has none: write SYSTEM = System(...)"
        raise UsageError(f"{place} has no system {attribute!r}; {has}")
    if not module.__name__.startswith(f"{__package__}."):
        FOREIGN[module.__name__] = str(vars(module).get("__file__", place))
    return system


def declared(file: str, reference: str) -> System:
    """Return the system that a file declares, under the name `reference`; a changed file is read again."""
    from derivations.declare import reading, written_systems

    path = Path(os.path.realpath(file))  # Path.resolve raises another error for a link to itself
    return written_systems.of_file(path, reading.content(path), reference)


def _imported(name: str, what: str) -> ModuleType:
    """A module by name; any error of its import becomes one sentence."""
    try:
        return importlib.import_module(name)
    except UsageError:
        raise
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if name == missing or name.startswith(f"{missing}."):
            raise UsageError(
                f"there is no module {name} in this installation; install it, or give the path of its file: "
                f"path/to/file.py:{ATTRIBUTE}"
            ) from None
        raise UsageError(f"{what} needs the module {missing}, which cannot be imported here") from error
    except Exception as error:
        raise UsageError(f"{what} cannot be imported: {type(error).__name__}: {error}") from error


def _of_file(path: Path) -> ModuleType:
    """The module of a file, or of the folder of a package, under the name used in its strings."""
    file = (path / "__init__.py" if path.is_dir() else path).resolve()
    if not file.is_file():
        raise UsageError(f"there is no file {file} for a system")
    name, root = dotted(file)
    if not all(part.isidentifier() for part in name.split(".")):
        raise UsageError(f"{file} cannot be imported as {name!r}; give it a name of letters, digits and underscores")
    if name not in sys.modules:
        if str(root) not in sys.path:
            sys.path.append(str(root))  # last, so that modules next to a system do not hide an installed library
        importlib.invalidate_caches()
        _imported(name, str(file))
    module = sys.modules[name]
    other = getattr(module, "__file__", None)
    if other is None or Path(other).resolve() != file:
        raise UsageError(f"{file} cannot be imported: {other or 'Python'} is called {name!r} too; rename the file")
    return module


def dotted(file: Path) -> tuple[str, Path]:
    """The name of the module in a file, and the folder from which it is imported under that name."""
    parts = [] if file.name == "__init__.py" else [file.stem]
    folder = file.parent
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    return ".".join(parts), folder


def located(system: System) -> str | None:
    """A reference to a system object, found among the modules in memory; None unless one with a file contains it."""
    places = [
        (module, name)
        for module in list(sys.modules.values())
        if isinstance(module, ModuleType)
        for name, value in list(vars(module).items())
        if value is system and not name.startswith("_") and _file(module) is not None  # tested last: the disk is slow
    ]
    for name, value in registered().items():
        place, attribute = split(value)
        if any(module.__name__ == place and attribute == found for module, found in places):
            return name
    if not places:
        return None
    # Its defining module before one that imports it: the module that its strings name.
    module, name = max(places, key=lambda place: (_shared(system, place[0].__name__), -len(place[0].__name__)))
    file = _file(module)
    assert file is not None
    if {"site-packages", "dist-packages"} & set(file.parts):
        return f"{module.__name__}:{name}"
    return f"{file}:{name}"


def _file(module: Any) -> Path | None:
    """The source file of a module."""
    file = vars(module).get("__file__")
    return Path(file).resolve() if isinstance(file, str) and file.endswith(".py") and Path(file).is_file() else None


def _shared(system: System, module: str) -> int:
    """Return the number of leading parts that the names of a module and of the module of the equations have in
    common.
    """
    own = (system.stages[0].equations if system.stages else "").partition(":")[0].split(".")
    count = 0
    for part, other in zip(module.split("."), own, strict=False):
        if part != other:
            break
        count += 1
    return count


def place_of(reference: str) -> Path | str:
    """The file, or the name of the module, of a reference, without an import."""
    reference = named().get(reference, reference)
    place, _ = split(reference)
    if not is_path(reference) or is_declaration(reference):
        return Path(reference) if is_declaration(reference) else place
    return Path(place) / "__init__.py" if Path(place).is_dir() else Path(place)

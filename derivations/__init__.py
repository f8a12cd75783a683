"""What the papers say: one folder per system, found by scanning (there is no registry to edit)."""

import functools
import importlib
import importlib.util
import pkgutil
from pathlib import Path

from derivations.contract import System


@functools.cache
def _folders() -> tuple[str, ...]:
    """Looked for once: thousands of short runs each ask for their system.

    A system is a folder that says so; its file is read and not imported, as most runs need one system of them.
    """
    found = [module.name for module in pkgutil.iter_modules(__path__) if module.ispkg]
    return tuple(sorted(name for name in found if _says_system(name)))


def _says_system(name: str) -> bool:
    spec = importlib.util.find_spec(f"{__name__}.{name}")
    return spec is not None and spec.origin is not None and "\nSYSTEM = " in Path(spec.origin).read_text("utf-8")


def names() -> list[str]:
    """The names of all systems, which are the names of their folders."""
    return list(_folders())


def system(name: str) -> System:
    """The system called `name`.  Raises `KeyError` for a name that is no folder."""
    if name not in names():
        raise KeyError(name)
    return importlib.import_module(f"{__name__}.{name}").SYSTEM

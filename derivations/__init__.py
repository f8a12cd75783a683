"""What the papers say: one folder per system, found by scanning (there is no registry to edit)."""

import importlib
import pkgutil

from derivations.contract import System


def names() -> list[str]:
    """The names of all systems, which are the names of their folders."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if module.ispkg)


def system(name: str) -> System:
    """The system called `name`.  Raises `KeyError` for a name that is no folder."""
    if name not in names():
        raise KeyError(name)
    return importlib.import_module(f"{__name__}.{name}").SYSTEM

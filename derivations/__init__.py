"""What the papers say: one folder per system, found by scanning (there is no registry to edit)."""

import functools
import importlib
import pkgutil

from derivations.contract import System


@functools.cache
def _folders() -> tuple[str, ...]:
    """Looked for once: thousands of short runs each ask for their system."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__) if module.ispkg))


def names() -> list[str]:
    """The names of all systems, which are the names of their folders."""
    return list(_folders())


def system(name: str) -> System:
    """The system called `name`.  Raises `KeyError` for a name that is no folder."""
    if name not in names():
        raise KeyError(name)
    return importlib.import_module(f"{__name__}.{name}").SYSTEM

"""Special functions of the array library in use."""

import contextlib
import functools
import importlib
import importlib.machinery
import importlib.util
from pathlib import Path
from typing import Any


def special(xp: Any) -> Any:
    """The module with `erf` and `erfc` for an array library.

    >>> import numpy
    >>> float(special(numpy).erf(0.0))
    0.0
    """
    return importlib.import_module("jax.scipy.special") if xp.__name__.startswith("jax") else scipy_special()


@functools.cache
def scipy_special() -> Any:
    """SciPy's compiled functions of arrays, or its package if they cannot be imported separately.

    The package imports a hundred modules, which takes a tenth to a fifth of a second: as long as a short flow.
    """
    found = importlib.util.find_spec("scipy")
    if found is not None and found.origin is not None:
        folder = str(Path(found.origin).with_name("special"))
        spec = importlib.machinery.PathFinder.find_spec("scipy.special._special_ufuncs", [folder])
        if spec is not None and spec.loader is not None:
            with contextlib.suppress(ImportError):
                module = importlib.util.module_from_spec(spec)
                spec.loader.exec_module(module)
                if hasattr(module, "erf") and hasattr(module, "erfc"):
                    return module
    return importlib.import_module("scipy.special")

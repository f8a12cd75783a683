"""Special functions of the array library in use."""

import importlib
from typing import Any


def special(xp: Any) -> Any:
    """The module with `erf` that belongs to an array library.

    SciPy's takes longer to import than NumPy: ask where a function is called, which few runs do.

    >>> import numpy
    >>> float(special(numpy).erf(0.0))
    0.0
    """
    return importlib.import_module("jax.scipy.special" if xp.__name__.startswith("jax") else "scipy.special")

"""Catalogue of integrators: those of all files of this folder that define `SOLVERS`. To add one, add a file.

A file whose name ends in `_loops` has the compiled loops of another file. Only that file imports it, when a run needs
it, because the import compiles the loops (twelve seconds for NDF) or loads them (one second).
"""

import functools
import importlib
import pkgutil

from odesim.errors import UsageError
from odesim.flow import solvers
from odesim.flow.solvers.step import Solver
from odesim.request.case import EULER
from odesim.request.parse import nearest


@functools.cache
def catalogue() -> dict[str, Solver]:
    """Return every integrator by its name for `--solver`.

    >>> sorted(name for name, solver in catalogue().items() if solver.default)
    ['Dopri8', 'automatic']
    """
    names = [found.name for found in pkgutil.iter_modules(solvers.__path__) if not found.name.endswith("_loops")]
    offered = [getattr(importlib.import_module(f"{solvers.__name__}.{name}"), "SOLVERS", ()) for name in names]
    return {solver.name: solver for some in offered for solver in some}


def choose(backend: str, name: str | None) -> Solver:
    """The solver called `name`, or the default of the back end. Raises `UsageError` for one that it lacks.

    Every solver supports right-hand sides of JAX. Solvers that are not traced support those of numba.
    """
    traced = backend == "jax"
    known = {solver.name: solver for solver in catalogue().values() if traced or not solver.traced}
    if name is None:
        return next(solver for solver in known.values() if solver.default and solver.traced == traced)
    if name not in known:
        raise UsageError(f"backend {backend} has no solver {name!r}; {nearest(name, (*known, EULER))}")
    return known[name]


def described() -> list[dict[str, str]]:
    """Return every integrator as plain data: its name, the back ends that it supports, and a description.

    >>> [row["backends"] for row in described() if row["name"] in ("CVODE", "Dopri8")]
    ['numba, jax', 'jax']
    """
    rows = [
        {
            "name": solver.name,
            "backends": "jax" if solver.traced else "numba, jax",
            "note": f"the default of {'jax' if solver.traced else 'numba'}" if solver.default else "",
        }
        for solver in sorted(catalogue().values(), key=lambda solver: (solver.traced, not solver.default, solver.name))
    ]
    return [*rows, {"name": EULER, "backends": "numba, jax", "note": "gradient descent with a given step (--step)"}]

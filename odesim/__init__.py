"""Three independent accounts of the learning dynamics of mixtures of experts, and whether they agree.

Importing this package is light: JAX, SymPy, numba, diffrax and matplotlib load when first used.

>>> import odesim
>>> system = odesim.system("liao")
>>> run = odesim.integrate(system, m=5, m_star=2, d=100, until=1.0, seed=0)
>>> run.outcome.kind
'completed'
"""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from derivations.contract import System, UsageError
    from odesim.store import Run
    from odesim.trajectory import Trajectory

__version__ = "0.1.0"
__all__ = ["Trajectory", "UsageError", "__version__", "integrate", "load", "system", "systems"]


def systems() -> list[str]:
    """The names of all systems."""
    import derivations

    return derivations.names()


def system(name: str) -> "System":
    """The system called `name`.  Raises `UsageError`, with the nearest name, if there is none."""
    from odesim.case import find_system

    return find_system(name)


def integrate(
    system: "str | System",
    *,
    preset: str | None = None,
    config: "str | os.PathLike[str] | None" = None,
    initial: "str | os.PathLike[str] | Mapping[str, Any] | None" = None,
    stage: str | None = None,
    seed: int | None = None,
    until: float | None = None,
    save_points: int | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    backend: str | None = None,
    solver: str | None = None,
    **parameters: Any,
) -> "Trajectory":
    """Integrate the population dynamics of a system and return the trajectory; nothing is written.

    `parameters` are those of the system (`odesim systems NAME` lists them), the others the options of the
    command; `initial` is an .npz file or a mapping of arrays.  Raises `UsageError` for a request that cannot
    be met; a numerical failure is the trajectory's `outcome`.
    """
    from odesim.case import Case

    case = Case.build(
        system,
        parameters,
        preset=preset,
        config=config,
        initial=initial,
        stage=stage,
        seed=seed,
        until=until,
        save_points=save_points,
        rtol=rtol,
        atol=atol,
        backend=backend,
        solver=solver,
    )
    if case.backend == "jax":
        from odesim import device

        device.configure("auto")
    from odesim.integration import solve

    return solve(case)


def load(folder: "str | os.PathLike[str]") -> "Run":
    """The run stored in `folder`: manifest, summary and trajectory, its file hashes verified.

    Raises `UsageError` for a folder that is missing, unfinished or damaged.
    """
    from odesim import store

    return store.load(folder)


def __getattr__(name: str) -> Any:
    if name == "Trajectory":
        from odesim.trajectory import Trajectory

        return Trajectory
    if name == "UsageError":
        from derivations.contract import UsageError

        return UsageError
    raise AttributeError(f"module 'odesim' has no attribute {name!r}")

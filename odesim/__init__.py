"""odesim turns a teacher-student model into the exact ODEs of its SGD dynamics, solves them at any dimension, and tests
theorems against them and against simulated SGD.

Importing this package is light: JAX, SymPy, numba, diffrax and matplotlib load when first used.

>>> import odesim
>>> run = odesim.integrate("liao", m=5, m_star=2, d=100, until=1.0, seed=0)
>>> run.outcome.kind
'completed'

Describe models: `systems`, `system`, `derive`, `declare`, `derivatives`, `linearise`, `predict`. Compute: `integrate`,
`simulate`, `compare`, `observe`, `sweep`, `Flow`. Analyse: `bands`, `exponents`, `atlas`, `gradient`, `optimise`.
Exchange with other codes: `export`, `conventions`. Test and store: `verify`, `check`, `figures`, `report`, `explore`,
`save`, `load`. The functions return a `System`, `Trajectory`, `Run`, `Comparison`, `Verdicts` or an answer such as
`Bands`. An invalid call raises `UsageError` with one sentence. In a notebook, calls that take longer than two seconds
show a progress bar. Ctrl-C (the stop button) raises `InterruptedRun`, which has the result so far.
"""

from typing import TYPE_CHECKING, Any

from odesim.public.answers import atlas, bands, exponents, gradient, optimise
from odesim.public.bridge import conventions, export
from odesim.public.comparisons import compare, observe
from odesim.public.grids import sweep
from odesim.public.keep import check, explore, figures, load, report, save, verify
from odesim.public.look import declare, derivatives, derive, linearise, predict, system, systems
from odesim.public.make import integrate, simulate
from odesim.version import __version__

if TYPE_CHECKING:
    from derivations.contract import System, UsageError
    from odesim.errors import InterruptedRun, MissingError, NumericalError
    from odesim.evidence.check import Check
    from odesim.evidence.verdicts import Verdicts
    from odesim.request.trajectory import Trajectory
    from odesim.small.hitting import Flow
    from odesim.store import Run
    from odesim.study.comparison import Comparison

__all__ = [
    "Check",
    "Comparison",
    "Flow",
    "InterruptedRun",
    "MissingError",
    "NumericalError",
    "Run",
    "System",
    "Trajectory",
    "UsageError",
    "Verdicts",
    "__version__",
    "atlas",
    "bands",
    "check",
    "compare",
    "conventions",
    "declare",
    "derivatives",
    "derive",
    "explore",
    "exponents",
    "export",
    "figures",
    "gradient",
    "integrate",
    "linearise",
    "load",
    "observe",
    "optimise",
    "predict",
    "report",
    "save",
    "simulate",
    "sweep",
    "system",
    "systems",
    "verify",
]

_TYPES = {
    "Check": "odesim.evidence.check",
    "Comparison": "odesim.study.comparison",
    "Flow": "odesim.small.hitting",
    "InterruptedRun": "odesim.errors",
    "MissingError": "odesim.errors",
    "NumericalError": "odesim.errors",
    "Run": "odesim.store",
    "System": "derivations.contract",
    "Trajectory": "odesim.request.trajectory",
    "UsageError": "derivations.contract",
    "Verdicts": "odesim.evidence.verdicts",
}
"""Modules of the public types.  They import NumPy and are therefore loaded at first use."""


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    if name in _TYPES:
        import importlib

        return getattr(importlib.import_module(_TYPES[name]), name)
    raise AttributeError(f"module 'odesim' has no attribute {name!r}")

"""Saved times of a run: equally spaced, with early ones besides where a stage goes on over decades."""

from typing import TYPE_CHECKING

import numpy as np

from derivations.contract import Dynamics

if TYPE_CHECKING:
    from odesim.request.case import Case

EARLY = 40
"""Early saved times of a decade."""


def has_early_times(case: "Case") -> bool:
    """Return True for a stage that goes on over decades of time (`decades`) if no number of saved times was given."""
    stage = case.system.stage(case.stage)
    return isinstance(stage, Dynamics) and stage.decades and "save_points" not in case.options


def saved_times(case: "Case", last: float, most: int | None = None) -> np.ndarray:
    """Equally spaced times from 0 to `last`, at most `most`, and early ones for a logarithmic axis of time.

    The early ones are `EARLY` a decade, from four decades before the end until even spacing is finer.  States at the
    equally spaced times do not depend on them: they are read between the steps of the integrator.
    """
    even = np.linspace(0.0, last, min(case.save_points, most or case.save_points))
    if not has_early_times(case):
        return even
    return np.union1d(even, np.geomspace(1e-4 * last, 1e-1 * last, 3 * EARLY + 1))

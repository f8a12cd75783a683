"""Fluctuations along the path of a setting, with the mixture of flows after a saddle. Bands are computed from them."""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from odesim.study import bands, fluctuations
from odesim.study.bands import Band, Setting
from odesim.study.fluctuations import Fluctuations
from odesim.study.quantities import Quantity

RARE = 0.1
"""Largest kurtosis of a step, relative to its number of samples, at which a sum over a relaxation time counts as
Gaussian.
"""
BIASED = 6.0
"""Largest difference between the mean increment and the flow of an exact tier, in standard errors of the points."""


@dataclasses.dataclass(frozen=True)
class Solution:
    """Fluctuations along a path.

    `rare` is above 0 if a few rare samples dominate the spread (`rare_samples`). After the saved time `split_at` the
    distribution is a mixture of the `parts`; `directions` is the number of growing directions. `parts` is empty if the
    flow stays linear or no mixture was requested.
    """

    setting: Setting
    course: Fluctuations
    rare: float
    parts: Sequence[Fluctuations]
    split_at: int | None
    directions: int

    def band(self, quantity: Quantity, level: float) -> Band:
        """Return the band of a quantity at all times or, without a mixture, up to the split."""
        return bands.band(self.setting, self.course, quantity, level, self.parts, self.split_at)


def solve(
    setting: Setting, times: np.ndarray, tell: Callable[[float, float], object], *,
    accuracy: float = fluctuations.ACCURACY, mixed: bool = True,
) -> Solution:  # fmt: skip
    """Return the fluctuations of a setting at increasing times, the first of which is the start.

    Arguments:
        setting: The question about SGD.
        times: Times (T,) on the clock of the equations, from 0.
        tell: Function called with the finished part, between .05 and .8, and 1.
        accuracy: Largest relative error of J and D by interpolation.
        mixed: Integrate the parts of a mixture after a saddle.

    Raises `UsageError` and `NumericalError` as `odesim.study.fluctuations.solve` does.
    """
    tell(0.05, 1.0)
    course = fluctuations.solve(
        setting.problem, setting.increments, setting.clock, times, start=setting.start, accuracy=accuracy,
        shifted=setting.shifted,
    )  # fmt: skip
    if course.bias > BIASED:
        setting = dataclasses.replace(setting, shifted=False)
        course = dataclasses.replace(course, shift=np.zeros_like(course.shift))
    tell(0.5, 1.0)
    rare = rare_samples(setting, course)
    split_index = None if rare else bands.split_time(setting, course)
    split_index = None if split_index is None or split_index + 1 >= len(times) else split_index
    parts: list[Fluctuations] = []
    directions = 0
    if split_index is not None and mixed:
        parts, directions = bands.split(setting, course, split_index, times[split_index + 1 :])
    tell(0.8, 1.0)
    return Solution(setting, course, rare, parts, split_index, directions)


def rare_samples(setting: Setting, course: Fluctuations) -> float:
    """Return the largest ratio of the kurtosis of a step to its allowed value.

    The allowed value is `RARE` times the number of samples in a relaxation time. The result is 0 if it is at most 1:
    sums over these samples count as Gaussian. The relaxation time is 1/|J_ii|, or the whole run if that is
    shorter.
    """
    speed = np.abs(np.diagonal(course.jacobians, axis1=1, axis2=2)).max(axis=0)
    span = float(course.time[-1])
    relaxation = np.minimum(span, 1 / np.maximum(speed, 1 / span))
    samples = setting.clock.batch * relaxation / course.eps
    ratio = float((course.kurtosis / (RARE * samples)).max(initial=0.0))
    return ratio if ratio > 1 else 0.0


def rare_sentence(solution: Solution) -> str:
    """Return the sentence on rare samples that dominate the spread of SGD."""
    course, d = solution.course, solution.setting.clock.d
    return (
        f"no band at d = {d:g}: a few rare samples dominate the spread of SGD. The kurtosis of one step is up to "
        f"{course.kurtosis.max():.2g}. This is up to {solution.rare:.2g} times the allowed value, which is {RARE:g} "
        "of the number of samples in a relaxation time. Simulate instead, or use a larger d"
    )

"""Fluctuations along the path of a setting, with the mixture of flows behind a saddle: all that bands are read from."""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from odesim.study import bands, fluctuations
from odesim.study.bands import Band, Setting
from odesim.study.fluctuations import Fluctuations
from odesim.study.quantities import Quantity

RARE = 0.1
"""A sum over a relaxation time counts as Gaussian while the kurtosis of a step is below this part of its samples."""
BIASED = 6.0
"""Standard errors of the points by which the mean increment may differ from the flow of an exact tier."""


@dataclasses.dataclass(frozen=True)
class Solution:
    """Fluctuations along a path.

    `rare` is above 0 where a few rare samples decide about the spread (`rare_samples`). Behind `split_at`, a saved
    time, the law is a mixture of the `parts`, along so many growing `directions`; `parts` is empty where the flow stays
    linear, and where no mixture was asked for.
    """

    setting: Setting
    course: Fluctuations
    rare: float
    parts: Sequence[Fluctuations]
    split_at: int | None
    directions: int

    def band(self, quantity: Quantity, level: float) -> Band:
        """Return the band of a quantity at all times, or up to the split where there is no mixture behind it."""
        return bands.band(self.setting, self.course, quantity, level, self.parts, self.split_at)


def solve(
    setting: Setting, times: np.ndarray, tell: Callable[[float, float], object], *,
    accuracy: float = fluctuations.ACCURACY, mixed: bool = True,
) -> Solution:  # fmt: skip
    """Return the fluctuations of a setting at increasing times, the first of which is the start.

    Arguments:
        setting: The question about SGD.
        times: Times (T,) on the clock of the equations, from 0.
        tell: Called with the part that is done, between .05 and .8, and 1.
        accuracy: Largest relative error of J and D by interpolation.
        mixed: Follow the parts of a mixture behind a saddle.

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
    at = None if rare else bands.split_time(setting, course)
    at = None if at is None or at + 1 >= len(times) else at
    parts: list[Fluctuations] = []
    directions = 0
    if at is not None and mixed:
        parts, directions = bands.split(setting, course, at, times[at + 1 :])
    tell(0.8, 1.0)
    return Solution(setting, course, rare, parts, at, directions)


def rare_samples(setting: Setting, course: Fluctuations) -> float:
    """Return the largest ratio of the kurtosis of a step to the samples that decide about it.

    It is 0 where sums over these samples are Gaussian. The samples are those of a relaxation time 1/|J_ii|, or of the
    whole run where that is shorter.
    """
    speed = np.abs(np.diagonal(course.jacobians, axis1=1, axis2=2)).max(axis=0)
    span = float(course.time[-1])
    relaxation = np.minimum(span, 1 / np.maximum(speed, 1 / span))
    samples = setting.clock.batch * relaxation / course.eps
    ratio = float((course.kurtosis / (RARE * samples)).max(initial=0.0))
    return ratio if ratio > 1 else 0.0


def rare_sentence(solution: Solution) -> str:
    """Return the sentence on rare samples that decide about the spread of SGD."""
    course, d = solution.course, solution.setting.clock.d
    return (
        f"no band at d = {d:g}: a few rare samples decide the spread of SGD (the kurtosis of one "
        f"step is {course.kurtosis.max():.2g}, {solution.rare:.2g} times what sums over a relaxation time level out); "
        "simulate instead, or take a larger d"
    )

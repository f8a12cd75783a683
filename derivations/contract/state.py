"""State of a stage: components, initial condition, and hitting times."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

Labelled = Mapping[str, tuple[tuple[str, ...], Any, str]]
"""Arrays with their dimensions and meaning: name -> (dims, values, meaning)."""

PARTS, BY_PARTS = "block", ", by blocks of the inputs"
"""The dimension of a component over parts of vectors, whose sum is the overlap of whole vectors; end of its meaning."""


@dataclasses.dataclass(frozen=True)
class Component:
    """Variable of the state: name, named dimensions, bounds, symbol in the paper, and meaning."""

    name: str
    dims: tuple[str, ...]
    bounds: tuple[float, float] = (-1.0, 1.0)
    symbol: str = ""
    meaning: str = ""


@dataclasses.dataclass(frozen=True)
class Crossing:
    """Hitting times: the first times at which the entries of `component` pass `threshold`, found by root-finding.

    `direction` is +1 (upwards) or -1 (downwards).  With `absolute` the absolute value of the entry is used.  With
    `terminal` the run stops at the first crossing, and `reason` is the sentence that is stored as its outcome.  If
    `summed` is given, an axis of the component counted from its end, entries are sums over this axis.
    """

    name: str
    component: str
    threshold: float
    direction: int = 1
    absolute: bool = False
    terminal: bool = False
    reason: str = ""
    meaning: str = ""
    summed: int | None = None

    def entries(self, values: Any) -> Any:
        """The entries in question, from values of the component (.., *shape).

        >>> Crossing("T", "x", 0.5, summed=-2).entries(np.ones((4, 3, 2))).tolist()
        [[3.0, 3.0], [3.0, 3.0], [3.0, 3.0], [3.0, 3.0]]
        """
        return values if self.summed is None else values.sum(axis=self.summed)

    def dims(self, dims: tuple[str, ...]) -> tuple[str, ...]:
        """The dimensions of the hitting times, from those of the component.

        >>> Crossing("T", "x", 0.5, summed=-2).dims(("block", "unit"))
        ('unit',)
        """
        return tuple(dim for k, dim in enumerate(dims) if self.summed is None or k != len(dims) + self.summed)

    def margin(self, values: Any) -> Any:
        """Return the excess of values of the component over the threshold: not negative after the crossing.

        >>> float(Crossing("T", "x", 0.5, absolute=True).margin(-0.75))
        0.25
        """
        sized = np.abs(values) if self.absolute else np.asarray(values)
        return self.direction * (sized - self.threshold)


@dataclasses.dataclass(frozen=True)
class Initial:
    """Initial condition of a stage: the components of its state, and numbers that are constant during the stage.

    `parameters` are those of the run, with sizes that were read from a file.  `scale` is the typical size of small
    entries (1/sqrt(d) for random directions), which determines the absolute tolerance.  If `exact` is true, the user
    gave the components as numbers.  Otherwise they are products of vectors and contain rounding errors.
    """

    parameters: Any
    state: Mapping[str, np.ndarray]
    constants: Mapping[str, np.ndarray]
    scale: float
    exact: bool = False

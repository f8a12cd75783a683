"""The state of a stage: its components, where it starts, and what is located along its way."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

Labelled = Mapping[str, tuple[tuple[str, ...], Any, str]]
"""Arrays with their dimensions and meaning: name -> (dims, values, meaning)."""

PARTS, BY_PARTS = "block", ", by blocks of the inputs"
"""The dimension of a component over parts of vectors, whose sum is the overlap of whole ones; how its meaning ends."""


@dataclasses.dataclass(frozen=True)
class Component:
    """One variable of the state: its name, named dimensions, bounds, symbol in the paper, and meaning."""

    name: str
    dims: tuple[str, ...]
    bounds: tuple[float, float] = (-1.0, 1.0)
    symbol: str = ""
    meaning: str = ""


@dataclasses.dataclass(frozen=True)
class Crossing:
    """A hitting time to locate by root-finding: when each entry of `component` first passes `threshold`.

    `direction` is +1 (upwards) or -1 (downwards); with `absolute` the size of the entry counts.  With `terminal`
    the run stops at the first crossing, and `reason` is the sentence stored as the outcome.  With `summed`, an axis of
    the component counted from its end, entries are sums over that axis.
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
        """The entries that are watched, from values of the component (.., *shape).

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
        """Return by how much values of the component exceed the threshold: not negative once crossed.

        >>> float(Crossing("T", "x", 0.5, absolute=True).margin(-0.75))
        0.25
        """
        sized = np.abs(values) if self.absolute else np.asarray(values)
        return self.direction * (sized - self.threshold)


@dataclasses.dataclass(frozen=True)
class Initial:
    """The start of a stage: the components of its state, and the numbers that stay constant during it.

    `parameters` are those of the run after sizes were read from a file; `scale` is the typical size of the
    small entries (1/sqrt(d) for random directions), from which the absolute tolerance is taken.  The components of an
    `exact` start were given as numbers; others are products of vectors, whose rounding is no start of its own.
    """

    parameters: Any
    state: Mapping[str, np.ndarray]
    constants: Mapping[str, np.ndarray]
    scale: float
    exact: bool = False

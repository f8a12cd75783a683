"""The parts of a declaration that concern runs: times to locate, and numbers that are taken together."""

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class Event:
    """Hitting time: the time at which an entry of the order parameter `of` passes `threshold`."""

    name: str
    of: str
    threshold: float
    direction: int = 1
    absolute: bool = False


@dataclasses.dataclass(frozen=True)
class Preset:
    """Named set of parameter values, with a description."""

    name: str
    meaning: str
    parameters: tuple[tuple[str, Any], ...]

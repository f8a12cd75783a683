"""The length of the student."""

from collections.abc import Mapping
from typing import Any


def length(lab: Any, point: Mapping[str, Any], seed: int, end: float = 1.0) -> float:
    """The distance of q(20) from its limit."""
    return float(abs(lab.integrate(seed=seed, until=20.0, save_points=2)["q"][-1] - end).max())

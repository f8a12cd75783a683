"""What several claims share: ways to write and to break a claim, states, and the standard runs."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from derivations.chen import SOURCE, initial
from derivations.chen.parameters import Parameters
from derivations.claim import Claim, Grid, Law
from derivations.contract import Initial

ERRATA = "derivations/chen/README.md"
SETTINGS: dict[int, dict[str, Any]] = {
    1: {"gamma": (0.5, 3.0), "sigma_p": 1.0},
    2: {"gamma": (0.5, 3.0), "sigma_p": 2.0},
    3: {"gamma": (0.5, 2.0), "sigma_p": 1.0},
    4: {"gamma": (0.5, 2.0), "sigma_p": 2.0},
}
"""The paper's four settings (Appendix A.2): alpha U(0.5, 2) and beta U(1, 2) in all of them."""


def at(place: str) -> Any:
    """The paper, at a place in it."""
    return SOURCE.at(place)


def grid(*points: Mapping[str, Any], seeds: int = 1) -> Grid:
    """A sweep over points."""
    return Grid(tuple(points) or ({},), seeds)


def over(name: str, *values: Any, seeds: int = 1, **fixed: Any) -> Grid:
    """A sweep over the values of one coordinate."""
    return Grid(tuple({name: value, **fixed} for value in values), seeds)


def claim(
    id: str, statement: str, place: str, measure: Callable[..., Any], law: Law, quick: Grid | None,
    control: Callable[[Claim], Claim], rungs: tuple[int, ...], full: Grid | None = None, **more: Any,
) -> Claim:  # fmt: skip
    """A claim in the order in which one reads it; without `full` the quick sweep serves every effort."""
    sweep = {"quick": quick} | ({"full": full} if full is not None else {})
    return Claim(
        id=id, statement=statement, source=at(place), measure=measure, law=law, sweep=sweep, control=control,
        rungs=rungs, **more,
    )  # fmt: skip


def random_state(rng: np.random.Generator, size: float, router: float, **parameters: Any) -> Initial:
    """Overlaps of given sizes, everything random."""
    p = Parameters(**parameters)
    feat, cen = size * rng.standard_normal((2, p.M, p.J, p.K))
    gcen, gfeat = router * rng.standard_normal((2, p.M, p.K))
    return initial.from_overlaps(p, feat, cen, gcen, gfeat)


def laws_of(point: Mapping[str, Any]) -> dict[str, Any]:
    """The laws of the setting of a point (3 unless given)."""
    return SETTINGS[point.get("setting", 3)]

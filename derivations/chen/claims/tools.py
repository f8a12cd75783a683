"""Common functions of several claims: sources, controls, states, and the standard runs."""

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.broken import claim_of
from derivations.chen import SOURCE, initial
from derivations.chen.parameters import Parameters
from derivations.contract import Initial

ERRATA = "derivations/chen/README.md"
SETTINGS: dict[int, dict[str, Any]] = {
    1: {"gamma": (0.5, 3.0), "sigma_p": 1.0},
    2: {"gamma": (0.5, 3.0), "sigma_p": 2.0},
    3: {"gamma": (0.5, 2.0), "sigma_p": 1.0},
    4: {"gamma": (0.5, 2.0), "sigma_p": 2.0},
}
"""The paper's four settings (Appendix A.2): alpha U(0.5, 2) and beta U(1, 2) in all of them."""


claim = functools.partial(claim_of, SOURCE)
"""A claim of this paper."""


def at(place: str) -> Any:
    """Return the paper as a source, at the given place."""
    return SOURCE.at(place)


def random_state(rng: np.random.Generator, size: float, router: float, **parameters: Any) -> Initial:
    """Return a state with random overlaps of given sizes."""
    p = Parameters(**parameters)
    feat, cen = size * rng.standard_normal((2, p.M, p.J, p.K))
    gcen, gfeat = router * rng.standard_normal((2, p.M, p.K))
    return initial.from_overlaps(p, feat, cen, gcen, gfeat)


def laws_of(point: Mapping[str, Any]) -> dict[str, Any]:
    """Return the distributions of the setting of a point (setting 3 by default)."""
    return SETTINGS[point.get("setting", 3)]

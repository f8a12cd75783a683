"""Two claims, measured in two modules, so that two processes share them."""

import math
from collections.abc import Mapping
from typing import Any

from derivations.broken import break_measure, claim_of, grid
from derivations.laws import Vanishes

from . import SOURCE, lengths

STATEMENTS = {"Lemma 1": "", "Lemma 2": "", "Remark 3": "it says nothing that could be measured"}


def overlap(lab: Any, point: Mapping[str, Any], seed: int, rate: float = 1.0) -> float:
    """The distance of rho(2) from 1 - (1 - rho(0)) e^-2."""
    run = lab.integrate(seed=seed, until=2.0, save_points=2)
    return float(abs(run["rho"][-1] - (1 - (1 - run["rho"][0]) * math.exp(-2.0 * rate))).max())


CLAIMS = (
    claim_of(
        SOURCE, "lemma-1", "rho = 1 - (1 - rho(0)) exp(-t).", "Lemma 1", overlap, Vanishes(1e-6), grid(seeds=2),
        break_measure(lambda lab, point, seed: overlap(lab, point, seed, 1.01)), rungs=(7,),
    ),
    claim_of(
        SOURCE, "lemma-2", "|w| tends to 1.", "Lemma 2", lengths.length, Vanishes(1e-3), grid(seeds=2),
        break_measure(lambda lab, point, seed: lengths.length(lab, point, seed, 1.01)), rungs=(7,),
        erratum="errata-length",
    ),
)  # fmt: skip

"""Theoretical predictions in the figures of a run of `liao`: times of recovery and anti-alignment, and the level
0.9.
"""

from typing import Any

import numpy as np

from derivations.drawing import BLACK, Reference, colours, parameters
from derivations.liao.race import race

FOUND = 0.9
"""An alignment of this size counts as recovered (Definition of the hitting times `T_gamma`)."""
ALIGNMENTS = ("gamma1", "gamma2")
"""Content of the panel of alignments."""
TIERS = ("exact", "riccati", "riccati_paper")
"""The tiers in which experts recover teachers from small overlaps, and pairs annihilate."""
SMALL = 0.5
"""Largest initial overlap for the race, which is the leading order in small overlaps."""


def references(run: Any) -> list[Reference]:
    """The level 0.9, and for cubic experts the race determined by the initial overlaps.

    Expert i would recover teacher j at 1/(4.5 gamma2_ij). The student pair (i, r) annihilates at 1/(9 |I2_ir|) if I2 is
    negative. With norms: sqrt(d)/(4.5 u) and sqrt(d)/(9 |z|) for gamma2 = u/sqrt(d), I2 = z/sqrt(d).
    """
    if "gamma2" not in run or run.sizes.get("time", 0) < 2:
        return []
    return [Reference("alignment", "0.9: found", level=FOUND, of=ALIGNMENTS), *_race(run)]


def _race(run: Any) -> list[Reference]:
    """The predicted captures, and the first anti-alignment, at sqrt(d)/(9 max |z-|)."""
    given = parameters(run)
    begins = run.attrs.get("stage") == "train" and float(run["time"][0]) == 0.0 and "I2" in run
    if (
        not begins
        or given.get("tier") not in TIERS
        or given.get("degree") != 3
        or run["gamma2"].dims != ("time", "expert", "teacher")
    ):
        return []
    u, z = run["gamma2"].values[0], run["I2"].values[0].copy()
    np.fill_diagonal(z, 0.0)
    if max(np.abs(u).max(initial=0.0), np.abs(z).max(initial=0.0)) > SMALL:
        return []
    norm = run["norm_w"].values if "norm_w" in run else np.ones(len(u))
    rate = (norm[0] if norm.ndim == 2 else norm) ** -2.0  # a simulation measures the norms along the run
    u, z = u * rate[:, None], z * (rate[:, None] + rate) / 2
    if given.get("tier") == "riccati_paper":
        z = np.zeros_like(z)  # the proof of Lemma 7 has no annihilation
    found, shades = [], colours(u.shape[1])
    for event in race(u, z):
        if event.kind == "capture":
            label = r"$\sqrt{d}/(4.5\,u)$: found, as $d\to\infty$"
            found.append(Reference("alignment", label, at=event.time, colour=shades[event.second], of=ALIGNMENTS))
    if z.min(initial=0.0) < 0:
        label = r"$\sqrt{d}/(9\,\max|z_-|)$: anti-aligned, as $d\to\infty$"
        for panel in ("min_I2", "anti_aligned"):
            found.append(Reference(panel, label, at=float(-1 / (9 * z.min())), colour=BLACK))
    return found

"""Data that satisfy a law perfectly, at the points and seeds of a claim: whether a form could be confirmed at all."""

import functools
import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from derivations.laws import Agrees, All, Bounded, Equals, Mean, Power, Premise, Probability, Proven, Tends, Vanishes
from derivations.laws.agreement import score


@functools.singledispatch
def ideal(law: Any, cases: list[tuple[dict[str, Any], int]]) -> Iterator[list[Any]]:
    """Candidates for the measurements of all (point, seed) that a law ought to accept."""
    raise TypeError(f"no ideal data for the law {law!r}")


@ideal.register(Vanishes)
@ideal.register(Proven)
def _zero(law, cases):
    yield [0.0] * len(cases)


@ideal.register(Agrees)
def _agreement(law, cases):
    yield [score(1.0, 0.0, 1.0)] * len(cases)


@ideal.register(Equals)
def _value(law, cases):
    yield [law.value] * len(cases)


@ideal.register(Bounded)
def _bound(law, cases):
    for end in (law.low, law.high, (law.low + law.high) / 2):
        if math.isfinite(end):
            yield [end] * len(cases)


@ideal.register(Mean)
def _inside(law, cases):
    for end, inward, limit in ((law.low, 1, law.limits[1]), (law.high, -1, law.limits[0])):
        if math.isfinite(end):  # the mean of equal numbers is one of them but for rounding
            yield [end + inward * (0.05 * abs(end) or 1e-3)] * len(cases)
            yield [(end + limit) / 2 if math.isfinite(limit) else end + inward] * len(cases)


@ideal.register(Tends)
def _always(law, cases):
    yield [1.0] * len(cases)


@ideal.register(Premise)
def _supposed(law, cases):
    yield [law.low] * len(cases)


@ideal.register(Power)
def _power(law, cases):
    yield [float(point[law.over]) ** law.exponent + law.shift for point, _ in cases]


@ideal.register(Probability)
def _share(law, cases):
    count = len(cases)
    for share in (law.low, law.high, (law.low + law.high) / 2, 0.0, 1.0):
        yield (np.arange(count) < round(share * count)).astype(float).tolist()


@ideal.register(All)
def _parts(law, cases):
    for chosen in itertools.product(*(ideal(part, cases) for part in law.parts.values())):
        yield [dict(zip(law.parts, row, strict=True)) for row in zip(*chosen, strict=True)]


def could_hold(law: Any, grid: Any, settings: dict[str, Any]) -> bool:
    """Return True if a law confirms some data at the points and seeds of a sweep, or is consistent with them."""
    cases = [({**point, **settings}, seed) for point in grid.points for seed in range(grid.seeds)]
    for found in ideal(law, cases):
        samples = [(point, seed, value) for (point, seed), value in zip(cases, found, strict=True)]
        if law.judge(samples).answer in ("confirmed", "consistent"):
            return True
    return False

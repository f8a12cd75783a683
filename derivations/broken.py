"""How a claim is made of its parts, and how it is broken for its control: the same code must refute the twin."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from derivations.claim import Claim, Grid, Law


def once(*points: Mapping[str, Any], seeds: int = 1) -> dict[str, Grid]:
    """The same sweep at every effort."""
    return {"quick": Grid(tuple(points) or ({},), seeds)}


def break_law(**fields: Any) -> Callable[[Claim], Claim]:
    """A control that keeps the measurement and predicts something else: fields of the law are replaced."""
    return lambda claim: _with_law(claim, dataclasses.replace(claim.law, **fields))  # type: ignore[type-var]


def break_measure(measure: Callable[..., Any]) -> Callable[[Claim], Claim]:
    """A control that keeps the law and measures a broken twin of the quantity."""
    return lambda claim: dataclasses.replace(claim, measure=measure)


def new_law(law: Law) -> Callable[[Claim], Claim]:
    """A control with another law altogether."""
    return lambda claim: _with_law(claim, law)


def _with_law(claim: Claim, law: Any) -> Claim:
    variants = tuple(dataclasses.replace(variant, law=None) for variant in claim.variants)
    return dataclasses.replace(claim, law=law, variants=variants)

"""How a claim is made of its parts, and how it is broken for its control: the same code must refute the twin."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from derivations.claim import Claim, Grid, Law
from derivations.contract import Source


def grid(*points: Mapping[str, Any], seeds: int = 1) -> Grid:
    """A sweep over points."""
    return Grid(tuple(points) or ({},), seeds)


def over(name: str, *values: Any, seeds: int = 1, **fixed: Any) -> Grid:
    """A sweep over the values of one coordinate."""
    return Grid(tuple({name: value, **fixed} for value in values), seeds)


def claim_of(
    source: Source, id: str, statement: str, place: str, measure: Callable[..., Any], law: Law, quick: Grid | None,
    control: Callable[[Claim], Claim], *, rungs: tuple[int, ...], full: Grid | None = None, **more: Any,
) -> Claim:  # fmt: skip
    """A claim of a paper in the order in which one reads it; without `full` the quick sweep serves every effort."""
    sweep = {"quick": quick} | ({"full": full} if full is not None else {})
    return Claim(
        id=id, statement=statement, source=source.at(place), measure=measure, law=law, sweep=sweep, control=control,
        rungs=rungs, **more,
    )  # fmt: skip


def once(*points: Mapping[str, Any], seeds: int = 1) -> dict[str, Grid]:
    """The same sweep at every effort."""
    return {"quick": grid(*points, seeds=seeds)}


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

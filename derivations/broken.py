"""Construction of claims from their parts, and of false versions that the same code must refute."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from derivations.claim import Claim, Grid, Law, Variant
from derivations.contract import Source
from derivations.laws import All, Power


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
    """A claim of a paper with its parts in reading order; without `full` the quick sweep serves every effort."""
    sweep = {"quick": quick} | ({"full": full} if full is not None else {})
    return Claim(
        id=id, statement=statement, source=source.at(place), measure=measure, law=law, sweep=sweep, control=control,
        rungs=rungs, **more,
    )  # fmt: skip


def once(*points: Mapping[str, Any], seeds: int = 1) -> dict[str, Grid]:
    """The same sweep at every effort."""
    return {"quick": grid(*points, seeds=seeds)}


def break_law(**fields: Any) -> Callable[[Claim], Claim]:
    """A control that replaces fields of the law, with the measurement of the claim."""
    return lambda claim: _with_law(claim, dataclasses.replace(claim.law, **fields))  # type: ignore[type-var]


def break_part(name: str, **fields: Any) -> Callable[[Claim], Claim]:
    """A control that replaces one part of a law `All`, with the measurement of the claim."""

    def broken(claim: Claim) -> Claim:
        parts: Mapping[str, Any] = claim.law.parts  # type: ignore[attr-defined]
        return _with_law(claim, All({**parts, name: dataclasses.replace(parts[name], **fields)}))

    return broken


def break_number(margins: float = 2.0) -> Callable[[Claim], Claim]:
    """A control that moves the predicted number by `margins` margins of the law, with the measurement of the claim.

    The number is the exponent of a `Power` or the value of an `Equals`. The rivals of the `Power` are omitted, because
    one of them may be the moved exponent.
    """

    def broken(claim: Claim) -> Claim:
        law: Any = claim.law
        if isinstance(law, Power):
            moved: Any = dataclasses.replace(law, exponent=law.exponent + margins * law.margin, rivals=())
        else:
            moved = dataclasses.replace(law, value=law.value + margins * law.margin)
        return _with_law(claim, moved)

    return broken


def break_measure(measure: Callable[..., Any]) -> Callable[[Claim], Claim]:
    """A control that keeps the law and measures a false version of the quantity."""
    return lambda claim: dataclasses.replace(claim, measure=measure)


def break_setting(**settings: Any) -> Callable[[Claim], Claim]:
    """A control that keeps law and measurement and replaces settings of every point."""

    def broken(claim: Claim) -> Claim:
        variants = tuple(dataclasses.replace(v, settings={**v.settings, **settings}) for v in claim.variants)
        return dataclasses.replace(claim, variants=variants)

    return broken


def with_seeds(seeds: int, control: Callable[[Claim], Claim]) -> Callable[[Claim], Claim]:
    """A control with `seeds` seeds per point, because the false version may scatter more than the claim."""

    def broken(claim: Claim) -> Claim:
        sweep = {effort: plan and dataclasses.replace(plan, seeds=seeds) for effort, plan in claim.sweep.items()}
        return control(dataclasses.replace(claim, sweep=sweep))

    return broken


def new_law(law: Law) -> Callable[[Claim], Claim]:
    """A control with a different law."""
    return lambda claim: _with_law(claim, law)


def _with_law(claim: Claim, law: Any) -> Claim:
    variants = tuple(dataclasses.replace(variant, law=None) for variant in claim.variants)
    return dataclasses.replace(claim, law=law, variants=variants)


def focused(claim: Claim, variant: Variant) -> Claim:
    """Return the claim reduced to one of its forms, whose law and sweep become those of the claim."""
    form = dataclasses.replace(variant, law=None, sweep=None)
    return dataclasses.replace(
        claim,
        law=variant.law or claim.law,
        sweep=variant.sweep or claim.sweep,
        variants=(form,),
        control_variant="",
    )


def form_of_control(claim: Claim) -> Variant:
    """Return the form for which the control of a claim is written: the named one, or the first."""
    return next((form for form in claim.variants if form.name == claim.control_variant), claim.variants[0])


def twin_of(claim: Claim, variant: Variant | None = None) -> Claim:
    """Return the false version of a form (by default of the form of the control), a claim with only this form.

    The control is that of the form or, if it has none, that of the claim.
    """
    form = variant or form_of_control(claim)
    return (form.control or claim.control)(focused(claim, form))

"""Slots that appear in a unit only through one sum: two names for one weight vector."""

import random
from collections.abc import Collection, Iterator

from derivations.contract import UsageError
from derivations.declare.grammar import Tree, number

DIGITS = 1e-9
"""Number of significant digits to which ratios of coefficients are compared."""


def together(unit: Tree, slots: Collection[str], moving: Collection[str]) -> tuple[str, str] | None:
    """Return the first two slots that enter `unit` only through one linear combination, or `None`.

    `moving` are the names of parameters of a unit that may change in time, so that products with them are not a
    constant combination. Other parameters are constant; each is replaced by a random value.

    >>> from derivations.declare.grammar import read
    >>> together(read("relu(w + b)"), ["w", "b"], []), together(read("v*erf(w + v)"), ["w", "v"], [])
    (('w', 'b'), None)
    """
    rng = random.Random(0)
    names = [name for name in unit.names() if name not in slots and name not in moving]
    values = {name: rng.uniform(0.5, 1.5) for name in names}
    forms = list(_forms(unit, frozenset(slots), values))
    for k, first in enumerate(slots):
        for second in list(slots)[k + 1 :]:
            if all(form is not None for form in forms) and _proportional(forms, first, second):
                return first, second
    return None


def _proportional(forms: "list[dict[str, float] | None]", first: str, second: str) -> bool:
    """Return True if two slots have coefficients of one ratio in every linear form."""
    pairs = [(form.get(first, 0.0), form.get(second, 0.0)) for form in forms if form is not None]
    pairs = [pair for pair in pairs if any(pair)]
    if not pairs or any(not a or not b for a, b in pairs):
        return False
    return all(abs(a / b - pairs[0][0] / pairs[0][1]) <= DIGITS * abs(a / b) for a, b in pairs)


def _forms(node: Tree, slots: frozenset[str], values: dict[str, float]) -> "Iterator[dict[str, float] | None]":
    """Yield the maximal linear forms in slots; `None` for a slot's norm, which `wick` depends on."""
    if not slots & set(node.names()):
        return
    form = _linear(node, slots, values)
    if form is not None:
        yield form
        return
    if node.kind in ("+", "-"):
        terms = list(_terms(node, 1.0))
        linear = [(sign, _linear(term, slots, values)) for sign, term in terms]
        combined: dict[str, float] = {}
        for sign, part in linear:
            for slot, c in (part or {}).items():
                combined[slot] = combined.get(slot, 0.0) + sign * c
        yield from [combined] if combined else []
        for (_, term), (_, part) in zip(terms, linear, strict=True):
            yield from _forms(term, slots, values) if part is None else ()
        return
    if node.kind == "call" and node.word == "wick":
        yield None
    for part in node.parts:
        yield from _forms(part, slots, values)


def _terms(node: Tree, sign: float) -> Iterator[tuple[float, Tree]]:
    """Yield the terms of a sum, each with its sign."""
    if node.kind not in ("+", "-"):
        yield sign, node
        return
    yield from _terms(node.parts[0], sign)
    yield from _terms(node.parts[1], sign if node.kind == "+" else -sign)


def _linear(node: Tree, slots: frozenset[str], values: dict[str, float]) -> dict[str, float] | None:
    """Return the coefficients of the slots if `node` is linear in them up to a constant, else `None`."""
    if not slots & set(node.names()):
        return {}
    if node.kind == "name":
        return {node.word: 1.0}
    if node.kind in ("+", "-"):
        left, right = (_linear(part, slots, values) for part in node.parts)
        if left is None or right is None:
            return None
        sign = 1.0 if node.kind == "+" else -1.0
        return {slot: left.get(slot, 0.0) + sign * right.get(slot, 0.0) for slot in {*left, *right}}
    if node.kind in ("*", "/"):
        left, right = node.parts
        within, factor = (right, left) if slots & set(right.names()) else (left, right)
        if slots & set(factor.names()) or (node.kind == "/" and within is right):
            return None
        try:
            size = number(factor, values)
        except UsageError:  # it contains a number that moves
            return None
        if node.kind == "/" and size == 0:
            return None
        form = _linear(within, slots, values)
        return form and {slot: c / size if node.kind == "/" else c * size for slot, c in form.items()}
    return None

"""Pass: kernels of several functions become one evaluation at all their index tuples, mirrored pairs once.

Two experts i and j exchange their roles if the pair (j, i) replaces (i, j): the arguments of the kernel are then those
of (i, j) in another order, and so are its functions. Half of the pairs are therefore enough.
"""

import dataclasses
import random
from typing import Any

import numpy as np

from derivations.equations.arrays import Arrays
from derivations.equations.lower.lift import Lift
from derivations.equations.program import Item, Pairs, Program, Ranges, Use, series
from derivations.statement import Definition, Kernel, in_order, indices_of, key_of, sp

EQUAL = 1e-12
"""Two functions that agree to this accuracy at a random point are equal; others have a relative difference of order
1.
"""


def gather_pairs(program: Program, lift: Lift, symmetric: frozenset[str]) -> Program:
    """Replace definitions by kernels of several functions with `Pairs`; `symmetric` arrays equal their transposes."""
    groups: dict[str, list[Definition]] = {}
    kernels: dict[str, Kernel] = {}
    changing = {name for item in program.body for name in item.writes}
    for definition in lift.kernels:
        # Arrays of constants are computed once, in the set-up.
        if definition.kernel is not None and changing.issuperset(map(key_of, definition.targets)):
            groups.setdefault(definition.kernel.name, []).append(definition)
            kernels[definition.kernel.name] = definition.kernel
    place: dict[str, Item] = {}
    replaced: set[str] = set()
    for name, definitions in groups.items():
        targets = [key_of(t) for d in definitions for t in d.targets]
        lift.items = []
        pairs = _pairs(kernels[name], definitions, lift, symmetric)
        place[targets[0]] = pairs
        replaced |= set(targets)
    body: list[Item] = []
    for item in program.body:
        first = next((n for n in item.writes if n in place), None)
        if first is not None:
            body.append(place[first])
        elif not item.writes & replaced:
            body.append(item)
    return dataclasses.replace(program, body=ordered(body))


def ordered(body: list[Item]) -> tuple[Item, ...]:
    """The items in an order such that each comes after the items that it depends on; otherwise in their order."""
    waiting, done = list(body), frozenset()
    pending = frozenset().union(*(item.writes for item in body))
    out: list[Item] = []
    while waiting:
        item = next(i for i in waiting if not i.reads & (pending - done))
        waiting.remove(item)
        out.append(item)
        done |= item.writes
    return tuple(out)


def _pairs(kernel: Kernel, definitions: list[Definition], lift: Lift, symmetric: frozenset[str]) -> Pairs:
    slots = tuple(kernel.arguments)
    lift.flat = True
    values = [lift.lift(kernel.values[name], ()) for name in kernel.values]
    lift.flat = False
    uses = []
    for d in definitions:
        axes = tuple(indices_of(d.targets[0]))
        lift.prefix = key_of(d.targets[0])
        arguments = tuple(lift.named(lift.lift(a, axes), axes) for a in d.value)
        mirrored = _mirrored(values, slots, axes, tuple(d.value), symmetric)
        uses.append(Use(tuple(key_of(t) for t in d.targets), axes, arguments, mirrored))
    return Pairs(kernel.name, slots, tuple(values), tuple(uses), kernel.as_written)


def _mirrored(
    values: list[Any],
    slots: tuple[Any, ...],
    axes: tuple[Any, ...],
    arguments: tuple[Any, ...],
    symmetric: frozenset[str],
) -> tuple[int, ...] | None:
    """For every function, the function with its value at (j, i); missing functions are appended to `values`.

    None unless the arguments at (j, i) are those at (i, j) in another order.
    """
    if len(axes) < 2 or (axes[-2].lower, axes[-2].upper) != (axes[-1].lower, axes[-1].upper):
        return None
    i, j = axes[-2:]

    def canonical(e: Any) -> Any:
        def is_symmetric(x: Any) -> bool:
            return isinstance(x, sp.Indexed) and key_of(x) in symmetric

        return sp.sympify(e).replace(is_symmetric, in_order)

    here = [canonical(a) for a in arguments]
    there = [canonical(sp.sympify(a).xreplace({i: j, j: i})) for a in arguments]
    if sorted(map(str, here)) != sorted(map(str, there)):
        return None
    exchange = {slot: slots[here.index(a)] for slot, a in zip(slots, there, strict=True)}
    count, found = len(values), []
    for value in values[:count]:
        turned = value.xreplace(exchange)
        same = next((k for k, v in enumerate(values) if _equal(v, turned)), None)
        if same is None:
            values.append(turned)
        found.append(len(values) - 1 if same is None else same)
    return tuple(found)


def _equal(one: Any, two: Any) -> bool:
    """Return True if two functions agree at a random point; a series is an independent number there.

    Positive symbols, such as variances, are drawn above 1, and all others below 1/2, because covariances are smaller.
    """
    draw = random.Random(1)
    atoms = sorted(one.atoms(series) | two.atoms(series), key=str)
    stand = {a: sp.Symbol(f"series_{k}") for k, a in enumerate(atoms)}
    one, two = one.xreplace(stand), two.xreplace(stand)
    symbols = sorted(one.free_symbols | two.free_symbols, key=str)
    point = {s.name: draw.uniform(1.2, 1.4) if s.is_positive else draw.uniform(0.2, 0.4) for s in symbols}
    evaluate = Arrays(Ranges({}, {}), point).value
    with np.errstate(all="ignore"):
        first, second = (float(evaluate(e, ())) for e in (one, two))
    return abs(first - second) < EQUAL * (1 + abs(first))

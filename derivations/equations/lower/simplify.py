"""Passes: constants are computed once, costly functions only at their indices, cheap parts where they are used.

Every pass takes a `Program` and returns one.
"""

import dataclasses
from collections import Counter
from collections.abc import Callable
from typing import Any

from derivations.equations.lower.lift import Lift
from derivations.equations.lower.products import terms_of
from derivations.equations.program import (
    Define,
    Item,
    Program,
    entry,
    indices_in,
    is_condition,
    is_leaf,
    names_in,
    operations,
    series,
)
from derivations.statement import expm1, indices_of, key_of, log1p, sp

COSTLY = (sp.exp, sp.log, expm1, log1p, sp.erf, sp.tanh, sp.asin, sp.sin, sp.cos, series)
"""Functions that take longer than ten multiplications."""
STORED = 8192
"""Larger constant arrays are computed again at every use, which is faster than reading them from memory."""
SHORT = 3
"""Parts with at most this number of operations are evaluated at every use."""
FEW, READ = 6, 3
"""Matrices with at most this number of operations per entry and uses are evaluated at each use: storing takes
longer.
"""


def fold_constants(program: Program, lift: Lift) -> Program:
    """Move parts that depend only on constants to the set-up.

    x[i] = (a + b) y[i] becomes part_x = a + b, in the set-up, and x[i] = part_x y[i].
    """
    setup, body = list(program.setup), []
    changing = program.changing

    def fixed(e: Any) -> bool:
        small = program.ranges.volume(indices_in(e)) <= STORED
        return bool(names_in(e)) and not names_in(e) & changing and small

    for item in program.body:
        if not isinstance(item, Define):
            body.append(item)
            continue

        def name(e: Any, item: Define = item) -> Any:
            found, made = _defined(lift, e, item)
            setup.extend(made)
            return found

        body.append(dataclasses.replace(item, value=_folded(item.value, fixed, name)))
    return dataclasses.replace(program, setup=tuple(setup), body=tuple(body))


def _folded(e: Any, fixed: Callable[[Any], bool], name: Callable[[Any], Any]) -> Any:
    if is_leaf(e) or is_condition(e):
        return e
    if fixed(e):
        number, rest = e.as_coeff_Mul()
        return e if is_leaf(rest) else number * name(rest)
    if isinstance(e, (sp.Mul, sp.Add)):
        constant = [a for a in e.args if fixed(a)]
        if len(constant) > 1 and fixed(e.func(*constant)):
            rest = (_folded(a, fixed, name) for a in e.args if a not in constant)
            return e.func(name(e.func(*constant)), *rest)
    if isinstance(e, sp.Piecewise):
        return sp.Piecewise(*((_folded(value, fixed, name), condition) for value, condition in e.args))
    return e.func(*(_folded(a, fixed, name) for a in e.args))


def _defined(lift: Lift, e: Any, item: Define) -> tuple[Any, list[Item]]:
    """The entry with a part of an item's formula, and the additional definitions."""
    lift.prefix, lift.items = item.name, []
    found = lift.define(e, (), item.domain)
    return found, lift.items


def hoist(program: Program, lift: Lift) -> Program:
    """Define separate arrays for costly functions, if their formula has more indices or several formulas contain
    them.
    """
    counts: Counter[Any] = Counter()
    for item in program.body:
        if isinstance(item, Define):
            counts.update({_anonymous(e, item) for e in sp.preorder_traversal(item.value) if isinstance(e, COSTLY)})
    body: list[Item] = []
    changing = set(program.changing)
    for item in program.body:
        if not isinstance(item, Define):
            body.append(item)
            continue

        def go(e: Any, item: Define = item) -> Any:
            if is_leaf(e) or is_condition(e) or isinstance(e, sp.Piecewise):
                return e
            e = e.func(*map(go, e.args))
            fewer = program.ranges.volume(indices_in(e)) < program.ranges.volume(item.domain)
            alone = isinstance(e, series) and e != item.value  # the engine evaluates series of one argument at a time
            if _costly(e) and names_in(e) & changing and (fewer or alone or counts[_anonymous(e, item)] > 1):
                found, made = _defined(lift, e, item)
                body.extend(made)
                changing.update(name for one in made for name in one.writes)
                return found
            return e

        value = go(item.value)
        body.append(dataclasses.replace(item, value=value))
    return dataclasses.replace(program, body=tuple(body))


def _costly(e: Any) -> bool:
    quotient = isinstance(e, sp.Pow) and not (e.exp.is_Integer and e.exp > 0)
    return isinstance(e, COSTLY) or quotient


def _anonymous(e: Any, item: Define) -> Any:
    """An expression with its indices numbered, so that equal ones of two formulas are equal."""
    present = [i for i in item.domain if i in indices_in(e)]
    return e.xreplace({i: sp.Idx(f"_{k}", (i.lower, i.upper)) for k, i in enumerate(present)})


def inline(program: Program) -> Program:
    """Substitute short parts into the formulas that use them, and long arrays into the only sum that uses them."""
    taken = {
        name for item in program.body if not isinstance(item, Define) for name in item.reads
    } | program.output_names
    # The engine reads the argument of a series from memory.
    at = {x.args[1] for item in program.body if isinstance(item, Define) for x in item.value.atoms(series)}
    taken |= frozenset().union(*map(names_in, at))
    # A sum that is a product of matrices is not changed.
    taken |= frozenset().union(
        *(item.reads for item in program.body if isinstance(item, Define) and terms_of(item, program))
    )
    readers = Counter(name for item in program.body for name in item.reads)
    gone: dict[str, Define] = {}
    body: list[Item] = []
    for item in program.body:
        if not isinstance(item, Define):
            body.append(item)
            continue
        if item.reads & gone.keys():
            item = dataclasses.replace(item, value=_replaced(item.value, gone))
        plain = not item.over and item.name not in taken
        short = operations(item.value) <= SHORT and not item.value.has(*COSTLY, sp.Pow, sp.Piecewise)
        long = program.ranges.volume(item.axes) > STORED and readers[item.name] == 1
        if plain and (short or (long and _same_volume(program, item))):
            gone[item.name] = item
        else:
            body.append(item)
    return dataclasses.replace(program, body=tuple(body))


def _same_volume(program: Program, item: Define) -> bool:
    """Return True if the only user has no more points than the array, so that each point is evaluated once."""
    reader = next(r for r in program.body if item.name in r.reads)
    return isinstance(reader, Define) and program.ranges.volume(reader.domain) <= program.ranges.volume(item.axes)


def _replaced(value: Any, gone: dict[str, Define]) -> Any:
    places = {}
    for x in value.atoms(sp.Indexed, sp.Symbol):
        item = gone.get(key_of(x))
        if item is not None and len(item.axes) == len(indices_of(x)):  # the name of an array is a symbol too
            places[x] = item.value.xreplace(dict(zip(item.axes, indices_of(x), strict=True)))
    return value.xreplace(places)


def narrow(program: Program, lift: Lift) -> Program:
    """Substitute matrices into formulas that use single entries, a few times; their diagonals become vectors.

    An example is a gradient along all vectors: each equation uses one entry and the diagonal.
    """
    body = list(program.body)
    for item in [item for item in body if isinstance(item, Define)]:
        costly = any(map(_costly, sp.preorder_traversal(item.value))) or operations(item.value) > FEW
        if item.over or len(item.axes) != 2 or item.name in program.output_names or costly:
            continue
        readers = [r for r in body if item.name in r.reads]
        entries = [
            x for r in readers if isinstance(r, Define) for x in r.value.atoms(sp.Indexed) if key_of(x) == item.name
        ]
        pointwise = all(isinstance(r, Define) and not r.over for r in readers)
        if not pointwise or not all(isinstance(i, sp.Idx) for x in entries for i in x.indices):
            continue
        if sum(len(set(x.indices)) == 2 for x in entries) > READ:
            continue
        i, j = item.axes
        name = lift.fresh(f"{item.name}_diagonal")
        diagonal = Define(name, (i,), item.value.xreplace({j: i}), meaning=f"diagonal of {item.name}")
        places = {x: entry(name, x.indices[:1]) for x in entries if len(set(x.indices)) == 1}
        used = bool(places)
        places |= {
            x: item.value.xreplace(dict(zip(item.axes, x.indices, strict=True))) for x in entries if x not in places
        }
        at = body.index(item)
        body[at : at + 1] = [diagonal] if used else []
        body = [dataclasses.replace(r, value=r.value.xreplace(places)) if r in readers else r for r in body]
    return dataclasses.replace(program, body=tuple(body))

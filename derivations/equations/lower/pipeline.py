"""The passes in order, and the program after each of them."""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

from derivations.equations.lower.lift import Lift
from derivations.equations.lower.pairs import gather_pairs
from derivations.equations.lower.products import find_products
from derivations.equations.lower.simplify import fold_constants, hoist, inline, narrow
from derivations.equations.lower.term_sizes import size_of
from derivations.equations.program import Item, Output, Program, Ranges
from derivations.equations.tangent import tangent
from derivations.statement import Statement, indices_of, key_of, sp


def lower(
    statement: Statement,
    numbers: Mapping[str, Any],
    symmetric: frozenset[str] = frozenset(),
    what: Literal["rates", "loss", "watch"] = "rates",
    along: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
    shortcuts: bool = False,
) -> dict[str, Program]:
    """The program of the rates of a statement, of its loss, or of its observables, at numbers of its constants.

    The result contains the program after every pass, by the name of the pass.

    `symmetric` are components of the state that are symmetric matrices. The last program is compiled; all of them have
    the same values. `along` requests derivatives: prefixes of the names of directions, with the constants that each
    direction has components for (`derivations.equations.tangent`). With `shortcuts`, arrays are computed by their
    loops, if they have any, and not by their formulas; loops have no derivatives.
    """
    ranges = Ranges(numbers, statement.terms)
    lift = Lift(statement, ranges, shortcuts and not along)
    for definition in statement.arrays:
        infinite = any(i.upper == sp.oo for t in definition.targets for i in indices_of(t))
        if not infinite:
            lift.define_array(definition)
    if what == "loss":
        outputs: tuple[Output, ...] = (lift.wanted("loss", statement.loss),)
        if statement.loss_is_square:
            outputs += (lift.wanted("loss_size", size_of(statement.loss)),)
    elif what == "watch":
        outputs = tuple(lift.wanted(w.target, w.value, w.meaning) for w in statement.watched)
    else:
        outputs = tuple(lift.rate(e.target, e.rate, e.source) for e in statement.equations)
    setup, body = split(statement, lift.items, {o.name for o in outputs})
    stages = {"lift": drop_unread(Program(statement, ranges, setup, body, outputs))}
    first = stages["lift"]
    for prefix, constants in along.items():
        first = tangent(first, constants, prefix, lift.fresh)
        symmetric |= {f"{prefix}{name}" for name in symmetric}
    if along:
        lift.kernels = []  # a kernel and its derivatives are separate definitions
        stages["tangent"] = drop_unread(first)
    stages["pairs"] = drop_unread(gather_pairs(first, lift, symmetric))
    stages["fold"] = fold_constants(stages["pairs"], lift)
    stages["hoist"] = hoist(stages["fold"], lift)
    stages["inline"] = inline(stages["hoist"])
    stages["products"] = drop_unread(find_products(stages["inline"], lift, symmetric))
    stages["narrow"] = drop_unread(narrow(stages["products"], lift))
    return stages


def split(statement: Statement, items: list[Item], outputs: set[str]) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
    """Items that depend only on constants, and the others; outputs belong to the body."""
    changing = {key_of(v.target) for v in statement.state}
    setup, body = [], []
    for item in items:
        if item.reads & changing or item.writes & outputs:
            changing |= item.writes
            body.append(item)
        else:
            setup.append(item)
    return tuple(setup), tuple(body)


def drop_unread(program: Program) -> Program:
    """The program without items that no other item uses."""
    read = set(program.output_names)
    body: list[Item] = []
    for item in reversed(program.body):
        if item.writes & read:
            body.append(item)
            read |= item.reads
    return dataclasses.replace(program, body=tuple(reversed(body)))

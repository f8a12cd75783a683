"""Schedules in the equations of motion: SymPy expressions and the clock."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from derivations.declare import symbols
from derivations.declare.grammar import Tree
from derivations.declare.schedules import TIME, Schedule
from derivations.statement import HALF, Definition, Statement, key_of, sp

CLOCK = sp.Symbol(TIME)


def expression(schedule: Schedule) -> Any:
    """The value of a schedule as a function of the time, its switches and the user's numbers."""
    found = symbolic(schedule.pieces[0])
    for switch, piece in zip(schedule.starts, schedule.pieces[1:], strict=True):
        found = sp.Piecewise((symbolic(piece), sp.Symbol(switch) > HALF), (found, True))
    return found


def symbolic(tree: Tree) -> Any:
    """A syntax tree as a SymPy expression of symbols without assumptions, as in statements."""
    found = symbols.build(tree, ())
    found = found.replace(symbols.own()["logistic"], lambda x: 1 / (1 + sp.exp(-x)))
    found = found.replace(symbols.own()["relu"], lambda x: sp.Max(x, 0))
    found = found.replace(symbols.own()["abs"], sp.Abs)
    return found.xreplace({symbol: sp.Symbol(symbol.name) for symbol in found.free_symbols})


def in_time(stated: Statement, given: Sequence[Schedule]) -> Statement:
    """Return a statement with its switches written as functions of the time, for a reader.

    Constants are valid only between two switches.
    """
    every = {switch.name: switch for schedule in given for switch in schedule.switches}
    held = [constant for constant in stated.constants if key_of(constant.target) not in every]
    used = [key_of(constant.target) for constant in stated.constants if key_of(constant.target) in every]
    made = [
        Definition(
            (sp.Symbol(name),),
            sp.Piecewise((1, symbolic(every[name].argument) >= 0), (0, True)),
            "1 from a time on, 0 before",
        )
        for name in used
    ]
    return dataclasses.replace(stated, constants=tuple(held), definitions=(*made, *stated.definitions))

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
    value = symbolic(schedule.pieces[0])
    for switch, piece in zip(schedule.starts, schedule.pieces[1:], strict=True):
        value = sp.Piecewise((symbolic(piece), sp.Symbol(switch) > HALF), (value, True))
    return value


def symbolic(tree: Tree) -> Any:
    """A syntax tree as a SymPy expression of symbols without assumptions, as in statements."""
    formula = symbols.build(tree, ())
    formula = formula.replace(symbols.own()["logistic"], lambda x: 1 / (1 + sp.exp(-x)))
    formula = formula.replace(symbols.own()["relu"], lambda x: sp.Max(x, 0))
    formula = formula.replace(symbols.own()["abs"], sp.Abs)
    return formula.xreplace({symbol: sp.Symbol(symbol.name) for symbol in formula.free_symbols})


def in_time(statement: Statement, changing: Sequence[Schedule]) -> Statement:
    """Return a statement with its switches written as functions of the time, for a reader.

    Constants are valid only between two switches.
    """
    switches = {switch.name: switch for schedule in changing for switch in schedule.switches}
    constants = [constant for constant in statement.constants if key_of(constant.target) not in switches]
    switch_names = [key_of(constant.target) for constant in statement.constants if key_of(constant.target) in switches]
    switch_definitions = [
        Definition(
            (sp.Symbol(name),),
            sp.Piecewise((1, symbolic(switches[name].argument) >= 0), (0, True)),
            "1 from a time on, 0 before",
        )
        for name in switch_names
    ]
    return dataclasses.replace(
        statement, constants=tuple(constants), definitions=(*switch_definitions, *statement.definitions)
    )

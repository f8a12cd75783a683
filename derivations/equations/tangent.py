"""Derivatives of a program: every definition is followed by its derivative along a direction.

    x[i] = sum_r w[i, r] y[r]^2    becomes also    v_x[i] = sum_r v_w[i, r] y[r]^2 + 2 w[i, r] y[r] v_y[r]

This is forward-mode differentiation, exact up to rounding. A direction has a component for every component of the state
and for every requested constant. Applied twice, it gives second derivatives.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

from derivations.equations.program import Apply, Define, Item, Output, Program, entry, is_condition, series
from derivations.statement import Indicator, Named, Statement, indices_of, key_of, sp


class NotDifferentiable(Exception):
    """Error for a program with a rule whose derivative is not known."""


def directions(statement: Statement, constants: tuple[str, ...], prefix: str) -> tuple[Named, ...]:
    """The components of a direction: of every state variable, and of some constants, with a prefix in their names."""
    asked = [*statement.state, *(c for c in statement.constants if key_of(c.target) in constants)]
    return tuple(Named(renamed(v.target, prefix), f"direction of {key_of(v.target)}") for v in asked)


def renamed(target: Any, prefix: str) -> Any:
    """A target with a prefix before its name."""
    return entry(f"{prefix}{key_of(target)}", tuple(indices_of(target)))


def tangent(program: Program, constants: tuple[str, ...], prefix: str, fresh: Callable[[str], str]) -> Program:
    """The program with the derivatives of all its arrays along a direction, which is a part of the state.

    The rate of the component `prefix`x is the derivative of the rate of x along the direction. Raises
    `NotDifferentiable` for a program with a rule that depends on the direction.
    """
    moving = {key_of(v.target): key_of(renamed(v.target, prefix)) for v in program.statement.state}
    moving |= {name: f"{prefix}{name}" for name in constants}
    setup: list[Item] = []
    body: list[Item] = []
    for item, target in [*((item, setup) for item in program.setup), *((item, body) for item in program.body)]:
        target.append(item)
        if not item.reads & moving.keys():
            continue
        if isinstance(item, Apply):
            raise NotDifferentiable(f"the rule {item.rule.name} has no derivative")
        assert isinstance(item, Define)
        if item.reduction == "max":
            continue  # the largest logit is subtracted and added, so its derivatives cancel
        name = fresh(f"{prefix}{item.name}")
        value = derivative(item.value, moving, _shifted(setup, program, fresh))
        if value != 0:
            body.append(Define(name, item.axes, value, item.over, meaning=f"change of {item.name}"))
            moving[item.name] = name
    outputs = [*program.outputs]
    for output in program.outputs:
        if output.name in moving:
            outputs.append(Output(f"{prefix}{output.component}", output.axes, moving[output.name]))
    statement = program.statement
    statement = dataclasses.replace(statement, state=(*statement.state, *directions(statement, constants, prefix)))
    return dataclasses.replace(
        program, statement=statement, setup=tuple(setup), body=tuple(body), outputs=tuple(outputs)
    )


def derivative(value: Any, moving: Mapping[str, str], shifted: Callable[[str], str]) -> Any:
    """The derivative of a formula along a direction: `moving` maps the names of its entries to those of their
    derivatives.

    >>> x, y = sp.symbols("x y", real=True)
    >>> derivative(x * y + sp.exp(x), {"x": "v_x"}, str)
    v_x*y + v_x*exp(x)
    """
    leaves = [x for x in sp.preorder_traversal(value) if isinstance(x, (sp.Indexed, sp.Symbol)) and _name(x) in moving]
    leaves = [x for x in dict.fromkeys(leaves) if not isinstance(x, sp.Idx)]
    arrays = {b.label for x in value.atoms(sp.Indexed) for b in [x.base]}
    leaves = [x for x in leaves if x not in arrays]  # the name of an array is a symbol too
    places = {x: sp.Dummy(real=True) for x in leaves}
    plain = value.xreplace(places)
    back = {dummy: x for x, dummy in places.items()}
    total = sp.Integer(0)
    for x, dummy in places.items():
        change = entry(moving[_name(x)], tuple(indices_of(x)))
        total += _times(_differentiated(plain, dummy, shifted).xreplace(back), change)
    return sp.expand_mul(total, deep=False)


def _times(slope: Any, change: Any) -> Any:
    """slope times change, with the change inside the cases: outside of its case it may be undefined.

    >>> x, y = sp.symbols("x y", real=True)
    >>> _times(2 * sp.Piecewise((0, x > 0), (x, True)), y)
    2*Piecewise((0, x > 0), (x*y, True))
    """
    if isinstance(slope, sp.Add):
        return sp.Add(*(_times(term, change) for term in slope.args))
    if isinstance(slope, sp.Piecewise):
        return sp.Piecewise(*((_times(value, change), condition) for value, condition in slope.args))
    inner = next((f for f in slope.args if f.has(sp.Piecewise)), None) if isinstance(slope, sp.Mul) else None
    if inner is None:
        return slope * change
    return sp.Mul(*(f for f in slope.args if f != inner), _times(inner, change))


def _name(x: Any) -> str:
    return key_of(x) if isinstance(x, sp.Indexed) else x.name


def _differentiated(e: Any, by: Any, shifted: Callable[[str], str]) -> Any:
    """The derivative of a formula with respect to a symbol, by SymPy unless it has a series, maximum or minimum."""
    of = functools.partial(_differentiated, by=by, shifted=shifted)
    if not e.has(by) or is_condition(e):
        return sp.Integer(0)
    if isinstance(e, series):
        return series(sp.Symbol(shifted(str(e.args[0]))), e.args[1]) * of(e.args[1])
    if isinstance(e, (sp.Max, sp.Min)):  # SymPy's derivative has Heaviside functions
        first, rest = e.args[0], e.func(*e.args[1:])
        kind, other = (sp.Ge, sp.Lt) if isinstance(e, sp.Max) else (sp.Le, sp.Gt)
        return Indicator(kind(first, rest)) * of(first) + Indicator(other(first, rest)) * of(rest)
    if not e.has(series, sp.Max, sp.Min):
        return sp.diff(e, by)
    if isinstance(e, (sp.Add, sp.Piecewise)):
        if isinstance(e, sp.Add):
            return sp.Add(*map(of, e.args))
        return sp.Piecewise(*((of(value), condition) for value, condition in e.args))
    stand = {a: sp.Dummy(real=True) for a in e.args}
    back = {dummy: a for a, dummy in stand.items()}
    outer = e.func(*(stand[a] for a in e.args))
    return sp.Add(*(sp.diff(outer, dummy).xreplace(back) * of(a) for a, dummy in stand.items() if a.has(by)))


def _shifted(setup: list[Item], program: Program, fresh: Callable[[str], str]) -> Callable[[str], str]:
    """label -> the label of the derivative of its series, (s + 1) label[s + 1], which is added to the set-up."""

    def of(label: str) -> str:
        name = f"{label}_slope"
        if not any(name in item.writes for item in setup):
            coefficients = next(item for item in setup if label in item.writes)
            assert isinstance(coefficients, Define)
            (s,) = coefficients.axes
            count = program.ranges.end(s)
            index = sp.Idx(s.name, (0, count - 2))
            setup.append(Define(name, (index,), (index + 1) * sp.IndexedBase(label)[index + 1]))
        return name

    return of

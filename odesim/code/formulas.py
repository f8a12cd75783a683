"""Scalar formulas as straight-line text that numba compiles, for sixteen points at a time."""

import dataclasses
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from derivations.equations.program import is_condition, is_leaf, series
from derivations.statement import AtLeast, Indicator, Special, sp

RELATIONS = {sp.Ge: ">=", sp.Gt: ">", sp.Le: "<=", sp.Lt: "<", sp.Eq: "==", sp.Ne: "!="}
FUNCTIONS = {
    "exp": "exp", "log": "log", "erf": "erf", "tanh": "tanh", "sin": "sin", "cos": "cos", "Abs": "abs", "asin": "asin",
    "sinh": "sinh", "cosh": "cosh", "atan": "atan", "atan2": "atan2", "floor": "floor", "sign": "sign",
    "log1p": "log1p", "expm1": "expm1",
}  # fmt: skip
"""Functions of SymPy in a formula, and those that numba compiles for them: of `math`, but for NumPy's sign."""
IMPORTS = "from math import asin, atan, atan2, cos, cosh, erf, exp, expm1, floor, log, log1p, sin, sinh, sqrt, tanh"
POWERS = 6
"""Largest power that is written as a product, which is faster than a power, and vectorised."""


class Unsupported(Exception):
    """A formula cannot be compiled. The message names the unsupported part."""


class Printer:
    """Expressions as Python text; `leaf` prints entries of arrays, symbols and indices."""

    def __init__(self, leaf: Callable[[Any], str]) -> None:
        self.leaf = leaf

    def show(self, e: Any) -> str:
        """Return the text of an expression, in brackets if it is composite."""
        if isinstance(e, (sp.Idx, sp.Indexed, sp.Symbol)):
            return self.leaf(e)
        if e.is_number and not e.atoms(sp.Idx):
            value = float(e)
            return f"({value!r})" if value < 0 else repr(value)
        if is_condition(e):  # a condition that occurs in several formulas
            return self.test(e)
        if isinstance(e, sp.Add):
            return self.add(e)
        if isinstance(e, sp.Mul):
            return self.multiply(e)
        if isinstance(e, sp.Pow):
            return self.power(e)
        return self.call(e)

    def add(self, e: Any) -> str:
        """Return the text of a sum; terms with a minus sign are subtracted."""
        negative = [t for t in e.args if t.could_extract_minus_sign()]
        positive = [t for t in e.args if t not in negative]
        text = " + ".join(map(self.show, positive))
        for t in negative:
            text += f" - {self.show(-t)}"
        return f"({text.strip()})"

    def multiply(self, e: Any) -> str:
        """Return the text of a product; negative powers are one quotient."""
        above, below = [], []
        for f in e.args:
            inverse = isinstance(f, sp.Pow) and f.exp.is_number and f.exp.is_negative
            below.append(1 / f) if inverse else above.append(f)
        number = [f for f in above if f.is_number]
        rest = [self.show(f) for f in above if not f.is_number]
        if number and float(sp.Mul(*number)) == -1.0 and rest:
            rest[0] = f"-{rest[0]}"
        elif number:
            rest.insert(0, repr(float(sp.Mul(*number))))
        text = " * ".join(rest) or "1.0"
        return f"({text} / ({' * '.join(map(self.show, below))}))" if below else f"({text})"

    def power(self, e: Any) -> str:
        """Return the text of a power: small integers as products, half-integers by roots."""
        if e.exp.is_number and e.exp.is_negative:
            return f"(1.0 / {self.show(e.base**-e.exp)})"
        if e.exp.is_Rational and e.exp.q == 2 and e.exp.p <= 2 * POWERS:
            base = self.show(e.base)
            return "(" + " * ".join([f"sqrt({base})", *[base] * (e.exp.p // 2)]) + ")"
        if e.exp.is_Integer and e.exp <= POWERS:
            return "(" + " * ".join([self.show(e.base)] * int(e.exp)) + ")"
        return f"({self.show(e.base)} ** {self.show(e.exp)})"

    def call(self, e: Any) -> str:
        """Return the text of a function, a case distinction, or a condition as a number. Raises `Unsupported` for
        others.
        """
        name = type(e).__name__
        if isinstance(e, sp.Piecewise):
            *cases, last = e.args
            text = (
                self.show(last[0]) if last[1] == sp.true else f"({self.show(last[0])} if {self.test(last[1])} else nan)"
            )
            for value, condition in reversed(cases):
                text = f"({self.show(value)} if {self.test(condition)} else {text})"
            return text
        if isinstance(e, Indicator):
            return f"(1.0 if {self.test(e.args[0])} else 0.0)"
        if isinstance(e, sp.KroneckerDelta):
            return f"(1.0 if {self.show(e.args[0])} == {self.show(e.args[1])} else 0.0)"
        if isinstance(e, (sp.Max, sp.Min, AtLeast)):
            word = "min" if isinstance(e, sp.Min) else "max"
            first, *rest = map(self.show, e.args)
            for one in rest:
                first = f"{word}({first}, {one})"
            return first
        if isinstance(e, sp.Mod):
            return f"({self.show(e.args[0])} % {self.show(e.args[1])})"
        if isinstance(e, Special):
            return f"{e.compiled.partition(':')[2]}({', '.join(map(self.show, e.args))})"
        if name not in FUNCTIONS:
            raise Unsupported(f"the function {name}")
        return f"{FUNCTIONS[name]}({', '.join(map(self.show, e.args))})"

    def test(self, c: Any) -> str:
        """Return the text of a condition."""
        if c in (sp.true, sp.false):
            return str(bool(c))
        if isinstance(c, sp.Symbol):
            return self.leaf(c)
        for kind, sign in RELATIONS.items():
            if isinstance(c, kind):
                return f"({self.show(c.lhs)} {sign} {self.show(c.rhs)})"
        if isinstance(c, sp.Not):
            return f"(not {self.test(c.args[0])})"
        if not isinstance(c, (sp.And, sp.Or)):
            raise Unsupported(f"the condition {type(c).__name__}")
        word = " and " if isinstance(c, sp.And) else " or "
        return "(" + word.join(map(self.test, c.args)) + ")"


@dataclasses.dataclass(frozen=True)
class Formula:
    """Text of formulas at sixteen points: the `lines`, the `leaves` that are their arguments, and the series among
    them.

    `calls` are the functions "module:function" that the lines call.
    """

    lines: tuple[str, ...]
    leaves: tuple[Any, ...]
    series: tuple[str, ...] = ()
    argument: int = 0
    calls: frozenset[str] = frozenset()


def straight(values: Sequence[Any], lanes: int, as_written: bool = False) -> Formula:
    """Return the text of formulas with the same leaves. Common parts are evaluated once, and polynomials by Horner's
    rule.

    With `as_written` formulas are not rearranged.

    Argument k of lane l is x[lanes k + l], result k is z[lanes k + l], and the values of series k are s[lanes k + l].
    """
    found = sorted({x for v in values for x in v.atoms(series)}, key=lambda x: str(x.args[0]))
    arguments = {x.args[1] for x in found}
    if len(arguments) > 1:
        raise Unsupported("series of several arguments in one formula")
    leaves = list(dict.fromkeys([*arguments, *(leaf for v in values for leaf in leaves_of(v))]))
    slots = {leaf: sp.Symbol(f"x{k}") for k, leaf in enumerate(leaves)}
    slots |= {x: sp.Symbol(f"s{k}") for k, x in enumerate(found)}
    plain = [replace_leaves(v, slots) for v in values]
    plain = plain if as_written else [horner(v) for v in plain]
    shared, results = sp.cse(plain, symbols=sp.numbered_symbols("t"), order="none")
    printer = Printer(lambda e: e.name)
    lines = [f"x{k} = x[{lanes * k} + lane]" for k in range(len(leaves))]
    lines += [f"s{k} = s[{lanes * k} + lane]" for k in range(len(found))]
    lines += [f"{name} = {printer.show(value)}" for name, value in shared]
    lines += [f"z[{lanes * k} + lane] = {printer.show(value)}" for k, value in enumerate(results)]
    return Formula(tuple(lines), tuple(leaves), tuple(str(x.args[0]) for x in found), 0, calls_of(values))


def calls_of(values: Sequence[Any]) -> frozenset[str]:
    """Return the compiled functions "module:function" that some formulas call."""
    return frozenset(x.compiled for v in values for x in v.atoms(Special))


def leaves_of(e: Any) -> list[Any]:
    """Return the entries, symbols and indices in an expression, in order."""
    if isinstance(e, (sp.Idx, sp.Indexed, sp.Symbol)):
        return [e]
    if isinstance(e, series):
        return []
    return [leaf for a in e.args for leaf in leaves_of(a)]


def replace_leaves(e: Any, slots: dict[Any, Any]) -> Any:
    """Return the expression with other symbols in place of its leaves and series."""
    if e in slots:
        return slots[e]
    return e if is_leaf(e) else e.func(*(replace_leaves(a, slots) for a in e.args))


def horner(e: Any) -> Any:
    """Rewrite a polynomial of many terms by its most frequent factor, repeatedly, which saves multiplications."""
    if not isinstance(e, sp.Add) or len(e.args) < 3 or e.has(sp.Piecewise, Indicator, sp.Max, sp.Min):
        return e  # expanding cases would multiply them
    return _horner(list(sp.Add.make_args(sp.expand(e))))


def _horner(terms: list[Any]) -> Any:
    powers = [{f.as_base_exp()[0] for f in sp.Mul.make_args(t) if _whole_power(f)} for t in terms]
    counts = Counter(base for bases in powers for base in bases)
    best = max(counts, key=lambda b: (counts[b], str(b)), default=None)
    if best is None or counts[best] < 2:
        return sp.Add(*terms)
    inside = [t / best for t, bases in zip(terms, powers, strict=True) if best in bases]
    rest = [t for t, bases in zip(terms, powers, strict=True) if best not in bases]
    inner = sp.Mul(best, _horner(inside), evaluate=False)
    return sp.Add(inner, _horner(rest)) if rest else inner


def _whole_power(f: Any) -> bool:
    base, power = f.as_base_exp()
    return not base.is_number and bool(power.is_Integer) and bool(power > 0)

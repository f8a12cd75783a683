"""Traversal of expressions, shared by all printers: the order of terms, signs, fractions, brackets.

SymPy's own printers are not used: they sort terms by their internal order, put the range of an `Idx` into every
subscript, and cannot break a line. Here terms follow the order of declaration, and lines break at marks.
"""

import functools
from typing import Any

from derivations.statement import Indicator, Largest, Statement, indices_of, key_of, sp
from odesim.show.page.style import MARK, Style

LAST = 999


def remembered(method: Any) -> Any:
    """Decorator that caches the results of a method of one expression, because terms are sorted again at every level
    that contains them.
    """

    @functools.wraps(method)
    def answer(self: Any, e: Any, *arguments: Any) -> Any:
        key = (method.__name__, self.by_power, e, *arguments)
        if key not in self.memory:
            self.memory[key] = method(self, e, *arguments)
        return self.memory[key]

    return answer


RELATIONS = ((sp.Ge, "≥"), (sp.Gt, ">"), (sp.Le, "≤"), (sp.Lt, "<"), (sp.Eq, "="), (sp.Ne, "≠"))


class Walk(Style):
    """Expressions as strings, in the style of the class."""

    by_power = False

    def __init__(self, statement: Statement) -> None:
        super().__init__(statement)
        self.memory: dict[Any, Any] = {}
        s = statement
        names = [n.target for n in s.constants] + [a for k in s.kernels for a in k.arguments]
        names += [name for k in s.kernels for name in k.values]
        names += [t for d in s.arrays for t in d.targets] + [n.target for n in s.state]
        targets = [n.target for n in (*s.state, *s.constants)] + [t for d in s.arrays for t in d.targets]
        self.declared = {key_of(t): indices_of(t) for t in targets if isinstance(t, sp.Indexed)}
        self.place = {key_of(n): position for position, n in reversed(list(enumerate(names)))}

    # -- order: that of declaration
    @remembered
    def first(self, e: Any) -> int:
        """Return the earliest declared name in an expression."""
        if isinstance(e, (sp.Indexed, sp.Symbol)) and not isinstance(e, sp.Idx):
            return self.place.get(key_of(e), LAST)
        own = self.place.get(type(e).__name__, LAST) if isinstance(e, sp.Function) else LAST
        if own < LAST:
            return own
        inside = (e.function,) if isinstance(e, (sp.Sum, sp.Integral)) else e.args
        return min(map(self.first, inside), default=LAST)

    @remembered
    def factor_key(self, e: Any) -> Any:
        """Return the sort key of factors: atoms before sums and brackets, each in the order of declaration."""
        base, power = e.as_base_exp()
        composite = isinstance(base, (sp.Add, sp.Sum, sp.Integral, sp.Product))
        return (composite, self.first(e), "" if composite else str(base), -power if power.is_number else 0)

    @remembered
    def terms(self, e: Any) -> list[Any]:
        """Return the terms of a sum: sums first, short before long (but a kernel's by powers), then by declaration."""
        degrees = all(t.is_number or (t.atoms(sp.Idx) and not t.atoms(sp.Indexed)) or self.is_order(t) for t in e.args)
        return sorted(sp.Add.make_args(e), key=functools.partial(self.term_key, degrees=degrees))

    def term_key(self, term: Any, degrees: bool) -> Any:
        """Return the sort key of a term in a sum; in a variable of `degrees` numbers come last."""
        number, _ = term.as_coeff_Mul()
        factors = [f for f in sp.Mul.make_args(term) if not f.is_number]
        powers = [(self.first(f), -f.as_base_exp()[1] if f.as_base_exp()[1].is_number else 0) for f in factors]
        size = 0 if self.by_power else len(factors)
        late = not factors and bool(term.is_negative or degrees)
        order = sorted((place, float(power)) for place, power in powers)
        return (late, not term.has(sp.Sum), size, order, bool(number.is_negative))

    def is_order(self, e: Any) -> bool:
        """Return True if a symbol is an integer argument of a kernel."""
        return any(e in k.arguments[: k.orders] for k in self.statement.kernels)

    # -- the walk
    @remembered
    def show(self, e: Any, tight: int = 0) -> str:
        """Return the text of an expression; `tight` is 1 inside a product, 2 as the base of a power."""
        e = sp.sympify(e)
        if isinstance(e, sp.Add):
            return self.paren(self.add(e)) if tight else self.add(e)
        if e.is_Rational:
            return self.paren(self.number(e)) if tight == 2 and (e < 0 or e.q != 1) else self.number(e)
        if isinstance(e, sp.Mul) or (isinstance(e, sp.Pow) and (e.exp == sp.S.Half or _inverse(e))):
            return self.paren(self.mul(e)) if tight == 2 else self.mul(e)
        if isinstance(e, sp.Pow):
            base = self.show(e.base, 2)
            return self.power(self.paren(base) if self.crowded(base) else base, self.show(e.exp))
        if isinstance(e, sp.exp):
            return self.power(self.upright("e"), self.show(e.args[0]))
        return self.atom(e, tight)

    def atom(self, e: Any, tight: int) -> str:
        """Return the text of an expression that is neither sum, product nor power."""
        if isinstance(e, sp.Idx):
            return self.index_name(e)
        if isinstance(e, sp.Indexed):
            return self.entry(self.name(key_of(e)), self.counted(e))
        if isinstance(e, (sp.Sum, sp.Product)):
            sign = self.sum_sign if isinstance(e, sp.Sum) else self.product_sign
            text = "".join(map(sign, reversed(e.limits))) + self.show(e.function, 1)
            return self.paren(text) if tight == 2 else text
        if isinstance(e, sp.Integral):
            return self.integral(self.show(e.function, 1), *map(self.show, e.limits[0]))
        if isinstance(e, sp.KroneckerDelta):
            return self.entry(self.name("delta"), [self.show(a) for a in e.args])
        if isinstance(e, sp.Piecewise):
            return self.cases([(self.show(v), self.case(c)) for v, c in e.args])
        if isinstance(e, Indicator):
            return self.indicator(self.condition(e.args[0]))
        if isinstance(e, (sp.Max, sp.Min)):
            shown = ", ".join(sorted((self.show(a) for a in e.args), key=len))
            return self.upright("max" if isinstance(e, sp.Max) else "min") + self.round(shown)
        if isinstance(e, sp.Function):
            return self.call(type(e).__name__, e.args)
        return self.name(getattr(e, "name", str(e)))

    def add(self, e: Any) -> str:
        """Return a sum, with a mark before each sign but the first. It begins with a plus if possible."""
        text, terms = "", self.terms(e)
        plus = next((k for k, term in enumerate(terms) if not self.negative(term)), 0)
        for term in [terms[plus], *terms[:plus], *terms[plus + 1 :]]:
            negative = self.negative(term)
            sign = (self.minus if text else self.minus.strip()) if negative else self.plus if text else ""
            text += (" " + MARK if text else "") + sign + self.show(-term if negative else term)
        return text

    @remembered
    def negative(self, term: Any) -> bool:
        """Return True if a term has a minus sign: its number is negative, or the first term of its bracket is."""
        brackets = [f for f in sp.Mul.make_args(term) if isinstance(f, sp.Add)] if isinstance(term, sp.Mul) else []
        inside = len(brackets) == 1 and self.negative(self.terms(brackets[0])[0])
        return bool(term.as_coeff_Mul()[0].is_negative) != inside

    def mul(self, e: Any) -> str:
        """Return a product: number, fraction, atoms, sums; SymPy never sees the extracted sign."""
        if self.negative(e):
            return self.minus.strip() + self.mul(-e)
        number, rest = e.as_coeff_Mul()
        factors = sp.Mul.make_args(rest)
        if number.is_negative:  # together with a bracket that begins with a minus
            number, factors = -number, [sp.Add(*(-t for t in f.args)) if isinstance(f, sp.Add) else f for f in factors]
        above, below = ([x] if x != 1 else [] for x in number.as_numer_denom())
        for f in sorted((f for f in factors if f != 1), key=self.factor_key):
            (below if _inverse(f) else above).append(turned(f) if _inverse(f) else f)
        wide = [f for f in above if below and _tall(f)]
        top = self.times.join(self.factor(f) for f in above if f not in wide)
        bottom = self.add(below[0]) if self.alone(below) else self.times.join(self.factor(f) for f in below)
        text = self.fraction(top or "1", bottom, len(below) > 1) if below else top
        text = self.beside(text) if wide else text
        return self.times.join([text, *(self.show(f, 1) for f in wide)] if text else [self.show(f, 1) for f in wide])

    def alone(self, below: list[Any]) -> bool:
        """Return True if a denominator is a sum that needs no brackets in this style."""
        return self.side == 0 and len(below) == 1 and isinstance(below[0], sp.Add)

    def factor(self, f: Any) -> str:
        """A factor, roots as roots."""
        return (
            self.root(self.show(f.base, 0 if self.side == 0 else 2))
            if isinstance(f, sp.Pow) and f.exp == sp.S.Half
            else self.show(f, 1)
        )

    def call(self, name: str, arguments: Any) -> str:
        """Return a function of its arguments; a kernel's own arguments are left out."""
        kernel, shown = self.statement.kernel_of(name), [self.show(a) for a in arguments]
        if kernel is None:
            return self.known(name, shown, arguments)
        text = self.subscript(self.name(name), shown[: kernel.orders]) if kernel.orders else self.name(name)
        own = arguments[kernel.orders :] == kernel.arguments[kernel.orders :]
        many = kernel.orders > 1 or len(arguments) > 2  # S_pq and K are shown without their own arguments
        return text if own and many else text + self.round(", ".join(shown[kernel.orders :]))

    def known(self, name: str, shown: list[str], arguments: Any) -> str:
        """Return a function with its own notation, or by its name."""
        forms: dict[str, Any] = {
            "E": lambda: self.mean(self.thin.join(shown)),
            "Mean": lambda: self.mean(*shown),
            "Rate": lambda: self.derivative(shown[0], "t", "d"),
            "Partial": lambda: self.derivative(shown[0], shown[1], "∂"),
            "Gate": lambda: self.dashed(self.name("Gate"), arguments[0]) + f"({shown[1]})",
            "He": lambda: f"{self.subscript(self.upright('He'), shown[:1])}({shown[1]})",
            "factorial": lambda: factorial(shown[0]),
            "loggamma": lambda: self.upright("log") + self.round(factorial(self.show(arguments[0] - 1))),
            "floor": lambda: self.floor(shown[0]),
            "binomial": lambda: self.choose(*shown),
            "log1p": lambda: self.show(sp.log(1 + arguments[0])),
            "expm1": lambda: self.round(self.show(sp.exp(arguments[0]) - 1)),
            "Largest": lambda: self.extreme(self.upright("max"), shown[1], shown[0]),
            "Abs": lambda: self.bars(shown[0]),
        }
        if name in forms:
            return forms[name]()
        word = self.name(name) if name in self.statement.notation else self.upright(self.word(name))
        return word + self.round(", ".join(shown))

    def condition(self, c: Any) -> str:
        """A relation between expressions, or several."""
        for kind, sign in RELATIONS:
            if isinstance(c, kind):
                both = isinstance(c.lhs, sp.Idx) and isinstance(c.rhs, sp.Idx)
                left, right = (c.lhs, c.rhs) if both else self.zero_based(c.lhs, c.rhs)
                return f"{self.show(left)} {self.sign(sign)} {self.show(right)}"
        word = self.sign("and" if isinstance(c, sp.And) else "or")
        return f" {word} ".join(map(self.condition, sorted(c.args, key=lambda x: isinstance(x, sp.And))))

    def zero_based(self, left: Any, right: Any) -> tuple[Any, Any]:
        """Return both sides of a relation whose indices count from 0, for a page that counts them from 1."""
        if isinstance(left, sp.Idx) and getattr(right, "is_Integer", False):
            return left, right + 1 if self.from_one(left) else right
        return self.lowered(left), self.lowered(right)

    def lowered(self, e: Any) -> Any:
        """Return an expression with i - 1 for every index i that is not a subscript, if the page counts i from 1."""
        if isinstance(e, sp.Idx):
            return e - 1 if self.from_one(e) else e
        return e.func(*map(self.lowered, e.args)) if isinstance(e, (sp.Add, sp.Mul)) else e

    def case(self, c: Any) -> str:
        """Return the condition of a branch of a definition by cases."""
        if c == sp.true:
            return "otherwise"
        if isinstance(c, sp.Eq) and isinstance(c.lhs, sp.Mod):
            return f"for odd {self.inline(self.show(c.lhs.args[0]))}"
        return f"for {self.inline(self.condition(c))}"

    def counted(self, e: Any) -> list[str]:
        """Return the indices of an entry; integers count from 1 if the page does."""
        own: Any = self.declared.get(key_of(e), e.indices)
        pairs = zip(e.indices, own, strict=True)
        return [self.show(i + 1 if i.is_Integer and self.from_one(o) else i) for i, o in pairs]

    def from_one(self, index: Any) -> bool:
        """Return True if the page counts an index from 1, which is not so if its values are numbers by themselves."""
        return isinstance(index, sp.Idx) and index.upper != sp.oo and index.name not in self.degrees

    @functools.cached_property
    def degrees(self) -> set[str]:
        """Indices that are numbers by themselves: they occur in a formula outside of subscripts.

        An index of an axis of such numbers, such as that of a sum over a table of powers, also belongs to them.
        """
        found: set[str] = set()
        entries: set[Any] = set()

        def visit(x: Any) -> None:
            if isinstance(x, sp.Idx):
                found.add(x.name)
            elif isinstance(x, (sp.Sum, sp.Product)):
                visit(x.function)
            elif isinstance(x, Largest):
                visit(x.args[0])
            elif not isinstance(x, (sp.Indexed, sp.KroneckerDelta, sp.logic.boolalg.Boolean)):
                for a in x.args:
                    visit(a)

        s = self.statement
        values = [
            v for d in s.arrays if d.rule is None for v in (d.value if isinstance(d.value, tuple) else (d.value,))
        ]
        values += [e.rate for e in s.equations] + [v for kernel in s.kernels for v in kernel.values.values()]
        values += [] if s.loss is None else [s.loss]
        for value in values:
            visit(sp.sympify(value))
            entries |= sp.sympify(value).atoms(sp.Indexed)
        declared: Any = self.declared
        read = [p for x in entries for p in zip(x.indices, declared.get(key_of(x), x.indices), strict=True)]
        while True:
            more = {j.name for i, o in read if isinstance(o, sp.Idx) and o.name in found for j in i.atoms(sp.Idx)}
            if more <= found:
                return found
            found |= more

    def index_name(self, index: Any) -> str:
        """The letter of an index."""
        return self.name(index.name) if index.name in self.statement.notation else str(index.label)


def _inverse(f: Any) -> bool:
    """Return True if a factor belongs to a denominator."""
    return isinstance(f, sp.Pow) and bool(f.exp.is_number and f.exp.is_negative)


def turned(f: Any) -> Any:
    """Return a factor of a denominator; SymPy would split the square root of a product."""
    return sp.Pow(f.base, sp.S.Half, evaluate=False) if f.exp == -sp.S.Half else f.base**-f.exp


def _tall(f: Any) -> bool:
    """Return True if a factor is written next to a fraction instead of on it."""
    return isinstance(f, (sp.Add, sp.Sum, sp.Product, sp.Integral, sp.Function)) and not isinstance(f, sp.exp)


def factorial(shown: str) -> str:
    """The factorial of what is shown."""
    return (shown if shown.isalnum() else f"({shown})") + "!"

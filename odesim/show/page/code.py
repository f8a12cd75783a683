"""Expressions of a statement as NumPy code: sums as `einsum` with the letters of the statement."""

import re
import string
from collections.abc import Sequence
from typing import Any

from derivations.statement import Indicator, Largest, Special, Statement, indices_of, key_of, sp
from odesim.show.page.text import Text
from odesim.show.page.walk import turned

SPECIAL = ("factorial", "binomial", "eval_hermitenorm", "erf", "loggamma")
"""Functions that the printed file takes from `scipy.special`."""
CALLS = {
    "asin": "np.arcsin",
    "atan": "np.arctan",
    "atan2": "np.arctan2",
    "AtLeast": "np.maximum",
    "He": "eval_hermitenorm",
    "Abs": "np.abs",
    "binomial": "binom",
    "loggamma": "gammaln",
}
SIGNS = ((sp.Ge, ">="), (sp.Gt, ">"), (sp.Le, "<="), (sp.Lt, "<"), (sp.Eq, "=="), (sp.Ne, "!="))
Axes = tuple[Any, ...]


class Code:
    """NumPy code of expressions. A value broadcasts over the requested axes."""

    def __init__(self, statement: Statement) -> None:
        self.statement, self.text = statement, Text(statement)
        inputs = [n.target for n in (*statement.state, *statement.constants)]
        definitions = [t for d in statement.arrays for t in d.targets]
        self.declared = {
            key_of(t): (indices_of(t), defined)
            for defined, group in ((False, inputs), (True, definitions))
            for t in group
        }
        self.in_kernel = False

    # -- arrays
    def laid(self, name: str, letters: Sequence[Any], axes: Axes) -> str:
        """Return an array with given indices in a form that broadcasts over `axes`: diagonal, transposition, new
        axes.
        """
        letters = list(letters)
        if len(set(letters)) < len(letters):
            unique = list(dict.fromkeys(letters))
            simple = len(letters) == 2
            name = f"{name}.diagonal()" if simple else f'np.einsum("{subscripts([letters], unique)}", {name})'
            letters = unique
        order = [i for i in axes if i in letters]
        if order != letters:
            permutation = ", ".join(str(letters.index(i)) for i in order)
            name += ".T" if len(letters) == 2 else f".transpose({permutation})"
        trailing = axes[axes.index(order[0]) :] if order else ()
        return (
            name
            if len(trailing) == len(order)
            else f"{name}[{', '.join(':' if i in order else 'None' for i in trailing)}]"
        )

    def entry(self, e: Any) -> tuple[str, list[Any]]:
        """Return the array of an entry, cut to the ranges of its indices, and the remaining indices, which are axes."""
        name = key_of(e)
        indices, defined = self.declared.get(name, ((), False))
        cuts: list[str] = []
        letters: list[Any] = []
        gathered = [i for i in e.indices if not isinstance(i, sp.Idx) and i.atoms(sp.Idx)]
        # Several subscripts that are arrays broadcast over all their indices, because NumPy would pair them.
        joint = tuple(dict.fromkeys(x for i in gathered for x in sorted(i.atoms(sp.Idx), key=str)))
        for place, i in enumerate(e.indices):
            declared_index = indices[place] if place < len(indices) else None
            start = declared_index.lower if defined and declared_index is not None else sp.Integer(0)
            if isinstance(i, sp.Idx):
                complete = declared_index is not None and i.upper == declared_index.upper and i.lower == start
                cuts.append(":" if complete else self.cut(i, start, declared_index))
                letters.append(i)
            else:
                inner = joint if i.atoms(sp.Idx) else ()
                cuts.append(self.expr(i - start, inner))
                new_axes = () if self.in_kernel else inner  # in a kernel an index is a number
                new = [x for x in getattr(i, "indices", new_axes) if isinstance(x, sp.Idx)]
                letters += new if len(gathered) == 1 else [x for x in new if x not in letters]
        plain = all(x == ":" for x in cuts)
        return (name if plain else f"{name}[{', '.join(cuts)}]"), letters

    def cut(self, index: Any, start: Any, declared_index: Any) -> str:
        """Return the slice of an index whose range is a part of the array."""
        low, high = self.number(index.lower - start), self.number(index.upper - start + 1)
        low = "" if low == "0" else low
        return f"{low}:" if declared_index is not None and index.upper == declared_index.upper else f"{low}:{high}"

    def free(self, e: Any, axes: Axes) -> list[Any]:
        """The indices of an expression in the order of `axes`; summation indices are not free."""
        bound = {limit[0] for total in e.atoms(sp.Sum, sp.Product) for limit in total.limits}
        bound |= {largest.args[1] for largest in e.atoms(Largest)}
        free = e.atoms(sp.Idx) - bound
        return [i for i in axes if i in free]

    # -- expressions
    def expr(self, e: Any, axes: Axes = (), tight: bool = False) -> str:
        """Return code whose value broadcasts over `axes`; with `tight`, in brackets if it needs them."""
        e = sp.sympify(e)
        if e.is_number and not e.args:
            return self.number(e) if not tight or (e.is_Integer and e >= 0) else f"({self.number(e)})"
        if isinstance(e, sp.Idx):
            return e.name if self.in_kernel else self.laid(e.name, [e], axes)
        if isinstance(e, sp.Indexed):
            return self.laid(*self.entry(e), axes)
        if isinstance(e, sp.Symbol):
            return e.name
        if isinstance(e, sp.Sum):
            return self.sum(e, axes, tight)
        if isinstance(e, sp.Add):
            code = " + ".join(self.expr(t, axes) for t in self.text.terms(e)).replace("+ -", "- ")
            return f"({code})" if tight else code
        if isinstance(e, sp.Mul):
            return self.mul(e, axes)
        if isinstance(e, sp.Pow):
            return self.power(e, axes)
        if isinstance(e, sp.Piecewise):
            return self.cases(e, axes)
        if isinstance(e, Indicator):
            return f"1.0 * ({self.condition(e.args[0], axes)})" if not tight else f"({self.expr(e, axes)})"
        return self.call(e, axes)

    def number(self, e: Any) -> str:
        """Return the code of a number or a size."""
        if e.is_Rational and not e.is_Integer:
            return f"{e.p} / {e.q}"
        if e.is_Float:
            return repr(float(e))
        return "np.pi" if e == sp.pi else re.sub(r"\s*\*\*\s*", " ** ", str(e))

    def mul(self, e: Any, axes: Axes) -> str:
        """A product."""
        number, symbols = e.as_coeff_Mul()
        if self.text.negative(e) and not number.is_negative:  # a bracket that begins with a minus
            opposite = (sp.Add(*(-t for t in f.args)) if isinstance(f, sp.Add) else f for f in sp.Mul.make_args(e))
            return "-" + self.mul(sp.Mul(*opposite, evaluate=False), axes)
        if number.is_negative:
            return "-" + self.expr(-e, axes, True)
        factors = sorted((f for f in sp.Mul.make_args(symbols) if f != 1), key=self.text.factor_key)
        upper = [f for f in factors if not (isinstance(f, sp.Pow) and f.exp.is_number and f.exp.is_negative)]
        lower = [turned(f) for f in factors if f not in upper]
        top, bottom = number.as_numer_denom()
        tops = ([self.number(top)] if top != 1 or not upper else []) + [self.expr(f, axes, True) for f in upper]
        code = " * ".join(tops)
        bottoms = [self.expr(f, axes, True) for f in ([bottom] if bottom != 1 else []) + lower]
        if len(bottoms) > 1:
            return f"{code} / ({' * '.join(bottoms)})"
        return f"{code} / {bracketed(bottoms[0])}" if bottoms else code

    def divisor(self, e: Any, axes: Axes) -> str:
        """Return the denominator as one factor; a sum after constant factors is a product."""
        return bracketed(self.expr(e, axes, True))

    def power(self, e: Any, axes: Axes) -> str:
        """A power or a root."""
        if e.exp == sp.S.Half:
            return f"np.sqrt({self.expr(e.base, axes)})"
        if e.exp.is_number and e.exp.is_negative:
            return f"1 / {self.divisor(e.base**-e.exp, axes)}"
        base = self.expr(e.base, axes, True)
        if isinstance(e.base, (sp.Mul, sp.Pow)) or base.startswith("-"):
            base = f"({base})"
        exponent = self.expr(e.exp, axes, True)
        return f"{base} ** {f'({exponent})' if isinstance(e.exp, (sp.Mul, sp.Pow)) else exponent}"

    def cases(self, e: Any, axes: Axes) -> str:
        """A definition by cases."""
        rows = [(self.expr(v, axes), c) for v, c in e.args]
        last = rows.pop()[0] if rows[-1][1] == sp.true else "np.nan"
        if len(rows) == 1:
            return f"np.where({self.condition(rows[0][1], axes)}, {rows[0][0]}, {last})"
        tests = ", ".join(self.condition(c, axes) for _, c in rows)
        return f"np.select([{tests}], [{', '.join(v for v, _ in rows)}], {last})"

    def condition(self, c: Any, axes: Axes) -> str:
        """A relation, or several."""
        for kind, sign in SIGNS:
            if isinstance(c, kind):
                return f"{self.expr(c.lhs, axes)} {sign} {self.expr(c.rhs, axes)}"
        joint = " & " if isinstance(c, sp.And) else " | "
        return joint.join(f"({self.condition(a, axes)})" for a in sorted(c.args, key=str))

    def call(self, e: Any, axes: Axes) -> str:
        """A function of its arguments."""
        name = type(e).__name__
        if isinstance(e, sp.Integral):
            return f"integral(lambda {e.limits[0][0]}: {self.expr(e.function, axes)})"
        if name == "Mean":
            low, high, nodes = self.statement.laws[e.args[1].name]
            return f"mean(lambda {e.args[1].name}: {self.expr(e.args[0], axes)}, {low}, {high}, {nodes})"
        if isinstance(e, Largest):
            return f"({self.expr(e.args[0], (e.args[1], *axes))}).max(0)"
        arguments = [self.expr(a, axes) for a in e.args]
        if isinstance(e, (sp.Max, sp.Min)):
            function_name = "np.maximum" if isinstance(e, sp.Max) else "np.minimum"
            code = arguments[0]
            for argument in arguments[1:]:
                code = f"{function_name}({code}, {argument})"
            return code
        if isinstance(e, sp.KroneckerDelta):
            return f"1.0 * ({arguments[0]} == {arguments[1]})"
        kernel = self.statement.kernel_of(name)
        for place in range(kernel.orders if kernel else len(e.args), len(e.args)):
            if e.args[place].is_Integer:  # a real number, because integers have no negative powers in NumPy
                arguments[place] += ".0"
        if isinstance(e, Special):
            name = type(e).code.__name__
        is_known = kernel is not None or name in SPECIAL or isinstance(e, Special)
        return f"{CALLS.get(name) or (name if is_known else f'np.{name.lower()}')}({', '.join(arguments)})"

    # -- sums
    def sum(self, e: Any, axes: Axes, tight: bool) -> str:
        """Return a sum over indices: in a kernel a series, among arrays an `einsum` of every term."""
        if self.in_kernel:
            return self.series(e)
        body = sp.expand(e.function, deep=False)
        terms = sp.Add.make_args(body)
        code = " + ".join(self.summed(t, [x[0] for x in e.limits], axes) for t in terms).replace("+ -", "- ")
        return f"({code})" if tight and (len(terms) > 1 or code.startswith("-")) else code

    def series(self, e: Any) -> str:
        """A power series in a kernel's argument by Horner's rule; any other sum term by term."""
        index = e.limits[0][0]
        count = self.statement.terms.get(index.name)
        powers = [f for f in sp.Mul.make_args(e.function) if isinstance(f, sp.Pow) and f.exp == index]
        if len(powers) == 1 and count is not None:
            coefficients = self.expr(e.function / powers[0])
            first = rf"(?<![\w.]){index.name}(?!\w)"
            coefficients = re.sub(first, f"({index.name} := np.arange({count}))", coefficients, count=1)
            return f"np.polynomial.polynomial.polyval({self.expr(powers[0].base)}, {coefficients})"
        low, high = self.number(index.lower), count if count is not None else self.number(index.upper + 1)
        return f"sum({self.expr(e.function)} for {index.name} in range({low}, {high}))"

    def summed(self, term: Any, summation_indices: list[Any], axes: Axes) -> str:
        """One product summed over indices: an einsum of its factors."""
        number, symbols = term.as_coeff_Mul()
        if number.is_negative:
            return "-" + self.summed(-term, summation_indices, axes)
        factors: list[str] = [self.expr(number, (), True)] if number != 1 else []
        operands: list[str] = []
        letters: list[list[Any]] = []
        all_indices = (*summation_indices, *axes)
        for f in sorted((f for f in sp.Mul.make_args(symbols) if f != 1), key=self.text.factor_key):
            indices = self.free(f, all_indices)
            if isinstance(f, sp.Indexed) and indices:
                code, operand_letters = self.entry(f)
                operands.append(code)
                letters.append(operand_letters)
            elif any(i in summation_indices for i in indices):
                operands.append(self.expr(f, tuple(indices)))
                letters.append(indices)
            else:
                factors.append(self.expr(f, axes, True))
        missing = [i for i in summation_indices if not any(i in x for x in letters)]
        factors += [f"({self.number(i.upper - i.lower + 1)})" for i in missing]
        operand_letters = [i for i in axes if any(i in x for x in letters)]
        if not operands:
            return " * ".join(factors)
        code = f'np.einsum("{subscripts(letters, operand_letters)}", {", ".join(operands)})'
        return " * ".join([*factors, self.laid(code, operand_letters, axes) if operand_letters else code])


def subscripts(operands: Sequence[Sequence[Any]], result: Sequence[Any]) -> str:
    """Return the subscripts of an einsum: one-letter indices by their letters, indices with longer names by other
    letters.

    >>> import sympy
    >>> i, j = sympy.Idx("i", 2), sympy.Idx("row", 3)
    >>> subscripts([(i, j), (j,)], (i,))
    'ia,a->i'
    """
    distinct = list(dict.fromkeys(i for indices in operands for i in indices))
    free = iter(x for x in string.ascii_letters if x not in [i.name for i in distinct])
    letters = {i: i.name if len(i.name) == 1 else next(free) for i in distinct}
    left = ",".join("".join(letters[i] for i in indices) for indices in operands)
    return f"{left}->{''.join(letters[i] for i in result)}"


def bracketed(code: str) -> str:
    """Return code in brackets if it has a product or a quotient outside of all brackets.

    >>> bracketed("2 * np.sum(a * b)"), bracketed("np.sum(a * b)"), bracketed("(a * b)[0]")
    ('(2 * np.sum(a * b))', 'np.sum(a * b)', '(a * b)[0]')
    """
    depth = 0
    for letter in code.replace("**", "  "):
        depth += (letter in "([") - (letter in ")]")
        if depth == 0 and letter in "*/":
            return f"({code})"
    return code

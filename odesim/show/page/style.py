"""Notation for symbols, fractions, sums and words, in plain Unicode; `latex` overrides it for LaTeX."""

import re
from typing import Any, ClassVar

from derivations.statement import Statement, sp

MARK, INNER, WEAK = "\x01", "\x02", "\x03"
"""Marks of possible line breaks: before a sign outside of brackets, inside of them if necessary, between factors as the
last choice.
"""
GREEK = (
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "kappa", "lambda", "nu", "xi", "pi", "rho",
    "sigma", "tau", "phi", "psi",
)  # fmt: skip
SUPERSCRIPTS = str.maketrans("0123456789+-−n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻ⁿ")
SUBSCRIPTS = dict(zip("0123456789ijklmnprstauehox", "₀₁₂₃₄₅₆₇₈₉ᵢⱼₖₗₘₙₚᵣₛₜₐᵤₑₕₒₓ", strict=True))


def unmarked(text: str) -> str:
    """Return a text without the marks of line breaks."""
    return text.replace(MARK, "").replace(INNER, "").replace(WEAK, "")


class Style:
    """Plain Unicode mathematics."""

    minus, plus, times, thin = "− ", "+ ", " " + WEAK, " "
    side = 1
    """Form of names in use: 0 for LaTeX, 1 for text."""
    words: ClassVar[dict[str, str]] = {"asin": "arcsin", "oo": "∞", "L": "L", "log": "ln"}
    dot_sign = "·"

    def __init__(self, statement: Statement) -> None:
        self.statement = statement
        letters = {self.letter(i) for group, _ in statement.indices for i in group}
        self.bracketed = not letters <= set(SUBSCRIPTS)
        """True if an index letter of the page has no subscript; then all indices are in brackets."""

    # -- names
    def letter(self, index: Any) -> str:
        """Return the letter of an index."""
        return self.name(index.name) if index.name in self.statement.notation else index.name

    def name(self, name: str) -> str:
        """The symbol of a name: the statement's, or SymPy's."""
        notation = self.statement.notation.get(name)
        return notation[self.side] if notation else self.words.get(name) or self.usual(name)

    def usual(self, name: str) -> str:
        """SymPy's symbol of a name."""
        return sp.pretty(sp.Symbol(name), use_unicode=True)

    def word(self, name: str) -> str:
        """A function's name."""
        return self.words.get(name, name)

    def sign(self, sign: str) -> str:
        """The sign of a relation."""
        return sign

    def upright(self, word: str) -> str:
        """A word in a formula."""
        return word

    def number(self, e: Any) -> str:
        """A whole or rational number."""
        return str(e).replace("-", "−")

    # -- scripts and brackets
    def crowded(self, base: str) -> bool:
        """Return True if the base of a power already has a superscript."""
        return any(x in base for x in "¹²³⁴⁵⁶⁷⁸⁹⁺")

    def paren(self, text: str) -> str:
        """The brackets of a sum."""
        return f"({text.replace(MARK, INNER)})"

    def round(self, text: str) -> str:
        """The brackets of arguments."""
        return f"({text.replace(MARK, INNER)})"

    def power(self, base: str, exponent: str) -> str:
        """base^exponent."""
        exponent = unmarked(exponent)
        if all(ord(x) in SUPERSCRIPTS for x in exponent):
            return base + exponent.translate(SUPERSCRIPTS)
        return base + (f"^{exponent}" if exponent.isalnum() else f"^({exponent})")

    def subscript(self, base: str, indices: list[str]) -> str:
        """base with subscripts."""
        if all(x in SUBSCRIPTS for x in indices):
            return base + "".join(SUBSCRIPTS[x] for x in indices)
        return f"{base}[{','.join(unmarked(x).replace(' ', '') for x in indices)}]"

    def entry(self, base: str, indices: list[str]) -> str:
        """An entry of an array."""
        if not self.bracketed:
            return self.subscript(base, indices)
        return f"{base}[{','.join(unmarked(x).replace(' ', '') for x in indices)}]"

    # -- operations
    def sum_sign(self, limit: Any) -> str:
        """The sign of a sum over an index."""
        return self.below("Σ", self.letter(limit[0]))

    def product_sign(self, limit: Any) -> str:
        """The sign of a product over an index."""
        return self.below("Π", self.letter(limit[0]))

    def below(self, sign: str, index: str) -> str:
        """A sign over an index."""
        return f"{sign}{SUBSCRIPTS.get(index, '_' + index)} "

    def extreme(self, word: str, index: str, text: str) -> str:
        """The largest over an index."""
        return f"{word}_{index} {text}"

    def fraction(self, top: str, bottom: str, many: bool) -> str:
        """Return top/below; `many` if the denominator is a product."""
        return f"{top}/({bottom})" if many else f"{top}/{bottom}"

    def beside(self, fraction: str) -> str:
        """A fraction in front of a bracket."""
        return f"({fraction})"

    def root(self, base: str) -> str:
        """A square root."""
        return f"√{base}"

    def integral(self, body: str, variable: str, low: str, high: str) -> str:
        """An integral."""
        return f"∫[{low}, {high}] {body} d{variable}"

    def cases(self, rows: list[tuple[str, str]]) -> str:
        """A definition by cases."""
        return (" " + MARK).join(f"{value}  {condition};" for value, condition in rows)[:-1]

    def indicator(self, condition: str) -> str:
        """Return a function that is 1 if a condition holds, else 0."""
        return f"1[{condition}]"

    def floor(self, text: str) -> str:
        """Return the largest integer below."""
        return f"⌊{text}⌋"

    def bars(self, text: str) -> str:
        """An absolute value."""
        return f"|{text}|"

    def choose(self, n: str, k: str) -> str:
        """A binomial coefficient."""
        return f"C({n}, {k})"

    def dashed(self, base: str, order: Any) -> str:
        """A derivative by its order."""
        return base + ("′" * int(order) if order.is_Integer else f"^({order})")

    def mean(self, text: str, variables: str = "") -> str:
        """An expectation."""
        return f"𝔼{'_' + variables if variables else ''}[{text}]"

    def derivative(self, text: str, variable: str, sign: str) -> str:
        """d text/d by."""
        return f"{sign}{text}/{sign}{variable}"

    # -- prose
    def inline(self, text: str) -> str:
        """Mathematics in a sentence."""
        return text

    def plain(self, words: str) -> str:
        """Words that are not mathematics."""
        return words

    def prose(self, words: str) -> str:
        """A sentence: `names`, Greek letters, powers and tokens like v*_k become symbols."""

        def atom(token: str) -> str:
            base, _, index = token.partition("_")
            is_symbol = base in GREEK or "*" in base or bool(index)
            base = self.upright("He") if base == "He" else self.name(base.replace("*", "_star")) if is_symbol else base
            letters = [self.name(index)] if index in GREEK else list(index)
            return self.subscript(base, letters) if index else base

        def one(match: re.Match[str]) -> str:
            if match[0].startswith("`"):
                return self.inline(self.name(match[0].strip("`")))
            base_text, _, exponent = match[0].partition("^")
            text = self.dot_sign.join(map(atom, base_text.split(".")))
            return self.inline(self.power(text, exponent) if exponent else text)

        token, greek = (
            r"(?:[A-Za-z]|He|" + "|".join(GREEK) + r")\w?\*?_(?:" + "|".join(GREEK) + r"|\w{1,3})",
            "|".join(GREEK),
        )
        pattern = rf"`\w+`|(?<![\w.])(?:{token}(?:\.{token})?(?:\^\w)?|(?:{greek})(?:\^\w)?|[A-Za-z]\^\w)(?!\w)"
        return re.sub(pattern, one, self.plain(words))

"""A statement as a LaTeX document (amsmath): equations are broken to the width of the page, and constants are exact."""

import re
from typing import Any, ClassVar

from derivations.latex import HEAD
from derivations.statement import Statement, sp
from odesim.show.page.style import INNER, MARK, WEAK, unmarked
from odesim.show.page.text import Row, Text

SIGNS = {
    "≥": r"\ge",
    ">": ">",
    "≤": r"\le",
    "<": "<",
    "=": "=",
    "≠": r"\ne",
    "and": r"\text{ and }",
    "or": r"\text{ or }",
}
WORDS = ("max", "min", "exp", "tanh", "sinh", "cosh", "log", "cos", "sin")


def flat(text: str) -> str:
    """A small formula in one line: a/b for fractions, no breaks."""
    return re.sub(r"\\t?frac\{([^{}]*(?:\^\{[^{}]*\})?[^{}]*)\}\{([^{}]*)\}", r"\1/\2", unmarked(text))


def runs(numbers: list[int]) -> str:
    """Return numbers of equations, with consecutive ones as a range."""
    ranges: list[list[int]] = []
    for n in numbers:
        if ranges and ranges[-1][-1] == n - 1:
            ranges[-1].append(n)
        else:
            ranges.append([n])
    return ", ".join(f"({x[0]})" + (f"--({x[-1]})" if len(x) > 1 else "") for x in ranges)


class Latex(Text):
    """amsmath."""

    width, indent, side = 85, 3, 0
    minus, plus, times, thin = "-", "+", " " + WEAK, r"\,"
    words: ClassVar[dict[str, str]] = {
        "asin": r"\arcsin",
        "oo": r"\infty",
        "L": r"\mathcal{L}",
        **{x: rf"\{x}" for x in WORDS},
    }
    dot_sign = r"{\cdot}"

    def usual(self, name: str) -> str:
        """Return SymPy's symbol of a name."""
        symbol = sp.latex(sp.Symbol(name))
        return re.sub(r"^[A-Za-z]{2,}", lambda word: rf"\mathrm{{{word[0]}}}", symbol)

    def sign(self, sign: str) -> str:
        """The sign of a relation."""
        return SIGNS[sign]

    def upright(self, word: str) -> str:
        """A word in a formula."""
        word = self.words.get(word, word)
        return word if word.startswith("\\") else rf"\mathrm{{{word}}}".replace(" ", r"\ ")

    def number(self, e: Any) -> str:
        """A whole or rational number."""
        return sp.latex(e).replace(r"\frac", r"\tfrac")

    def crowded(self, base: str) -> bool:
        """Return True if the base of a power already has a superscript."""
        return "^" in base and not base.startswith(("(", r"\bigl("))

    def paren(self, text: str) -> str:
        """The brackets of a sum."""
        big = self.measure(text) > 24 or r"\sum" in text or r"\frac" in text
        return (r"\bigl({}\bigr)" if big else "({})").format(text.replace(MARK, INNER))

    def round(self, text: str) -> str:
        """The brackets of arguments."""
        big = r"\sum" in text or r"\frac" in text
        return (r"\Bigl({}\Bigr)" if big else "({})").format(text.replace(MARK, INNER))

    def power(self, base: str, exponent: str) -> str:
        """base^exponent."""
        return f"{base}^{{{flat(exponent)}}}"

    def subscript(self, base: str, indices: list[str]) -> str:
        """base with subscripts."""
        plain = [unmarked(x) for x in indices]
        single = all(len(x) == 1 or re.fullmatch(r"\\[a-z]+|[a-z]'", x) for x in plain)
        return f"{base}_{{{('' if single else ',').join(plain)}}}"

    def entry(self, base: str, indices: list[str]) -> str:
        """An entry of an array."""
        return self.subscript(base, indices)

    def sum_sign(self, limit: Any) -> str:
        """Return the sign of a sum over an index, with its range unless it starts with the array."""
        return self._ranged(r"\sum", limit)

    def product_sign(self, limit: Any) -> str:
        """The sign of a product over an index."""
        return self._ranged(r"\prod", limit)

    def _ranged(self, sign: str, limit: Any) -> str:
        index, low, high = limit
        letter = self.letter(index)
        if index.upper == sp.oo:
            return rf"{sign}_{{{letter}\ge {low}}}"
        if low == 0 or index.name not in self.degrees:
            return rf"{sign}_{{{letter}}}"
        return rf"{sign}_{{{letter}={self.show(low)}}}^{{{self.show(high)}}}"

    def extreme(self, word: str, index: str, text: str) -> str:
        """The largest over an index."""
        return rf"{word}_{{{index}}} {text}"

    def fraction(self, top: str, bottom: str, many: bool) -> str:
        """top/below."""
        return unmarked(rf"\{'t' if (top + bottom).isdigit() else ''}frac{{{top}}}{{{bottom}}}")

    def beside(self, fraction: str) -> str:
        """A fraction in front of a bracket."""
        return fraction

    def root(self, base: str) -> str:
        """A square root."""
        return unmarked(rf"\sqrt{{{base}}}")

    def integral(self, body: str, variable: str, low: str, high: str) -> str:
        """An integral."""
        return unmarked(rf"\int_{{{low}}}^{{{high}}}\!{body}\,\mathrm{{d}}{variable}")

    def cases(self, rows: list[tuple[str, str]]) -> str:
        """A definition by cases."""
        body = r"\\[2pt] ".join(rf"\displaystyle {unmarked(v)} & \text{{{c}}}" for v, c in rows)
        return rf"\begin{{cases}}{body}\end{{cases}}"

    def indicator(self, condition: str) -> str:
        """Return a function that is 1 if a condition holds, else 0."""
        return unmarked(rf"\mathbf{{1}}[{condition}]")

    def floor(self, text: str) -> str:
        """Return the largest integer below."""
        return rf"\lfloor {flat(text)}\rfloor"

    def bars(self, text: str) -> str:
        """An absolute value."""
        return unmarked(rf"|{text}|")

    def choose(self, n: str, k: str) -> str:
        """A binomial coefficient."""
        return unmarked(rf"\tbinom{{{n}}}{{{k}}}")

    def dashed(self, base: str, order: Any) -> str:
        """A derivative by its order."""
        return base + ("'" * int(order) if order.is_Integer else rf"^{{({self.show(order)})}}")

    def mean(self, text: str, variables: str = "") -> str:
        """An expectation."""
        return rf"\mathbb{{E}}{'_' + variables if variables else ''}\bigl[{text}\bigr]"

    def derivative(self, text: str, variable: str, sign: str) -> str:
        """d text/d by."""
        sign = r"\mathrm{d}" if sign == "d" else r"\partial "
        return rf"\frac{{{sign}{text}}}{{{sign}{variable}}}"

    def inline(self, text: str) -> str:
        """Mathematics in a sentence."""
        return f"${unmarked(text)}$"

    def plain(self, words: str) -> str:
        """Words that are not mathematics."""
        words = re.sub(r"[<>|]", lambda match: f"${match[0]}$", words)
        words = re.sub(r"([&%#])", r"\\\1", words)
        return re.sub(r"\^(\([^()]*\))", r"$^{\1}$", words)

    def prose(self, words: str) -> str:
        """Return a sentence; other underscores and hats outside of formulas are escaped."""
        parts = super().prose(words).split("$")
        parts[::2] = [re.sub(r"([_^])", r"\\\1{}", x).replace(r"\_{}", r"\_") for x in parts[::2]]
        return "$".join(parts)

    def several(self, names: list[str]) -> str:
        """Several names that are defined together."""
        return rf"({names[0]},\dots,{names[-1]})"

    def range_of(self, index: Any) -> str:
        """The values of an index."""
        return super().range_of(index).replace("…", r"\dots")

    def ranges(self) -> list[str]:
        """The index sets."""
        return [
            f"${', '.join(map(self.show, i))}={self.range_of(i[0])}$ ({self.prose(w)})"
            for i, w in self.statement.indices
        ]

    def measure(self, text: str) -> float:
        """The width in half ems: letters one, signs two more, a fraction its wider part, scripts 0.7."""
        text = re.sub(r"\\begin\{cases\}|\\end\{cases\}|&|\\\\\[2pt\]", "", text)
        text = re.sub(
            r"\\(bigl|bigr|Bigl|Bigr|mathrm|mathbb|mathcal|displaystyle|text|hat|[,!])|[\x01-\x03 ]", "", text
        )
        inner = r"\{((?:[^{}]|\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\})*)\}"
        for _ in range(2):
            text = re.sub(r"\\t?frac" + inner * 2, lambda f: max(f[1], f[2], key=len), text)
        text = re.sub(r"\\[A-Za-z]+", "x", text.replace(r"\sum", "xxx").replace(r"\prod", "xxx"))
        scripts = [re.findall(r"\{([^{}]*)\}", x) for x in re.findall(r"(?:[\^_]\{[^{}]*\})+", text)]
        text = re.sub(r"[\^_]\{[^{}]*\}|[{}_^]", "", text)
        return len(text) + 0.7 * sum(max(map(len, x)) for x in scripts) + 1.5 * len(re.findall(r"[-+=<>]", text))

    # -- the page
    def page(self) -> str:
        """The whole document."""
        s = self.statement
        out = [HEAD + rf"\subsection*{{{self.prose(s.name)}: {self.prose(s.title)}}}"]
        out += [rf"\textbf{{{label.capitalize()}.}} {words}.\\" for label, words in self.facts()]
        out += [rf"\textbf{{Indices.}} {'; '.join(self.ranges())}.", ""]
        for heading, rows in (("State", s.state), ("Constants", s.constants)):
            descriptions = "; ".join(f"${self.show(r.target)}$ {self.prose(r.meaning)}{self.unit(r)}" for r in rows)
            out += [rf"\textbf{{{heading}.}} {descriptions}." + "\n"] if rows else []
        number = 0
        for heading, rows in self.blocks():
            out += self.displayed(heading, rows, number)
            number += len(rows)
        out += [self.prose(sentence) + "\n" for sentence in s.rules]
        return unmarked("\n".join([*out, r"\end{document}"]) + "\n")

    def fragment(self) -> str:
        """Return all equations in one `align`, without words."""
        rows = [row for _, rows in self.blocks() for row in rows]
        return unmarked("\n".join([r"\begin{align}", "\\\\\n".join(self.lines(rows)), r"\end{align}"]) + "\n")

    def lines(self, rows: list[Row]) -> list[str]:
        """Numbered equations, broken to the width of the page."""
        wide = min(max(self.measure(row.left) for row in rows), 0.35 * self.width)
        body: list[str] = []
        for left, rights, _ in rows:
            for n, right in enumerate(rights):
                first, *continuation = self.broken(right, self.width - max(wide, self.measure(left)))
                text = rf"{left} &= {first}" + "".join(rf"\notag\\ &\quad {line}" for line in continuation)
                body.append(text + (r"\notag" if n + 1 < len(rights) else ""))
                left = ""
        return body

    def displayed(self, heading: str, rows: list[Row], number: int) -> list[str]:
        """Return one `align` of numbered equations, with the remarks after the heading."""
        numbers_by_remark: dict[str, list[int]] = {}
        for place, row in enumerate(rows, number + 1):
            if row.remark:
                numbers_by_remark.setdefault(row.remark, []).append(place)
        remarks = [f"{runs(numbers)} {self.prose(words)}" for words, numbers in numbers_by_remark.items()]
        title = heading[0].upper() + heading[1:]
        return [
            rf"\textbf{{{title}.}} {{\small {'; '.join(remarks)}}}",
            r"\begin{align}",
            "\\\\\n".join(self.lines(rows)),
            r"\end{align}",
        ]


def fragment(statement: Statement) -> str:
    """The equations of a statement as one `align` without a preamble, for articles with amsmath."""
    return Latex(statement).fragment()


def page(statement: Statement) -> str:
    """The page of a statement as a LaTeX document."""
    return Latex(statement).page()

"""LaTeX of formulas in running text as MathML: scripts, fractions, accents, Greek, and common signs."""

import html
import re

GREEK = {
    name: chr(code) for name, code in (
        *((n, 0x3B1 + k) for k, n in enumerate(
            "alpha beta gamma delta varepsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho varsigma sigma "
            "tau upsilon varphi chi psi omega".split())),
        ("epsilon", 0x3F5), ("phi", 0x3D5), ("vartheta", 0x3D1), ("ell", 0x2113),
        *((n, 0x391 + k) for k, n in enumerate(
            "Alpha Beta Gamma Delta Epsilon Zeta Eta Theta Iota Kappa Lambda Mu Nu Xi Omicron Pi Rho - Sigma Tau "
            "Upsilon Phi Chi Psi Omega".split())),
    )
}  # fmt: skip
SIGNS = {
    "cdot": "⋅", "times": "×", "pm": "±", "mp": "∓", "le": "≤", "leq": "≤", "ge": "≥", "geq": "≥", "ne": "≠",
    "neq": "≠", "sim": "∼", "approx": "≈", "propto": "∝", "ll": "≪", "gg": "≫", "lesssim": "≲", "gtrsim": "≳",
    "equiv": "≡", "in": "∈", "notin": "∉", "subset": "⊂", "cap": "∩", "cup": "∪", "to": "→", "rightarrow": "→",
    "mapsto": "↦", "langle": "⟨", "rangle": "⟩", "lVert": "‖", "rVert": "‖", "Vert": "‖", "lvert": "|", "rvert": "|",
    "mid": "∣", "sum": "∑", "prod": "∏", "int": "∫", "ldots": "…", "dots": "…", "cdots": "⋯", "circ": "∘",
    "perp": "⊥", "forall": "∀", "exists": "∃", "{": "{", "}": "}", "|": "‖", "%": "%", "&": "&", "_": "_",
    "$": "$", "#": "#", "lfloor": "⌊", "rfloor": "⌋", "star": "⋆", "odot": "⊙",
}  # fmt: skip
NAMES = {"infty": "∞", "nabla": "∇", "partial": "∂", "top": "⊤", "emptyset": "∅"}
WORDS = (
    "log", "ln", "exp", "max", "min", "sup", "inf", "tanh", "cosh", "sinh", "sin", "cos", "tan", "arcsin", "arccos",
    "arctan", "lim", "det",
)  # fmt: skip
ACCENTS = {"bar": "¯", "hat": "^", "tilde": "~", "dot": "˙", "ddot": "¨", "overline": "¯", "vec": "→"}
SPACES = {",": 0.17, ":": 0.22, ";": 0.28, " ": 0.3, "quad": 1, "qquad": 2, "!": 0}
LIMITS = ("∑", "∏")
BRACKETS = ("left", "right", *(size + side for size in ("big", "Big", "bigg", "Bigg") for side in ("", "l", "r")))
"""Commands that set the size of the bracket after them."""
SCRIPT = {"B": "ℬ", "E": "ℰ", "F": "ℱ", "H": "ℋ", "I": "ℐ", "L": "ℒ", "M": "ℳ", "R": "ℛ"}
"""Script capitals that Unicode had before the block of script letters."""
DOUBLE = {"C": "ℂ", "H": "ℍ", "N": "ℕ", "P": "ℙ", "Q": "ℚ", "R": "ℝ", "Z": "ℤ"}
"""Double-struck capitals that Unicode had before their block."""
BEFORE_A_SIGN = re.compile(r"[=<>≤≥≠∼≈≲≳→∈,(\[{⋅×]</mo>$")
"""Tokens after which a minus is the sign of a number and not a difference."""
ESCAPED = re.compile(r"\\(?:(?P<sign>[_%&#{}])|(?P<hat>\^)\{\}|textasciitilde\{\})")
"""Characters in words that have a meaning in TeX."""
BELOW = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
TOKEN = re.compile(r"\\text\{(?:[^{}]|\{[^{}]*\})*\}|\\[A-Za-z]+|\\.|\d+(?:\.\d+)?|\.\d+|'+|\S", re.DOTALL)


def mathml(source: str, *, display: bool = False) -> str:
    """Return a formula as MathML; an unknown command is shown as text.

    Example:
        >>> mathml(r"\\frac{a_1}{2} \\le \\bar v")
        '<math><mfrac><msub><mi>a</mi><mn>1</mn></msub><mn>2</mn></mfrac><mo>≤</mo><mover accent="true"><mi>v</mi><mo>¯</mo></mover></math>'
    """  # noqa: E501
    body = _Reader(source).row()
    return f'<math display="block">{body}</math>' if display else f"<math>{body}</math>"


def letter(name: str) -> str:
    """Return the Greek letter of a name, with digits after a letter as its index; any other name is unchanged."""
    word = name.rstrip("0123456789")
    greek = GREEK.get({"eps": "varepsilon", "epsilon": "varepsilon"}.get(word, word), word)
    return greek + name[len(word) :].translate(BELOW) if len(greek) == 1 else name


def identifier(text: str) -> str:
    """Return a name as MathML: a single letter in italics, a word upright."""
    return f"<mi>{html.escape(text)}</mi>"


def sign(text: str) -> str:
    """Return an operator; brackets and bars have the size of their line and normal spacing."""
    attributes = ' stretchy="false" lspace="0" rspace="0"' if text in "()[]{}⟨⟩|‖∣/!" else ""
    return f"<mo{attributes}>{html.escape({'-': '−', '*': '∗'}.get(text, text))}</mo>"


class _Reader:
    """Reader of the tokens of a formula from left to right. Every method returns the MathML of the tokens that it
    reads.
    """

    def __init__(self, source: str) -> None:
        self.tokens: list[str] = TOKEN.findall(source)
        self.at = 0

    def row(self, closing: str = "") -> str:
        """Read everything up to and including the closing token, or to the end."""
        parts: list[str] = []
        while self.at < len(self.tokens):
            if self.tokens[self.at] == closing:
                self.at += 1
                break
            if self.tokens[self.at] == "-" and (not parts or BEFORE_A_SIGN.search(parts[-1])):
                self.at += 1
                parts.append('<mo form="prefix">−</mo>')
                continue
            parts.append(self.scripted())
        return "".join(parts)

    def scripted(self) -> str:
        """Read an atom with its scripts."""
        base = self.atom()
        under = over = ""
        while self.at < len(self.tokens) and (self.tokens[self.at] in "_^" or self.tokens[self.at][0] == "'"):
            token = self.tokens[self.at]
            self.at += 1
            if token == "_":
                under = self.argument()
            elif token == "^":
                over += self.argument()
            else:
                over = f"<mo>{'′' * len(token)}</mo>"
        over = _one(over) if over else ""
        below = any(f">{sign}<" in base for sign in LIMITS)
        kind = {(1, 1): "munderover" if below else "msubsup", (1, 0): "munder" if below else "msub", (0, 1): "msup"}
        if not under and not over:
            return base
        if below and not under:
            return f"<mover>{base}{over}</mover>"
        tag = kind[bool(under), bool(over)]
        return f"<{tag}>{base}{under}{over}</{tag}>"

    def argument(self) -> str:
        r"""Read the argument of a command or script: a single digit of a number, as in \frac12."""
        token = self.peek()
        if token[:1].isdigit() and len(token) > 1:
            self.tokens[self.at : self.at + 1] = [token[0], token[1:]]
        return self.atom()

    def atom(self) -> str:
        """Read one letter, number, sign, group or command, as one element."""
        if self.at >= len(self.tokens):
            return "<mrow></mrow>"
        token = self.tokens[self.at]
        self.at += 1
        if token == "{":
            return _one(self.row("}"))
        if token.startswith("\\text{"):
            return _words(token[6:-1])
        if token.startswith("\\"):
            return self.command(token[1:])
        if token[0].isdigit() or (token[0] == "." and len(token) > 1):
            return f"<mn>{token}</mn>"
        if token.isalpha():
            return identifier(token)
        return sign(token)

    def command(self, name: str) -> str:
        """Return the meaning of a LaTeX command with its arguments."""
        if name == "begin":
            return self.cases()
        if name in ("displaystyle", "textstyle", "notag", "nonumber"):
            return "<mrow></mrow>"
        if name in ("tbinom", "binom"):
            over, under = self.argument(), self.argument()
            return f'<mrow>{sign("(")}<mfrac linethickness="0">{over}{under}</mfrac>{sign(")")}</mrow>'
        if name in ("frac", "tfrac", "dfrac"):
            return f"<mfrac>{self.argument()}{self.argument()}</mfrac>"
        if name == "sqrt":
            return f"<msqrt>{self.argument()}</msqrt>"
        if name in ACCENTS:
            return f'<mover accent="true">{self.argument()}<mo>{ACCENTS[name]}</mo></mover>'
        if name in ("mathrm", "operatorname", "mathbf", "mathcal", "mathbb", "mathit"):
            return self.letters(name)
        if name == "rm":
            return identifier(self.upright())
        if name in BRACKETS:
            return "<mrow></mrow>" if self.peek() == "." and self.take() else self.atom()
        return _named(name)

    def cases(self) -> str:
        """Read the environment `cases` (or another): rows of cells, with a brace before those of `cases`."""
        environment = self.name_of_environment()
        rows: list[list[str]] = [[""]]
        while self.at < len(self.tokens):
            token = self.peek()
            if token == "\\\\":
                self.take()
                self.skip_length()
                rows.append([""])
            elif token == "&":
                self.take()
                rows[-1].append("")
            elif token == "\\end":
                self.take()
                self.name_of_environment()
                break
            else:
                rows[-1][-1] += self.scripted()
        cells = ["".join(f"<mtd><mrow>{cell}</mrow></mtd>" for cell in row) for row in rows]
        table = "".join(f"<mtr>{row}</mtr>" for row in cells)
        brace = '<mo stretchy="true">{</mo>' if environment == "cases" else ""
        return f'<mrow>{brace}<mtable columnalign="left">{table}</mtable></mrow>'

    def name_of_environment(self) -> str:
        """Read the name in braces after the begin or the end of an environment."""
        self.take()
        word = self.upright()
        self.at += 1
        return word

    def skip_length(self) -> None:
        """Skip the optional distance after the end of a row, as in [2pt]."""
        if self.peek() == "[":
            while self.peek() and self.take() != "]":
                pass

    def peek(self) -> str:
        """Return the next token, or nothing."""
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        """Return the next token, and advance."""
        self.at += 1
        return self.tokens[self.at - 1]

    def upright(self) -> str:
        r"""Read the letters up to the end of the group, after \rm; the closing brace is not read."""
        found = ""
        while self.at < len(self.tokens) and self.tokens[self.at] != "}":
            found += self.take()
        return found

    def letters(self, name: str) -> str:
        """Read a group of letters that is one word."""
        if self.peek() == "{":
            self.take()
            word = self.upright()
            self.at += 1
        else:
            word = self.take() if self.peek() else ""
        if name == "mathcal":
            return identifier("".join(SCRIPT.get(c, chr(0x1D49C + ord(c) - 65) if c.isupper() else c) for c in word))
        if name == "mathbb":
            return identifier("".join(DOUBLE.get(c, chr(0x1D538 + ord(c) - 65) if c.isupper() else c) for c in word))
        if name == "mathit":
            return identifier(word)
        return f'<mi mathvariant="normal">{html.escape(word)}</mi>'


def _words(text: str) -> str:
    """Return words within a formula, with the formulas between dollar signs in them."""
    parts = [
        _Reader(part).row() if k % 2 else f"<mtext>{html.escape(_unescaped(part)).replace(' ', '&#160;')}</mtext>"
        for k, part in enumerate(text.split("$"))
        if part
    ]
    return f"<mrow>{''.join(parts)}</mrow>" if len(parts) != 1 else parts[0]


def _unescaped(text: str) -> str:
    """Return words with TeX's escaped characters replaced."""
    return ESCAPED.sub(lambda found: found["sign"] or found["hat"] or "~", text)


def _named(name: str) -> str:
    """A command without arguments."""
    if name in GREEK:
        return identifier(GREEK[name])
    if name in NAMES:
        return f"<mi>{NAMES[name]}</mi>"
    if name in WORDS:
        return f'<mo rspace="0.17em">{name}</mo>'
    if name in SPACES:
        return f'<mspace width="{SPACES[name]}em"/>'
    if name in SIGNS:
        return sign(SIGNS[name])
    return f"<mtext>\\{html.escape(name)}</mtext>"


def _one(body: str) -> str:
    """Return some elements as one, because a script or an argument is a single element in MathML."""
    single = re.fullmatch(r"<(m(?:[ion]|sub|sup|subsup|frac))\b(?:(?!</?\1\b).)*</\1>", body)
    return body if single else f"<mrow>{body}</mrow>"

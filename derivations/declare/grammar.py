"""Grammar of expressions: the text of a unit, a loss or a readout becomes a tree. It is never executed.

A file of another person can therefore only declare a model; SymPy's parsers would call `eval`. This module does not
import SymPy, so that a model with cached code starts without it.

    total = product (("+" | "-") product)*      product = signed (("*" | "/") signed)*
    signed = ("+" | "-") signed | atom (("^" | "**") signed)?
    atom = number | name | name "(" total ("," total)* ")" | "(" total ")"
"""

import dataclasses
import difflib
import keyword
import math
import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping

from derivations.contract import UsageError, synonyms

GATES = (
    "logistic",
    "probit",
    "erf",
    "tanh",
    "relu",
    "step",
    "sign",
    "abs",
    "gelu",
    "silu",
    "softplus",
    "exp",
    "cos",
    "sin",
)
"""Functions of one value."""
SHARES = ("softmax", "top1")
"""Functions for the share of a unit in its group: softmax(v) = exp(v_i) / sum_k exp(v_k), top1(v) = 1 for the
largest.
"""
FUNCTIONS = {**dict.fromkeys((*GATES, *SHARES, "sqrt", "log"), 1), "He": 2, "wick": 2, "clip": 2}
"""Every function of an expression and the number of its arguments; clip(x, k) = min(max(x, -k), k)."""
NAMES_TOO = ("clip",)
"""Functions whose names, without brackets, may also be names of weight vectors."""
LONGEST, DEEPEST, DEGREE = 400, 30, 12
"""Largest number of characters and nested brackets of an expression, and the largest degree."""
LARGEST = 1e100
"""Largest number; beyond it powers are not finite."""
LONGEST_NAME = 40
"""Largest number of characters of a name."""
OF_SAMPLES = (*GATES, "sqrt", "log", "He", "clip")
"""Functions of samples, in rules and distributions of noise: neither shares of units nor norms."""
OF_NUMBERS: dict[str, Callable[[float], float]] = {
    "sqrt": math.sqrt,
    "log": math.log,
    "exp": math.exp,
    "erf": math.erf,
    "tanh": math.tanh,
    "cos": math.cos,
    "sin": math.sin,
    "abs": abs,
    "logistic": lambda x: 0.5 + 0.5 * math.tanh(0.5 * x),
    "probit": lambda x: 0.5 * math.erfc(-x / math.sqrt(2)),
    "relu": lambda x: max(x, 0.0),
    "step": lambda x: float(x > 0),
    "sign": lambda x: float((x > 0) - (x < 0)),
    "gelu": lambda x: 0.5 * x * math.erfc(-x / math.sqrt(2)),
    "silu": lambda x: x * (0.5 + 0.5 * math.tanh(0.5 * x)),
    "softplus": lambda x: max(x, 0.0) + math.log1p(math.exp(-abs(x))),
}
"""The functions of one value at a number."""
TOKEN = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[A-Za-z_]\w*|\*\*|\S", re.ASCII)


@dataclasses.dataclass(frozen=True)
class Tree:
    """Node of a tree: kind "number", "name", "call" or an operator; its word (a name, a function), value and parts.

    >>> read("2*He(3, w)").parts[1].word
    'He'
    """

    kind: str
    word: str = ""
    value: float = 0.0
    parts: tuple["Tree", ...] = ()

    def walk(self) -> Iterator["Tree"]:
        """This node and all below it, those on the left first."""
        yield self
        for part in self.parts:
            yield from part.walk()

    def names(self) -> tuple[str, ...]:
        """The names in order of first use, `pi` left out.

        >>> read("logistic(beta*v)*He(3, w)").names()
        ('beta', 'v', 'w')
        """
        return tuple(dict.fromkeys(node.word for node in self.walk() if node.kind == "name" and node.word != "pi"))

    def calls(self, *words: str) -> list["Tree"]:
        """The calls of the functions `words`."""
        return [node for node in self.walk() if node.kind == "call" and node.word in words]


def read(text: str, names: Collection[str] | None = None, entries: bool = False) -> Tree:
    """The tree of an expression; with `names` every name must be one of these.

    With `entries` the text may contain entries and means of order parameters, whose names are their texts: `M_ww[1,2]`,
    `a[1]`, `mean(Q_ww)`; they need not be in `names`.

    Raises `UsageError` with the column, what was expected, and the nearest name.

    >>> read("erf(w/sqrt(2))").word
    'erf'
    """
    if not isinstance(text, str):
        raise UsageError(f"an expression is a text such as 'He(3, w)', but {text!r} was given")
    if len(text) > LONGEST:
        raise UsageError(f"an expression has at most {LONGEST} characters, this one has {len(text)}")
    reader = _Reader(text, entries)
    tree = reader.total(0)
    reader.expect("the end")
    for name in tree.names():
        if names is not None and name not in names and not entry(name):
            raise UsageError(f"unknown name {name!r} in {text!r}; {_nearest(name, [*names, *FUNCTIONS])}")
    _degrees(tree, text)
    return tree


def entry(name: str) -> tuple[str, tuple[int, ...]] | None:
    """The order parameter and the indices (from 1) of an entry; no indices for a mean, None for any other name.

    >>> entry("M_ww[1,2]"), entry("mean(Q_ww)"), entry("kappa")
    (('M_ww', (1, 2)), ('Q_ww', ()), None)
    """
    match = re.fullmatch(r"(\w+)\[([\d,]+)\]", name)
    if match:
        return match[1], tuple(int(index) for index in match[2].split(","))
    match = re.fullmatch(r"mean\((\w+)\)", name)
    return (match[1], ()) if match else None


def without_wick(tree: Tree, size: float = 1.0) -> Tree:
    """The expression with wick(k, w) as He(k, w/size): for a field of that norm they differ by a factor size^k.

    >>> without_wick(read("wick(2, w)")) == read("He(2, w)")
    True
    """
    parts = tuple(without_wick(part, size) for part in tree.parts)
    if tree.kind != "call" or tree.word != "wick":
        return dataclasses.replace(tree, parts=parts)
    field = parts[1] if size == 1.0 else Tree("/", parts=(parts[1], Tree("number", value=size)))
    return dataclasses.replace(tree, word="He", parts=(parts[0], field))


def number(tree: Tree, values: Mapping[str, float]) -> float:
    """Return the value of an expression of numbers, with names from `values`.

    Raises `UsageError` for a name without a value, and if the value is not finite.

    >>> number(read("2*sqrt(d)"), {"d": 9.0})
    6.0
    """
    operations: dict[str, Callable[[float, float], float]] = {
        "+": lambda a, b: a + b,
        "-": lambda a, b: a - b,
        "*": lambda a, b: a * b,
        "/": lambda a, b: a / b,
        "^": lambda a, b: a**b,
    }

    def value(node: Tree) -> float:
        if node.kind == "number":
            return node.value
        if node.kind == "name":
            if node.word == "pi":
                return math.pi
            if node.word not in values:
                raise UsageError(f"{node.word!r} has no value; {_nearest(node.word, list(values))}")
            return float(values[node.word])
        if node.kind == "call":
            if node.word == "He":
                return _hermite(int(node.parts[0].value), value(node.parts[1]))
            if node.word not in OF_NUMBERS:
                raise UsageError(f"{node.word} is not a function of numbers; use {', '.join(OF_NUMBERS)}")
            return OF_NUMBERS[node.word](value(node.parts[0]))
        return operations[node.kind](value(node.parts[0]), value(node.parts[1]))

    try:
        answer = value(tree)
    except (ArithmeticError, ValueError, TypeError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"a number cannot be computed: {error}") from None
    if isinstance(answer, complex) or not math.isfinite(answer):
        raise UsageError(f"a number must be finite, but its value is {answer}")
    return answer


def _hermite(k: int, z: float) -> float:
    previous, current = 0.0, 1.0
    for j in range(k):
        previous, current = current, z * current - j * previous
    return current


def foreign(name: str) -> str:
    """Return a message for a name with other letters than a to z, with a replacement.

    >>> foreign("κ")
    "'κ' is not written in the letters a to z, of which names are made: write kappa"
    """
    spelled = "".join(_spelled(letter) for letter in name)
    if keyword.iskeyword(spelled):  # lambda
        spelled = spelled[:3]
    write = f": write {spelled}" if spelled.isascii() and spelled.isidentifier() else ""
    return f"{name!r} is not written in the letters a to z, of which names are made{write}"


def _spelled(letter: str) -> str:
    """A letter in the letters a to z: a Greek one by its name, one with an accent without it."""
    if letter.isascii():
        return letter
    words = unicodedata.name(letter, "").split()
    if words[:1] == ["GREEK"]:
        return "lambda" if words[3:4] in (["LAMDA"], ["LAMBDA"]) else words[3].lower() if len(words) > 3 else letter
    return unicodedata.normalize("NFKD", letter)[0]


def _nearest(name: str, names: list[str]) -> str:
    meant = synonyms.meant(name, names)
    matches = [meant] if meant else difflib.get_close_matches(name, names, 1, 0.5)
    return f"did you mean {matches[0]!r}?" if matches else f"known are {', '.join(sorted(names)) or 'none'}"


def _degrees(tree: Tree, text: str) -> None:
    """Raise an error for degrees and exponents that are not small numbers, because compilers cannot handle them."""
    for call in tree.calls("He", "wick"):
        k = call.parts[0]
        if k.kind != "number" or k.value != int(k.value) or not 0 <= k.value <= DEGREE:
            raise UsageError(f"{call.word}(k, w) takes a whole number k from 0 to {DEGREE}, in {text!r}")
        if call.word == "wick" and call.parts[1].kind != "name":
            raise UsageError(f"wick(k, w) takes one weight vector and no expression, in {text!r}")
    for node in tree.walk():
        if node.kind == "^":
            exponent = node.parts[1]
            if exponent.names():
                continue  # an expression in numbers, whose degree is checked when the numbers are known
            if abs(number(exponent, {})) > DEGREE:
                raise UsageError(f"an exponent is a number between -{DEGREE} and {DEGREE}, in {text!r}")
    for call in tree.calls(*SHARES):
        if any(inner is not call and inner.word in SHARES for inner in call.walk() if inner.kind == "call"):
            raise UsageError(f"softmax(..) or top1(..) must not contain another one, but {text!r} does")
    if len({call for call in tree.calls(*SHARES)}) > 1:
        raise UsageError(f"{text!r} has two different gates: a unit may have only one softmax(..) or top1(..)")


class _Reader:
    """Recursive-descent parser for the tokens of one text."""

    def __init__(self, text: str, entries: bool = False) -> None:
        self.text, self.entries = text, entries
        self.tokens = [(match.group(), match.start() + 1) for match in TOKEN.finditer(text)]
        self.tokens.append(("the end", len(text) + 1))
        self.at = 0

    @property
    def next(self) -> str:
        return self.tokens[self.at][0]

    def refuse(self, expected: str) -> UsageError:
        token, column = self.tokens[self.at]
        quoted = token if token == "the end" else repr(token if len(token) <= 40 else f"{token[:40]}..")
        text = self.text if len(self.text) <= 200 else f"{self.text[:200]}.."
        hint = ""
        if expected == "the end" and token != expected and re.match(r"[\w(]", token):
            hint = "; a product is written with *"
        elif expected == "the end" and token == ".":
            hint = "; functions are written without a module, as in tanh(w)"
        return UsageError(f"column {column} of {text!r}: expected {expected}, found {quoted}{hint}")

    def take(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1][0]

    def expect(self, token: str) -> None:
        if self.next != token:
            raise self.refuse(token if token == "the end" else f"'{token}'")
        self.take() if token != "the end" else None

    def chain(self, operators: str, operand: Callable[[int], Tree], depth: int) -> Tree:
        tree = operand(depth)
        while self.next in tuple(operators):
            tree = Tree(self.take(), parts=(tree, operand(depth)))
        return tree

    def total(self, depth: int) -> Tree:
        if depth > DEEPEST:
            raise UsageError(f"more than {DEEPEST} nested brackets or signs in {self.text!r}")
        return self.chain("+-", self.product, depth)

    def product(self, depth: int) -> Tree:
        return self.chain("*/", self.signed, depth)

    def signed(self, depth: int) -> Tree:
        if depth > DEEPEST:
            raise UsageError(f"more than {DEEPEST} nested brackets or signs in {self.text!r}")
        if self.next in ("+", "-"):
            negative = self.take() == "-"
            inner = self.signed(depth + 1)
            return Tree("-", parts=(Tree("number"), inner)) if negative else inner
        base = self.atom(depth)
        if self.next in ("^", "**"):
            self.take()
            return Tree("^", parts=(base, self.signed(depth + 1)))
        return base

    def atom(self, depth: int) -> Tree:
        token = self.next
        if token == "(":
            self.take()
            tree = self.total(depth + 1)
            self.expect(")")
            return tree
        if re.match(r"\.?[0-9]", token):
            value = float(token)
            if value > LARGEST or 0 < value < 1 / LARGEST:
                raise self.refuse(f"a number between {1 / LARGEST:g} and {LARGEST:g} in size")
            self.take()
            return Tree("number", value=value)
        if len(token) == 1 and token.isalpha() and not token.isascii():
            column = self.tokens[self.at][1]
            raise UsageError(f"column {column} of {self.text!r}: {foreign(token)}")
        if not re.match(r"[A-Za-z_]", token) or token == "the end":
            raise self.refuse("a number, a name or '('")
        if len(token) > LONGEST_NAME:
            raise self.refuse(f"a name of at most {LONGEST_NAME} characters")
        return self.word(token, depth)

    def word(self, token: str, depth: int) -> Tree:
        """A name, an entry of an order parameter, or the call of a function."""
        if self.entries and self.tokens[self.at + 1][0] == "[":
            return self.entry()
        if self.entries and token == "mean" and self.tokens[self.at + 1][0] == "(":
            return self.mean()
        if self.tokens[self.at + 1][0] != "(":
            if token in FUNCTIONS and token not in NAMES_TOO:
                self.take()
                raise self.refuse(f"'(' after the function {token}")
            return Tree("name", self.take())
        if token not in FUNCTIONS:
            raise UsageError(
                f"column {self.tokens[self.at][1]} of {self.text!r}: unknown function {token!r}; "
                f"{synonyms.function_hint(token, FUNCTIONS) or _nearest(token, list(FUNCTIONS))}"
            )
        self.take()
        self.expect("(")
        parts = [self.total(depth + 1)]
        while self.next == ",":
            self.take()
            parts.append(self.total(depth + 1))
        self.expect(")")
        if len(parts) != FUNCTIONS[token]:
            count = f"{FUNCTIONS[token]} argument{'s' if FUNCTIONS[token] > 1 else ''}"
            raise UsageError(f"{token} takes {count}, {len(parts)} were given in {self.text!r}")
        return Tree("call", token, parts=tuple(parts))

    def entry(self) -> Tree:
        """NAME[i], NAME[i,j] or NAME[block,i,j], with whole numbers from 1."""
        name, indices = self.take(), []
        for ends in ("[", ",", ","):
            if ends == "," and self.next != ",":
                break
            self.take()
            if not re.fullmatch(r"[1-9]\d{0,5}", self.next):
                raise self.refuse("the number of a unit or a block, from 1")
            indices.append(self.take())
        self.expect("]")
        return Tree("name", f"{name}[{','.join(indices)}]")

    def mean(self) -> Tree:
        """mean(NAME)."""
        self.take()
        self.expect("(")
        if not re.fullmatch(r"[A-Za-z]\w*", self.next):
            raise self.refuse("the name of an order parameter")
        name = self.take()
        self.expect(")")
        return Tree("name", f"mean({name})")

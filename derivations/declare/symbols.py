"""The SymPy form of an expression, with the functions that SymPy lacks, and its text for numba, NumPy and JAX.

Slots become z_s and their squared norms q_s (which `wick` depends on). The share of a unit is p. Scalars of the unit
and the user's numbers have the same names.
"""

import functools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from derivations.declare.grammar import SHARES, Tree


@functools.cache
def own() -> dict[str, Any]:
    """The functions that SymPy lacks, each with its derivative almost everywhere and its value at a number."""
    import sympy

    functions: dict[str, Any] = {}

    def function(name: str, slope: Any, value: Any) -> None:
        def fdiff(self: Any, argindex: int = 1) -> Any:
            return slope(*self.args)

        def evalf(self: Any, precision: int) -> Any:
            return value(self.args[0].evalf(precision)).evalf(precision) if self.args[0].is_number else None

        functions[name] = type(name, (sympy.Function,), {"fdiff": fdiff, "_eval_evalf": evalf, "is_real": True})

    normal = 1 / sympy.sqrt(2 * sympy.pi)
    cdfs = (lambda x: 1 / (1 + sympy.exp(-x)), lambda x: (1 + sympy.erf(x / sympy.sqrt(2))) / 2)
    function("step", lambda x: sympy.S.Zero, lambda x: sympy.Integer(bool(x > 0)))
    function("sign", lambda x: sympy.S.Zero, sympy.sign)
    function("relu", lambda x: functions["step"](x), lambda x: sympy.Max(x, 0))
    function("abs", lambda x: functions["sign"](x), sympy.Abs)
    function("logistic", lambda x: functions["logistic"](x) * (1 - functions["logistic"](x)), cdfs[0])
    function("softplus", lambda x: functions["logistic"](x), lambda x: sympy.log(1 + sympy.exp(x)))
    function(
        "silu", lambda x: functions["logistic"](x) * (1 + x * (1 - functions["logistic"](x))), lambda x: x * cdfs[0](x)
    )
    function("probit", lambda x: normal * sympy.exp(-(x**2) / 2), cdfs[1])

    class clip(sympy.Function):
        nargs, is_real = 2, True

        def fdiff(self, argindex: int = 1) -> Any:
            x, k = self.args
            return (
                functions["step"](k - sympy.Abs(x))
                if argindex == 1
                else functions["sign"](x) * functions["step"](sympy.Abs(x) - k)
            )

        def _eval_evalf(self, prec: int) -> Any:
            x, k = self.args
            return sympy.Min(sympy.Max(x, -k), k).evalf(prec) if x.is_number and k.is_number else None

    functions["clip"] = clip
    function("gelu", lambda x: functions["probit"](x) + x * normal * sympy.exp(-(x**2) / 2), lambda x: x * cdfs[1](x))
    return functions


SOURCE = {
    # Root of a diagonal entry that rounding may make negative; if it is a denominator, a zero of the numerator wins.
    "root": "def root(x):\n    return np.sqrt(np.maximum(x, 1e-290))\n",
    "angle": "def angle(t, r):\n    return np.arctan2(t, r)\n",
    "step": "def step(x):\n    return 1.0 * (x > 0.0)\n",
    "sign": "def sign(x):\n    return 1.0 * (x > 0.0) - 1.0 * (x < 0.0)\n",
    "relu": "def relu(x):\n    return x * (x > 0.0)\n",
    "absolute": "def absolute(x):\n    return np.abs(x)\n",
    "logistic": "def logistic(x):\n    return 0.5 + 0.5 * np.tanh(0.5 * x)\n",
    "softplus": "def softplus(x):\n    return 0.5 * (x + np.abs(x)) + np.log1p(np.exp(-np.abs(x)))\n",
    "silu": "def silu(x):\n    return x * (0.5 + 0.5 * np.tanh(0.5 * x))\n",
    "below": "def below(x):\n    return 0.5 * erfc(-0.7071067811865476 * x)\n",
    "probit": "def probit(x):\n    return 0.5 + 0.5 * erf(0.7071067811865476 * x)\n",
    "clip": "def clip(x, k):\n    return np.minimum(np.maximum(x, -k), k)\n",
    "gelu": "def gelu(x):\n    return x * (0.5 + 0.5 * erf(0.7071067811865476 * x))\n",
}
"""The functions of generated text, in operations that numba, NumPy and JAX have, for scalars and arrays."""
PLAIN = (*SOURCE, "erf", "orthant")
"""Functions that generated text calls without a prefix; `orthant` is that of `orthants`."""


def slot(name: str) -> Any:
    """The field z_s = u_s . x of a slot."""
    import sympy

    return sympy.Symbol(f"z_{name}", real=True)


def square(name: str) -> Any:
    """The squared norm q_s = |u_s|^2 of a slot."""
    import sympy

    return sympy.Symbol(f"q_{name}", positive=True)


def share() -> Any:
    """The share p of a unit among all units of its group."""
    import sympy

    return sympy.Symbol("p", real=True)


def build(tree: Tree, slots: Sequence[str], numbers: Mapping[str, float] | None = None) -> Any:
    """The SymPy expression of a tree; names in `slots` become fields, names in `numbers` their values, others stay.

    >>> build(__import__("derivations.declare.grammar", fromlist=["read"]).read("wick(2, w)"), ("w",))
    -q_w + z_w**2
    """
    import sympy

    operators = {"+": "__add__", "-": "__sub__", "*": "__mul__", "/": "__truediv__", "^": "__pow__"}

    def named(word: str) -> Any:
        if word == "pi":
            return sympy.pi
        if word in slots:
            return slot(word)
        if numbers is not None and word in numbers:
            return exact(numbers[word])
        return sympy.Symbol(word, real=True)

    def walk(node: Tree) -> Any:
        if node.kind == "number":
            return exact(node.value)
        if node.kind == "name":
            return named(node.word)
        if node.kind in operators:
            return getattr(walk(node.parts[0]), operators[node.kind])(walk(node.parts[1]))
        if node.word in SHARES:
            return share()
        if node.word in ("He", "wick"):
            k, value = int(node.parts[0].value), walk(node.parts[1])
            variance = square(node.parts[1].word) if node.word == "wick" else sympy.S.One
            return hermite(k, value, variance)
        return (own().get(node.word) or getattr(sympy, node.word))(*map(walk, node.parts))

    return walk(tree)


def exact(value: float) -> Any:
    """A number in SymPy: a whole number or short fraction exactly, any other number as a float with all its digits."""
    import sympy

    short = sympy.nsimplify(value, rational=True)
    return short if short.q < 10**6 else sympy.Float(repr(value), 17)


def hermite(k: int, value: Any, variance: Any) -> Any:
    """variance^(k/2) He_k(value / sqrt(variance)): sum_j (-1)^j k!/(2^j j! (k-2j)!) variance^j value^(k-2j)."""
    import sympy

    return sum(
        sympy.Rational((-1) ** j * math.factorial(k), 2**j * math.factorial(j) * math.factorial(k - 2 * j))
        * value ** (k - 2 * j)
        * variance**j
        for j in range(k // 2 + 1)
    )


def function(name: str, arguments: Sequence[Any], outputs: Sequence[Any], prefix: str = "np.") -> str:
    """A Python function of some expressions, with common parts shared, as text; elementary functions have `prefix`.

    `erf` and the functions of `SOURCE` have no prefix.
    """
    import sympy

    shared, results = sympy.cse([sympy.sympify(e) for e in outputs], symbols=sympy.numbered_symbols("x_"))
    printer = _printer(prefix)
    lines = [f"    {symbol} = {printer.doprint(value)}" for symbol, value in shared]
    texts = [printer.doprint(e) for e in results]
    head = f"def {name}({', '.join(map(str, arguments))}):\n"
    return head + "\n".join([*lines, f"    return ({', '.join(texts)},)"]) + "\n"


def text(expression: Any, prefix: str = "np.", root: str = "") -> str:
    """One expression as text; `root` is the name of the function for square roots."""
    return _printer(prefix, root).doprint(expression)


def plain(expression: Any) -> str:
    """One expression in the numbers of a declaration, in the grammar of declarations."""
    return str(expression).replace("**", "^")


def helpers(text: str) -> list[str]:
    """The texts of the functions of `SOURCE` that a text calls."""
    return [source for name, source in SOURCE.items() if re.search(rf"(?<![\w.]){name}\(", text)]


def _printer(prefix: str, root_name: str = "") -> Any:
    from sympy.printing.pycode import PythonCodePrinter

    class Printer(PythonCodePrinter):
        def _print_Function(self, expr: Any) -> str:
            if expr.is_number:  # numba's erf takes only arrays
                return repr(float(expr.evalf(17)))
            name = type(expr).__name__
            plain = {"abs": "absolute", "Abs": "absolute"}.get(name, name)
            inner = ", ".join(self._print(argument) for argument in expr.args)
            return f"{plain}({inner})" if plain in PLAIN else f"{prefix}{plain}({inner})"

        def _print_Pow(self, expr: Any, rational: bool = False) -> str:
            base = self._print(expr.base)
            if expr.exp.is_Integer and 2 <= abs(expr.exp) <= 12:
                power = "*".join([f"({base})"] * abs(int(expr.exp)))
                return f"({power})" if expr.exp > 0 else f"(1.0/({power}))"
            if expr.exp == -1:
                return f"(1.0/({base}))"
            if expr.exp.is_Rational and expr.exp.q == 2:
                root, repeats = f"{root_name or prefix + 'sqrt'}({base})", int(abs(expr.exp.p) // 2)
                power = "*".join([root, *[f"({base})"] * repeats])
                return f"({power})" if expr.exp > 0 else f"(1.0/({power}))"
            return f"({base})**({self._print(expr.exp)})"

        def _print_Pi(self, expr: Any) -> str:
            return repr(math.pi)

        def _print_Half(self, expr: Any) -> str:
            return "0.5"

        def _print_Rational(self, expr: Any) -> str:
            return f"({expr.p}.0/{expr.q}.0)"

        def _print_Integer(self, expr: Any) -> str:
            return f"{expr.p}.0"

    for name in ("erf", "exp", "log", "sin", "cos", "tanh", "sqrt", "Abs", "sign"):
        setattr(Printer, f"_print_{name}", Printer._print_Function)  # noqa: SLF001 - as SymPy extends printers
    return Printer({"fully_qualified_modules": False})

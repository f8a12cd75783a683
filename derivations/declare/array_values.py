"""Values of expressions on arrays of fields by NumPy, their kinks, and their polynomials in exact rational numbers.

`evaluate.value` does the same with operations of JAX, whose import takes seconds.
"""

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from derivations.declare.grammar import SHARES, Tree
from derivations.special import scipy_special
from hermite.polynomials import coefficients

Polynomial = dict[tuple[int, ...], Fraction]
"""Coefficients of monomials by their powers."""
KINKED = ("relu", "abs", "step", "sign")
"""Functions of one value with a kink or a jump at 0; clip(x, k) has kinks at -k and k."""
REACH = 14.0
"""Distance beyond which normal weights are below 1e-43."""
GRID = 8_001
"""Number of points among which changes of sign are searched."""


def value(tree: Tree, namespace: Mapping[str, Any]) -> Any:
    """Return the value of an expression, names taken from `namespace` (numbers or arrays that broadcast).

    Arguments: tree, without wick(k, w) (see `with_norms`); `namespace` has the share softmax(..) or top1(..) by that
    word.
    Raises `KeyError` for unknown names.

    >>> from derivations.declare.grammar import read
    >>> value(read("relu(w - 1)*v"), {"w": np.array([0.0, 3.0]), "v": 2.0})
    array([0., 4.])
    """
    if tree.kind == "number":
        return np.float64(tree.value)  # undefined values are then nan, without an exception
    if tree.kind == "name":
        return np.asarray(namespace[tree.word] if tree.word in namespace or tree.word != "pi" else math.pi, float)[()]
    if tree.kind == "call" and tree.word == "He":
        return _hermite(int(tree.parts[0].value), value(tree.parts[1], namespace))
    if tree.kind == "call" and tree.word in SHARES:
        return namespace[tree.word]
    parts = [value(part, namespace) for part in tree.parts]
    with np.errstate(all="ignore"):  # exp(x) of a far tail, whose normal weight is 0
        return _OPERATIONS[tree.word if tree.kind == "call" else tree.kind](*parts)


def _hermite(k: int, z: Any) -> Any:
    """He_k(z) by its recurrence."""
    previous, current = 0.0 * z, 1.0 + 0.0 * z
    for j in range(k):
        previous, current = current, z * current - j * previous
    return current


def _power(base: Any, exponent: Any) -> Any:
    """Return base^exponent; integer exponents by repeated products, because floating-point powers are not exact."""
    is_integer = np.ndim(exponent) == 0 and float(exponent).is_integer()
    return base ** int(exponent) if is_integer and exponent >= 0 else base**exponent


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "^": _power,
    "clip": lambda x, k: np.minimum(np.maximum(x, -k), k),
    "sqrt": np.sqrt,
    "log": np.log,
    "exp": np.exp,
    "cos": np.cos,
    "sin": np.sin,
    "tanh": np.tanh,
    "abs": np.abs,
    "sign": np.sign,
    "relu": lambda x: np.maximum(x, 0.0),
    "step": lambda x: np.where(np.asarray(x) > 0, 1.0, 0.0),
    "erf": lambda x: scipy_special().erf(x),
    "probit": lambda x: 0.5 * scipy_special().erfc(-x / math.sqrt(2)),
    "logistic": lambda x: 0.5 + 0.5 * np.tanh(0.5 * x),
    "gelu": lambda x: 0.5 * x * scipy_special().erfc(-x / math.sqrt(2)),
    "silu": lambda x: x * (0.5 + 0.5 * np.tanh(0.5 * x)),
    "softplus": lambda x: np.logaddexp(0.0, x),
}


def with_norms(tree: Tree, norms: Mapping[str, float]) -> Tree:
    """Return an expression with wick(k, w) as |w|^k He(k, w/|w|), the norms taken by slot.

    >>> from derivations.declare.grammar import read
    >>> float(value(with_norms(read("wick(2, w)"), {"w": 2.0}), {"w": 3.0}))  # w^2 - |w|^2
    5.0
    """
    parts = tuple(with_norms(part, norms) for part in tree.parts)
    if tree.kind != "call" or tree.word != "wick":
        return Tree(tree.kind, tree.word, tree.value, parts)
    size = norms[parts[1].word]
    if size == 1.0:
        return Tree("call", "He", parts=parts)
    scaled = Tree("/", parts=(parts[1], Tree("number", value=size)))
    return Tree("*", parts=(Tree("number", value=size ** parts[0].value), Tree("call", "He", parts=(parts[0], scaled))))


def zeros(function: Callable[[np.ndarray], np.ndarray], reach: float = REACH, points: int = GRID) -> list[float]:
    """Return the places in [-reach, reach] at which a continuous function of one number changes its sign.

    >>> [round(z, 12) for z in zeros(lambda z: z * z - 2)]
    [-1.414213562373, 1.414213562373]
    """
    z = np.linspace(-reach, reach, points)
    values = np.broadcast_to(np.asarray(function(z), float), z.shape)
    exact = z[values == 0]
    left = np.flatnonzero(values[:-1] * values[1:] < 0)
    low, high, left_value = z[left], z[left + 1], values[left]
    for _ in range(80):  # bisection to the last digit
        middle = (low + high) / 2
        middle_value = np.broadcast_to(np.asarray(function(middle), float), middle.shape)
        same_sign = middle_value * left_value > 0
        low, high = np.where(same_sign, middle, low), np.where(same_sign, high, middle)
    # A function that is 0 on an interval has no change of sign there.
    exact = exact[:0] if len(exact) > points // 10 else exact
    return sorted([*exact.tolist(), *((low + high) / 2).tolist()])


def kinks(tree: Tree, slot: str, namespace: Mapping[str, float], scale: float = 1.0) -> list[float]:
    """Return the places z of the kinks and jumps of an expression along one slot, the field being scale z.

    Kinks whose position depends on another slot are left out.

    >>> from derivations.declare.grammar import read
    >>> kinks(read("relu(w - 0.5) + clip(w, 2)"), "w", {})
    [-2.0, 0.5, 2.0]
    """
    along_slot = [
        call for call in tree.calls(*KINKED, "clip") if set(call.names()) - namespace.keys() - {"pi"} == {slot}
    ]
    places = {z for call in along_slot for z in crossings(call, lambda z: {**namespace, slot: scale * z})}
    return sorted(places)


def crossings(tree: Tree, names: Callable[[np.ndarray], Mapping[str, Any]]) -> list[float]:
    """Return the places z at which an argument of relu, abs, step, sign or clip in an expression passes its kink.

    Arguments: names, the values of all names as a function of z.
    """
    places: set[float] = set()
    for call in tree.calls(*KINKED, "clip"):
        # clip(x, k) has its kinks at x = -k and x = k.
        for level in (0.0,) if call.word != "clip" else (-1.0, 1.0):

            def distance(z: np.ndarray, call: Tree = call, level: float = level) -> np.ndarray:
                namespace = names(z)
                return value(call.parts[0], namespace) - (level * value(call.parts[1], namespace) if level else 0.0)

            places |= {round(place, 14) for place in zeros(distance)}
    return sorted(places)


def polynomial(tree: Tree, slots: tuple[str, ...], namespace: Mapping[str, float]) -> tuple[Polynomial, bool] | None:
    """Return an expression as a polynomial in the slots, and True if its coefficients are exact.

    They are exact if the text contains only rational operations on decimal numbers; sqrt(6) is rounded to the nearest
    double, which is then a rational number. Returns None if the expression is not a polynomial.

    >>> from derivations.declare.grammar import read
    >>> polynomial(read("He(3, w)/6 + 0.5*w"), ("w",), {})
    ({(3,): Fraction(1, 6)}, True)
    """
    exact = [True]

    def constant(number: float) -> Polynomial | None:
        return _of_number(Fraction(str(number)), slots) if math.isfinite(number) else None

    def inner(node: Tree) -> Polynomial | None:
        if not set(node.names()) & set(slots):
            return rational(node)
        if node.kind == "name":
            return {tuple(int(node.word == slot) for slot in slots): Fraction(1)}
        if node.kind == "call":
            base = inner(node.parts[1]) if node.word == "He" else None
            return None if base is None else _composed(coefficients(int(node.parts[0].value)), base, slots)
        left, right = (inner(part) for part in node.parts)
        return None if left is None or right is None else _combined(node.kind, left, right, slots)

    def rational(node: Tree) -> Polynomial | None:
        """A subtree without slots: exact where it has the four operations only."""
        if node.kind in ("number", "name"):
            exact[0] &= node.word != "pi"
            return constant(float(value(node, namespace)))
        combined = None
        if node.kind != "call":
            left, right = (rational(part) for part in node.parts)
            combined = None if left is None or right is None else _combined(node.kind, left, right, slots)
        if combined is None:
            exact[0] = False
            return constant(float(value(node, namespace)))
        return combined

    result = inner(tree)
    return None if result is None else (result, exact[0])


def _of_number(number: Fraction, slots: tuple[str, ...]) -> Polynomial:
    return {(0,) * len(slots): number} if number else {}


def _combined(kind: str, left: Polynomial, right: Polynomial, slots: tuple[str, ...]) -> Polynomial | None:
    """Return sum, difference, product, quotient by a number, or integer power of polynomials; None for anything
    else.
    """
    zero = (0,) * len(slots)
    constant = right.get(zero, Fraction(0)) if right.keys() <= {zero} else None
    if kind in "+-":
        return _sum(left, right, -1 if kind == "-" else 1)
    if kind == "*":
        return multiply(left, right)
    if constant is None or (kind == "/" and constant == 0):
        return None
    if kind == "/":
        return {powers: c / constant for powers, c in left.items()}
    if constant.denominator != 1 or constant < 0:
        return None
    result = _of_number(Fraction(1), slots)
    for _ in range(int(constant)):
        result = multiply(result, left)
    return result


def _sum(left: Polynomial, right: Polynomial, sign: int) -> Polynomial:
    total = {
        powers: left.get(powers, Fraction(0)) + sign * right.get(powers, Fraction(0)) for powers in {**left, **right}
    }
    return {powers: c for powers, c in total.items() if c}


def multiply(left: Polynomial, right: Polynomial) -> Polynomial:
    """Return the product of two polynomials.

    >>> multiply({(1,): Fraction(2)}, {(2,): Fraction(1, 2)})
    {(3,): Fraction(1, 1)}
    """
    total: Polynomial = {}
    for p, a in left.items():
        for q, b in right.items():
            powers = tuple(i + j for i, j in zip(p, q, strict=True))
            total[powers] = total.get(powers, Fraction(0)) + a * b
    return {powers: c for powers, c in total.items() if c}


def _composed(outer: tuple[int, ...], base: Polynomial, slots: tuple[str, ...]) -> Polynomial:
    """A polynomial in one variable of another polynomial, by Horner's rule."""
    result: Polynomial = {}
    for c in reversed(outer):
        result = _sum(multiply(result, base), _of_number(Fraction(c), slots), 1)
    return result

"""Whether a unit is defined, and square-integrable, under the Gaussian law, as far as its text shows it."""

from collections.abc import Collection, Mapping

from derivations.declare import fields
from derivations.declare.grammar import Tree, number


def require_finite(unit: Tree, text: str, slots: tuple[str, ...], values: Mapping[str, float], table: str) -> None:
    """Refuse a unit that is not defined, or not square-integrable, under the Gaussian law, as far as text shows it.

    exp grows faster than the Gaussian falls unless its argument is linear; a root, a logarithm or a quotient of a field
    is not defined everywhere.
    """
    for node in unit.walk():
        below = [inner for part in node.parts for inner in part.walk()]
        inputs = [inner for inner in below if inner.kind == "name" and inner.word in slots]
        if node.kind == "call" and node.word in ("sqrt", "log") and inputs:
            raise fields.Mistake(f"{node.word} of a field is not defined for every input, in {text!r}", table, "unit")
        if node.kind == "/" and any(i.kind == "name" and i.word in slots for i in node.parts[1].walk()):
            raise fields.Mistake(f"a quotient by a field has no finite mean, in {text!r}", table, "unit")
        if node.kind == "/" and not node.parts[1].names() and number(node.parts[1], {}) == 0:
            raise fields.Mistake(f"a division by zero in {text!r}", table, "unit")
        if node.kind == "^" and any(i.kind == "name" and i.word in slots for i in node.walk()):
            if node.parts[1].names() and not set(node.parts[1].names()) <= set(values):
                raise fields.Mistake(f"an exponent is a number, in {text!r}", table, "unit")
            exponent = number(node.parts[1], values)
            if exponent < 0 or exponent != int(exponent):
                raise fields.Mistake(f"the exponent of a field is a whole number from 0 on, in {text!r}", table, "unit")
        if node.kind == "call" and node.word in ("exp", "softmax", "top1") and node.word == "exp":
            if _degree(node.parts[0], slots) > 1:
                raise fields.Mistake(
                    f"exp of more than a linear field is not integrable under the Gaussian law, in {text!r}",
                    table,
                    "unit",
                )
    if _degree(unit, slots) > 12:
        raise fields.Mistake(f"a unit has degree 12 at most, {text!r} has {_degree(unit, slots):g}", table, "unit")


def _degree(tree: Tree, slots: Collection[str]) -> float:
    """The growth of an expression as a power of the fields; infinite for exp."""
    parts = [_degree(part, slots) for part in tree.parts]
    if tree.kind == "name":
        return 1.0 if tree.word in slots else 0.0
    if tree.kind in ("+", "-"):
        return max(parts)
    if tree.kind == "*":
        return sum(parts)
    if tree.kind == "/":
        return parts[0]
    if tree.kind == "^":
        exponent = tree.parts[1]
        power = number(exponent, {}) if not exponent.names() else 1.0
        return parts[0] * max(power, 0.0) if parts[0] else 0.0
    if tree.kind == "call":
        if tree.word in ("He", "wick"):
            return tree.parts[0].value * parts[1]
        if tree.word in ("relu", "abs", "gelu", "silu", "softplus"):
            return parts[0]
        if tree.word == "exp":  # what is linear is integrable; more is refused above
            return 2.0 if parts[0] > 1 else 0.0
    return 0.0

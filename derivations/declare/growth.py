"""Checks from the text that a unit or a loss is defined and integrable under the Gaussian distribution.

Every expression is bounded from both sides by powers of the fields: a unit may be a polynomial, or exp of an expression
with linear growth. Errors are exp of a faster growth, a root or logarithm of an expression that may be negative, and a
quotient by one that may vanish.
"""

import dataclasses
import math
from collections.abc import Collection, Mapping

from derivations.contract import UsageError
from derivations.declare.declaration import Declaration
from derivations.declare.grammar import DEGREE, Tree, number
from derivations.declare.readouts import word_of

NEVER = -math.inf
"""Growth of a side without values: an expression that is never negative has this growth below."""
EXPONENTIAL = 1e6
"""The growth of exp of a linear field, above that of any polynomial."""
BOUNDED = ("erf", "tanh", "sign", "cos", "sin")
BELOW = ("logistic", "probit", "step", "softmax", "top1")
"""Functions with values from 0 to 1."""


@dataclasses.dataclass(frozen=True)
class Growth:
    """Growth of the positive and the negative part, as powers of the fields, and True if 0 is avoided.

    >>> of(__import__("derivations.declare.grammar", fromlist=["read"]).read("1 + w^2"), {"w": LINEAR}, {}).away
    True
    """

    up: float
    down: float
    away: bool = False

    @property
    def most(self) -> float:
        """The faster of the two."""
        return max(self.up, self.down)

    def __neg__(self) -> "Growth":
        return Growth(self.down, self.up, self.away)

    def __add__(self, other: "Growth") -> "Growth":
        one_sided = NEVER in (max(self.down, other.down), max(self.up, other.up))
        return Growth(max(self.up, other.up), max(self.down, other.down), one_sided and (self.away or other.away))

    def __mul__(self, other: "Growth") -> "Growth":
        up = max(self.up + other.up, self.down + other.down)
        down = max(self.up + other.down, self.down + other.up)
        return Growth(up, down, self.away and other.away)


LINEAR = Growth(1.0, 1.0)
"""A field."""
FREE = Growth(0.0, 0.0)
"""A number with either sign."""


def require_finite(
    tree: Tree, location: str, fields: Mapping[str, Growth], values: Mapping[str, float], degree: float = DEGREE
) -> Growth:
    """Return the growth of an expression; `values` are those of the numbers, `fields` the growths of random quantities.

    Raises `UsageError` if it is not defined for every input, has no mean under the Gaussian law, or a degree above
    `degree`.
    """
    try:
        growth = of(tree, fields, values)
    except UsageError as error:
        raise UsageError(f"{error}, in {location}") from None
    if degree < growth.most < EXPONENTIAL or growth.most > degree * EXPONENTIAL:
        size = f"{growth.most:g}" if growth.most < EXPONENTIAL else f"that of exp(w)^{growth.most / EXPONENTIAL:g}"
        raise UsageError(f"an expression has degree {degree:g} at most, {location} has {size}")
    return growth


def of(tree: Tree, fields: Mapping[str, Growth], values: Mapping[str, float]) -> Growth:
    """Return the growth of an expression. Raises `UsageError` if it is not defined, or has no mean."""
    if all(name in values for name in tree.names()) and not tree.calls("softmax", "top1", "wick"):
        return _constant(number(tree, values))
    if tree.kind == "name":
        return fields.get(tree.word, FREE)
    if tree.kind == "call":
        return _call(tree, [of(part, fields, values) for part in tree.parts])
    if tree.kind == "^":
        return _power(of(tree.parts[0], fields, values), tree.parts[1], values)
    left, right = (of(part, fields, values) for part in tree.parts)
    if tree.kind == "/":
        return _quotient(left, right, any(name in fields for name in tree.parts[1].names()))
    return left * right if tree.kind == "*" else left + right if tree.kind == "+" else left + -right


def _quotient(left: Growth, right: Growth, is_random: bool) -> Growth:
    """Return the growth of a quotient; `is_random` is True if the denominator depends on the input, and not only on
    numbers.
    """
    if right == FREE and not is_random:
        return Growth(left.most, left.most)
    if not right.away:
        raise UsageError("a quotient whose denominator can be 0 has no finite mean")
    sign = Growth(0.0, NEVER) if right.down == NEVER else Growth(NEVER, 0.0)
    return dataclasses.replace(left * sign, away=False)


def _constant(value: float) -> Growth:
    if value == 0:
        return Growth(0.0, NEVER)
    return Growth(0.0, NEVER, True) if value > 0 else Growth(NEVER, 0.0, True)


def _power(base: Growth, exponent: Tree, values: Mapping[str, float]) -> Growth:
    unknown = [name for name in exponent.names() if name not in values]
    if unknown:
        raise UsageError(f"an exponent must be a number, but {unknown[0]!r} is not one")
    power = number(exponent, values)
    if abs(power) > DEGREE:
        raise UsageError(f"an exponent is a number between -{DEGREE} and {DEGREE}, but is {power:g}")
    if power < 0 or power != int(power):
        if not (base.away and base.down == NEVER):
            raise UsageError("the exponent of a field must be a whole number of at least 0")
        return Growth(max(power, 0.0) * base.up, NEVER)
    if power == 0:
        return Growth(0.0, NEVER, True)
    if power % 2 == 0:
        return Growth(power * base.most, NEVER, base.away)
    return Growth(power * base.up, power * base.down, base.away)


def _call(tree: Tree, parts: list[Growth]) -> Growth:
    """The growth of a function of an argument with a growth."""
    word, inner = tree.word, parts[-1]
    if word in ("He", "wick"):
        k = tree.parts[0].value
        return Growth(k * inner.most, 0.0 if k % 2 == 0 else k * inner.most)
    if word in BOUNDED:
        return FREE
    if word == "clip":
        return Growth(inner.most, inner.most)
    if word in BELOW:
        return Growth(0.0, NEVER)
    if word in ("relu", "softplus"):
        return Growth(max(inner.up, 0.0), NEVER, word == "softplus" and inner.down <= 0)
    if word in ("silu", "gelu"):
        return Growth(max(inner.up, 0.0), 0.0)
    if word == "abs":
        return Growth(inner.most, NEVER, inner.away)
    if word in ("sqrt", "log"):
        if inner.down != NEVER or (word == "log" and not inner.away):
            raise UsageError(f"{word} of a field is not defined for every input")
        if word == "log":
            return Growth(1.0 if inner.up >= EXPONENTIAL else 0.0, 0.0)
        return Growth(inner.up / 2 if inner.up < EXPONENTIAL else inner.up, NEVER, inner.away)
    assert word == "exp"
    if inner.up > 1:
        raise UsageError("exp of a nonlinear expression in a field is not integrable for Gaussian fields")
    return Growth(EXPONENTIAL if inner.up > 0 else 0.0, NEVER, inner.down <= 0)


def require_unit(unit: Tree, text: str, slots: Collection[str], values: Mapping[str, float]) -> Growth:
    """Return the growth of a unit with these slots; raises errors as `require_finite`."""
    return require_finite(unit, repr(text), dict.fromkeys(slots, LINEAR), values)


def _answers(declared: Declaration, values: Mapping[str, float], noise: float) -> tuple[Growth, Growth]:
    """The growths of the network's answer and of the label."""
    sides = []
    for groups, predicted in (
        (declared.students, declared.predictions),
        (declared.teachers, declared.label_predictions),
    ):
        degrees = [require_unit(g.unit, g.text, g.slots, values).most for g in groups]
        degree = max(degrees, default=0.0)
        growths = {g.name: Growth(unit_degree, unit_degree) for g, unit_degree in zip(groups, degrees, strict=True)}
        growths |= dict.fromkeys(("f", "y"), Growth(degree, degree))
        for prediction in predicted:
            degree = max(
                degree,
                require_finite(
                    prediction.tree, f"the prediction {prediction.text!r}", growths, values, DEGREE * degree
                ).most,
            )
        sides.append(Growth(degree, degree))
    return sides[0], sides[1] + (LINEAR if noise > 0 else FREE)


def require_loss(declared: Declaration, values: Mapping[str, float], noise: float) -> None:
    """Raise `UsageError` for the user's loss if it is not defined for possible values of the network and its labels."""
    tree = declared.own_loss
    if tree is None:
        return
    if declared.law is not None and declared.law.heavy:
        of_label = of(tree, _by_head(declared, FREE, LINEAR), values).most
        if of_label > 1:
            raise UsageError(
                "the loss has no mean, because it grows faster than linearly and the label noise has no variance"
            )
    f, y = _answers(declared, values, noise)
    degree = DEGREE * max(f.most, y.most, 1.0)
    require_finite(tree, "the loss", _by_head(declared, f, y), values, degree)


def _by_head(declared: Declaration, f: Growth, y: Growth) -> dict[str, Growth]:
    """Return the growths of answers and labels by their names in a loss."""
    heads = ["", *declared.heads] if declared.several else [""]
    return {word_of(head, letter): size for head in heads for letter, size in (("f", f), ("y", y))}


def require_rules(declared: Declaration, values: Mapping[str, float], noise: float) -> None:
    """Raise `UsageError` for a rule that is not defined for all its arguments, or has no mean."""
    f, y = _answers(declared, values, noise)
    degree_sum = f.most + y.most
    error = {"squared": f + y, "correlation": y}.get(
        declared.loss, Growth(degree_sum, degree_sum) if declared.own_loss else FREE
    )
    degree = 2 * DEGREE * max(f.most, y.most, 1.0)
    loss = Growth(2 * degree_sum, 2 * degree_sum)
    for group in declared.students:
        unit_growth = require_unit(group.unit, group.text, group.slots, values)
        df = Growth(unit_growth.most, unit_growth.most)
        growths = {"f": f, "y": y, "l": loss, "dl": error, "df": df, "dphi": df, "grad": error * df}
        growths |= dict.fromkeys(group.slots, LINEAR) | {"gnorm": Growth((error * df).most, NEVER)}
        growths |= {"R": FREE} if declared.episode is not None else {}  # bounded: a count of successes takes few values
        for word in declared.ruled(group):
            rule = declared.rule(group, word)
            assert rule is not None
            require_finite(rule.tree, f"the rule {rule.text!r}", growths, values, degree)


def of_step(declared: Declaration, values: Mapping[str, float], noise: float) -> float:
    """Return the degree in the fields of the motion of a vector by a sample, l'(f, y) phi'(w) x, without rules."""
    f, y = _answers(declared, values, noise)
    degree_sum = f.most + y.most
    error = {"squared": max(f.most, y.most), "correlation": y.most}.get(
        declared.loss, degree_sum if declared.own_loss else 0
    )
    units = [require_unit(group.unit, group.text, group.slots, values).most for group in declared.students]
    return error + max(max(unit - 1.0, 0.0) for unit in units) + 1.0


HEAVY = Growth(1e12, 1e12)
"""Growth of a label whose noise has no moments."""


def bounded_in_label(declared: Declaration, values: Mapping[str, float]) -> bool:
    """Return True if everything that is trained has rules that are bounded in the label."""
    for group in declared.students:
        growths = dict.fromkeys((*group.slots, "f", "df", "dphi"), LINEAR)
        growths |= dict.fromkeys(("y", "dl", "grad", "l", "gnorm"), HEAVY)
        for word in (*group.slots, *group.own):
            rule = declared.rule(group, word) if declared.moves(group, word) else None
            if declared.moves(group, word) and (rule is None or of(rule.tree, growths, values).most > EXPONENTIAL):
                return False
    return True


def require(declared: Declaration, values: Mapping[str, float], noise: float) -> None:
    """Raise `UsageError` if a unit or the loss is not defined, or has no mean, at these numbers."""
    for group in declared.groups:
        require_unit(group.unit, group.text, group.slots, values)
    require_loss(declared, values, noise)
    require_rules(declared, values, noise)

"""Rules with closed forms: products c = psi(fields of the unit) times dl/df, the label or 1.

With X = f - y (squared loss), -y (correlation loss, or a rule in y) or 1,

    E[c_i z_b] = sum_r C_ir G_rb,   C_ir = E[d(psi_i X)/dz_r]

by Stein's lemma, a sum over means of pairs of units in which psi_i replaces the derivative of a unit.
"""

import dataclasses
from typing import Any

from derivations.declare import symbols
from derivations.declare.declaration import Declaration, Group
from derivations.declare.gates import SLOPE, Open


@dataclasses.dataclass(frozen=True)
class Product:
    """c = front psi X: `front` in the readout and numbers of the unit, `psi` in its fields and `dphi`.

    `met` is the kind of X: "error" f - y, "label" -y, or "one".
    """

    front: Any
    psi: Any
    met: str


def product(declared: Declaration, group: Group, slot: str) -> Product:
    """Return the rule of a slot as a product. Raises `Open` for another rule."""
    import sympy

    rule = declared.rule(group, slot)
    assert rule is not None
    dl, df, grad, y, dphi, a = sympy.symbols(f"dl df grad y {SLOPE} a", real=True)
    expression = symbols.build(rule.tree, group.slots).xreplace({grad: dl * df}).xreplace({df: a * dphi})
    message = f"the rule {rule.text!r} is not a product of dl, y or 1 and a function of {', '.join(group.slots)}"
    reason = Open(message)
    if expression.has(*sympy.symbols("f l", real=True)) or (expression.has(dl) and expression.has(y)):
        raise reason
    factor, psi = "one", expression
    for symbol, meaning in ((dl, "error"), (y, "label")):
        if expression.has(symbol):
            psi = sympy.diff(expression, symbol) * (1 if symbol == dl else -1)
            remainder = expression.subs(symbol, 0)
            if psi.has(symbol) or remainder != 0:
                raise reason
            factor = meaning
    if factor == "error" and declared.loss == "correlation":
        factor = "label"
    z = [symbols.slot(s) for s in group.slots]
    front, psi = sympy.factor_terms(psi).as_independent(*z, dphi, as_Add=False)
    if psi.has(a, *(sympy.Symbol(name, real=True) for name in declared.constants(group))):
        raise reason
    return Product(front, psi, factor)

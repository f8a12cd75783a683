"""A unit as a sum of polynomials, each times at most one gate: the class whose Gaussian means are known in closed form.

    phi(z) = sum_k coefficient_k prod_s z_s^p_ks  g_k(z)        g_k = 1 or a gate F(slope z_s + bias)

Gates are brought to few kinds: sign = 2 step - 1, abs(x) = 2 relu(x) - x, probit(x) = (1 + erf(x/sqrt 2))/2, gelu = x
probit(x), silu = x logistic(x), sin = cos shifted, and slopes are made positive, F(-x) by F(x).
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

from derivations.declare import symbols
from derivations.declare.declaration import Group

LADDER = {"relu": 0, "step": 1, "erf": 1}
"""Members of one family, R_0 = relu, R_1 = step, R_2 = delta, ..: erf(x) = 2 E step(x + n) - 1, n ~ N(0, 1/2)."""
SERIES = ("logistic", "tanh", "softplus")
"""Gates whose means are series in the correlation, at unit variance."""
KINDS = (*LADDER, *SERIES, "exp", "cos")


SLOPE = "dphi"
"""Symbol of the unit's own derivative in a rule."""


class Open(Exception):
    """Error with a sentence on why the means of a unit have no closed form."""


@dataclasses.dataclass(frozen=True)
class Gate:
    """F(slope z + bias) of the field of the slot with this number, slope and bias in the user's numbers."""

    kind: str
    slot: int
    slope: Any
    bias: Any


@dataclasses.dataclass(frozen=True)
class Term:
    """Term coefficient x prod_s z_s^powers_s x the derivative of this order of a gate (number -1: none)."""

    coefficient: Any
    gate: int
    order: int
    powers: tuple[int, ...]


Part = tuple[Term, ...]
"""A unit, or one of its derivatives, as a sum of terms."""


@dataclasses.dataclass(frozen=True)
class Signed:
    """A function P(z) + Q(z) sigma*, sigma* the sign of the teacher's field: P, its slope, Q, its slope."""

    value: Part
    slope: Part
    turned: Part
    turned_slope: Part


@dataclasses.dataclass(frozen=True)
class Reward:
    """Rule c = sum_m g_m(R) F_m with the reward R of an episode (`episode_rules`); `gains` are the g_m.

    `odds` is the success s, `right` are s F_m and `wrong` (1 - s) F_m; `squares_right` and `squares_wrong` are s F_m
    F_n and (1 - s) F_m F_n of `pairs` (m, n).
    """

    gains: tuple[Any, ...]
    odds: Signed
    right: tuple[Signed, ...]
    wrong: tuple[Signed, ...]
    pairs: tuple[tuple[int, int], ...]
    squares_right: tuple[Signed, ...]
    squares_wrong: tuple[Signed, ...]


@dataclasses.dataclass(frozen=True)
class Ruled:
    """Rule c = front psi X of a slot (`products`); `value` is psi and `bends[t]` is dpsi/dz_t.

    If psi is dphi/dz itself these are left out, because the unit has them. A rule with a reward has only `rewarded`.
    """

    slot: str
    front: Any
    met: str
    value: Part | None
    bends: tuple[Part, ...]
    rewarded: Reward | None = None


@dataclasses.dataclass(frozen=True)
class Shape:
    """Unit with its gates and the derivatives that its flow needs.

    `value` is phi; `slopes[s]` dphi/dz_s; `bends[s][t]` d2phi/dz_s dz_t, with 2 dphi/dq_s added where s = t;
    `scalars[b]` dphi/db; `rules` are those of its slots; `sign` are the sign of a teacher's field and its slope.
    """

    slots: tuple[str, ...]
    gates: tuple[Gate, ...]
    value: Part
    slopes: tuple[Part, ...]
    bends: tuple[tuple[Part, ...], ...]
    scalars: tuple[Part, ...]
    rules: tuple[Ruled, ...] = ()
    sign: tuple[Part, ...] = ()

    def rule(self, slot: str) -> Ruled | None:
        """Return the rule of a slot; None if it is trained by the loss."""
        return next((rule for rule in self.rules if rule.slot == slot), None)

    def own(self, slot: str) -> Ruled | None:
        """Return the rule of a slot with a function psi other than the unit's derivative."""
        rule = self.rule(slot)
        return rule if rule is not None and (rule.value is not None or rule.rewarded is not None) else None


@functools.cache
def _opaque() -> Any:
    """Return gate(k, r, z), an opaque function: the r-th derivative of gate k at the field z, shifted by its bias."""
    import sympy

    class gate(sympy.Function):
        nargs = 3

        def fdiff(self, argindex: int = 3) -> Any:
            return gate(self.args[0], self.args[1] + 1, self.args[2])

    return gate


def shape(
    group: Group, values: Mapping[str, float], normalised: bool, rules: Sequence[tuple[str, Any]] = ()
) -> Shape:  # fmt: skip
    """The shape of a group's unit; `values` are those of the user's numbers, which determine the signs of slopes.

    With `normalised` the fields are those of unit vectors. `rules` are pairs of a slot and its `products.Product`.
    Raises `Open` for a unit that is not a sum of polynomials times a gate.
    """
    import sympy

    if group.share is not None:
        raise Open(f"{group.text!r} depends on all units of its group ({group.share.word})")
    z = [symbols.slot(s) for s in group.slots]
    q = [symbols.square(s) for s in group.slots]
    expression = symbols.build(group.unit, group.slots)
    if normalised:
        expression = expression.subs({s: sympy.S.One for s in q})
    gates: list[Gate] = []
    expression = _gated(_rewritten(expression), z, values, gates, group.text)
    scalars = [sympy.Symbol(name, real=True) for name in group.scalars]
    if scalars and any(gate.kind not in LADDER and gate.bias.has(*scalars) for gate in gates):
        raise Open(f"a gate of {group.text!r} contains numbers of its units")

    def part(e: Any) -> Part:
        return _terms(sympy.expand(e), z, group.text)

    def with_slope(e: Any) -> tuple[Part, Part]:
        gated = _gated(_rewritten(e), z, values, gates, group.text)
        return part(gated), part(sympy.diff(gated, z[0]))

    def ruled(slot: str, product: Any) -> Ruled:
        if product.met == "reward":
            return Ruled(slot, sympy.Integer(1), product.met, None, (), product.parts(z[0], with_slope))
        dphi = sympy.Symbol(SLOPE, real=True)
        if product.psi == dphi:
            return Ruled(slot, product.front, product.met, None, ())
        psi = _gated(_rewritten(product.psi), z, values, gates, group.text)
        psi = psi.xreplace({dphi: sympy.diff(expression, symbols.slot(slot))})
        return Ruled(slot, product.front, product.met, part(psi), tuple(part(sympy.diff(psi, t)) for t in z))

    rule_parts = tuple(ruled(*rule) for rule in rules)
    bends = [
        [
            part(sympy.diff(expression, s, t) + (2 * sympy.diff(expression, q[i]) if i == j else 0))
            for j, t in enumerate(z)
        ]
        for i, s in enumerate(z)
    ]
    return Shape(
        group.slots,
        tuple(gates),
        part(expression),
        tuple(part(sympy.diff(expression, s)) for s in z),
        tuple(map(tuple, bends)),
        tuple(part(sympy.diff(expression, b)) for b in scalars),
        rule_parts,
    )


def _rewritten(expression: Any) -> Any:
    """Rewrite an expression in the kinds of `KINDS`."""
    import sympy

    functions = symbols.own()
    half = sympy.Rational(1, 2)
    rules = {
        functions["sign"]: lambda x: 2 * functions["step"](x) - 1,
        functions["abs"]: lambda x: 2 * functions["relu"](x) - x,
        sympy.Abs: lambda x: 2 * functions["relu"](x) - x,
        functions["probit"]: lambda x: half + half * sympy.erf(x / sympy.sqrt(2)),
        functions["gelu"]: lambda x: x * (half + half * sympy.erf(x / sympy.sqrt(2))),
        functions["silu"]: lambda x: x * functions["logistic"](x),
        sympy.sin: lambda x: sympy.cos(x - sympy.pi / 2, evaluate=False),
    }
    for kind, rule in rules.items():
        expression = expression.replace(kind, rule)
    return expression


def _gated(expression: Any, z: Sequence[Any], values: Mapping[str, float], gates: list[Gate], text: str) -> Any:
    """Replace every call of a gate in an expression by an opaque function; the gates are appended to `gates`."""
    import sympy

    functions = symbols.own()
    kinds = {functions.get(kind) or getattr(sympy, kind): kind for kind in KINDS}
    calls = sorted((e for kind in kinds for e in expression.atoms(kind)), key=str)
    for call in calls:
        if not call.args[0].has(*z):
            continue
        kind, (inner,) = kinds[type(call)], call.args
        fields = [i for i, s in enumerate(z) if inner.has(s)]
        field = z[fields[0]]
        if len(fields) != 1 or not inner.is_polynomial(field) or sympy.Poly(inner, field).degree() != 1:
            raise Open(f"the argument of {kind} in {text!r} is not linear in one field")
        slope, bias = sympy.Poly(inner, z[fields[0]]).all_coeffs()
        if any(str(s) not in values for s in slope.free_symbols):
            raise Open(f"a slope in {text!r} contains numbers of its units")
        size = float(slope.subs({s: values[str(s)] for s in slope.free_symbols}))
        if size == 0:
            raise Open(f"a slope in {text!r} is 0")
        negative = size < 0 and kind != "exp"
        gate = Gate(kind, fields[0], -slope if negative else slope, -bias if negative else bias)
        if gate.bias != 0 and kind in SERIES:
            raise Open(f"{kind} in {text!r} has a bias, and means with two such factors have no closed form")
        if gate not in gates:
            gates.append(gate)
        opaque = _opaque()(gates.index(gate), 0, z[fields[0]] + gate.bias / gate.slope)
        mirrored = {
            "relu": opaque - (gate.slope * z[fields[0]] + gate.bias),
            "softplus": opaque - (gate.slope * z[fields[0]] + gate.bias),
            "step": 1 - opaque,
            "logistic": 1 - opaque,
            "erf": -opaque,
            "tanh": -opaque,
            "cos": opaque,
        }
        expression = expression.xreplace({call: mirrored[kind] if negative else opaque})
    return expression


def _terms(expression: Any, z: Sequence[Any], text: str) -> Part:
    """Return the terms of an expanded expression. Raises `Open` if a term has two gates, or is not a polynomial."""
    import sympy

    gate = _opaque()
    coefficients: dict[tuple[int, int, tuple[int, ...]], Any] = {}
    for term in sympy.Add.make_args(expression):
        if term == 0:
            continue
        calls, polynomial = [], sympy.S.One
        for factor in sympy.Mul.make_args(term):
            base, power = factor.as_base_exp()
            if isinstance(base, gate):
                calls += [base] * int(power) if power.is_Integer and power > 0 else [base, base]
            else:
                polynomial *= factor
        if len(calls) > 1:
            raise Open(f"{text!r} is a product of two functions that are not polynomials")
        if not polynomial.is_polynomial(*z):
            raise Open(f"{text!r} contains a function whose means are not known in closed form")
        number, order = (int(calls[0].args[0]), int(calls[0].args[1])) if calls else (-1, 0)
        for powers, coefficient in sympy.Poly(polynomial, *z).terms():
            key = (number, order, tuple(powers))
            coefficients[key] = coefficients.get(key, 0) + coefficient
    return tuple(Term(c, k, r, p) for (k, r, p), c in coefficients.items() if c != 0)


def erf_factors(shapes: Sequence[Shape], factor: str) -> tuple[tuple[str, str], ...]:
    """(factor, slope) of every group of units, factor erf(slope w), as expressions; empty if one is not an erf.

    Rules must have the unit's own derivative, and the same factor as the loss, "error" or "label".
    """
    if not all(
        len(shape.slots) == 1
        and not shape.scalars
        and len(shape.value) == 1
        and shape.value[0].gate == 0
        and shape.value[0].powers == (0,)
        and shape.gates[0].kind == "erf"
        and shape.gates[0].bias == 0
        and all(rule.value is None and rule.met == factor for rule in shape.rules)
        for shape in shapes
    ):
        return ()
    return tuple((symbols.plain(shape.value[0].coefficient), symbols.plain(shape.gates[0].slope)) for shape in shapes)

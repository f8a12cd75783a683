"""Rules with a reward that have closed forms: those of the signs of one student field and one teacher field.

With one student and one teacher, and a success s that depends only on their signs, every relevant function of a sample
has four branches: F(z) for each of the signs sigma of the student's field z and sigma* of the teacher's. The
coefficient of a rule is a sum over functions g of the reward,

    c = sum_g g(R) F_g,    F_g = P_g(z) + Q_g(z) sigma*,

with P and Q polynomials in z on either side of 0. So are s F_g, F_g F_h and s F_g F_h, and by Stein's lemma

    E[(P + Q sigma*) z_b] = (E[P'] + E[Q' sigma*]) z . z_b + E[Q dsigma*/dz*] z* . z_b

which are means over pairs of units (`gates`), one of which is a sign.
"""

import dataclasses
import itertools
from collections.abc import Callable, Mapping
from typing import Any

from derivations.declare import symbols
from derivations.declare.declaration import Declaration, Group
from derivations.declare.episodes import REWARD
from derivations.declare.gates import SLOPE, Gate, Open, Part, Reward, Shape, Signed, Term

BRANCHES = tuple(itertools.product((1, -1), (1, -1)))
"""The signs of the student's and the teacher's field."""
ODD = ("erf", "tanh")
"""Functions that keep the sign of their argument, in addition to sign itself."""
Table = dict[tuple[int, int], Any]
"""An expression in the student's field for each branch."""
PLAIN = ("sum", "mean", "root")
"""Readouts that are 1 for a single unit."""


@dataclasses.dataclass(frozen=True)
class Rewarded:
    """Rule of a slot as functions `gains` of the reward times tables; `success` is 0 or 1 in every branch."""

    gains: tuple[Any, ...]
    tables: tuple[Any, ...]
    success: Any

    met = "reward"

    def parts(self, z: Any, of: Callable[[Any], tuple[Part, Part]]) -> Reward:
        """Return the functions of the student that the rule needs; `of` makes a part, and its slope, of an expression
        in z.
        """
        return parts(self, z, of)


def rewarded(declared: Declaration, group: Group, slot: str, values: Mapping[str, float]) -> Rewarded:
    """The rule of a slot that reads the reward. Raises `Open` where it has no closed form."""
    import sympy

    rule = declared.rule(group, slot)
    assert rule is not None
    require_signs(declared)
    student, teacher = (_answer(side, values) for side in (group, declared.teachers[0]))
    z, reward = symbols.slot(slot), sympy.Symbol(REWARD, real=True)
    tables: dict[Any, Table] = {}
    for branch in BRANCHES:
        coefficient = _of_branch(declared, symbols.build(rule.tree, group.slots), group, branch, values)
        for term in sympy.Add.make_args(sympy.expand(coefficient)):
            factor, gain = term.as_independent(reward, as_Add=False)
            if gain.has(z):
                raise Open(f"the rule {rule.text!r} has a function of both the reward and fields")
            tables.setdefault(gain, dict.fromkeys(BRANCHES, sympy.Integer(0)))[branch] += factor
    success = {branch: _succeeds(declared, student, teacher, branch) for branch in BRANCHES}
    gains = sorted(tables, key=str)
    return Rewarded(tuple(gains), tuple(tuple(tables[g].items()) for g in gains), tuple(success.items()))


def require_signs(declared: Declaration) -> None:
    """Raise `Open` for more answers than those of one student and one teacher with one vector each."""
    message = "the success of a sample has closed forms if the signs of one student and one teacher decide it"
    if declared.inputs is not None and declared.inputs.clusters:
        raise Open(f"{message}, and without clusters of inputs")
    for side in (declared.students, declared.teachers):
        plain = len(side) == 1 and len(side[0].slots) == 1 and not side[0].scalars and side[0].output in PLAIN
        if not plain or side[0].share is not None:
            raise Open(message)


@dataclasses.dataclass(frozen=True)
class _Answer:
    """An answer as a function of the sign of its field: its two values, or (None) only its sign, in `turn` times it."""

    values: dict[int, Any] | None
    turn: int


def _answer(group: Group, values: Mapping[str, float]) -> _Answer:
    """Return the answer of a unit as a function of the sign of its field. Raises `Open` if it depends on more."""
    import sympy

    z = symbols.slot(group.slots[0])
    phi = symbols.build(group.unit, group.slots)
    sides = {sign: sympy.simplify(_side(phi, z, sign, values, group.text)) for sign in (1, -1)}
    if not any(side.has(z) for side in sides.values()):
        return _Answer(sides, 1)
    factor, inner = phi.as_independent(z, as_Add=False)
    turn = _sign(factor, values, group.text)
    if isinstance(inner, sympy.Function) and type(inner).__name__ in ODD:
        front, inner = inner.args[0].as_independent(z, as_Add=False)
        turn *= _sign(front, values, group.text)
    odd = inner.is_Pow and inner.base == z and inner.exp.is_Integer and inner.exp % 2 == 1
    if inner != z and not odd:
        raise Open(f"the sign of {group.text!r} is not the sign of its field, so a success has no closed form")
    return _Answer(None, turn)


def _side(expression: Any, z: Any, sign: int, values: Mapping[str, float], text: str) -> Any:
    """An expression on one side of z = 0, its jumps and kinks at 0 resolved."""
    import sympy

    functions, expression = symbols.own(), sympy.sympify(expression)

    def side(x: Any) -> int:
        front, inner = x.as_independent(z, as_Add=False)
        if inner != z:
            raise Open(f"{text!r} has jumps or kinks at other places than 0")
        return sign * _sign(front, values, text)

    resolved = {
        "sign": lambda x: sympy.Integer(side(x)),
        "step": lambda x: sympy.Integer((1 + side(x)) // 2),
        "relu": lambda x: x * ((1 + side(x)) // 2),
        "abs": lambda x: x * side(x),
    }
    for word, of in resolved.items():
        expression = expression.replace(
            functions[word], lambda x, functions=functions[word], of=of: of(x) if x.has(z) else functions(x)
        )
    return expression


def _sign(front: Any, values: Mapping[str, float], text: str) -> int:
    """The sign of a factor in the user's numbers."""
    size = front.subs({s: values[str(s)] for s in front.free_symbols if str(s) in values})
    if not size.is_number or size == 0:
        raise Open(f"a factor in {text!r} is 0, or a number of its units")
    return 1 if size > 0 else -1


def _of_branch(
    declared: Declaration, expression: Any, group: Group, branch: tuple[int, int], values: Mapping[str, float]
) -> Any:  # fmt: skip
    """Return the coefficient of a rule in a branch, in the student's field and the reward. Raises `Open` for other
    names.
    """
    import sympy

    f, y, dl, df, grad, dphi, a = (sympy.Symbol(s, real=True) for s in ("f", "y", "dl", "df", "grad", SLOPE, "a"))
    z, phi = symbols.slot(group.slots[0]), symbols.build(group.unit, group.slots)
    slopes = {"squared": f - y, "correlation": -y}
    if declared.loss in slopes:
        expression = expression.subs(grad, dl * df).subs(dl, slopes[declared.loss])
    expression = expression.subs(df, dphi).subs(a, 1).subs(dphi, sympy.diff(phi, z)).subs(f, phi)
    teacher = declared.teachers[0]
    if expression.has(y):
        label_values = _answer(teacher, values).values
        if label_values is None:
            raise Open(f"a rule with a reward depends on the label {teacher.text!r}, which has more than two values")
        expression = expression.subs(y, label_values[branch[1]])
    allowed = {z, sympy.Symbol(REWARD, real=True), *(sympy.Symbol(name, real=True) for name in declared.names)}
    if not expression.free_symbols <= allowed:
        raise Open("a rule with a reward has closed forms in the answers, the field and numbers that units share")
    return _side(expression, z, branch[0], values, group.text)


def _succeeds(declared: Declaration, student: _Answer, teacher: _Answer, branch: tuple[int, int]) -> int:
    """Return 1 if a sample of a branch is a success, else 0. Raises `Open` if its signs do not determine this."""
    import sympy

    episode = declared.episode
    assert episode is not None
    if set(episode.success.names()) - {"f", "y"}:
        raise Open(f"the success {episode.success_text!r} depends on other numbers than f and y")
    places = {}
    for letter, answer, sign in (("f", student, branch[0]), ("y", teacher, branch[1])):
        size = sympy.Symbol(f"size_{letter}", positive=True)
        places[sympy.Symbol(letter, real=True)] = (
            answer.turn * sign * size if answer.values is None else answer.values[sign]
        )
    success = symbols.build(episode.success, ()).xreplace(places)
    undecided = [call for call in success.atoms(symbols.own()["step"]) if call.args[0].is_positive is None]
    if undecided:
        raise Open(f"the success {episode.success_text!r} depends on more than the signs of f and y")
    return int(success.replace(symbols.own()["step"], lambda x: sympy.Integer(bool(x.is_positive))))


# -- as parts of units


def parts(rule: Rewarded, z: Any, of: Callable[[Any], tuple[Part, Part]]) -> Reward:
    """Return the functions of the student that a rule needs; `of` makes a part, and its slope, of an expression in
    z.
    """
    success = dict(rule.success)
    failure = {branch: 1 - value for branch, value in success.items()}
    tables = [dict(table) for table in rule.tables]

    def signed(*factors: Table) -> Signed:
        value: Table = dict.fromkeys(BRANCHES, 1)
        for factor in factors:
            value = {branch: value[branch] * factor[branch] for branch in BRANCHES}
        return _signed(value, z, of)

    pairs = list(itertools.combinations_with_replacement(range(len(tables)), 2))
    return Reward(
        gains=rule.gains,
        odds=signed(success),
        right=tuple(signed(success, table) for table in tables),
        wrong=tuple(signed(failure, table) for table in tables),
        pairs=tuple(pairs),
        squares_right=tuple(signed(success, tables[m], tables[n]) for m, n in pairs),
        squares_wrong=tuple(signed(failure, tables[m], tables[n]) for m, n in pairs),
    )


def _signed(table: Mapping[tuple[int, int], Any], z: Any, of: Callable[[Any], tuple[Part, Part]]) -> Signed:
    """P + Q sigma* of a table, each as a part with its slope."""
    import sympy

    step, half = symbols.own()["step"], sympy.Rational(1, 2)
    expressions = []
    for turn in (1, -1):
        plus, minus = (half * (table[sign, 1] + turn * table[sign, -1]) for sign in (1, -1))
        plus, minus = sympy.expand(plus), sympy.expand(minus)
        expressions += of(minus + (plus - minus) * step(z) if plus != minus else plus)
    return Signed(*expressions)


def with_sign(shape: Shape) -> Shape:
    """The shape of a teacher with the sign of its field, 2 step(z*) - 1, and the slope of that."""
    import sympy

    gate = Gate("step", 0, sympy.Integer(1), sympy.Integer(0))
    gates = shape.gates if gate in shape.gates else (*shape.gates, gate)
    number = gates.index(gate)
    sign = (Term(sympy.Integer(2), number, 0, (0,)), Term(sympy.Integer(-1), -1, 0, (0,)))
    slope = (Term(sympy.Integer(2), number, 1, (0,)),)
    return dataclasses.replace(shape, gates=gates, sign=(sign, slope))

"""Means of pairs of units as functions, which a page shows, and the reasons why a model has no closed form.

    pair_g_h   for a student unit i of group g and any unit j of group h: E[d_s phi_i d_t phi_j] for all slots s, t,
               E[d_s d_s' phi_i phi_j], then, where they are trained, E[phi_i phi_j] and E[d_b phi_i phi_j]
    self_g     the same for a unit with itself, whose covariance is singular
    mean_g_h   E[phi_i phi_j]

Their number depends only on the kinds of units, not on the number of units.
"""

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence

from derivations.declare import episode_rules, episodes, looks, symbols
from derivations.declare.declaration import Declaration, Group
from derivations.declare.gates import SERIES, Gate, Open, Shape, erf_factors, shape
from derivations.declare.moments import Program, Tables
from derivations.declare.products import Product, product

MOST_CELLS = 20_000
"""Size above which compiling a program of quadruples takes too long, so that the tier raises an error."""


@dataclasses.dataclass(frozen=True)
class Kernels:
    """Texts of all functions by name, the tabulated series of every program in order, and the reasons for missing
    closed forms.

    `closed` and `second` are "" where the flow and its second-order term have closed forms, else the reason; `pairs`
    has for every program its columns (gate, order, gate, order), `means` its numbers (gate, order), `places` the slots
    of the two gates; `tilts` the factor and slope of every group if all units are erf.
    """

    texts: tuple[tuple[str, str], ...] = ()
    pairs: tuple[tuple[tuple[str, str, int, str, str, int], ...], ...] = ()
    means: tuple[tuple[tuple[str, str, int], ...], ...] = ()
    places: tuple[tuple[int, ...], ...] = ()
    closed: str = ""
    second: str = ""
    tilts: tuple[tuple[str, str], ...] = ()


def values(declared: Declaration, numbers: Sequence[float]) -> dict[str, float]:
    """The user's numbers by name."""
    return dict(zip(declared.names, numbers, strict=True))


def derive(declared: Declaration, numbers: Sequence[float]) -> Kernels:
    """Return everything that is generated for a declaration, with the signs of its slopes for these numbers."""
    try:
        return _derived(declared, numbers)
    except Open as reason:
        return Kernels(closed=str(reason))


def _derived(declared: Declaration, numbers: Sequence[float]) -> Kernels:
    shapes = shapes_of(declared, numbers)
    maker = Maker(declared, shapes)
    texts = [*maker.drift(), *maker.loss()]
    second, tilts = "", erf_factors(shapes, met_by(declared)) if declared.noisy else ()
    if declared.noisy:
        try:
            require_second(declared, shapes)
        except Open as reason:
            second = str(reason)
    pairs = tuple(
        tuple((*plain_gate(left, a), *plain_gate(right, b)) for left, a, right, b in t.pairs) for t in maker.tables
    )
    means = tuple(tuple(plain_gate(gate, a) for gate, a in t.means) for t in maker.tables)
    places = tuple((t.pairs[0][0].slot, t.pairs[0][2].slot) if t.pairs else () for t in maker.tables)
    return Kernels(tuple(texts), pairs, means, places, "", second, tilts)


def shapes_of(declared: Declaration, numbers: Sequence[float]) -> tuple[Shape, ...]:
    """The shapes of the units of all groups, whose means have closed forms or are series.

    Raises `Open` with the reason if this is not the case.
    """
    require_closed(declared)
    normalised, namespace = declared.weights == "normalised", values(declared, numbers)
    students = [shape(group, namespace, normalised, _rules(declared, group, namespace)) for group in declared.students]
    teachers = [shape(group, namespace, False) for group in declared.teachers]
    if any(rule.rewarded is not None for unit_shape in students for rule in unit_shape.rules):
        teachers = [episode_rules.with_sign(unit_shape) for unit_shape in teachers]
    shapes = (*students, *teachers)
    if declared.inputs is not None and any(gate.kind in SERIES for unit_shape in shapes for gate in unit_shape.gates):
        raise Open(
            "the means of a gate are series for unit variance, but the variances depend on the eigenvalues "
            "of the inputs"
        )
    _require_series(declared, shapes)
    return shapes


def met_by(declared: Declaration) -> str:
    """Return the factor in a derivative of the loss: "error" f - y, or "label" -y."""
    return "error" if declared.loss == "squared" else "label"


def require_second(declared: Declaration, shapes: Sequence[Shape]) -> None:
    """Raise `Open` if means of four units have no closed form. Polynomials and erf units have closed forms.

    Two of the four are students, the first of the shapes; the other two may be any.
    """
    students = len(declared.students)
    rewarded = any(rule.rewarded is not None for shape in shapes for rule in shape.rules)
    if rewarded or erf_factors(shapes, met_by(declared)):
        return
    if any(shape.gates for shape in shapes):
        raise Open("E[c c] is a mean of four functions that are not polynomials")
    cells = [math.prod(1 + degree for degree in _degrees(shape)) for shape in shapes]
    if max(cells[:students]) ** 2 * max(cells) ** 2 > MOST_CELLS:
        raise Open("E[c c] is a mean of four polynomials of too many terms")


def _degrees(shape: Shape) -> list[int]:
    """The largest powers of a unit and its rules, by slot."""
    terms = [*shape.value, *(term for rule in shape.rules for term in rule.value or ())]
    return [max((term.powers[s] for term in terms), default=0) for s in range(len(shape.slots))]


def plain_gate(gate: Gate, order: int) -> tuple[str, str, int]:
    """A series gate with the order of its derivative as plain data: its slope is an expression in the numbers."""
    return gate.kind, symbols.plain(gate.slope), order


def require_closed(declared: Declaration) -> None:
    """Raise `Open` if the loss excludes closed forms, or if the flow is not that of SGD."""
    if reason := looks.reason(declared):
        raise Open(reason)
    if declared.loss not in ("squared", "correlation"):
        loss_text = "the user's loss" if declared.loss == "own" else f"the {declared.loss} loss"
        raise Open(f"{loss_text} is not a polynomial in the units, so its mean is not a sum over pairs of units")
    if declared.predicted:
        raise Open(f"the prediction {declared.predicted[0].text!r} is not a sum of units")
    _require_products(declared)
    for group in declared.students:
        jumps = group.unit.calls("step", "sign")
        by_loss = [word for word in (*group.slots, *group.scalars) if declared.moves(group, word)]
        if jumps and set(by_loss) - set(declared.ruled(group)):
            raise Open(
                f"{group.text!r} jumps: the derivative for each sample is 0 almost everywhere, so SGD does "
                "not follow the gradient of the population loss, whose self term diverges"
            )


def _require_products(declared: Declaration) -> None:
    """Raise `Open` for rules of other parameters than vectors, or together with means and labels of clusters."""
    for group in declared.students:
        words = [word for word in declared.ruled(group) if word not in group.slots]
        if words:
            raise Open(f"the rule of {words[0]}, a scalar of each unit, has no closed form here")
    if declared.rules and (declared.moved or declared.by_cluster):
        raise Open("rules have no closed form here where clusters of the inputs have means or labels")


def _rules(
    declared: Declaration, group: Group, namespace: Mapping[str, float]
) -> list[tuple[str, Product | episode_rules.Rewarded]]:
    """Return the rules of the slots of a group of students as products. Raises `Open` for other rules."""
    products: list[tuple[str, Product | episode_rules.Rewarded]] = []
    for slot in declared.ruled(group):
        rule = declared.rule(group, slot)
        if slot not in group.slots or rule is None:
            continue
        if declared.episode is not None and episodes.REWARD in rule.tree.names():
            products.append((slot, episode_rules.rewarded(declared, group, slot, namespace)))
        else:
            products.append((slot, product(declared, group, slot)))
    return products


def _require_series(declared: Declaration, shapes: Sequence[Shape]) -> None:
    for group, unit_shape in zip(declared.groups, shapes, strict=True):
        kinds = [gate for gate in unit_shape.gates if gate.kind in SERIES]
        if kinds and declared.weights == "free":
            raise Open(
                f"the means of {kinds[0].kind} in {group.text!r} are series that need fields of variance 1, but free "
                "norms change the variance: use weights = 'sphere' or weights = 'normalised'"
            )
        if len({gate.slot for gate in kinds}) > 1:
            raise Open(f"{group.text!r} has gates with series in two slots, but a closed form allows them in one")


class Maker:
    """Writer of the functions of one declaration."""

    def __init__(self, declared: Declaration, shapes: Sequence[Shape]) -> None:
        self.declared, self.shapes = declared, shapes
        self.students = len(declared.students)
        self.tables: list[Tables] = []

    def _program(self, name: str, kinds: Sequence[int], outputs: Sequence, same_field: bool = False) -> tuple[str, str]:
        """Write the name and the text of one function; its tables get the next number."""
        self.tables.append(Tables())
        scalar_names = [self.declared.groups[k].scalars for k in kinds]
        program = Program(
            [self.shapes[k] for k in kinds], scalar_names, self.tables[-1], same_field, self.declared.moved
        )
        return name, program.write(name, program.arguments(self.declared.names), outputs)

    def _drift_outputs(self, g: int, h: int) -> list:
        left, right = self.shapes[g], self.shapes[h]
        rules = {slot: left.own(slot) for slot in left.slots}
        first = [(slope, bends, rules[s]) for s, slope, bends in zip(left.slots, left.slopes, left.bends, strict=True)]
        first = [(slope, bends, rule) for slope, bends, rule in first if rule is None or rule.rewarded is None]
        # A rule replaces the derivative of its slot.
        outputs = [(a if rule is None else rule.value, b) for a, _, rule in first for b in right.slopes]
        outputs += [(bend, right.value) for _, row, rule in first for bend in (row if rule is None else rule.bends)]
        if self.declared.groups[g].trained_readouts:
            outputs.append((left.value, right.value))
        return outputs + [(part, right.value) for part in left.scalars]

    def drift(self) -> Iterator[tuple[str, str]]:
        """pair_g_h and self_g."""
        for g in range(self.students):
            for h in range(len(self.shapes)):
                outputs = self._drift_outputs(g, h)
                yield self._program(f"pair_{g}_{h}", (g, h), outputs)
                if g == h:
                    yield self._program(f"self_{g}", (g, g), outputs, same_field=True)

    def loss(self) -> Iterator[tuple[str, str]]:
        """mean_g_h and mean_self_g."""
        for g in range(len(self.shapes)):
            for h in range(g, len(self.shapes)):
                values = [(self.shapes[g].value, self.shapes[h].value)]
                yield self._program(f"mean_{g}_{h}", (g, h), values)
                if g == h:
                    yield self._program(f"mean_self_{g}", (g, g), values, same_field=True)

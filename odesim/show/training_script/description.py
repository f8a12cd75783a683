"""A training script as data, from which the scripts of all back ends are written.

Expressions are SymPy's, with the names of a script: fields have the names of their slots, squared norms are
`norm2_SLOT`, the share of a unit is `share`, and numbers of the model have their names in the declaration.
"""

import dataclasses
from typing import Any

from derivations.contract import Initial, load
from derivations.declare import noise, responses, spectra, symbols
from derivations.declare.declaration import Declaration, Group
from derivations.declare.initial import weight_names
from derivations.declare.parameter_class import rows
from derivations.declare.rows import Rows
from odesim.machine import streams
from odesim.request.case import Case
from odesim.show.training_script import refusals
from odesim.show.training_script.constants import command, constants, conventions, title
from odesim.show.training_script.inputs import Inputs
from odesim.show.training_script.names import word
from odesim.show.training_script.schedule_code import Values, values
from odesim.show.training_script.starts import Start


@dataclasses.dataclass(frozen=True, eq=False)
class Part:
    """Group of units in a script.

    `function` names the unit's function, `size` the number of units. `weights` are (field, name of the array) by slot,
    `squares` the fields whose squared norm the unit uses, and `scalars` (argument, name of the array). `gate` is the
    argument of the share "softmax" or "top1", if there is one. `readout` is the name of the array of readouts, empty if
    these are fixed numbers, and `output` the combination of the units: "sum", "mean", "root" or a list of numbers.
    """

    size: str
    function: str
    weights: tuple[tuple[str, str], ...]
    squares: tuple[str, ...]
    scalars: tuple[tuple[str, str], ...]
    phi: Any
    gate: Any
    share: str
    readout: str
    output: str

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments of the unit's function: fields, squared norms, the share, numbers of the unit."""
        share = ("share",) if self.share else ()
        return (*self.gate_arguments[: len(self.weights) + len(self.squares)], *share, *(x for x, _ in self.scalars))

    @property
    def gate_arguments(self) -> tuple[str, ...]:
        """The same without the share."""
        fields = (*(x for x, _ in self.weights), *(f"norm2_{x}" for x in self.squares))
        return (*fields, *(x for x, _ in self.scalars))


@dataclasses.dataclass(frozen=True, eq=False)
class Script:
    """Content of a training script, independent of its back end.

    `lines` are the conventions for its first comment, `constants` (name, value, comment), of which `counts` are numbers
    of units; `held` are (name, value) of numbers that appear as literals. `vectors` are the arrays of trained weight
    vectors. `loss` is an expression in f and y, `law` an expression of the noise in xi. With `damped` momentum a
    velocity has the part 1 - momentum of a gradient.
    """

    name: str
    title: str
    lines: tuple[str, ...]
    command: str
    constants: tuple[tuple[str, Any, str], ...]
    counts: tuple[str, ...]
    held: tuple[tuple[str, Any], ...]
    students: tuple[Part, ...]
    teachers: tuple[Part, ...]
    loss: Any
    law: Any
    start: Start
    inputs: Inputs
    values: Values
    weights: str
    momentum: str
    damped: bool
    nesterov: bool
    vectors: tuple[str, ...]
    decays: bool
    online: bool
    noisy: bool


def describe(case: Case) -> Script:
    """Describe the training script of a case. Raises `UsageError` for unsupported features (`refusals`)."""
    parameters, system = case.parameters, case.system
    refusals.require(system, parameters)
    declared = noise.in_force(parameters)
    at = rows(parameters)
    initial = load(system.stage(case.stage).enter)(parameters, None, streams.generator(case.seed, "initial"))
    parts = [_part(at, initial, number) for number in range(len(declared.groups)) if number in declared.answering]
    parts = _shared(parts)
    count, start = len(declared.students), Start.build(initial)
    vectors = [name for name, number, _ in weight_names(at) if number < count]
    trained = _trained(declared)
    law = None if declared.law is None else renamed(symbols.build(declared.law.tree, ()))
    return Script(
        name=system.name,
        title=title(system),
        lines=tuple(conventions(declared, parameters)),
        command=command(case),
        constants=tuple(constants(case, start)),
        counts=tuple(part.size for part in parts),
        held=_blocks(parameters),
        students=tuple(parts[:count]),
        teachers=tuple(parts[count:]),
        loss=renamed(responses.loss_of(declared)),
        law=law,
        start=start,
        inputs=Inputs.build(parameters),
        values=values(parameters, trained),
        weights=declared.weights,
        momentum=_momentum(declared),
        damped=declared.timed,
        nesterov=declared.momentum is not None and declared.momentum.nesterov,
        vectors=tuple(name for name in vectors if name in trained),
        decays=declared.weights != "sphere" and positive(parameters, "decay"),
        online=declared.limit == "online",
        noisy=law is not None or positive(parameters, "noise"),
    )


def positive(parameters: Any, name: str) -> bool:
    """Return True if a number of training is above 0, or time-dependent."""
    value = getattr(parameters, name)
    return value is None or value > 0


def renamed(expression: Any, slots: tuple[str, ...] = ()) -> Any:
    """Return an expression with the names of a script: fields by their slots, squared norms, and no reserved names."""
    import sympy

    places = {}
    for slot in slots:
        places[symbols.slot(slot)] = sympy.Symbol(word(slot), real=True)
        places[symbols.square(slot)] = sympy.Symbol(f"norm2_{word(slot)}", positive=True)
    places[symbols.share()] = sympy.Symbol("share", real=True)
    made = expression.xreplace(places)
    free = {one: sympy.Symbol(word(one.name), real=True) for one in made.free_symbols - set(places.values())}
    return made.xreplace({one: new for one, new in free.items() if one.name not in ("f", "y", "xi")})


def _part(at: Rows, initial: Initial, number: int) -> Part:
    """A group as a script has it."""
    declared, student = at.declaration, at.is_student(number)
    group: Group = declared.groups[number]
    phi = renamed(symbols.build(group.unit, group.slots), group.slots)
    gate = None if group.share is None else renamed(symbols.build(group.share.parts[0], group.slots), group.slots)
    read = {one.name for expression in (phi, gate) if expression is not None for one in expression.free_symbols}
    squares = tuple(word(slot) for slot in group.slots if f"norm2_{word(slot)}" in read)
    scalars = tuple((word(one), group.named(one)) for one in group.scalars) if student else ()
    one = declared.readout(number, declared.heads[0])
    assert one is not None
    trained = student and one.trained
    values = None if trained else initial.constants[declared.readout_name(number, one.head)]
    role = "unit" if student else "teacher_unit"
    return Part(
        size=group.named("units" if student else "teachers"),
        function=group.named(role),
        weights=tuple((word(slot), group.named(slot if student else f"{slot}_star")) for slot in group.slots),
        squares=squares,
        scalars=scalars,
        phi=phi,
        gate=gate,
        share="" if group.share is None else group.share.word,
        readout=group.named(one.word) if trained else "",
        output=one.output if values is None or one.output in ("sum", "mean", "root") else str(values.tolist()),
    )


def _shared(parts: list[Part]) -> list[Part]:
    """Return the groups, with one function for all groups that have the same unit."""
    found: dict[Any, str] = {}
    made = []
    for part in parts:
        key = (part.phi, part.gate, part.share, part.arguments)
        made.append(dataclasses.replace(part, function=found.setdefault(key, part.function)))
    return made


def _blocks(parameters: Any) -> tuple[tuple[str, Any], ...]:
    """Return the coordinates of every block of the inputs, which a script contains as literals."""
    blocks = spectra.blocks(parameters)
    several = blocks is not None and len(blocks.dimension) > 1
    return (("coordinates of the blocks", blocks.dimension.tolist()),) if several else ()  # type: ignore[union-attr]


def _trained(declared: Declaration) -> dict[str, str]:
    """Return every trained array, with the parameter that is the factor of its step ("" for none)."""
    every = ((group, one) for group in declared.students for one in (*group.slots, *group.own))
    return {group.named(one): declared.rate(group, one) for group, one in every if declared.moves(group, one)}


def _momentum(declared: Declaration) -> str:
    """Return the part of the velocity that a step keeps, as an expression of a script; empty without momentum."""
    if declared.momentum is None:
        return ""
    return "1 - tick / momentum_time" if declared.timed else "momentum"

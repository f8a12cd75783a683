"""The parts of a declaration that concern training: numbers, memories, rules, and laws of label noise."""

import dataclasses

from derivations.declare.grammar import Tree


@dataclasses.dataclass(frozen=True)
class Memory:
    """A number of training with dm/dt = `rate`; `seen` are the names of state and gradients that the rate reads."""

    name: str
    start: float
    text: str
    rate: Tree
    seen: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Law:
    """The noise of a label, an expression in xi, a standard normal number; a `heavy` one has no variance."""

    text: str
    tree: Tree
    heavy: bool = False


@dataclasses.dataclass(frozen=True)
class Rule:
    """The coefficient c by which a slot (u by -h c x), a readout or a scalar (by -h c) moves.

    It takes the place of the derivative of the loss; `name` is the slot or number, with or without its group's name.
    """

    name: str
    text: str
    tree: Tree


@dataclasses.dataclass(frozen=True)
class Change:
    """What is set at the beginning of a stage, in the names of a run.

    kind "copy": the group of teachers `name` becomes what the students `value` are; "fresh": the vectors `name`, of the
    slot `value`, take random directions; "number": the numbers `name` of all units become `value`, or what the numbers
    of that name are.
    """

    kind: str
    name: str
    value: str | float


@dataclasses.dataclass(frozen=True)
class Number:
    """A number of the user's own: its default, meaning and domain.

    With `per_unit` every unit has one.  One that the unit's expression reads (a bias) starts at the default and is
    trained where `trained` says so; one that a rule alone reads is a constant of the unit, and its default may be a
    `formula` in the number j = 1, 2, .. of the unit, of which `default` then is the first value.
    """

    name: str
    default: float
    meaning: str = ""
    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    per_unit: bool = False
    formula: Tree | None = dataclasses.field(default=None, repr=False)

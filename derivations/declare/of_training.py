"""The parts of a declaration that concern training: numbers, memories, rules, and distributions of label noise."""

import dataclasses

from derivations.declare.grammar import Tree


@dataclasses.dataclass(frozen=True)
class Memory:
    """Memory, a number of training with dm/dt = `rate`; `seen` are the names of state and gradients in the rate."""

    name: str
    start: float
    text: str
    rate: Tree
    seen: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Law:
    """Label noise as an expression in xi, a standard normal number; `heavy` noise has no variance."""

    text: str
    tree: Tree
    heavy: bool = False


@dataclasses.dataclass(frozen=True)
class Rule:
    """Coefficient c of the step of a slot (u by -h c x), a readout or a scalar (by -h c).

    It replaces the derivative of the loss; `name` is the slot or number, with or without its group's name.
    """

    name: str
    text: str
    tree: Tree


@dataclasses.dataclass(frozen=True)
class Change:
    """Change at the beginning of a stage, in the names of a run.

    kind "copy": the group of teachers `name` becomes a copy of the students `value`; "fresh": the vectors `name`, of
    the slot `value`, get random directions; "number": the numbers `name` of all units become `value`, or the numbers of
    that name.
    """

    kind: str
    name: str
    value: str | float


@dataclasses.dataclass(frozen=True)
class Number:
    """Number of the user: its default, meaning and domain.

    With `per_unit` every unit has one. A number in the unit's expression (a bias) starts at the default and is trained
    if it is listed in `trained`. A number that only a rule uses is a constant of the unit. Its default may be a
    `formula` in the number j = 1, 2, .. of the unit; `default` is then the first value.
    """

    name: str
    default: float
    meaning: str = ""
    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    per_unit: bool = False
    formula: Tree | None = dataclasses.field(default=None, repr=False)

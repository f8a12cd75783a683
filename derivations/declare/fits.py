"""Consistency of the entries of a declaration: conditions on several tables, checked before any derivation."""

import re
from typing import Any

from derivations.contract import UsageError
from derivations.declare import (
    episodes,
    fields,
    growth,
    initial,
    memory,
    mixture,
    noise,
    parameter_class,
    predictions,
    presets,
    schedules,
    spectra,
    system,
    velocity_blocks,
)
from derivations.declare.declaration import Declaration
from derivations.declare.grammar import entry
from derivations.declare.parameter_class import rows
from derivations.declare.readouts import COPIED
from derivations.declare.rows import readout

OF_INPUTS = re.compile(
    ""
    "blocks?|clusters?|dimension|eigenvalue|label|means|mean_weights|probability|share|(centre|kappa)_.*|[HKUWB](own|label)?_.*"
)
"""Names of inputs with eigenvalues or clusters in a run and in its equations."""


def require(declared: Declaration) -> None:
    """Raise `fields.Mistake` for inconsistent entries at the declared sizes and numbers."""
    parameters = _as("parameters", "", parameter_class.parameters_of, declared)()
    if not declared.stages:
        _itself(declared, parameters)
    if not declared.stage:
        _formulas(declared)
    presets.require(declared, parameters)
    _claims(declared)


def _itself(declared: Declaration, parameters: Any) -> None:
    """Check a model of one stage, or one stage of a model."""
    _trained(declared)
    predictions.require(declared)
    decays = declared.decay or any(schedule.name == "decay" for schedule in declared.schedules)
    if declared.limit == "online" and decays and declared.weights == "normalised":
        raise fields.Mistake(
            "weight decay only changes the norms of normalised weights and has no effect; leave it out",
            "training",
            "decay",
        )
    values = {n.name: n.default for n in declared.numbers if not n.per_unit}
    _as("training.episode", "reward", episodes.check, parameters)
    _as("teacher", "noise", noise.check, parameters)
    _as("training", "loss", growth.require_loss, noise.in_force(parameters), values, declared.noise)
    _as("training", "rule", growth.require_rules, declared, values, declared.noise)
    if declared.inputs is not None:
        sources = {
            "blocks": declared.inputs.blocks,
            "covariance": declared.inputs.covariance,
            "data": declared.inputs.data,
        }
        key = next((name for name, source in sources.items() if source), "spectrum")
        _as("inputs", key, spectra.blocks, parameters)
        _as("inputs.cluster", "", mixture.mixture, parameters)
        _as("student", "unit", _without_wick, declared)
    _as("student", "units", parameter_class.require_room, parameters)
    _readouts(declared, values)
    _names(declared, parameters)
    _events(declared, parameters)
    _seen(declared, parameters)
    _start(declared, parameters)


def _claims(declared: Declaration) -> None:
    """Check that the author's claims are valid, and have different names."""
    if declared.claims:
        from derivations.declare.claims import stated

        names: set[str] = set()
        for number, entry in enumerate(declared.claims, 1):
            with fields.entry_of("claim", number):
                name = stated.claim(system.system(declared), entry, number).id
                if name in names:
                    raise fields.Mistake(f"claim {name}: another claim has this name; choose another id", "claim", "id")
                names.add(name)


def _as(table: str, key: str, function: Any, *arguments: Any) -> Any:
    """Return the result of a function; its `UsageError` becomes the mistake of an entry."""
    try:
        return function(*arguments)
    except fields.Mistake:
        raise
    except UsageError as error:
        raise fields.Mistake(str(error), table, key) from None


def _without_wick(declared: Declaration) -> None:
    """Raise `UsageError` for a Wick power, which has no meaning on inputs with eigenvalues."""
    if any(group.unit.calls("wick") for group in declared.groups):
        raise UsageError(
            "wick(k, w) is a Wick power where |w|^2 is the variance of its field, which it is not on [inputs]; write "
            "the polynomial, such as w^2 - 1"
        )


def _formulas(declared: Declaration) -> None:
    """Check that a default that differs from unit to unit is a constant of rules only."""
    for number in declared.numbers:
        if number.formula is None:
            continue
        if any(number.name in group.scalars for group in declared.students):
            message = f"{number.name} starts at the same number in every unit; give other initial values by --initial"
            raise fields.Mistake(message, f"parameters.{number.name}", "default")
        if not any(number.name in declared.constants(group) for group in declared.students):
            message = f"no unit and no rule uses {number.name}"
            raise fields.Mistake(message, f"parameters.{number.name}", "default")


def _trained(declared: Declaration) -> None:
    for group in declared.students:
        words = (*group.slots, *group.own)
        if not any(declared.moves(group, word) for word in words):
            raise fields.Mistake(
                f"nothing of {group.text!r} is trained: name {', '.join(words)}", "training", "trained"
            )


def _readouts(declared: Declaration, values: dict[str, float]) -> None:
    """Check that readouts that are an expression in j have a value for every declared unit."""
    for number, fixed_readout in (
        (k, fixed_readout) for k, fixed_readout in declared.fixed_readouts() if fixed_readout.output != COPIED
    ):
        group = declared.groups[number]
        side = "student" if number < len(declared.students) else "teacher"
        table = f"{side}.{group.name}" if group.name else side
        _as(table, "output", readout, fixed_readout, group.units, values)


def _names(declared: Declaration, parameters: Any) -> None:
    """Check that the user's numbers do not have names of variables of a run."""
    layout = rows(parameters)
    used_names = {word for block in layout.blocks for word in (block.name, *block.dims)}
    for number in declared.numbers:
        if (
            number.name in used_names
            or (declared.clocked and number.name == schedules.TIME)
            or (declared.inputs is not None and OF_INPUTS.fullmatch(number.name))
        ):
            raise fields.Mistake(
                f"the name {number.name!r} is already the name of a variable of a run: choose another",
                "parameters",
                number.name,
            )


def _events(declared: Declaration, parameters: Any) -> None:
    layout, event_names = rows(parameters), set()
    order_parameters = [block.name for block in layout.moving] + [
        declared.students[g].named(word) for g, word, _ in layout.scalars
    ]
    order_parameters += [name for name, *_ in velocity_blocks.described(layout)]
    used_names = {
        *order_parameters,
        *(block.name for block in layout.fixed),
        "time",
        "loss",
        "error",
        "classification_error",
    }
    used_names |= {schedules.TIME} if declared.clocked else set()
    for number, event in enumerate(declared.events, 1):
        with fields.entry_of("event", number):
            if event.of not in order_parameters:
                raise fields.Mistake(
                    f"event {event.name} watches {event.of!r}, which is not an order parameter that changes; "
                    f"{fields.near(event.of, order_parameters)}",
                    "event",
                    "of",
                )
            if event.name in event_names or event.name in used_names:
                raise fields.Mistake(
                    f"the name {event.name!r} of an event already exists: choose another", "event", "name"
                )
            event_names.add(event.name)


def _seen(declared: Declaration, parameters: Any) -> None:
    """Check that values and the rates of memories only use existing parts of the state."""
    layout = rows(parameters)
    shapes = {block.name: block.shape[-2:] for block in layout.moving}
    shapes |= {declared.students[g].named(word): (count,) for g, word, count in layout.scalars}
    places = {"step": ("training", "step"), "decay": ("training", "decay")}
    uses = [(*places.get(member.name, ("training", "rates")), member.seen) for member in declared.schedules]
    uses += [(f"memory.{member.name}", "rate", member.seen) for member in declared.memories]
    for table, key, names in uses:
        for name in names:
            parsed = entry(name)
            if parsed is None:
                continue
            if parsed[0] in {name for name, *_ in velocity_blocks.described(layout)}:
                message = f"{key} uses {name}, but values can use only overlaps and numbers, not velocities"
                raise fields.Mistake(message, table, key)
            if parsed[0] not in shapes:
                message = f"{key} uses {name}, but {parsed[0]} is not an order parameter that changes"
                raise fields.Mistake(f"{message}; {fields.near(parsed[0], shapes)}", table, key)
            shape = shapes[parsed[0]]
            shape = (layout.spaces, *shape) if layout.stack and len(shape) == 2 and len(parsed[1]) == 3 else shape
            if parsed[1] and (
                len(parsed[1]) != len(shape) or any(i > n for i, n in zip(parsed[1], shape, strict=True))
            ):
                message = f"{key} uses {name}, but {parsed[0]} is {' x '.join(map(str, shape))}"
                raise fields.Mistake(message, table, key)
    squares = memory.of_squares(declared)
    plain = (
        declared.weights == "free"
        and declared.inputs is None
        and not any(g.unit.calls("wick") for g in declared.students)
    )
    if squares and declared.limit != "online" and not plain:
        limit_text = "a flow" if declared.limit == "flow" else "giant steps"
        message = f"{squares[0]} in {limit_text} is that of free weights on isotropic inputs; take limit = 'online'"
        raise fields.Mistake(message, f"memory.{declared.memories[0].name}", "rate")


def _start(declared: Declaration, parameters: Any) -> None:
    """Check that the teacher's Gram matrix and given overlaps are those of vectors."""
    import numpy as np

    if declared.gram is not None:
        _as("teacher", "gram", initial.teacher_gram, parameters)
    if not declared.start.arrays:
        return
    block_names = [block.name for block in rows(parameters).blocks]
    readouts = [group.named(word) for group in declared.students for word in group.trained_readouts]
    overlap_names = [name for name, _ in declared.start.arrays if name not in readouts]
    if not overlap_names:
        return
    for name in overlap_names:
        if name not in block_names:
            raise fields.Mistake(f"unknown key {name!r}; {fields.near(name, block_names)}", "start", name)
    key = overlap_names[0]
    start = _as("start", key, initial.enter, parameters, None, np.random.default_rng(0))
    for block in rows(parameters).moving:
        squares = np.diagonal(start.state[block.name], axis1=-2, axis2=-1)
        if block.symmetric and ((squares.sum(0) if block.stack else squares) <= 0).any():
            raise fields.Mistake(f"{block.name} belongs to a weight vector that is zero", "start", block.name)

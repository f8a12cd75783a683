"""Consistency of the entries of a declaration: conditions on several tables, checked before any derivation."""

import re
from typing import Any

from derivations.contract import UsageError
from derivations.declare import (
    episodes,
    fields,
    growth,
    memory,
    mixture,
    noise,
    predictions,
    presets,
    schedules,
    spectra,
    velocity_blocks,
)
from derivations.declare.declaration import Declaration
from derivations.declare.grammar import entry
from derivations.declare.readouts import COPIED

OF_INPUTS = re.compile(
    ""
    "blocks?|clusters?|dimension|eigenvalue|label|means|mean_weights|probability|share|(centre|kappa)_.*|[HKUWB](own|label)?_.*"
)
"""Names of inputs with eigenvalues or clusters in a run and in its equations."""


def require(made: Declaration) -> None:
    """Raise `fields.Mistake` for inconsistent entries at the declared sizes and numbers."""
    from derivations.declare import parameter_class

    parameters = _as("parameters", "", parameter_class.parameters_of, made)()
    if not made.stages:
        _itself(made, parameters)
    if not made.stage:
        _formulas(made)
    presets.require(made, parameters)
    _claims(made)


def _itself(made: Declaration, parameters: Any) -> None:
    """Check a model of one stage, or one stage of a model."""
    from derivations.declare import parameter_class

    _trained(made)
    predictions.require(made)
    decays = made.decay or any(schedule.name == "decay" for schedule in made.schedules)
    if made.limit == "online" and decays and made.weights == "normalised":
        raise fields.Mistake(
            "weight decay only changes the norms of normalised weights and has no effect; leave it out",
            "training",
            "decay",
        )
    values = {n.name: n.default for n in made.numbers if not n.per_unit}
    _as("training.episode", "reward", episodes.check, parameters)
    _as("teacher", "noise", noise.check, parameters)
    _as("training", "loss", growth.require_loss, noise.in_force(parameters), values, made.noise)
    _as("training", "rule", growth.require_rules, made, values, made.noise)
    if made.inputs is not None:
        sources = {"blocks": made.inputs.blocks, "covariance": made.inputs.covariance, "data": made.inputs.data}
        key = next((name for name, given in sources.items() if given), "spectrum")
        _as("inputs", key, spectra.blocks, parameters)
        _as("inputs.cluster", "", mixture.mixture, parameters)
        _as("student", "unit", _without_wick, made)
    _as("student", "units", parameter_class.require_room, parameters)
    _readouts(made, values)
    _names(made, parameters)
    _events(made, parameters)
    _seen(made, parameters)
    _start(made, parameters)


def _claims(made: Declaration) -> None:
    """Check that the author's claims are valid, and have different names."""
    if made.claims:
        from derivations.declare import system
        from derivations.declare.claims import stated

        names: set[str] = set()
        for number, entry in enumerate(made.claims, 1):
            with fields.entry_of("claim", number):
                name = stated.claim(system.system(made), entry, number).id
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


def _without_wick(made: Declaration) -> None:
    """Raise `UsageError` for a Wick power, which has no meaning on inputs with eigenvalues."""
    if any(group.unit.calls("wick") for group in made.groups):
        raise UsageError(
            "wick(k, w) is a Wick power where |w|^2 is the variance of its field, which it is not on [inputs]; write "
            "the polynomial, such as w^2 - 1"
        )


def _formulas(made: Declaration) -> None:
    """Check that a default that differs from unit to unit is a constant of rules only."""
    for number in made.numbers:
        if number.formula is None:
            continue
        if any(number.name in group.scalars for group in made.students):
            said = f"{number.name} starts at the same number in every unit; give other initial values by --initial"
            raise fields.Mistake(said, f"parameters.{number.name}", "default")
        if not any(number.name in made.constants(group) for group in made.students):
            said = f"no unit and no rule uses {number.name}"
            raise fields.Mistake(said, f"parameters.{number.name}", "default")


def _trained(made: Declaration) -> None:
    for group in made.students:
        words = (*group.slots, *group.own)
        if not any(made.moves(group, word) for word in words):
            raise fields.Mistake(
                f"nothing of {group.text!r} is trained: name {', '.join(words)}", "training", "trained"
            )


def _readouts(made: Declaration, values: dict[str, float]) -> None:
    """Check that readouts that are an expression in j have a value for every declared unit."""
    from derivations.declare.rows import readout

    for number, one in ((k, one) for k, one in made.fixed_readouts() if one.output != COPIED):
        group = made.groups[number]
        side = "student" if number < len(made.students) else "teacher"
        table = f"{side}.{group.name}" if group.name else side
        _as(table, "output", readout, one, group.units, values)


def _names(made: Declaration, parameters: Any) -> None:
    """Check that the user's numbers do not have names of variables of a run."""
    from derivations.declare.parameter_class import rows

    found = rows(parameters)
    taken = {word for block in found.blocks for word in (block.name, *block.dims)}
    for number in made.numbers:
        if (
            number.name in taken
            or (made.clocked and number.name == schedules.TIME)
            or (made.inputs is not None and OF_INPUTS.fullmatch(number.name))
        ):
            raise fields.Mistake(
                f"the name {number.name!r} is already the name of a variable of a run: choose another",
                "parameters",
                number.name,
            )


def _events(made: Declaration, parameters: Any) -> None:
    from derivations.declare.parameter_class import rows

    at, seen = rows(parameters), set()
    known = [block.name for block in at.moving] + [made.students[g].named(word) for g, word, _ in at.scalars]
    known += [name for name, *_ in velocity_blocks.described(at)]
    taken = {*known, *(block.name for block in at.fixed), "time", "loss", "error", "classification_error"}
    taken |= {schedules.TIME} if made.clocked else set()
    for number, event in enumerate(made.events, 1):
        with fields.entry_of("event", number):
            if event.of not in known:
                raise fields.Mistake(
                    f"event {event.name} watches {event.of!r}, which is not an order parameter that changes; "
                    f"{fields.near(event.of, known)}",
                    "event",
                    "of",
                )
            if event.name in seen or event.name in taken:
                raise fields.Mistake(
                    f"the name {event.name!r} of an event already exists: choose another", "event", "name"
                )
            seen.add(event.name)


def _seen(made: Declaration, parameters: Any) -> None:
    """Check that values and the rates of memories only use existing parts of the state."""
    from derivations.declare.parameter_class import rows

    at = rows(parameters)
    shapes = {block.name: block.shape[-2:] for block in at.moving}
    shapes |= {made.students[g].named(word): (count,) for g, word, count in at.scalars}
    places = {"step": ("training", "step"), "decay": ("training", "decay")}
    every = [(*places.get(one.name, ("training", "rates")), one.seen) for one in made.schedules]
    every += [(f"memory.{one.name}", "rate", one.seen) for one in made.memories]
    for table, key, names in every:
        for name in names:
            found = entry(name)
            if found is None:
                continue
            if found[0] in {name for name, *_ in velocity_blocks.described(at)}:
                said = f"{key} uses {name}, but values can use only overlaps and numbers, not velocities"
                raise fields.Mistake(said, table, key)
            if found[0] not in shapes:
                said = f"{key} uses {name}, but {found[0]} is not an order parameter that changes"
                raise fields.Mistake(f"{said}; {fields.near(found[0], shapes)}", table, key)
            shape = shapes[found[0]]
            shape = (at.spaces, *shape) if at.stack and len(shape) == 2 and len(found[1]) == 3 else shape
            if found[1] and (len(found[1]) != len(shape) or any(i > n for i, n in zip(found[1], shape, strict=True))):
                said = f"{key} uses {name}, but {found[0]} is {' x '.join(map(str, shape))}"
                raise fields.Mistake(said, table, key)
    squares = memory.of_squares(made)
    plain = made.weights == "free" and made.inputs is None and not any(g.unit.calls("wick") for g in made.students)
    if squares and made.limit != "online" and not plain:
        where = "a flow" if made.limit == "flow" else "giant steps"
        said = f"{squares[0]} in {where} is that of free weights on isotropic inputs; take limit = 'online'"
        raise fields.Mistake(said, f"memory.{made.memories[0].name}", "rate")


def _start(made: Declaration, parameters: Any) -> None:
    """Check that the teacher's Gram matrix and given overlaps are those of vectors."""
    import numpy as np

    from derivations.declare import initial

    if made.gram is not None:
        _as("teacher", "gram", initial.teacher_gram, parameters)
    if not made.start.arrays:
        return
    known = [block.name for block in initial.rows(parameters).blocks]
    readouts = [group.named(word) for group in made.students for word in group.trained_readouts]
    stated = [name for name, _ in made.start.arrays if name not in readouts]
    if not stated:
        return
    for name in stated:
        if name not in known:
            raise fields.Mistake(f"unknown key {name!r}; {fields.near(name, known)}", "start", name)
    key = stated[0]
    found = _as("start", key, initial.enter, parameters, None, np.random.default_rng(0))
    for block in initial.rows(parameters).moving:
        squares = np.diagonal(found.state[block.name], axis1=-2, axis2=-1)
        if block.symmetric and ((squares.sum(0) if block.stack else squares) <= 0).any():
            raise fields.Mistake(f"{block.name} belongs to a weight vector that is zero", "start", block.name)

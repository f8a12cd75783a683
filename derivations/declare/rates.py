"""The entry `rates` of [training]: factors of `step` for vectors, readouts and biases."""

from collections.abc import Mapping
from typing import Any

from derivations.declare import fields
from derivations.declare.declaration import Group


def rates(
    training: Mapping[str, Any], students: tuple[Group, ...], trained: tuple[str, ...]
) -> tuple[tuple[str, float], ...]:
    """Return (name, factor) of every slot, readout and scalar that has a factor; one number is that of all.

    Raises `fields.Mistake` for a name that is not trained, and for a factor below 0.
    """
    given = training.get("rates")
    if given is None:
        return ()
    known = _moving(students, trained)
    if not isinstance(given, Mapping):
        given = dict.fromkeys((word for word, _ in known), fields.real(training, "rates", "training", minimum=0.0))
    every = {name for pair in known for name in pair}
    for name in given:
        if name not in every:
            raise fields.Mistake(
                f"rates names {fields.shown(name)}, which is not trained; {fields.near(name, every)}", "training", "rates"
            )
    return tuple((name, fields.real({name: value}, name, "training.rates", minimum=0.0)) for name, value in given.items())


def _moving(students: tuple[Group, ...], trained: tuple[str, ...]) -> list[tuple[str, str]]:
    """The names of all that is trained, without and with the name of its group.

    >>> from derivations.declare.grammar import read
    >>> _moving((Group("fast", read("w + b"), "w + b", ("w",), ("b",), 1, "trained"),), ("w",))
    [('w', 'fast_w'), ('a', 'fast_a')]
    """
    return [
        (word, group.named(word))
        for group in students
        for word in (*group.slots, *group.own)
        if word in trained or group.named(word) in trained or (word == "a" and group.output == "trained")
    ]

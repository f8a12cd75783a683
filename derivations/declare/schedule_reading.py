"""Parse a user's text as a schedule: an expression in t, or pairs [time, value from this time on]."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from derivations.declare import fields
from derivations.declare.grammar import Tree
from derivations.declare.schedules import SMOOTH, SWITCHING, TIME, Names, Schedule, Switch, affine


def value(
    table: Mapping[str, Any], key: str, place: str, names: Names, *, named: str = "", above: bool = False
) -> float | Schedule:
    """Return a number, or the schedule of the parameter `named` (by default `key`).

    Args:
        table: the entries of a table of the declaration, with `key` among them.
        place: the name of the table, for messages.
        names: the names in expressions.
        above: True if 0 is invalid.
    """
    entry, name = table[key], named or key
    reader = _Reader(key, place, name, names)
    if isinstance(entry, list):
        return _pairs(entry, reader, above)
    if not isinstance(entry, str):
        bound: Any = {"above": 0.0} if above else {"minimum": 0.0}
        return fields.real(table, key, place, **bound)
    tree = reader.piece(entry)
    return Schedule(name, entry.strip(), (tree,), (), tuple(reader.switches), above, reader.seen)


def _pairs(pairs: list[Any], reader: "_Reader", above: bool) -> Schedule:
    """The schedule of pairs [time, value]."""
    key, place, name = reader.key, reader.place, reader.name
    if not pairs or not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise fields.Mistake(
            f"{key} is a number, an expression in t, or a list of pairs such as [[0, 1.0], [50, 0.2]]", place, key
        )
    times = [fields.real({key: time}, key, place, minimum=0.0) for time, _ in pairs]
    if times[0] != 0.0:
        raise fields.Mistake(f"times of {key} must increase from 0, but the first is {times[0]:g}", place, key)
    wrong = next((k for k in range(1, len(times)) if times[k] <= times[k - 1]), 0)
    if wrong:
        raise fields.Mistake(
            f"times of {key} must increase from 0, but {times[wrong]:g} follows {times[wrong - 1]:g}", place, key
        )
    reader.switches += [
        Switch(f"{name}_from_{k}", Tree("-", parts=(Tree("name", TIME), Tree("number", value=time))))
        for k, time in enumerate(times[1:], 1)
    ]
    starts = tuple(switch.name for switch in reader.switches)
    pieces = tuple(reader.piece(entry) for _, entry in pairs)
    text = ", ".join(f"{entry} from {time:g} on" for time, (_, entry) in zip(times, pairs, strict=True))
    return Schedule(name, text, pieces, starts, tuple(reader.switches), above, reader.seen)


class _Reader:
    """Parses the expressions of one value, and collects their switches and their names of state variables."""

    def __init__(self, key: str, place: str, name: str, names: Names) -> None:
        self.key, self.place, self.name, self.names = key, place, name, names
        self.switches: list[Switch] = []
        self.seen: tuple[str, ...] = ()

    def refuse(self, sentence: str) -> fields.Mistake:
        return fields.Mistake(sentence, self.place, self.key)

    def piece(self, entry: Any) -> Tree:
        """The syntax tree of an expression or a number."""
        if not isinstance(entry, str):
            return Tree("number", value=fields.real({self.key: entry}, self.key, self.place))
        names = (TIME, *self.names.numbers, *self.names.memories)
        tree = fields.expression(entry, self.place, self.key, names, entries=True)
        wrong = [call.word for call in tree.walk() if call.kind == "call" and call.word not in (*SMOOTH, *SWITCHING)]
        if wrong:
            raise self.refuse(f"{self.key} takes the functions {', '.join((*SMOOTH, *SWITCHING))}, not {wrong[0]}")
        self.seen = tuple(dict.fromkeys([*self.seen, *self.names.seen(tree)]))
        return self.switched(tree, entry)

    def switched(self, node: Tree, text: str) -> Tree:
        """The tree with jumps and kinks in time written by switches; relu and abs of the state may have kinks
        anywhere.
        """
        if node.kind != "call" or node.word not in SWITCHING:
            return dataclasses.replace(node, parts=tuple(self.switched(part, text) for part in node.parts))
        (argument,) = node.parts
        variables = self.names.seen(argument)
        if variables and node.word in ("relu", "abs"):
            return dataclasses.replace(node, parts=(self.switched(argument, text),))
        if variables or affine(argument, self.names.numbers) is None:
            change = "jumps" if variables else "jumps or bends"
            raise self.refuse(
                f"a value {change} only at fixed times: {node.word}(..) must have an argument that is linear in "
                f"t, but got {text!r}"
            )
        switch = Tree("name", f"{self.name}_switch_{len(self.switches) + 1}")
        self.switches.append(Switch(switch.word, argument))
        twice = Tree("*", parts=(Tree("number", value=2.0), switch))
        sign = Tree("-", parts=(twice, Tree("number", value=1.0)))
        factor = {"step": switch, "sign": sign, "relu": switch, "abs": sign}[node.word]
        return factor if node.word in ("step", "sign") else Tree("*", parts=(factor, argument))

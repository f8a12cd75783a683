"""Schedules as the source text of functions for NumPy, JAX and numba."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from derivations.declare import symbols
from derivations.declare.declaration import Declaration
from derivations.declare.grammar import Tree, entry
from derivations.declare.memory import of_squares, vectors_of
from derivations.declare.rows import Rows
from derivations.declare.schedules import BEFORE, TIME, Schedule

CHOSEN = '''def chosen(switch, one, other):
    """One value where a switch is 1, else another."""
    return np.where(switch > 0.5, one, other)
'''


WHOLE = '''def whole(parts):
    """The Gram matrix of vectors, by those of their parts if there are several."""
    if parts.ndim == 3:
        return parts.sum(0)
    return parts
'''


def switches(changing: Sequence[Schedule]) -> list[str]:
    """The names of all switches, in the order of the arguments of generated functions."""
    return [switch.name for schedule in changing for switch in schedule.switches]


def seen(declared: Declaration, changing: Sequence[Schedule]) -> list[str]:
    """The state variables in values and in the rates of memories, in the order of the arguments of generated
    functions.
    """
    names, gradients = (
        [name for member in (*changing, *declared.memories) for name in member.seen],
        of_squares(declared),
    )
    return list(dict.fromkeys(name for name in names if name not in gradients))


def settles(declared: Declaration, changing: Sequence[Schedule]) -> bool:
    """Return True if values are computed between gradient and step: some depend on the state, or there are memories."""
    return bool(declared.memories) or any(schedule.seen for schedule in changing)


def values(changing: Sequence[Schedule], declared: Declaration) -> str:
    """The function values(t, on, numbers, state): one value for each schedule.

    Arguments: the time, switches (n,), the user's shared numbers, and the state variables of `seen`. Values that depend
    on the state are NaN if they are negative.
    """
    places = _places(changing, declared)
    lines = ["def values(t, on, numbers, state):", '    """The values of training at a time."""']
    for k, schedule in enumerate(changing):
        written = _python(schedule.pieces[0], places)
        for switch, piece in zip(schedule.starts, schedule.pieces[1:], strict=True):
            written = f"chosen({places[switch]}, {_python(piece, places)}, {written})"
        lines.append(f"    value_{k} = {written}")
        lines += [f"    value_{k} = chosen(1.0 * (value_{k} >= 0.0), value_{k}, np.nan)"] if schedule.seen else []
    lines.append(f"    return ({''.join(f'value_{k}, ' for k in range(len(changing)))})")
    return f"{CHOSEN}\n\n" + "\n".join(lines) + "\n"


def rates_of_memories(changing: Sequence[Schedule], declared: Declaration) -> str:
    """The function remembered(t, numbers, state, squares): the rates of the memories.

    `squares` are the squared gradients in these rates.
    """
    places = _places(changing, declared)
    places |= {name: f"squares[{k}]" for k, name in enumerate(of_squares(declared))}
    rates = [_python(memory.rate, places) for memory in declared.memories]
    head = 'def remembered(t, numbers, state, squares):\n    """The rates of the memories."""\n'
    return f"{head}    return ({''.join(f'{rate} + 0.0 * t, ' for rate in rates)})\n"


def _places(changing: Sequence[Schedule], declared: Declaration) -> dict[str, str]:
    """The indices of names of an expression in the arguments of generated functions."""
    places = {name: f"on[{k}]" for k, name in enumerate(switches(changing))}
    places |= {name: f"numbers[{k}]" for k, name in enumerate(declared.names)} | {TIME: TIME}
    return places | {name: f"state[{k}]" for k, name in enumerate(seen(declared, changing))}


def at_time(declared: Declaration, changing: Sequence[Schedule], parameter_text: str) -> str:
    """The function at_time(count, step_size, ..) -> (step_size, (..)): the arguments of all functions at step `count`.

    A switch changes at the first step whose time is less than `BEFORE` of a step before the switch, or later. If there
    is a function `settle`, it computes all values but the noise.
    """
    later = settles(declared, changing)
    head = f"def at_time(count, step_size, {parameter_text}):\n"
    lines = [*_moment(declared, changing), *_placed(declared, changing, "noise")]
    for name in declared.names:
        lines += _placed(declared, changing, name, f"n_{name}")
    if not later:
        lines += [*_placed(declared, changing, "decay"), *_scaled(declared, changing)]
    lines.append(f"return {'step_size' if later else _step(changing)}, ({parameter_text})")
    return head + "".join(f"    {line}\n" for line in lines)


def settle(declared: Declaration, changing: Sequence[Schedule], parameter_text: str) -> str:
    """The function settle(count, step_size, parts, gg, scalars, ..) -> (step_size, scalars, (..)) before a step.

    Memories are updated with the squared gradients gg (students,) of the batch. Values are then computed at the new
    memories and the old Gram matrix (n, n), or (L, n, n) for the eigenspaces. Memories are the last scalars.
    """
    count = len(declared.memories)
    tick = "step_size" if declared.limit == "flow" else "1.0 / dimension[0]"
    lines = [*_moment(declared, changing, values=False), "gram = whole(parts)"]
    state = _state(declared, seen(declared, changing))
    if count:
        squares = [_square(declared, name) for name in of_squares(declared)]
        lines += [
            f"before_step = ({''.join(f'{text}, ' for text in state)})",
            f"squares = ({''.join(f'{text}, ' for text in squares)})",
            f"moved = remembered(t, {_shared(declared)}, before_step, squares)",
            f"first_memory = scalars.size - {count}",
            "added = scalars[:0]",
            *(f"added = np.append(added, scalars[first_memory + {k}] + {tick} * moved[{k}])" for k in range(count)),
            "scalars = np.concatenate((scalars[:first_memory], added))",
        ]
    lines += [f"state = ({''.join(f'{text}, ' for text in state)})"]
    lines += [f"now = values(t, on, {_shared(declared)}, state)"] if changing else []
    lines += [*_placed(declared, changing, "decay"), *_scaled(declared, changing)]
    lines.append(f"return {_step(changing)}, scalars, ({parameter_text})")
    head = f"{WHOLE}\n\ndef settle(count, step_size, parts, gg, scalars, {parameter_text}):\n"
    return head + "".join(f"    {line}\n" for line in lines)


def _shared(declared: Declaration) -> str:
    """The user's shared numbers as one array."""
    names = ", ".join(f"n_{name}" for name in declared.names)
    return f"np.concatenate(({names},))" if names else "np.empty(0)"


def _moment(declared: Declaration, changing: Sequence[Schedule], values: bool = True) -> list[str]:
    """The time and the switches of a step, and the values that depend only on them."""
    online = declared.limit != "flow"
    lines = [
        "t = count / dimension[0]" if online else "t = count * step_size",
        "begin = turns" if online else f"begin = np.ceil(turns / step_size - {BEFORE!r})",
        "on = before + (after - before) * (count >= begin)",
    ]
    blind = ", ".join(["np.nan"] * len(seen(declared, changing)))
    state = f"({blind},)" if blind else "()"
    return [*lines, f"now = values(t, on, {_shared(declared)}, {state})"] if values and changing else lines


def _placed(declared: Declaration, changing: Sequence[Schedule], name: str, argument: str = "") -> list[str]:
    """The value of an argument that changes; by default its name is that of its parameter."""
    argument = argument or name
    return [f"{argument} = 0.0 * {argument} + now[{k}]" for k, schedule in enumerate(changing) if schedule.name == name]


def _step(changing: Sequence[Schedule]) -> str:
    """The step size, times the value of `step` if it changes."""
    k = next((k for k, schedule in enumerate(changing) if schedule.name == "step"), None)
    return "step_size" if k is None else f"step_size * now[{k}]"


def _scaled(declared: Declaration, changing: Sequence[Schedule]) -> list[str]:
    """The factors of vectors and of numbers, each times the value of its rate."""
    place = {schedule.name: k for k, schedule in enumerate(changing)}
    counts = [f"K_{k}" for k in range(len(declared.students))]
    sides = {"moving": [group.slots for group in declared.students], "learning": [g.own for g in declared.students]}
    lines = []
    for array, words in sides.items():
        parts, begin = [], "0"
        for group, group_words, count in zip(declared.students, words, counts, strict=True):
            for word in group_words:
                k = place.get(declared.rate(group, word))
                part = f"{array}[{begin} : {begin} + {count}]"
                parts.append(part if k is None else f"{part} * now[{k}]")
                begin = f"{begin} + {count}"
        if any("now[" in part for part in parts):
            parts += [f"{array}[{begin} :]"] if array == "learning" and declared.memories else []
            lines.append(f"{array} = np.concatenate(({', '.join(parts)},))")
    return lines


def _start(declared: Declaration, number: int, slot: str) -> str:
    """The first row of a slot of a group in the Gram matrix."""
    terms = [f"{len(group.slots)} * K_{k}" for k, group in enumerate(declared.groups[:number])]
    place = declared.groups[number].slots.index(slot)
    return " + ".join([*terms, *([f"{place} * K_{number}"] if place else [])]) or "0"


def _state(declared: Declaration, names: Sequence[str]) -> list[str]:
    """The state variables of `seen` as expressions of the Gram matrix and the scalars."""
    layout = Rows(declared, tuple(group.units for group in declared.kinds))
    kinds = list(layout.starts)
    blocks = {
        layout.block_of(first, second).name: (first, second) for i, first in enumerate(kinds) for second in kinds[i:]
    }
    memories = [memory.name for memory in declared.memories]
    texts = []
    for name in names:
        if name in memories:
            texts.append(f"scalars[scalars.size - {len(memories) - memories.index(name)}]")
            continue
        parsed = entry(name)
        assert parsed is not None
        parameter, indices = parsed
        if parameter in blocks:
            places = [(_start(declared, *kind), f"K_{kind[0]}") for kind in blocks[parameter]]
            if indices:
                subscript = ", ".join(f"{begin} + {i - 1}" for (begin, _), i in zip(places, indices[-2:], strict=True))
                texts.append(f"parts[{indices[0] - 1}, {subscript}]" if len(indices) == 3 else f"gram[{subscript}]")
            else:
                subscript = ", ".join(f"{begin} : {begin} + {count}" for begin, count in places)
                texts.append(f"gram[{subscript}].mean()")
            continue
        begin, count = _scalar_place(declared, parameter)
        texts.append(
            f"scalars[{begin} + {indices[0] - 1}]" if indices else f"scalars[{begin} : {begin} + {count}].mean()"
        )
    return texts


def _scalar_place(declared: Declaration, parameter: str) -> tuple[str, str]:
    """The index of the first number of a readout or a parameter of units among the scalars, and their count."""
    begin = "0"
    for k, group in enumerate(declared.students):
        for word in group.own:
            if group.named(word) == parameter:
                return begin, f"K_{k}"
            begin = f"{begin} + K_{k}"
    raise KeyError(parameter)


def _square(declared: Declaration, name: str) -> str:
    """The sum of squared gradients of some vectors, divided by d in an online limit."""
    parts = []
    for number, slot in vectors_of(declared, name):
        begin = _start(declared, number, slot)
        parts.append(f"gg[{begin} : {begin} + K_{number}].sum()")
    total = " + ".join(parts) or "0.0 * gg.sum()"
    return f"({total}) / dimension[0]" if declared.limit == "online" else f"({total})"


def _python(tree: Tree, places: dict[str, str]) -> str:
    """A syntax tree as Python source, with names replaced by `places`."""
    if tree.kind == "number":
        return repr(tree.value)
    if tree.kind == "name":
        return repr(math.pi) if tree.word == "pi" else places[tree.word]
    parts = [_python(part, places) for part in tree.parts]
    if tree.kind == "call":
        return f"{'' if tree.word in ('logistic', 'relu') else 'np.'}{tree.word}({parts[0]})"
    return f"({parts[0]} {'**' if tree.kind == '^' else tree.kind} {parts[1]})"


@functools.lru_cache(maxsize=64)
def functions(changing: tuple[Schedule, ...], declared: Declaration, library: Any) -> dict[str, Callable[..., Any]]:
    """The functions `values` and `remembered` with the arrays of a library, NumPy or `jax.numpy`."""
    space: dict[str, Any] = {"np": library}
    text = "\n\n".join([values(changing, declared), rates_of_memories(changing, declared)])
    exec("\n\n".join([*symbols.helpers(text), text]), space)
    return {name: space[name] for name in ("values", "remembered")}

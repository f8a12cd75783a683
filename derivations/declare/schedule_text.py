"""The values of `schedules` as the text of functions for NumPy, JAX and numba."""

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from derivations.declare import symbols
from derivations.declare.declaration import Declaration, Group
from derivations.declare.grammar import Tree
from derivations.declare.schedules import BEFORE, TIME, Schedule

CHOSEN = '''def chosen(switch, one, other):
    """One value where a switch is 1, else another."""
    return np.where(switch > 0.5, one, other)
'''


def switches(changing: Sequence[Schedule]) -> list[str]:
    """The names of all switches, in the order in which written functions take their values."""
    return [switch.name for schedule in changing for switch in schedule.switches]


def values(changing: Sequence[Schedule], shared: Sequence[str]) -> str:
    """The function values(t, on, numbers) of the time, switches (n,) and the user's numbers: one for each schedule."""
    places = {name: f"on[{k}]" for k, name in enumerate(switches(changing))}
    places |= {name: f"numbers[{k}]" for k, name in enumerate(shared)} | {TIME: TIME}
    lines = ["def values(t, on, numbers):", '    """The values of training at a time."""']
    for k, schedule in enumerate(changing):
        written = _python(schedule.pieces[0], places)
        for switch, piece in zip(schedule.starts, schedule.pieces[1:], strict=True):
            written = f"chosen({places[switch]}, {_python(piece, places)}, {written})"
        lines.append(f"    value_{k} = {written}")
    lines.append(f"    return ({', '.join(f'value_{k}' for k in range(len(changing)))},)")
    return f"{CHOSEN}\n\n" + "\n".join(lines) + "\n"


def at_time(declared: Declaration, changing: Sequence[Schedule], given: str) -> str:
    """The function at_time(count, step_size, ..) -> (step_size, (..)): the arguments of all functions at step `count`.

    A switch is thrown at the first step that is not more than `BEFORE` of a step before it.
    """
    online = declared.limit == "online"
    place = {one.name: k for k, one in enumerate(changing)}

    def scaled(array: str, groups: Iterable[tuple[Group, Iterable[str]]], counts: Iterable[str]) -> list[str]:
        """An array by parts, each times the value that is its rate."""
        parts, begin = [], "0"
        words = [(group, word, count) for (group, own), count in zip(groups, counts, strict=True) for word in own]
        for group, word, count in words:
            k = place.get(declared.rate(group, word))
            part = f"{array}[{begin} : {begin} + {count}]"
            parts.append(part if k is None else f"{part} * now[{k}]")
            begin = f"{begin} + {count}"
        return [f"{array} = np.concatenate(({', '.join(parts)},))"] if any("now[" in part for part in parts) else []

    counts = [f"K_{k}" for k in range(len(declared.students))]
    shared = ", ".join(f"n_{name}" for name in declared.names)
    lines = [
        "t = count / dimension[0]" if online else "t = count * step_size",
        "begin = turns" if online else f"begin = np.ceil(turns / step_size - {BEFORE!r})",
        "on = before + (after - before) * (count >= begin)",
        f"now = values(t, on, np.concatenate(({shared},)))" if shared else "now = values(t, on, np.empty(0))",
        *(f"{name} = 0.0 * {name} + now[{place[name]}]" for name in ("noise", "decay") if name in place),
        *scaled("moving", [(group, group.slots) for group in declared.students], counts),
        *scaled("learning", [(group, group.own) for group in declared.students], counts),
    ]
    step = f"step_size * now[{place['step']}]" if "step" in place else "step_size"
    lines.append(f"return {step}, ({given})")
    head = f"def at_time(count, step_size, {given}):\n"
    return head + "".join(f"    {line}\n" for line in lines)


def _python(tree: Tree, places: dict[str, str]) -> str:
    """A tree as Python, names by their places."""
    if tree.kind == "number":
        return repr(tree.value)
    if tree.kind == "name":
        return repr(math.pi) if tree.word == "pi" else places[tree.word]
    parts = [_python(part, places) for part in tree.parts]
    if tree.kind == "call":
        return f"{'' if tree.word == 'logistic' else 'np.'}{tree.word}({parts[0]})"
    return f"({parts[0]} {'**' if tree.kind == '^' else tree.kind} {parts[1]})"


@functools.lru_cache(maxsize=64)
def function(changing: tuple[Schedule, ...], shared: tuple[str, ...], library: Any) -> Callable[..., tuple[Any, ...]]:
    """The function `values` with the arrays of a library, NumPy or `jax.numpy`."""
    space: dict[str, Any] = {"np": library}
    text = values(changing, shared)
    exec("\n\n".join([*symbols.helpers(text), text]), space)
    return space["values"]

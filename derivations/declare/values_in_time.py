"""Schedules, and the rates of memories, at a flat state (`arrays`)."""

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from derivations.declare import memory, schedule_text
from derivations.declare.arrays import Arguments, Means, View, rows_of, squares, whole
from derivations.declare.declaration import Declaration
from derivations.declare.grammar import entry
from derivations.declare.schedules import Schedule


class ValuesInTime:
    """The schedules in use and the memories of a declaration, as functions of arrays of one library, `xp`.

    The time is the last entry of a flat state, after the memories.
    """

    def __init__(self, xp: Any, declared: Declaration, changing: tuple[Schedule, ...]) -> None:
        self.xp, self.declared, self.changing = xp, declared, changing
        self.written = schedule_text.functions(changing, declared, xp) if changing or declared.memories else {}
        self.names = schedule_text.seen(declared, changing)
        self.pieces = any(len(schedule.pieces) > 1 or schedule.switches for schedule in changing)

    def values(self, y: Any, a: Arguments, view: View) -> dict[str, Any]:
        """The values at a state, by name."""
        # Values of pieces that are not in force are computed as well.
        with np.errstate(all="ignore") if self.pieces else contextlib.nullcontext():
            values = self.written["values"](y[-1], a.switches, a.numbers, self.state(y, a, view))
        return {schedule.name: value + 0.0 * y[-1] for schedule, value in zip(self.changing, values, strict=True)}

    def arguments(self, y: Any, a: Arguments, view: View) -> Arguments:
        """The arguments with the values at a state in place of those at the start."""
        if not self.changing:
            return a
        xp, declared, current = self.xp, self.declared, self.values(y, a, view)
        step, decay, gain, noise = a.rates[:4]
        if declared.limit == "online":
            gain = gain * current["step"] ** 2 / step**2 if "step" in current else gain
            gain = gain / current["batch"] if "batch" in current else gain  # the value of one sample, in the arguments
        step = current.get("step", step)
        rates = xp.stack([step, current.get("decay", decay), gain, current.get("noise", noise), *a.rates[4:]])
        shared = [current.get(name, a.numbers[k]) for k, name in enumerate(declared.names)]
        numbers = xp.stack(shared) if any(name in current for name in declared.names) else a.numbers
        return self._speeds(a, current)._replace(rates=rates, numbers=numbers)

    def _speeds(self, a: Arguments, current: dict[str, Any]) -> Arguments:
        """The arguments with the factors of the step that change."""
        if not any(name.startswith("rate_") for name in current):
            return a
        declared, moves, moving, row, scalar = self.declared, [], [], 0, 0
        for group, count in zip(declared.students, a.sizes, strict=False):
            for slot in group.slots:
                moves.append(a.moves[row : row + count] * current.get(declared.rate(group, slot), 1.0))
                row += count
            for word in group.own:
                moving.append(a.moving[scalar : scalar + 1] * current.get(declared.rate(group, word), 1.0))
                scalar += 1
        concatenate = self.xp.concatenate
        return a._replace(moves=concatenate(moves), moving=concatenate(moving) if moving else a.moving)

    def state(self, y: Any, a: Arguments, view: View) -> tuple[Any, ...]:
        """The state variables in values and in the rates of memories (`schedule_text.seen`)."""
        if not self.names:
            return ()
        layout = rows_of(self.declared, a.sizes)
        G, memories = whole(view.G), [memory_variable.name for memory_variable in self.declared.memories]
        blocks, variables = {block.name: block for block in layout.blocks}, []
        for name in self.names:
            if name in memories:
                variables.append(y[y.shape[0] - 1 - len(memories) + memories.index(name)])
                continue
            parameter, indices = entry(name) or ("", ())
            if parameter in blocks:
                whole_or_parts = view.G if len(indices) == 3 else G
                values = whole_or_parts[..., blocks[parameter].rows, blocks[parameter].columns]
            else:
                values = _own(self.declared, a, view, parameter)
            variables.append(values[tuple(i - 1 for i in indices)] if indices else values.mean())
        return tuple(variables)

    def rates_of_memories(self, y: Any, a: Arguments, view: View, means: Sequence[Means], pull: Any) -> list[Any]:
        """The rates of the memories; `a` are the arguments before their values are computed, `pull` is the mean
        drift.
        """
        xp, declared = self.xp, self.declared
        if not declared.memories:
            return []
        if declared.limit == "online":
            second = means[0].second if declared.inputs is None else whole(squares(means, a))
            squared = xp.diagonal(second) * a.rates[2] / a.rates[0] ** 2  # E[c c]/B
            if "batch" in (current := self.values(y, a, view)):
                squared = squared / current["batch"]
        else:
            squared = ((pull @ xp.linalg.pinv(view.G, hermitian=True)) * pull).sum(1)
            squared = squared + a.rates[2] * xp.diagonal(means[0].second)  # the noise of giant steps
        starts = rows_of(declared, a.sizes).starts
        sums = []
        for name in memory.of_squares(declared):
            places = [(starts[kind], a.sizes[kind[0]]) for kind in memory.vectors_of(declared, name)]
            sums.append(sum(squared[begin : begin + count].sum() for begin, count in places) + 0.0 * y[-1])
        return list(self.written["remembered"](y[-1], a.numbers, self.state(y, a, view), tuple(sums)))


def _own(declared: Declaration, a: Arguments, view: View, parameter: str) -> Any:
    """A readout or a number of the student units, by its name in a run."""
    unit = row = 0
    for group, count in zip(declared.students, a.sizes, strict=False):
        for readout in group.readouts:
            if group.named(readout.word) == parameter:
                return view.w[declared.heads.index(readout.head), unit : unit + count]
        for b, word in enumerate(group.scalars):
            if group.named(word) == parameter:
                return view.bias[row + b, :count]
        unit, row = unit + count, row + len(group.scalars)
    raise KeyError(parameter)

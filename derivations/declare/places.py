"""Positions of all numbers of a state: tables that turn a flat vector into a Gram matrix and readouts."""

import dataclasses

import numpy as np

from derivations.contract import Initial
from derivations.declare import speeds
from derivations.declare.parameter_class import rows
from derivations.declare.rows import Rows


@dataclasses.dataclass
class Known:
    """Layout of the vector [state, constants]: `values` are its constants so far, after `size` of state."""

    initial: Initial
    size: int
    values: list[float]

    def keep(self, name: str, factor: float = 1.0) -> np.ndarray:
        """The places of a constant, which is appended times a factor."""
        return self.append(factor * np.asarray(self.initial.constants[name], float))

    def append(self, values: np.ndarray) -> np.ndarray:
        """The places of some values, which are appended."""
        start = self.size + len(self.values)
        self.values.extend(values.ravel())
        return np.arange(start, start + values.size).reshape(values.shape)


def known_places(initial: Initial) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return the constants, and the place of every number in [state, constants].

    `gram` (n, n), or (L, n, n) with several eigenspaces; `outs` (watched answers, units) the weights in f - f*,
    negative for a teacher, and 0 if a group does not contribute to an answer; `biases` (scalars, most units); `rows`,
    `columns` of the Gram matrix for the entries of the state (those of overlaps, which come first), and `entries`,
    their flat places among the students' rows; `moves` (students,), `moving` (r,): their factors of the step
    (`speeds`).
    """
    at = rows(initial.parameters)
    layout = at.layout
    known = Known(initial, len(layout.pack(initial.state)), [])
    places = {block.name: layout.places(block.name, known.size) for block in at.moving}
    space, rows_, columns = _entries(at, places)
    table: dict[str, np.ndarray] = {"rows": rows_, "columns": columns}
    table["entries"] = (space * at.students + rows_) * at.total + columns
    places |= {block.name: known.keep(block.name) for block in at.fixed}
    table["gram"] = at.gram(places).astype(np.int64)
    table |= _own(at, known)
    table["moves"] = speeds.of_vectors(initial.parameters)
    table["moving"] = speeds.of_scalars(initial.parameters)
    return np.array(known.values), table


def _entries(at: Rows, places: dict[str, np.ndarray]) -> np.ndarray:
    """Eigenspace, row and column (3, entries) of the Gram matrix of all overlaps of the state, students' rows first."""
    entries = np.zeros((3, sum(part.count(0) for part in at.layout.parts[: len(at.moving)])), np.int64)
    for block in at.moving:
        here = places[block.name].ravel()
        *space, row, column = (index.ravel() for index in np.indices(block.shape))
        entries[1:, here] = row + block.rows.start, column + block.columns.start
        entries[0, here] = space[0] if space else 0
    swapped = entries[1] > entries[2]
    entries[1:, swapped] = entries[:0:-1, swapped]
    return entries


def _own(at: Rows, known: Known) -> dict[str, np.ndarray]:
    """Return the places of readouts and of the numbers of units, with those that only rules use last."""
    declared, most = at.declaration, max(at.units)
    own: dict[tuple[int, str], np.ndarray] = {}
    for number, word, _ in at.scalars:
        group = declared.students[number]
        own[number, word] = at.layout.places(group.named(word), known.size)
    outs: list[list[int]] = [[] for _ in declared.watched]
    biases = []
    for number, group in enumerate(declared.groups):
        for head, weights in zip(declared.watched, outs, strict=True):
            one = declared.readout(number, head)
            found = own.get((number, one.word)) if one is not None and at.is_student(number) else None
            if one is None:
                found = np.full(at.sizes[number], known.append(np.zeros(1))[0])
            elif found is None:
                sign = 1.0 if at.is_student(number) else -1.0
                found = known.keep(declared.readout_name(number, head), sign)
            weights += list(found)
        for word in group.scalars:
            row = np.zeros(most, np.int64)
            row[: at.sizes[number]] = own[number, word]
            biases.append(row)
    for number, group in enumerate(declared.students):
        for word in declared.constants(group):
            row = np.zeros(most, np.int64)
            row[: at.sizes[number]] = known.keep(group.named(word))
            biases.append(row)
    return {
        "outs": np.array(outs, np.int64),
        "biases": np.array(biases, np.int64).reshape(len(biases), most),
    }

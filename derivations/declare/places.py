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
    row_layout = rows(initial.parameters)
    layout = row_layout.layout
    constants = Known(initial, len(layout.pack(initial.state)), [])
    places = {block.name: layout.places(block.name, constants.size) for block in row_layout.moving}
    space, rows_, columns = _entries(row_layout, places)
    table: dict[str, np.ndarray] = {"rows": rows_, "columns": columns}
    table["entries"] = (space * row_layout.students + rows_) * row_layout.total + columns
    places |= {block.name: constants.keep(block.name) for block in row_layout.fixed}
    table["gram"] = row_layout.gram(places).astype(np.int64)
    table |= _own(row_layout, constants)
    table["moves"] = speeds.of_vectors(initial.parameters)
    table["moving"] = speeds.of_scalars(initial.parameters)
    return np.array(constants.values), table


def _entries(row_layout: Rows, places: dict[str, np.ndarray]) -> np.ndarray:
    """Eigenspace, row and column (3, entries) of the Gram matrix of all overlaps of the state, students' rows first."""
    entries = np.zeros((3, sum(part.count(0) for part in row_layout.layout.parts[: len(row_layout.moving)])), np.int64)
    for block in row_layout.moving:
        state_places = places[block.name].ravel()
        *space, row, column = (index.ravel() for index in np.indices(block.shape))
        entries[1:, state_places] = row + block.rows.start, column + block.columns.start
        entries[0, state_places] = space[0] if space else 0
    swapped = entries[1] > entries[2]
    entries[1:, swapped] = entries[:0:-1, swapped]
    return entries


def _own(row_layout: Rows, constants: Known) -> dict[str, np.ndarray]:
    """Return the places of readouts and of the numbers of units, with those that only rules use last."""
    declared, largest = row_layout.declaration, max(row_layout.units)
    number_places: dict[tuple[int, str], np.ndarray] = {}
    for number, word, _ in row_layout.scalars:
        group = declared.students[number]
        number_places[number, word] = row_layout.layout.places(group.named(word), constants.size)
    outs: list[list[int]] = [[] for _ in declared.watched]
    biases = []
    for number, group in enumerate(declared.groups):
        for head, weights in zip(declared.watched, outs, strict=True):
            readout = declared.readout(number, head)
            weight_places = (
                number_places.get((number, readout.word))
                if readout is not None and row_layout.is_student(number)
                else None
            )
            if readout is None:
                weight_places = np.full(row_layout.sizes[number], constants.append(np.zeros(1))[0])
            elif weight_places is None:
                sign = 1.0 if row_layout.is_student(number) else -1.0
                weight_places = constants.keep(declared.readout_name(number, head), sign)
            weights += list(weight_places)
        for word in group.scalars:
            row = np.zeros(largest, np.int64)
            row[: row_layout.sizes[number]] = number_places[number, word]
            biases.append(row)
    for number, group in enumerate(declared.students):
        for word in declared.constants(group):
            row = np.zeros(largest, np.int64)
            row[: row_layout.sizes[number]] = constants.keep(group.named(word))
            biases.append(row)
    return {
        "outs": np.array(outs, np.int64),
        "biases": np.array(biases, np.int64).reshape(len(biases), largest),
    }

"""The start of a training script, in NumPy for every back end: fixed vectors, student vectors, and their numbers.

Fixed vectors (teachers, named means) lie along the first axes of every block of the inputs. Students have the
distribution of `derivations.declare.initial.draw`: random directions, vectors with an overlap with one teacher and
orthogonal to all other vectors, or vectors with the declared overlaps.
"""

import dataclasses
from collections.abc import Mapping

import numpy as np

from derivations.contract import Initial, UsageError
from derivations.declare import spectra
from derivations.declare.initial import partners, weight_names
from derivations.declare.model import place
from derivations.declare.parameter_class import rows
from derivations.declare.rows import Rows

MOST_NUMBERS = 2000
"""Largest number of overlaps that a script contains as literals."""
VECTORS = '''
def vectors(grams):
    """Vectors with these overlaps in every block of the inputs, along the first axes of each block."""
    rows = np.zeros((len(grams[0]), d))
    for gram, first in zip(grams, {first}):
        values, directions = np.linalg.eigh(gram)
        rows[:, first : first + len(gram)] = directions * np.sqrt(np.maximum(values, 0.0))
    return rows

'''
DIRECTIONS = '''
def directions(rows):
    """Vectors of length 1."""
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)

'''


@dataclasses.dataclass(frozen=True)
class Start:
    """Text of the fixed vectors (`fixed`) and of the function `start(rng)` (`function`), and the constants it reads."""

    fixed: str
    function: str
    constants: tuple[str, ...]

    @classmethod
    def build(cls, initial: Initial) -> "Start":
        """Return the start for an initial condition of a declaration."""
        parameters = initial.parameters
        at, blocks = rows(parameters), spectra.blocks(parameters)
        shares = np.ones(1) if blocks is None else blocks.share
        firsts = [0] if blocks is None else [0, *np.cumsum(blocks.dimension)[:-1].tolist()]
        grams = place(initial).reshape(-1, at.total, at.total)
        stated = _states_overlaps(at)
        drawn = 0 if stated else at.students
        aligned = not stated and getattr(parameters, "overlap", None) is not None
        names = weight_names(at)
        places = {name: _rows(at, number, slot, drawn) for name, number, slot in names}
        students = [name for name, number, _ in names if at.is_student(number)]
        held = [f'"{name}": rows{places[name]}' for name in places if name not in students]
        if stated:
            body, texts = [], {name: f"rows{places[name]}.copy()" for name in students}
        else:
            body, texts = _students(at, aligned, shares, firsts)
        texts |= {name: _numbers(initial.state[name], size) for name, size in _scalars(at)}
        made = _vectors(grams[:, drawn:, drawn:], shares, firsts, _count(at) if not stated else "")
        fixed = [made, f"fixed = {{{', '.join(held)}}}"]
        norms = [] if stated else [name for name, _ in at.declaration.start.norms]
        return cls(
            ("" if stated else DIRECTIONS) + "\n".join(fixed), _function(body, texts),
            (*norms, *(["overlap"] if aligned else [])),
        )  # fmt: skip


def _function(body: list[str], texts: Mapping[str, str]) -> str:
    """The function `start` of a script."""
    entries = "".join(f'        "{name}": {text},\n' for name, text in texts.items())
    lines = "".join(f"    {line}\n" for line in body)
    about = '    """The weights at the start, by name."""\n'
    return f"def start(rng):\n{about}{lines}    return {{\n{entries}    }}\n"


def _states_overlaps(at: Rows) -> bool:
    """Return True if the declaration gives the overlaps of the students directly."""
    stated = {name for name, _ in at.declaration.start.arrays}
    return any(block.name in stated for block in at.moving)


def _scalars(at: Rows) -> list[tuple[str, str]]:
    """The numbers of the students' units, each with the name of the number of units."""
    found = [(at.declaration.students[number], word) for number, word, _ in at.scalars]
    return [(group.named(word), group.named("units")) for group, word in found]


def _rows(at: Rows, number: int, slot: str, drawn: int) -> str:
    """Return the rows of a slot among the written rows, as a slice; "" for all of them."""
    own = at.of(number, slot)
    begin, end = own.start - drawn, own.stop - drawn
    return "" if end - begin == at.total - drawn else f"[{begin}:{end}]"


def _count(at: Rows) -> str:
    """Return the name of the number of fixed vectors, if these are one slot of one group of teachers; else ""."""
    fixed = [number for _, number, _ in weight_names(at) if not at.is_student(number)]
    plain = len(fixed) == 1 and fixed[0] < len(at.declaration.groups)
    return at.declaration.groups[fixed[0]].named("teachers") if plain else ""


def _vectors(grams: np.ndarray, shares: np.ndarray, firsts: list[int], count: str) -> str:
    """Return lines that make `rows`, vectors with the given overlaps in the blocks; `count` is the name of their
    number.
    """
    n = grams.shape[-1]
    whole = grams.sum(0)
    if n == 0:
        return "rows = np.zeros((0, d))"
    if len(grams) == 1 and np.array_equal(whole, np.eye(n)):
        return f"rows = np.eye({count or n}, d)  # orthonormal"
    if np.allclose(grams, shares[:, None, None] * whole, rtol=0, atol=1e-15 * np.abs(whole).max()):
        gram = _text(whole)
        parts = "[gram]" if len(grams) == 1 else f"[share * gram for share in {shares.tolist()}]"
        lines = [f"gram = {gram}  # overlaps", f"rows = vectors({parts})"]
    else:
        lines = [f"grams = np.array({_text(grams)})  # overlaps in every block", "rows = vectors(grams)"]
    return VECTORS.format(first=firsts) + "\n" + "\n".join(lines)


def _text(gram: np.ndarray) -> str:
    """Return one or several matrices as Python text; equal overlaps become a formula."""
    n = gram.shape[-1]
    if gram.ndim == 2 and n > 1:
        one, rest = float(gram[0, 0]), float(gram[0, 1])
        if np.array_equal(gram, np.where(np.eye(n) > 0, one, rest)):
            same = f"{one!r} * np.eye({n})" if rest == 0 else f"np.where(np.eye({n}) > 0, {one!r}, {rest!r})"
            return same
    if gram.size > MOST_NUMBERS:
        raise UsageError(f"the start has {gram.size} overlaps, but a script can contain at most {MOST_NUMBERS}")
    return (
        f"np.array([{_lines(gram)}])" if gram.ndim == 2 else "[" + ", ".join(f"[{_lines(one)}]" for one in gram) + "]"
    )


def _lines(gram: np.ndarray) -> str:
    """Return the rows of a matrix, one line each."""
    return "".join(f"\n    {row}," for row in gram.tolist()) + "\n"


def _students(at: Rows, aligned: bool, shares: np.ndarray, firsts: list[int]) -> tuple[list[str], dict[str, str]]:
    """Return the lines of `start` before its return statement, and the text of every array of student vectors."""
    body, texts, fixed = [], {}, at.total - at.students
    stated = [one for one in weight_names(at) if at.is_student(one[1])]
    count, partner = _count(at), partners(at)
    plain = len(stated) == 1 and bool(count)
    if aligned and len(shares) == 1:
        units = at.declaration.students[0].named("units")
        axes = f"{count} : {count} + {units}" if plain else f"{fixed} : {fixed + at.students}"
        body.append(f"own = np.eye(d)[{axes}]  # axes outside of all other vectors")
    elif aligned:
        body += [
            f"own = np.zeros(({at.students}, d))  # axes outside of all other vectors, in every block",
            f"for share, first in zip({shares.tolist()}, {firsts}):",
            f"    own[:, first + {fixed} : first + {fixed + at.students}] = np.sqrt(share) * np.eye({at.students})",
        ]
    for (name, number, slot), (norm, _) in zip(stated, at.declaration.start.norms, strict=True):
        own, size = at.of(number, slot), at.declaration.students[number].named("units")
        if not aligned:
            texts[name] = f"{norm} * directions(rng.normal(size=({size}, d)))"
            continue
        which = f"np.arange({size}) % {count}" if plain else f"{partner[own].tolist()}"
        along = f"overlap * directions(rows)[{which}]"
        mine = "own" if at.students == own.stop - own.start else f"own[{own.start}:{own.stop}]"
        texts[name] = f"{norm} * ({along} + np.sqrt(1 - overlap**2) * {mine})"
    return body, texts


def _numbers(values: np.ndarray, size: str) -> str:
    """An array of one number for every unit as text."""
    if np.all(values == values[0]):
        return f"np.full({size}, {float(values[0])!r})"
    return f"np.array({values.tolist()})"

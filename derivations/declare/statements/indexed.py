"""The equations of a declared model as a `Statement`: SymPy in index notation, which can be evaluated and transformed.

For gradient flows of one group of students whose means are closed forms.  The drift of w_i . u is (Stein's lemma)

    A_i[u] = a_i (sum_k a_k (V_ik w_k.u + W_ik w_i.u) - sum_j b_j (V_ij w*_j.u + W_ij w_i.u))

with V = E[phi_i' phi'] and W = E[phi_i'' phi]; correlation loss has no sum over k.
"""

import dataclasses
from typing import Any

from derivations.contract import Initial, UsageError
from derivations.declare.declaration import Declaration
from derivations.declare.kernels import Kernels
from derivations.declare.remembered import kernels
from derivations.declare.rows import Block
from derivations.declare.statements import closed
from derivations.declare.summary import conventions
from derivations.declare.system import clock, numbers, rows
from derivations.statement import Base, Definition, Equation, Named, Statement, sp

LETTERS = (("j", "l"), ("n", "p"), ("q", "r"), ("s", "u"), ("v", "z"))
"""Indices over the units of the groups of teachers."""
Vector = tuple[int, Any]
"""The vector of a unit: number of its group, index of the unit."""


@dataclasses.dataclass
class Entries(closed.Names):
    """Order parameters as indexed SymPy symbols, in the place of the symbols that a page prints."""

    def index(self, number: int, letter: str) -> Any:
        """The index `letter` over the units of a group."""
        return sp.Idx(letter, self.size(number))

    def size(self, number: int) -> Any:
        """The number of units of a group, as a symbol."""
        declared = self.rows.declaration
        side = "K" if self.rows.is_student(number) else "M"
        several = len(declared.students if self.rows.is_student(number) else declared.teachers) > 1
        return sp.Symbol(f"{side}_{number}" if several else side, integer=True, positive=True)

    def block(self, g: int, h: int) -> Block:
        """The block of overlaps of two groups, the first of them first among the rows."""
        slots = [self.rows.declaration.groups[number].slots[0] for number in (g, h)]
        first, second = (self.rows.of(number, slot) for number, slot in zip((g, h), slots, strict=True))
        return next(b for b in self.rows.blocks if b.rows == first and b.columns == second)

    def between(self, one: Vector, two: Vector) -> Any:
        """The overlap of two vectors."""
        (g, i), (h, j) = (one, two) if one[0] <= two[0] else (two, one)
        return Base(self.block(g, h).name)[i, j]

    def overlap(self, one: tuple[int, str, str], two: tuple[int, str, str]) -> Any:
        """The overlap of two vectors (group, slot, letter), as `closed.forms` asks for it."""
        return self.between((one[0], self.index(one[0], one[2])), (two[0], self.index(two[0], two[2])))


def statement(parameters: Any, tier: str) -> Statement:
    """Return the exact gradient flow of a declared model.  Raises `UsageError` for models that are not of this form."""
    declared: Declaration = parameters.declaration
    found = kernels(declared, numbers(parameters))
    if reason := _obstacle(declared, found):
        printed = not found.closed and not (declared.limit == "online" and found.second)  # as `script.page` has it
        others = "--format text has them" + (", and --format python evaluates them" if printed else "")
        raise UsageError(f"the equations of this model are not written in SymPy, because {reason}: {others}")
    if tier != "exact":
        raise UsageError(
            f"the equations of tier {tier} are not written in SymPy, as those of exact are: --format text has them"
        )
    return _Writer(declared, found, Entries(rows(parameters))).statement(parameters)


def _obstacle(declared: Declaration, found: Kernels) -> str:
    """Return why there is no statement of a model, or "" where there is one."""
    slots = {len(group.slots) for group in declared.groups}
    trained = {word for group in declared.students for word in group.own} - {"a"}
    series = any(map(bool, found.pairs)) or any(map(bool, found.means))
    reasons = (
        (found.closed, "its means have no closed form"),
        (declared.limit != "flow", "the online limit adds means of four units"),
        (declared.loss not in ("squared", "correlation"), f"its loss is {declared.loss}"),
        (declared.weights == "normalised", "its network divides by the norms of its vectors"),
        (len(declared.teachers) > len(LETTERS), f"it has more than {len(LETTERS)} groups of teachers"),
        (slots != {1} or len(declared.students) != 1, "it has several vectors in a unit or groups of students"),
        (trained, "its units have numbers of their own"),
        (series, "the means of its gates are series"),
    )  # fmt: skip
    return next((words for holds, words in reasons if holds), "")


class _Writer:
    """Writes the statement of one declaration; the students are group 0."""

    def __init__(self, declared: Declaration, found: Kernels, names: Entries) -> None:
        self.declared, self.found, self.names = declared, found, names
        self.i, self.k, self.m = (names.index(0, letter) for letter in "ikm")
        self.teachers = range(1, len(declared.groups))
        self.a = Base(declared.groups[0].named("a"))

    def readout(self, number: int, index: Any) -> Any:
        """The readout of a teacher."""
        return Base(self.declared.groups[number].named("a_star"))[index]

    def statement(self, parameters: Any) -> Statement:
        """The whole statement."""
        definitions = [d for number in (0, *self.teachers) for d in self.means(number)]
        definitions += [self.drift(number) for number in (0, *self.teachers)]
        return Statement(
            name=self.declared.name, title=self.declared.title, source=self.declared.source or "declared",
            clock=clock(self.declared), validity="Gaussian inputs, gradient flow", neglects="nothing",
            indices=self.ranges(), state=tuple(self.state()), constants=tuple(self.constants()),
            equations=tuple(self.equations()), bind=self.bind, definitions=tuple(definitions),
            rules=tuple(f"{key}: {value}" for key, value in conventions(self.declared).items()), loss=self.loss(),
        )  # fmt: skip

    def ranges(self) -> list[Any]:
        """The index sets."""
        own = [((self.i, self.k, self.m), "students")]
        return own + [(tuple(self.names.index(n, x) for x in self.letters(n)), "teachers") for n in self.teachers]

    def letters(self, number: int) -> tuple[str, ...]:
        """Two letters for the units of a group of teachers: every group has its own."""
        return LETTERS[number - 1]

    def state(self) -> list[Named]:
        """Overlaps that move, and trained readouts."""
        blocks = [(0, self.k), *((n, self.names.index(n, self.letters(n)[0])) for n in self.teachers)]
        found = [Named(self.names.between((0, self.i), (n, x)), self.names.block(0, n).meaning) for n, x in blocks]
        if self.trained:
            found.append(Named(self.a[self.i], "readout of a student"))
        return found

    @property
    def trained(self) -> bool:
        """Return True if the readouts of the students move."""
        return self.declared.students[0].output == "trained"

    def constants(self) -> list[Named]:
        """Sizes, overlaps of the teachers, readouts that stay, weight decay."""
        names, found = self.names, [Named(self.names.size(n), "units") for n in (0, *self.teachers)]
        for n in self.teachers:
            for h in range(n, len(self.declared.groups)):
                one, two = names.index(n, self.letters(n)[0]), names.index(h, self.letters(h)[1])
                found.append(Named(names.between((n, one), (h, two)), names.block(n, h).meaning))
            found.append(Named(self.readout(n, names.index(n, self.letters(n)[0])), "readout of a teacher"))
        if not self.trained:
            found.append(Named(self.a[self.i], "readout of a student"))
        return [*found, Named(sp.Symbol("decay"), "weight decay"), Named(sp.Symbol("noise"), "label noise")]

    def bind(self, initial: Initial) -> dict[str, Any]:
        """The numbers of the constants where a run starts."""
        sizes = {self.names.size(n).name: self.names.rows.sizes[n] for n in (0, *self.teachers)}
        return {**initial.constants, **sizes, "decay": initial.parameters.decay, "noise": initial.parameters.noise}

    # -- means of pairs
    def means(self, number: int) -> list[Definition]:
        """K, V and W of a student with a unit of a group; a student with itself has its own, accurate forms."""
        found = self.read(f"mean_0_{number}", number)[:1] + self.read(f"pair_0_{number}", number)[:2]
        own = [None] * len(found)
        if number == 0:
            own = self.read("mean_self_0", 0)[:1] + self.read("self_0", 0)[:2]
        words = {"K": "E[phi_i phi]", "V": "E[phi_i' phi']", "W": "E[phi_i'' phi]"}
        made = []
        for letter, value, alone in zip(words, found, own, strict=True):
            if alone is not None:
                alone = alone.xreplace({self.k: self.i})
                value = sp.Piecewise((alone, sp.Eq(self.i, self.k)), (value, True))
            who = "a student" if number == 0 else "a teacher"
            made.append(Definition((self.mean(letter, number, self.inner(number)),), value, f"{words[letter]}, {who}"))
        return made

    def read(self, name: str, number: int) -> list[Any]:
        """The outputs of a generated function of a student i and a unit of a group, in indexed symbols."""
        texts = dict(self.found.texts)
        programs = [name for name in texts if name.split("_")[0] in ("pair", "self", "mean", "quad")]
        outputs = closed.values(texts, programs, name, (0, number), self.found, self.names)
        said = self.names.index(number, closed.letters(0, number, 1)[1])
        return [value.xreplace({said: self.inner(number)}) for value in outputs]

    def inner(self, number: int) -> Any:
        """The index of a unit of a group beside student i."""
        return self.k if number == 0 else self.names.index(number, self.letters(number)[0])

    def mean(self, letter: str, number: int, index: Any) -> Any:
        """An entry of K, V or W."""
        return Base(f"{letter}_{self.names.block(0, number).name}")[self.i, index]

    # -- motion
    def drift(self, number: int) -> Definition:
        """A of the students on the vectors of a group."""
        inner = self.inner(number)
        u, i, terms = (number, inner), (0, self.i), []
        of = self.names.between
        for group in (0, *self.teachers):
            if group == 0 and self.declared.loss == "correlation":
                continue
            n = self.m if group == 0 else self.names.index(group, self.letters(group)[1])
            weight = self.a[n] if group == 0 else -self.readout(group, n)
            both = self.mean("V", group, n) * of((group, n), u) + self.mean("W", group, n) * of(i, u)
            terms.append(self.a[self.i] * sp.Sum(weight * both, n))
        return Definition((self.pull(number, inner),), sp.Add(*terms), "gradient of a student on a vector")

    def pull(self, number: int, index: Any, student: Any = None) -> Any:
        """An entry of A."""
        return Base(f"A_{self.names.block(0, number).name}")[self.i if student is None else student, index]

    def motion(self, number: int, one: Any, two: Any) -> Any:
        """D of student `one` on vector `two` of a group: what constraint and decay make of A."""
        own = self.names.between((0, one), (number, two))
        if self.declared.weights == "sphere":
            return self.pull(number, two, one) - self.pull(0, one, one) * own / self.names.between((0, one), (0, one))
        return self.pull(number, two, one) + sp.Symbol("decay") * own

    def equations(self) -> list[Equation]:
        """The rates of overlaps and trained readouts."""
        i, k = self.i, self.k
        found = [Equation(self.names.between((0, i), (0, k)), -(self.motion(0, i, k) + self.motion(0, k, i)))]
        for n in self.teachers:
            j = self.names.index(n, self.letters(n)[0])
            found.append(Equation(self.names.between((0, i), (n, j)), -self.motion(n, i, j)))
        if self.trained:
            found.append(Equation(self.a[i], -self.answer()))
        return found

    def answer(self) -> Any:
        """E[(f - y) phi_i], or -E[y phi_i]."""
        total = -sp.Add(*(self._weighted(n) for n in self.teachers))
        if self.declared.loss == "correlation":
            return total
        return sp.Sum(self.a[self.k] * self.mean("K", 0, self.k), self.k) + total

    def _weighted(self, number: int) -> Any:
        j = self.names.index(number, self.letters(number)[0])
        return sp.Sum(self.readout(number, j) * self.mean("K", number, j), j)

    def loss(self) -> Any:
        """The loss where it needs the students alone; squared loss has the teachers' own means beside."""
        return sp.Sum(self.a[self.i] * self.answer(), self.i) if self.declared.loss == "correlation" else None

"""A declared model in symbols: its vectors, overlaps and weights, and the kernels of pairs of its units.

Generated names are V_M_ww (a kind of mean, and overlaps) or mean_0_1. No number of a user has such a name
(`named.MADE`).
"""

import dataclasses
import functools
import string
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from derivations.declare.declaration import Declaration, Group
from derivations.declare.gates import Shape
from derivations.declare.rows import Rows
from derivations.statement import Base, sp

ROLES = "ijklr"
"""Roles of indices over units."""
LETTERS = "ikmnrljpqs"
"""Their letters for students, then for teachers; i and j are a student and a teacher."""


def below(*numbers: int) -> str:
    """Return integers in the form of a suffix of a name.

    >>> below(1, 12)
    '_1_12'
    """
    return "".join(f"_{number}" for number in numbers)


class Vector(NamedTuple):
    """The weight vectors of all units of a group in one slot."""

    group: int
    slot: str


@dataclasses.dataclass(frozen=True)
class Algebra:
    """Symbols of a declaration at given sizes, whose units have the `shapes` of its groups.

    `values` are the user's numbers, on which series depend.
    """

    declared: Declaration
    rows: Rows
    shapes: tuple[Shape, ...]
    values: dict[str, float] = dataclasses.field(hash=False)

    @property
    def groups(self) -> range:
        """The numbers of all groups, those of students first."""
        return range(len(self.declared.groups))

    @property
    def students(self) -> range:
        """The numbers of the groups of students."""
        return range(len(self.declared.students))

    @functools.cached_property
    def answering(self) -> tuple[int, ...]:
        """Numbers of the groups whose units are part of f - y. Teachers whose label is not used are left out."""
        return self.declared.answering

    @functools.cached_property
    def vectors(self) -> tuple[Vector, ...]:
        """All kinds of vectors in the order of the rows of the Gram matrix."""
        return tuple(Vector(*place) for place in self.rows.starts)

    @functools.cached_property
    def seen(self) -> tuple[Vector, ...]:
        """Vectors that have fields: all but the named means of the inputs."""
        return tuple(vector for vector in self.vectors if vector.group in self.groups)

    @functools.cached_property
    def mean(self) -> Vector | None:
        """Named means of the inputs, if clusters have such means."""
        return self.vectors[-1] if self.declared.moved else None

    def is_student(self, number: int) -> bool:
        """Return True for the number of a group of students."""
        return self.rows.is_student(number)

    def moves(self, vector: Vector) -> bool:
        """Return True for vectors that are trained."""
        return self.is_student(vector.group) and self.declared.moves(self.group(vector), vector.slot)

    def group(self, vector: Vector) -> Group:
        """The group that vectors belong to."""
        return self.declared.kinds[vector.group]

    def size(self, number: int) -> Any:
        """The number of units of a group, or of means."""
        if number not in self.groups:
            return sp.Symbol("means", integer=True)
        word = "units" if self.is_student(number) else "teachers"
        return sp.Symbol(self.declared.groups[number].named(word), integer=True)

    def index(self, role: str, number: int) -> Any:
        """One of five indices over the units of a group: i and j of a pair, k and l of a further one, r of a sum."""
        return sp.Idx(self._letters[role, number], self.size(number))

    @functools.cached_property
    def _letters(self) -> dict[tuple[str, int], str]:
        """The letters of the indices: none is a name of the declaration."""
        used_letters = {"a", *(number.name for number in self.declared.numbers)}
        pool = [x for x in (*LETTERS, *string.ascii_letters) if x not in used_letters]
        pool = list(dict.fromkeys(pool))
        roles = [(role, number) for number in self.groups for role in ROLES]
        roles += [("space", 0)] if self.rows.stack else []
        roles += [("cluster", 0)] if self.clusters > 1 else []
        roles += [(role, number) for number in range(len(self.groups), len(self.declared.kinds)) for role in ROLES]
        return {place: pool[n] if n < len(pool) else f"{place[0]}_{place[1]}" for n, place in enumerate(roles)}

    @functools.cached_property
    def space(self) -> tuple[Any, ...]:
        """Index of the eigenspaces of the inputs; None if there is one Gram matrix."""
        if not self.rows.stack:
            return ()
        return (sp.Idx(self._letters["space", 0], sp.Symbol("blocks", integer=True)),)

    @property
    def clusters(self) -> int:
        """Number of Gaussians in the distribution of the inputs."""
        return max(1, len(self.declared.inputs.clusters)) if self.declared.inputs is not None else 1

    @functools.cached_property
    def cluster(self) -> tuple[Any, ...]:
        """Index of the clusters of the inputs; None for a single Gaussian."""
        if self.clusters == 1:
            return ()
        return (sp.Idx(self._letters["cluster", 0], sp.Symbol("clusters", integer=True)),)

    @property
    def varied(self) -> tuple[Any, ...]:
        """Index of the clusters of the inputs if their covariances differ; else None."""
        return self.cluster if self.declared.varied else ()

    @property
    def mixed(self) -> bool:
        """Return True if the gradient is a mean over clusters, or has a part along a mean of the inputs."""
        return bool(self.cluster) or self.mean is not None

    @property
    def eigenvalue(self) -> Any:
        """Variance of the inputs in an eigenspace (of a cluster); 1 for isotropic inputs."""
        return entry_of("eigenvalue", *self.varied, *self.space) if self.declared.inputs is not None else sp.Integer(1)

    @property
    def share(self) -> Any:
        """Share of an eigenspace in the coordinates."""
        return entry_of("share", *self.space) if self.space else sp.Integer(1)

    @property
    def labels(self) -> Any:
        """Label of the samples of a cluster; None if a teacher labels them."""
        return entry_of("label", *self.cluster) if self.declared.by_cluster else None

    def mean_weight(self, k: Any) -> Any:
        """The weight of a named mean in that of a cluster."""
        return entry_of("mean_weights", *self.cluster, k)

    @property
    def of_fields(self) -> tuple[Any, ...]:
        """Index of the clusters if the distribution of the fields depends on the cluster; means of functions of fields
        have it too.
        """
        return self.cluster if self.mean is not None or self.varied else ()

    def over_clusters(self, value: Any) -> Any:
        """Return the mean of a value over the clusters; sums in the value get one more index.

        SymPy would move cases out of an inner sum, although they depend on its index.
        """
        if not self.cluster:
            return value
        mean = sp.Integer(0)
        for term in sp.Add.make_args(sp.expand_mul(value, deep=False)):
            sums = [factor for factor in sp.Mul.make_args(term) if isinstance(factor, sp.Sum)]
            summand, limits = (sums[0].function, sums[0].limits) if sums else (sp.Integer(1), ())
            factor_outside = sp.Mul(*(factor for factor in sp.Mul.make_args(term) if factor not in sums[:1]))
            mean += sp.Sum(entry_of("probability", *self.cluster) * factor_outside * summand, *limits, *self.cluster)
        return mean

    def centre(self, vector: Vector, i: Any) -> Any:
        """E[z_i] of the field u_i . x in a cluster."""
        star = "" if self.is_student(vector.group) else "_star"
        return entry_of(f"centre_{self.group(vector).named(vector.slot)}{star}", *self.cluster, i)

    def over_spaces(self, value: Any) -> Any:
        """The sum of a value over all eigenspaces."""
        return sp.Sum(value, *self.space) if self.space else value

    @property
    def radial(self) -> bool:
        """Return True if a constraint removes the complete part of a vector's gradient along this vector.

        With eigenvalues, the part u^l has lam_l times the coefficient of u, and the constraint removes only the mean.
        """
        return self.declared.weights != "free" and self.declared.inputs is None

    def label(self, first: Vector, second: Vector) -> str:
        """The name of the overlaps of two vectors in this order: Q_ww, M_ww, .."""
        return self.rows.block_of(first, second).name

    def pair(self, g: int, h: int, slots: str = "") -> str:
        """The name of a pair of groups: of the overlaps of their first slots, then slots where there are several."""
        first, second = (Vector(k, self.declared.groups[k].slots[0]) for k in (g, h))
        several = max(len(self.declared.groups[k].slots) for k in (g, h)) > 1
        return f"{self.label(first, second)}_{slots}" if slots and several else self.label(first, second)

    def overlap(self, first: Vector, i: Any, second: Vector, j: Any) -> Any:
        """u_i . v_j in an eigenspace, an entry of a block of the Gram matrix."""
        return self._entry("", first, i, second, j, *self.space)

    def product(self, first: Vector, i: Any, second: Vector, j: Any) -> Any:
        """u_i . v_j of the whole vectors."""
        return self.over_spaces(self.overlap(first, i, second, j))

    def spread(self, first: Vector, i: Any, second: Vector, j: Any) -> Any:
        """The covariance of the fields u_i . x and v_j . x (in a cluster)."""
        return self._entry("" if self.declared.inputs is None else "S_", first, i, second, j, *self.varied)

    def _entry(self, prefix: str, first: Vector, i: Any, second: Vector, j: Any, *leading: Any) -> Any:
        if self.vectors.index(first) > self.vectors.index(second):
            first, i, second, j = second, j, first, i
        return Base(f"{prefix}{self.rows.block_of(first, second).name}")[(*leading, i, j)]

    def norm(self, vector: Vector, i: Any) -> Any:
        """Return |u_i| if the network divides by it; 1 otherwise, and for teachers.

        |u_i| where the network divides by it; 1 elsewhere, and for teachers.
        """
        divided = self.declared.weights == "normalised" and self.is_student(vector.group)
        return Base(f"norm_{self.group(vector).named(vector.slot)}")[i] if divided else sp.Integer(1)

    def covariance(self, first: Vector, i: Any, second: Vector, j: Any) -> Any:
        """Return E[z_i z_j] of two fields, those of unit vectors if the network divides by norms."""
        if (first, i) == (second, j) and self.norm(first, i) != 1 and self.declared.inputs is None:
            return sp.Integer(1)
        return self.spread(first, i, second, j) / (self.norm(first, i) * self.norm(second, j))

    def number(self, number: int, word: str, i: Any) -> Any:
        """A number of unit i of a group of students: a readout, or a bias."""
        return Base(self.declared.groups[number].named(word))[i]

    def weight(self, number: int, i: Any, head: str | None = None) -> Any:
        """Return the weight of unit i in f - f* of a head (None: of the single answer): its readout, negative for a
        teacher.
        """
        head = self.declared.heads[0] if head is None else head
        if self.declared.readout(number, head) is None:
            return sp.Integer(0)
        readout = Base(self.declared.readout_name(number, head))[i]
        return readout if self.is_student(number) else -readout

    def weights(self, first: int, i: Any, second: int, j: Any, heads: Sequence[str] | None = None) -> Any:
        """Return the product of the weights of two units, summed over heads (None: those in use)."""
        heads = self.declared.force if heads is None else heads
        return sp.Add(*(self.weight(first, i, head) * self.weight(second, j, head) for head in heads))

    def meet(self, first: int, second: int, heads: Sequence[str] | None = None) -> bool:
        """Return True if units of two groups are part of one answer or label of some heads (None: those in use)."""
        return self.declared.meet(first, second, heads)

    def moving(self) -> Iterator[tuple[Vector, Vector]]:
        """The pairs of vectors whose overlaps may move, those of students among each other first."""
        names = [block.name for block in self.rows.moving]
        pairs = [(first, second) for n, first in enumerate(self.vectors) for second in self.vectors[n:]]
        by_name = {self.rows.block_of(first, second).name: (first, second) for first, second in pairs}
        yield from (by_name[name] for name in names)

    def scaled_weight(self, vector: Vector, i: Any) -> Any:
        """The weight of unit i over the norm of its vector, of a network with one answer."""
        if self.norm(vector, i) == 1:
            return self.weight(vector.group, i)
        return Base(f"weight_{self.group(vector).named(vector.slot)}")[i]

    def scaled(self, vector: Vector, i: Any, weighted: Any) -> Any:
        """A value that has the weight of unit i as a factor, over the norm of its vector."""
        if self.norm(vector, i) == 1:
            return weighted
        if self.declared.several:
            return weighted / self.norm(vector, i)
        return weighted.xreplace({self.weight(vector.group, i): self.scaled_weight(vector, i)})

    def scaled_weights(self, first: Vector, i: Any, second: Vector, j: Any) -> Any:
        """The product of the weights of two units, each over the norm of its vector, summed over the heads in use."""
        if not self.declared.several:
            return self.scaled_weight(first, i) * self.scaled_weight(second, j)
        return self.weights(first.group, i, second.group, j) / (self.norm(first, i) * self.norm(second, j))

    def gated(self, number: int) -> bool:
        """Return True for units with a function that is not a polynomial; a unit paired with itself is then a separate
        case.
        """
        return bool(self.shapes[number].gates)

    def arguments(self, kinds: Sequence[int], indices: Sequence[Any]) -> tuple[Any, ...]:
        """The arguments of a kernel of units: covariances of fields, the units' own numbers, means of fields if any."""
        fields = [(Vector(g, s), i) for g, i in zip(kinds, indices, strict=True) for s in self.declared.groups[g].slots]
        cells = [self.covariance(*fields[a], *fields[b]) for a in range(len(fields)) for b in range(a, len(fields))]
        unit_numbers = [self.number(g, b, i) for g, i in zip(kinds, indices, strict=True) for b in self.scalars(g)]
        return (
            *cells,
            *unit_numbers,
            *([self.centre(*field) / self.norm(*field) for field in fields] if self.mean else []),
        )

    def scalars(self, number: int) -> tuple[str, ...]:
        """Return the numbers that every unit of a group has in addition to its readout."""
        return self.declared.groups[number].scalars


def entry_of(name: str, *indices: Any) -> Any:
    """Return an entry of an array, or the number of this name without indices."""
    return Base(name)[indices] if indices else sp.Symbol(name)

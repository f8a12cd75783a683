"""Motion of a declared model as definitions and equations: gradients with respect to overlaps, and constraints.

With c_a = dl/dz_a, the derivative of the sample's loss in the field of vector a, the mean gradient is

    E[c_a x] = sum_r C_ar u_r,   C_ar = dL/dG_ar (Stein; twice that on the diagonal),   D_ab = sum_r C_ar G_rb

and d(u_a . u_b)/dt = -D_ab - D_ba. `sphere` subtracts the part along u_a, `normalised` divides by norms. In the online
limit (step eta/d, time steps/d) u_a . u_b gains eta^2 E[c_a c_b]/B. Numbers follow derivatives of the loss.

Inputs of covariance Lambda with eigenvalues lam_l have one Gram matrix G^l for the parts of the vectors in each
eigenspace: the fields have the covariance sum_l lam_l G^l, E[c_a x^l] = lam_l sum_r C_ar u_r^l, and the online limit
gains eta^2 f_l lam_l E[c_a c_b]/B where f_l is the share of the eigenspace in the coordinates. Norms are Euclidean.

For clusters with means sum_k A_ck m_k, all means are averages over clusters, where E_c[c_a x^l] has the further part
E_c[c_a] sum_k A_ck m_k^l. Labels y_c of clusters replace a teacher.

Sources: Saad & Solla 1995; Price 1958; Yoshida & Okada 2019 (eigenvalues); Refinetti et al. 2021 (mixtures).
"""

from collections.abc import Iterator
from typing import Any

from derivations.declare import (
    episode_motion,
    field_laws,
    giant_equations,
    memory_equations,
    ruled,
    schedule_equations,
    second_order,
    velocity_equations,
)
from derivations.declare.algebra import Algebra, Vector
from derivations.declare.gates import Part, Shape
from derivations.declare.unit_kernels import Kernels, Mean
from derivations.statement import HALF, Base, Definition, Equation, Named, sp

STEP, DECAY, NOISE, BATCH = sp.symbols("step decay noise batch")
TRAINING = (Named(DECAY, "weight decay lambda"), Named(NOISE, "standard deviation of the label noise"))
STEPS = (Named(STEP, "step eta: SGD steps by eta/d"), Named(BATCH, "samples of one step"))
"""Constants of the online limit only."""


class Motion:
    """The definitions and equations of a declaration, of an online limit with its second-order term or without.

    `changing` are the parameters with an active schedule.
    """

    def __init__(self, symbols: Algebra, second: bool, changing: tuple[str, ...] = ()) -> None:
        self.algebra, self.declared = symbols, symbols.declared
        self.kernels = Kernels(symbols)
        self.second = second and self.declared.noisy
        self.giant = self.declared.limit == "batch"
        self.squared = self.declared.loss == "squared"  # under a correlation loss students do not interact
        self.schedules = [one for one in self.declared.schedules if one.name in changing]
        self.arrays: list[Definition] = []

    def rate(self, number: int, word: str) -> Any:
        """The factor of the motion of a slot or a number of a group: the step of an online limit, times its rate."""
        name = self.declared.rate(self.declared.groups[number], word)
        own = sp.Symbol(name) if name else sp.Integer(1)
        return own * (1 if self.declared.limit == "flow" else STEP) * velocity_equations.acceleration(self.declared)

    def definitions(self) -> tuple[Definition, ...]:
        """Return all arrays that the equations and the loss use, in order."""
        late = giant_equations.values_of_memories(self)  # known after the gradients
        self.arrays = [*field_laws.definitions(self.algebra, [one for one in self.schedules if one not in late])]
        self.arrays += [*self._pairs(), *ruled.definitions(self), *self._outputs(), *self._alone()]
        self.arrays += [*self._bends(), *self._gradients(), *self._pulls(), *self._drifts()]
        self.arrays += velocity_equations.definitions(self)
        if self.second:
            self.arrays += second_order.definitions(self)
        self.arrays += self._along()
        if self.giant:
            self.arrays += giant_equations.definitions(self)
        return tuple(self.arrays)

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Return the pairs of groups (g, h) that interact in the gradient; g are students, and g is not after h."""
        for g in self.algebra.students:
            for h in self.algebra.answering:
                if h >= g and (self._meets(g, h) or (self.algebra.is_student(h) and self._meets(h, g))):
                    yield g, h

    def _meets(self, g: int, h: int, slot: str = "") -> bool:
        """Return True if units of group g (or one slot) interact with those of group h.

        Slots whose rule has its own function are treated in `ruled`.
        """
        group = self.algebra.declared.groups[g]
        vectors = [Vector(g, s) for s in group.slots if slot in ("", s) and not ruled.own(self.algebra, Vector(g, s))]
        if not self.algebra.meet(g, h):
            return False
        by_rule = any(h in ruled.met(self.algebra, one, self.squared) for one in vectors)
        numbers = slot == "" and bool(group.own) and (self.squared or not self.algebra.is_student(h))
        return by_rule or numbers

    def _pairs(self) -> Iterator[Definition]:
        """The means of all pairs of units that the drift needs."""
        for g, h in self.pairs():
            i, j = self.algebra.index("i", g), self.algebra.index("j", h)
            if means := self.means(g, h, ""):
                yield from self.kernels.definitions((g, h), (i, j), means, "means over pairs of units")
            if g == h and self.algebra.gated(g) and (means := self.means(g, g, "own")):
                yield from self.kernels.definitions((g, g), (i, i), means, "the same of a unit with itself")

    def means(self, g: int, h: int, word: str) -> list[Mean]:
        """Return the means of a pair of units in the drift.

        V[s, t] = E[d_s phi_i d_t phi_j], W[s, t] = E[d_s d_t phi_i phi_j] of both sides (for two units of one group
        only that of the first; the other follows by exchange), and E[d_b phi_i phi_j].
        """
        one, two = self.algebra.shapes[g], self.algebra.shapes[h]
        found = [
            Mean(f"V{word}_{self.algebra.pair(g, h, s + t)}", (one.slopes[a], two.slopes[b]))
            for a, s in enumerate(one.slots)
            for b, t in enumerate(two.slots)
            if not (word and s == t and self.algebra.radial)  # along itself, which the constraint removes
            and (self._meets(g, h, s) or (self.algebra.is_student(h) and self._meets(h, g, t)))
        ]
        sides = [(g, h, one, two, False)] + ([(h, g, two, one, True)] if g != h and self.algebra.is_student(h) else [])
        for own, other, mine, theirs, turned in sides:
            found += [Mean(f"{letter}{word}_{self.named(letter, own, other, rest)}",
                           self._ordered(part, theirs.value, turned))
                      for letter, rest, part in self._single_parts(own, mine)]  # fmt: skip
        return found

    def _single_parts(self, g: int, mine: Shape) -> Iterator[tuple[str, str, Part]]:
        """Yield letter, rest of the name, and part of a unit that multiplies the value of others."""
        if self.algebra.mean is not None:
            yield from (("U", s, mine.slopes[a]) for a, s in enumerate(mine.slots))
        for a, s in enumerate(mine.slots):
            for b, t in enumerate(mine.slots):
                by_loss = not (ruled.own(self.algebra, Vector(g, s)) and ruled.own(self.algebra, Vector(g, t)))
                if by_loss and (a < b or (a == b and not self.algebra.radial)):
                    yield "W", s + t, mine.bends[a][b]
        for b, name in enumerate(self.algebra.scalars(g)):
            if self._trained(g, name):
                yield "B", name, mine.scalars[b]

    def _alone(self) -> Iterator[Definition]:
        """Yield the means of single units, which are multiplied by labels of clusters."""
        if self.algebra.labels is None:
            return
        for g in self.algebra.students:
            i, mine = self.algebra.index("i", g), self.algebra.shapes[g]
            parts = [*self._single_parts(g, mine), ("K", "", mine.value)]
            means = [Mean(f"{letter}label_{self.named(letter, g, g, rest)}", (part,)) for letter, rest, part in parts]
            yield from self.kernels.definitions((g,), (i,), means, "means over a unit")

    def _ordered(self, part: Part, value: Part, turned: bool) -> tuple[Part, Part]:
        return (value, part) if turned else (part, value)

    def _trained(self, g: int, word: str) -> bool:
        return self.declared.moves(self.declared.groups[g], word)

    def _outputs(self) -> Iterator[Definition]:
        """The mean products of the outputs of two units."""
        for g in self.algebra.groups:
            for h in self.algebra.groups[g:]:
                if not self.algebra.meet(g, h, self.declared.watched):
                    continue
                parts = (self.algebra.shapes[g].value, self.algebra.shapes[h].value)
                i, j = self.algebra.index("i", g), self.algebra.index("j", h)
                mean = Mean(f"K_{self.algebra.pair(g, h)}", parts)
                yield from self.kernels.definitions((g, h), (i, j), [mean], "mean products of outputs")
                if g == h and self.algebra.gated(g):
                    own = Mean(f"Kown_{self.algebra.pair(g, g)}", parts)
                    yield from self.kernels.definitions((g, g), (i, i), [own], "mean square of an output")

    def mean(self, letter: str, g: int, h: int, rest: str, i: Any, j: Any, apart: bool = False) -> Any:
        """An entry of an array of means at units i of group g and j of group h.

        A unit with itself has a separate array, unless i and j are `apart`. Arrays with the letter V and K have each
        pair of groups once.
        """
        symmetric = letter in "VK" and g > h
        name = f"{letter}_{self.named(letter, *((h, g) if symmetric else (g, h)), rest)}"
        if symmetric:
            return self.entry(name, j, i)
        held_turned = letter in "WBU" and g > h  # both sides of a pair of student groups are means of one kernel
        entry = self.entry(name, j, i) if held_turned else self.entry(name, i, j)
        if g != h or apart or not self.algebra.gated(g):
            return entry
        own = self.entry(name.replace(letter, f"{letter}own", 1), i)
        return sp.Piecewise((own, sp.Eq(i, j)), (entry, True))

    def named(self, letter: str, g: int, h: int, rest: str) -> str:
        """Return the name of an array of means: slots follow those of V and W, a bias that of B."""
        return f"{self.algebra.pair(g, h)}_{rest}" if letter == "B" else self.algebra.pair(g, h, rest)

    def entry(self, name: str, *indices: Any) -> Any:
        """Return an entry of an array of means as an expression; 0 if the whole array is 0."""
        return sp.Integer(0) if name in self.kernels.zero else Base(name)[(*self.algebra.of_fields, *indices)]

    def weighted(self, g: int, letter: str, rest: str, i: Any, one: Vector | None = None) -> Any:
        """Return the sum over the heads in use of the weight of unit i and the `total` of the head."""
        every = [(head, self.algebra.weight(g, i, head)) for head in self.declared.force]
        return sp.Add(*(weight * self.total(g, letter, rest, i, one, head) for head, weight in every if weight != 0))

    def total(
        self, g: int, letter: str, rest: str, i: Any, one: Vector | None = None, head: str | None = None
    ) -> Any:  # fmt: skip
        """Return sum of weight x mean over units that interact with unit i of group g, and over the label of a cluster.

        With a rule these may be other units than in the loss. The weights are those of a head.
        """
        found = sp.Integer(0)
        met = [h for h in self.algebra.answering if self.squared or not self.algebra.is_student(h)]
        met = met if one is None else ruled.met(self.algebra, one, self.squared)
        if self.algebra.labels is not None:
            found -= self.algebra.labels * self.entry(f"{letter}label_{self.named(letter, g, g, rest)}", i)
        for h in met:
            j = self.algebra.index("j", h)
            if (weight := self.algebra.weight(h, j, head)) != 0:
                found += sp.Sum(weight * self.mean(letter, g, h, rest, i, j), j)
        return found

    def bend(self, one: Vector, slot: str, i: Any) -> Any:
        """Return half of the contribution of norms and overlaps within a unit to C, unless a constraint removes it."""
        s, t = sorted((one.slot, slot), key=self.algebra.group(one).slots.index)
        if s == t and self.algebra.radial:
            return sp.Integer(0)
        return Base(f"bend_{self.algebra.label(Vector(one.group, s), Vector(one.group, t))}")[
            (*self.algebra.cluster, i)
        ]

    def _bends(self) -> Iterator[Definition]:
        for g in self.algebra.students:
            i, slots = self.algebra.index("i", g), self.declared.groups[g].slots
            for a, s in enumerate(slots):
                for t in slots[a:]:
                    target = self.bend(Vector(g, s), t, i)
                    by_rules = all(ruled.rule(self.algebra, Vector(g, slot)) for slot in (s, t))
                    if target != 0 and not by_rules:
                        value = self.weighted(g, "W", s + t, i)
                        yield Definition((target,), value, "second derivatives of a unit, times all others")
        yield from ruled.bends(self)

    def _gradients(self) -> Iterator[Definition]:
        """Yield C of students' vectors and all vectors; of the raw vectors, if the network divides by norms."""
        for one in self.algebra.vectors:
            for two in self.algebra.seen:
                if self.algebra.moves(one) and (value := self._gradient(one, two)) != 0:
                    i, j = self.algebra.index("i", one.group), self.algebra.index("j", two.group)
                    yield Definition((self.gradient(one, i, two, j),), value, "gradient of the loss in the overlaps")
            if self.algebra.moves(one) and self.algebra.mean is not None:
                i = self.algebra.index("i", one.group)
                value = self.algebra.scaled(one, i, self.weighted(one.group, "U", one.slot, i))
                yield Definition((self.kappa(one, i),), value, "E[c_i], the mean gradient with respect to a field")

    def kappa(self, one: Vector, i: Any) -> Any:
        """E[c_i] in a cluster."""
        return Base(f"kappa_{self.algebra.group(one).named(one.slot)}")[(*self.algebra.cluster, i)]

    def gradient(self, one: Vector, i: Any, two: Vector, j: Any) -> Any:
        """C_ij, the part of the mean gradient of u_i along v_j."""
        return Base(f"C_{self.algebra.label(one, two)}")[(*self.algebra.cluster, i, j)]

    def _gradient(self, one: Vector, two: Vector) -> Any:
        if ruled.rule(self.algebra, one) is not None:
            return ruled.gradient(self, one, two)
        g, h = one.group, two.group
        i, j = self.algebra.index("i", g), self.algebra.index("j", h)
        slots = one.slot + two.slot if g <= h else two.slot + one.slot
        alone = one == two and self.algebra.radial
        both = sp.Integer(0)
        if h in self.algebra.answering and (self.squared or not self.algebra.is_student(h)):
            mean = self.mean("V", g, h, slots, i, j, apart=alone)
            both = self.algebra.scaled_weights(one, i, two, j) * mean
        if g != h:
            return both
        if alone:
            # The constraint removes the motion of a vector along itself; done here, so that small overlaps keep digits.
            return sp.Piecewise((0, sp.Eq(i, j)), (both, True))
        norms = self.algebra.norm(one, i) * self.algebra.norm(two, i)
        return both + sp.KroneckerDelta(i, j) * self.bend(one, two.slot, i) / norms

    def _pulls(self) -> Iterator[Definition]:
        """Yield the replacement of C for inputs from clusters: means over these, eigenvalues included."""
        for one in self.algebra.vectors:
            for two in self.algebra.vectors if self.algebra.mixed else ():
                i, j = self.algebra.index("i", one.group), self.algebra.index("j", two.group)
                if not self.algebra.moves(one) or (value := self.pulled(one, i, two, j)) == 0:
                    continue
                yield Definition(
                    (self.pull(one, i, two, j),), self.algebra.over_clusters(value), "gradient, over clusters"
                )

    def pulled(self, one: Vector, i: Any, two: Vector, j: Any) -> Any:
        """Return `pull` before the mean over clusters; 0 if there is none."""
        if two in self.algebra.seen:
            gradient = self._gradient(one, two)
            return gradient if gradient == 0 else self.algebra.eigenvalue * self.gradient(one, i, two, j)
        return self.kappa(one, i) * self.algebra.mean_weight(j) if two == self.algebra.mean else sp.Integer(0)

    def pull(self, one: Vector, i: Any, two: Vector, j: Any) -> Any:
        """Return the part of u_i's mean gradient along v_j in an eigenspace (for one Gaussian over its eigenvalue)."""
        if not self.algebra.mixed:
            return self.gradient(one, i, two, j)
        space = self.algebra.space if two in self.algebra.seen else ()
        return Base(f"H_{self.algebra.label(one, two)}")[(*space, i, j)]

    def _drifts(self) -> Iterator[Definition]:
        for one in self.algebra.vectors:
            for two in self.algebra.vectors:
                if self.algebra.moves(one):
                    i, j = self.algebra.index("i", one.group), self.algebra.index("j", two.group)
                    yield Definition((self.drift(one, i, two, j),), self._drift(one, i, two, j), "E[c_i z_j]")

    def drift(self, one: Vector, i: Any, two: Vector, j: Any) -> Any:
        """Return D_ij, the product of the mean gradient of u_i and v_j in an eigenspace, divided by `eigenvalue`."""
        return Base(f"D_{self.algebra.label(one, two)}")[(*self.algebra.space, i, j)]

    def _drift(self, one: Vector, i: Any, two: Vector, j: Any) -> Any:
        found = sp.Integer(0)
        for other in self.algebra.vectors:
            r = self.algebra.index("r", other.group)
            if self.pulled(one, i, other, r) != 0:
                found += sp.Sum(self.pull(one, i, other, r) * self.algebra.overlap(other, r, two, j), r)
        return found

    @property
    def eigenvalue(self) -> Any:
        """Return the eigenvalue by which a drift is still to be multiplied."""
        return sp.Integer(1) if self.algebra.mixed else self.algebra.eigenvalue

    def moved(self, one: Vector, i: Any, two: Vector, j: Any) -> Any:
        """Return u_i' . v_j by the motion of u_i only."""
        if not self.algebra.moves(one):
            return sp.Integer(0)
        if self.declared.timed:
            return -self.rate(one.group, one.slot) * velocity_equations.product(self.algebra, one, i, two, j)
        here = self.algebra.overlap(one, i, two, j)
        pull = self.eigenvalue * self.drift(one, i, two, j)
        if self.declared.weights != "free":
            pull -= self.along(one, i) * here
        if self.declared.weights != "sphere":
            pull += DECAY * here
        return -self.rate(one.group, one.slot) * pull

    def along(self, one: Vector, i: Any) -> Any:
        """Return the part of the mean gradient of u_i along itself, divided by its squared norm."""
        return Base(f"along_{self.algebra.label(one, one)}")[i]

    def _along(self) -> Iterator[Definition]:
        for one in self.algebra.vectors:
            if self.algebra.moves(one) and self.declared.weights != "free":
                i = self.algebra.index("i", one.group)
                value = self.eigenvalue * self.drift(one, i, one, i)
                if self.second and self.declared.weights == "sphere" and not self.giant:
                    # A step across the sphere lengthens the vector, which the constraint reverses.
                    value -= HALF * self._gain(one, i, one, i) / self.rate(one.group, one.slot)
                value = self.algebra.over_spaces(value) / self.algebra.product(one, i, one, i)
                yield Definition((self.along(one, i),), value, "part that the constraint removes")

    def _gain(self, one: Vector, i: Any, two: Vector, j: Any) -> Any:
        """eta^2 E[c_i c_j]/B, in an eigenspace by its share of the variance."""
        norms = self.algebra.norm(one, i) * self.algebra.norm(two, j)
        square = self.algebra.eigenvalue * second_order.entry(self.algebra, one, i, two, j)
        rates = self.rate(one.group, one.slot) * self.rate(two.group, two.slot)
        return (
            rates
            / (BATCH * episode_motion.step(self.declared))
            * self.algebra.share
            * self.algebra.over_clusters(square)
            / norms
        )

    def equations(self) -> Iterator[Equation]:
        """The motion of all overlaps, readouts and biases."""
        if self.giant:
            yield from giant_equations.equations(self)
            return
        for one, two in self.algebra.moving():
            i, j = self.algebra.index("i", one.group), self.algebra.index("j", two.group)
            rate = self.moved(one, i, two, j)
            if self.algebra.is_student(two.group):
                rate += self.moved(two, j, one, i)
                if self.second and not self.declared.timed and self.algebra.moves(one) and self.algebra.moves(two):
                    rate += self._gain(one, i, two, j)
            if rate != 0:
                yield Equation(self.algebra.overlap(one, i, two, j), rate)
        for g in self.algebra.students:
            i = self.algebra.index("i", g)
            for word in self.declared.groups[g].own:
                if self._trained(g, word):
                    slope = velocity_equations.pace(self, g, word, i)
                    yield Equation(self.algebra.number(g, word, i), -self.rate(g, word) * slope)
        yield from (*velocity_equations.equations(self), *memory_equations.equations(self))
        if self.declared.clocked:
            yield Equation(schedule_equations.CLOCK, sp.Integer(1))

    def slope(self, g: int, word: str, i: Any) -> Any:
        """Return the derivative of the loss with respect to a number of unit i: its readout, or a bias."""
        for one in self.declared.groups[g].readouts:
            if word == one.word:
                return self.algebra.over_clusters(self.total(g, "K", "", i, head=one.head))
        return self.algebra.over_clusters(self.weighted(g, "B", word, i))

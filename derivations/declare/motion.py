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
        self.schedules = [schedule for schedule in self.declared.schedules if schedule.name in changing]
        self.arrays: list[Definition] = []

    def rate(self, number: int, word: str) -> Any:
        """The factor of the motion of a slot or a number of a group: the step of an online limit, times its rate."""
        name = self.declared.rate(self.declared.groups[number], word)
        factor = sp.Symbol(name) if name else sp.Integer(1)
        return factor * (1 if self.declared.limit == "flow" else STEP) * velocity_equations.acceleration(self.declared)

    def definitions(self) -> tuple[Definition, ...]:
        """Return all arrays that the equations and the loss use, in order."""
        deferred = giant_equations.values_of_memories(self)  # known after the gradients
        self.arrays = [*field_laws.definitions(self.algebra, [s for s in self.schedules if s not in deferred])]
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
        by_rule = any(h in ruled.met(self.algebra, vector, self.squared) for vector in vectors)
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
        first, second = self.algebra.shapes[g], self.algebra.shapes[h]
        means = [
            Mean(f"V{word}_{self.algebra.pair(g, h, s + t)}", (first.slopes[a], second.slopes[b]))
            for a, s in enumerate(first.slots)
            for b, t in enumerate(second.slots)
            if not (word and s == t and self.algebra.radial)  # along itself, which the constraint removes
            and (self._meets(g, h, s) or (self.algebra.is_student(h) and self._meets(h, g, t)))
        ]
        sides = [(g, h, first, second, False)] + (
            [(h, g, second, first, True)] if g != h and self.algebra.is_student(h) else []
        )
        for group, partner, shape, partner_shape, swapped in sides:
            means += [Mean(f"{letter}{word}_{self.named(letter, group, partner, tail)}",
                           self._ordered(part, partner_shape.value, swapped))
                      for letter, tail, part in self._single_parts(group, shape)]  # fmt: skip
        return means

    def _single_parts(self, g: int, shape: Shape) -> Iterator[tuple[str, str, Part]]:
        """Yield letter, rest of the name, and part of a unit that multiplies the value of others."""
        if self.algebra.mean is not None:
            yield from (("U", s, shape.slopes[a]) for a, s in enumerate(shape.slots))
        for a, s in enumerate(shape.slots):
            for b, t in enumerate(shape.slots):
                by_loss = not (ruled.own(self.algebra, Vector(g, s)) and ruled.own(self.algebra, Vector(g, t)))
                if by_loss and (a < b or (a == b and not self.algebra.radial)):
                    yield "W", s + t, shape.bends[a][b]
        for b, name in enumerate(self.algebra.scalars(g)):
            if self._trained(g, name):
                yield "B", name, shape.scalars[b]

    def _alone(self) -> Iterator[Definition]:
        """Yield the means of single units, which are multiplied by labels of clusters."""
        if self.algebra.labels is None:
            return
        for g in self.algebra.students:
            i, shape = self.algebra.index("i", g), self.algebra.shapes[g]
            parts = [*self._single_parts(g, shape), ("K", "", shape.value)]
            means = [Mean(f"{letter}label_{self.named(letter, g, g, tail)}", (part,)) for letter, tail, part in parts]
            yield from self.kernels.definitions((g,), (i,), means, "means over a unit")

    def _ordered(self, part: Part, value: Part, swapped: bool) -> tuple[Part, Part]:
        return (value, part) if swapped else (part, value)

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
                    self_mean = Mean(f"Kown_{self.algebra.pair(g, g)}", parts)
                    yield from self.kernels.definitions((g, g), (i, i), [self_mean], "mean square of an output")

    def mean(self, letter: str, g: int, h: int, tail: str, i: Any, j: Any, apart: bool = False) -> Any:
        """An entry of an array of means at units i of group g and j of group h.

        A unit with itself has a separate array, unless i and j are `apart`. Arrays with the letter V and K have each
        pair of groups once.
        """
        symmetric = letter in "VK" and g > h
        name = f"{letter}_{self.named(letter, *((h, g) if symmetric else (g, h)), tail)}"
        if symmetric:
            return self.entry(name, j, i)
        stored_swapped = letter in "WBU" and g > h  # both sides of a pair of student groups are means of one kernel
        entry = self.entry(name, j, i) if stored_swapped else self.entry(name, i, j)
        if g != h or apart or not self.algebra.gated(g):
            return entry
        self_entry = self.entry(name.replace(letter, f"{letter}own", 1), i)
        return sp.Piecewise((self_entry, sp.Eq(i, j)), (entry, True))

    def named(self, letter: str, g: int, h: int, tail: str) -> str:
        """Return the name of an array of means: slots follow those of V and W, a bias that of B."""
        return f"{self.algebra.pair(g, h)}_{tail}" if letter == "B" else self.algebra.pair(g, h, tail)

    def entry(self, name: str, *indices: Any) -> Any:
        """Return an entry of an array of means as an expression; 0 if the whole array is 0."""
        return sp.Integer(0) if name in self.kernels.zero else Base(name)[(*self.algebra.of_fields, *indices)]

    def weighted(self, g: int, letter: str, tail: str, i: Any, u: Vector | None = None) -> Any:
        """Return the sum over the heads in use of the weight of unit i and the `total` of the head."""
        weights = [(head, self.algebra.weight(g, i, head)) for head in self.declared.force]
        return sp.Add(*(weight * self.total(g, letter, tail, i, u, head) for head, weight in weights if weight != 0))

    def total(
        self, g: int, letter: str, tail: str, i: Any, u: Vector | None = None, head: str | None = None
    ) -> Any:  # fmt: skip
        """Return sum of weight x mean over units that interact with unit i of group g, and over the label of a cluster.

        With a rule these may be other units than in the loss. The weights are those of a head.
        """
        total = sp.Integer(0)
        partners = [h for h in self.algebra.answering if self.squared or not self.algebra.is_student(h)]
        partners = partners if u is None else ruled.met(self.algebra, u, self.squared)
        if self.algebra.labels is not None:
            total -= self.algebra.labels * self.entry(f"{letter}label_{self.named(letter, g, g, tail)}", i)
        for h in partners:
            j = self.algebra.index("j", h)
            if (weight := self.algebra.weight(h, j, head)) != 0:
                total += sp.Sum(weight * self.mean(letter, g, h, tail, i, j), j)
        return total

    def bend(self, vector: Vector, slot: str, i: Any) -> Any:
        """Return half of the contribution of norms and overlaps within a unit to C, unless a constraint removes it."""
        s, t = sorted((vector.slot, slot), key=self.algebra.group(vector).slots.index)
        if s == t and self.algebra.radial:
            return sp.Integer(0)
        return Base(f"bend_{self.algebra.label(Vector(vector.group, s), Vector(vector.group, t))}")[
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
        for u in self.algebra.vectors:
            for v in self.algebra.seen:
                if self.algebra.moves(u) and (value := self._gradient(u, v)) != 0:
                    i, j = self.algebra.index("i", u.group), self.algebra.index("j", v.group)
                    yield Definition((self.gradient(u, i, v, j),), value, "gradient of the loss in the overlaps")
            if self.algebra.moves(u) and self.algebra.mean is not None:
                i = self.algebra.index("i", u.group)
                value = self.algebra.scaled(u, i, self.weighted(u.group, "U", u.slot, i))
                yield Definition((self.kappa(u, i),), value, "E[c_i], the mean gradient with respect to a field")

    def kappa(self, u: Vector, i: Any) -> Any:
        """E[c_i] in a cluster."""
        return Base(f"kappa_{self.algebra.group(u).named(u.slot)}")[(*self.algebra.cluster, i)]

    def gradient(self, u: Vector, i: Any, v: Vector, j: Any) -> Any:
        """C_ij, the part of the mean gradient of u_i along v_j."""
        return Base(f"C_{self.algebra.label(u, v)}")[(*self.algebra.cluster, i, j)]

    def _gradient(self, u: Vector, v: Vector) -> Any:
        if ruled.rule(self.algebra, u) is not None:
            return ruled.gradient(self, u, v)
        g, h = u.group, v.group
        i, j = self.algebra.index("i", g), self.algebra.index("j", h)
        slots = u.slot + v.slot if g <= h else v.slot + u.slot
        constrained = u == v and self.algebra.radial
        product = sp.Integer(0)
        if h in self.algebra.answering and (self.squared or not self.algebra.is_student(h)):
            mean = self.mean("V", g, h, slots, i, j, apart=constrained)
            product = self.algebra.scaled_weights(u, i, v, j) * mean
        if g != h:
            return product
        if constrained:
            # The constraint removes the motion of a vector along itself; done here, so that small overlaps keep digits.
            return sp.Piecewise((0, sp.Eq(i, j)), (product, True))
        norms = self.algebra.norm(u, i) * self.algebra.norm(v, i)
        return product + sp.KroneckerDelta(i, j) * self.bend(u, v.slot, i) / norms

    def _pulls(self) -> Iterator[Definition]:
        """Yield the replacement of C for inputs from clusters: means over these, eigenvalues included."""
        for u in self.algebra.vectors:
            for v in self.algebra.vectors if self.algebra.mixed else ():
                i, j = self.algebra.index("i", u.group), self.algebra.index("j", v.group)
                if not self.algebra.moves(u) or (value := self.pulled(u, i, v, j)) == 0:
                    continue
                yield Definition((self.pull(u, i, v, j),), self.algebra.over_clusters(value), "gradient, over clusters")

    def pulled(self, u: Vector, i: Any, v: Vector, j: Any) -> Any:
        """Return `pull` before the mean over clusters; 0 if there is none."""
        if v in self.algebra.seen:
            gradient = self._gradient(u, v)
            return gradient if gradient == 0 else self.algebra.eigenvalue * self.gradient(u, i, v, j)
        return self.kappa(u, i) * self.algebra.mean_weight(j) if v == self.algebra.mean else sp.Integer(0)

    def pull(self, u: Vector, i: Any, v: Vector, j: Any) -> Any:
        """Return the part of u_i's mean gradient along v_j in an eigenspace (for one Gaussian over its eigenvalue)."""
        if not self.algebra.mixed:
            return self.gradient(u, i, v, j)
        space = self.algebra.space if v in self.algebra.seen else ()
        return Base(f"H_{self.algebra.label(u, v)}")[(*space, i, j)]

    def _drifts(self) -> Iterator[Definition]:
        for u in self.algebra.vectors:
            for v in self.algebra.vectors:
                if self.algebra.moves(u):
                    i, j = self.algebra.index("i", u.group), self.algebra.index("j", v.group)
                    yield Definition((self.drift(u, i, v, j),), self._drift(u, i, v, j), "E[c_i z_j]")

    def drift(self, u: Vector, i: Any, v: Vector, j: Any) -> Any:
        """Return D_ij, the product of the mean gradient of u_i and v_j in an eigenspace, divided by `eigenvalue`."""
        return Base(f"D_{self.algebra.label(u, v)}")[(*self.algebra.space, i, j)]

    def _drift(self, u: Vector, i: Any, v: Vector, j: Any) -> Any:
        drift = sp.Integer(0)
        for w in self.algebra.vectors:
            r = self.algebra.index("r", w.group)
            if self.pulled(u, i, w, r) != 0:
                drift += sp.Sum(self.pull(u, i, w, r) * self.algebra.overlap(w, r, v, j), r)
        return drift

    @property
    def eigenvalue(self) -> Any:
        """Return the eigenvalue by which a drift is still to be multiplied."""
        return sp.Integer(1) if self.algebra.mixed else self.algebra.eigenvalue

    def moved(self, u: Vector, i: Any, v: Vector, j: Any) -> Any:
        """Return u_i' . v_j by the motion of u_i only."""
        if not self.algebra.moves(u):
            return sp.Integer(0)
        if self.declared.timed:
            return -self.rate(u.group, u.slot) * velocity_equations.product(self.algebra, u, i, v, j)
        overlap = self.algebra.overlap(u, i, v, j)
        pull = self.eigenvalue * self.drift(u, i, v, j)
        if self.declared.weights != "free":
            pull -= self.along(u, i) * overlap
        if self.declared.weights != "sphere":
            pull += DECAY * overlap
        return -self.rate(u.group, u.slot) * pull

    def along(self, u: Vector, i: Any) -> Any:
        """Return the part of the mean gradient of u_i along itself, divided by its squared norm."""
        return Base(f"along_{self.algebra.label(u, u)}")[i]

    def _along(self) -> Iterator[Definition]:
        for u in self.algebra.vectors:
            if self.algebra.moves(u) and self.declared.weights != "free":
                i = self.algebra.index("i", u.group)
                value = self.eigenvalue * self.drift(u, i, u, i)
                if self.second and self.declared.weights == "sphere" and not self.giant:
                    # A step across the sphere lengthens the vector, which the constraint reverses.
                    value -= HALF * self._gain(u, i, u, i) / self.rate(u.group, u.slot)
                value = self.algebra.over_spaces(value) / self.algebra.product(u, i, u, i)
                yield Definition((self.along(u, i),), value, "part that the constraint removes")

    def _gain(self, u: Vector, i: Any, v: Vector, j: Any) -> Any:
        """eta^2 E[c_i c_j]/B, in an eigenspace by its share of the variance."""
        norms = self.algebra.norm(u, i) * self.algebra.norm(v, j)
        square = self.algebra.eigenvalue * second_order.entry(self.algebra, u, i, v, j)
        rates = self.rate(u.group, u.slot) * self.rate(v.group, v.slot)
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
        for u, v in self.algebra.moving():
            i, j = self.algebra.index("i", u.group), self.algebra.index("j", v.group)
            rate = self.moved(u, i, v, j)
            if self.algebra.is_student(v.group):
                rate += self.moved(v, j, u, i)
                if self.second and not self.declared.timed and self.algebra.moves(u) and self.algebra.moves(v):
                    rate += self._gain(u, i, v, j)
            if rate != 0:
                yield Equation(self.algebra.overlap(u, i, v, j), rate)
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
        for readout in self.declared.groups[g].readouts:
            if word == readout.word:
                return self.algebra.over_clusters(self.total(g, "K", "", i, head=readout.head))
        return self.algebra.over_clusters(self.weighted(g, "B", word, i))

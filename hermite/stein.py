"""Stein's and Price's identities as a recursion: means of polynomials times ladder functions, term by term."""

import math
from collections.abc import Callable
from fractions import Fraction

from hermite.errors import DomainError
from hermite.laws import EPS, Law, density
from hermite.orthants import needs_integral, signs

Pair = tuple[float, float]


class Recursion:
    """E[prod_a z_a^p_a prod_j L_j(y_j)] for one Gaussian law of (z, y), L_j ladder functions of given orders.

    1. a delta function is conditioned on, exactly, before anything is differentiated: no term outgrows the answer
       however singular the covariance;  2. derivatives of delta and 3. powers are lowered by Stein's identity
       E[(z_a - m_a) F] = sum_b C_ab E[d_b F];  4. G_1(y) = y G_0(y), likewise;  5. the remaining means are
       products of signs (`hermite.orthants`), or means that `leaf` computes.

    Arguments: law of the n powers' variables followed by the y; kinds, 'normal' or 'logistic' for each y; leaf, maps
    (law, kinds, orders) of the remaining y to (value, error bound, name of the method), called if a logistic ladder
    remains. Source: Stein 1981; Price 1958.

    >>> one = Fraction(1)
    >>> recursion = Recursion(Law((0, 0), ((one, one), (one, one))), ("normal",))
    >>> round(recursion.mean((1,), (0,))[0] * math.sqrt(2 * math.pi), 12)  # E[z sign(z) / 2]
    1.0
    """

    def __init__(self, law: Law, kinds: tuple[str, ...], leaf: Callable | None = None) -> None:
        self.law, self.kinds, self.leaf = law, kinds, leaf
        self.powers = len(law.mean) - len(kinds)
        self.known: dict = {}
        self.methods: set[str] = set()  # names of the methods used: "plackett", and those that `leaf` returns

    def mean(self, powers: tuple[int, ...], orders: tuple) -> Pair:
        """Return (value, error bound); orders: one integer <= 1 for each y, None if y does not occur.

        Raises: DomainError where the mean is infinite.
        """
        return self._at(self.law, (), powers, orders)

    def moment(self, powers: tuple[int, ...]):
        """Return E[prod z_a^p_a], exactly if the law is exact (Isserlis)."""
        return self._moment(self.law, (), powers)

    def _moment(self, law: Law, path: tuple, powers: tuple[int, ...]):
        if not any(powers):
            return Fraction(1)
        key = (path, powers)
        if key not in self.known:
            a = next(i for i, p in enumerate(powers) if p)
            less = _lower(powers, a)
            total = law.mean[a] * self._moment(law, path, less) if law.mean[a] != 0 else Fraction(0)
            for b, p in enumerate(less):
                if p and law.rows[a][b] != 0:
                    total += p * law.rows[a][b] * self._moment(law, path, _lower(less, b))
            self.known[key] = total
        return self.known[key]

    def _at(self, law: Law, path: tuple, powers: tuple[int, ...], orders: tuple) -> Pair:
        """Return the mean under the law conditioned on the deltas listed in `path`."""
        active = [j for j, order in enumerate(orders) if order is not None]
        if not active:
            value = float(self._moment(law, path, powers))
            return value, EPS * abs(value)
        key = (path, powers, orders)
        if key not in self.known:
            self.known[key] = self._step(law, path, powers, orders, active)
        return self.known[key]

    def _step(self, law: Law, path: tuple, powers: tuple, orders: tuple, active: list) -> Pair:
        deltas = [j for j in active if self.kinds[j] == "normal" and orders[j] < 0]
        plain = [j for j in deltas if orders[j] == -1]
        if plain:
            return self._delta(law, path, powers, orders, plain[0])
        if deltas:
            return self._sharper(law, path, powers, orders, deltas[0])
        if any(powers):
            a = next(i for i, p in enumerate(powers) if p)
            return self._stein(law, path, a, _lower(powers, a), orders)
        kinks = [j for j in active if self.kinds[j] == "normal" and orders[j] == 1]
        if kinks and all(self.kinds[j] == "normal" for j in active):
            j = kinks[0]
            return self._stein(law, path, self.powers + j, powers, _with(orders, j, 0))
        part = law.part(self.powers + j for j in active)
        if all(self.kinds[j] == "normal" for j in active):
            if needs_integral(part):
                self.methods.add("plackett")
            return signs(part)
        if self.leaf is None:
            raise DomainError("expected normal ladders only, got a logistic one and no rule for it")
        value, error, word = self.leaf(part, tuple(self.kinds[j] for j in active), tuple(orders[j] for j in active))
        if word:
            self.methods.add(word)
        return value, error

    def _delta(self, law: Law, path: tuple, powers: tuple, orders: tuple, j: int) -> Pair:
        """Condition on y_j = 0."""
        i = self.powers + j
        if law.rows[i][i] <= 0:
            if law.mean[i] != 0:
                return 0.0, 0.0
            raise DomainError("the mean is infinite: a delta function of a variable that is fixed at zero")
        weight = density(law, i)
        if weight == 0:
            return 0.0, 5e-324
        value, error = self._at(law.given(i), (*path, j), powers, _with(orders, j, None))
        # the exponent m^2 / 2v is rounded once
        power = abs(math.log(weight)) + 4
        return weight * value, weight * (error + power * EPS * abs(value))

    def _sharper(self, law: Law, path: tuple, powers: tuple, orders: tuple, j: int) -> Pair:
        """Lower delta^(k), k >= 1: v E[delta^(k) F] = -(k-1) E[delta^(k-2) F] - m E[delta^(k-1) F] - Stein's rest."""
        i, k = self.powers + j, -1 - orders[j]
        variance = law.rows[i][i]
        if variance <= 0:
            if law.mean[i] != 0:
                return 0.0, 0.0
            raise DomainError("the mean is infinite: a delta function of a variable that is fixed at zero")
        duller = _with(orders, j, orders[j] + 1)
        terms = [(law.mean[i], powers, duller)]
        if k > 1:
            terms.append((k - 1, powers, _with(orders, j, orders[j] + 2)))
        terms += self._slopes(law, i, powers, duller, skip=j)
        return self._sum(law, path, [(-c / variance, p, o) for c, p, o in terms])

    def _stein(self, law: Law, path: tuple, i: int, powers: tuple, orders: tuple) -> Pair:
        """Return E[w_i F] for variable i of the law, F given by powers and orders."""
        return self._sum(law, path, [(law.mean[i], powers, orders), *self._slopes(law, i, powers, orders)])

    def _slopes(self, law: Law, i: int, powers: tuple, orders: tuple, skip: int = -1) -> list:
        """Return (C_ib [times a power], powers, orders) of every derivative of F."""
        row = law.rows[i]
        terms = [(p * row[b], _lower(powers, b), orders) for b, p in enumerate(powers) if p]
        for j, order in enumerate(orders):
            if order is not None and j != skip:
                terms.append((row[self.powers + j], powers, _with(orders, j, order - 1)))
        return terms

    def _sum(self, law: Law, path: tuple, terms: list) -> Pair:
        total, error = 0.0, 0.0
        for weight, powers, orders in terms:
            if weight == 0:
                continue  # also where the mean that it multiplies does not exist
            value, doubt = self._at(law, path, powers, orders)
            weight = float(weight)
            total += weight * value
            error += abs(weight) * (doubt + 2 * EPS * abs(value))
        return total, error + EPS * abs(total)


def _lower(powers: tuple[int, ...], a: int) -> tuple[int, ...]:
    """Return the powers with that of variable a lowered by one."""
    return (*powers[:a], powers[a] - 1, *powers[a + 1 :])


def _with(orders: tuple, j: int, order) -> tuple:
    """Return the orders with that of j replaced."""
    return (*orders[:j], order, *orders[j + 1 :])

"""Gaussian means without sampling: exponential tilts, and Stein's recursion with closed-form ends."""

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hermite.errors import TooLarge
from hermite.ladders import Factor, Ladder
from hermite.laws import EPS, Law
from hermite.stein import Recursion
from hermite.waves import tilted


@dataclass(frozen=True)
class Problem:
    """Product of factors of jointly Gaussian variables, with exact numbers.

    Arguments: factors; slots, the index of the variable of each factor; law of the variables (Fractions).

    >>> Problem((), (), Law((), ())).ladders
    []
    """

    factors: tuple[Factor, ...]
    slots: tuple[int, ...]
    law: Law

    @property
    def ladders(self) -> list[int]:
        """Return the factors, other than polynomials, that have a ladder with a non-zero scale."""
        return [k for k, f in enumerate(self.factors) if f.ladder and any(t.order is not None for t in f.terms)]

    @property
    def logistic(self) -> int:
        """Return the number of factors of the logistic ladder."""
        return sum(self._ladder(k).kind == "logistic" for k in self.ladders)

    @property
    def waves(self) -> int:
        """Return the number of cosines and sines."""
        return sum(f.name in ("cos", "sin") for f in self.factors)

    def kind(self, k: int) -> str:
        """Return the kind of the ladder of factor k."""
        return self._ladder(k).kind

    def sharp(self, k: int) -> bool:
        """Return True if every term of factor k is a delta function or a derivative of one."""
        return all(t.order is not None and t.order < 0 for t in self.factors[k].terms)

    def _ladder(self, k: int) -> Ladder:
        ladder = self.factors[k].ladder
        assert ladder is not None  # called only for the factors that `ladders` returns
        return ladder

    def joint(self) -> Law:
        """Return the law of the variables followed by the arguments of the ladders, noise included."""
        law, n = self.law, len(self.law.mean)
        at = [(i, Fraction(1), Fraction(0), Fraction(0)) for i in range(n)]
        for k in self.ladders:
            ladder = self._ladder(k)
            at.append((self.slots[k], ladder.scale, ladder.shift, ladder.noise))
        mean = tuple(scale * law.mean[i] + shift for i, scale, shift, _ in at)
        rows = [[a * b * law.rows[i][j] for j, b, *_ in at] for i, a, *_ in at]
        for m, (*_, noise) in enumerate(at):
            rows[m][m] += noise
        return Law(mean, tuple(map(tuple, rows)))


def reaches(problem: Problem) -> bool:
    """Return True if `evaluate` needs neither sampling nor a product rule.

    >>> reaches(Problem((), (), Law((), ())))
    True
    """
    # a factor of delta functions only (erf', step', relu'') disappears by conditioning
    left = [k for k in problem.ladders if problem.kind(k) == "logistic" or not problem.sharp(k)]
    if problem.waves:
        return len(problem.ladders) <= 1 and not problem.logistic
    return len(left) <= (2 if problem.logistic else 4)


def _expanded(problem: Problem) -> dict:
    """Return {rates: {phases: {orders: {powers: weight}}}} of the product of all factors."""
    n, ladders = len(problem.law.mean), problem.ladders
    result: dict = {}
    for choice in itertools.product(*(f.terms for f in problem.factors)):
        rates: list[Any] = [0] * n
        phase: Any = 0
        monomials: dict[tuple, Any] = {(0,) * n: Fraction(1)}
        orders = tuple(choice[k].order for k in ladders)
        for slot, term in zip(problem.slots, choice, strict=True):
            rates[slot] = rates[slot] + term.rate
            phase = phase + term.phase
            following: dict[tuple, Any] = {}
            for powers, weight in monomials.items():
                for p, c in enumerate(term.polynomial):
                    if c != 0:
                        key = (*powers[:slot], powers[slot] + p, *powers[slot + 1 :])
                        following[key] = following.get(key, 0) + weight * c
            monomials = following
        into = result.setdefault((tuple(rates), phase), {}).setdefault(orders, {})
        for powers, weight in monomials.items():
            into[powers] = into.get(powers, 0) + weight
    return result


def evaluate(problem: Problem, leaf=None) -> tuple[float, float, str]:
    """Return (value, error bound, method) of the mean, as a sum over products of terms of the factors.

    exp(rate . z) tilts the law: E[exp(l.z) F(z)] = exp(l.m + l.C l / 2) E[F(z + C l)], also for imaginary l, where at
    most one ladder function, a normal one, can follow.

    Arguments: problem; leaf as in `Recursion`. Raises: DomainError where the mean is infinite, TooLarge.
    Source: Stein 1981; Price 1958; Esscher 1932.

    >>> from hermite.ladders import factor
    >>> one = Fraction(1)
    >>> value, error, method = evaluate(Problem((factor("relu"),) * 2, (0, 0), Law((0,), ((one,),))))
    >>> value, error < 1e-15, method
    (0.5, True, 'closed form')
    """
    kinds = tuple(problem.kind(k) for k in problem.ladders)
    joint = problem.joint()
    exact, total, error = Fraction(0), [], 0.0
    methods: set[str] = set()
    for (rates, phase), by_orders in _expanded(problem).items():
        if any(isinstance(rate, complex) for rate in rates):
            value, doubt = tilted(joint.plain(), rates, phase, by_orders)
            total.append(value)
            error += doubt
            continue
        law, factor, rounding = _tilt(joint, rates, phase)
        recursion = Recursion(law, kinds, leaf)
        for orders, monomials in by_orders.items():
            for powers, weight in monomials.items():
                if factor == 1 and all(order is None for order in orders):
                    exact += weight * recursion.moment(powers)
                    continue
                value, doubt = recursion.mean(powers, orders) if weight else (0.0, 0.0)
                term = factor * float(weight) * value
                total.append(term)
                error += abs(factor * float(weight)) * doubt + abs(term) * (rounding + 2 * EPS)
        methods |= recursion.methods
    total.append(float(exact))
    value = math.fsum(total)
    return value, error + EPS * abs(value), _word(problem, methods)


def _tilt(joint: Law, rates: tuple, phase) -> tuple[Law, float, float]:
    """Return (tilted law, exp(l.m + l.C l / 2 + phase), its relative rounding) for real rates l of the variables."""
    if not any(rates) and phase == 0:
        return joint, 1.0, 0.0
    n = len(rates)
    moved = [sum((row[j] * rates[j] for j in range(n)), Fraction(0)) for row in joint.rows]
    power = phase + sum((r * (joint.mean[j] + moved[j] / 2) for j, r in enumerate(rates)), Fraction(0))
    if power > 700:
        raise TooLarge(f"expected exponentials of mean below 1e304, got exp({float(power):.4g}); lower the scale")
    law = Law(tuple(m + s for m, s in zip(joint.mean, moved, strict=True)), joint.rows)
    return law, math.exp(float(power)), (2 + abs(float(power))) * EPS


def _word(problem: Problem, methods: set[str]) -> str:
    """Return the name of the method: the one that the recursion used, otherwise the kind of the factors."""
    if methods:
        return " + ".join(sorted(methods))
    if len(problem.ladders) == 1 and not problem.waves:
        return "derivative means"
    return (
        "closed form" if problem.ladders or any(f.name in ("exp", "cos", "sin") for f in problem.factors) else "lemma"
    )

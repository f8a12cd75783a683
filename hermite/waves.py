"""Means of polynomials and at most one normal ladder function under a complex tilt, for cosines and sines."""

import cmath
import math

from hermite.errors import DomainError
from hermite.laws import EPS, Law
from hermite.polynomials import evaluate


class _Wave:
    """E[exp(l.z) prod z_a^p_a G_r(y)] / real numbers, complex l: the tilted mean m + C l and exp(l.m + l.C l / 2)."""

    def __init__(self, law: Law, rates: list[complex], phase: complex, active: int | None) -> None:
        n = len(rates)
        self.rows, self.active = law.rows, active
        moved = [sum(row[j] * rates[j] for j in range(n)) for row in law.rows]
        self.mean = [m + s for m, s in zip(law.mean, moved, strict=True)]
        self.power = phase + sum(r * (law.mean[j] + moved[j] / 2) for j, r in enumerate(rates))
        # rounding of the exponent, entry by entry: its terms may cancel
        parts = [abs(phase)] + [abs(r) * (abs(law.mean[j]) + abs(moved[j])) for j, r in enumerate(rates)]
        self.loss = 4 * EPS * (sum(parts) + 2)
        self.known: dict = {}

    def at(self, powers: tuple[int, ...], order: int | None) -> tuple[complex, float]:
        """Return (value, sum of the sizes of the terms), Stein's identity lowering one power at a time."""
        key = (powers, order)
        if key not in self.known:
            self.known[key] = self._at(powers, order)
        return self.known[key]

    def _at(self, powers: tuple[int, ...], order: int | None) -> tuple[complex, float]:
        a = next((i for i, p in enumerate(powers) if p), None)
        if a is None:
            return self._leaf(order)
        less = (*powers[:a], powers[a] - 1, *powers[a + 1 :])
        terms = [(self.mean[a], less, order)]
        for b, p in enumerate(less):
            if p:
                terms.append((p * self.rows[a][b], (*less[:b], p - 1, *less[b + 1 :]), order))
        if order is not None and self.active is not None:
            terms.append((self.rows[a][self.active], less, order - 1))
        total, size = 0j, 0.0
        for weight, low, rank in terms:
            if weight != 0:
                value, part = self.at(low, rank)
                total += weight * value
                size += abs(weight) * part
        return total, size

    def _leaf(self, order: int | None) -> tuple[complex, float]:
        """Return exp(power) E[G_order(y)] for a complex mean of y, without exponentials that could overflow."""
        if order is None or self.active is None:
            value = cmath.exp(self.power)
            return value, abs(value)
        variance, mean = self.rows[self.active][self.active], self.mean[self.active]
        if order > 0:
            flat, sharp = self._leaf(0), self._leaf(-1)
            value = mean * flat[0] + variance * sharp[0]
            return value, abs(mean) * flat[1] + variance * sharp[1]
        if variance <= 0:
            if order < 0 and mean == 0:
                raise DomainError("the mean is infinite: a delta function of a variable that is fixed at zero")
            sign = ((mean.real > 0) - (mean.real < 0)) / 2 if order == 0 else 0.0
            value = sign * cmath.exp(self.power)
            return value, abs(value)
        x = mean / math.sqrt(variance)
        if order == 0:
            return self._sign(x)
        k = -1 - order
        density = cmath.exp(self.power - x * x / 2) / math.sqrt(2 * math.pi)
        value = (-1) ** k * evaluate(k, x) * density / variance ** ((k + 1) / 2)
        return value, abs(density) * float(evaluate(k, 1j * abs(x)).__abs__()) / variance ** ((k + 1) / 2)

    def _sign(self, x: complex) -> tuple[complex, float]:
        """Return exp(power) erf(x / sqrt 2) / 2 through Faddeeva's function, bounded in the upper half plane."""
        from scipy.special import wofz

        side = 1.0 if x.real >= 0 else -1.0
        flat = cmath.exp(self.power)
        tail = cmath.exp(self.power - x * x / 2) * complex(wofz(1j * side * x / math.sqrt(2)))
        # Faddeeva's function claims a relative accuracy of 1e-13, so 16 EPS times its size is not enough
        return side * (flat - tail) / 2, (abs(flat) + 64 * abs(tail) + abs(x) ** 2 * abs(tail)) / 2


def tilted(law: Law, rates: tuple, phase, by_orders: dict) -> tuple[float, float]:
    """Return (real part, error bound) of sum weight E[exp(rates . z + phase) prod z^p G_r(y)].

    Arguments: law of the n variables and the ladder arguments, in floats; rates (n,), complex; phase; by_orders,
    {orders of the ladders: {powers: weight}} with at most one ladder in use. Raises: DomainError.
    Source: Esscher 1932 (tilting); Poppe & Wijers 1990 (the error function of complex argument).

    >>> value, error = tilted(Law((0.0,), ((1.0,),)), (1j,), 0j, {(): {(0,): 1.0}})
    >>> abs(value - math.exp(-0.5)) <= error < 1e-14
    True
    """
    n = len(rates)
    total, error = 0.0, 0.0
    plain = [complex(rate) if isinstance(rate, complex) else complex(float(rate)) for rate in rates]
    start = complex(phase) if isinstance(phase, complex) else complex(float(phase))
    waves: dict = {}
    for orders, monomials in by_orders.items():
        used = [j for j, order in enumerate(orders) if order is not None]
        active = n + used[0] if used else None
        wave = waves.setdefault(active, _Wave(law, plain, start, active))
        for powers, weight in monomials.items():
            value, size = wave.at(powers, orders[used[0]] if used else None)
            factor = complex(weight) if isinstance(weight, complex) else complex(float(weight))
            total += (factor * value).real
            error += abs(factor) * size * (wave.loss + EPS * (8 + 4 * sum(powers)))
    return total, error

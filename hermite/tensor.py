"""Gaussian means of analytic factors by product rules in the eigenbasis of the covariance, nodes per eigenvalue."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hermite.errors import NotReached
from hermite.ladders import Factor
from hermite.laws import EPS

if TYPE_CHECKING:
    from jaxtyping import Float

# points of the finer rule, about half a second for three factors
GRID = 2_097_152
# exp(-40) = 4e-18 is the error of the finer rule, exp(-30) = 1e-13 of the coarser
DIGITS = 40.0
COARSE = 30.0


@dataclass(frozen=True)
class _Axis:
    """Analyticity of the integrand along one eigenvector: strip half-width, Gaussian and exponential growth."""

    strip: float
    gauss: float
    linear: float


def _axes(factors, slots, arms: np.ndarray) -> list[_Axis]:
    """Return the analyticity along each column of arms (z = m + arms x)."""
    axes = []
    for column in arms.T:
        strip, gauss, linear = math.inf, 1.0, 0.0
        for f, slot in zip(factors, slots, strict=True):
            reach = abs(float(column[slot]))
            if f.ladder is not None and reach > 0 and f.ladder.scale != 0:
                inner = abs(float(f.ladder.scale)) * reach
                if f.ladder.kind == "logistic":
                    strip = min(strip, 0.95 * math.pi / inner)
                else:
                    gauss += inner * inner / float(f.ladder.noise)
            linear += max((abs(complex(t.rate)) for t in f.terms), default=0.0) * reach
        axes.append(_Axis(strip, gauss, linear))
    return axes


def _rule(axis: _Axis, digits: float) -> tuple[np.ndarray, np.ndarray]:
    """Return (nodes, weights) of the cheaper of the trapezoidal and Gauss-Hermite rules for `digits` e-folds.

    Trapezoidal: the error of step h is exp(gauss y^2 / 2 + linear y - 2 pi y / h) for any y within the strip.
    Gauss-Hermite of m nodes: m! / r^2m times the growth up to r, for any radius r of analyticity (Cauchy's bound of
    the derivative 2m); one node more is taken.
    """
    width = min(axis.strip, math.sqrt(2 * digits / axis.gauss))
    step = 2 * math.pi * width / (digits + axis.gauss * width * width / 2 + axis.linear * width)
    reach = math.sqrt(2 * digits) + 0.7 + axis.linear
    count = 2 * math.ceil(reach / step) + 1
    radius = np.geomspace(1.0, max(min(axis.strip, 1e9), 1.0), 200)
    growth = (axis.gauss - 1) * radius**2 / 2 + axis.linear * radius
    for m in range(1, min(count, 60)):
        if math.lgamma(m + 1) + float(np.min(growth - 2 * m * np.log(radius))) < -digits:
            x, w = np.polynomial.hermite_e.hermegauss(m + 1)
            return x, w / math.sqrt(2 * math.pi)
    x = (np.arange(count) - count // 2) * step
    return x, step * np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)


def evaluate(factors, slots, mean: Float[np.ndarray, "n"], covariance: Float[np.ndarray, "n n"]) -> tuple[float, float]:
    """Return (E[prod f_k], error estimate) for analytic factors by a product rule in the eigenbasis.

    sum over the grid of prod w_i prod_k f_k(m + A x), A the eigenvectors times the roots of the eigenvalues. The number
    of nodes along each axis follows from the analyticity of the factors along it. The estimate is rounding plus the
    difference from a rule for three quarters of the digits, whose error is far larger.

    Arguments: factors, all smooth; slots, their variables; mean (n,); covariance (n, n). Raises: NotReached when the
    rule needs more than 2 million points. Source: Trefethen & Weideman 2014.

    >>> from hermite.ladders import factor
    >>> value, error = evaluate([factor("cos")] * 3, (0, 1, 2), np.zeros(3), np.eye(3))
    >>> abs(value - math.exp(-1.5)) <= error < 1e-12
    True
    """
    values, vectors = np.linalg.eigh(covariance)
    arms = vectors * np.sqrt(np.maximum(values, 0.0))
    arms = arms[:, np.abs(arms).max(axis=0) > 0] if arms.size else arms
    axes = _axes(factors, slots, arms)
    answers = []
    size = 0.0
    for digits in (DIGITS, COARSE):
        rules = [_rule(axis, digits) for axis in axes]
        count = math.prod(len(x) for x, _ in rules)
        if count > GRID:
            raise NotReached(f"expected a product rule of at most {GRID} points, got {count}")
        value, magnitude = _sum(factors, slots, mean, arms, rules)
        answers.append(value)
        size = max(size, magnitude)
    # eigh moves the covariance by some ulp of its largest entry; sums and arguments are rounded, too
    slack = 256 * EPS * (1 + float(np.abs(covariance).max(initial=0.0)) * _steepness(factors) ** 2)
    slack += 8 * EPS * _sharpness(factors, slots, mean, covariance)
    return answers[0], abs(answers[0] - answers[1]) + slack * size


def _steepness(factors: list[Factor] | tuple[Factor, ...]) -> float:
    """Return the largest scale of a factor."""
    return max((abs(f.scale) for f in factors), default=0.0)


def _sharpness(factors, slots, mean: np.ndarray, covariance: np.ndarray) -> float:
    """Return the largest relative change of a factor when its variable moves by the largest standard deviation.

    Rounding moves every variable by some ulp of the largest deviation. This matters for an almost constant variable if
    its factor is almost zero (erf at a deviation of 1e-3, if another deviation is 1).
    """
    deviations = np.sqrt(np.diagonal(covariance))
    largest, found = float(deviations.max(initial=0.0)), 0.0
    for f, slot in zip(factors, slots, strict=True):
        if deviations[slot] > 0:
            ends = np.abs(f(mean[slot] + deviations[slot] * np.array([-1.0, 0.0, 1.0])))
            slope = abs(float(np.diff(f(mean[slot] + deviations[slot] * np.array([-1.0, 1.0])))[0]))
            found = max(found, slope * largest / (2 * deviations[slot] * max(float(ends.max()), 1e-300)))
    return float(found)


def _sum(factors, slots, mean: np.ndarray, arms: np.ndarray, rules: list) -> tuple[float, float]:
    """Return (sum, sum of sizes), a slab of the longest axis at a time."""
    if not rules:
        value = math.prod(float(f(mean[s])) for f, s in zip(factors, slots, strict=True))
        return value, abs(value)
    long = max(range(len(rules)), key=lambda i: len(rules[i][0]))
    others = [i for i in range(len(rules)) if i != long]
    base, weight = mean[:, None], np.ones(1)
    for i in others:
        x, w = rules[i]
        base = (base[:, :, None] + arms[:, i][:, None, None] * x).reshape(len(mean), -1)
        weight = np.multiply.outer(weight, w).ravel()
    total, size = [], []
    for x, w in zip(*rules[long], strict=True):
        z = base + (arms[:, long] * x)[:, None]
        product = weight * w
        for f, slot in zip(factors, slots, strict=True):
            product = product * f(z[slot])
        total.append(float(product.sum()))
        size.append(float(np.abs(product).sum()))
    return math.fsum(total), math.fsum(size)

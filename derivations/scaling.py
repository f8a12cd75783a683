"""Exponents of measured scalings: local ones and their limit for exact data, one per run for sampled data.

The functions are independent of networks: y(x) = C x^p (log x)^q (1 + corrections), with all computations in
logarithms.
"""

import dataclasses
import fractions
import functools
import math
from collections.abc import Mapping, Sequence

import numpy as np

Numbers = Sequence[float] | np.ndarray


@dataclasses.dataclass(frozen=True)
class Form:
    """A family y = C x^exponent (log x)^logarithm, with a free or a fixed exponent."""

    name: str
    logarithm: float = 0.0
    exponent: float | None = None

    def remove(self, x: np.ndarray, log_y: np.ndarray) -> np.ndarray:
        """log y minus the logarithmic factor: a pure power if the form is true."""
        return log_y - self.logarithm * np.log(logarithm(x)) if self.logarithm else log_y


def logarithm(x: Numbers) -> np.ndarray:
    """Return the logarithm of sizes as a factor of a law has it: |log x|, or 1 + log(x/min x) for sizes near one.

    A coordinate that tends to zero has log(1/x). If the sizes include 1, or come closer to it than a factor e, log x
    has a zero and is not a physical factor: the smallest size is then the unit.

    Example:
        >>> logarithm([100.0, 1000.0]).round(3).tolist(), logarithm([1e-3, 1e-2]).round(3).tolist()
        ([4.605, 6.908], [6.908, 4.605])
        >>> logarithm([2.0, 4.0]).round(3).tolist()
        [1.0, 1.693]
    """
    logs = np.log(np.asarray(x, float))
    return np.abs(logs) if (logs >= 1).all() or (logs <= -1).all() else 1 + logs - logs.min()


ROUNDED = 5.1e-3
"""Largest distance of a fraction from its first two decimals."""


@functools.lru_cache(maxsize=1024)
def rivals(exponent: float, over: str, with_logarithms: bool = True) -> tuple[Form, ...]:
    """Return the rivals of a power: laws with a logarithm, and the nearest simple fractions.

    Args:
        exponent: the exponent p of the claim.
        over: the coordinate, for the names.
        with_logarithms: include x^p (log x)^q for q = -1, -1/2, 1/2, 1.

    Returns:
        Those with a logarithm, and the nearest multiples of 1, 1/2 or 1/3 below and above p, except one that rounds
        to p.

    Example:
        >>> [form.name for form in rivals(0.5, "d")]
        ['d^0.5 (log d)^-1', 'd^0.5 (log d)^-0.5', 'd^0.5 (log d)^0.5', 'd^0.5 (log d)^1', 'd^1/3', 'd^2/3']
    """
    logs = tuple(
        Form(f"{over}^{exponent:.4g} (log {over})^{q:g}", logarithm=q, exponent=exponent)
        for q in (-1.0, -0.5, 0.5, 1.0)
    )
    base = math.floor(exponent)
    simple = sorted({fractions.Fraction(n, b) for b in (2, 3) for n in range((base - 1) * b, (base + 2) * b + 1)})
    # A fraction that rounds to the exponent is the claim itself, written in decimals: -0.33 is no rival of -1/3.
    below = [f for f in simple if f < exponent - ROUNDED]
    above = [f for f in simple if f > exponent + ROUNDED]
    nearest = tuple(Form(f"{over}^{fraction}", exponent=float(fraction)) for fraction in (below[-1], above[0]))
    return (logs if with_logarithms else ()) + nearest


@dataclasses.dataclass(frozen=True)
class Limit:
    """The exponent that local exponents tend to, with an error bound."""

    value: float
    error: float


def medians(x: Numbers, y: Numbers) -> tuple[np.ndarray, np.ndarray]:
    """Distinct x in increasing order and the median of y at each.

    Example:
        >>> at, middle = medians([1, 2, 1, 2, 1, 2], [5, 7, 5, 7, 1e9, 7])
        >>> at.tolist(), middle.tolist()
        ([1.0, 2.0], [5.0, 7.0])
    """
    at, values = np.asarray(x, float), np.asarray(y, float)
    distinct = np.unique(at)
    return distinct, np.array([np.median(values[at == value]) for value in distinct])


def least_squares(x: np.ndarray, y: np.ndarray, form: Form) -> tuple[float, float, float]:
    """(exponent, log prefactor, root mean square residual) of log y against log x for a form."""
    target = form.remove(x, np.log(y))
    if form.exponent is not None:
        level = target - form.exponent * np.log(x)
        return form.exponent, float(level.mean()), float(np.sqrt(((level - level.mean()) ** 2).mean()))
    slope, constant = np.polyfit(np.log(x), target, 1)
    return float(slope), float(constant), float(np.sqrt(((target - slope * np.log(x) - constant) ** 2).mean()))


def local_exponents(x: np.ndarray, log_y: np.ndarray) -> np.ndarray:
    """Slopes of log y between neighbouring x (..., n - 1), the x increasing.

    Example:
        >>> x = np.array([1.0, 10.0, 100.0])
        >>> local_exponents(x, np.log(3 * x**0.5)).round(12).tolist()
        [0.5, 0.5]
    """
    return np.diff(log_y, axis=-1) / np.diff(np.log(x))


def limit(x: np.ndarray, exponents: np.ndarray, error: float, correction: str | float = "") -> Limit:
    """Return the limit of local exponents, estimated from the last three.

    Args:
        x: the sizes (n,), increasing.
        exponents: the local exponents (n - 1,), at least three.
        error: the numerical error of each of them.
        correction: "log" for p + c / log x, a number s for p + c x^-s. By default x^-s with s from the data; the
            distance to the extrapolation in 1 / log x is then part of the error.

    Returns:
        The limit; its error is the spread of the extrapolations from the last two and the last three exponents.

    Example:
        >>> x = 10.0 ** np.arange(2, 8)
        >>> p = local_exponents(x, np.log(x**0.5 * np.log(x)))
        >>> round(float(p[-1]), 2), round(limit(x, p, 1e-12, "log").value, 3)
        (0.57, 0.5)
    """
    middle = np.sqrt(x[:-1] * x[1:])
    if np.abs(np.diff(exponents[-3:])).max() <= 2 * error:  # they have converged; the rest is numerical error
        return Limit(float(exponents[-1]), 2 * error)
    if correction == "":
        powers, logs = (limit(x, exponents, error, kind) for kind in (_decay(exponents, middle), "log"))
        return Limit(powers.value, abs(powers.value - logs.value) + powers.error)
    u = 1 / np.log(middle) if correction == "log" else middle ** -float(correction)
    last, all_three = (np.polyfit(u[-n:], exponents[-n:], 1) for n in (2, 3))
    gain = float(1 + 2 * u[-1] / abs(u[-1] - u[-2]))  # error of the extrapolation from the error of an exponent
    return Limit(float(last[1]), float(abs(last[1] - all_three[1]) + gain * error))


def _decay(exponents: np.ndarray, middle: np.ndarray) -> float:
    """The s of corrections x^-s from the last two differences, between 1/20 and 2."""
    before, after = abs(exponents[-2] - exponents[-3]), abs(exponents[-1] - exponents[-2])
    if before <= 0 or after <= 0:
        return 2.0
    return float(np.clip(np.log(before / after) / np.log(middle[-1] / middle[-2]), 0.05, 2.0))


def table(
    samples: Sequence[tuple[Mapping[str, float], int, float]], over: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(x, seeds, y): distinct sizes (n,), the seeds measured at every one of them (runs,), their values (runs, n).

    If a seed has several measurements at one size (points that differ in another coordinate), their geometric mean is
    used, because they belong to one draw.
    """
    x = np.unique([float(point[over]) for point, _, _ in samples])
    found: dict[int, list[list[float]]] = {}
    for point, seed, value in samples:
        found.setdefault(seed, [[] for _ in x])[int(np.searchsorted(x, float(point[over])))].append(float(value))
    complete = {seed: row for seed, row in found.items() if all(cell and np.isfinite(cell).all() for cell in row)}
    y = [[_middle(cell) for cell in row] for row in complete.values()]
    return x, np.array(list(complete), int), np.array(y, float).reshape(len(complete), x.size)


def _middle(cell: list[float]) -> float:
    """Return the geometric mean, or the smallest value if that is not positive."""
    if len(cell) == 1:
        return cell[0]
    return float(np.exp(np.log(cell).mean())) if min(cell) > 0 else min(cell)

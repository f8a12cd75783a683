"""Fits of measured scalings: powers with logarithms and finite-size shifts, against rivals, with bootstrap intervals.

Knows nothing of networks.  A fit is least squares in the logarithm; the interval of an exponent comes from
resampling seeds within every point of the sweep; two laws are compared by their residuals on the same points.
"""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

RESAMPLES = 1000
Numbers = Sequence[float] | np.ndarray


@dataclasses.dataclass(frozen=True)
class Form:
    """A family y = C x^exponent (log x)^logarithm, with a free or a fixed exponent."""

    name: str
    logarithm: float = 0.0
    exponent: float | None = None


@dataclasses.dataclass(frozen=True)
class Fit:
    """The exponent with its 95 % interval, the prefactor, and the root mean square residual in log y."""

    form: Form
    exponent: float
    interval: tuple[float, float]
    prefactor: float
    residual: float
    points: int


def medians(x: Numbers, y: Numbers) -> tuple[np.ndarray, np.ndarray]:
    """Distinct x in increasing order and the median of y at each."""
    at, values = np.asarray(x, float), np.asarray(y, float)
    distinct = np.unique(at)
    return distinct, np.array([np.median(values[at == value]) for value in distinct])


def least_squares(x: np.ndarray, y: np.ndarray, form: Form) -> tuple[float, float, float]:
    """(exponent, log prefactor, root mean square residual) of log y against log x for a form."""
    target = np.log(y) - form.logarithm * np.log(np.log(x)) if form.logarithm else np.log(y)
    if form.exponent is not None:
        level = target - form.exponent * np.log(x)
        return form.exponent, float(level.mean()), float(np.sqrt(((level - level.mean()) ** 2).mean()))
    slope, constant = np.polyfit(np.log(x), target, 1)
    return float(slope), float(constant), float(np.sqrt(((target - slope * np.log(x) - constant) ** 2).mean()))


def fit(x: Numbers, y: Numbers, form: Form, seed: int = 0) -> Fit:
    """Fit a form to medians over seeds; the interval resamples the measurements at every x (1000 times)."""
    xs, ys = np.asarray(x, float), np.asarray(y, float)
    distinct, middle = medians(xs, ys)
    if distinct.size < 3:
        raise ValueError(f"a fit needs at least three different x, but got {distinct.size}")
    if (middle <= 0).any() or not np.isfinite(middle).all():
        raise ValueError("a fit in logarithms needs positive finite medians")
    exponent, constant, residual = least_squares(distinct, middle, form)
    rng = np.random.default_rng(seed)
    groups = [ys[xs == value] for value in distinct]
    slopes = np.array([least_squares(distinct, _resample(groups, rng), form)[0] for _ in range(RESAMPLES)])
    low, high = np.quantile(slopes, [0.025, 0.975])
    return Fit(form, exponent, (float(low), float(high)), float(np.exp(constant)), residual, distinct.size)


def _resample(groups: list[np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """Medians of resampled groups; groups of one size hold the same seeds in order and are resampled together."""
    sizes = {group.size for group in groups}
    if len(sizes) == 1:
        index = rng.integers(0, groups[0].size, groups[0].size)
        return np.array([np.median(group[index]) for group in groups])
    return np.array([np.median(rng.choice(group, group.size)) for group in groups])


def compare(x: Numbers, y: Numbers, law: Form, rivals: Sequence[Form], seed: int = 0) -> dict[str, float]:
    """For each rival, the fraction of resamples in which the law leaves the smaller residual (1: always)."""
    xs, ys = np.asarray(x, float), np.asarray(y, float)
    distinct = np.unique(xs)
    groups = [ys[xs == value] for value in distinct]
    rng = np.random.default_rng(seed)
    wins = dict.fromkeys((rival.name for rival in rivals), 0.0)
    for _ in range(RESAMPLES // 4):
        sample = _resample(groups, rng)
        own = least_squares(distinct, sample, law)[2]
        for rival in rivals:
            wins[rival.name] += float(own < least_squares(distinct, sample, rival)[2]) / (RESAMPLES // 4)
    return wins


def wilson(successes: int, trials: int, z: float = 1.96) -> tuple[float, float]:
    """The 95 % Wilson interval of a probability."""
    if trials == 0:
        return 0.0, 1.0
    p, n = successes / trials, trials
    centre, width = p + z**2 / (2 * n), z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    low, high = (centre - width) / (1 + z**2 / n), (centre + width) / (1 + z**2 / n)
    return max(0.0, float(low)), min(1.0, float(high))  # beyond [0, 1] by rounding only


def bootstrap_median(values: Numbers, seed: int = 0) -> tuple[float, float]:
    """The 95 % percentile interval of a median."""
    data = np.asarray(values, float)
    rng = np.random.default_rng(seed)
    found = np.median(rng.choice(data, (RESAMPLES, data.size)), axis=1)
    return float(np.quantile(found, 0.025)), float(np.quantile(found, 0.975))


def columns(samples: Sequence[tuple[Mapping[str, float], int, float]], name: str) -> tuple[list[float], list[float]]:
    """(x, y) of samples against the coordinate `name` of their points."""
    return [float(point[name]) for point, _, _ in samples], [float(value) for _, _, value in samples]

"""Error rates of the laws, on synthetic data sets with the designs in use, for true and for wrong claims.

`python -m derivations.laws.calibration` prints the table of `docs/verdicts.md`.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from derivations.claim import HOLDS, Samples
from derivations.laws import Agrees, All, Bounded, Equals, Mean, Power, Probability, Proven, Tends, Typical, Vanishes
from derivations.laws.agreement import score

TRIALS = 400
Draw = Callable[[np.random.Generator, int], Samples]
"""`draw(rng, wrong)` returns a data set in which the claim is wrong by this number of margins: 0, 1 or 2."""
Scatter = Callable[..., np.ndarray]
"""`scatter(rng, shape)` draws deviations of runs whose median is 0."""


@dataclasses.dataclass(frozen=True)
class Design:
    """A law with the points, runs and noise of claims in use."""

    name: str
    law: Any
    draw: Draw


@dataclasses.dataclass(frozen=True)
class Rates:
    """Shares of data sets: held although wrong by one or two margins, refuted although true, and left open although
    true.
    """

    held_one: float
    held_two: float
    refuted_true: float
    open_true: float


def rates(design: Design, trials: int = TRIALS, seed: int = 0) -> Rates:
    """Judge `trials` data sets with a true claim, and as many each with one that is wrong by one and by two margins."""
    rng = np.random.default_rng(seed)
    true, one, two = ([design.law.judge(design.draw(rng, wrong)).answer for _ in range(trials)] for wrong in (0, 1, 2))
    held_one, held_two = (sum(answer in HOLDS for answer in wrong) / trials for wrong in (one, two))
    return Rates(held_one, held_two, true.count("refuted") / trials, true.count("inconclusive") / trials)


def normal(rng: np.random.Generator, shape: Any) -> np.ndarray:
    """Normal scatter."""
    return rng.normal(size=shape)


def exponential(rng: np.random.Generator, shape: Any) -> np.ndarray:
    """Exponential scatter: runs far above the typical one and none far below."""
    return rng.exponential(size=shape) - math.log(2)


def lognormal(rng: np.random.Generator, shape: Any) -> np.ndarray:
    """Lognormal scatter, more skewed than the exponential one."""
    return np.exp(rng.normal(size=shape)) - 1


def rare(rng: np.random.Generator, shape: Any) -> np.ndarray:
    """Normal scatter of a tenth, with three runs in a hundred at a distance of a hundred."""
    return 0.1 * rng.normal(size=shape) + 100.0 * (rng.random(shape) < 0.03)


def off_by(law: Any, rng: np.random.Generator, wrong: int) -> float:
    """Return a deviation of `wrong` margins, of random sign if both signs are wrong."""
    sides = {"at most": [1], "at least": [-1]}.get(getattr(law, "bound", ""), [-1, 1])
    return wrong * law.margin * float(rng.choice(sides))


def sizes_of(count: int, decades: float) -> np.ndarray:
    """Geometric sizes from 1000."""
    return 10 ** np.linspace(3, 3 + decades, count)


def by_size(law: Power, x: np.ndarray, y: np.ndarray) -> Samples:
    """The runs (runs, sizes) as samples."""
    return [({law.over: float(x[k])}, seed, float(y[seed, k])) for k in range(x.size) for seed in range(len(y))]


def sampled_power(
    law: Power, sizes: int, runs: int, noise: float, decades: float, scatter: Scatter = normal, common: float = 0.0
) -> Draw:
    """x^p with independent noise of log y at every size of every run, and a `common` part for all runs of a size."""
    x = sizes_of(sizes, decades)

    def draw(rng: np.random.Generator, wrong: int) -> Samples:
        shared = common * rng.normal(size=sizes)
        y = x ** (law.exponent + off_by(law, rng, wrong)) * np.exp(noise * scatter(rng, (runs, sizes)) + shared)
        return by_size(law, x, y)

    return draw


def skewed_slopes(law: Power, sizes: int, runs: int, noise: float, scatter: Scatter) -> Draw:
    """x^p with an individual exponent in every run; the median of the exponents is p."""
    x = sizes_of(sizes, 4.0)

    def draw(rng: np.random.Generator, wrong: int) -> Samples:
        slopes = law.exponent + off_by(law, rng, wrong) + noise * law.margin * scatter(rng, (runs, 1))
        return by_size(law, x, x**slopes * np.exp(0.01 * rng.normal(size=(runs, sizes))))

    return draw


def with_logarithm(law: Power, sizes: int, runs: int, noise: float, decades: float) -> Draw:
    """x^p (log x)^q, q = 1/2 or -1/2 for one margin, 1 or -1 for two; exact data have one run."""
    x = sizes_of(sizes, decades)

    def draw(rng: np.random.Generator, wrong: int) -> Samples:
        y = (
            x**law.exponent
            * np.log(x) ** (wrong / 2 * rng.choice([-1, 1]))
            * np.exp(noise * rng.normal(size=(runs, sizes)))
        )
        correction = 1 + (rng.uniform(-2, 2) * x**-0.5 if law.error is not None else 0.0)
        return by_size(law, x, y * correction)

    return draw


def exact_power(law: Power, sizes: int, decades: float) -> Draw:
    """x^p (1 + c x^-s), |c| <= 2, s between 1/4 and 1."""
    x = sizes_of(sizes, decades)

    def draw(rng: np.random.Generator, wrong: int) -> Samples:
        y = x ** (law.exponent + off_by(law, rng, wrong)) * (1 + rng.uniform(-2, 2) * x ** -rng.uniform(0.25, 1))
        return by_size(law, x, y[None])

    return draw


def sampled_value(
    law: Equals, points: int, runs: int, noise: float, scatter: Scatter = normal, common: float = 0.0
) -> Draw:
    """Runs with `noise` margins of scatter, `common` margins for all runs of a point; wrong: the last point."""

    def draw(rng: np.random.Generator, wrong: int) -> Samples:
        deviations = noise * scatter(rng, (points, runs)) + common * rng.normal(size=(points, 1))
        found = law.value + law.margin * deviations
        found[-1] += off_by(law, rng, wrong)
        return [({"k": k}, seed, float(found[k, seed])) for k in range(points) for seed in range(runs)]

    return draw


def share(law: Probability, runs: int) -> Draw:
    """Bernoulli runs at the bound itself; wrong: beyond it by the visible share."""
    return numbers(lambda rng, wrong: rng.random(runs) < law.low - wrong * law.visible)


def trend(law: Tends, runs: int, falls: bool = False) -> Draw:
    """Shares 1 - x^-1/2 at four sizes; wrong: a constant share below `last`, or one that decreases from 1 to it."""

    def draw(rng: np.random.Generator, wrong: int) -> Samples:
        x = 10.0 ** np.arange(1, 5)
        level = law.last - wrong * law.visible
        p = 1 - x**-0.5 if not wrong else np.linspace(1, level, 4) if falls else np.full(4, level)
        hits = rng.random((runs, 4)) < p
        return [({law.over: float(x[k])}, seed, float(hits[seed, k])) for k in range(4) for seed in range(runs)]

    return draw


def sampled_bound(law: Typical, runs: int, scatter: Scatter) -> Draw:
    """Runs around a typical one that satisfies a lower bound by a margin, or violates it."""
    return numbers(lambda rng, wrong: law.low + law.margin * ((-wrong or 1) + 0.5 * scatter(rng, runs)))


def mean_of_shares(law: Mean, runs: int) -> Draw:
    """Runs of a quantity in [0, 1] with many small values (a beta distribution); wrong: its mean beyond the bound."""

    def draw(rng: np.random.Generator, wrong: int) -> Samples:
        centre = 0.1 if not wrong else law.high + wrong * law.margin
        return [({}, seed, float(v)) for seed, v in enumerate(rng.beta(4 * centre, 4 * (1 - centre), runs))]

    return draw


def rare_mean(law: Mean, runs: int) -> Draw:
    """Runs of value 0, and `wrong` margins of runs of value 1 that determine the mean."""
    return numbers(lambda rng, wrong: rng.random(runs) < wrong * law.margin)


def numbers(make: Callable[[np.random.Generator, int], Sequence[float] | np.ndarray]) -> Draw:
    """Cases at one point."""
    return lambda rng, wrong: [({}, seed, float(value)) for seed, value in enumerate(make(rng, wrong))]


def batches(law: Agrees, count: int, size: int, scatter: Scatter) -> Draw:
    """Means over `count` batches of `size` samples each of a skewed quantity around 1, whose mean is off."""

    mean = float(scatter(np.random.default_rng(0), 10**6).mean())

    def draw(rng: np.random.Generator, wrong: int) -> Samples:
        found = 1 + off_by(law, rng, wrong) + scatter(rng, (count, size)).mean(axis=1) - mean
        return [({}, 0, score(found.mean(), found.std(ddof=1) / math.sqrt(count), 1.0, freedom=count - 1))]

    return draw


def parts(draws: dict[str, Draw]) -> Draw:
    """A mapping of several measurements of which only the first is wrong."""

    def draw(rng: np.random.Generator, wrong: int) -> Samples:
        found = {name: draw(rng, wrong if k == 0 else 0) for k, (name, draw) in enumerate(draws.items())}
        first = next(iter(found.values()))
        return [(*first[i][:2], {name: samples[i][2] for name, samples in found.items()}) for i in range(len(first))]

    return draw


def powers() -> list[Design]:
    """Exponents: sampled and exact, with skew, rare runs, a common component of runs, few sizes and logarithms."""
    half, steep = Power(0.5, margin=0.03, short="a design"), Power(-1.0, margin=0.1, short="a design")
    most = Power(-0.5, margin=0.05, bound="at most", short="a design")
    exact, coarse = Power(0.5, error=1e-6, short="a design"), Power(-1.0, margin=0.05, error=1e-6, short="a design")
    found = [
        Design(f"power, {n} sizes, {r} runs, scatter {s:g}", law, sampled_power(law, n, r, s, w))
        for law, n, r, s, w in (
            (half, 4, 6, 0.02, 3.0), (half, 5, 6, 0.1, 4.0), (half, 5, 12, 0.3, 8.0), (steep, 4, 8, 0.1, 2.0),
            (steep, 6, 20, 0.5, 2.0),
        )
    ]  # fmt: skip
    found += [
        Design(f"bound of a power, {n} sizes, {r} runs, scatter {s:g}", most, sampled_power(most, n, r, s, 4.0))
        for n, r, s in ((4, 6, 0.1), (5, 12, 0.4))
    ]
    found += [
        Design(f"power, exact, {n} sizes over {w:g} decades", law, exact_power(law, n, w))
        for law, n, w in ((exact, 5, 4.0), (coarse, 4, 2.0))
    ]
    found += [
        Design(f"power, {kind.__name__} scatter, 5 sizes, {r} runs", half, sampled_power(half, 5, r, 0.2, 4.0, kind))
        for kind, r in ((exponential, 8), (lognormal, 20))
    ]
    found += [
        Design(f"power, {kind.__name__} exponents, 5 sizes, {r} runs", half, skewed_slopes(half, 5, r, s, kind))
        for kind, r, s in ((exponential, 6, 0.5), (exponential, 20, 1.0), (lognormal, 12, 0.5), (rare, 8, 1.0))
    ]
    found += [
        Design(
            f"{law.bound and 'bound of a '}power, runs share a component, {n} sizes, {r} runs",
            law,
            sampled_power(law, n, r, 0.05, 4.0, common=s),
        )
        for law, n, r, s in ((half, 4, 6, 0.1), (half, 5, 12, 0.2), (most, 5, 12, 0.2))
    ]
    found += [
        Design("power, three sizes, 12 runs, scatter 0.1", half, sampled_power(half, 3, 12, 0.1, 4.0)),
        *(
            Design(f"power or logarithm, {n} sizes, {r} runs, scatter {s:g}", law, with_logarithm(law, n, r, s, w))
            for law, n, r, s, w in (
                (half, 5, 6, 0.02, 4.0), (steep, 5, 8, 0.05, 2.0), (Power(1.0, margin=0.25), 5, 20, 0.3, 4.0),
            )
        ),
        *(
            Design(f"power or logarithm, exact, {n} sizes over {w:g} decades", exact, with_logarithm(exact, n, 1, 0, w))
            for n, w in ((5, 4.0), (7, 6.0))
        ),
    ]  # fmt: skip
    return found


def values() -> list[Design]:
    """Values, probabilities and means of runs, with the same faults."""
    value, chance, tends = Equals(1.0, relative=0.05), Probability(low=0.65), Tends()
    typical = Typical(low=0.0, margin=0.1)
    shares, carried = Mean(high=0.3, margin=0.1, limits=(0.0, 1.0)), Mean(high=0.0, margin=0.03, limits=(0.0, 1.0))
    found = [
        Design(f"value, {k} points, {r} runs, scatter {s:g} margins", value, sampled_value(value, k, r, s))
        for k, r, s in ((1, 6, 0.3), (1, 9, 1.0), (4, 6, 0.5), (8, 20, 2.0))
    ]
    found += [
        Design(f"value, {kind.__name__} scatter, {r} runs", value, sampled_value(value, 1, r, s, kind))
        for kind, r, s in (
            (exponential, 6, 0.5), (exponential, 20, 1.0), (lognormal, 6, 0.3), (lognormal, 20, 0.5),
            (lognormal, 60, 1.0), (rare, 6, 1.0), (rare, 20, 1.0),
        )
    ]  # fmt: skip
    found += [
        Design(f"value, runs share a component, {k} points, {r} runs", value, sampled_value(value, k, r, 0.1, common=s))
        for k, r, s in ((4, 6, 0.3), (8, 6, 0.5))
    ]
    found += [Design(f"probability, {n} runs", chance, share(chance, n)) for n in (20, 60, 400)]
    found += [
        Design(f"trend of events, {words}, 60 runs a size", tends, trend(tends, 60, falls))
        for words, falls in (("constant", False), ("falling", True))
    ]
    found += [Design(f"mean, skewed, in [0, 1], {r} runs", shares, mean_of_shares(shares, r)) for r in (8, 20, 60)]
    found += [
        Design(f"mean, rare runs carry it, in [0, 1], {r} runs", carried, rare_mean(carried, r)) for r in (20, 120, 300)
    ]
    found += [
        Design(f"typical run with a bound, {kind.__name__} scatter, {r} runs", typical, sampled_bound(typical, r, kind))
        for kind, r in ((exponential, 6), (lognormal, 20), (rare, 8))
    ]
    unknown = dataclasses.replace(carried, limits=(-math.inf, math.inf))
    return [*found, Design("mean, rare runs carry it, no limits, 120 runs", unknown, rare_mean(unknown, 120))]


def single_cases() -> list[Design]:
    """Laws that judge case by case, with one wrong case, and three parts of which one is wrong."""
    value, agrees = Equals(1.0, relative=0.05), Agrees(0.05)
    exactly, one = Equals(1.0, absolute=0.01, error=1e-9), np.arange(60) == 7
    gaps = numbers(lambda rng, wrong: 1e-10 * rng.normal(size=60) + 1.5e-9 * wrong * one)
    near = numbers(lambda rng, wrong: np.where(one, 1 + 1.1e-6 * wrong if wrong else 0.5, rng.uniform(0, 1, 60)))
    apart = parts(dict.fromkeys("abc", sampled_value(value, 1, 8, 0.3)))
    return [
        Design("value, exact, one of 60 wrong", exactly, numbers(lambda rng, w: 1 + w * exactly.margin * one)),
        Design("discrepancy, one of 60 wrong", Vanishes(1e-9), gaps),
        Design(
            "sampled means, 1 of 60 entries wrong",
            agrees,
            lambda rng, wrong: [({}, 0, score(1 + 0.01 * rng.normal(size=60) + 0.05 * wrong * one, 0.01, 1.0))],
        ),
        *(
            Design(f"sampled means, {kind.__name__}, 20 batches of {n}", agrees, batches(agrees, 20, n, kind))
            for kind, n in ((exponential, 100), (lognormal, 300))
        ),
        Design("fact, one of 60 wrong", Proven("it"), numbers(lambda rng, wrong: (wrong > 0) * one)),
        Design("fact in 20 random draws", Proven("it"), numbers(lambda rng, wrong: rng.random(20) < 0.05 * wrong)),
        Design("bound, one of 60 beyond it", Bounded(high=1.0, margin=1e-6), near),
        Design("three parts of 8 runs", All(dict.fromkeys("abc", value)), apart),
    ]


def designs() -> list[Design]:
    """The designs of the claims of the five systems, and designs that violate assumptions of an interval."""
    return powers() + values() + single_cases()


def table(trials: int = TRIALS) -> str:
    """The calibration of all designs as a Markdown table."""
    head = "| design | held at 1 margin | held at 2 margins | refuted though true | open though true |"
    lines = [head, "|---|---|---|---|---|"]
    for design in designs():
        shares = dataclasses.astuple(rates(design, trials))
        lines.append(f"| {design.name} | " + " | ".join(f"{100 * value:.3g} %" for value in shares) + " |")
    error = math.sqrt(0.05 * 0.95 / trials)
    note = f"Every row has {trials} data sets. A share of 5 % therefore has a standard error of {100 * error:.1f} %."
    return "\n".join([*lines, "", note])


if __name__ == "__main__":
    print(table())

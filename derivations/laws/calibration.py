"""How often the laws err: synthetic data sets of the designs in use, with the claim true and with it wrong.

`python -m derivations.laws.calibration` prints the table of `docs/verdicts.md`.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from derivations.claim import HOLDS, Samples
from derivations.laws import Agrees, All, Bounded, Equals, Mean, Power, Probability, Proven, Vanishes
from derivations.laws.agreement import score

TRIALS = 400
Draw = Callable[[np.random.Generator, bool], Samples]


@dataclasses.dataclass(frozen=True)
class Design:
    """A law with the points, runs and noise of claims in use; `draw(rng, wrong)` makes a data set.

    With `wrong` the claim is false by twice the deviation that the law says it sees (its margin, or `visible`).
    """

    name: str
    law: Any
    draw: Draw


@dataclasses.dataclass(frozen=True)
class Rates:
    """Shares of data sets: held though wrong, refuted though true, and left open though true."""

    held_wrong: float
    refuted_true: float
    open_true: float


def rates(design: Design, trials: int = TRIALS, seed: int = 0) -> Rates:
    """Judge `trials` data sets with the claim true and as many with it wrong."""
    rng = np.random.default_rng(seed)
    true = [design.law.judge(design.draw(rng, False)).answer for _ in range(trials)]
    wrong = [design.law.judge(design.draw(rng, True)).answer for _ in range(trials)]
    return Rates(
        sum(answer in HOLDS for answer in wrong) / trials,
        true.count("refuted") / trials,
        true.count("inconclusive") / trials,
    )


def sampled_power(law: Power, sizes: int, runs: int, noise: float, decades: float = 2.0) -> Draw:
    """x^p with independent lognormal noise at every size of every run; wrong: the exponent beyond by two margins."""
    x = 10 ** np.linspace(3, 3 + decades, sizes)

    def draw(rng: np.random.Generator, wrong: bool) -> Samples:
        off = 2 * law.margin * (1 if law.bound == "at most" else rng.choice([-1, 1])) if wrong else 0.0
        y = x ** (law.exponent + off) * np.exp(noise * rng.normal(size=(runs, sizes)))
        return [({law.over: float(x[k])}, seed, float(y[seed, k])) for k in range(sizes) for seed in range(runs)]

    return draw


def exact_power(law: Power, sizes: int, decades: float) -> Draw:
    """x^p (1 + c x^-s), |c| <= 2, s between 1/4 and 1; wrong: the exponent off by two margins."""
    x = 10 ** np.linspace(3, 3 + decades, sizes)

    def draw(rng: np.random.Generator, wrong: bool) -> Samples:
        off = 2 * law.margin * (1 if law.bound == "at most" else rng.choice([-1, 1])) if wrong else 0.0
        y = x ** (law.exponent + off) * (1 + rng.uniform(-2, 2) * x ** -rng.uniform(0.25, 1))
        return [({law.over: float(size)}, 0, float(value)) for size, value in zip(x, y, strict=True)]

    return draw


def sampled_value(law: Equals, points: int, runs: int, noise: float) -> Draw:
    """Normal runs with `noise` margins of scatter; wrong: the last point off by two margins."""

    def draw(rng: np.random.Generator, wrong: bool) -> Samples:
        off = 2 * law.margin * rng.choice([-1, 1]) if wrong else 0.0
        centre = [law.value + off * (k == points - 1) for k in range(points)]
        return [
            ({"k": k}, seed, centre[k] + noise * law.margin * rng.normal())
            for k in range(points)
            for seed in range(runs)
        ]

    return draw


def share(law: Probability, runs: int) -> Draw:
    """Bernoulli runs at the bound itself; wrong: beyond it by twice the visible share."""

    def draw(rng: np.random.Generator, wrong: bool) -> Samples:
        p = law.low - 2 * law.visible * wrong
        return [({}, seed, float(hit)) for seed, hit in enumerate(rng.random(runs) < p)]

    return draw


def beside_bound(runs: int, distance: float) -> Draw:
    """Normal runs whose mean obeys a lower bound of 0 by `distance` deviations; wrong: breaks it by as much."""
    return numbers(lambda rng, wrong: (-distance if wrong else distance) + rng.normal(size=runs))


def numbers(make: Callable[[np.random.Generator, bool], Sequence[float] | np.ndarray]) -> Draw:
    """Cases at one point."""
    return lambda rng, wrong: [({}, seed, float(value)) for seed, value in enumerate(make(rng, wrong))]


def parts(draws: dict[str, Draw]) -> Draw:
    """A mapping of several measurements of which only the first is wrong."""

    def draw(rng: np.random.Generator, wrong: bool) -> Samples:
        found = {name: draw(rng, wrong and k == 0) for k, (name, draw) in enumerate(draws.items())}
        first = next(iter(found.values()))
        return [(*first[i][:2], {name: samples[i][2] for name, samples in found.items()}) for i in range(len(first))]

    return draw


def designs() -> list[Design]:
    """The designs of the claims of the five systems: sizes, runs and scatter as they were measured."""
    half, third, most = Power(0.5, margin=0.03), Power(-1.0, margin=0.1), Power(-0.5, margin=0.05, bound="at most")
    value, chance = Equals(1.0, relative=0.05), Probability(low=0.65)
    found = [
        Design(f"power, {n} sizes, {r} runs, scatter {s:g}", law, sampled_power(law, n, r, s, w))
        for law, n, r, s, w in (
            (half, 4, 5, 0.02, 3.0), (half, 5, 6, 0.1, 4.0), (half, 5, 12, 0.3, 8.0), (third, 4, 8, 0.1, 2.0),
            (third, 6, 20, 0.5, 2.0),
        )
    ]  # fmt: skip
    found += [
        Design(f"bound of a power, {n} sizes, {r} runs, scatter {s:g}", most, sampled_power(most, n, r, s, 4.0))
        for n, r, s in ((4, 6, 0.1), (5, 12, 0.4))
    ]
    found += [
        Design(f"power, exact, {n} sizes over {w:g} decades", law, exact_power(law, n, w))
        for law, n, w in ((Power(0.5, error=1e-6), 5, 4.0), (Power(-1.0, margin=0.05, error=1e-6), 4, 2.0))
    ]
    found += [
        Design(f"value, {k} points, {r} runs, scatter {s:g} margins", value, sampled_value(value, k, r, s))
        for k, r, s in ((1, 5, 0.3), (1, 9, 1.0), (4, 6, 0.5), (8, 20, 2.0))
    ]
    found += [
        Design(f"probability, {n} runs", chance, share(chance, n)) for n in (20, 60, 400)
    ]  # fmt: skip
    found += [
        Design(
            f"mean with a bound, {r} runs, {s:g} of their scatter away",
            Mean(low=0.0, visible=np.inf),
            beside_bound(r, s),
        )
        for r, s in ((10, 2.0), (20, 0.7))
    ]
    return found + single_cases(value)


def single_cases(value: Equals) -> list[Design]:
    """Laws that judge case by case, with one case wrong, and three parts of which one is."""
    exactly, one = Equals(1.0, absolute=0.01, error=1e-9), np.arange(20) == 7
    gaps = numbers(lambda rng, wrong: 1e-10 * rng.normal(size=20) + 2.5e-9 * wrong * one)
    near = numbers(lambda rng, wrong: np.where(one, 1 + 2e-6 if wrong else 0.5, rng.uniform(0, 1, 20)))
    apart = parts(dict.fromkeys("abc", sampled_value(value, 1, 6, 0.5)))
    return [
        Design(
            "value, exact, one of 20 wrong", exactly, numbers(lambda rng, wrong: 1 + 2 * exactly.margin * wrong * one)
        ),
        Design("discrepancy, one of 20 wrong", Vanishes(1e-9), gaps),
        Design(
            "sampled means, 1 of 20 entries wrong",
            Agrees(0.05),
            lambda rng, wrong: [({}, 0, score(1 + 0.01 * rng.normal(size=20) + 0.1 * wrong * one, 0.01, 1.0))],
        ),
        Design("fact, one of 20 wrong", Proven("it"), numbers(lambda rng, wrong: wrong * one)),
        Design("bound, one of 20 beyond it", Bounded(high=1.0, margin=1e-6), near),
        Design("three parts of 6 runs", All(dict.fromkeys("abc", value)), apart),
    ]


def table(trials: int = TRIALS) -> str:
    """The calibration of all designs as a Markdown table."""
    lines = ["| design | held though wrong | refuted though true | open though true |", "|---|---|---|---|"]
    for design in designs():
        found = rates(design, trials)
        shares = (found.held_wrong, found.refuted_true, found.open_true)
        lines.append(f"| {design.name} | " + " | ".join(f"{100 * value:.3g} %" for value in shares) + " |")
    error = math.sqrt(0.05 * 0.95 / trials)
    return "\n".join([*lines, "", f"{trials} data sets each; a share of 5 % is known to +-{100 * error:.1f} %."])


if __name__ == "__main__":
    print(table())

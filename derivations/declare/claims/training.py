"""Generated claims on training: explicit SGD against compressed SGD, and SGD of small steps against the flow."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from derivations.broken import once
from derivations.claim import Claim
from derivations.contract import System
from derivations.declare import episodes
from derivations.declare.claims.states import FINE, TIMES, generated_claim, horizon, small_dimension, start_of_sgd
from derivations.declare.parameter_class import rows
from derivations.declare.tiers import settled
from derivations.laws import Agrees, All
from derivations.laws.agreement import Score, score

STEPS, BATCH_SIZES = 8, (2, 8, 32, 128)
"""Steps of the two kinds of SGD whose distributions are compared, and batches: the first without diverging replicas."""
FEW, LARGE = 4, 4096
"""Steps and batch of the two kinds of SGD whose mean motions are compared."""
UNKNOWN, ALONE = 0.02, 40_000
"""Relative error of their means above which the median motion by one sample is compared, and the number of replicas."""
EPISODE = 8
"""Largest number of samples of an episode at which the batch is one of that many episodes."""
REPLICAS, SAMPLES, DOUBLINGS = 24, 8192, 5
"""Replicas of SGD that is compared with the flow, their batch, and how often the batch may be doubled for a smaller
error.
"""
WANTED = 0.008
"""Required standard error of these means for a margin of a tenth, relative to the change of the flow."""


def microscope(lab: Any, point: Mapping[str, Any], seed: int, twist: float = 0.0) -> dict[str, Score]:
    """Compare explicit with compressed SGD: the motion by large batches, and the distributions by small ones.

    With heavy tails the largest sample dominates a mean, so that means cannot distinguish two distributions. The
    probability that a number of one distribution exceeds one of the other can (Mann-Whitney); it is 1/2 for equal
    distributions.
    """
    names = [block.name for block in rows(lab.system.parameters()).moving]
    runs = beside(lab, point, seed, twist)
    ends = [
        np.concatenate([runs[method][n][:, -1].reshape(point["seeds"], -1) for n in names], axis=1)
        for method in ("explicit", "compressed")
    ]
    varying = np.hypot(ends[0].std(0), ends[1].std(0)) > 1e-9
    effect, error = exceeding(ends[0][:, varying], ends[1][:, varying]) if varying.any() else (np.zeros(1), 0.0)
    return {
        "motion": motion(lab, point, seed, twist, names),
        "law": score(effect, error, 0.0, size=1.0),
    }


def motion(lab: Any, point: Mapping[str, Any], seed: int, twist: float, names: Sequence[str]) -> Score:
    """Compare the mean motion of the overlaps by large batches, or the median size of the motion by one sample.

    The largest samples dominate the mean of a polynomial of a high degree, so that it cannot be measured. Two samples
    of one distribution also have equal medians, and a relative error of a coefficient gives the same relative error of
    the median.
    """

    def moved(batch: int, steps: int, seeds: int) -> list[np.ndarray]:
        motions = []
        for method, factor in (("explicit", 1.0), ("compressed", 1 + twist)):
            run = trained(lab, method, point["step"] * factor, batch, steps, seeds, seed)
            motions.append(np.concatenate([(run[n][:, -1] - run[n][:, 0]).reshape(seeds, -1) for n in names], axis=1))
        return motions

    # Rewards may be rare, so that most samples of an episode have no effect; long episodes are too many samples.
    large = LARGE * EPISODE // max(EPISODE, episodes.samples(lab.system.parameters()))
    explicit, compressed = moved(large, FEW, point["seeds"] // 8)
    error = np.sqrt((explicit.var(0, ddof=1) + compressed.var(0, ddof=1)) / len(explicit))
    of_means = score(compressed.mean(0), error, explicit.mean(0), 2 * (len(explicit) - 1))
    if error.max() <= UNKNOWN * np.abs(explicit.mean(0)).max():
        return of_means
    explicit, compressed = (np.abs(sizes) for sizes in moved(1, 1, ALONE))
    if not np.median(explicit, 0).any():  # most samples have no effect
        return of_means
    return score(
        np.median(compressed, 0),
        np.hypot(error_of_median(explicit), error_of_median(compressed)),
        np.median(explicit, 0),
        ALONE - 1,
    )


def error_of_median(values: np.ndarray) -> np.ndarray:
    """The standard error of medians (n, ..): half the distance of the order statistics sqrt(n)/2 before and after.

    >>> bool(np.abs(error_of_median(np.random.default_rng(0).normal(size=(40_000, 1))) * 200 / 1.2533 - 1) < 0.1)
    True
    """
    ordered, half, away = np.sort(values, axis=0), len(values) / 2, np.sqrt(len(values)) / 2
    return (ordered[int(half + away)] - ordered[int(half - away)]) / 2


ROUNDED = 10
"""Number of digits of the compared numbers, relative to the largest."""


def beside(lab: Any, point: Mapping[str, Any], seed: int, twist: float) -> dict[str, Any]:
    """Return runs of both kinds at a batch at which both end; with heavy tails, as for w^2, the noise makes others
    diverge.
    """
    for batch in BATCH_SIZES:
        try:
            return {
                method: trained(lab, method, point["step"] * factor, batch, STEPS, point["seeds"], seed)
                for method, factor in (("explicit", 1.0), ("compressed", 1 + twist))
            }
        except RuntimeError:  # the weights are no longer finite
            if batch == BATCH_SIZES[-1]:
                raise
    raise AssertionError


def exceeding(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, float]:
    """P(a number of the first sample exceeds one of the second) - 1/2, by column (n, ..), and its standard error.

    Numbers that differ only by rounding, such as those of constant replicas, count as equal, with the value one half.

    >>> exceeding(np.array([[1.0], [3.0]]), np.array([[1.0 + 1e-15], [3.0]]))[0].tolist()
    [0.0]
    """
    from scipy.stats import rankdata

    n, pooled = len(first), np.concatenate([first, second])
    order = rankdata(np.round(pooled / np.maximum(np.abs(pooled).max(axis=0), 1e-300), ROUNDED), axis=0) - 1
    return (order[:n].sum(0) - n * (2 * n - 1) / 2) / n**2, float(np.sqrt((2 * n + 1) / (12 * n**2)))


def trained(lab: Any, method: str, step: float, batch: int, steps: int, seeds: int, seed: int) -> Any:
    """SGD of some replicas from the declared start in a small dimension."""
    parameters = lab.system.parameters()
    d = small_dimension(parameters)
    limit = parameters.declaration.limit
    step_parameter = {"online": {"step": step * d}, "batch": {"step": step}}.get(limit, {})
    until = {"online": steps / d, "batch": float(steps)}.get(limit, steps * step)
    return lab.simulate(
        method=method,
        step_size=step,
        batch=batch,
        seed=seed,
        until=until,
        seeds=seeds,
        save_points=2,
        d=d,
        **step_parameter,
    )


def microscope_claim(system: System) -> Claim:
    text = "SGD of weight vectors in d dimensions and SGD of their Gram matrix have the same distribution"
    law = All(
        {
            "motion": Agrees(0.05, "motion", "a twentieth of the change in a few steps"),
            "law": Agrees(0.1, "probability", "an effect that is called small (Vargha and Delaney 2000: .06 to .14)"),
        }
    )
    sweep = once({"step": small_step(system), "seeds": 800})
    return generated_claim(system, "microscope", text, microscope, law, sweep, 0.1, (8,))


def small_step(system: System) -> float:
    """The step of SGD at which some steps in a small dimension move the state."""
    parameters = system.parameters()
    d = small_dimension(parameters)
    longest = parameters.step or 1.0 if parameters.declaration.limit == "batch" else horizon(system) / STEPS
    return min(longest, 1.0 / d)


def small_steps(lab: Any, point: Mapping[str, Any], seed: int, twist: float = 0.0) -> Score:
    """Compare compressed SGD, extrapolated to step 0, with the flow, relative to the change of the flow.

    The extrapolation 2 y(h) - y(2h) has no error of first order in h. The error of a flow of tier `sampled` is the
    scatter of its randomisations.
    """
    system, until, steps = lab.system, horizon(lab.system), point["steps"]
    d, names = small_dimension(system.parameters()), [b.name for b in rows(system.parameters()).moving]
    run_options = {"seed": seed, "until": until, "save_points": 2, "d": d, **start_of_sgd(system.parameters())}
    exact = settled(system.parameters()) == "exact"
    options = [{"rtol": 1e-9}] if exact else [{"points": FINE, "sample_seed": 1 + k} for k in range(TIMES)]
    flows = [lab.integrate(**point_options, **run_options) for point_options in options]
    ends, starts = (np.array([np.concatenate([f[n][k].ravel() for n in names]) for f in flows]) for k in (-1, 0))
    change = ends.mean(0) - starts.mean(0)
    size = max(float(np.abs(change).max()), 1e-300)

    def final(step: float, batch: int) -> np.ndarray:
        run = lab.simulate(method="compressed", step_size=step, batch=batch, seeds=REPLICAS, **run_options)
        return np.concatenate([run[name][:, -1].reshape(REPLICAS, -1) for name in names], axis=1)

    samples = max(1, SAMPLES // episodes.samples(system.parameters()))
    coarse = final(2 * until / steps, samples)
    lacking = 2 * np.log2(max(error_of(coarse), 1e-300) / (WANTED * size))  # in doublings of the batch
    batch = samples * 2 ** int(np.clip(np.ceil(lacking), 0, DOUBLINGS))
    if batch > samples:
        coarse = final(2 * until / steps, batch)
    fine = final(until / steps, batch)
    variance = (4 * fine.var(0, ddof=1) + coarse.var(0, ddof=1)) / REPLICAS
    freedom = REPLICAS - 1
    if not exact:
        variance, freedom = variance + ends.var(0, ddof=1) / TIMES, min(freedom, TIMES - 1)
    expected = starts.mean(0) + (1 + twist) * change
    return score(2 * fine.mean(0) - coarse.mean(0), np.sqrt(variance), expected, freedom, size)


def error_of(ends: np.ndarray) -> float:
    """The largest standard error of means over replicas, the first axis."""
    return float(np.sqrt(ends.var(0, ddof=1) / len(ends)).max())


def small_step_claim(system: System) -> Claim:
    text = "SGD tends to the flow as the step falls: an extrapolation of SGD to step 0 agrees with the flow"
    law = Agrees(0.1, "motion", "a tenth of the change of the flow")
    return generated_claim(system, "small-step", text, small_steps, law, once({"steps": 16}, seeds=2), 0.2, (7,))

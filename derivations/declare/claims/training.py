"""Generated claims on training: explicit SGD against compressed SGD, and SGD of small steps against the flow."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.broken import grid, once
from derivations.claim import Claim
from derivations.contract import System
from derivations.declare.claims.states import FINE, TIMES, generated_claim, horizon, small_dimension
from derivations.declare.system import rows
from derivations.laws import Agrees, All, Power
from derivations.laws.agreement import Score, score

STEPS, BATCH_SIZES = 8, (2, 8, 32, 128)
"""Steps of the two kinds of SGD whose laws are compared, and batches: the first at which no replica runs away."""
FEW, LARGE = 4, 4096
"""Steps and batch of the two kinds of SGD whose mean motions are compared."""


def microscope(lab: Any, point: Mapping[str, Any], seed: int, twist: float = 0.0) -> dict[str, Score]:
    """Explicit against compressed SGD: the mean motion by large batches, and the laws by small ones.

    A mean of heavy tails is that of its largest sample, and tells two laws apart no more; the probability that a number
    of one law exceeds one of the other does (Mann-Whitney): it is 1/2 where the laws are the same.
    """
    names = [block.name for block in rows(lab.system.parameters()).moving]
    many = {
        method: trained(lab, method, point["step"] * factor, LARGE, FEW, point["seeds"] // 8, seed)
        for method, factor in (("explicit", 1.0), ("compressed", 1 + twist))
    }
    moved = {
        method: np.concatenate([(run[n][:, -1] - run[n][:, 0]).reshape(len(run[n]), -1) for n in names], axis=1)
        for method, run in many.items()
    }
    one, two = moved["explicit"], moved["compressed"]
    error = np.sqrt((one.var(0, ddof=1) + two.var(0, ddof=1)) / len(one))
    runs = beside(lab, point, seed, twist)
    ends = [
        np.concatenate([runs[method][n][:, -1].reshape(point["seeds"], -1) for n in names], axis=1)
        for method in ("explicit", "compressed")
    ]
    seen = np.hypot(ends[0].std(0), ends[1].std(0)) > 1e-9
    effect, known = exceeding(ends[0][:, seen], ends[1][:, seen]) if seen.any() else (np.zeros(1), 0.0)
    return {
        "motion": score(two.mean(0), error, one.mean(0), 2 * (len(one) - 1)),
        "law": score(effect, known, 0.0, size=1.0),
    }


def beside(lab: Any, point: Mapping[str, Any], seed: int, twist: float) -> dict[str, Any]:
    """Runs of both kinds, at a batch at which both end: noise of heavy tails, as that of w^2, carries others off."""
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


def exceeding(one: np.ndarray, two: np.ndarray) -> tuple[np.ndarray, float]:
    """P(a number of the first sample exceeds one of the second) - 1/2, by column (n, ..), and its standard error."""
    n = len(one)
    order = np.concatenate([one, two]).argsort(axis=0).argsort(axis=0)
    return (order[:n].sum(0) - n * (2 * n - 1) / 2) / n**2, float(np.sqrt((2 * n + 1) / (12 * n**2)))


def trained(lab: Any, method: str, step: float, batch: int, steps: int, seeds: int, seed: int) -> Any:
    """SGD of some replicas from the declared start in a small dimension."""
    parameters = lab.system.parameters()
    d = small_dimension(parameters)
    online = parameters.declaration.limit == "online"
    more = {"step": step * d} if online else {}
    until = steps / d if online else steps * step
    return lab.simulate(
        method=method, step_size=step, batch=batch, seed=seed, until=until, seeds=seeds, save_points=2, d=d, **more
    )


def microscope_claim(system: System) -> Claim:
    text = "Training of weight vectors in d dimensions and of their Gram matrix have the same law"
    law = All(
        {
            "motion": Agrees(0.05, "motion", "a twentieth of what a few steps move"),
            "law": Agrees(0.1, "probability", "an effect that is called small (Vargha and Delaney 2000: .06 to .14)"),
        }
    )
    sweep = once({"step": small_step(system), "seeds": 800})
    return generated_claim(system, "microscope", text, microscope, law, sweep, 0.1, (8,))


def small_step(system: System) -> float:
    """The step of SGD at which some steps in a small dimension move the state."""
    parameters = system.parameters()
    d = small_dimension(parameters)
    return min(horizon(system) / STEPS, 1.0 / d)


def small_steps(lab: Any, point: Mapping[str, Any], seed: int, twist: float = 0.0) -> float:
    """Distance of the mean of compressed SGD from the flow at the same time, as the step falls at fixed noise."""
    system = lab.system
    until, step = horizon(system), horizon(system) * point["step"]
    d = small_dimension(system.parameters())
    run = lab.simulate(
        method="compressed", step_size=step, batch=point["batch"], seed=seed, until=until, seeds=8, save_points=2, d=d
    )
    flow = lab.integrate(seed=seed, until=until, save_points=2, d=d, rtol=1e-9)
    names = [block.name for block in rows(system.parameters()).moving]
    off = [(run[name][:, -1].mean(0) - flow[name][-1]).ravel() for name in names]
    moved = [(flow[name][-1] - flow[name][0]).ravel() for name in names]
    gone = float(np.sqrt((np.concatenate(moved) ** 2).mean()))
    return float(np.sqrt((np.concatenate(off) ** 2).mean())) / gone + twist


def small_step_claim(system: System) -> Claim:
    text = "SGD tends to the flow as its step falls: at large batch the distance is proportional to the step"
    steps = [{"step": 1 / k, "batch": 50_000} for k in (2, 4, 8, 16)]
    law = Power(
        1.0, over="step", margin=0.25, meaning="distance", toward="small", because="a quarter of the exponent",
        no_log_rival="the error of a step is an expansion in its powers", short="runs lengthen as the step falls",
    )  # fmt: skip
    return generated_claim(system, "small-step", text, small_steps, law, {"quick": grid(*steps, seeds=6)}, 0.5, (7,))


def extrapolated(lab: Any, point: Mapping[str, Any], seed: int, twist: float = 0.0) -> Score:
    """Compressed SGD, extrapolated to step 0, against the sampled flow, relative to what the flow moves by.

    The error of a sampled flow is not known better than by the scatter of its randomisations, and no power of the step
    is seen below it.  From steps h and 2h follows 2 y(h) - y(2h), which is free of the first order in h.
    """
    system, until = lab.system, horizon(lab.system) / 4
    d, names = small_dimension(system.parameters()), [b.name for b in rows(system.parameters()).moving]
    asked = {"seed": seed, "until": until, "save_points": 2, "d": d}
    flows = [lab.integrate(points=FINE, sample_seed=1 + k, **asked) for k in range(TIMES)]
    found = []
    for factor in (1, 2):
        step = factor * until * point["step"]
        run = lab.simulate(method="compressed", step_size=step, batch=point["batch"], seeds=8, **asked)
        found.append(np.concatenate([run[name][:, -1].reshape(8, -1) for name in names], axis=1))
    ends, starts = (np.array([np.concatenate([f[n][k].ravel() for n in names]) for f in flows]) for k in (-1, 0))
    mean = 2 * found[0].mean(0) - found[1].mean(0)
    moved = ends.mean(0) - starts.mean(0)
    variance = (4 * found[0].var(0, ddof=1) + found[1].var(0, ddof=1)) / 8 + ends.var(0, ddof=1) / TIMES
    expected = starts.mean(0) + (1 + twist) * moved
    return score(mean, np.sqrt(variance), expected, TIMES - 1, float(np.abs(moved).max()))


def extrapolated_claim(system: System) -> Claim:
    text = "SGD tends to the flow as its step falls: extrapolated to step 0 it agrees with the sampled flow"
    law = Agrees(0.1, "motion", "a tenth of what the flow moves by")
    sweep = once({"step": 1 / 16, "batch": 200_000}, seeds=2)
    return generated_claim(system, "small-step", text, extrapolated, law, sweep, 0.2, (7,))

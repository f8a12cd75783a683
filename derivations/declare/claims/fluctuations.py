"""Generated claims on the fluctuations of SGD around the flow: covariance of one step, band, and escape times."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.broken import once
from derivations.claim import Claim
from derivations.contract import System
from derivations.declare import data, growth
from derivations.declare.claims import escapes, parameter_derivatives
from derivations.declare.claims.states import FLOW_RATE, generated_claim, horizon, state
from derivations.declare.declaration import Declaration
from derivations.declare.parameter_class import numbers, rows
from derivations.declare.tiers import settled
from derivations.laws import Agrees
from derivations.laws.agreement import Score, score

LARGE = 10**6
"""Dimension of one step, so large that the neglected terms of order 1/d are invisible."""
RATE = 0.5
"""Step size times d of one step on a gradient flow, for which the ratio of noise and mean is that of online SGD."""
STEPS, GROUPS = 2**14, 64
"""Number of replicas of one step, and of groups that estimate the error of their covariance."""
LEVELLED = 0.5
"""Largest excess kurtosis of a step of a batch, at which the error of a covariance is that of Gaussian steps."""
LEAST = 1e-3
"""Standard deviation of an entry, relative to the largest, below which it moves only by terms of order 1/d."""
LARGEST_BATCH = 4096
ENTRIES = 25
"""Number of entries whose covariance is compared; the largest of more differences would have a larger error."""
LEVEL, RUNS = 0.9, 400
"""Probability of the band, and number of runs of SGD that are compared with it."""
DIMENSION, STEPS_OF_A_RUN = 10_000, (300, 4000)
"""Dimension of these runs, and the smallest and largest number of their steps."""
ENOUGH = 10.0
"""Number of samples of a run, in units of the minimum for bands, with which the coverage is accurate to one per
cent.
"""
HEAVY = 5.0
"""Degree of the motion by a sample at which its kurtosis is 5,000; a run then needs a million samples for a Gaussian
sum.
"""
LARGEST_STATE = 40
"""Number of entries of the state above which a band takes minutes."""


def claims(system: System) -> tuple[Claim, ...]:
    """Return the claims on fluctuations, if a declaration has bands and its state is not too large."""
    parameters: Any = system.parameters()
    declared: Declaration = parameters.declaration
    if declared.limit == "batch" or declared.momentum is not None or declared.episode is not None:
        return ()
    if declared.inputs is not None and declared.inputs.data is not None:
        return ()
    if rows(dataclasses.replace(parameters, d=DIMENSION)).layout.least > LARGEST_STATE:
        return ()
    generated = [parameter_derivatives.derivatives_claim(system)] if settled(parameters) == "exact" else []
    degree = growth.of_step(
        declared, dict(zip(declared.names, numbers(parameters), strict=True)), parameters.noise or 0.0
    )
    generated += [_covariance(system)] if degree <= HEAVY else []
    generated += [_band(system)] if degree < HEAVY else []
    if escapes.from_a_saddle(parameters):
        generated.append(escapes.escape_claim(system))
    return tuple(generated)


def _covariance(system: System) -> Claim:
    text = "The computed covariance of a step of SGD equals the covariance of simulated steps"
    law = Agrees(0.1, "correlation", "a tenth of the variances")
    return generated_claim(system, "covariance", text, covariance, law, once({}), 0.25, (8,))


def _band(system: System) -> Claim:
    text = f"{LEVEL:.0%} of the runs of SGD lie inside the {LEVEL:.0%} band"
    law = Agrees(0.04, "share of runs", "a band of half the variance covers 76 %")
    return generated_claim(system, "band", text, covered, law, once({"seeds": RUNS}), 1 - 0.5**0.5, (8,))


def arrays(initial: Any) -> dict[str, np.ndarray]:
    """Return the overlaps and trained numbers of a start, in the form of initial arrays."""
    layout = rows(initial.parameters)
    names = {block.name for block in layout.blocks}
    names |= {layout.declaration.students[group].named(word) for group, word, _ in layout.scalars}
    return {name: values for name, values in {**initial.state, **initial.constants}.items() if name in names}


def setting(system: System, seed: int, d: int) -> dict[str, Any]:
    """Return the dimension of a run, and a random state with clearly non-zero overlaps.

    If the eigenvalues of the inputs depend on the dimension, SGD has the declared start.
    """
    parameters: Any = system.parameters()
    fixed = data.dimension(parameters.declaration.inputs)
    d, small = d if fixed is None else fixed, state(system.parameters, seed)
    same_spaces = rows(dataclasses.replace(parameters, d=d)).spaces == rows(small.parameters).spaces
    return {"d": d, "seed": seed} | ({"initial": arrays(small)} if same_spaces else {})


def covariance(lab: Any, point: Mapping[str, Any], seed: int, twist: float = 0.0) -> Score:
    """Compare the covariance of one step of SGD from its increments with that of many steps, as correlations."""
    request = setting(lab.system, seed, LARGE)
    step_options, span = of_steps(lab.system, request["d"], RATE, 1)
    answer = lab.bands(until=span, save_at=[span], **step_options, **request)
    batch = min(LARGEST_BATCH, int(np.ceil(answer.summary()["kurtosis"] / LEVELLED)))
    if batch > 1:
        step_options, span = of_steps(lab.system, request["d"], RATE, batch)
        answer = lab.bands(until=span, save_at=[span], **step_options, **request)
    run = lab.simulate(method="compressed", until=span, seeds=STEPS, save_points=2, **step_options, **request)
    expected = answer["covariance"][-1]
    scale = np.sqrt(np.diag(expected))
    entries = np.flatnonzero(scale > LEAST * scale.max())
    if len(entries) > ENTRIES:
        entries = np.sort(np.random.default_rng(seed).choice(entries, ENTRIES, replace=False))
    increments = entries_of(run, answer["entry"][entries].tolist()) / scale[entries]
    groups = np.array([np.cov(part.T).reshape(-1) for part in np.split(increments, GROUPS)])
    correlations = (1 + twist) * (
        expected[np.ix_(entries, entries)] / np.outer(scale[entries], scale[entries])
    ).reshape(-1)
    return score(groups.mean(0), groups.std(0, ddof=1) / np.sqrt(GROUPS), correlations, GROUPS - 1, 1.0)


def of_steps(system: System, d: int, rate: float, batch: int | None = None) -> tuple[dict[str, Any], float]:
    """The options of SGD with a batch (the declared one), and the duration of a step on the clock of the model.

    For a gradient flow the step size is `rate`/d.
    """
    if system.parameters.declaration.limit == "flow":
        return {"step_size": rate / d, **({} if batch is None else {"batch": batch})}, rate / d
    return {} if batch is None else {"parameters": {"batch": batch}}, 1.0 / d


def entries_of(run: Any, names: list[str]) -> np.ndarray:
    """The last values (replica, entry) of the entries of a state, by their names such as "M_ww[1,2]"."""
    columns = []
    for name in names:
        bare, _, numbers = name.partition("[")
        place = tuple(int(n) - 1 for n in numbers.rstrip("]").split(",")) if numbers else ()
        columns.append(np.asarray(run[bare])[(slice(None), -1, *place)])
    return np.stack(columns, axis=1)


def covered(lab: Any, point: Mapping[str, Any], seed: int, twist: float = 0.0) -> Score:
    """The share of runs of SGD inside their 90 % band, over the entries of the state, the losses and three times."""
    request = setting(lab.system, seed, DIMENSION)
    step_options, tick = of_steps(lab.system, request["d"], FLOW_RATE)
    # Whole thirds of the steps, so that SGD and its band are compared after the same steps.
    until = 3 * round(float(np.clip(horizon(lab.system) / tick, *STEPS_OF_A_RUN)) / 3) * tick
    times = [until / 3, 2 * until / 3, until]
    answer = lab.bands(until=until, save_at=times, level=LEVEL, **step_options, **request)
    if not answer.summary()["gaussian"]:
        batch = int(np.ceil(ENOUGH * answer.summary()["rare"]))
        step_options, _ = of_steps(lab.system, request["d"], FLOW_RATE, batch)
        answer = lab.bands(until=until, save_at=times, level=LEVEL, **step_options, **request)
    run = lab.simulate(method="compressed", until=until, save_at=times, seeds=point["seeds"], **step_options, **request)
    hits = []
    for name in sorted(key.removesuffix("_low") for key in answer.keys() if key.endswith("_low")):
        centre, low, high = (np.asarray(answer[f"{name}_{part}"])[1:] for part in ("centre", "low", "high"))
        low, high = (centre + (1 - twist) * (end - centre) for end in (low, high))
        values = np.asarray(run[name])[:, -3:]
        hits_of_name = ((values >= low) & (values <= high)).reshape(len(values), -1)
        spread = (high - low).reshape(-1)
        hits.append(hits_of_name[:, spread > 1e-9 * np.abs(values).max()])
    shares = np.concatenate(hits, axis=1).mean(axis=1)
    return score(shares.mean(), shares.std(ddof=1) / np.sqrt(len(shares)), LEVEL, len(shares) - 1, 1.0)

"""Claims that are generated for every declared model. They test its derivation against independent computations.

Every measurement has an argument `twist`, a relative error of the tested quantity. With it the same code is the
control, whose answer must be "refuted".
"""

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.broken import once
from derivations.claim import Claim
from derivations.contract import Smooth, System
from derivations.declare import sampled, schedules, speeds
from derivations.declare.claims import (
    finer_grid,
    giant,
    giant_gradient,
    momentum,
    sample_episodes,
    sample_frames,
    sample_gradient,
    training,
)
from derivations.declare.claims.rates import SLOWEST, Rates, by_parameter, compared, rates, scaled
from derivations.declare.claims.states import generated_claim, horizon, quieted, start, state
from derivations.declare.declaration import Declaration
from derivations.declare.parameter_class import rows
from derivations.declare.rows import Rows
from derivations.declare.tiers import settled
from derivations.laws import Vanishes
from derivations.laws.agreement import Score, score

STEP = 1e-5
PRECISION = 0.1
"""Standard error of the sampled drift relative to its margin above which it is sampled anew, from more points."""
NUMBERS = 2**22
"""Derivatives of one batch of samples that can be afforded: some ten seconds for all batches."""


def claims(system: System) -> tuple[Claim, ...]:
    """The generated claims that have a meaning for a declaration."""
    parameters = system.parameters()
    declared: Declaration = parameters.declaration
    tier, flow = settled(parameters), declared.limit == "flow"
    stepped = declared.limit == "batch"
    fixed_vectors = stepped and not any(declared.moves(g, s) for g in declared.students for s in g.slots)
    generated_claims = [_numba_jax(system), *([] if stepped else [_integrators(system)])]
    inputs, pushed = declared.inputs, declared.momentum is not None
    # SGD on a user's samples is not SGD on Gaussian ones.
    if inputs is None or (inputs.data is None and not pushed):
        generated_claims.append(training.microscope_claim(system))
    followed = (flow and not declared.timed) or (stepped and not pushed and not fixed_vectors)
    if tier == "exact" and followed and not declared.rules and declared.look is None:
        generated_claims.append(_gradient(system))
    gridded = tier == "exact" and declared.look is not None
    generated_claims.append(finer_grid.finer_grid_claim(system) if gridded else _drift(system))
    if declared.episode is not None:
        generated_claims.append(sample_episodes.whole_claim(system))
    if tier == "sampled":
        generated_claims.append(_own_points(system))
    if declared.noisy and not gridded and not fixed_vectors:
        generated_claims.append(_second(system))
    if tier in ("exact", "mixed"):
        generated_claims.append(_tiers(system))
    if stepped:
        generated_claims.append(giant.map_claim(system))
    if pushed and not declared.inertial and inputs is None and parameters.momentum >= momentum.LEAST:
        generated_claims.append(momentum.momentum_claim(system))
    if parameters.d >= 2 and flow and not pushed:  # the effect of momentum on SGD needs many steps
        generated_claims.append(training.small_step_claim(system))
    return tuple(generated_claims)


# -- the right-hand side


def gradient(lab: Any, point: Mapping[str, Any], seed: int, twist: float = 0.0) -> float:
    """Return the largest relative difference between the flow and minus the gradient of the loss by central
    differences.

    For giant steps it is the difference between the map without noise and a step of the weights along that gradient.
    """
    initial = start(lab.system.parameters, seed)
    initial = quieted(initial) if initial.parameters.declaration.limit == "batch" else initial
    functions, layout = lab.functions(initial, "exact"), rows(initial.parameters)
    declared, S = layout.declaration, layout.students
    frame, _, spaces = sample_frames.frame_of(initial)
    weights = np.swapaxes(frame.reshape(layout.total, spaces, layout.total), 0, 1)  # (L, n, n)

    def components(left: np.ndarray, right: np.ndarray) -> dict[str, np.ndarray]:
        products = left @ np.swapaxes(right, -1, -2)
        return layout.components(products if layout.stack else products[0])

    def loss(trial: np.ndarray) -> float:
        if declared.weights == "sphere":  # series are those of unit vectors
            trial = trial * np.sqrt((weights**2).sum((0, 2)) / (trial**2).sum((0, 2)))[:, None]
        parts = components(trial, trial)
        return functions.loss({**initial.state, **{block.name: parts[block.name] for block in layout.moving}})

    slope = np.zeros((spaces, S, layout.total))
    for index in np.ndindex(slope.shape):
        ends = []
        for sign in (1, -1):
            trial = weights.copy()
            trial[index] += sign * STEP
            ends.append(loss(trial))
        slope[index] = (ends[0] - ends[1]) / (2 * STEP)
    derivative = functions.flow(initial.state)
    if declared.limit == "batch":
        expected = {name: trial[0] for name, trial in giant_gradient.change(slope, initial).items()}
        return _largest(derivative, expected, layout, twist)
    parameters = schedules.now(initial)
    slope += parameters.decay * weights[:, :S] * (declared.weights != "sphere")
    motion = np.zeros_like(weights)
    motion[:, :S] = -speeds.of_vectors(parameters)[:, None] * slope
    left, right = components(motion, weights), components(weights, motion)
    expected = {name: left[name] + right[name] for name in left}
    return _largest(derivative, expected, layout, twist)


def _largest(derivative: Rates, expected: Rates, layout: Rows, twist: float) -> float:
    """The largest difference of the rates of overlaps from expected ones, over the largest of these."""
    size = max(float(np.abs(expected[block.name]).max()) for block in layout.moving)
    return max(
        float(np.abs((1 + twist) * derivative[block.name] - expected[block.name]).max()) for block in layout.moving
    ) / max(size, 1e-300)


def _gradient(system: System) -> Claim:
    text = "The flow is minus the gradient of its loss, by central differences of the weights"
    return generated_claim(
        system, "gradient", text, gradient, Vanishes(1e-6, meaning="relative difference"), once({}, seeds=2), 1e-3, (2,)
    )


@functools.lru_cache(maxsize=4)
def moments(kind: type, seed: int, doublings: int = 0) -> sample_gradient.Moments:
    """The means over independent samples at the state of a seed, by automatic differentiation of their losses."""
    return sample_gradient.moments(state(kind, seed), seed, doublings)


def drift_margin(parameters: Any) -> float:
    """Relative margin of the claim on the drift.

    Means over random points are known to ten per cent where units have heavy tails; `own-points` is exact there.
    """
    return 0.01 if settled(parameters) == "exact" else 0.25


def drift(lab: Any, point: Mapping[str, Any], seed: int, twist: float = 0.0) -> dict[str, Score]:
    """Compare the drift of every order parameter with the mean gradient of the losses of independent samples."""
    kind = lab.system.parameters
    initial = quieted(state(kind, seed))
    expected, errors, freedom = rates(lab, initial, settled(initial.parameters))
    allowed = PRECISION * drift_margin(initial.parameters)
    layout = rows(initial.parameters)
    affordable = max(1, NUMBERS // (sample_gradient.POINTS * layout.total * layout.students)).bit_length() - 1
    for doublings in (0, affordable):  # the number of points depends on errors alone, never on the differences
        estimates = sample_gradient.drift_of(moments(kind, seed, doublings), initial)
        scores = compared(estimates, scaled(expected, 1 + twist), errors, freedom)
        if all(outcome["error"] <= allowed * outcome["size"] for outcome in scores.values()):
            break
    return scores


def second(lab: Any, point: Mapping[str, Any], seed: int, twist: float = 0.0) -> dict[str, Score]:
    """Compare the second-order term, eta^2 E[c c^T]/B and the correction of norms, with independent samples."""
    kind = lab.system.parameters
    initial = state(kind, seed)
    tier = settled(initial.parameters)
    (full_rates, errors, freedom), (quiet_rates, quiet_errors, _) = (
        rates(lab, initial_state, tier) for initial_state in (initial, quieted(initial))
    )
    estimates = sample_gradient.second_of(moments(kind, seed), initial)
    expected = {name: (1 + twist) * (full_rates[name] - quiet_rates[name]) for name in estimates}
    return compared(estimates, expected, {n: np.hypot(errors[n], quiet_errors[n]) for n in estimates}, freedom)


def _drift(system: System) -> Claim:
    text = "The drift is minus the mean gradient of the loss of a sample, by automatic differentiation"
    if system.parameters().declaration.rules:
        text = "The drift is the mean step of SGD by the rules, where gradients come from automatic differentiation"
    if system.parameters().declaration.look is not None:
        text = "The drift is the mean step of SGD after virtual steps, by automatic differentiation"
    margin = drift_margin(system.parameters())
    law = by_parameter(system, margin, "far below any wrong factor or sign")
    return generated_claim(system, "drift", text, drift, law, once({}, seeds=2), 2 * margin, (2, 6))


def own_points(lab: Any, point: Mapping[str, Any], seed: int, twist: float = 0.0) -> float:
    """Return the largest relative difference between the rates of tier sampled and automatic differentiation at its
    points.
    """
    initial = quieted(state(lab.system.parameters, seed))
    p = initial.parameters
    expected = lab.functions(initial, "sampled").flow(initial.state)
    normals, weights = sampled.nodes(p)
    estimates = sample_gradient.drift_of(sample_gradient.at_points(initial, normals.T, weights), initial)
    size = max(float(np.abs(expected[name]).max()) for name in estimates)
    return max(float(np.abs(rates[0] - (1 + twist) * expected[name]).max()) for name, rates in estimates.items()) / size


def _own_points(system: System) -> Claim:
    statement = "the derivative equals that by automatic differentiation of the loss"
    if system.parameters().declaration.rules:
        statement = "the step is that of the rules, where gradients come from automatic differentiation"
    if system.parameters().declaration.look is not None:
        statement = "the step is that after virtual steps, by automatic differentiation"
    text = f"At every point of tier sampled {statement}"
    law = Vanishes(1e-8, meaning="relative difference")
    return generated_claim(system, "own-points", text, own_points, law, once({}, seeds=2), 1e-4, (2,))


def _second(system: System) -> Claim:
    text = "The second-order term of the online limit is eta^2 E[c c^T]/B, by automatic differentiation"
    if system.parameters().declaration.limit == "batch":
        text = "The noise of a batch adds eta^2 E[c c^T] d/B to a giant step, by automatic differentiation"
    law = by_parameter(system, 0.02, "far below any wrong factor or sign", scalars=False)
    return generated_claim(system, "second-order", text, second, law, once({}, seeds=2), 0.04, (2, 6))


def tiers(lab: Any, point: Mapping[str, Any], seed: int, twist: float = 0.0) -> dict[str, Score]:
    """Compare the rates by closed forms (or by tier mixed) with those by means over random points."""
    initial = state(lab.system.parameters, seed)
    exact, errors, freedom = rates(lab, initial, settled(initial.parameters))
    mean, mean_errors, fewer = rates(lab, initial, "sampled")
    smallest = SLOWEST * max(float(np.abs(rate).max()) for rate in exact.values())
    return {
        name: score(
            mean[name], np.hypot(errors[name], mean_errors[name]), (1 + twist) * exact[name], min(freedom, fewer),
            max(float(np.abs(exact[name]).max()), smallest),
        )
        for name in exact
    }  # fmt: skip


def _tiers(system: System) -> Claim:
    text = "Closed forms and means over random points give the same derivative"
    law = by_parameter(system, 0.02, "far below any wrong factor or sign")
    return generated_claim(system, "tiers", text, tiers, law, once({}, seeds=2), 0.04, (2,))


# -- trajectories


def far(
    lab: Any, seed: int, twist: float, first_options: Mapping[str, Any], second_options: Mapping[str, Any]
) -> float:
    """Return the largest difference of two flows from the same start, relative to the size of the state."""
    initial = state(lab.system.parameters, seed)
    until = horizon(lab.system)
    first_run = lab.integrate(seed=seed, until=until, start=initial, save_points=5, **first_options)
    second_run = lab.integrate(seed=seed, until=until * (1 + twist), start=initial, save_points=5, **second_options)
    names = [block.name for block in rows(initial.parameters).moving]
    size = max(float(np.abs(first_run[name]).max()) for name in names)
    return max(float(np.abs(first_run[name][-1] - second_run[name][-1]).max()) for name in names) / size


def numba_jax(lab: Any, point: Mapping[str, Any], seed: int, twist: float = 0.0) -> float:
    """The loops of one back end against the array operations of the other."""
    giant_steps = lab.system.parameters().declaration.limit == "batch"
    tolerance: dict[str, Any] = {} if giant_steps else {"rtol": 1e-8}
    return far(lab, seed, twist, {"backend": "numba", **tolerance}, {"backend": "jax", **tolerance})


def integrators(lab: Any, point: Mapping[str, Any], seed: int, twist: float = 0.0) -> float:
    """DOP853 against an implicit method of other order."""
    return far(lab, seed, twist, {"solver": "DOP853", "rtol": 1e-9}, {"solver": "Radau", "rtol": 1e-9})


def _numba_jax(system: System) -> Claim:
    text = "Compiled loops and array operations follow the same trajectory"
    return generated_claim(system, "back-ends", text, numba_jax, Vanishes(rough(system, 1e-6)), once({}), 0.3, (3,))


def _integrators(system: System) -> Claim:
    text = "An explicit and an implicit integrator follow the same trajectory"
    return generated_claim(system, "integrators", text, integrators, Vanishes(rough(system, 1e-6)), once({}), 0.3, (4,))


def rough(system: System, tolerance: float) -> float:
    """Return the tolerance, or ten times the accuracy of a sampled right-hand side."""
    if settled(system.parameters()) == "exact":
        return tolerance
    advance = sampled.equations(system.parameters(), "sampled").advance
    return max(tolerance, 10 * advance.rough) if isinstance(advance, Smooth) else tolerance

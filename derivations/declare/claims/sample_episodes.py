"""The generated claim of whole episodes: successes of all samples first, then rewards, then the motion."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.broken import once
from derivations.claim import Claim
from derivations.contract import Initial, System
from derivations.declare import episodes, evaluate, schedules
from derivations.declare.claims import sample_frames, sample_gradient
from derivations.declare.claims.rates import by_parameter, compared, rates, scaled
from derivations.declare.claims.states import generated_claim, quieted, state
from derivations.declare.noise import in_force
from derivations.declare.parameter_class import rows
from derivations.declare.tiers import settled
from derivations.laws.agreement import Score

BATCHES, SAMPLES = 32, 2**18
"""Number of batches of independent episodes, and samples of each; rare rewards have errors of some per cent."""


def whole(lab: Any, point: Mapping[str, Any], seed: int, twist: float = 0.0) -> dict[str, Score]:
    """Compare the drift of every order parameter with the mean motion by whole episodes of independent samples."""
    initial = quieted(state(lab.system.parameters, seed))
    expected, errors, freedom = rates(lab, initial, settled(initial.parameters))
    estimates = sample_gradient.drift_of(_moments(initial, seed), initial)
    return compared(estimates, scaled(expected, 1 + twist), errors, freedom)


def _moments(initial: Initial, seed: int) -> sample_gradient.Moments:
    """The means over batches of whole episodes."""
    import jax

    p, layout = schedules.now(initial), rows(initial.parameters)
    declared, (frame, scale, spaces) = in_force(p), sample_frames.frame_of(initial)
    count, S, T = frame.shape[1], layout.students, episodes.samples(p)
    scalar_values = np.concatenate(
        [np.atleast_1d(initial.state[name]) for name in sample_gradient.scalar_names(layout)] or [np.empty(0)]
    )
    constants = sample_gradient.given_of(initial) | {f"K_{k}": size for k, size in enumerate(layout.units)}
    clusters = sample_gradient.clusters_of(initial, frame)
    drift, scalars, size = [], [], SAMPLES - SAMPLES % T
    with jax.enable_x64(True):
        for k in range(BATCHES):
            rng = np.random.default_rng([seed, 23, k])
            cluster_index = rng.choice(len(clusters), size, p=[probability for probability, *_ in clusters])
            centres, labels = (np.array([cluster[n] for cluster in clusters]) for n in (1, 2))
            x = rng.standard_normal((size, count)) * scale[cluster_index] + centres[cluster_index]
            noise = labels[cluster_index] + sample_gradient.noise_of(initial, rng.standard_normal((1, size)))
            of_rows, of_scalars = evaluate.moves(declared, frame[: layout.total], scalar_values, x, noise, constants)
            mean = (np.asarray(of_rows) / size).reshape(S, spaces, -1)
            drift.append(np.einsum("ilm,jlm->lij", mean, frame.reshape(len(frame), spaces, -1)))
            scalars.append(np.asarray(of_scalars) / size)
    drifts = np.array(drift) if layout.stack else np.array(drift)[:, 0]
    return sample_gradient.Moments(drifts, np.zeros((BATCHES, S, S)), np.array(scalars))


def whole_claim(system: System) -> Claim:
    """The claim that the drift is the mean motion by whole episodes."""
    text = "The drift is the mean step of SGD over whole simulated episodes"
    law = by_parameter(system, 0.1, "far below any wrong factor or sign")
    return generated_claim(system, "episodes", text, whole, law, once({}, seeds=2), 0.3, (2, 6))

"""A giant step of weight vectors by automatic differentiation of the loss of samples, for claims on the map.

    g = E[dl/du] + decay u (sphere: its tangential part) + noise,   v' = beta v + g,   u' = u - eta v',   G' - G

Rows are vectors here, in a frame that reproduces their Gram matrix, with further coordinates for the noise of the
batch, whose covariance is E[c c^T] d/B. No equation of an order parameter is used.
"""

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from derivations.contract import Initial
from derivations.declare import batches, memory, schedules, speeds, velocity_blocks
from derivations.declare.claims import sample_frames
from derivations.declare.grammar import number
from derivations.declare.parameter_class import rows
from derivations.declare.rows import Rows
from derivations.declare.schedules import TIME
from derivations.vectors import root

if TYPE_CHECKING:
    from derivations.declare.claims.sample_gradient import Moments


def drift_of(made: "Moments", initial: Initial) -> dict[str, np.ndarray]:
    """Return the change of all order parameters in a step without noise, (batches, ..) by name."""
    gradients = mean_gradients(made, initial)
    return {**change(gradients, initial), **_numbers(made, _remembered(initial, gradients))}


def second_of(made: "Moments", initial: Initial) -> dict[str, np.ndarray]:
    """Return the change of overlaps by the noise of batches only, (batches, ..) by name."""
    gradients = mean_gradients(made, initial)
    share = batches.over_dimension(initial.parameters)
    noise = np.array([root(second / share) for second in made.second])
    noisy, quiet = change(gradients, initial, noise), change(gradients, initial)
    return {name: noisy[name] - quiet[name] for name in noisy}


def frame_of(initial: Initial) -> np.ndarray:
    """Return rows (n, n) of all vectors, followed by the velocities (S,) if there are any."""
    return sample_frames.frame_of(initial)[0]


def mean_gradients(made: "Moments", initial: Initial) -> np.ndarray:
    """Return E[dl/du] (batches, S, m) in the coordinates of the frame, from its products with all rows."""
    return made.drift @ np.linalg.pinv(frame_of(initial)).T


def change(gradients: np.ndarray, initial: Initial, noise: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """Return the change of all overlaps in a step along gradients (batches, S, m), (batches, ..) by name.

    `noise` (batches, S, S) are further coordinates of the gradients.
    """
    p, at = schedules.now(_remembered(initial, gradients, noise)), rows(initial.parameters)
    S, n, frame = at.students, at.total, frame_of(initial)
    more = np.zeros((*gradients.shape[:2], S)) if noise is None else noise
    old = np.broadcast_to(np.hstack([frame, np.zeros((len(frame), S))]), (len(gradients), len(frame), len(frame) + S))
    u, v = old[:, :S], old[:, n:] if at.velocities else 0.0 * old[:, :S]
    g = np.concatenate([gradients, more], axis=2)
    keep, damp = _kept(p)
    sphere = p.declaration.weights == "sphere"
    square = (u**2).sum(2, keepdims=True)
    g = g - (g * u).sum(2, keepdims=True) / square * u if sphere else g + p.decay * u
    pushed = keep * v + damp * g
    nesterov = p.declaration.momentum is not None and p.declaration.momentum.nesterov
    by = damp * g + keep * pushed if nesterov else pushed
    moved = u - (p.step * speeds.of_vectors(p))[:, None] * by
    if sphere:
        moved = moved * np.sqrt(square / (moved**2).sum(2, keepdims=True))
    new = np.concatenate([moved, old[:, S:n], *([pushed] if at.velocities else [])], axis=1)
    return _components(new @ np.swapaxes(new, 1, 2) - old @ np.swapaxes(old, 1, 2), at)


def _remembered(initial: Initial, gradients: np.ndarray, noise: np.ndarray | None = None) -> Initial:
    """Return the state with the memories of a step before it evaluates its values."""
    p, at, declared = initial.parameters, rows(initial.parameters), initial.parameters.declaration
    if not declared.memories:
        return initial
    each = (gradients**2).sum(2).mean(0) + (0.0 if noise is None else (noise**2).sum(2).mean(0))
    known = {**schedules.shared(p), TIME: float(initial.state.get(TIME, 0.0))}
    for name in memory.of_squares(declared):
        known[name] = float(sum(each[at.of(*vector)].sum() for vector in memory.vectors_of(declared, name)))
    whole, state = {**initial.constants, **initial.state}, dict(initial.state)
    for one in declared.memories:
        seen = {name: schedules.entry_of(whole, name) for name in one.seen if name not in known}
        state[one.name] = np.asarray(float(initial.state[one.name]) + number(one.rate, {**known, **seen}))
    return dataclasses.replace(initial, state=state)


def _kept(parameters: Any) -> tuple[float, float]:
    """The parts of the velocity and of the gradient in the new velocity."""
    stated = parameters.declaration.momentum
    if stated is None:
        return 0.0, 1.0
    value = getattr(parameters, stated.parameter)
    return (1.0 - 1.0 / value, 1.0 / value) if stated.timed else (value, 1.0)


def _numbers(made: "Moments", initial: Initial) -> dict[str, np.ndarray]:
    """The change of readouts and numbers, and of their velocities."""
    p, at = schedules.now(initial), rows(initial.parameters)
    (keep, damp), start, found = _kept(p), 0, {}
    nesterov = p.declaration.momentum is not None and p.declaration.momentum.nesterov
    for (g, word, count), own in zip(at.scalars, speeds.of_scalars(p), strict=True):
        slopes, start = damp * made.scalars[:, start : start + count], start + count
        push = velocity_blocks.push_name(at, g, word)
        velocity = np.asarray(initial.state.get(push, np.zeros(count)))
        pushed = keep * velocity + slopes
        by = slopes + keep * pushed if nesterov else pushed
        found[at.declaration.students[g].named(word)] = -p.step * own * by
        if push in initial.state:
            found[push] = pushed - velocity
    return found


def _components(gram: np.ndarray, at: Rows) -> dict[str, np.ndarray]:
    """Return the order parameters (batches, ..) in Gram matrices (batches, n, n), velocities last if there are any."""
    every = at.components(gram[:, : at.total, : at.total])
    found = {block.name: every[block.name] for block in at.moving}
    return {**found, **velocity_blocks.components(at, gram)}

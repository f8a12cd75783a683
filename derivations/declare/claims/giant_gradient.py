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


def drift_of(estimates: "Moments", initial: Initial) -> dict[str, np.ndarray]:
    """Return the change of all order parameters in a step without noise, (batches, ..) by name."""
    gradients = mean_gradients(estimates, initial)
    return {**change(gradients, initial), **_numbers(estimates, _remembered(initial, gradients))}


def second_of(estimates: "Moments", initial: Initial) -> dict[str, np.ndarray]:
    """Return the change of overlaps by the noise of batches only, (batches, ..) by name."""
    gradients = mean_gradients(estimates, initial)
    share = batches.over_dimension(initial.parameters)
    noise = np.array([root(second / share) for second in estimates.second])
    noisy, quiet = change(gradients, initial, noise), change(gradients, initial)
    return {name: noisy[name] - quiet[name] for name in noisy}


def frame_of(initial: Initial) -> np.ndarray:
    """Return rows (n, n) of all vectors, followed by the velocities (S,) if there are any."""
    return sample_frames.frame_of(initial)[0]


def mean_gradients(estimates: "Moments", initial: Initial) -> np.ndarray:
    """Return E[dl/du] (batches, S, m) in the coordinates of the frame, from its products with all rows."""
    return estimates.drift @ np.linalg.pinv(frame_of(initial)).T


def change(gradients: np.ndarray, initial: Initial, noise: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """Return the change of all overlaps in a step along gradients (batches, S, m), (batches, ..) by name.

    `noise` (batches, S, S) are further coordinates of the gradients.
    """
    p, layout = schedules.now(_remembered(initial, gradients, noise)), rows(initial.parameters)
    S, n, frame = layout.students, layout.total, frame_of(initial)
    noise_part = np.zeros((*gradients.shape[:2], S)) if noise is None else noise
    old = np.broadcast_to(np.hstack([frame, np.zeros((len(frame), S))]), (len(gradients), len(frame), len(frame) + S))
    u, v = old[:, :S], old[:, n:] if layout.velocities else 0.0 * old[:, :S]
    g = np.concatenate([gradients, noise_part], axis=2)
    keep, damp = _kept(p)
    sphere = p.declaration.weights == "sphere"
    square = (u**2).sum(2, keepdims=True)
    g = g - (g * u).sum(2, keepdims=True) / square * u if sphere else g + p.decay * u
    pushed = keep * v + damp * g
    nesterov = p.declaration.momentum is not None and p.declaration.momentum.nesterov
    direction = damp * g + keep * pushed if nesterov else pushed
    next_u = u - (p.step * speeds.of_vectors(p))[:, None] * direction
    if sphere:
        next_u = next_u * np.sqrt(square / (next_u**2).sum(2, keepdims=True))
    new = np.concatenate([next_u, old[:, S:n], *([pushed] if layout.velocities else [])], axis=1)
    return _components(new @ np.swapaxes(new, 1, 2) - old @ np.swapaxes(old, 1, 2), layout)


def _remembered(initial: Initial, gradients: np.ndarray, noise: np.ndarray | None = None) -> Initial:
    """Return the state with the memories of a step before it evaluates its values."""
    p, layout, declared = initial.parameters, rows(initial.parameters), initial.parameters.declaration
    if not declared.memories:
        return initial
    squared_gradients = (gradients**2).sum(2).mean(0) + (0.0 if noise is None else (noise**2).sum(2).mean(0))
    namespace = {**schedules.shared(p), TIME: float(initial.state.get(TIME, 0.0))}
    for name in memory.of_squares(declared):
        namespace[name] = float(
            sum(squared_gradients[layout.of(*vector)].sum() for vector in memory.vectors_of(declared, name))
        )
    values, state = {**initial.constants, **initial.state}, dict(initial.state)
    for memory_variable in declared.memories:
        inputs = {name: schedules.entry_of(values, name) for name in memory_variable.seen if name not in namespace}
        state[memory_variable.name] = np.asarray(
            float(initial.state[memory_variable.name]) + number(memory_variable.rate, {**namespace, **inputs})
        )
    return dataclasses.replace(initial, state=state)


def _kept(parameters: Any) -> tuple[float, float]:
    """The parts of the velocity and of the gradient in the new velocity."""
    declared_momentum = parameters.declaration.momentum
    if declared_momentum is None:
        return 0.0, 1.0
    value = getattr(parameters, declared_momentum.parameter)
    return (1.0 - 1.0 / value, 1.0 / value) if declared_momentum.timed else (value, 1.0)


def _numbers(estimates: "Moments", initial: Initial) -> dict[str, np.ndarray]:
    """The change of readouts and numbers, and of their velocities."""
    p, layout = schedules.now(initial), rows(initial.parameters)
    (keep, damp), start, changes = _kept(p), 0, {}
    nesterov = p.declaration.momentum is not None and p.declaration.momentum.nesterov
    for (g, word, count), speed in zip(layout.scalars, speeds.of_scalars(p), strict=True):
        slopes, start = damp * estimates.scalars[:, start : start + count], start + count
        push = velocity_blocks.push_name(layout, g, word)
        velocity = np.asarray(initial.state.get(push, np.zeros(count)))
        pushed = keep * velocity + slopes
        direction = slopes + keep * pushed if nesterov else pushed
        changes[layout.declaration.students[g].named(word)] = -p.step * speed * direction
        if push in initial.state:
            changes[push] = pushed - velocity
    return changes


def _components(gram: np.ndarray, layout: Rows) -> dict[str, np.ndarray]:
    """Return the order parameters (batches, ..) in Gram matrices (batches, n, n), velocities last if there are any."""
    overlaps = layout.components(gram[:, : layout.total, : layout.total])
    moving = {block.name: overlaps[block.name] for block in layout.moving}
    return {**moving, **velocity_blocks.components(layout, gram)}

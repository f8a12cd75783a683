"""Motion of velocities by automatic differentiation of the loss of samples, for momentum with a time tau.

    du_a = -eta_a v_a dt,   dv_a = (g_a - v_a)/tau dt,   g_a = E[dl/du_a] + decay u_a,
    dG_ab = dw_a . w_b + w_a . dw_b  for all rows w = (u, teachers, v),   d(v_a . v_b) += E[c_a c_b]/(B tau^2) dt

Rows are vectors here, in a frame that reproduces their Gram matrix. No equation of an order parameter is used.
"""

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from derivations.contract import Initial
from derivations.declare import episodes, schedules, speeds, velocity_blocks
from derivations.declare.parameter_class import rows
from derivations.declare.rows import Rows

if TYPE_CHECKING:
    from derivations.declare.claims.sample_gradient import Moments

SIZE = 0.3
"""Standard deviation of the coordinates of random velocities; vectors have norms of about 1."""


def pushed(initial: Initial, rng: np.random.Generator) -> Initial:
    """The state with random velocities, within the span of all vectors and outside it."""
    at = rows(initial.parameters)
    if not at.declaration.inertial:
        return initial
    values, vectors = np.linalg.eigh(at.gram({**initial.state, **initial.constants}))
    every = np.zeros((at.total + at.students, at.total + at.students))
    every[: at.total, : at.total] = vectors * np.sqrt(np.maximum(values, 0.0))
    every[at.total :] = SIZE * rng.normal(size=(at.students, len(every)))
    state = {**initial.state, **velocity_blocks.components(at, every @ every.T)}
    for g, word, count in velocity_blocks.pushes(at):
        state[velocity_blocks.push_name(at, g, word)] = SIZE * rng.normal(size=count)
    return dataclasses.replace(initial, state=state)


def drift_of(made: "Moments", initial: Initial) -> dict[str, np.ndarray]:
    """Return the drift of all overlaps, numbers and velocities in every batch, (batches, ..) by name."""
    p, at = schedules.now(initial), rows(initial.parameters)
    gram, n, S = _gram(initial, at), at.total, at.students
    rate = p.step if p.declaration.limit == "online" else 1.0
    moved = np.zeros((len(made.drift), n + S, n + S))
    moved[:, :S] = -rate * speeds.of_vectors(p)[:, None] * gram[n:]
    moved[:, n:] = (made.drift + p.decay * gram[:S] - gram[n:]) / p.momentum_time
    motions = _components(moved + np.swapaxes(moved, -1, -2), at)
    start = 0
    for (g, word, count), own in zip(at.scalars, speeds.of_scalars(p), strict=True):
        slopes, start = made.scalars[:, start : start + count], start + count
        name, push = at.declaration.students[g].named(word), velocity_blocks.push_name(at, g, word)
        velocity = np.asarray(initial.state.get(push, np.zeros(count)))
        motions[name] = -rate * own * velocity + 0.0 * slopes
        if push in initial.state:
            motions[push] = (slopes - velocity) / p.momentum_time
    return motions


def second_of(made: "Moments", initial: Initial) -> dict[str, np.ndarray]:
    """Return the motion of the overlaps of velocities by the noise of batches only, (batches, ..) by name."""
    p, at = schedules.now(initial), rows(initial.parameters)
    gram = np.zeros((len(made.second), at.total + at.students, at.total + at.students))
    gram[:, at.total :, at.total :] = made.second / (episodes.samples(p) * p.batch) / p.momentum_time**2
    found = velocity_blocks.components(at, gram)
    return {block.name: found[block.name] for block in at.velocities if block.letter == "VV"}


def _gram(initial: Initial, at: Rows) -> np.ndarray:
    """The Gram matrix (n + S, n + S) of all rows and velocities."""
    return velocity_blocks.extended(at, at.gram({**initial.constants, **initial.state}), initial.state)


def _components(gram: np.ndarray, at: Rows) -> dict[str, np.ndarray]:
    """The order parameters (batches, ..) in Gram matrices (batches, n + S, n + S)."""
    every, names = at.components(gram), [block.name for block in at.moving]
    return {**{name: every[name] for name in names}, **velocity_blocks.components(at, gram)}

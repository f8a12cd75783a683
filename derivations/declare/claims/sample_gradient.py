"""Motion of a declared model by automatic differentiation of the loss of samples, independent of the derivation.

    drift    d(u_i . v_j)/dt = -r (E[dl/du_i . v_j] + decay u_i . v_j) + (the same with i and j exchanged)
    second   eta^2/B E[c_i c_j],  dl/du_i = c_i x + e_i u_i

The loss of a sample is evaluated from the expressions of the declaration (`evaluate`) and differentiated by JAX. If
rules replace derivatives, c comes from the rules. Samples are scrambled Sobol points of SciPy, one randomisation for
every batch, or the points of tier `sampled` themselves.
"""

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from derivations.contract import Initial
from derivations.declare import (
    episodes,
    evaluate,
    looked,
    looks,
    mixture,
    schedules,
    spectra,
    speeds,
)
from derivations.declare.claims import giant_gradient, velocity_gradient
from derivations.declare.claims.episode_rewards import by_count, successes
from derivations.declare.claims.sample_frames import frame_of
from derivations.declare.episodes import REWARD
from derivations.declare.noise import in_force
from derivations.declare.parameter_class import numbers, rows
from derivations.declare.readouts import written_name
from derivations.declare.rows import Rows
from derivations.vectors import root

BATCHES, POINTS = 32, 2**15
"""Number of independent randomisations, and points of each; the standard error is about 0.1 % for smooth units."""
CHUNK = 2**12
"""Number of samples that are differentiated together."""


@dataclasses.dataclass(frozen=True)
class Moments:
    """Means of every batch: E[dl/du_i . v_j] (batches, S, n), E[c_i c_j] (batches, S, S), E[dl/ds] (batches, s).

    If vectors have velocities, these follow the rows in the first array, (batches, S, n + S). For inputs with several
    eigenspaces the first array is (batches, L, S, n), from the parts of the vectors in each. For inputs with
    eigenvalues the second is (batches, L, S, S), the mean of lam_l c_i c_j (without this axis for L = 1).
    """

    drift: np.ndarray
    second: np.ndarray
    scalars: np.ndarray


@dataclasses.dataclass(frozen=True)
class Samples:
    """Inputs (N, m) of one cluster in the coordinates of a frame, its probability, and its contribution to labels."""

    probability: float
    inputs: np.ndarray
    label: float


def moments(initial: Initial, seed: int, doublings: int = 0) -> Moments:
    """Return the means over independent samples at a state, batch by batch, from POINTS 2^doublings points in each."""
    axes, count = frame_of(initial)[0].shape[1], POINTS * 2**doublings
    equal, batch_means = np.full(count, 1 / count), []
    for k in range(BATCHES):
        points = _normals(axes + len(initial.parameters.declaration.force), count, [seed, 5, k])
        batch_means.append(_means(initial, _drawn(initial, points[:, :axes]), points[:, axes:], equal))
    return Moments(*(np.array(arrays) for arrays in zip(*batch_means, strict=True)))


def at_points(initial: Initial, points: np.ndarray, weights: np.ndarray) -> Moments:
    """Return the means over given points (N, F + H) of F fields, the last numbers being the noise of the labels.

    H is the number of heads in use. A point determines only the fields of a sample. On inputs with eigenvalues the
    sample is the mean of all samples with these fields.
    """
    isotropic = mixture.mixture(initial.parameters) is None
    fields = rows(initial.parameters).fields
    noise, field_points = points[:, fields:], points[:, :fields]
    padding = frame_of(initial)[0].shape[1] - fields if isotropic else 0  # along velocities alone: means, 0
    field_points = np.concatenate([field_points, np.zeros((len(field_points), padding))], axis=1)
    samples = (_drawn if isotropic else _of_fields)(initial, field_points)
    return Moments(*(mean[None] for mean in _means(initial, samples, noise, weights)))


def _means(
    initial: Initial, samples: list[Samples], noise: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the three means over samples with label noise (N, heads) and weights (N,), the same in every cluster."""
    import jax

    p, layout = schedules.now(initial), rows(initial.parameters)
    frame, scale, spaces = frame_of(initial)
    n, S = len(frame), layout.students
    vectors = np.concatenate([frame, np.zeros((n, 1))], axis=1)
    scalar_values = np.concatenate(
        [np.atleast_1d(initial.state[name]) for name in scalar_names(layout)] or [np.empty(0)]
    )
    drift, second, scalars = np.zeros((spaces, S, n)), np.zeros((spaces, S, S)), np.zeros(scalar_values.size)
    with jax.enable_x64(True):
        declared = episodes.in_force(p)
        gradient = _gradient(declared, layout.units)
        constants = given_of(initial) | _of_looks(initial)
        hits, odds = [np.zeros(len(weights))] * len(samples), 0.0
        if declared.episode is not None:
            sizes = {f"K_{k}": size for k, size in enumerate(layout.units)}
            labelled = [(sample.inputs, sample.label + noise_of(initial, noise).T) for sample in samples]
            hits = [
                successes(declared, (frame[: layout.total], scalar_values), *sample, constants | sizes)
                for sample in labelled
            ]
            odds = sum(sample.probability * float(weights @ of) for sample, of in zip(samples, hits, strict=True))
        for c, cluster in enumerate(samples):
            for chosen in np.array_split(np.arange(len(weights)), -(-len(weights) // CHUNK)):
                # A coordinate outside of all vectors, set to 1: the gradient along it is the coefficient c of x.
                inputs = np.concatenate([cluster.inputs[chosen], np.ones((len(chosen), 1))], axis=1)
                labels = cluster.label + noise_of(initial, noise[chosen])
                state = (vectors[:S], scalar_values, vectors[S : layout.total], inputs, labels, constants)
                for rewards, share in _rewards(declared, hits[c][chosen], odds, constants):
                    of_rows, of_scalars = gradient(*state, rewards)
                    g, w = np.asarray(of_rows), share * cluster.probability * weights[chosen]
                    mean = np.einsum("k,kij->ij", w, g[..., :-1]).reshape(S, spaces, n)
                    drift += np.einsum("ilm,jlm->lij", mean, frame.reshape(n, spaces, n))
                    second += scale[c, ::n, None, None] ** 2 * np.einsum("k,ki,kj->ij", w, g[..., -1], g[..., -1])
                    scalars += w @ np.asarray(of_scalars)
    return (drift, second, scalars) if layout.stack else (drift[0], second[0], scalars)


def _rewards(
    declared: Any, hits: np.ndarray, odds: float, constants: Mapping[str, Any]
) -> Iterator[tuple[np.ndarray, float]]:  # fmt: skip
    """Return rewards of samples and their probabilities; unused numbers without episodes."""
    if declared.episode is None:
        return iter([(hits, 1.0)])
    return by_count(declared, hits, odds, constants)


def noise_of(initial: Initial, normal: np.ndarray) -> np.ndarray:
    """The noise of labels from standard normal numbers."""
    p = initial.parameters
    law = in_force(p).law
    if law is None:
        return schedules.now(initial).noise * normal
    namespace = {**schedules.shared(p), "xi": normal}
    return np.asarray(evaluate.value(law.tree, namespace, {}, None)) + 0.0 * normal


def _drawn(initial: Initial, normals: np.ndarray) -> list[Samples]:
    """The samples that standard normal coordinates (N, m) make in every cluster of the inputs."""
    frame, scale, _ = frame_of(initial)
    return [
        Samples(probability, normals * deviation + centre, label)
        for (probability, centre, label), deviation in zip(clusters_of(initial, frame), scale, strict=True)
    ]


def _of_fields(initial: Initial, normals: np.ndarray) -> list[Samples]:
    """The mean input of every cluster at the fields z = E[z] + U xi of points xi (N, F), U U^T = Cov(z).

    It is E[x | z] = E[x] + Cov(x, z) Cov(z)^-1 (z - E[z]).
    """
    frame, scale, _ = frame_of(initial)
    layout, samples = rows(initial.parameters), []
    fields = frame[: layout.fields]
    order = np.roll(np.arange(layout.fields), -layout.students)  # teachers first, as for the points of tier sampled
    for (probability, centre, label), deviation in zip(clusters_of(initial, frame), scale, strict=True):
        covariance = (fields * deviation**2) @ fields.T
        factor = root(covariance[order][:, order])[np.argsort(order)]
        inputs = centre + normals @ np.linalg.pinv(factor) @ (fields * deviation**2)
        samples.append(Samples(probability, inputs, label))
    return samples


def clusters_of(initial: Initial, frame: np.ndarray) -> list[tuple[float, np.ndarray, float]]:
    """Probability, mean (m,) in the coordinates of the frame, and label of every cluster of the inputs."""
    law = mixture.mixture(initial.parameters)
    if law is None:
        return [(1.0, np.zeros(frame.shape[1]), 0.0)]
    centres = law.mean @ frame[len(frame) - law.mean.shape[1] :]
    label = np.zeros(len(centres)) if law.label is None else law.label
    return list(zip(law.probability.tolist(), centres, label.tolist(), strict=True))


@functools.lru_cache(maxsize=4)
def _gradient(declared: Any, sizes: tuple[int, ...]) -> Any:
    """Return the compiled motion of student rows and scalars by single samples: gradients of losses, or rules."""
    import jax
    import jax.numpy as jnp

    counts = {f"K_{k}": size for k, size in enumerate(sizes)}

    def loss(students: Any, scalars: Any, teachers: Any, x: Any, label: Any, constants: Any, reward: Any) -> Any:
        all_rows = jnp.concatenate([students, teachers])
        return evaluate.losses(declared, all_rows, scalars, x[None], label[:, None], {**constants, **counts})[0]

    def ruled(students: Any, scalars: Any, teachers: Any, x: Any, label: Any, constants: Any, reward: Any) -> Any:
        all_rows = jnp.concatenate([students, teachers])
        constants = constants | ({REWARD: reward[None]} if declared.episode is not None else {})
        # The last coordinate of a sample is 1: along it the length |x|^2/d is that of the limit, 1.
        normal_axis = jnp.zeros_like(x).at[-1].set(1.0)[None]
        of = evaluate.moves if declared.look is None else looked.moves
        return of(
            declared, all_rows, scalars, x[None], label[:, None], {**constants, **counts}, normal_axis=normal_axis
        )

    by_sample = ruled if declared.rules or declared.look is not None else jax.grad(loss, argnums=(0, 1))
    return jax.jit(jax.vmap(by_sample, in_axes=(None, None, None, 0, 0, None, 0)))


def given_of(initial: Initial) -> dict[str, Any]:
    """Return the numbers of the declaration and the constant readouts, by the names of `evaluate`."""
    layout = rows(initial.parameters)
    names = layout.declaration.names
    constants: dict[str, Any] = {f"n_{n}": v for n, v in zip(names, numbers(schedules.now(initial)), strict=True)}
    for k, readout in layout.declaration.fixed_readouts():
        name = layout.declaration.readout_name(k, readout.head)
        constants[written_name(k, readout.head)] = np.asarray(initial.constants[name], float)
    for k, group in enumerate(layout.declaration.students):
        for word in layout.declaration.constants(group):
            constants[f"own_{k}_{word}"] = np.asarray(initial.constants[group.named(word)], float)
    return constants


def _of_looks(initial: Initial) -> dict[str, Any]:
    """The size of looks, and the factors of the steps of vectors."""
    parameters = schedules.now(initial)
    look_constants = looks.constants(parameters)
    return {"look": look_constants[0], "moving": speeds.of_vectors(parameters)} if look_constants else {}


def _normals(dimension: int, count: int, seed: list[int]) -> np.ndarray:
    """Return standard normal points (count, dimension) of one scrambled Sobol sequence."""
    from scipy.special import ndtri
    from scipy.stats import qmc

    points = qmc.Sobol(dimension, rng=np.random.default_rng(seed)).random(count)
    return ndtri(np.clip(points, 1e-16, 1 - 1e-16))


def scalar_names(layout: Rows) -> list[str]:
    """Return the names of trained readouts and scalars, in the order of `evaluate`."""
    return [layout.declaration.students[number].named(word) for number, word, _ in layout.scalars]


def drift_of(estimates: Moments, initial: Initial) -> dict[str, np.ndarray]:
    """Return the drift of all overlaps, readouts and scalars in every batch, (batches, ..) by name.

    For giant steps it is the change in a step without noise.
    """
    if initial.parameters.declaration.limit == "batch":
        return giant_gradient.drift_of(estimates, initial)
    p, layout = schedules.now(initial), rows(initial.parameters)
    if layout.velocities:
        return velocity_gradient.drift_of(estimates, initial)
    gram, S = layout.gram({**initial.constants, **initial.state}), layout.students
    rate = p.step if p.declaration.limit == "online" else 1.0
    sphere = p.declaration.weights == "sphere"
    drift = estimates.drift + (0.0 if sphere else p.decay) * gram[..., :S, :]
    if sphere:
        drift = drift - _lengthening(drift, gram, layout) * gram[..., :S, :]
    motions = overlaps(-rate * speeds.of_vectors(p)[:, None] * drift, np.zeros((S, S)), layout)
    start = 0
    for (_, _, count), name, speed in zip(layout.scalars, scalar_names(layout), speeds.of_scalars(p), strict=True):
        motions[name] = -rate * speed * estimates.scalars[:, start : start + count]
        start += count
    return motions


def second_of(estimates: Moments, initial: Initial) -> dict[str, np.ndarray]:
    """Return the motion of all overlaps by the second-order term only, (batches, ..) by name."""
    if initial.parameters.declaration.limit == "batch":
        return giant_gradient.second_of(estimates, initial)
    p, layout = schedules.now(initial), rows(initial.parameters)
    if layout.velocities:
        return velocity_gradient.second_of(estimates, initial)
    gram, S = layout.gram({**initial.constants, **initial.state}), layout.students
    speed = speeds.of_vectors(p)
    E = p.step**2 / (episodes.samples(p) * p.batch) * estimates.second * speed[:, None] * speed
    blocks = spectra.blocks(p)
    if blocks is not None:
        E = blocks.share[:, None, None] * E if layout.stack else E
    D = np.zeros((*E.shape[:-1], layout.total))
    if p.declaration.weights == "sphere":  # the correction of the norms
        D = -0.5 * _lengthening(E, gram, layout) * gram[..., :S, :]
    return overlaps(D, E, layout)


def _lengthening(D: np.ndarray, gram: np.ndarray, layout: Rows) -> np.ndarray:
    """Return the part of a motion D (batches, .., S, n) along its own vectors, over their squared norms."""
    radial = np.diagonal(layout.whole(D), axis1=-2, axis2=-1) / np.diagonal(layout.whole(gram))[: layout.students]
    return radial[:, None, :, None] if layout.stack else radial[:, :, None]


def overlaps(D: np.ndarray, E: np.ndarray, layout: Rows) -> dict[str, np.ndarray]:
    """Return the motion of every overlap, D + D^T + E, of student rows that move by D (batches, .., S, n)."""
    n, S = layout.total, layout.students
    change = np.zeros((*D.shape[:-2], n, n))
    change[..., :S, :] = D
    change = change + np.swapaxes(change, -1, -2)
    change[..., :S, :S] += E
    components = [layout.components(matrix) for matrix in change]
    return {block.name: np.array([entries[block.name] for entries in components]) for block in layout.moving}

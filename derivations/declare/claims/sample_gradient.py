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
    equal, made = np.full(count, 1 / count), []
    for k in range(BATCHES):
        points = _normals(axes + len(initial.parameters.declaration.force), count, [seed, 5, k])
        made.append(_means(initial, _drawn(initial, points[:, :axes]), points[:, axes:], equal))
    return Moments(*(np.array(each) for each in zip(*made, strict=True)))


def at_points(initial: Initial, points: np.ndarray, weights: np.ndarray) -> Moments:
    """Return the means over given points (N, F + H) of F fields, the last numbers being the noise of the labels.

    H is the number of heads in use. A point determines only the fields of a sample. On inputs with eigenvalues the
    sample is the mean of all samples with these fields.
    """
    isotropic = mixture.mixture(initial.parameters) is None
    fields = rows(initial.parameters).fields
    noise, along = points[:, fields:], points[:, :fields]
    more = frame_of(initial)[0].shape[1] - fields if isotropic else 0  # along velocities alone: means, 0
    along = np.concatenate([along, np.zeros((len(along), more))], axis=1)
    samples = (_drawn if isotropic else _of_fields)(initial, along)
    return Moments(*(each[None] for each in _means(initial, samples, noise, weights)))


def _means(
    initial: Initial, samples: list[Samples], noise: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the three means over samples with label noise (N, heads) and weights (N,), the same in every cluster."""
    import jax

    p, at = schedules.now(initial), rows(initial.parameters)
    frame, scale, spaces = frame_of(initial)
    n, S = len(frame), at.students
    vectors = np.concatenate([frame, np.zeros((n, 1))], axis=1)
    own = np.concatenate([np.atleast_1d(initial.state[name]) for name in scalar_names(at)] or [np.empty(0)])
    drift, second, scalars = np.zeros((spaces, S, n)), np.zeros((spaces, S, S)), np.zeros(own.size)
    with jax.enable_x64(True):
        declared = episodes.in_force(p)
        gradient = _gradient(declared, at.units)
        given = given_of(initial) | _of_looks(initial)
        hits, odds = [np.zeros(len(weights))] * len(samples), 0.0
        if declared.episode is not None:
            sizes = {f"K_{k}": size for k, size in enumerate(at.units)}
            drawn = [(one.inputs, one.label + noise_of(initial, noise).T) for one in samples]
            hits = [successes(declared, (frame[: at.total], own), *one, given | sizes) for one in drawn]
            odds = sum(one.probability * float(weights @ of) for one, of in zip(samples, hits, strict=True))
        for c, cluster in enumerate(samples):
            for chosen in np.array_split(np.arange(len(weights)), -(-len(weights) // CHUNK)):
                # A coordinate outside of all vectors, set to 1: the gradient along it is the coefficient c of x.
                inputs = np.concatenate([cluster.inputs[chosen], np.ones((len(chosen), 1))], axis=1)
                labels = cluster.label + noise_of(initial, noise[chosen])
                state = (vectors[:S], own, vectors[S : at.total], inputs, labels, given)
                for rewards, share in _rewards(declared, hits[c][chosen], odds, given):
                    of_rows, of_scalars = gradient(*state, rewards)
                    g, w = np.asarray(of_rows), share * cluster.probability * weights[chosen]
                    mean = np.einsum("k,kij->ij", w, g[..., :-1]).reshape(S, spaces, n)
                    drift += np.einsum("ilm,jlm->lij", mean, frame.reshape(n, spaces, n))
                    second += scale[c, ::n, None, None] ** 2 * np.einsum("k,ki,kj->ij", w, g[..., -1], g[..., -1])
                    scalars += w @ np.asarray(of_scalars)
    return (drift, second, scalars) if at.stack else (drift[0], second[0], scalars)


def _rewards(
    declared: Any, hits: np.ndarray, odds: float, given: Mapping[str, Any]
) -> Iterator[tuple[np.ndarray, float]]:  # fmt: skip
    """Return rewards of samples and their probabilities; unused numbers without episodes."""
    if declared.episode is None:
        return iter([(hits, 1.0)])
    return by_count(declared, hits, odds, given)


def noise_of(initial: Initial, normal: np.ndarray) -> np.ndarray:
    """The noise of labels from standard normal numbers."""
    p = initial.parameters
    law = in_force(p).law
    if law is None:
        return schedules.now(initial).noise * normal
    known = {**schedules.shared(p), "xi": normal}
    return np.asarray(evaluate.value(law.tree, known, {}, None)) + 0.0 * normal


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
    at, found = rows(initial.parameters), []
    fields = frame[: at.fields]
    order = np.roll(np.arange(at.fields), -at.students)  # teachers first, as for the points of tier sampled
    for (probability, centre, label), deviation in zip(clusters_of(initial, frame), scale, strict=True):
        covariance = (fields * deviation**2) @ fields.T
        factor = root(covariance[order][:, order])[np.argsort(order)]
        inputs = centre + normals @ np.linalg.pinv(factor) @ (fields * deviation**2)
        found.append(Samples(probability, inputs, label))
    return found


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

    def loss(students: Any, scalars: Any, teachers: Any, x: Any, label: Any, given: Any, reward: Any) -> Any:
        every = jnp.concatenate([students, teachers])
        return evaluate.losses(declared, every, scalars, x[None], label[:, None], {**given, **counts})[0]

    def ruled(students: Any, scalars: Any, teachers: Any, x: Any, label: Any, given: Any, reward: Any) -> Any:
        every = jnp.concatenate([students, teachers])
        given = given | ({REWARD: reward[None]} if declared.episode is not None else {})
        # The last coordinate of a sample is 1: along it the length |x|^2/d is that of the limit, 1.
        along = jnp.zeros_like(x).at[-1].set(1.0)[None]
        of = evaluate.moves if declared.look is None else looked.moves
        return of(declared, every, scalars, x[None], label[:, None], {**given, **counts}, along=along)

    by_sample = ruled if declared.rules or declared.look is not None else jax.grad(loss, argnums=(0, 1))
    return jax.jit(jax.vmap(by_sample, in_axes=(None, None, None, 0, 0, None, 0)))


def given_of(initial: Initial) -> dict[str, Any]:
    """Return the numbers of the declaration and the constant readouts, by the names of `evaluate`."""
    at = rows(initial.parameters)
    names = at.declaration.names
    given: dict[str, Any] = {f"n_{n}": v for n, v in zip(names, numbers(schedules.now(initial)), strict=True)}
    for k, one in at.declaration.fixed_readouts():
        name = at.declaration.readout_name(k, one.head)
        given[written_name(k, one.head)] = np.asarray(initial.constants[name], float)
    for k, group in enumerate(at.declaration.students):
        for word in at.declaration.constants(group):
            given[f"own_{k}_{word}"] = np.asarray(initial.constants[group.named(word)], float)
    return given


def _of_looks(initial: Initial) -> dict[str, Any]:
    """The size of looks, and the factors of the steps of vectors."""
    now = schedules.now(initial)
    given = looks.constants(now)
    return {"look": given[0], "moving": speeds.of_vectors(now)} if given else {}


def _normals(dimension: int, count: int, seed: list[int]) -> np.ndarray:
    """Return standard normal points (count, dimension) of one scrambled Sobol sequence."""
    from scipy.special import ndtri
    from scipy.stats import qmc

    points = qmc.Sobol(dimension, rng=np.random.default_rng(seed)).random(count)
    return ndtri(np.clip(points, 1e-16, 1 - 1e-16))


def scalar_names(at: Rows) -> list[str]:
    """Return the names of trained readouts and scalars, in the order of `evaluate`."""
    return [at.declaration.students[number].named(word) for number, word, _ in at.scalars]


def drift_of(made: Moments, initial: Initial) -> dict[str, np.ndarray]:
    """Return the drift of all overlaps, readouts and scalars in every batch, (batches, ..) by name.

    For giant steps it is the change in a step without noise.
    """
    if initial.parameters.declaration.limit == "batch":
        return giant_gradient.drift_of(made, initial)
    p, at = schedules.now(initial), rows(initial.parameters)
    if at.velocities:
        return velocity_gradient.drift_of(made, initial)
    gram, S = at.gram({**initial.constants, **initial.state}), at.students
    rate = p.step if p.declaration.limit == "online" else 1.0
    sphere = p.declaration.weights == "sphere"
    found = made.drift + (0.0 if sphere else p.decay) * gram[..., :S, :]
    if sphere:
        found = found - _lengthening(found, gram, at) * gram[..., :S, :]
    motions = overlaps(-rate * speeds.of_vectors(p)[:, None] * found, np.zeros((S, S)), at)
    start = 0
    for (_, _, count), name, own in zip(at.scalars, scalar_names(at), speeds.of_scalars(p), strict=True):
        motions[name] = -rate * own * made.scalars[:, start : start + count]
        start += count
    return motions


def second_of(made: Moments, initial: Initial) -> dict[str, np.ndarray]:
    """Return the motion of all overlaps by the second-order term only, (batches, ..) by name."""
    if initial.parameters.declaration.limit == "batch":
        return giant_gradient.second_of(made, initial)
    p, at = schedules.now(initial), rows(initial.parameters)
    if at.velocities:
        return velocity_gradient.second_of(made, initial)
    gram, S = at.gram({**initial.constants, **initial.state}), at.students
    own = speeds.of_vectors(p)
    E = p.step**2 / (episodes.samples(p) * p.batch) * made.second * own[:, None] * own
    blocks = spectra.blocks(p)
    if blocks is not None:
        E = blocks.share[:, None, None] * E if at.stack else E
    D = np.zeros((*E.shape[:-1], at.total))
    if p.declaration.weights == "sphere":  # the correction of the norms
        D = -0.5 * _lengthening(E, gram, at) * gram[..., :S, :]
    return overlaps(D, E, at)


def _lengthening(D: np.ndarray, gram: np.ndarray, at: Rows) -> np.ndarray:
    """Return the part of a motion D (batches, .., S, n) along its own vectors, over their squared norms."""
    own = np.diagonal(at.whole(D), axis1=-2, axis2=-1) / np.diagonal(at.whole(gram))[: at.students]
    return own[:, None, :, None] if at.stack else own[:, :, None]


def overlaps(D: np.ndarray, E: np.ndarray, at: Rows) -> dict[str, np.ndarray]:
    """Return the motion of every overlap, D + D^T + E, of student rows that move by D (batches, .., S, n)."""
    n, S = at.total, at.students
    whole = np.zeros((*D.shape[:-2], n, n))
    whole[..., :S, :] = D
    whole = whole + np.swapaxes(whole, -1, -2)
    whole[..., :S, :S] += E
    components = [at.components(one) for one in whole]
    return {block.name: np.array([each[block.name] for each in components]) for block in at.moving}

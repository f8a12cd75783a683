"""Clusters of the inputs of a run, x ~ N(sum_k A_ck m_k, Lambda_c) with probability p_c, as numbers."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract import Labelled, UsageError
from derivations.declare import classes, schedules, spectra
from derivations.declare.clusters import UNEQUAL
from derivations.declare.declaration import MEAN, Declaration, Inputs
from derivations.declare.grammar import Tree, number
from derivations.declare.rows import SPACE

CLUSTER = "cluster"
"""Name of the dimension over clusters."""
LINEAR = 1e-9
"""Relative tolerance for the test that a mean is linear."""
ONE = Tree("number", value=1.0)


@dataclasses.dataclass(frozen=True, eq=False)
class Mixture:
    """The clusters of some inputs: their `probability` (C,), and the weights `mean` (C, N) of the named means.

    `eigenvalue` (C, L) are those of their covariances in the blocks, `label` (C,) the labels of their samples (None:
    those of a teacher), `norm` (N,) the Euclidean norms of the named means. If samples are multiplied by a factor for a
    given trace, `mean` contains this factor, because vectors of a file are unchanged.
    """

    probability: np.ndarray
    mean: np.ndarray
    eigenvalue: np.ndarray
    label: np.ndarray | None
    norm: np.ndarray


def mixture(parameters: Any) -> Mixture | None:
    """Return the clusters of a run; None for isotropic inputs. Raises `UsageError` for an invalid distribution.

    Inputs without clusters are one cluster of probability 1 and mean 0.
    """
    declared: Declaration = parameters.declaration
    blocks = spectra.blocks(parameters)
    if declared.inputs is None or blocks is None:
        return None
    values = tuple(schedules.shared(parameters).items())
    return _mixture(declared.inputs, values, int(parameters.d), blocks)


@functools.lru_cache(maxsize=64)
def _mixture(inputs: Inputs, values: tuple[tuple[str, float], ...], d: int, blocks: spectra.Blocks) -> Mixture:
    namespace = {**dict(values), "d": float(d)}
    norms = _norms(inputs, namespace)
    if not inputs.clusters:
        return Mixture(np.ones(1), np.zeros((1, 0)), blocks.eigenvalue[None], None, norms)
    probability = np.array([_positive("p", cluster.probability, namespace) for cluster in inputs.clusters])
    if abs(probability.sum() - 1) > UNEQUAL:
        raise UsageError(f"the probabilities of the clusters sum to {probability.sum():.10g}, not to 1")
    names = [named_mean.name for named_mean in inputs.means]
    mean = np.array([_linear(cluster.mean, names, namespace) for cluster in inputs.clusters])
    if inputs.data is not None:
        mean = np.sqrt(blocks.scale) * mean
    label = (
        np.array([number(c.label, namespace) for c in inputs.clusters if c.label is not None])
        if inputs.labels
        else None
    )
    return Mixture(
        probability, mean.reshape(len(probability), len(names)), _eigenvalues(inputs, namespace, blocks), label, norms
    )


def overlap(parameters: Any) -> float | None:
    """Return the cosine of students and teachers at the start; None for random directions, and without a teacher."""
    return getattr(parameters, "overlap", None)


def _norms(inputs: Inputs, namespace: Mapping[str, float]) -> np.ndarray:
    """The Euclidean norms of the named means."""
    vectors = classes.named_means(inputs)
    if vectors is not None:
        return np.linalg.norm(vectors, axis=1)
    norms = [(mean.name, mean.norm) for mean in inputs.means if mean.norm is not None]
    return np.array([_positive(f"the norm of the mean {name}", norm, namespace) for name, norm in norms])


def _positive(quantity: str, tree: Tree, namespace: Mapping[str, float]) -> float:
    value = number(tree, namespace)
    if not value > 0:
        raise UsageError(f"{quantity} must be above 0, but is {value:g}")
    return value


def _linear(mean: Tree | None, names: list[str], namespace: Mapping[str, float]) -> np.ndarray:
    """The weights of the named means in the mean of a cluster. Raises `UsageError` if it is not linear in them."""
    if mean is None:
        return np.zeros(len(names))

    def at(point: np.ndarray) -> float:
        return number(mean, {**namespace, **dict(zip(names, point.tolist(), strict=True))})

    weights = np.array([at(row) for row in np.eye(len(names))])
    generic = np.sqrt(np.arange(2.0, 2 + len(names)))
    for point in (0 * generic, generic, -3 * generic):
        if abs(at(point) - weights @ point) > LINEAR * (1 + np.abs(weights * point).sum()):
            several = ", ".join(names)
            form = f"'{names[0]}' or '-0.5*{names[0]}'"
            raise UsageError(f"the mean of a cluster must be a sum of multiples of {several}, such as {form}")
    return weights


def _eigenvalues(inputs: Inputs, namespace: Mapping[str, float], blocks: spectra.Blocks) -> np.ndarray:
    """Return the eigenvalues (C, L) of the clusters; a given trace has multiplied all of them by one factor."""
    if inputs.classes:
        return classes.by_blocks(inputs, blocks.eigenvalue, blocks.dimension)
    rows = []
    for place, cluster in enumerate(inputs.clusters, 1):
        if cluster.eigenvalues and len(cluster.eigenvalues) != len(blocks.share):
            raise UsageError(
                f"cluster {place} has {len(cluster.eigenvalues)} eigenvalues, but the inputs have {len(blocks.share)} "
                "blocks"
            )
        scaled = [blocks.scale * number(value, namespace) for value in cluster.eigenvalues]
        row = np.array(scaled) if scaled else number(cluster.scale or ONE, namespace) * blocks.eigenvalue
        if (row < 0).any() or not (row > 0).any():
            raise UsageError(
                f"the eigenvalues of cluster {place} are at least 0, and not all 0; the least is {row.min():g}"
            )
        rows.append(row)
    return np.array(rows)


def labelled(parameters: Any) -> Labelled:
    """Return the saved variables of the clusters; none if there are no clusters."""
    law, declared = mixture(parameters), parameters.declaration
    if law is None or not declared.inputs.clusters:
        return {}
    variables: dict[str, Any] = {"probability": ((CLUSTER,), law.probability, "probability of a cluster of the inputs")}
    if declared.inputs.varied:
        text = "eigenvalue of a block of the inputs in a cluster"
        variables["eigenvalue"] = ((CLUSTER, SPACE), law.eigenvalue, text)
    if declared.inputs.means:
        variables["mean_weights"] = ((CLUSTER, MEAN), law.mean, "weight of a named mean in the mean of a cluster")
    if law.label is not None:
        variables["label"] = ((CLUSTER,), law.label, "label of the samples of a cluster")
    return variables


def variances(parameters: Any) -> np.ndarray:
    """Return the variance (C, d) of every coordinate of the inputs in every cluster, in the order of the blocks."""
    blocks, law = spectra.blocks(parameters), mixture(parameters)
    assert blocks is not None and law is not None
    base = spectra.variances(parameters)
    if not parameters.declaration.inputs.varied:
        return np.broadcast_to(base, (len(law.probability), len(base)))
    if parameters.declaration.inputs.classes:
        return blocks.scale * classes.statistics(parameters.declaration.inputs).variance
    if parameters.declaration.inputs.blocks:
        return np.repeat(law.eigenvalue, blocks.dimension, axis=1)
    return (law.eigenvalue[:, :1] / blocks.eigenvalue[0]) * base  # a spectrum has a factor in each cluster


def require_small_means(parameters: Any) -> None:
    """Raise `UsageError` if a mean is as large as the inputs around it, because the online limit neglects this."""
    blocks, law = spectra.blocks(parameters), mixture(parameters)
    if blocks is None or law is None or parameters.declaration.limit != "online" or not len(law.norm):
        return
    variance = parameters.d * float(law.probability @ law.eigenvalue @ blocks.share)
    mean_vectors = classes.named_means(parameters.declaration.inputs)
    longest = float((law.norm if mean_vectors is None else np.linalg.norm(law.mean @ mean_vectors, axis=1)).max())
    if longest**2 > variance:
        raise UsageError(
            f"a mean of norm {longest:g} is longer than the deviations of the inputs from it, "
            f"sqrt({variance:g}), but the online limit assumes that it is shorter: use a larger d, or divide "
            "the mean by sqrt(d)"
        )


def require_signs(parameters: Any) -> None:
    """Raise `UsageError` for labels whose sign is needed, but which are 0 or all have one sign."""
    law, declared = mixture(parameters), parameters.declaration
    if law is None or law.label is None or not declared.labelled():
        return
    if (law.label == 0).any():
        raise UsageError(
            f"the {declared.loss} loss uses the sign of a label, but a label is 0: use the labels -1 and 1"
        )
    if len(np.unique(np.sign(law.label))) < 2:
        raise UsageError(
            f"the {declared.loss} loss uses the sign of a label, but all labels have the same sign "
            f"({', '.join(f'{label:g}' for label in law.label)}): use -1 and 1"
        )

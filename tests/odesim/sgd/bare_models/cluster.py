"""Two weight vectors and data in two clusters: x = +-mu + z with a noisy label, logistic regression and least squares.

frame (mu,)   labels = (cluster sign s, label noise e)
    gradient of v_1: (v_1.x - s - e / 2) x      of v_2: -s x / (1 + exp(s v_2.x))
"""

import dataclasses

import numpy as np

from derivations.contract import Initial, Labelled, Model


@dataclasses.dataclass(frozen=True)
class Parameters:
    """The input dimension and the length of mu."""

    d: int = 20
    length: float = 2.0


def coefficients(fields, labels, noise):
    """Least squares on s + noise e for the first vector, logistic loss on s for the second."""
    first = fields[:1] - labels[:1] - noise * labels[1:]
    second = -labels[:1] / (1.0 + np.exp(labels[:1] * fields[1:2]))
    return np.concatenate((first, second))


def update(vv, vg, gg, step_size, noise):
    """Plain gradient descent."""
    return 1.0 + 0.0 * vv, -step_size + 0.0 * vv


def draw(uniform, normal, noise):
    """The cluster's sign, +1 with probability 0.7, and the label noise."""
    return np.concatenate((np.where(uniform < 0.7, 1.0, -1.0), normal))


def mean(labels, noise):
    """The mean of x in the frame: s mu."""
    return labels[:1]


def place(initial: Initial) -> np.ndarray:
    """Never asked for: the tests start from Gram matrices."""
    raise NotImplementedError


def weights(arrays: dict[str, np.ndarray]) -> np.ndarray:
    """The rows of a file."""
    return np.vstack([arrays["V"], arrays["mu"]])


def observe(parameters: Parameters, gram: np.ndarray) -> Labelled:
    """The Gram matrix itself."""
    return {"gram": (("row", "column"), gram, "raw Gram matrix")}


MODEL = Model(
    module="bare_models.cluster",
    helpers=(),
    normalised=False,
    noise=(1, 1),
    sizes=lambda parameters: (2, 1),
    numbers=lambda parameters, gram: (0.5,),
    place=place,
    weights=weights,
    observe=observe,
)

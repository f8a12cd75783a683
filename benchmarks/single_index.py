"""The smallest model of SGD: one student and one teacher direction, link He_3, squared error, on the sphere.

    f(x) = He_3(v.x)      y = He_3(v*.x)      loss = (f(x) - y)^2 / 2      |v| = |v*| = 1

Every step moves v along the tangent gradient and back onto the sphere.  It measures the simulators alone: a model
as cheap as this leaves the random numbers as the main cost.
"""

import dataclasses
from collections.abc import Mapping

import numpy as np

from derivations.contract import Initial, Labelled, Model


@dataclasses.dataclass(frozen=True)
class Parameters:
    """The input dimension."""

    d: int = 1000


def coefficients(fields, labels):
    """The gradient along x: (He_3(v.x) - He_3(v*.x)) He_3'(v.x), with He_3 = z^3 - 3 z."""
    v, t = fields[:1], fields[1:]
    return (v * v * v - 3.0 * v - t * t * t + 3.0 * t) * (3.0 * v * v - 3.0)


def update(vv, vg, gg, step_size):
    """Tangent step and back to the sphere: v' = v - step (g - (v.g) v / |v|^2), then v'/|v'|."""
    after = np.sqrt(vv + step_size * step_size * (gg - vg * vg / vv))
    return (1.0 + step_size * vg / vv) / after, -step_size / after


def sizes(parameters: Parameters) -> tuple[int, int]:
    """One trained vector, one fixed."""
    return 1, 1


def numbers(parameters: Parameters, gram: np.ndarray) -> tuple[object, ...]:
    """No run-time arguments."""
    return ()


def start(overlap: float) -> np.ndarray:
    """The Gram matrix (2, 2) of unit vectors [v, v*] with the given overlap."""
    return np.array([[1.0, overlap], [overlap, 1.0]])


def place(initial: Initial) -> np.ndarray:
    """The Gram matrix at the start."""
    return start(float(initial.state["overlap"]))


def weights(arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """The rows [v, v*] of a file."""
    return np.vstack([arrays["v"], arrays["v_star"]])


def observe(parameters: Parameters, gram: np.ndarray) -> Labelled:
    """The overlap v.v*."""
    return {"overlap": ((), gram[..., 0, 1], "overlap v . v*")}


MODEL = Model(
    module="benchmarks.single_index",
    helpers=(),
    normalised=False,
    noise=(0, 0),
    sizes=sizes,
    numbers=numbers,
    place=place,
    weights=weights,
    observe=observe,
)

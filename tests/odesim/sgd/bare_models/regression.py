"""The benchmark's single-index model, its step left unnormalised: v' = v - step g."""

import dataclasses

from benchmarks import single_index
from benchmarks.single_index import Parameters, coefficients  # noqa: F401  (roles of the model are read from here)

__all__ = ["MODEL", "Parameters"]


def update(vv, vg, gg, step_size):
    """Plain gradient descent."""
    return 1.0 + 0.0 * vv, -step_size + 0.0 * vv


MODEL = dataclasses.replace(single_index.MODEL, module="bare_models.regression")

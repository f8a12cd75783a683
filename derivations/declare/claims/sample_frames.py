"""Coordinates of all vectors of a state, in which the claims of a declared model draw samples."""

import numpy as np

from derivations.contract import Initial
from derivations.declare import mixture, velocity_blocks
from derivations.declare.parameter_class import rows
from derivations.vectors import root


def frame_of(initial: Initial) -> tuple[np.ndarray, np.ndarray, int]:
    """Rows (n, m) with the Gram matrix of the state, standard deviations (C, m) of inputs, the number of eigenspaces.

    The parts of the vectors in the eigenspaces are concatenated. Velocities, if there are any, come last.
    """
    layout = rows(initial.parameters)
    gram = layout.gram({**initial.constants, **initial.state})
    gram = velocity_blocks.extended(layout, gram, initial.state) if layout.velocities else gram
    order = np.arange(gram.shape[-1])
    # Teachers first, as for points of tier sampled.
    order[: layout.total] = np.roll(order[: layout.total], -layout.students)
    parts = [root(matrix[order][:, order])[np.argsort(order)] for matrix in (gram if layout.stack else [gram])]
    law = mixture.mixture(initial.parameters)
    variances = np.ones((1, 1)) if law is None else law.eigenvalue
    return np.hstack(parts), np.repeat(np.sqrt(variances), len(order), axis=1), len(parts)

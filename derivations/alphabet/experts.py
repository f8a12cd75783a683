"""Common functions of experts on finite alphabets: ReLU neurons, their response, selected copies and their softmax.

The functions use only `np` and array operations, so that NumPy and JAX run one source. A model's module imports the
functions that it needs and lists them among its helpers.
"""

import numpy as np


def relu(fields):
    """ReLU and its derivative, 1 at zero, of fields of any shape.

    >>> relu(np.array([-2.0, 0.0, 3.0]))
    (array([0., 0., 3.]), array([0., 1., 1.]))
    """
    return np.maximum(fields, 0.0), (fields >= 0).astype(fields.dtype)


def wide(out, fields):
    """Output weights (k, M), or (k, M, c), with an additional axis for each further axis of fields (k, M, ..)."""
    return out.reshape(out.shape + (1,) * (fields.ndim - 2))


def respond(out, value):
    """The experts' responses sum_r a_r value_r (k, ..), or (k, c, ..) with one output for each of c classes.

    >>> respond(np.array([[1.0, -1.0]]), np.array([[[3.0, 4.0], [1.0, 5.0]]]))
    array([[ 2., -1.]])
    """
    if out.ndim == 2:
        return (wide(out, value) * value).sum(1)
    return (wide(out, value).swapaxes(1, 2) * value[:, None]).sum(2)


def top_l(route, copies, l):  # noqa: E741
    """Number of `copies` (S, B) of every vector among the l with the largest `route` (k, S, B); ties by index.

    Routes (k, S, 1) belong to vectors with the same order in all samples, so that they are sorted once.

    >>> route = np.array([[[0.3], [0.5], [0.5]]])
    >>> top_l(route, np.array([[2.0], [1.0], [4.0]]), 6)[0, :, 0]
    array([1., 1., 4.])
    """
    if route.shape[2] == 1:
        index = np.arange(route.shape[1]).reshape(-1, 1)
        other = route.transpose(0, 2, 1)
        higher = (other > route) | ((other == route) & (index.reshape(1, -1) < index))
        return np.minimum(np.maximum(l - np.where(higher, 1.0, 0.0) @ copies, 0.0), copies)
    order = np.argsort(-route, axis=1, stable=True)
    sorted_copies = np.take_along_axis(copies[None] + 0.0 * route, order, axis=1)
    before = np.cumsum(sorted_copies, axis=1) - sorted_copies
    taken = np.clip(l - before, 0.0, sorted_copies)
    return np.take_along_axis(taken, np.argsort(order, axis=1, stable=True), axis=1)


def softmax_on(taken, route):
    """The gates (k, S, B) of the selected copies `taken`: their softmax of `route`, summed over copies of one vector.

    For routes (k, S, 1), as in `top_l`, the exponentials are computed once for all samples, unless one underflows.

    >>> softmax_on(np.array([[[1.0], [0.0], [3.0]]]), np.zeros((1, 3, 1)))[0, :, 0]
    array([0.25, 0.  , 0.75])
    """
    # Traced arrays have no numbers for a decision.
    if np.__name__ == "numpy" and route.shape[2] == 1 and np.ptp(route, axis=1).max() < 600.0:
        lifted = np.exp(route - route.max(axis=1, keepdims=True))
    else:
        top = np.where(taken > 0, route, -np.inf).max(axis=1, keepdims=True)
        lifted = np.exp(np.minimum(route - top, 0.0))  # only unselected copies can be above
    raised = taken * lifted
    return raised / raised.sum(axis=1, keepdims=True)

"""Stiffness of the flow of a declared model on a plateau: strongly coupled blocks, derived from the state."""

import functools
import itertools
from collections.abc import Callable

import numpy as np

from derivations import clusters
from derivations.contract import Initial
from derivations.declare.declaration import Declaration
from derivations.declare.grammar import number, without_wick
from derivations.declare.kernels import values
from derivations.declare.parameter_class import rows
from derivations.declare.places import known_places
from derivations.declare.rows import Rows

NODES, VARIANCES, GENERIC = 7, (1.0, 0.5), 0.37
"""Numbers of a quadrature that decides whether a mean vanishes, for variable norms and numbers of units."""
ZERO = 1e-9


@functools.lru_cache(maxsize=64)
def dense(declared: Declaration, numbers: tuple[float, ...]) -> bool:
    """Return True if every number of the state acts on every other, even at vanishing overlaps; with rules this is
    assumed.

    If a student's unit has a part linear in a field, E[z_s phi(z)] != 0, then C_ab = dL/dG_ab does not vanish with the
    overlaps, and dG_ab depends on G_cb for all c. If it has a mean, norms and the numbers of units act on each other.
    The nodes have the symmetries of the Gaussian distribution, so that means that vanish by parity or degree also
    vanish here.
    """
    if declared.rules or declared.look is not None:
        return True
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    for group, variance in itertools.product(declared.students, VARIANCES if declared.weights == "free" else (1.0,)):
        size, tree = variance**0.5, without_wick(group.unit, variance**0.5)
        namespace = values(declared, numbers) | dict.fromkeys(group.scalars, GENERIC)
        means, absolute_sum = np.zeros(1 + len(group.slots)), 0.0
        felt = np.array([declared.weights == "free" or bool(group.own), *[True] * len(group.slots)])
        for node_index in itertools.product(range(NODES), repeat=len(group.slots)):
            z, weight = nodes[list(node_index)], float(np.prod(weights[list(node_index)]))
            value = weight * number(
                tree, namespace | {s: size * x for s, x in zip(group.slots, z.tolist(), strict=True)}
            )
            means += np.array([1.0, *z]) * value
            absolute_sum += abs(value)
        if (np.abs(means[felt]) > ZERO * absolute_sum).any():
            return True
    return False


def by_spaces(initial: Initial) -> Callable[[np.ndarray], np.ndarray]:
    """Label the numbers of the state by eigenspaces of the inputs: the overlaps in each are strongly coupled.

    In dG^l/dt = -lam_l (C G^l + ..) the rate of G^l is lam_l, and the others act only through C.
    """
    layout = rows(initial.parameters)
    places = known_places(initial)[1]["entries"] // (layout.students * layout.total)
    space_labels = np.concatenate([places, np.full(sum(count for _, _, count in layout.scalars), layout.spaces)])
    space_labels = _with_clock(layout, space_labels)
    return lambda y: space_labels


def _with_clock(layout: Rows, group_labels: np.ndarray) -> np.ndarray:
    """Return labels (n,) with a separate label for every memory and for the time, if the state has them."""
    extra_count = len(layout.declaration.memories) + layout.declaration.clocked
    return np.append(group_labels, group_labels.max() + 1 + np.arange(extra_count)) if extra_count else group_labels


def labels(initial: Initial) -> Callable[[np.ndarray], np.ndarray]:
    """Return the strongly coupled numbers of the state: overlaps between the same two clusters of vectors.

    The numbers of a unit belong to the cluster of its first vector.
    """
    layout = rows(initial.parameters)
    constant, places = known_places(initial)
    owners = [
        layout.of(g, layout.declaration.groups[g].slots[0]).start + np.arange(count) for g, _, count in layout.scalars
    ]
    first = np.concatenate([places["rows"], *owners])
    second = np.concatenate([places["columns"], *owners])

    def found(y: np.ndarray) -> np.ndarray:
        gram = np.concatenate([y, constant])[places["gram"]]
        norms = np.sqrt(np.diag(gram))
        return _with_clock(layout, clusters.labels(clusters.clusters(gram / (norms[:, None] * norms)), first, second))

    return found

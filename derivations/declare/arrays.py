"""A flat state of a declared model as a Gram matrix and numbers of its units, and their motion as a flat vector."""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

from derivations.declare.declaration import Declaration
from derivations.declare.rows import Rows


class Arguments(NamedTuple):
    """The run-time arguments of the sampled flow, sizes of the groups last.

    `rates` = (rate, decay, eta^2/B, noise), and the number of momentum or the size of a look if there is one; of giant
    steps the third is d/B.

    `entries` are the places of the overlaps of the state in the students' rows of the Gram matrix. `eigenvalue` (C, L,
    1, 1) and `share` (L, 1, 1) are those of the eigenspaces of the inputs, with one Gram matrix for all (C, 1, 1) and
    1; `probability` (C,), `mean_weights` (C, means) and `label` (C,) those of clusters. Isotropic inputs use none of
    them; without labels there is an empty array. `switches` are those of time-dependent values.
    """

    constants: Any
    place: Any
    outs: Any
    biases: Any
    entries: Any
    moves: Any
    moving: Any
    rates: Any
    eigenvalue: Any
    share: Any
    probability: Any
    mean_weights: Any
    label: Any
    numbers: Any
    switches: Any
    sizes: tuple[int, ...]


OWN = len(Arguments._fields) - 1
"""The number of arguments before the sizes."""


class Means(NamedTuple):
    """E[c z_b] + E[e] G_ab (S, n), E[c c^T] (S, S), E[dl/ds] by row of scalars, and the loss.

    On inputs with eigenvalues `drift` is E[dc_a/dz_e] instead, `own` (S,) is E[e], and `first` (S,) is E[c].
    """

    drift: Any
    own: Any
    first: Any
    second: Any
    scalars: list[Any]
    loss: Any


class View(NamedTuple):
    """State in the form of arrays: Gram matrix (n, n), weights (heads, units) in f - f*, and the units' own numbers.

    For inputs with several eigenspaces the Gram matrices are (L, n, n). `covariance` are those (n, n) of the fields in
    every cluster, `centre` their means (n,) (None: 0), and `square` (n,) the squared norms of the vectors.
    """

    G: Any
    w: Any
    bias: Any
    covariance: list[Any]
    centre: list[Any]
    square: Any


@functools.lru_cache(maxsize=16)
def rows_of(declared: Declaration, sizes: tuple[int, ...]) -> Rows:
    """The rows of the Gram matrix for groups of these sizes."""
    return Rows(declared, (*sizes, *(group.units for group in declared.kinds[len(declared.groups) :])))


def advanced(xp: Any, y: Any, rates: Sequence[Any]) -> Any:
    """Return the flat state with its memories after a step, by their rates; all other entries are unchanged."""
    added = xp.concatenate([xp.reshape(rate, (-1,)) for rate in rates])
    end = y.shape[0] - 1
    return xp.concatenate([y[: end - len(rates)], y[end - len(rates) : end] + added, y[end:]])


def seen(xp: Any, y: Any, a: Arguments) -> View:
    """Return a flat state as arrays."""
    entries = xp.concatenate([y, a.constants])
    G = entries[a.place]
    n = G.shape[-1] - a.mean_weights.shape[-1]
    fields, square = G[..., :n, :n], xp.diagonal(whole(G))
    covariance = [whole(fields * value) for value in a.eigenvalue]
    mean_overlaps = whole(G)[:n, n:]
    centre = [mean_overlaps @ weights if len(weights) else None for weights in a.mean_weights]
    return View(G, entries[a.outs], entries[a.biases], covariance, centre, square)


def whole(G: Any) -> Any:
    """The Gram matrix (n, n) of the vectors, from those of their parts if there are several."""
    return G if G.ndim == 2 else G.sum(0)


def own_part(xp: Any, D: Any) -> Any:
    """The diagonal (S,) of the drift (.., S, n), over all eigenspaces."""
    return xp.diagonal(whole(D))


def packed(
    xp: Any, declared: Declaration, D: Any, E: Any, scalars: Sequence[Any], a: Arguments,
    memories: Sequence[Any] = (), clock: float = 1.0,
) -> Any:  # fmt: skip
    """dy/dt of the flat state from the motion of the students and the derivatives of the loss in their numbers.

    `memories` are the rates of velocities and memories, and `clock` is that of the time, if the state contains the
    time.
    """
    S = a.moves.shape[0]
    student_rates = D[..., :S] + xp.swapaxes(D[..., :S], -1, -2) + E
    rates = xp.concatenate([student_rates, D[..., S:]], axis=-1).reshape(-1)
    counts = [a.sizes[g] for g, group in enumerate(declared.students) for _ in group.own]
    parts = [-a.rates[0] * a.moving[r] * scalars[r][:count] for r, count in enumerate(counts)]
    last = [xp.full(1, clock)] if declared.clocked else []
    last = [*(xp.reshape(rate, (-1,)) for rate in memories), *last]
    return xp.concatenate([rates[a.entries], *parts, *last])


def by_spaces(view: View, cluster_means: Sequence[Means], a: Arguments) -> Any:
    """The mean drift (.., S, n) in every eigenspace from the means in every cluster c, over these.

    E[c_a x^l].u_b = lam_cl sum_e E_c[dc_a/dz_e] G^l_eb + E_c[e] G^l_ab + E_c[c_a] sum_k A_ck G^l_kb
    """
    G, S, n = view.G, a.moves.shape[0], view.covariance[0].shape[0]
    drift = 0.0
    for c, means in enumerate(cluster_means):
        cluster_drift = a.eigenvalue[c] * (means.drift @ G[..., :n, :]) + means.own[:, None] * G[..., :S, :]
        if view.centre[c] is not None:
            cluster_drift = cluster_drift + means.first[:, None] * (a.mean_weights[c] @ G[..., n:, :])[..., None, :]
        drift = drift + a.probability[c] * cluster_drift
    return drift


def squares(cluster_means: Sequence[Means], a: Arguments) -> Any:
    """f_l lam_cl E_c[c c^T] over the clusters c, (.., S, S) in every eigenspace."""
    return a.share * sum(a.probability[c] * a.eigenvalue[c] * means.second for c, means in enumerate(cluster_means))


def moved(xp: Any, weights: str, view: View, drift: Any, second: Any, a: Arguments) -> tuple[Any, Any]:
    """(D, E) from the mean drift E[c z_b] + E[e] G_ab of the raw vectors and the contribution of E[c c^T], by
    eigenspace.
    """
    G, S = view.G, a.moves.shape[0]
    if weights == "sphere":
        radial = own_part(xp, drift[..., :S]) / view.square[:S]
        drift = drift - radial[:, None] * G[..., :S, :]
    else:
        drift = drift + a.rates[1] * G[..., :S, :]
    moves = a.moves[:, None]
    return -a.rates[0] * moves * drift, a.rates[2] * second * moves * a.moves


def widened(xp: Any, weights: str, view: View, D: Any, E: Any, a: Arguments) -> Any:
    """Return D minus the part that keeps the norms on the sphere when E increases them."""
    if weights != "sphere":
        return D
    G, S = view.G, a.moves.shape[0]
    return D - (0.5 * own_part(xp, E) / view.square[:S])[:, None] * G[..., :S, :]

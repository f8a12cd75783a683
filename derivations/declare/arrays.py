"""A flat state of a declared model as a Gram matrix and numbers of its units, and their motion as a flat vector."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from derivations.declare.declaration import Declaration


class Arguments(NamedTuple):
    """The run-time arguments of the sampled flow; `rates` = (rate, decay, eta^2/B, noise), sizes of the groups last.

    `entries` are the places of the overlaps of the state in the students' rows of the Gram matrix; `eigenvalue` and
    `share` are those of the eigenspaces of the inputs, (L, 1, 1), or the number 1 of isotropic ones.
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
    numbers: Any
    sizes: tuple[int, ...]


OWN = len(Arguments._fields) - 1
"""The number of arguments before the sizes."""


class View(NamedTuple):
    """One state seen as arrays: Gram matrix (n, n), weights of all units in f - f*, and their own numbers.

    Of inputs with several eigenspaces the Gram matrices are (L, n, n).  `covariance` (n, n) is that of the fields, and
    `square` (n,) are the squared norms of the vectors.
    """

    G: Any
    w: Any
    bias: Any
    covariance: Any
    square: Any


def seen(xp: Any, y: Any, a: Arguments) -> View:
    """A flat state as arrays."""
    known = xp.concatenate([y, a.constants])
    G = known[a.place]
    scaled = G * a.eigenvalue
    covariance = scaled if scaled.ndim == 2 else scaled.sum(0)
    return View(G, known[a.outs], known[a.biases], covariance, xp.diagonal(whole(G)))


def whole(G: Any) -> Any:
    """The Gram matrix (n, n) of the vectors, from those of their parts if there are several."""
    return G if G.ndim == 2 else G.sum(0)


def own_part(xp: Any, D: Any) -> Any:
    """The diagonal (S,) of the drift (.., S, n), over all eigenspaces."""
    return xp.diagonal(whole(D))


def packed(xp: Any, declared: Declaration, D: Any, E: Any, scalars: Sequence[Any], a: Arguments) -> Any:
    """dy/dt of the flat state from the motion of the students and the derivatives of the loss in their numbers."""
    S = a.moves.shape[0]
    among = D[..., :S] + xp.swapaxes(D[..., :S], -1, -2) + E
    rates = xp.concatenate([among, D[..., S:]], axis=-1).reshape(-1)
    counts = [a.sizes[g] for g, group in enumerate(declared.students) for _ in group.own]
    parts = [-a.rates[0] * a.moving[r] * scalars[r][:count] for r, count in enumerate(counts)]
    return xp.concatenate([rates[a.entries], *parts])


def by_spaces(view: View, along: Any, own: Any, a: Arguments) -> Any:
    """lam_l sum_e E[dc_a/dz_e] G^l_eb + E[e] G^l_ab, the mean drift (.., S, n) in every eigenspace."""
    G, S = view.G, a.moves.shape[0]
    return a.eigenvalue * (along @ G) + own[:, None] * G[..., :S, :]


def moved(xp: Any, weights: str, view: View, drift: Any, second: Any, a: Arguments) -> tuple[Any, Any]:
    """(D, E) from the mean drift E[c z_b] + E[e] G_ab and E[c c^T] of the raw vectors, in every eigenspace."""
    G, S = view.G, a.moves.shape[0]
    if weights == "sphere":
        own = own_part(xp, drift[..., :S]) / view.square[:S]
        drift = drift - own[:, None] * G[..., :S, :]
    else:
        drift = drift + a.rates[1] * G[..., :S, :]
    moves = a.moves[:, None]
    return -a.rates[0] * moves * drift, a.share * a.eigenvalue * (a.rates[2] * second * moves * a.moves)


def widened(xp: Any, weights: str, view: View, D: Any, E: Any, a: Arguments) -> Any:
    """D less what keeps the norms on the sphere where E widens them."""
    if weights != "sphere":
        return D
    G, S = view.G, a.moves.shape[0]
    return D - (0.5 * own_part(xp, E) / view.square[:S])[:, None] * G[..., :S, :]

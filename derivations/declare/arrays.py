"""A flat state of a declared model as a Gram matrix and numbers of its units, and their motion as a flat vector."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from derivations.declare.declaration import Declaration


class Arguments(NamedTuple):
    """The run-time arguments of the sampled flow; `rates` = (rate, decay, eta^2/B, noise), sizes of the groups last."""

    constants: Any
    place: Any
    outs: Any
    biases: Any
    rows: Any
    columns: Any
    moves: Any
    moving: Any
    rates: Any
    numbers: Any
    sizes: tuple[int, ...]


OWN = len(Arguments._fields) - 1
"""The number of arguments before the sizes."""


class View(NamedTuple):
    """One state seen as arrays: Gram matrix (n, n), weights of all units in f - f*, and their own numbers."""

    G: Any
    w: Any
    bias: Any


def seen(xp: Any, y: Any, a: Arguments) -> View:
    """A flat state as arrays."""
    known = xp.concatenate([y, a.constants])
    return View(known[a.place], known[a.outs], known[a.biases])


def packed(xp: Any, declared: Declaration, D: Any, E: Any, scalars: Sequence[Any], a: Arguments) -> Any:
    """dy/dt of the flat state from the motion of the students and the derivatives of the loss in their numbers."""
    S = a.moves.shape[0]
    whole = xp.concatenate([D[:, :S] + D[:, :S].T + E, D[:, S:]], axis=1)
    counts = [a.sizes[g] for g, group in enumerate(declared.students) for _ in group.own]
    parts = [-a.rates[0] * a.moving[r] * scalars[r][:count] for r, count in enumerate(counts)]
    return xp.concatenate([whole[a.rows, a.columns], *parts])


def moved(xp: Any, weights: str, view: View, drift: Any, second: Any, a: Arguments) -> tuple[Any, Any]:
    """(D, E) from the mean drift E[c z_b] + E[e] G_ab and E[c c^T] of the raw vectors."""
    G, S = view.G, a.moves.shape[0]
    if weights == "sphere":
        own = xp.diagonal(drift[:, :S]) / xp.diagonal(G)[:S]
        drift = drift - own[:, None] * G[:S]
    else:
        drift = drift + a.rates[1] * G[:S]
    moves = a.moves[:, None]
    return -a.rates[0] * moves * drift, a.rates[2] * second * moves * a.moves


def widened(xp: Any, weights: str, view: View, D: Any, E: Any, a: Arguments) -> Any:
    """D less what keeps the norms on the sphere where E widens them."""
    if weights != "sphere":
        return D
    G, S = view.G, a.moves.shape[0]
    return D - (0.5 * xp.diagonal(E) / xp.diagonal(G)[:S])[:, None] * G[:S]

"""A flat state of a declared model as a Gram matrix and numbers of its units, and their motion as a flat vector."""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from derivations.declare import memory, schedule_text
from derivations.declare.declaration import Declaration
from derivations.declare.grammar import entry
from derivations.declare.rows import Rows
from derivations.declare.schedules import Schedule


class Arguments(NamedTuple):
    """The run-time arguments of the sampled flow, sizes of the groups last.

    `rates` = (rate, decay, eta^2/B, noise), and the number of momentum or the size of a look where there is one; of
    giant steps the third is d/B.

    `entries` are the places of the overlaps of the state in the students' rows of the Gram matrix.  `eigenvalue`
    (C, L, 1, 1) and `share` (L, 1, 1) are those of the eigenspaces of the inputs, with one Gram matrix for all
    (C, 1, 1) and 1; `probability` (C,), `mean_weights` (C, means) and `label` (C,) those of clusters.  Isotropic inputs
    use none of them; without labels there is an empty array.  `switches` are those of values that change in time.
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
    """One state seen as arrays: Gram matrix (n, n), weights (heads, units) in f - f*, and the units' own numbers.

    Of inputs with several eigenspaces the Gram matrices are (L, n, n).  `covariance` are those (n, n) of the fields in
    every cluster, `centre` their means (n,) (None: 0), and `square` (n,) the squared norms of the vectors.
    """

    G: Any
    w: Any
    bias: Any
    covariance: list[Any]
    centre: list[Any]
    square: Any


def at_time(
    xp: Any, declared: Declaration, changing: tuple[Schedule, ...], y: Any, a: Arguments, view: "View"
) -> Arguments:  # fmt: skip
    """The arguments with the values of training at a state, in which the time stands last."""
    if not changing:
        return a
    now = _values(xp, declared, changing, y, a, view)
    step, decay, gain, noise = a.rates[:4]
    if declared.limit == "online":
        gain = gain * now["step"] ** 2 / step**2 if "step" in now else gain
        gain = gain / now["batch"] if "batch" in now else gain  # that of one sample in the arguments
    step = now.get("step", step)
    moves, moving, row, scalar = [], [], 0, 0
    for group, count in zip(declared.students, a.sizes, strict=False):
        for slot in group.slots:
            moves.append(a.moves[row : row + count] * now.get(declared.rate(group, slot), 1.0))
            row += count
        for word in group.own:
            moving.append(a.moving[scalar : scalar + 1] * now.get(declared.rate(group, word), 1.0))
            scalar += 1
    shared = [now.get(name, a.numbers[k]) for k, name in enumerate(declared.names)]
    return a._replace(
        numbers=xp.stack(shared) if any(name in now for name in declared.names) else a.numbers,
        rates=xp.stack([step, now.get("decay", decay), gain, now.get("noise", noise), *a.rates[4:]]),
        moves=xp.concatenate(moves),
        moving=xp.concatenate(moving) if moving else a.moving,
    )


def _values(
    xp: Any, declared: Declaration, changing: tuple[Schedule, ...], y: Any, a: Arguments, view: "View"
) -> dict[str, Any]:  # fmt: skip
    """The values of training at a state, by name."""
    with np.errstate(all="ignore"):  # values of pieces that are not in force are computed as well
        values = schedule_text.functions(changing, declared, xp)["values"]
        found = values(y[-1], a.switches, a.numbers, state_of(declared, changing, y, a, view))
    return {schedule.name: value + 0.0 * y[-1] for schedule, value in zip(changing, found, strict=True)}


@functools.lru_cache(maxsize=16)
def rows_of(declared: Declaration, sizes: tuple[int, ...]) -> Rows:
    """The rows of the Gram matrix for groups of these sizes."""
    return Rows(declared, (*sizes, *(group.units for group in declared.kinds[len(declared.groups) :])))


def state_of(
    declared: Declaration, changing: tuple[Schedule, ...], y: Any, a: Arguments, view: "View"
) -> tuple[Any, ...]:  # fmt: skip
    """What values and the rates of memories read of a state (`schedule_text.seen`)."""
    names = schedule_text.seen(declared, changing)
    if not names:
        return ()
    at = rows_of(declared, a.sizes)
    G, memories = whole(view.G), [memory.name for memory in declared.memories]
    blocks, found = {block.name: block for block in at.blocks}, []
    for name in names:
        if name in memories:
            found.append(y[y.shape[0] - 1 - len(memories) + memories.index(name)])
            continue
        parameter, indices = entry(name) or ("", ())
        if parameter in blocks:
            whole_or_parts = view.G if len(indices) == 3 else G
            values = whole_or_parts[..., blocks[parameter].rows, blocks[parameter].columns]
        else:
            values = _own(declared, a, view, parameter)
        found.append(values[tuple(i - 1 for i in indices)] if indices else values.mean())
    return tuple(found)


def _own(declared: Declaration, a: Arguments, view: "View", parameter: str) -> Any:
    """A readout or a number of the units of students, by its name in a run."""
    unit = row = 0
    for group, count in zip(declared.students, a.sizes, strict=False):
        for one in group.readouts:
            if group.named(one.word) == parameter:
                return view.w[declared.heads.index(one.head), unit : unit + count]
        for b, word in enumerate(group.scalars):
            if group.named(word) == parameter:
                return view.bias[row + b, :count]
        unit, row = unit + count, row + len(group.scalars)
    raise KeyError(parameter)


def of_memories(
    xp: Any, declared: Declaration, changing: tuple[Schedule, ...], y: Any, a: Arguments, view: "View",
    found: Sequence["Means"], pull: Any,
) -> list[Any]:  # fmt: skip
    """The rates of the memories; `a` are the arguments before their values are taken, `pull` is the mean drift."""
    if not declared.memories:
        return []
    if declared.limit == "online":
        second = found[0].second if declared.inputs is None else whole(squares(found, a))
        each = xp.diagonal(second) * a.rates[2] / a.rates[0] ** 2  # E[c c]/B
        if "batch" in (now := _values(xp, declared, changing, y, a, view)):
            each = each / now["batch"]
    else:
        each = ((pull @ xp.linalg.pinv(view.G, hermitian=True)) * pull).sum(1)
        each = each + a.rates[2] * xp.diagonal(found[0].second)  # the noise of giant steps
    starts = rows_of(declared, a.sizes).starts
    sums = []
    for name in memory.of_squares(declared):
        places = [(starts[kind], a.sizes[kind[0]]) for kind in memory.vectors_of(declared, name)]
        sums.append(sum(each[begin : begin + count].sum() for begin, count in places) + 0.0 * y[-1])
    remembered = schedule_text.functions(changing, declared, xp)["remembered"]
    return list(remembered(y[-1], a.numbers, state_of(declared, changing, y, a, view), tuple(sums)))


def advanced(xp: Any, declared: Declaration, y: Any, rates: Sequence[Any]) -> Any:
    """The flat state with its memories after a step, by their rates; nothing else has moved."""
    added = xp.concatenate([xp.reshape(rate, (-1,)) for rate in rates])
    end = y.shape[0] - 1
    return xp.concatenate([y[: end - len(rates)], y[end - len(rates) : end] + added, y[end:]])


def seen(xp: Any, y: Any, a: Arguments) -> View:
    """A flat state as arrays."""
    known = xp.concatenate([y, a.constants])
    G = known[a.place]
    n = G.shape[-1] - a.mean_weights.shape[-1]
    fields, square = G[..., :n, :n], xp.diagonal(whole(G))
    covariance = [whole(fields * value) for value in a.eigenvalue]
    along = whole(G)[:n, n:]
    centre = [along @ weights if len(weights) else None for weights in a.mean_weights]
    return View(G, known[a.outs], known[a.biases], covariance, centre, square)


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

    `memories` are the rates of velocities and of these, and `clock` is that of the time, where the state has it.
    """
    S = a.moves.shape[0]
    among = D[..., :S] + xp.swapaxes(D[..., :S], -1, -2) + E
    rates = xp.concatenate([among, D[..., S:]], axis=-1).reshape(-1)
    counts = [a.sizes[g] for g, group in enumerate(declared.students) for _ in group.own]
    parts = [-a.rates[0] * a.moving[r] * scalars[r][:count] for r, count in enumerate(counts)]
    last = [xp.full(1, clock)] if declared.clocked else []
    last = [*(xp.reshape(rate, (-1,)) for rate in memories), *last]
    return xp.concatenate([rates[a.entries], *parts, *last])


def by_spaces(view: View, found: Sequence[Means], a: Arguments) -> Any:
    """The mean drift (.., S, n) in every eigenspace from the means in every cluster c, over these.

    E[c_a x^l].u_b = lam_cl sum_e E_c[dc_a/dz_e] G^l_eb + E_c[e] G^l_ab + E_c[c_a] sum_k A_ck G^l_kb
    """
    G, S, n = view.G, a.moves.shape[0], view.covariance[0].shape[0]
    drift = 0.0
    for c, means in enumerate(found):
        here = a.eigenvalue[c] * (means.drift @ G[..., :n, :]) + means.own[:, None] * G[..., :S, :]
        if view.centre[c] is not None:
            here = here + means.first[:, None] * (a.mean_weights[c] @ G[..., n:, :])[..., None, :]
        drift = drift + a.probability[c] * here
    return drift


def squares(found: Sequence[Means], a: Arguments) -> Any:
    """f_l lam_cl E_c[c c^T] over the clusters c, (.., S, S) in every eigenspace."""
    return a.share * sum(a.probability[c] * a.eigenvalue[c] * means.second for c, means in enumerate(found))


def moved(xp: Any, weights: str, view: View, drift: Any, second: Any, a: Arguments) -> tuple[Any, Any]:
    """(D, E) from the mean drift E[c z_b] + E[e] G_ab of the raw vectors and what E[c c^T] adds, by eigenspace."""
    G, S = view.G, a.moves.shape[0]
    if weights == "sphere":
        own = own_part(xp, drift[..., :S]) / view.square[:S]
        drift = drift - own[:, None] * G[..., :S, :]
    else:
        drift = drift + a.rates[1] * G[..., :S, :]
    moves = a.moves[:, None]
    return -a.rates[0] * moves * drift, a.rates[2] * second * moves * a.moves


def widened(xp: Any, weights: str, view: View, D: Any, E: Any, a: Arguments) -> Any:
    """D less what keeps the norms on the sphere where E widens them."""
    if weights != "sphere":
        return D
    G, S = view.G, a.moves.shape[0]
    return D - (0.5 * own_part(xp, E) / view.square[:S])[:, None] * G[..., :S, :]

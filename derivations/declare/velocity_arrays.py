"""Velocities in array operations, for tiers with sampled means (`velocity_equations` has the formulas).

A velocity has no field. Its mean gradient follows from D_ab = E[c_a x] . u_b of the rows of vectors: D_av = sum_rs D_ar
(G^+)_rs u_s . v, because E[c_a x] lies in the span of the rows (Stein).
"""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from derivations.declare import velocity_blocks
from derivations.declare.arrays import Arguments, Means, View, rows_of
from derivations.declare.arrays import packed as packed_state
from derivations.declare.declaration import Declaration
from derivations.declare.rows import Rows


@functools.lru_cache(maxsize=16)
def _places(layout: Rows) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Places of v . u (S, n), v . v (S, S) and of the velocities of numbers in a state; its end if there are none."""
    size = layout.layout.least
    index = layout.layout.unpack(np.arange(float(size)))
    row_places, velocity_places = (
        np.full((layout.students, layout.total), size),
        np.full((layout.students, layout.students), size),
    )
    for block in layout.velocities:
        table, values = row_places if block.letter != "VV" else velocity_places, index[block.name].astype(np.int64)
        table[block.rows, block.columns] = values
        if block.letter == "VV":
            table[block.columns, block.rows] = values.T
    push_places = {
        (g, word): index[velocity_blocks.push_name(layout, g, word)] for g, word, _ in velocity_blocks.pushes(layout)
    }
    pushes = [
        np.asarray(push_places.get((g, word), np.full(count, size))).astype(np.int64)
        for g, word, count in layout.scalars
    ]
    return row_places, velocity_places, pushes


def held(xp: Any, layout: Rows, y: Any) -> tuple[Any, Any, list[Any]]:
    """The overlaps v . u (S, n) and v . v (S, S) of velocities in a state, and the velocities of numbers; else 0."""
    row_places, velocity_places, places = _places(layout)
    entries = xp.concatenate([y, xp.zeros(1)])
    return entries[row_places], entries[velocity_places], [entries[place] for place in places]


def packed(
    xp: Any, declared: Declaration, y: Any, a: Arguments, view: View, means: Means, memories: Sequence[Any],
    only_noise: bool,
) -> Any:  # fmt: skip
    """dy/dt of the flat state; `only_noise` selects only the noise of batches, for a motion in closed form.

    `memories` are their rates.
    """
    layout = rows_of(declared, a.sizes)
    S, counts = layout.students, [count for _, _, count in layout.scalars]
    between = a.rates[2] / a.rates[0] ** 2 * means.second / a.rates[4] ** 2  # E[c c^T]/(B tau^2), 0 in a flow
    drift, pushes = xp.zeros((S, layout.total)), [xp.zeros(count) for count in counts]
    on_rows, slopes = drift, pushes
    if not only_noise:
        drift, on_rows, velocity_rates, pushes, slopes = _motion(xp, layout, y, a, view, means)
        between = between + velocity_rates
    velocities = flat(layout, on_rows, between, slopes)
    clock = 0.0 if only_noise else 1.0
    return packed_state(xp, declared, drift, xp.zeros((S, S)), pushes, a, [*velocities, *memories], clock=clock)


def _motion(xp: Any, layout: Rows, y: Any, a: Arguments, view: View, means: Means) -> tuple[Any, ...]:
    """The motion without noise: of vectors, of v . u and v . v, of velocities of numbers, and of the numbers."""
    V, VV, pushes = held(xp, layout, y)
    S, step, decay, tau = layout.students, a.rates[0], a.rates[1], a.rates[4]
    on_rows = (means.drift + decay * view.G[:S] - V) / tau
    on_rows = xp.concatenate([on_rows[:, :S] - VV * (step * a.moves), on_rows[:, S:]], axis=1)
    gradient_overlaps = means.drift @ xp.linalg.pinv(view.G, hermitian=True) @ V.T + decay * V[:, :S].T
    between = (gradient_overlaps + gradient_overlaps.T - 2 * VV) / tau
    slopes = [(slope[: len(push)] - push) / tau for slope, push in zip(means.scalars, pushes, strict=True)]
    return -step * a.moves[:, None] * V, on_rows, between, pushes, slopes


def flat(layout: Rows, on_rows: Any, between: Any, slopes: Sequence[Any]) -> list[Any]:
    """The entries of velocities in the state, in the order of the layout."""
    parts = []
    for block in layout.velocities:
        table = between if block.letter == "VV" else on_rows
        values = table[block.rows, block.columns]
        entries = block.part.take(np.arange(values.shape[0] * values.shape[1]).reshape(values.shape))
        parts.append(values.reshape(-1)[entries])
    trained = {(g, word) for g, word, _ in velocity_blocks.pushes(layout)}
    return [
        *parts,
        *(slope for (g, word, _), slope in zip(layout.scalars, slopes, strict=True) if (g, word) in trained),
    ]

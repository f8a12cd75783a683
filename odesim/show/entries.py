"""One variable against time: the most important entries in colours, the others thin and grey."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from derivations.drawing import COLOURED, GREY, colour, spread
from odesim.study.panels import matched_entries

OTHERS = 60
"""Number of grey lines; of more entries, evenly spaced ones are drawn."""
THIN: Any = {"linewidth": 0.4, "alpha": 0.5, "zorder": 0}


def draw_entries(axis: Any, time: np.ndarray, values: np.ndarray, dims: Sequence[str], limit: int = 8) -> None:
    """Draw the entries of values (replica, time, ...) whose dimensions after the time are `dims`.

    At most eight are in colours and have labels: the assignment of rows to columns with the largest sum of sizes at the
    end, or the entries of a list with the largest changes. The last index determines the colour. The first replica is
    thick, others are thin, up to `limit` in total.
    """
    first = values[0]
    chosen = chosen_entries(first, dims)
    flat = first.reshape(len(time), -1)
    uncoloured = np.setdiff1d(np.arange(flat.shape[1]), [_flat(place, first) for place, *_ in chosen])
    for k in uncoloured[spread(uncoloured, OTHERS)] if uncoloured.size else ():
        axis.plot(time, flat[:, k], color=GREY, **THIN)
    for place, shade, words in chosen:
        for replica in values[1:limit]:
            axis.plot(time, replica[(slice(None), *place)], color=shade, **THIN)
        axis.plot(time, first[(slice(None), *place)], color=shade, label=words)
    if uncoloured.size:
        few = f" ({OTHERS} of {uncoloured.size})" if uncoloured.size > OTHERS else ""
        axis.plot([], [], color=GREY, **THIN, label=f"other entries{few}")
    if len(values) > 1:
        axis.plot([], [], color="0.35", label=f"thick: replica 1 of {len(values)}")
        axis.plot([], [], color="0.35", **THIN, label=f"thin: replicas 2 to {min(limit, len(values))}")


def _flat(place: tuple[int, ...], values: np.ndarray) -> int:
    """Return the number of an entry of values (time, ...) among all."""
    return int(np.ravel_multi_index(place, values.shape[1:])) if place else 0


def chosen_entries(values: np.ndarray, dims: Sequence[str]) -> list[tuple[tuple[int, ...], str, str | None]]:
    """Return the coloured entries of values (time, ...): place, colour and label."""
    if values.ndim == 1:
        return [((), colour(0), None)]
    places, _ = matched_entries(np.nan_to_num(values))
    by_column = values.shape[-1] <= COLOURED
    word = dims[-1].rstrip("_").replace("_", " ")
    return [(place, colour(place[-1] if by_column else k), f"{word} {place[-1] + 1}") for k, place in enumerate(places)]

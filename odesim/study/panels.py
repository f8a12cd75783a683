"""Curves of the picture of a comparison: the most important order parameters, the loss, and hitting times of both
runs.
"""

import dataclasses
from collections.abc import Mapping

import numpy as np

from derivations.contract import BY_PARTS, PARTS
from odesim.request.trajectory import Trajectory, Variable
from odesim.study.replicas import on_times, with_replicas

MOST = 8
"""Largest number of curves that colours can distinguish."""
MOVING, EQUAL = 0.3, 0.8
"""Entries count as moving if their change is at least the first part of the largest change, and as equally moving from
the second part on.
"""
HALF = 0.5
"""Part of the way of the first run that defines its half-way times."""
OTHERS = (0.05, 0.95)
"""Quantiles of the band of the entries that are not shown."""


@dataclasses.dataclass(frozen=True)
class Shown:
    """The entries of one component that a picture shows: the first index of an entry is its row, the last its colour.

    `indices` are at most `MOST` entries, and `colours` the number of each colour, from 0.
    """

    name: str
    indices: tuple[tuple[int, ...], ...]
    colours: tuple[int, ...]


def choose(reference: Mapping[str, np.ndarray], dims: Mapping[str, tuple[str, ...]]) -> Shown:
    """Return the component and the entries to show; `reference` are the first run's values (replica, time, ...).

    `dims` are the names of the dimensions of every component.

    Components whose entries pair two different things (experts with teachers, filters with features) come first, then
    those with larger changes, then those that were declared later. Their entries are matched pairs: the assignment of
    rows to columns with the largest sum of sizes at the end.

    Example:
        >>> values = np.zeros((1, 2, 2, 2))
        >>> values[0, 1] = [[0.1, 0.9], [0.8, 0.2]]
        >>> choose({"m": values}, {"m": ("time", "unit", "teacher")}).indices
        ((1, 0), (0, 1))
    """
    moves = {name: float(np.ptp(values[0], axis=0).max(initial=0.0)) for name, values in reference.items()}
    largest = max(moves.values())

    def order(item: tuple[int, str]) -> tuple[bool, bool, int]:
        place, name = item
        kinds = {dim.rstrip("_") for dim in dims[name] if dim not in ("time", "seed")}
        return len(kinds) > 1 and moves[name] >= MOVING * largest, moves[name] >= EQUAL * largest, place

    name = max(enumerate(reference), key=order)[1]
    values = np.median(reference[name], axis=0)  # (time, ...)
    return Shown(name, *matched_entries(values))


def matched_entries(values: np.ndarray) -> tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]:
    """Indices and colours of the entries of values (time, ...) to show, in the order of their colours."""
    shape = values.shape[1:]
    if len(shape) == 1:
        ranges = np.ptp(values, axis=0)
        chosen = np.sort(np.argsort(-ranges, kind="stable")[:MOST])
        return tuple((int(k),) for k in chosen), tuple(range(len(chosen)))
    from scipy.optimize import linear_sum_assignment

    final = np.abs(values[-1]).reshape(-1, shape[-1])
    rows, columns = linear_sum_assignment(-final)
    order = np.argsort(columns)[:MOST]
    indices = [(*(int(k) for k in np.unravel_index(rows[p], shape[:-1])), int(columns[p])) for p in order]
    return tuple(indices), tuple(int(columns[p]) for p in order)


def variables(
    first: Trajectory, second: Trajectory, reference: Mapping[str, np.ndarray], times: np.ndarray
) -> dict[str, Variable]:
    """Return the variables that the picture of a comparison is drawn from, beside the distances.

    `shown_first` (shown, time) and `shown_second` (seed, shown, time) are the entries of `choose`; `others_low` and
    `others_high` (time,) the band of all other entries of the second run; `half_first` (shown,) and `half_second`
    (seed, shown) the times at which the entries have gone half of the way of the first run, `nan` if they do not.
    Overlaps of parts of vectors are summed to those of the whole vectors.
    """
    first_whole, second_whole = ({name: whole(run.state[name]) for name in reference} for run in (first, second))
    whole_reference = _whole_reference(first, reference)
    chosen = chosen_of(first, reference)
    values, replicas = whole_reference[chosen.name], with_replicas(second_whole[chosen.name])
    median_curves = np.array([np.median(values[(slice(None), slice(None), *i)], axis=0) for i in chosen.indices])
    replica_curves = np.stack([replicas[(slice(None), slice(None), *i)] for i in chosen.indices], axis=1)
    meaning = first_whole[chosen.name].meaning or second_whole[chosen.name].meaning or chosen.name
    colour = first_whole[chosen.name].dims[-1].rstrip("_").replace("_", " ")
    panel_variables = {
        "shown_first": Variable(("shown", "time"), median_curves, meaning),
        "shown_second": Variable(("seed", "shown", "time"), replica_curves, meaning),
        "shown_colour": Variable(("shown",), np.array(chosen.colours), f"number of the {colour}"),
    }
    flat = replicas.reshape(*replicas.shape[:2], -1)
    unselected = np.ones(flat.shape[-1], bool)
    unselected[[int(np.ravel_multi_index(i, replicas.shape[2:])) for i in chosen.indices]] = False
    if unselected.any():
        other_values = np.moveaxis(flat[..., unselected], 1, 0).reshape(len(times), -1)
        low, high = np.quantile(other_values, OTHERS, axis=1)
        panel_variables["others_low"] = Variable(("time",), low, "5 % quantile of all other entries, second run")
        panel_variables["others_high"] = Variable(("time",), high, "95 % quantile of all other entries, second run")
    levels = median_curves[:, 0] + HALF * (median_curves[:, -1] - median_curves[:, 0])
    moving = np.abs(median_curves[:, -1] - median_curves[:, 0]) >= MOVING * max(float(np.ptp(median_curves)), 1e-300)
    half = np.array([passing(times, c, level) for c, level in zip(median_curves, levels, strict=True)])
    halves = np.array(
        [[passing(times, c, level) for c, level in zip(run, levels, strict=True)] for run in replica_curves]
    )
    half_meaning = "half-way time of the first run"
    panel_variables["half_first"] = Variable(("shown",), np.where(moving, half, np.nan), half_meaning)
    panel_variables["half_second"] = Variable(("seed", "shown"), np.where(moving, halves, np.nan), half_meaning)
    return panel_variables | _scalars(first, second, times)


def chosen_of(first: Trajectory, reference: Mapping[str, np.ndarray]) -> Shown:
    """Return the component and the entries that the picture of a comparison shows (`variables`)."""
    return choose(_whole_reference(first, reference), {name: whole(first.state[name]).dims for name in reference})


def _whole_reference(first: Trajectory, reference: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Values of the first run with the parts of vectors summed."""
    return {name: _summed(values, ("seed", *first.state[name].dims)) for name, values in reference.items()}


def whole(values: Variable) -> Variable:
    """Return a variable with the parts of vectors summed, or the variable itself if it has no parts.

    Example:
        >>> parts = Variable(("time", "block", "unit"), np.ones((3, 4, 2)), "overlap, by blocks of the inputs")
        >>> found = whole(parts)
        >>> found.dims, found.values.shape, found.meaning
        (('time', 'unit'), (3, 2), 'overlap')
    """
    if PARTS not in values.dims:
        return values
    dims = tuple(dim for dim in values.dims if dim != PARTS)
    return Variable(dims, _summed(values.values, values.dims), values.meaning.replace(BY_PARTS, ""))


def _summed(values: np.ndarray, dims: tuple[str, ...]) -> np.ndarray:
    """Values (.., *dims), of which leading dimensions may be without a name, summed over the parts of vectors."""
    return values.sum(axis=dims.index(PARTS) - len(dims)) if PARTS in dims else values


def passing(times: np.ndarray, curve: np.ndarray, level: float) -> float:
    """Return the first time at which a curve passes a level beyond its start, by linear interpolation; `nan` if never.

    Example:
        >>> passing(np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 4.0]), 2.5)
        1.5
        >>> bool(np.isnan(passing(np.array([0.0, 1.0]), np.array([0.0, 1.0]), 2.5)))
        True
    """
    side = np.sign(level - curve[0])
    past = side * (curve - level) >= 0
    k = int(past.argmax())
    if side == 0 or k == 0:
        return float("nan")
    share = (level - curve[k - 1]) / (curve[k] - curve[k - 1])
    return float(times[k - 1] + share * (times[k] - times[k - 1]))


def _scalars(first: Trajectory, second: Trajectory, times: np.ndarray) -> dict[str, Variable]:
    """Return the loss of both runs on common times, if both have one."""
    if "loss" not in first.state or "loss" not in second.state:
        return {}
    values, _ = on_times(first, "loss", times)
    meaning = first.state["loss"].meaning or "loss"
    return {
        "loss_first": Variable(("time",), np.median(values, axis=0), meaning),
        "loss_second": Variable(("seed", "time"), with_replicas(second.state["loss"]), meaning),
    }

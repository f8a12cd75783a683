"""The samples of one step: [training] batch, a number, or of giant steps an expression in d, or "inf".

    limit = "batch":  batch = "3*d", rounded to whole samples;  batch = "inf": the mean over all samples, without noise

Giant steps have a size of order 1, so their batch must be of the order of d. The noise of the mean gradient has the
squared length E[c^2] d/B, which is constant as d grows if B/d is.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from derivations.contract import UsageError
from derivations.declare import fields, schedule_reading, schedules
from derivations.declare.grammar import Tree, number

if TYPE_CHECKING:
    from derivations.declare.declaration import Declaration

LARGEST = 10**15
"""Largest number of samples of a step, the upper bound of the parameter `batch`."""
INFINITE = "inf"
FEWEST = 2
"""Smallest number of samples of a giant step."""
NEEDED = "limit 'batch' needs of the order of d samples: batch = '3*d'"


@dataclasses.dataclass(frozen=True)
class Batch:
    """Batch that is not a number: an expression in d and shared numbers, or infinitely many samples without a
    `tree`.
    """

    text: str
    tree: Tree | None = None


def batch(training: Mapping[str, Any], limit: str, names: tuple[str, ...]) -> tuple[int, Batch | None]:
    """Return the batch of [training] as a number, and as an expression if it is one; `names` are shared numbers.

    For pairs it is the first.

    Raises `fields.Mistake` for an invalid batch, an expression outside of giant steps, and a giant step of fewer than
    `FEWEST` samples.
    """
    entry = training.get("batch")
    if isinstance(entry, list):
        return _first(entry, limit), None
    if limit == "batch" and entry is None:
        raise fields.Mistake(NEEDED, "training", "limit")
    if not isinstance(entry, str):
        count = fields.whole(training, "batch", "training", 1, LARGEST)
        if limit == "batch" and count < FEWEST:
            raise fields.Mistake(NEEDED, "training", "batch")
        return count, None
    if limit != "batch":
        message = (
            f"batch = {fields.shown(entry)} is only for giant steps (limit = 'batch'): here batch must be a whole "
            "number"
        )
        raise fields.Mistake(message, "training", "batch")
    if entry.strip() == INFINITE:
        return 1, Batch(INFINITE)
    tree = fields.formula(entry, "training", "batch", ("d", *names))
    if "d" not in tree.names():
        raise fields.Mistake(NEEDED, "training", "batch")
    return 1, Batch(entry.strip(), tree)


def _first(pairs: list[Any], limit: str) -> int:
    """The first batch of pairs [time, batch], all of which are whole numbers from 1 on."""
    if limit == "batch":
        message = "limit 'batch' and a time-dependent batch cannot be combined yet: use separate stages"
        raise fields.Mistake(message, "training", "batch")
    for pair in pairs:
        number_of = pair[1] if isinstance(pair, list) and len(pair) == 2 else None
        if isinstance(number_of, bool) or not isinstance(number_of, int) or not 1 <= number_of <= LARGEST:
            message = (
                "batch is a whole number, or a list of pairs of a time and a whole number, such as [[0, 1], [50, 8]]"
            )
            raise fields.Mistake(f"{message}, but {fields.shown(pairs)} was given", "training", "batch")
    return pairs[0][1] if pairs else 1


def schedule(training: Mapping[str, Any], names: schedules.Names) -> schedules.Schedule | None:
    """Return the schedule of a batch that changes at given times; None for any other batch."""
    if not isinstance(training.get("batch"), list):
        return None
    batch_schedule = schedule_reading.value(training, "batch", "training", names, above=True)
    assert isinstance(batch_schedule, schedules.Schedule)
    return batch_schedule


def changing(parameters: Any) -> tuple[tuple[float, int], ...]:
    """Return the times at which batches begin, and the batches; empty for a constant batch."""
    batch_schedules = [candidate for candidate in schedules.active(parameters) if candidate.name == "batch"]
    if not batch_schedules:
        return ()
    turns = {turn.name: turn.time for turn in schedules.turns(parameters)}
    times = [0.0, *(turns[name] for name in batch_schedules[0].starts)]
    return tuple((time, round(number(piece, {}))) for time, piece in zip(times, batch_schedules[0].pieces, strict=True))


def add_number(declared: "Declaration", add_parameter: Callable[..., None]) -> None:
    """Add the batch to the parameters: a number, or None while a declared expression is used."""
    unit = "samples" if declared.episode is None else "episodes"
    declared_batch, meaning = declared.batch_size, f"{unit} of one SGD step"
    smallest = FEWEST if declared.limit == "batch" else 1
    pairs = next((candidate for candidate in declared.schedules if candidate.name == "batch"), None)
    if pairs is not None:
        meaning = f"{meaning} (none: {pairs.text}, as declared)"
        add_parameter("batch", int | None, None, meaning, minimum=smallest, maximum=LARGEST)
    elif declared_batch is None:
        add_parameter("batch", int, declared.batch, meaning, minimum=smallest, maximum=LARGEST)
    elif declared_batch.tree is not None:
        meaning = f"{meaning} (none: {declared_batch.text}, as declared)"
        add_parameter("batch", int | None, None, meaning, minimum=smallest, maximum=LARGEST)


def samples(parameters: Any) -> float:
    """Return the samples of a step, an integer or infinity. Raises `UsageError` for an expression with another
    value.
    """
    declared_batch: Batch | None = parameters.declaration.batch_size
    if declared_batch is not None and declared_batch.tree is None:
        return float("inf")
    if parameters.batch is not None:
        return float(parameters.batch)
    if declared_batch is None:
        return float(schedules.begun(parameters).batch)
    assert declared_batch is not None and declared_batch.tree is not None
    value = number(declared_batch.tree, {**schedules.shared(parameters), "d": float(parameters.d)})
    if not abs(value) <= LARGEST:
        raise UsageError(
            f"batch is {declared_batch.text!r}, which at d = {parameters.d} is not a number of samples of at most 10^15"
        )
    count = float(max(1, round(value)))
    if count < FEWEST:
        raise UsageError(f"batch is {declared_batch.text!r}, which at d = {parameters.d} is {value:.4g}: {NEEDED}")
    return count


def over_dimension(parameters: Any) -> float:
    """Return B/d, the samples of a giant step over the dimension."""
    return samples(parameters) / parameters.d


def usual(parameters: Any) -> int | None:
    """Return the default batch of SGD; None for infinitely many samples."""
    count = samples(parameters)
    return None if count == float("inf") else int(count)

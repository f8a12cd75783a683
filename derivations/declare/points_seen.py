"""Where means over points are asked for, and what is known of a model at some points."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class Place(NamedTuple):
    """Where means are asked for: covariance of the fields, squared norms of the vectors, weights of units in f - f*.

    `bias` are the units' own numbers, `numbers` the user's, `noise` is that of the labels, `sizes` are those of groups.
    `centre` are the means of the fields (None: 0), `label` is what stands in the place of a teacher (None: nothing).
    `looks` (S,) are the virtual steps of a look, where there is one; `odds` is the probability of a success where
    samples come in episodes.
    """

    G: Any
    centre: Any
    label: Any
    square: Any
    w: Any
    bias: Any
    numbers: Any
    noise: Any
    sizes: Any
    looks: Any = None
    odds: Any = None


class Seen(NamedTuple):
    """Student f, teacher y (answers, N), the students' fields z at some points, and what every group of students gave.

    The answers are those that are watched; of f with derivatives those of the heads alone.  `chain` are derivatives of
    f in the outputs of groups, by (number of the group, head), where they are not 1.
    `kept` are (number of the group, rows by slot, scales of the fields, a, outputs of the unit, those of its logit).
    """

    f: Any
    chain: Mapping[tuple[int, str], Any]
    y: Any
    z: Any
    kept: list[Any]


def placed(z: Any, centre: Any, rows: slice) -> Any:
    """Fields (rows, N) with their means added, where they have any."""
    return z if centre is None else z + centre[rows][:, None]


def shares(xp: Any, word: str, logits: Any) -> Any:
    """softmax or top-1 over the units, the first axis."""
    if word == "softmax":
        raised = xp.exp(logits - logits.max(0))
        return raised / raised.sum(0)
    return 1.0 * (xp.arange(logits.shape[0])[:, None] == xp.argmax(logits, axis=0))

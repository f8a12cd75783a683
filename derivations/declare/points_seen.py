"""Setting of means over points, and the values of a model at some points."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class Place(NamedTuple):
    """Setting of means: covariance of the fields, squared norms of the vectors, weights of units in f - f*.

    `bias` are the numbers of units, `numbers` the user's, `noise` is that of the labels, `sizes` are those of groups.
    `centre` are the means of the fields (None: 0), `label` replaces a teacher (None: there is a teacher). `looks` (S,)
    are the virtual steps of a look, if there is one; `odds` is the probability of a success, if samples come in
    episodes.
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
    """Student f, teacher y (answers, N), the students' fields z at some points, and the outputs of every group of
    students.

    The answers are the observed ones; with derivatives, only those of the heads. `chain` are derivatives of f with
    respect to outputs of groups, by (number of the group, head), if they are not 1. `kept` are (number of the group,
    rows by slot, scales of the fields, a, outputs of the unit, those of its logit).
    """

    f: Any
    chain: Mapping[tuple[int, str], Any]
    y: Any
    z: Any
    kept: list[Any]


def placed(z: Any, centre: Any, rows: slice) -> Any:
    """Return fields (rows, N) with their means added, if they have any."""
    return z if centre is None else z + centre[rows][:, None]


def shares(xp: Any, word: str, logits: Any) -> Any:
    """softmax or top-1 over the units, the first axis."""
    if word == "softmax":
        powers = xp.exp(logits - logits.max(0))
        return powers / powers.sum(0)
    return 1.0 * (xp.arange(logits.shape[0])[:, None] == xp.argmax(logits, axis=0))

"""Predictions: an answer as an expression in the outputs of groups of units, instead of their sum.

    f = F(f_fast, f_slow, ..),   f_g = sum_i a_i phi(u_i . x, ..) over the units of group g,   likewise for the label

The motion of a unit of group g then has the factor dl/df dF/df_g instead of dl/df.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from derivations.declare import fields
from derivations.declare.declaration import Declaration, Group, Number
from derivations.declare.readouts import Prediction

KEY = "prediction"
SUMS = {"student": "f", "teacher": "y"}
"""Name of the sum of all groups of a side."""
MEANINGLESS = ("softmax", "top1", "wick")


def predictions(
    table: Mapping[str, Any], side: str, groups: Sequence[Group], heads: Sequence[str], numbers: Sequence[Number]
) -> tuple[Prediction, ...]:  # fmt: skip
    """Return the predictions in the table of a side; `heads` are those of the network, empty for a single answer.

    Raises `fields.Mistake` for a name that is not a group of this answer, and for a prediction without groups.
    """
    entry = table.get(KEY)
    if entry is None:
        return ()
    if heads and not isinstance(entry, Mapping):
        message = f"a network with heads has a prediction for each: prediction = {{{heads[0]} = '..'}}"
        raise fields.Mistake(message, side, KEY)
    if not heads and isinstance(entry, Mapping):
        raise fields.Mistake("the network has one output, so prediction must be an expression, not a table", side, KEY)
    by_head = dict(entry) if isinstance(entry, Mapping) else {"": entry}
    for head in by_head:
        if heads and head not in heads:
            raise fields.Mistake(f"no head is called {head!r}; {fields.near(head, heads)}", side, KEY)
    return tuple(_prediction(text, side, head, groups, numbers) for head, text in by_head.items())


def _prediction(
    text: Any, side: str, head: str, groups: Sequence[Group], numbers: Sequence[Number]
) -> Prediction:  # fmt: skip
    outputs = [SUMS[side], *(group.name for group in groups if group.name and _feeds(group, head))]
    shared = [number.name for number in numbers if not number.per_unit]
    twice = next((name for name in outputs if name in shared), None)
    if twice is not None:
        message = (
            f"{twice} is both an output and your own parameter in prediction = {fields.shown(text)}: rename the number"
        )
        raise fields.Mistake(message, side, KEY)
    if not isinstance(text, str):
        message = (
            f"prediction is an expression such as '{' * '.join(outputs[1:3]) or SUMS[side]}', not {fields.shown(text)}"
        )
        raise fields.Mistake(message, side, KEY)
    tree = fields.expression(text, side, KEY, (*outputs, *shared))
    if not set(tree.names()) & set(outputs):
        raise fields.Mistake(f"the prediction {text!r} depends on no group: {', '.join(outputs)}", side, KEY)
    wrong = next((call.word for call in tree.walk() if call.word in MEANINGLESS), None)
    if wrong is not None:
        raise fields.Mistake(f"{wrong} has no meaning in a prediction, {text!r}", side, KEY)
    return Prediction(head, text.strip(), tree)


def _feeds(group: Group, head: str) -> bool:
    """Return True if a group contributes to the answer of a head, or to its label."""
    if not head:
        return True
    return any(readout.head == head for readout in group.heads) if group.heads else group.name == head


def require(declared: Declaration) -> None:
    """Raise an error for predictions together with rules, labels of clusters, or a choice of the groups that make
    labels.
    """
    if declared.predicted and declared.rules:
        raise fields.Mistake("prediction and rule cannot be combined yet: leave out one of the two", "training", "rule")
    if not declared.label_predictions:
        return
    if declared.by_cluster:
        message = "the labels of the clusters replace a teacher: leave out its prediction"
        raise fields.Mistake(message, "teacher", KEY)
    if declared.labelling or declared.labels:
        message = "a prediction of the label and teacher = [..], which chooses its groups, cannot be combined yet"
        raise fields.Mistake(message, "teacher", KEY)


def names(declared: Declaration, student: bool, answer: str) -> list[tuple[int, str]]:
    """Return the groups of a side that contribute to an answer: their numbers, and the names of their outputs."""
    count = len(declared.students)
    side = range(count) if student else range(count, len(declared.groups))
    return [(k, declared.groups[k].name) for k in side if declared.readout(k, answer) is not None]


def function(student: bool, head: str) -> str:
    """The name of the written function of a prediction.

    >>> function(True, ""), function(False, "one")
    ('prediction_f', 'prediction_y_one')
    """
    name = f"prediction_{SUMS['student' if student else 'teacher']}"
    return f"{name}_{head}" if head else name

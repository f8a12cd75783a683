"""Groups of teachers that make the label, and the errors of the labels of all stages (the forgetting curve).

    y = sum over the groups in use of f*_g(x) + noise,   error_STAGE = E[(f - f*_STAGE)^2] at all times

All groups are rows of one Gram matrix. Groups that are not used are left out of sums. Weights of 0 are not enough,
because 0 times NaN is NaN.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract import Component
from derivations.declare import fields
from derivations.declare.declaration import LABEL, Declaration, Group
from derivations.declare.readouts import word_of

ERROR = Component("error", (), (0.0, np.inf), "E[(f - f*)^2]", "mean squared error without factor and label noise")


def labelling(training: Mapping[str, Any], teachers: tuple[Group, ...]) -> tuple[str, ...]:
    """The groups of teachers that [training] teacher names, in the order of the declaration; empty for all.

    Raises `fields.Mistake` for an unknown name, and if the groups have no names.

    >>> from derivations.declare.grammar import read
    >>> both = tuple(Group(name, read("w"), "w", ("w",), (), 1) for name in ("one", "two"))
    >>> labelling({"teacher": ["two"]}, both), labelling({"teacher": ["two", "one"]}, both)
    (('two',), ())
    """
    if "teacher" not in training:
        return ()
    entry, names = training["teacher"], [group.name for group in teachers if group.name]
    if not isinstance(entry, list) or not entry or not all(isinstance(name, str) for name in entry):
        text = (
            f"teacher is a list of the groups that make the label, such as ['one'], but {fields.shown(entry)} was given"
        )
        raise fields.Mistake(text, "training", "teacher")
    if not names:
        text = "teacher names groups of the teacher that make the label, but [teacher] has no groups with names"
        raise fields.Mistake(text, "training", "teacher")
    for name in entry:
        if name not in names:
            text = f"no teacher is called {fields.shown(name)}; {fields.near(name, names)}"
            raise fields.Mistake(text, "training", "teacher")
    if len(set(entry)) < len(entry):
        raise fields.Mistake("teacher names a group twice", "training", "teacher")
    return () if len(entry) == len(names) else tuple(name for name in names if name in entry)


def errors(declared: Declaration) -> list[tuple[Component, tuple[str, ...] | None]]:
    """Return the observed mean squared errors, and their answers: of those in use (None), then of `watched` ones."""
    observed: list[tuple[Component, tuple[str, ...] | None]] = [(ERROR, None)]
    for head in declared.heads if declared.several else ():
        name, symbol = word_of(head, ERROR.name), f"E[(f_{head} - f*_{head})^2]"
        observed.append((Component(name, (), (0.0, np.inf), symbol, f"mean squared error of head {head}"), (head,)))
    observed += [(component(stage), (f"{LABEL}{stage}",)) for stage, _ in declared.labels]
    return observed


def said(declared: Declaration) -> list[str]:
    """Return sentences for the page of a model: the teachers that make the label, and the errors of the stages."""
    lines = [f"label: the sum of the teachers {', '.join(declared.labelling)}"] if declared.labelling else []
    for stage, names in declared.labels:
        lines.append(f"{component(stage).name}: the error of the label by {', '.join(names) or 'all teachers'}")
    return lines


def component(stage: str) -> Component:
    """Return the order parameter error_STAGE.

    >>> component("first").name
    'error_first'
    """
    meaning = f"mean squared error of the label of stage {stage}, without factor and label noise"
    return Component(word_of(stage, ERROR.name), (), (0.0, np.inf), "E[(f - f*)^2]", meaning)

"""List of verdicts that is displayed as a table."""

import collections
import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from derivations.claim import ANSWERS, HOLDS
from odesim.evidence.grade import name_of
from odesim.request.shown import load_view, table_html, table_text

V = TypeVar("V")
SHORT = 90
"""Largest number of characters of a statement in the table."""
HEADER = ("claim", "statement", "answer", "expected", "time")


class Verdicts(list[V]):
    """List of the verdicts of `odesim.verify`, displayed as a table. Verdicts that `load` reads are dictionaries.

    A verdict has `claim`, `variant`, `answer`, `predicted`, `estimate`, `interval`, `reason` and more
    (`odesim.evidence.verification.Verdict`).

    Attributes:
        asked: The request, if it is known; otherwise None.

    Example:
        >>> import odesim
        >>> odesim.Verdicts([{"claim": "lem-1", "variant": "main", "answer": "confirmed", "expected": "confirmed",
        ...                   "statement": "x", "seconds": 0.5}])
        1 verdict: 1 confirmed, 0 consistent, 0 refuted, 0 inconclusive; 0 not as expected
        claim  statement  answer     expected  time
        lem-1  x          confirmed  yes       0.5 s
    """

    def __init__(self, verdicts: Iterable[V] = (), asked: Any = None) -> None:
        super().__init__(verdicts)
        self.asked = asked

    def rows(self) -> list[tuple[str, ...]]:
        """Return the lines of the table.

        Returns:
            For every verdict its claim, short statement, answer, whether it is expected, and the time in seconds.
        """
        return [row(told(verdict)) for verdict in self]

    def __repr__(self) -> str:
        return "\n".join([counted(self), *table_text(HEADER, self.rows())])

    def _repr_html_(self) -> str:
        return f"<p>{counted(self)}</p>" + table_html(HEADER, self.rows())

    def to_pandas(self) -> Any:
        """Return the verdicts as a table of pandas.

        Returns:
            A `pandas.DataFrame` with a row for each.

        Raises:
            MissingError: pandas is not installed.
        """
        return load_view("frame")([told(verdict) for verdict in self])

    def save(self, folder: Any, *, overwrite: bool = False) -> Any:
        """Store the verdicts with their evidence, as `odesim verify` does.

        Arguments:
            folder: Folder to write; it and its parents are created.
            overwrite: Replace a finished folder.

        Returns:
            The path of the folder.

        Raises:
            UsageError: The verdicts were loaded from a folder, or `folder` holds a finished verification and
                `overwrite` is false.
        """
        return load_view("save")(self, folder, overwrite=overwrite)


def told(verdict: Any) -> Mapping[str, Any]:
    """Return a verdict as a mapping."""
    if isinstance(verdict, Mapping):
        return verdict
    return {field.name: getattr(verdict, field.name) for field in dataclasses.fields(verdict)}


def row(verdict: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a verdict as a line of a table, and True if the answer is the expected one."""
    expected = "yes" if verdict["answer"] == verdict["expected"] else f"no: {verdict['expected']}"
    statement, seconds = shortened(str(verdict["statement"])), f"{verdict['seconds']:.1f} s"
    return name_of(verdict), statement, shown_answer(verdict), expected, seconds


def is_identity(verdict: Mapping[str, Any]) -> bool:
    """Return True if a verdict holds as an identity of the construction, which does not depend on the dynamics."""
    return bool(verdict.get("identity")) and verdict["answer"] in HOLDS


def shown_answer(verdict: Mapping[str, Any]) -> str:
    """Return the answer as tables show it: "identity" for an identity of the construction, which confirms nothing.

    >>> shown_answer({"answer": "confirmed", "identity": "by definition"})
    'identity'
    """
    return "identity" if is_identity(verdict) else str(verdict["answer"])


def counted_answers(verdicts: Iterable[Mapping[str, Any]]) -> str:
    """Return the number of verdicts for each answer, with identities of the construction counted separately.

    >>> counted_answers([{"answer": "confirmed"}, {"answer": "confirmed", "identity": "by definition"}])
    '1 confirmed, 0 consistent, 0 refuted, 0 inconclusive, 1 identity of the construction'
    """
    counts = collections.Counter(map(shown_answer, verdicts))
    answers = [f"{counts[answer]} {answer}" for answer in ANSWERS]
    if same := counts["identity"]:
        answers.append(f"{same} identit{'y' if same == 1 else 'ies'} of the construction")
    return ", ".join(answers)


def shortened(text: str, most: int = SHORT) -> str:
    """Return a text shortened at a word boundary."""
    return text if len(text) <= most else text[:most].rsplit(" ", 1)[0] + " ..."


def counted(verdicts: Iterable[Any]) -> str:
    """Return the number of verdicts of each answer, and of unexpected ones, as a sentence."""
    every = [told(verdict) for verdict in verdicts]
    off = sum(verdict["answer"] != verdict["expected"] for verdict in every)
    return f"{len(every)} verdict{'s' * (len(every) != 1)}: {counted_answers(every)}; {off} not as expected"

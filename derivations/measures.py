"""Measures as text: "final R", "first time R >= c", "first time R <= c", and two of bands of R at the end.

R is a quantity of a run. "share inside 90 % of R" is that of the runs of SGD inside the band, and "standard deviation
of R" that of R over runs of SGD.

R is an order parameter (an entry such as M_ww[1,2], or max, min or mean over the entries, of absolute values as
max(abs(M_ww))), a loss, or another quantity in a run.
"""

import dataclasses
import re
from collections.abc import Iterable

import numpy as np

REDUCTIONS = {"max": np.max, "min": np.min, "mean": np.mean}
LONGEST = 200
"""Maximal number of characters of a measure."""
FORMS = "'first time max(abs(M_ww)) >= 0.5', 'final loss', 'final max(abs(M_ww))'"


@dataclasses.dataclass(frozen=True)
class Measure:
    """A parsed measure: final value or first time, its variable, and the reduction of entries to one number.

    `place` are the indices of an entry from 1 on as text, None for all entries. `sign` and `level` belong to first
    times. `inside` is the probability of the band for a share of runs. `spread` is True for the standard deviation over
    runs of SGD.
    """

    variable: str
    place: str | None
    reduction: str
    absolute: bool
    sign: str | None
    level: float | None
    inside: float | None = None
    spread: bool = False

    @property
    def quantity(self) -> str:
        """The quantity as a user writes it."""
        word = self.variable if self.place is None else f"{self.variable}[{self.place}]"
        word = f"abs({word})" if self.absolute else word
        return f"{self.reduction}({word})" if self.absolute or self.place is None else word

    @property
    def entry(self) -> tuple[int, ...] | None:
        """The index of the entry from 0 on; None for all entries."""
        if self.place is None:
            return None
        return tuple(int(part) - 1 if part.strip() else -1 for part in self.place.split(","))

    def reduced(self, values: np.ndarray) -> float:
        """Return the number of the measure, from the values of its variable in one state.

        Raises `ValueError` for an entry that does not exist.
        """
        values = np.abs(values) if self.absolute else values
        if self.entry is None:
            return float(REDUCTIONS[self.reduction](values))
        return float(self.chosen(values))

    def chosen(self, values: np.ndarray) -> np.ndarray:
        """Return the values in the measure: its entry, or all values if it names none.

        Raises `ValueError` for an entry that does not exist.
        """
        if self.entry is None:
            return values
        inside = len(self.entry) == values.ndim and all(
            0 <= k < size for k, size in zip(self.entry, values.shape, strict=True)
        )
        if not inside:
            raise ValueError(f"{self.variable} has the shape {values.shape}, and no entry [{self.place}]")
        return np.asarray(values[self.entry])


def full_name(variable: str, known: Iterable[str]) -> str:
    """Return the full name of a variable, among the known names: M_w is short for M_ww.

    >>> full_name("M_w", ["Q_ww", "M_ww"]), full_name("loss", ["loss"])
    ('M_ww', 'loss')
    """
    short = {"_".join((name.rsplit("_", 1)[0], name[-1])): name for name in known if name[-2:] == name[-1] * 2}
    return short.get(variable, variable)


def read(text: str) -> Measure | None:
    """Return the measure in a text; None if the text is not a measure.

    >>> read("first time max(abs(M_ww)) >= 0.5") == Measure("M_ww", None, "max", True, ">=", 0.5)
    True
    >>> read("final M_ww[1,2]").entry, read("M_ww now")
    ((0, 1), None)
    >>> read("share inside 90 % of error").inside, read("standard deviation of error").spread
    (0.9, True)
    """
    if len(text) > LONGEST:
        return None
    form = re.fullmatch(
        r"\s*(?P<when>first time|final|standard deviation of|share inside (?P<inside>\d+(?:\.\d+)?) ?% of)\s+"
        r"(?P<what>[\w()\[\],\s]+?)\s*"
        r"(?:(?P<sign>>=|<=)\s*(?P<level>[-+.\deE]+))?\s*",
        text,
    )
    if form is None or (form["when"] == "first time") != (form["sign"] is not None):
        return None
    inner = re.fullmatch(
        r"(?:(max|min|mean)\s*\()?\s*(?:(abs)\s*\()?\s*(\w+?)\s*(?:\[([\d,\s]+)\])?\s*\)*", form["what"].strip()
    )
    if inner is None:
        return None
    try:
        level = float(form["level"]) if form["level"] else None
    except ValueError:
        return None
    reduction, absolute, variable, place = inner.groups()
    inside = float(form["inside"]) / 100 if form["inside"] else None
    if inside is not None and not 0 < inside < 1:
        return None
    spread = form["when"] == "standard deviation of"
    return Measure(variable, place, reduction or "max", absolute is not None, form["sign"], level, inside, spread)

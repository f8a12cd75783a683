"""The one legend of a picture: below its panels, each name once."""

import itertools
import re
import textwrap
from collections.abc import Sequence
from typing import Any

from odesim.show.alt import plain

SMALL = 7
"""Points."""
LETTER = 0.052
"""Inches that a letter of that size takes, on average."""
ROW = 0.16
"""Inches of a row."""
HANDLE = 0.45
"""Inches of a mark and the space beside it."""


def gather(figure: Any) -> int:
    """Give a figure one legend below its panels: the labels of all panels in order, each once, others and theory last.

    Legends of single panels go.  A figure that has a legend of its own keeps it.  Returns the number of rows.
    """
    if figure.legends:
        return 0
    entries: dict[str, Any] = {}
    for axis in figure.axes:
        if axis.get_legend() is not None:
            axis.get_legend().remove()
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            entries.setdefault(" ".join(label.split()), handle)
    labels = _ordered(list(entries))
    labels.sort(key=lambda label: (_is_theory(entries[label]), label.startswith("other ")))
    if not labels:
        return 0
    handles = [entries[label] for label in labels]
    letters = int((figure.get_figwidth() - 2 * HANDLE) / LETTER)
    labels = [label if "$" in label else "\n".join(textwrap.wrap(label, letters)) for label in labels]
    across = columns(labels, figure.get_figwidth())
    figure.legend(
        handles, labels, loc="outside lower center", fontsize=SMALL, frameon=False,
        ncols=across, columnspacing=1.3, handlelength=1.8,
    )  # fmt: skip
    return -(-len(labels) // across)


def _ordered(labels: list[str]) -> list[str]:
    """Labels in order, those that differ in a number at their end together and by that number.

    >>> _ordered(["expert 7", "ODE", "expert 2"])
    ['expert 2', 'expert 7', 'ODE']
    """
    stems = [label.rstrip("0123456789") for label in labels]

    def place(label: str) -> tuple[int, int]:
        stem = label.rstrip("0123456789")
        return stems.index(stem), int(label[len(stem) :] or 0)

    return sorted(labels, key=place)


def _letters(line: str) -> int:
    """Number of letters of a line of a label as it is drawn."""
    return len(re.sub(r"[\^_{}]", "", plain(line)))


def _is_theory(handle: Any) -> bool:
    """Return True if the handle is that of a line that theory draws."""
    return getattr(handle, "get_gid", lambda: None)() == "theory"


def columns(labels: Sequence[str], width: float) -> int:
    """Return how many columns of a legend, each as wide as its longest label, fit into `width` inches.

    >>> columns(["teacher 1", "teacher 2", "teacher 3"], 7.0), columns(["a" * 60, "b"], 3.0)
    (3, 1)
    >>> columns(["a", "b", "c", "a" * 60], 5.0)
    3
    """
    sizes = [HANDLE + LETTER * max(map(_letters, label.split("\n"))) for label in labels]
    for count in range(len(sizes), 1, -1):
        short, longer = divmod(len(sizes), count)  # columns are filled from the left, the first ones are longer
        ends = [0, *(short * (k + 1) + min(k + 1, longer) for k in range(count))]
        if sum(max(sizes[low:high]) for low, high in itertools.pairwise(ends)) <= width:
            return count
    return 1

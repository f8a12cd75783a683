"""The single legend of a picture: below its panels, each name once."""

import itertools
import re
from collections.abc import Sequence
from typing import Any

from odesim.show.alt import plain

SMALL = 6.5
"""Size of the letters in points."""
LETTER = 0.048
"""Average width in inches of a letter of that size."""
ROW = 0.14
"""Height of a row in inches."""
HANDLE = 0.4
"""Width in inches of a mark and the space next to it."""


def gather(figure: Any, chosen: Sequence[Any] = ()) -> int:
    """Give a figure one legend below its panels: the labels of all panels in order, each once, others and theory last.

    Legends of single panels are removed. A figure with its own legend keeps it. A label longer than half of the width
    is broken into several lines. `chosen` are handles that replace the labels of the panels. Returns the number of
    lines of the legend.
    """
    if figure.legends:
        return 0
    entries: dict[str, Any] = {handle.get_label(): handle for handle in chosen}
    for axis in figure.axes:
        if axis.get_legend() is not None:
            axis.get_legend().remove()
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True) if not chosen else ():
            entries.setdefault(" ".join(label.split()), handle)
    labels = _ordered(list(entries))
    labels.sort(key=lambda label: (_is_theory(entries[label]), label.startswith("other ")))
    if not labels:
        return 0
    handles = [entries[label] for label in labels]
    letters = int((figure.get_figwidth() / 2 - HANDLE) / LETTER)
    labels = [fold(label, letters) for label in labels]
    across = columns(labels, figure.get_figwidth())
    figure.legend(
        handles, labels, loc="outside lower center", fontsize=SMALL, frameon=False,
        ncols=across, columnspacing=1.2, handlelength=1.6,
    )  # fmt: skip
    return lines(labels, across)


def lines(labels: Sequence[str], across: int) -> int:
    r"""Return the number of lines of a legend of `across` columns.

    >>> lines(["a", "b", "c"], 2), lines(["a", "b\nb", "c"], 2)
    (2, 3)
    """
    columns = [labels[low:high] for low, high in itertools.pairwise(_ends(len(labels), across))]
    return max(sum(1 + label.count("\n") for label in column) for column in columns)


def _ends(count: int, across: int) -> list[int]:
    """Return the first label of every column and the end. Columns are filled from the left, and the first ones are
    longer.
    """
    short, longer = divmod(count, across)
    return [0, *(short * (k + 1) + min(k + 1, longer) for k in range(across))]


def fold(label: str, letters: int) -> str:
    r"""Return a label in lines of at most `letters` letters as drawn; mathematics and words are not broken.

    >>> fold(r"closed form of $v$: one pattern, infinite width", 26)
    'closed form of $v$: one\npattern, infinite width'
    """
    rows: list[str] = []
    for word in re.findall(r"(?:\$[^$]*\$|[^\s$])+", label):
        if rows and _letters(f"{rows[-1]} {word}") <= letters:
            rows[-1] += f" {word}"
        else:
            rows.append(word)
    return "\n".join(rows)


def _ordered(labels: list[str]) -> list[str]:
    """Return labels in order; labels that differ only in a number at the end are grouped and sorted by it.

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
    """Return True if the handle is that of a line of theory."""
    return getattr(handle, "get_gid", lambda: None)() == "theory"


def columns(labels: Sequence[str], width: float) -> int:
    """Return the number of columns of a legend, each as wide as its longest label, that fit into `width` inches.

    >>> columns(["teacher 1", "teacher 2", "teacher 3"], 7.0), columns(["a" * 60, "b"], 3.0)
    (3, 1)
    >>> columns(["a", "b", "c", "a" * 60], 4.2)
    3
    """
    sizes = [HANDLE + LETTER * max(map(_letters, label.split("\n"))) for label in labels]
    for count in range(len(sizes), 1, -1):
        if sum(max(sizes[low:high]) for low, high in itertools.pairwise(_ends(len(sizes), count))) <= width:
            return count
    return 1

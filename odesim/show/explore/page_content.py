"""Types for the content of an interactive page: the page, and the runs on it."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import xarray


@dataclasses.dataclass(frozen=True)
class Shown:
    """Run of the page: a short name, a title, the data set of its curves, theory, and headline numbers.

    A cell of a sweep has a `place` in its grid, and may have no curves.
    """

    name: str
    said: str
    curves: "xarray.Dataset"
    theory: Sequence[Any] = ()
    numbers: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    place: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    outcome: str = ""


@dataclasses.dataclass(frozen=True)
class Content:
    """Content of a page: its system, the runs, and for a sweep the names that span its grid.

    `meanings` are those of headline numbers that the system does not define.
    """

    system: str
    runs: tuple[Shown, ...]
    over: tuple[str, ...] = ()
    note: str = ""
    meanings: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def swept(self) -> bool:
        """Return True if the runs are the cells of a sweep."""
        return bool(self.over)

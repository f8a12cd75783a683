"""What a declaration says of runs: where they start, times to locate, and numbers that are taken together."""

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class Event:
    """A hitting time to locate: when an entry of the order parameter `of` passes `threshold`."""

    name: str
    of: str
    threshold: float
    direction: int = 1
    absolute: bool = False


@dataclasses.dataclass(frozen=True)
class Start:
    """Where training starts: norms by slot, overlaps drawn at random or one cosine with the unit's teacher.

    `arrays` are order parameters given outright (Q_ww, M_ww, a, ..), which then take the place of a draw; `readouts`
    are numbers for the readouts of some heads, by their names in a run, and `readout` is that of all others.
    """

    norms: tuple[tuple[str, float], ...]
    overlap: float | None = None
    readout: float = 1.0
    arrays: tuple[tuple[str, Any], ...] = ()
    readouts: tuple[tuple[str, float], ...] = dataclasses.field(default=(), repr=False)


@dataclasses.dataclass(frozen=True)
class Preset:
    """Numbers with a name and what they show, by which a run takes them together."""

    name: str
    meaning: str
    parameters: tuple[tuple[str, Any], ...]

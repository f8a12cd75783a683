"""Recorded data of a run: states at the saved times, and hitting times located by root-finding."""

import dataclasses
import functools
from collections.abc import Callable

import numpy as np

from derivations.contract import Crossing, Equations
from odesim.flow.between import Dense, states_between
from odesim.flow.roots import brent, first_root
from odesim.flow.solvers.step import INTERIOR, Segment

FRACTIONS = np.array([0.0, *INTERIOR, 1.0])
TO_CUBIC = np.linalg.pinv(np.vander(FRACTIONS, 4))
"""Matrix from values at these fractions of a step to the coefficients of the best cubic, highest power first."""
NEAR = 1e-3
"""Half-width, in steps, of the first bracket around the root of the cubic. Then the whole step is searched."""


class Recorder:
    """Collects saved states and the first crossing time of every entry (infinite without a crossing)."""

    def __init__(self, equations: Equations, start: float, y: np.ndarray, times: np.ndarray) -> None:
        self.equations = equations
        self.times = times
        self.states = np.full((times.size, y.size), np.nan)
        self.saved = 0
        self.end: tuple[float, np.ndarray] = (start, y.copy())
        self.reason = ""
        self.hits: dict[str, np.ndarray] = {}
        components = equations.unpack(y)
        for crossing in equations.crossings:
            reached = crossing.margin(crossing.entries(components[crossing.component])) >= 0
            self.hits[crossing.name] = np.where(reached, start, np.inf)
        self._entries = {c.component: equations.layout.places(c.component, y.size) for c in self._single}
        self._distinct = {name: _distinct(entries) for name, entries in self._entries.items()}
        self.watched = self._watch()
        self._save_until(start, start, lambda t: y)

    @property
    def _single(self) -> list[Crossing]:
        """Crossings of entries of the state, without those of sums of entries."""
        return [crossing for crossing in self.equations.crossings if crossing.summed is None]

    @property
    def due(self) -> float:
        """Next time at which a state is saved, infinite after the last."""
        return float(self.times[self.saved]) if self.saved < self.times.size else np.inf

    def take(self, segment: Segment) -> bool:
        """Record one step; returns True when a terminal crossing ends the run inside it."""
        end = self._locate(segment)
        self._save_until(segment.t0, end, lambda t: segment.y1 if t == segment.t1 else segment.dense(t))
        self.end = (end, segment.y1 if end == segment.t1 else segment.dense(end))
        return bool(self.reason)

    def _save_until(self, begin: float, end: float, state: Dense) -> None:
        last = self.saved + int(np.searchsorted(self.times[self.saved :], end, side="right"))
        if last > self.saved:
            self.states[self.saved : last] = states_between(state, begin, end, self.times[self.saved : last])
            if self.times[last - 1] == end:  # not that of the polynomial, which is rounded differently
                self.states[last - 1] = state(end)
            self.saved = last

    def _locate(self, segment: Segment) -> float:
        """Find all first crossings inside the step. Return the end of the step, or of the run if a crossing is
        terminal.
        """
        end = segment.t1
        if not self._may_cross(segment):
            return end
        interior, states = segment.interior(slice(None))
        times = [*interior, end]
        components = self.equations.unpack(np.vstack([states, segment.y1]))
        for crossing in self.equations.crossings:
            hits = self.hits[crossing.name]
            located: dict[bytes, float | None] = {}
            values = crossing.margin(crossing.entries(components[crossing.component]))
            for entry in np.argwhere((values >= 0).any(axis=0) & np.isinf(hits)):
                index = tuple(int(k) for k in entry)
                course = values[(slice(None), *index)]
                key = course.tobytes()  # equal for (i, j) and (j, i) of a symmetric matrix
                if key not in located:  # the cubic may be wrong: the entry may cross later in the step
                    roots = (self._root(crossing, index, segment, float(times[k])) for k in np.flatnonzero(course >= 0))
                    located[key] = next((root for root in roots if root is not None), None)
                time = located[key]
                if time is None:
                    continue
                hits[index] = time
                if crossing.terminal and time < end:
                    end, self.reason = time, crossing.reason
        self.watched = self._watch()
        if self.reason:
            self._forget_after(end)
        return end

    def _unmet(self, crossing: Crossing) -> np.ndarray:
        """Return the places in the flat state of the entries that have not crossed yet; those of a symmetric matrix
        once.
        """
        places, entries = self._distinct[crossing.component]
        return places[np.isinf(self.hits[crossing.name].ravel()[entries])]

    def _watch(self) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Return (places in the flat state, signs, thresholds) of the entries that have not crossed yet, or None if
        unknown.

        An entry has crossed if sign times entry is at least its threshold. An absolute value has a row for each sign.
        """
        parts = []
        for crossing in self.equations.crossings:
            if (crossing.absolute and crossing.direction < 0) or crossing.summed is not None:
                return None
            waiting = self._unmet(crossing)
            level = crossing.direction * crossing.threshold
            for sign in (1.0, -1.0) if crossing.absolute else (float(crossing.direction),):
                parts.append((waiting, np.full(waiting.size, sign), np.full(waiting.size, level)))
        places, signs, levels = (
            (np.concatenate(part) for part in zip(*parts, strict=True)) if parts else np.empty((3, 0))
        )
        return places.astype(np.uint64), signs, levels

    def _may_cross(self, segment: Segment) -> bool:
        """Return True if an entry that has not crossed yet is beyond its threshold inside the step or at its end."""
        if self.watched is None:
            return True
        places, signs, levels = self.watched
        if (signs * segment.y1[places] >= levels).any():
            return True
        return bool((signs * segment.interior(places)[1] >= levels).any())

    def _root(self, crossing: Crossing, index: tuple[int, ...], segment: Segment, upper: float) -> float | None:
        """Return the crossing of one entry in [t0, upper]; None if the accurate interpolant does not cross after
        all.
        """
        place = int(self._entries[crossing.component][index]) if crossing.summed is None else -1

        def at(y: np.ndarray) -> float:
            # reads one entry, because unpacking the whole state takes longer than the interpolant
            if place >= 0:
                return float(crossing.margin(y[place]))
            return float(crossing.margin(crossing.entries(self.equations.unpack(y)[crossing.component])[index]))

        @functools.cache
        def value(t: float) -> float:
            y = {segment.t0: segment.y0, segment.t1: segment.y1}.get(t)
            return at(segment.dense(t) if y is None else y)

        if value(segment.t0) >= 0:
            return segment.t0
        bracket = _narrow(segment, at, value, upper)
        if bracket is None and value(upper) < 0:
            return None
        low, high = bracket or (segment.t0, upper)
        return float(brent(value, low, high, 1e-13 * max(abs(upper), 1e-300), 4 * np.finfo(float).eps))

    def _forget_after(self, end: float) -> None:
        for hits in self.hits.values():
            hits[hits > end] = np.inf

    def result(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the saved times and states. A run that ended early also keeps its last good state."""
        times, states = self.times[: self.saved], self.states[: self.saved]
        if self.saved < self.times.size and (self.saved == 0 or self.end[0] > times[-1]):
            times, states = np.append(times, self.end[0]), np.vstack([states, self.end[1]])
        return times, states

    def checkpoint(self) -> dict[str, np.ndarray]:
        """Return everything that is needed to continue from the last step."""
        arrays = {f"hits_{name}": values for name, values in self.hits.items()}
        saved = self.states[: self.saved]
        return {"time": np.array(self.end[0]), "y": self.end[1], "saved": saved, **arrays}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Restore the recorder from a checkpoint."""
        self.end = (float(arrays["time"]), arrays["y"])
        self.saved = len(arrays["saved"])
        self.states[: self.saved] = arrays["saved"]
        self.hits = {name: arrays[f"hits_{name}"].copy() for name in self.hits}
        self.watched = self._watch()


def _distinct(entries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the places in the flat state of the entries of a component, and the first flat entry of each place."""
    places, first = np.unique(entries, return_index=True)
    return places[places >= 0], first[places >= 0]


def _narrow(
    segment: Segment, at: Callable[[np.ndarray], float], value: Callable[[float], float], upper: float
) -> tuple[float, float] | None:
    """Return a short bracket of the root around that of the cheap cubic, because every accurate value costs a step.

    None if the accurate values do not change sign in it.
    """
    width, states = segment.t1 - segment.t0, segment.interior(slice(None))[1]
    cubic = TO_CUBIC @ [at(y) for y in (segment.y0, *states, segment.y1)]
    root = first_root(cubic, (upper - segment.t0) / width)
    if root is not None:
        low = max(segment.t0, segment.t0 + (root - NEAR) * width)
        high = min(upper, segment.t0 + (root + NEAR) * width)
        if value(low) < 0 <= value(high):
            return low, high
    return None


@dataclasses.dataclass
class Record:
    """Saved states (times, entries) and hitting times by name, for a run without a recorder."""

    times: np.ndarray
    states: np.ndarray
    hits: dict[str, np.ndarray]

    def result(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the saved times and states."""
        return self.times, self.states

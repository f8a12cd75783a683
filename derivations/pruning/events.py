"""The list of events of the flow: a task token becomes selected together with, drops below, or ties with an irrelevant
pattern.
"""

import numpy as np

from derivations.contract import Initial, Labelled
from derivations.pruning.parameters import Parameters

KINDS = {0: "dropped", 1: "selected", 2: "held"}
"""State after an event: the task token below the pattern, above it, or tied with it, if both sides push into the
tie.
"""
MOST = 100_000
"""Maximal number of stored events; later ones are only counted."""


def size(p: Parameters) -> int:
    """Numbers that the list takes in the memory of a run: a count, then five for each event."""
    return 1 + 5 * min(MOST, 8 * p.k * p.N + 100)


def record(initial: Initial, memory: np.ndarray) -> Labelled:
    """The events in the order of time: time, expert, pair (task token, irrelevant pattern), and kind.

    The kind of an event is the state after it; `events_lost` counts those beyond the length of the list.
    """
    found = memory[initial.parameters.k :]
    room = (found.size - 1) // 5
    came = int(found[0])
    rows = found[1:].reshape(room, 5)[: min(came, room)]
    rows = rows[np.lexsort((rows[:, 3], rows[:, 2], rows[:, 1], rows[:, 0]))]
    kinds = ", ".join(f"{code} {word}" for code, word in KINDS.items())
    dims = ("event",)
    return {
        "event_time": (dims, rows[:, 0].copy(), "time at which the order of tokens changes"),
        "event_expert": (dims, rows[:, 1].astype(int), "expert of the event"),
        "event_task": (dims, rows[:, 2].astype(int), "task token of the pair: 0 is o1, 1 is o2"),
        "event_pattern": (dims, rows[:, 3].astype(int), "irrelevant pattern of the pair: i is q_(i + 1)"),
        "event_kind": (dims, rows[:, 4].astype(int), f"state of the pair after it: {kinds}"),
        "events_lost": ((), np.array(max(0, came - room)), "events beyond the length of the list"),
    }

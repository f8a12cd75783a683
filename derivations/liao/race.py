"""The limit d -> infinity of the leading-order flow: a race between captures and annihilations.

With u = sqrt(d) gamma2(0) and z = sqrt(d) I2(0), teacher j is captured by expert i at 1/(4.5 u_ij) and the student pair
(i, r) annihilates at 1/(9 |z_ir|) if z_ir < 0, in units of sqrt(d), for unit norms at degree 3; after an event its
participants take part in no other.
"""

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class Event:
    """One event of the race: `capture` of teacher `second` by expert `first`, or annihilation of two experts."""

    time: float
    kind: str
    first: int
    second: int


def race(u: np.ndarray, z: np.ndarray) -> list[Event]:
    """The events in order, from scaled overlaps u (m, m_star) and z (m, m)."""
    m, m_star = u.shape
    events = [Event(1 / (4.5 * u[i, j]), "capture", i, j) for i in range(m) for j in range(m_star) if u[i, j] > 0]
    events += [Event(1 / (9 * -z[i, r]), "annihilate", i, r) for i in range(m) for r in range(i) if z[i, r] < 0]
    alive, free, happened = np.ones(m, bool), np.ones(m_star, bool), []
    for event in sorted(events, key=lambda event: event.time):
        i, k = event.first, event.second
        if not alive[i]:
            continue
        if event.kind == "capture" and free[k]:
            alive[i] = free[k] = False
            happened.append(event)
        elif event.kind == "annihilate" and alive[k]:
            alive[i] = alive[k] = False
            happened.append(event)
    return happened


def capture_times(u: np.ndarray, z: np.ndarray) -> list[float]:
    """The times of the captures, in units of sqrt(d)."""
    return [event.time for event in race(u, z) if event.kind == "capture"]

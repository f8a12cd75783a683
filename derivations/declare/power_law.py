"""Power law of the error from a spectrum and a teacher, drawn together with the error of a run.

In linear learning the rate of every block of the inputs is proportional to its eigenvalue lam_l. With the parts w_l of
the teacher's squared norm the error is

    E(tau) = sum_l w_l lam_l exp(-2 lam_l tau),

the error of least squares by gradient flow from 0. If lam_j = j^-alpha and w_j = j^(-2 beta), it falls like tau^-p, p =
(alpha + 2 beta - 1)/alpha (Velikanov & Yarotsky 2021), until the smallest eigenvalues are reached. The exponent is
computed from E, so that a spectrum from a file has one too.
"""

import dataclasses
import tomllib
from typing import Any

import numpy as np

from derivations.declare import spectrum_picture
from derivations.drawing import Reference, parameters

A_DECADE = 40
"""Number of times in a decade at which the slope of E is computed."""
SLOPE = 0.02
"""Largest relative deviation of the slope of a power law from its mean; at d = 1000 the first and last coordinates bend
it.
"""
SHORTEST = 1.5
"""Smallest number of decades of a power law; single blocks of a coarse spectrum make shorter ones."""
LONGEST = 30.0
"""Number of decades of times that are examined."""
DRAWN = 1.0
"""Smallest number of decades of a run in which a line is drawn."""
WINDOW = 0.5
"""Number of decades for the exponent, in which the slope of E is flattest."""
ABOVE = 2.0
"""Factor by which the line lies above the error, so that both are visible."""


@dataclasses.dataclass(frozen=True)
class PowerLaw:
    """E(tau) ~ tau^-exponent from `start` to `end`.

    >>> eigenvalue = np.arange(1.0, 3001.0) ** -1.5
    >>> law = power_law(eigenvalue, eigenvalue)
    >>> round(law.exponent, 2), law.end > 100 * law.start
    (1.33, True)
    """

    exponent: float
    start: float
    end: float


def power_law(eigenvalue: np.ndarray, content: np.ndarray) -> PowerLaw | None:
    """Return the longest power law of E, or None.

    Args:
        eigenvalue: the eigenvalues (L,) of the blocks.
        content: the parts (L,) of the teacher's squared norm in them.
    """
    positive = (eigenvalue > 0) & (content > 0)
    lam, weight = eigenvalue[positive], (eigenvalue * content)[positive]
    if len(lam) < 2:
        return None
    decades = min(float(np.log10(lam.max() / lam.min())), LONGEST)
    tau = 0.5 / lam.max() * np.logspace(0, decades, max(int(A_DECADE * decades), 3))
    decay = weight * np.exp(-2 * lam * tau[:, None])
    slope = 2 * tau * (decay @ lam) / decay.sum(axis=1)
    start, end = _longest_level(slope)
    if end - start < SHORTEST * A_DECADE:
        return None
    windows = np.lib.stride_tricks.sliding_window_view(slope[start:end], int(WINDOW * A_DECADE))
    flattest = windows[np.ptp(windows, axis=1).argmin()]
    return PowerLaw(float(flattest.mean()), float(tau[start]), float(tau[end - 1]))


def _longest_level(values: np.ndarray) -> tuple[int, int]:
    """Ends of the longest stretch of values (n,) whose range is at most twice `SLOPE` of its mean.

    >>> _longest_level(np.array([9.0, 1.0, 1.01, 1.0, 2.0]))
    (1, 4)
    """
    best, start = (0, 0), 0
    for end in range(1, len(values) + 1):
        part = values[start:end]
        while np.ptp(part) > 2 * SLOPE * abs(part.mean()):
            start, part = start + 1, part[1:]
        if end - start > best[1] - best[0]:
            best = start, end
    return best


def of_run(run: Any) -> PowerLaw | None:
    """Return the power law of the blocks of a run (`xarray.Dataset`); None if the theory does not apply to its error.

    It does not apply to the online limit, whose noise has another law, to other losses than the squared one, weight
    decay, weights of fixed norms, and clusters.
    """
    training = tomllib.loads(run.attrs.get("declaration", "")).get("training", {})
    usual = {"limit": "flow", "loss": "squared", "weights": "free"}
    plain = all(training.get(key, value) == value for key, value in usual.items())
    plain = plain and not parameters(run).get("decay") and "probability" not in run
    if not plain or not spectrum_picture.is_drawn(run):
        return None
    return power_law(run["eigenvalue"].values, spectrum_picture.content(run))


def references(run: Any) -> list[Reference]:
    """Return the line of slope -exponent for the error of a run, if the law holds for at least a decade.

    A model that is not linear learns small eigenvalues at the rates rate x lam_l. The rate comes from the last block in
    which half of the teacher is learned, at the time log(2)/(rate lam_l). The line begins when the first block is half
    learned. Its height has no meaning.
    """
    law = of_run(run) if "error" in run and run.sizes.get("time", 0) > 2 else None
    learned = _learned(run) if law is not None else None
    if law is None or learned is None:
        return []
    time, error, (first, rate) = run["time"].values, run["error"].values, learned
    low, high = max(law.start / rate, first), min(law.end / rate, float(time[-1]))
    if high < low * 10**DRAWN:
        return []
    t = np.geomspace(low, high, 50)
    middle = float(np.sqrt(low * high))
    height = ABOVE * float(np.interp(middle, time, error))
    line = height * (t / middle) ** -law.exponent
    return [Reference("error", rf"linear learning: $t^{{-{law.exponent:.3g}}}$", x=t.tolist(), y=line.tolist())]


def _learned(run: Any) -> tuple[float, float] | None:
    """Return the first time at which a block is half learned, and the rate of the last such block in units of its
    eigenvalue.

    None if no block is half learned.
    """
    parts, eigenvalue = spectrum_picture.parts(run), run["eigenvalue"].values
    passed = (parts >= 0.5) & (eigenvalue > 0)
    halved = np.flatnonzero(passed.any(axis=0) & ~passed[0])
    if not len(halved):
        return None
    times = run["time"].values[passed[:, halved].argmax(axis=0)]
    last = int(eigenvalue[halved].argmin())
    return float(times.min()), float(np.log(2) / (eigenvalue[halved[last]] * times[last]))

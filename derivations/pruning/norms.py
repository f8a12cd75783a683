"""Changes of the norms of routers and neurons, without the loss of digits of a difference of norms."""

import numpy as np


def growth(start: np.ndarray, now: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """|now| - |start| of vectors with alignments (..., d) and squared norm `rest` outside the patterns, stably."""
    change = now - start
    numerator = (2 * start * change + change**2).sum(-1)
    norms = np.sqrt((now**2).sum(-1) + rest) + np.sqrt((start**2).sum(-1) + rest)
    return numerator / np.where(norms > 0, norms, 1.0)

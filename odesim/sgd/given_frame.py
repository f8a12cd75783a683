"""Explicit weights for fixed vectors with given coordinates, such as a teacher from a file."""

import numpy as np

from derivations.contract import Eigenspaces
from derivations.vectors import DEPENDENT, thin_root
from odesim.errors import UsageError
from odesim.machine import streams


def weights(grams: np.ndarray, frame: np.ndarray, spaces: Eigenspaces, seed: int) -> np.ndarray:
    """Return weights (R, n, d) with Gram matrices (R, L, n, n) in the blocks, whose last rows are `frame` (t, d).

    All other rows are rotated at random within every block; the frame stays fixed.
    """
    ends, found = np.cumsum(spaces.dimension)[:-1], []
    for replica, blocks in enumerate(grams):
        rng = streams.generator(seed, "rotation", replica)
        frames = np.split(frame, ends, axis=1)
        parts = [_beside(gram, each, k, rng) for k, (gram, each) in enumerate(zip(blocks, frames, strict=True))]
        found.append(np.vstack([np.hstack(parts), frame]))
    return np.array(found)


def _beside(gram: np.ndarray, frame: np.ndarray, block: int, rng: np.random.Generator) -> np.ndarray:
    """Return vectors (n - t, m) whose Gram matrix with the frame (t, m) is (n, n), from a part in its span and a rest.

    Raises `UsageError` if the space outside of the span is too small for the rest.
    """
    s = len(gram) - len(frame)
    pseudo = np.linalg.pinv(gram[s:, s:], rcond=DEPENDENT, hermitian=True)
    along = gram[:s, s:] @ pseudo
    left = gram[:s, :s] - along @ gram[s:, :s]
    size = np.diagonal(gram)[:s].max(initial=0.0)
    half = thin_root(np.where(np.abs(left) > DEPENDENT * size, left, 0.0))
    _, values, span = np.linalg.svd(frame, full_matrices=False)
    span = span[values > np.sqrt(DEPENDENT) * values.max(initial=0.0)]
    count, room = half.shape[1], frame.shape[1] - len(span)
    if count > room:
        raise UsageError(
            f"block {block + 1} of the inputs has {frame.shape[1]} coordinates, too few for {count} vectors "
            f"in addition to the {len(span)} from files: SGD needs a random start (no overlap), a teacher of "
            "a file or with spread = 'random', or fewer bins"
        )
    if not count:
        return along @ frame
    drawn = rng.normal(size=(frame.shape[1], count))
    drawn -= span.T @ (span @ drawn)
    drawn -= span.T @ (span @ drawn)  # twice, to remove the rounding that is left in the span
    return along @ frame + half @ np.linalg.qr(drawn)[0].T

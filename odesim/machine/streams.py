"""Separate streams of random numbers from one seed. A new use of random numbers never changes those of other uses."""

import zlib

import numpy as np


def generator(seed: int, purpose: str, *indices: int) -> np.random.Generator:
    """Return the generator for one purpose (`"initial"`, `"data"`, ...) and indices (replica, step), from the run's
    seed.
    """
    key = (zlib.crc32(purpose.encode()), *indices)
    return np.random.default_rng(np.random.SeedSequence(entropy=seed, spawn_key=key))

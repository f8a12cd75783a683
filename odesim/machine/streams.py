"""Separate streams of random numbers from one seed, so that adding a consumer never shifts another's numbers."""

import zlib

import numpy as np


def generator(seed: int, purpose: str, *indices: int) -> np.random.Generator:
    """The generator for one purpose (`"initial"`, `"data"`, ...) and indices (replica, step), from the run's seed."""
    key = (zlib.crc32(purpose.encode()), *indices)
    return np.random.default_rng(np.random.SeedSequence(entropy=seed, spawn_key=key))

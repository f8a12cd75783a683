"""Rewards of single samples in the generated claims, with random other samples of the episode."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from derivations.declare import evaluate
from derivations.declare.declaration import Declaration


def successes(
    declared: Declaration, network: tuple[Any, Any], x: Any, labels: Any, numbers: Mapping[str, Any]
) -> np.ndarray:
    """Return 1 for every sample x (N, d) that is a success, else 0; `network` are all vectors, and numbers of
    students.
    """
    vectors, scalars = network
    f, y = evaluate.answers(declared, vectors, scalars, x, labels, numbers)
    return np.asarray(evaluate.success(declared, f, y, known(declared, numbers)))


def known(declared: Declaration, numbers: Mapping[str, Any]) -> dict[str, Any]:
    """The user's numbers by name."""
    return {name: numbers[f"n_{name}"] for name in declared.names}


def by_count(
    declared: Declaration, hits: np.ndarray, odds: float, numbers: Mapping[str, Any]
) -> Iterator[tuple[np.ndarray, float]]:
    """Yield rewards (N,) of samples with successes (N,), and their probability, for each number of successes among the
    others.

    The others succeed independently with the probability `odds`.
    """
    from scipy.stats import binom

    episode = declared.episode
    assert episode is not None
    for k in range(episode.samples):
        rewards = np.asarray(evaluate.reward(declared, hits + k, known(declared, numbers)))
        yield rewards, float(binom.pmf(k, episode.samples - 1, odds))

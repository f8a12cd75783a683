"""Rewards of single samples in the generated claims, with random other samples of the episode."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from derivations.declare import evaluate
from derivations.declare.declaration import Declaration


def successes(
    declared: Declaration, every: tuple[Any, Any], x: Any, labels: Any, given: Mapping[str, Any]
) -> np.ndarray:
    """Return 1 for every sample x (N, d) that is a success, else 0; `every` are all vectors, and numbers of
    students.
    """
    vectors, scalars = every
    f, y = evaluate.answers(declared, vectors, scalars, x, labels, given)
    return np.asarray(evaluate.success(declared, f, y, known(declared, given)))


def known(declared: Declaration, given: Mapping[str, Any]) -> dict[str, Any]:
    """The user's numbers by name."""
    return {name: given[f"n_{name}"] for name in declared.names}


def by_count(
    declared: Declaration, hits: np.ndarray, odds: float, given: Mapping[str, Any]
) -> Iterator[tuple[np.ndarray, float]]:
    """Yield rewards (N,) of samples with successes (N,), and their probability, for each number of successes among the
    others.

    The others succeed independently with the probability `odds`.
    """
    from scipy.stats import binom

    own = declared.episode
    assert own is not None
    for k in range(own.samples):
        rewards = np.asarray(evaluate.reward(declared, hits + k, known(declared, given)))
        yield rewards, float(binom.pmf(k, own.samples - 1, odds))

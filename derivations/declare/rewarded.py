"""Means over the other samples of an episode, in arrays of NumPy or JAX (tier `sampled`).

At a point with the success s the reward has few values, with probabilities that depend on p = E[s]. The means of a
coefficient and of a product of two are weighted sums over these values. If rules are linear in the reward, they depend
only on its mean m and mean square v. The three numbers 0, 1 and -1 have the same m and v with the weights

    1 - v,   (v + m)/2,   (v - m)/2
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from derivations.declare.arrays import Means
from derivations.declare.declaration import Declaration
from derivations.declare.episodes import REWARD, chances
from derivations.declare.quadrature import degree


class Rewards(NamedTuple):
    """Numbers (2, Q) for the reward of a sample that failed, and of one that succeeded, with weights (2, Q)."""

    values: Any
    weights: Any


def linear(declared: Declaration) -> bool:
    """Return True if all rules are of first degree in the reward.

    >>> from derivations.declare import reading
    >>> training = {"rule": "R*dl*df", "episode": {"samples": 2, "success": "step(f*y)", "reward": "n"}}
    >>> linear(reading.declaration({"student": {"unit": "w"}, "training": training}))
    True
    """
    degrees = [degree(rule.tree, {REWARD: 1}) for rule in declared.rules]
    return all(power is not None and power <= 1 for power in degrees)


def rewards(
    xp: Any, declared: Declaration, functions: Mapping[str, Callable[..., Any]], shared: Sequence[Any], p: Any
) -> Rewards:
    """The rewards of samples that succeed with probability p; `shared` are the user's numbers."""
    episode = declared.episode
    assert episode is not None
    counts = xp.arange(episode.samples + 1) + 0.0
    all_rewards = functions["reward"](counts, float(episode.samples), *shared)[0] + 0.0 * counts
    chance = chances(xp, episode.samples - 1, p)
    values = xp.stack([all_rewards[:-1], all_rewards[1:]])
    if not linear(declared):
        return Rewards(values, xp.stack([chance, chance]))
    mean, square = values @ chance, values**2 @ chance
    weights = xp.stack([1 - square, (square + mean) / 2, (square - mean) / 2], axis=1)
    return Rewards(xp.array([[0.0, 1.0, -1.0]] * 2), weights)


def by_point(reward_table: Rewards, success: Any) -> Iterator[tuple[Any, Any]]:
    """Return rewards (N,) and weights (N,) of points with successes (N,), with the same number of values at each."""
    for k in range(reward_table.values.shape[1]):
        yield tuple(array[0, k] + success * (array[1, k] - array[0, k]) for array in reward_table)


def total(parts: Iterator[Means]) -> Means:
    """The sum of means, entry by entry."""
    first, *rest = parts
    for part in rest:
        scalars = [a + b for a, b in zip(first.scalars, part.scalars, strict=True)]
        drift, own_terms, means, second, loss = (
            getattr(first, name) + getattr(part, name) for name in ("drift", "own", "first", "second", "loss")
        )
        first = Means(drift, own_terms, means, second, scalars, loss)
    return first

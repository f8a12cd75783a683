"""Text of `coefficients` for samples in episodes: successes first, then the reward of every sample."""

from collections.abc import Iterator

from derivations.declare.declaration import Declaration
from derivations.declare.episodes import REWARD

SUCCESSES = '''def successes(hits, samples):
    """The successes (1, ..) in the episode of every sample; episodes stand one after another."""
    return np.repeat(hits.reshape((-1, samples)).sum(1), samples).reshape(hits.shape)
'''


def reward(declared: Declaration) -> Iterator[str]:
    """R of every sample, from the answer f and the label y of all samples of its episode."""
    episode = declared.episode
    if episode is None:
        return
    shared = [f"n_{name}" for name in declared.names]
    yield f"hits = success({', '.join(['f', 'y', *shared])})[0] + 0.0 * y"
    arguments = [f"successes(hits, {episode.samples})", f"{episode.samples}.0", *shared]
    yield f"{REWARD} = reward({', '.join(arguments)})[0] + 0.0 * y"

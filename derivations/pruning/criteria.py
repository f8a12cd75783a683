"""Scores of experts, the experts that a score keeps, and the test error of the remaining experts."""

import math

import numpy as np

from derivations.contract import Initial
from derivations.pruning import model
from derivations.pruning.inputs import fraction, table
from derivations.pruning.norms import growth

RANDOM_DRAWS = 200
"""Permutations over which the error of random pruning is averaged."""
IMPORTANT = 0.1
"""Smallest proficiency of an important expert for its class: Theorem 4.3 requires a constant."""


def pooled(initial: Initial) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """For every expert and test input (k, S): pooled activation, gate of the task token, largest gate.

    Also the labels and probabilities (S,) of the inputs.
    """
    h, sigma = initial.state["h"], np.maximum(initial.state["u"], 0.0).sum(axis=1)
    rows, labels, chance = table(initial)
    tokens = rows.T
    kept = min(initial.parameters.l, tokens.shape[0])
    gate = model.softmax_on(model.top_l(h[:, tokens], np.ones(tokens.shape), kept), h[:, tokens])
    return (gate * sigma[:, tokens]).sum(axis=1), gate[:, 0], gate.max(axis=1), labels, chance


def proficiency(initial: Initial) -> tuple[np.ndarray, np.ndarray]:
    """p_1, p_2 (k,): the probability that the task token is selected with a gate of at least 1/l, by class."""
    _, gate, _, labels, chance = pooled(initial)
    seen = gate >= (1 - 1e-12) / initial.parameters.l
    first, second = (fraction(chance[labels == y], seen[:, labels == y]) for y in (1, -1))
    return first, second


def scores(initial: Initial, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Every criterion's score (k,) of the experts; the highest are kept.

    Under expert choice every expert receives l of n tokens of every input, so that `token_fraction` is constant and
    `importance` is the mean of the largest gate alone.
    Source: Chowdhury et al. 2024, Algorithm 1 and the baselines of section 5.2.
    """
    p, c, s = initial.parameters, initial.constants, initial.state
    _, _, largest, _, chance = pooled(initial)
    first, second = proficiency(initial)
    neuron = np.sqrt((s["u"] ** 2).sum(-1) + c["neuron_rest"]).mean(-1)
    return {
        "router_norm_change": growth(c["h_start"], s["h"], c["router_rest"]),
        "random": rng.permutation(p.k).astype(float),
        "importance": (largest * chance).sum(-1),
        "token_fraction": np.full(p.k, min(1.0, p.l / p.n)),
        "router_norm": np.sqrt((s["h"] ** 2).sum(-1) + c["router_rest"]),
        "neuron_norm_mean": neuron,
        "neuron_norm_change_mean": growth(c["u_start"], s["u"], c["neuron_rest"]).mean(-1),
        "router_change_norm": np.sqrt(((s["h"] - c["h_start"]) ** 2).sum(-1)),
        "proficiency": np.where(np.asarray(c["a"]) > 0, first - second, second - first),
    }


def keep_count(size: int, rho: float) -> int:
    """Number of remaining experts of a sign group: (1 - rho) size, half-integers rounded up, at least one if there is
    one.
    """
    return min(size, max(1, math.floor((1 - rho) * size + 0.5 + 1e-9)))


def keep(a: np.ndarray, score: np.ndarray, rho: float) -> np.ndarray:
    """The remaining experts, in their order: of each sign the best by score, the lower number first for equal scores.

    Source: Chowdhury et al. 2024, Algorithm 1, step 3.
    """
    kept = []
    for sign in (1.0, -1.0):
        group = np.flatnonzero(a == sign)
        best = group[np.argsort(-score[group], kind="stable")]
        kept.append(best[: keep_count(group.size, rho)])
    return np.sort(np.concatenate(kept))


def error(initial: Initial, kept: np.ndarray) -> tuple[float, float]:
    """(P(y f <= 0), smallest margin y f) of the model with only the experts `kept`."""
    answers, _, _, labels, chance = pooled(initial)
    return error_of(answers, np.asarray(initial.constants["a"]), labels, chance, kept)


def error_of(
    answers: np.ndarray, a: np.ndarray, labels: np.ndarray, chance: np.ndarray, kept: np.ndarray
) -> tuple[float, float]:
    """The error and the smallest margin from pooled activations (k, S)."""
    signed = labels * (a[kept, None] * answers[kept]).sum(axis=0)
    return float(fraction(chance, signed <= 0)), float(signed[chance > 0].min())


def error_curve(initial: Initial, score: np.ndarray | None, rng: np.random.Generator) -> np.ndarray:
    """The error with 1, 2, .. remaining experts of each sign by a score; for None the mean over random choices."""
    answers, _, _, labels, chance = pooled(initial)
    a = np.asarray(initial.constants["a"])
    groups = [np.flatnonzero(a == sign) for sign in (1.0, -1.0)]
    draws = 1 if score is not None else RANDOM_DRAWS
    found = np.zeros((draws, max(group.size for group in groups)))
    for draw in range(draws):
        ranks = score if score is not None else rng.random(a.size)
        orders = [group[np.argsort(-ranks[group], kind="stable")] for group in groups]
        for count in range(1, found.shape[1] + 1):
            kept = np.concatenate([order[:count] for order in orders])
            found[draw, count - 1] = error_of(answers, a, labels, chance, kept)[0]
    return found.mean(axis=0)


def assumptions(initial: Initial) -> list[str]:
    """Return the assumptions of Theorem 4.3 that this start violates, one sentence each."""
    p, c, h = initial.parameters, initial.constants, initial.state["h"]
    first, second = proficiency(initial)
    a, broken = np.asarray(c["a"]), []
    for sign, own, task in ((1.0, first, 0), (-1.0, second, 1)):
        important = np.flatnonzero((a == sign) & (own >= IMPORTANT))
        name = f"{int(sign):+d}"
        if important.size == 0:
            broken.append(f"no expert of sign {name} selects its task token with probability {IMPORTANT:g} or more")
            continue
        gaps = np.abs(h[important, task][:, None] - h[important, 2:])
        if gaps.min() < p.separation * (1 - 1e-9):
            broken.append(f"an important expert of sign {name} separates a pattern by {gaps.min():.3g} < C_p")
    largest = float(np.sqrt((h**2).sum(-1) + c["router_rest"]).max())
    if largest > 0.5 * math.log(p.l):
        broken.append(f"a router has norm {largest:.3g} above log(l)/2 = {0.5 * math.log(p.l):.3g}")
    return broken

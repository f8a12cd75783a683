"""Separate training of the routers, solved exactly: the loss is linear, so that only one sample mean matters.

    g_1 = g_1(0) + eta_r T_r Gam c,   g_2 = g_2(0) - eta_r T_r Gam c,   c(z) = (1/N_r) sum_i y_i N_i(z)

for any batches. c is a mean of independent vectors of mean (1/2, -1/2, 0, ..) and known covariance. With several
classes, w_i and w_(i+1), i odd, are trained in this way only on the samples of classes i and i + 1. Source: Chowdhury
et al. 2023, equation (6), Lemma E.1 and Appendix M.1; the exact law is ours.
"""

import math

import numpy as np

from derivations.contract import UsageError
from derivations.pmoe import world
from derivations.pmoe.parameters import Parameters
from derivations.vectors import root


def mean_counts(p: Parameters) -> np.ndarray:
    """The population's c, (P,): (1/2, -1/2, 0, ..), because irrelevant patches have the same distribution in both
    classes.
    """
    return pair_population(p)[0]


def pair_population(p: Parameters) -> np.ndarray:
    """The population's c of every pair of classes, (c/2, P): 1/2 for the first pattern of the pair, -1/2 for the other.

    >>> pair_population(Parameters(classes=4, p=1))
    array([[ 0.5, -0.5,  0. ,  0. ,  0. ],
           [ 0. ,  0. ,  0.5, -0.5,  0. ]])
    """
    found = np.zeros((p.classes // 2, p.width))
    pair = np.arange(p.classes // 2)
    found[pair, 2 * pair], found[pair, 2 * pair + 1] = 0.5, -0.5
    return found


def require_two(p: Parameters, what: str) -> None:
    """Raise `UsageError` for more than two classes, for which `what` is not defined."""
    if p.classes > 2:
        raise UsageError(f"{what} is defined for two classes, but classes = {p.classes} were given")


def moments(p: Parameters) -> tuple[np.ndarray, np.ndarray]:
    """Mean (p,) and second moments (p, p) of the counts of the irrelevant patterns in one sample."""
    if p.composition == "deterministic":
        fixed = np.array(p.counts, float).reshape(p.p)
        return fixed, np.outer(fixed, fixed)
    mean, spread = np.zeros(p.p), np.zeros((p.p, p.p))
    for total, pi in world.groups(p):
        mean += total * pi
        spread += total * (np.diag(pi) - np.outer(pi, pi))
    return mean, spread + np.outer(mean, mean)


def covariance(p: Parameters) -> np.ndarray:
    """The covariance C (P, P) of y N(x), so that c has covariance C/N_r (at even N_r where `balanced`)."""
    require_two(p, "the covariance of the label-weighted counts")
    mean, second = moments(p)
    found = np.zeros((p.p + 2, p.p + 2))
    if p.balanced:
        found[2:, 2:] = second - np.outer(mean, mean)
        return found
    found[:2, :2] = 0.25
    found[:2, 2:] = mean / 2
    found[2:, :2] = found[:2, 2:].T
    found[2:, 2:] = second
    return found


def sample_means(p: Parameters, rng: np.random.Generator, draws: int) -> np.ndarray:
    """`draws` values of c (draws, P) from N_r samples each, exactly in law; the population's for N_r = 0.

    Conditionally on the number of samples of each class, sums of multinomial counts are multinomial.
    """
    require_two(p, "the label-weighted mean of the counts")
    if p.N_r == 0:
        return np.tile(mean_counts(p), (draws, 1))
    plus = np.full(draws, (p.N_r + 1) // 2) if p.balanced else rng.binomial(p.N_r, 0.5, size=draws)
    found = np.zeros((draws, p.p + 2))
    for sign, size in ((1.0, plus), (-1.0, p.N_r - plus)):
        found[:, 0 if sign > 0 else 1] = sign * size
        if p.composition == "deterministic":
            found[:, 2:] += sign * size[:, None] * np.array(p.counts, float).reshape(1, p.p)
        elif p.p:
            for total, pi in world.groups(p):
                found[:, 2:] += sign * rng.multinomial(size * total, pi)
    return found / p.N_r


def pair_means(p: Parameters, rng: np.random.Generator) -> np.ndarray:
    """A draw of the means c of all pairs (c/2, P) from N_r samples of all classes, exactly in law.

    A pair uses the samples of its two classes; without any sample of them c = 0. Source: Chowdhury et al. 2023,
    Appendix M.1, step 2.
    """
    if p.N_r == 0 or p.classes == 2:
        return sample_means(p, rng, 1) if p.classes == 2 else pair_population(p)
    share = np.full(p.classes, 1 / p.classes)
    even = np.arange(p.classes) < p.N_r % p.classes
    sizes = p.N_r // p.classes + even if p.balanced else rng.multinomial(p.N_r, share)
    found = np.zeros((p.classes // 2, p.width))
    for own, size in enumerate(sizes):
        sign = 1.0 if own % 2 == 0 else -1.0
        found[own // 2, own] = sign * size
        if p.composition == "deterministic":
            found[own // 2, p.classes :] += sign * size * np.array(p.counts, float).reshape(p.p)
        elif p.p:
            for total, pi in world.groups(p):
                found[own // 2, p.classes :] += sign * rng.multinomial(size * total, pi)
    return found / np.maximum(sizes.reshape(-1, 2).sum(axis=1), 1)[:, None]


def pair_means_of(counts: np.ndarray, label: np.ndarray, weight: np.ndarray, classes: int) -> np.ndarray:
    """The means c (c/2, P) of given samples: rows of `counts` (C, P) with labels 1 to c and weights (C,)."""
    found = np.zeros((classes // 2, counts.shape[1]))
    for pair in range(classes // 2):
        sign = np.where(label == 2 * pair + 1, 1.0, np.where(label == 2 * pair + 2, -1.0, 0.0))
        found[pair] = (weight * sign) @ counts / max(float(weight @ np.abs(sign)), 1e-300)
    return found


def trained(p: Parameters, gram: np.ndarray, route: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The route values (k, P) after training from `route`, with the samples drawn from `rng`."""
    means = pair_means(p, rng)
    return route + p.reach * np.concatenate([np.stack([gram @ one, -(gram @ one)]) for one in means])


def outranks(gram: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Booleans (draws, 2): a router ranks o1 (the other router: o2) above every irrelevant pattern."""
    value = means @ gram
    if gram.shape[0] == 2:
        return np.ones((len(means), 2), bool)
    return np.stack([value[:, 0] > value[:, 2:].max(axis=1), -value[:, 1] > -value[:, 2:].min(axis=1)], axis=1)


def gaussian_success(p: Parameters, gram: np.ndarray, draws: int = 20_000, seed: int = 0) -> float:
    """P(o1 outranks every q) under the central limit law of c at N_r samples, by `draws` normal vectors."""
    rng = np.random.default_rng(seed)
    spread = root(covariance(p))
    means = mean_counts(p) + rng.standard_normal((draws, len(spread))) @ spread.T / math.sqrt(p.N_r)
    return float(outranks(gram, means)[:, 0].mean())


def success(p: Parameters, gram: np.ndarray, draws: int = 2000, seed: int = 0) -> float:
    """P(o1 outranks every q) by `draws` exact draws of N_r samples."""
    return float(outranks(gram, sample_means(p, np.random.default_rng(seed), draws))[:, 0].mean())


def thresholds(p: Parameters, gram: np.ndarray, margin: float = 1.0) -> tuple[int, int]:
    """(l_1, l_2): 1 + the largest number of patches of a sample with +-<o1 - o2, q> > margin (1 - delta_d).

    At margin 1 these are the smallest l at which the population's routers select o1 in every sample of class +1, and o2
    in every one of class -1 (small initial routers).
    """
    require_two(p, "the threshold of l")
    tilt = world.tilt_of(p, gram)
    gap = 0.5 * (gram[0, 0] + gram[1, 1]) - gram[0, 1]
    return _most(p, tilt > margin * gap), _most(p, -tilt > margin * gap)


def l_star(p: Parameters, gram: np.ndarray) -> int:
    """The paper's l*: 1 + the largest number of patches with |<o1 - o2, q>| > (1 - delta_d)/2.

    Source: Chowdhury et al. 2023, Definition D.3.
    """
    require_two(p, "l* (Definition D.3)")
    tilt = world.tilt_of(p, gram)
    gap = 0.5 * (gram[0, 0] + gram[1, 1]) - gram[0, 1]
    return _most(p, np.abs(tilt) > gap / 2)


def _most(p: Parameters, member: np.ndarray) -> int:
    """1 + the largest number of patches of one sample that belong to the patterns `member`."""
    if p.composition == "deterministic":
        return 1 + int(np.array(p.counts, int).reshape(p.p)[member].sum())
    return 1 + sum(total for total, pi in world.groups(p) if (pi[member] > 0).any())


def samples_for(p: Parameters, gram: np.ndarray, chance: float = 0.9, draws: int = 40_000, seed: int = 0) -> float:
    """N_r at which P(o1 outranks every q) = `chance` under the central limit law.

    A gap is A_q + B_q/sqrt(N_r) with B normal, so that a draw succeeds for N_r >= max_q (-B_q/A_q)^2; the result is a
    quantile of this bound. It is infinite if an irrelevant pattern outranks o1 in the population.
    """
    spread = root(covariance(p))
    noise = np.random.default_rng(seed).standard_normal((draws, len(spread))) @ spread.T @ gram
    mean = gram @ mean_counts(p)
    gap = mean[0] - mean[2:]
    if (gap <= 0).any():
        return math.inf
    need = np.maximum(-(noise[:, :1] - noise[:, 2:]) / gap, 0.0).max(axis=1) ** 2
    return float(np.quantile(need, chance))

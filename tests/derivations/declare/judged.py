"""Comparisons in tests of declared models: generated claims, motions with samples, distributions of SGD."""

import numpy as np
from scipy import stats

from derivations.declare.claims import claims
from odesim.evidence.laboratory import Laboratory
from odesim.evidence.verification import verify


def answer(system, name, change=lambda claim: claim):
    (claim,) = (one for one in claims(system) if one.id == name)
    (variant,) = claim.variants
    return verify(Laboratory(system), change(claim), variant).answer


def control(claim):
    return claim.control(claim)


def assert_means_of(found, wanted, rounding=1e-9):
    """Means over batches (batches, ..) are what is wanted, within their errors and a part of the largest number."""
    size = max((float(np.abs(wanted[key]).max()) for key in found), default=0.0)
    for key, batches in found.items():
        error = batches.std(0, ddof=1) / np.sqrt(len(batches))
        assert error.max() < 6e-3 * size, key
        assert (np.abs(batches.mean(0) - wanted[key]) < 6 * error + rounding * size).all(), key


def least_chance(one, two):
    """The least p-value of Kolmogorov-Smirnov tests of two samples (replicas, numbers), and how many numbers move."""
    moves = one.std(0) > 1e-12
    chances = [stats.ks_2samp(x, y).pvalue for x, y in zip(one[:, moves].T, two[:, moves].T, strict=True)]
    return min(chances), int(moves.sum())


def assert_one_law(one, two):
    """Two samples (replicas, numbers) have one law, by Kolmogorov-Smirnov tests and by their means."""
    smallest, count = least_chance(one, two)
    assert smallest * count > 1e-3
    moves = one.std(0) > 1e-12
    z = (one.mean(0) - two.mean(0))[moves] / np.sqrt((one.var(0) + two.var(0))[moves] / len(one))
    assert np.abs(z).max() < 5


def committee():
    """A start of three students and two teachers: overlaps of vectors in thirty dimensions, and readouts."""
    rng = np.random.default_rng(1)
    vectors = rng.standard_normal((5, 30))
    vectors[3:] = np.linalg.qr(vectors[3:].T)[0].T
    vectors[:3] *= 0.6 / np.linalg.norm(vectors[:3], axis=1, keepdims=True)
    gram = vectors @ vectors.T
    return {"Q_ww": gram[:3, :3], "M_ww": gram[:3, 3:], "P_ww": gram[3:, 3:], "a": np.array([0.5, 0.9, -0.3])}


def z_of_laws(one, two):
    """z of the differences of means and of variances of two samples (replicas, numbers), for those that move.

    Numbers that rest in both samples have no z. They must be equal.
    """
    moves = np.hypot(one.std(0), two.std(0)) > 1e-9
    np.testing.assert_allclose(one.mean(0)[~moves], two.mean(0)[~moves], atol=1e-9)
    one, two = one[:, moves], two[:, moves]
    means = (one.mean(0) - two.mean(0)) / np.sqrt((one.var(0) + two.var(0)) / len(one))
    squares = [(x - x.mean(0)) ** 2 for x in (one, two)]
    error = np.sqrt((squares[0].var(0) + squares[1].var(0)) / len(one))
    return np.concatenate([means, (squares[0].mean(0) - squares[1].mean(0)) / error])


def z_of_runs(run, flow, names):
    """z of the means of replicas against a flow, at all saved times but the first."""
    pairs = [(np.asarray(run[name])[:, 1:], np.asarray(flow[name])[1:]) for name in names]
    return np.concatenate([((v.mean(0) - w) / (v.std(0, ddof=1) / np.sqrt(len(v)))).ravel() for v, w in pairs])


def z_scores(replicas, wanted):
    """z of the means of replicas (replicas, ..) against numbers (..) that have no error, for those that vary."""
    replicas, wanted = np.asarray(replicas), np.asarray(wanted)
    spread = replicas.std(0, ddof=1)
    moves = spread > 1e-9 * max(1.0, float(np.abs(wanted).max()))
    return ((replicas.mean(0) - wanted) * np.sqrt(len(replicas)))[moves] / spread[moves]


def root_mean_square(z):
    return float(np.sqrt(np.mean(np.square(z))))

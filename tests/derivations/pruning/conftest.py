"""Instances with known answers, and a plain NumPy program of one step for comparison."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest

from derivations.pruning import initial
from derivations.pruning.parameters import Parameters


def reference_arrays():
    """One expert, d = 22: h = (.25, -1.5, -.5 .. .5), four neurons with all entries .1, .2, -.1, .05."""
    h = np.concatenate([[0.25, -1.5], np.linspace(-0.5, 0.5, 20)])
    u = np.repeat(np.array([0.1, 0.2, -0.1, 0.05])[:, None], 22, axis=1)
    return {"w": h[None], "W": u[None], "a": np.array([1.0])}


def moments_start(data, h, sigma, pi, n, l):
    """One expert of head sign +1 with given alignments and activations, rates 1."""
    p = Parameters(d=h.size, n=n, k=1, l=l, m=1, data=data, eta_r=1.0, eta_e=1.0)
    return initial.from_alignments(p, h[None], sigma[None, None], np.array([1.0]), pi=pi)


def enumerate_moments(h, sigma, pi, count, l, distinct):
    """(E[sbar | y], dPhi/dh, dPhi/dsigma) by going through all tuples of `count` irrelevant tokens."""
    N = pi.size
    mean, dh, g = np.zeros(2), np.zeros(N + 2), np.zeros(N + 2)
    tuples = itertools.permutations(range(N), count) if distinct else itertools.product(range(N), repeat=count)
    for chosen in tuples:
        chance = 1 / math.perm(N, count) if distinct else float(np.prod(pi[list(chosen)]))
        for task in (0, 1):
            tokens = np.array([task, *(q + 2 for q in chosen)])
            kept = tokens[np.argsort(-h[tokens], kind="stable")[:l]]
            gate = np.exp(h[kept]) / np.exp(h[kept]).sum()
            pooled = float((gate * sigma[kept]).sum())
            mean[task] += chance * pooled
            signed = 0.5 * (1 - 2 * task) * chance
            np.add.at(g, kept, signed * gate)
            np.add.at(dh, kept, signed * gate * (sigma[kept] - pooled))
    return mean, dh, g


def random_arrays(seed, d=6, m=3, k=1, spread=0.3, size=0.5):
    """Random experts: the small instances in which ties slide."""
    rng = np.random.default_rng(seed)
    w, neurons = spread * rng.standard_normal((k, d)), size * rng.standard_normal((k, m, d))
    return {"w": w, "W": neurons, "a": np.where(np.arange(k) % 2 == 0, 1.0, -1.0)}


@pytest.fixture(scope="session")
def tools():
    """The functions above, for tests in other files."""
    return SimpleNamespace(
        reference_arrays=reference_arrays,
        moments_start=moments_start,
        enumerate_moments=enumerate_moments,
        random_arrays=random_arrays,
    )

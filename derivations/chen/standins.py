"""Labelled substitutes for the paper's experiments on images and languages, whose data are not in this project.

`rotated`: scikit-learn's digits; the label states if the image is rotated by 30 degrees. The cluster of an image is its
digit. `languages`: three synthetic languages in 768 dimensions, with three means and three linear rules for the label.
Both are trained with the paper's procedure: a mixture with top-1 routing by a linear router, cubic experts with one
layer, normalised gradient descent for the experts, plain descent for the router, a load-balancing term. Source: Chen et
al. 2022, Section 5.2, Tables 2 and 10.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import expit

from derivations.chen import model
from derivations.chen.parameters import ACTIVATIONS
from derivations.chen.route import entropy

EDGE, PATCH, STRIDE = 16, 8, 4
"""The images are scaled to 16 x 16, and cut into nine overlapping patches of 8 x 8."""


@dataclasses.dataclass(frozen=True)
class Sample:
    """Patches (B, P, d), the whole input (B, D) for the router, labels (B,) of +-1, clusters (B,)."""

    patches: np.ndarray
    whole: np.ndarray
    labels: np.ndarray
    clusters: np.ndarray

    def part(self, index: np.ndarray) -> "Sample":
        """Some of the examples."""
        return Sample(*(getattr(self, field.name)[index] for field in dataclasses.fields(self)))


def rotated(rng: np.random.Generator) -> tuple[Sample, Sample]:
    """Training and test digits, half of each turned by 30 degrees; no image is in both.

    Raises `ImportError` without scikit-learn (the extra `digits`).
    """
    from scipy.ndimage import gaussian_filter, rotate, zoom
    from sklearn.datasets import load_digits  # pyright: ignore[reportMissingImports]

    found: Any = load_digits()
    large: Any = zoom(found.images / 16.0, (1, 2, 2), order=1)
    turned: Any = rotate(large, 30, axes=(1, 2), reshape=False, order=1)
    is_turned = rng.random(len(large)) < 0.5
    images = gaussian_filter(np.where(is_turned[:, None, None], turned, large), (0, 0.7, 0.7))
    corners = range(0, EDGE - PATCH + 1, STRIDE)
    patches = np.stack(
        [images[:, a : a + PATCH, b : b + PATCH].reshape(len(images), -1) for a in corners for b in corners], axis=1
    )
    whole = images.reshape(len(images), -1)
    whole = whole - whole.mean(axis=0)
    sample = Sample(patches, whole / whole.std(), np.where(is_turned, 1.0, -1.0), found.target)
    order = rng.permutation(len(images))
    return sample.part(order[:1300]), sample.part(order[1300:])


def languages(rng: np.random.Generator, count: int = 4000, d: int = 768) -> tuple[Sample, Sample]:
    """Training and test sentences x = 4 mean_c + 1.5 y (rule_c - b rule_{c+1}) + noise, b = 1 with probability .8.

    The rule of one language is wrong for the previous language, so that no linear rule is right for all three.
    """
    frame = np.linalg.qr(rng.standard_normal((d, 6)))[0].T
    clusters = rng.choice(3, 2 * count, p=(0.4, 0.4, 0.2))
    labels = np.where(rng.random(2 * count) < 0.5, 1.0, -1.0)
    x = 4.0 * frame[clusters] + 0.05 * rng.standard_normal((2 * count, d))
    x += 1.5 * labels[:, None] * frame[3 + clusters]
    x -= 1.5 * labels[:, None] * frame[3 + (clusters + 1) % 3] * (rng.random(2 * count) < 0.8)[:, None]
    sample = Sample(x[:, None, :], x, labels, clusters)
    return sample.part(np.arange(count)), sample.part(np.arange(count, 2 * count))


@dataclasses.dataclass(frozen=True)
class Network:
    """Filters (M, J, d) of the experts and the router (M, D)."""

    filters: np.ndarray
    router: np.ndarray


def forward(net: Network, s: Sample, kind: int, noise: np.ndarray | float = 0.0) -> tuple[np.ndarray, ...]:
    """(chosen (B,), gate probabilities (B, M), outputs f of the chosen expert (B,)); top-1 of router plus noise."""
    scores = s.whole @ net.router.T
    chosen = (scores + noise).argmax(axis=1)
    gate = np.exp(scores - scores.max(axis=1, keepdims=True))
    gate /= gate.sum(axis=1, keepdims=True)
    outputs = np.empty(len(s.labels))
    for m, filters in enumerate(net.filters):
        own = chosen == m
        outputs[own] = model.activation(s.patches[own] @ filters.T, kind, 3.0)[0].sum(axis=(1, 2))
    return chosen, gate, outputs


def descent(net: Network, s: Sample, kind: int, noise: np.ndarray, balance: float) -> tuple[np.ndarray, np.ndarray]:
    """Gradients of the mean logistic loss of y pi f, and of `balance` M sum_m share_m pi_m: filters, router."""
    chosen, gate, outputs = forward(net, s, kind, noise)
    B, M = gate.shape
    taken = gate[np.arange(B), chosen]
    pull = -s.labels * expit(-s.labels * taken * outputs) / B
    filters = np.zeros_like(net.filters)
    for m, weights in enumerate(net.filters):
        own = chosen == m
        slope = model.activation(s.patches[own] @ weights.T, kind, 3.0)[1]
        filters[m] = np.einsum("bpj,bpd->jd", slope * (pull * taken)[own, None, None], s.patches[own])
    picked = chosen[:, None] == np.arange(M)
    scores = (pull * outputs * taken)[:, None] * (picked - gate)
    share = balance * M / B * picked.mean(axis=0)
    scores += gate * (share - (gate * share).sum(axis=1, keepdims=True))
    return filters, scores.T @ s.whole


def train(
    s: Sample, experts: int, activation: str, rng: np.random.Generator, epochs: int, *, rate: float = 0.02,
    router_rate: float = 0.1, batch: int = 128, width: int = 16, balance: float = 0.01,
) -> Network:  # fmt: skip
    """Mini-batches with fresh routing noise U[0, 1]; both step sizes fall linearly to zero."""
    kind, d = ACTIVATIONS.index(activation), s.patches.shape[-1]
    net = Network(rng.standard_normal((experts, width, d)) / d, np.zeros((experts, s.whole.shape[1])))
    count, steps = len(s.labels), epochs * (len(s.labels) // batch)
    order = np.zeros(0, int)
    for t in range(steps):
        if len(order) < batch:
            order = rng.permutation(count)
        part, order = s.part(order[:batch]), order[batch:]
        filters, router = descent(net, part, kind, rng.random((batch, experts)), balance)
        norms = np.sqrt((filters**2).sum(axis=(1, 2), keepdims=True))
        unit = np.divide(filters, norms, out=np.zeros_like(filters), where=norms > 0)  # an expert without samples rests
        left = 1.0 - t / steps
        net = Network(net.filters - left * rate * unit, net.router - left * router_rate * router)
    return net


def measured(net: Network, s: Sample, activation: str) -> dict[str, Any]:
    """Accuracy without noise, the dispatch (clusters, experts), and its entropy (Section 5.1)."""
    chosen, _, outputs = forward(net, s, ACTIVATIONS.index(activation))
    counts = np.zeros((int(s.clusters.max()) + 1, len(net.filters)))
    np.add.at(counts, (s.clusters, chosen), 1.0)
    found: Mapping[str, Any] = {"accuracy": float((s.labels * outputs > 0).mean()), "dispatch": counts.tolist()}
    return {**found, "entropy": entropy(counts)}

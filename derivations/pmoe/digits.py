"""A labelled substitute for the paper's MNIST experiments: grids of 16 scikit-learn digits, trained as in the paper.

Digit 1 is o1, digit 0 is o2, the others are irrelevant. Patches are raw pixels over 16 (8 x 8), and training and test
images are different. MNIST itself is not in this project. Source: Chowdhury et al. 2023, Section 5.1.
"""

import dataclasses
from typing import Any

import numpy as np

from derivations.pmoe import model

TRAINED_ON = 1200
"""Number of the 1797 images for training, the first ones; the rest is for tests."""


@dataclasses.dataclass(frozen=True)
class Network:
    """hidden (k, M, d), out (k, M), routers (k, d), patches l per expert, and the gate's number (0 one, 1 softmax)."""

    hidden: np.ndarray
    out: np.ndarray
    routers: np.ndarray
    l: int  # noqa: E741
    gate: int


def images() -> tuple[np.ndarray, np.ndarray]:
    """(pixels (1797, 64) in [0, 1], digits).  Raises `ImportError` without scikit-learn (the extra `digits`)."""
    from sklearn.datasets import load_digits  # pyright: ignore[reportMissingImports]

    found: Any = load_digits()
    return found.data / 16.0, found.target


def grids(
    pixels: np.ndarray, digits: np.ndarray, count: int, rng: np.random.Generator, n: int = 16
) -> tuple[np.ndarray, np.ndarray]:
    """`count` class-balanced samples: patches (n, count, d), the discriminative one first, and labels."""
    labels = np.where(np.arange(count) % 2 == 0, 1.0, -1.0)
    rest = np.flatnonzero(digits >= 2)
    index = rng.choice(rest, (n, count))
    for digit, sign in ((1, 1.0), (0, -1.0)):
        own = labels == sign
        index[0, own] = rng.choice(np.flatnonzero(digits == digit), own.sum())
    return pixels[index], labels


def start(mode: str, d: int, rng: np.random.Generator) -> Network:
    """The paper's sizes: CNN 40 neurons; separate 2 x 20, l = 2; joint 8 x 5, l = 6; initial standard deviations by
    equation (7).
    """
    k, each, taken, gate = {"cnn": (1, 40, 16, 0), "separate": (2, 20, 2, 0), "joint": (8, 5, 6, 1)}[mode]
    hidden = rng.standard_normal((k, each, d)) / np.sqrt(k * each)
    routers = rng.standard_normal((k, d)) / (16**2 * np.log(16) * np.sqrt(d))
    return Network(hidden, rng.standard_normal((k, each)), routers, taken, gate)


def forward(net: Network, x: np.ndarray, labels: np.ndarray) -> tuple[Any, ...]:
    """(slopes of the neurons, experts, routers, margin) of patches x (n, B, d)."""
    flat = x.reshape(-1, x.shape[-1])
    fields = (net.hidden.reshape(-1, x.shape[-1]) @ flat.T).reshape(*net.out.shape, *x.shape[:2])
    route = (net.routers @ flat.T).reshape(len(net.routers), *x.shape[:2])
    value, slope = model.activate(fields)
    response = model.respond(net.out, value)
    return slope, *model.weigh_joint(route, response, np.ones(x.shape[:2]), labels, net.l, net.gate)


def train(
    mode: str,
    x: np.ndarray,
    labels: np.ndarray,
    rng: np.random.Generator,
    epochs: int,
    rate: float = 0.2,
    size: int = 20,
) -> Network:
    """Epochs of mini-batch descent; in separate training the routers are trained first, by the linear loss over all
    samples.
    """
    net, count = start(mode, x.shape[-1], rng), len(labels)
    if mode == "separate":  # the loss is linear: 100 epochs are one displacement by the sample mean
        pull = (labels[:, None] * x.sum(axis=0)).mean(axis=0)
        net = dataclasses.replace(net, routers=net.routers + np.array([[1.0], [-1.0]]) * 100 * rate * pull)
    for _ in range(epochs):
        order = rng.permutation(count)
        for first in range(0, count, size):
            part = order[first : first + size]
            net = step(net, x[:, part], labels[part], rate, mode == "joint")
    return net


def step(net: Network, x: np.ndarray, labels: np.ndarray, rate: float, moving: bool) -> Network:
    """One step of descent on a batch."""
    slope, experts, routers, _ = forward(net, x, labels)
    flat, share = x.reshape(-1, x.shape[-1]), rate / len(labels)
    change = net.out[..., None, None] * experts[:, None] * slope
    hidden = net.hidden + share * (change.reshape(-1, len(flat)) @ flat).reshape(net.hidden.shape)
    moved = net.routers + share * (routers.reshape(len(routers), -1) @ flat) if moving else net.routers
    return dataclasses.replace(net, hidden=hidden, routers=moved)


def accuracy(net: Network, x: np.ndarray, labels: np.ndarray) -> float:
    """The share of positive margins."""
    return float((forward(net, x, labels)[-1] > 0).mean())


def top_gate(net: Network, x: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """For each class the largest share, over experts, of samples whose discriminative patch (the first) ranks first."""
    route = np.einsum("kd,nbd->knb", net.routers, x)
    first = route[:, 0] >= route.max(axis=1)
    return float(first[:, labels > 0].mean(axis=1).max()), float(first[:, labels < 0].mean(axis=1).max())

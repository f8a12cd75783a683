"""A labelled substitute for the paper's experiments on images, whose data and networks are not in this project.

Scikit-learn's digits (8 x 8 pixels) become tokens of an orthonormal dictionary: an image is cut into 16 patches of 2 x
2 pixels, a patch is replaced by the nearest of eight codes (k-means over the patches of the training images), and the
token of code c at position j is pattern 8 j + c. So d = 128 and n = 16, with the frequencies of real images. Experts
are pre-trained to tell even digits from odd ones (SGD on the hinge), and fine-tuned to tell one digit from another by
the stages of the system, with the gradient of 1 - y f of the theorems. There is no single task token: the classes
differ in many tokens, so that proficiency has no meaning and the theorems' assumptions are violated. Source: Chowdhury
et al. 2024, Algorithm 1 and sections 5.2 and 5.3 (V-MoE and E3-MoE on CIFAR and ImageNet).
"""

import dataclasses
from typing import Any

import numpy as np

from derivations.contract import Initial
from derivations.pruning import criteria
from derivations.pruning.initial import signs
from derivations.pruning.stages import with_constants

EDGE, SIDE, CODES = 8, 2, 8
"""Pixels of an image and of a patch along an edge, and codes of the dictionary at every position."""
PATTERNS = CODES * (EDGE // SIDE) ** 2
"""d: one pattern for every code at every position."""
TRAINED_ON = 1300
"""Number of images for training, of 1797; the rest is for tests."""


@dataclasses.dataclass(frozen=True)
class Images:
    """Tokens (S, n) of images as pattern numbers, and the digits (S,) in them."""

    tokens: np.ndarray
    digits: np.ndarray

    def parity(self) -> tuple[np.ndarray, np.ndarray]:
        """All images with y = +1 for an even digit: (tokens, labels)."""
        return self.tokens, np.where(self.digits % 2 == 0, 1.0, -1.0)

    def pair(self, first: int, second: int) -> tuple[np.ndarray, np.ndarray]:
        """The images of two digits, y = +1 for the first: (tokens, labels)."""
        own = (self.digits == first) | (self.digits == second)
        return self.tokens[own], np.where(self.digits[own] == first, 1.0, -1.0)


def patches(images: np.ndarray) -> np.ndarray:
    """The 2 x 2 patches (S, 16, 4) of images (S, 8, 8), row by row."""
    count = EDGE // SIDE
    cut = images.reshape(-1, count, SIDE, count, SIDE).transpose(0, 1, 3, 2, 4)
    return cut.reshape(-1, count**2, SIDE**2)


def images(rng: np.random.Generator) -> tuple[Images, Images]:
    """Training and test images as tokens, divided at random; the codes are those of the training images.

    Raises `ImportError` without scikit-learn (the extra `digits`).
    """
    from sklearn.cluster import KMeans  # pyright: ignore[reportMissingImports]
    from sklearn.datasets import load_digits  # pyright: ignore[reportMissingImports]

    found: Any = load_digits()
    cut, order = patches(found.images / 16.0), rng.permutation(len(found.target))
    pieces = cut[order[:TRAINED_ON]].reshape(-1, SIDE**2)
    codes = KMeans(CODES, random_state=int(rng.integers(2**31))).fit(pieces)
    code = np.asarray(codes.predict(cut.reshape(-1, SIDE**2))).reshape(cut.shape[:2])
    tokens = (CODES * np.arange(cut.shape[1]) + code).astype(np.int64)
    parts = (order[:TRAINED_ON], order[TRAINED_ON:])
    train, test = (Images(tokens[part], found.target[part]) for part in parts)
    return train, test


def experts(rng: np.random.Generator, k: int = 16, m: int = 16, size: float = 0.1) -> dict[str, np.ndarray]:
    """Untrained experts as the arrays of an initial file: routers `w`, neurons `W` of N(0, size^2), head signs `a`."""
    routers, neurons = rng.standard_normal((k, PATTERNS)), rng.standard_normal((k, m, PATTERNS))
    return {"w": size * routers, "W": size * neurons, "a": signs(k)}


def accuracies(trained: Initial, table: tuple[np.ndarray, np.ndarray], ranks: np.ndarray) -> np.ndarray:
    """Accuracy on a table (tokens, labels) with the best experts of each sign by `ranks` (k,): all, one fewer, .. 1.

    Source: Chowdhury et al. 2024, Algorithm 1, step 3, and the accuracy curves of section 5.3.
    """
    held_out = with_constants(trained, tokens=table[0], labels=table[1])
    answers, _, _, labels, chance = criteria.pooled(held_out)
    a = np.asarray(trained.constants["a"])
    half = int((a > 0).sum())
    kept = (criteria.keep(a, ranks, pruned / half) for pruned in range(half))
    return np.array([1 - criteria.error_of(answers, a, labels, chance, of)[0] for of in kept])

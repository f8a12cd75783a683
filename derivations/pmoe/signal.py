"""The arc-cosine kernel of pairs of patterns, and the signal of o1 under this kernel."""

import math
from typing import Any

import numpy as np


def kappa0(rho: Any) -> Any:
    """E[1(u >= 0) 1(u' >= 0)] = 1/4 + arcsin(rho)/(2 pi) at correlation rho."""
    return 0.25 + np.arcsin(rho) / (2 * math.pi)


def kernel(gram: np.ndarray) -> np.ndarray:
    """K(z, z') = <z, z'> kappa0(cosine), with cosines of exactly 1 on the diagonal."""
    norm = np.sqrt(np.diag(gram))
    cosine = gram / (norm[:, None] * norm)
    np.fill_diagonal(cosine, 1.0)
    return gram * kappa0(cosine)


def signal_constants(gram: np.ndarray) -> tuple[float, float]:
    """(Schur complement of K at o1, the paper's gamma^3 = (p sqrt delta)^(-3)): the exact constant and its bound.

    For a given o1 entry of the drive, c' K c >= Schur c(o1)^2; for orthonormal patterns Schur is 1/2 for any p.
    """
    metric = kernel(gram)
    rest = np.linalg.pinv(metric[1:, 1:], hermitian=True)
    schur = float(metric[0, 0] - metric[0, 1:] @ rest @ metric[1:, 0])
    norm = np.sqrt(np.diag(gram))
    cosine = gram / (norm[:, None] * norm)
    largest = max(cosine[0, 1] ** 2, float((cosine[:2, 2:] ** 2).max(initial=0.0)))
    return schur, float((max(len(gram) - 2, 1) ** -1 * math.sqrt(1 - largest)) ** 3)

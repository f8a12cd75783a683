"""Measurements of routing probabilities: steepness for uniform and other noise, and comparison with softmax."""

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.chen import route


def softmax(h: np.ndarray) -> np.ndarray:
    """Softmax exp(h)/sum exp(h)."""
    raised = np.exp(h - h.max(axis=-1, keepdims=True))
    return raised / raised.sum(axis=-1, keepdims=True)


def steepness(lab: Any, point: Mapping[str, Any], seed: int, law: Any = route.probabilities) -> float:
    """Return the largest |p(h) - p(h')|_inf/|h - h'|_inf over random pairs and over a worst case.

    In the worst case the logits are equal, one rises and the others fall. The constant is attained there. The ratio is
    then also taken in the limit h' -> h, where it is the largest row sum of the Jacobian.
    """
    m, rng = point["M"], np.random.default_rng(seed + 10_007 * lab.seed)
    h = rng.uniform(-1, 1, (400, m))
    change = rng.choice([-1.0, 1.0], (400, m)) * 10 ** rng.uniform(-4, 0, (400, 1))
    change[:100] = 1e-4 * (2 * np.eye(m)[rng.integers(m, size=100)] - 1)
    h[:100] *= 0.0
    ratio = np.abs(law(h + change) - law(h)).max(axis=1) / np.abs(change).max(axis=1)
    return max(float(ratio.max()), float(np.abs(SLOPES[law](np.zeros(m))).sum(axis=1).max()))


def narrow(h: np.ndarray) -> np.ndarray:
    """Return the routing probabilities under noise that is narrower by the factor M^2, so that its density is M^2."""
    return route.probabilities(h * h.shape[-1] ** 2)


def softmax_slope(h: np.ndarray) -> np.ndarray:
    """Jacobian of the softmax."""
    pi = softmax(h)
    return np.diag(pi) - np.outer(pi, pi)


SLOPES: dict[Any, Any] = {
    route.probabilities: route.jacobian,
    softmax: softmax_slope,
    narrow: lambda h: h.size**2 * route.jacobian(h * h.size**2),
}
"""The Jacobians (M, M) of the routing laws at logits (M,)."""


def spread(lab: Any, point: Mapping[str, Any], seed: int, law: Any = route.probabilities) -> float:
    """Return the largest |p_m - p_m'|/|h_m - h_m'| over random logits and pairs above all others.

    For two equal logits above all others the ratio is also taken in the limit of a small difference.
    """
    m, rng = point["M"], np.random.default_rng(seed + 10_007 * lab.seed)
    h = rng.uniform(-1, 1, (400, m))
    h[:200, 2:] = -2.0
    h[:100, 1] = h[:100, 0] + 1e-4
    p = law(h)
    pairs = list(itertools.combinations(range(m), 2))
    gaps = np.stack([np.abs(h[:, a] - h[:, b]) for a, b in pairs])
    rises = np.stack([np.abs(p[:, a] - p[:, b]) for a, b in pairs])
    above = np.r_[0.0, 0.0, np.full(m - 2, -2.0)]
    slope = SLOPES[law](above)
    return max(float((rises[gaps > 1e-9] / gaps[gaps > 1e-9]).max()), float(slope[0, 0] - slope[1, 0]))


def normal(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Density and distribution function of normal noise of standard deviation 0.3."""
    from scipy.special import ndtr

    return np.exp(-((z / 0.3) ** 2) / 2) / (0.3 * math.sqrt(2 * math.pi)), ndtr(z / 0.3)


def exponential(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Density and distribution function of exponential noise of mean one half."""
    tail = np.where(z > 0, np.exp(-2 * np.maximum(z, 0.0)), 1.0)
    return np.where(z > 0, 2 * tail, 0.0), 1 - tail


NOISES: dict[str, tuple[Any, float]] = {
    "normal": (normal, 1 / (0.3 * math.sqrt(2 * math.pi))),
    "exponential": (exponential, 2.0),
}
"""Laws of the noise of the router, and the bound kappa of their densities."""


def any_noise(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the largest |p(h) - p(h')|_inf/(kappa M^2 |h - h'|_inf) for noise of any distribution.

    The probabilities are p_m = E prod_l F(h_m + r - h_l), by quadrature. `narrow` divides the noise by M^2 and keeps
    kappa (control).
    """
    law, kappa = NOISES[point["noise"]]
    m, rng = point["M"], np.random.default_rng(seed + 10_007 * lab.seed)
    scale = m**2 if point.get("narrow") else 1
    r = np.linspace(-3.0, 8.0, 4001)
    density = law(r)[0]

    def chances(h: np.ndarray) -> np.ndarray:
        gaps = scale * (h[:, :, None] - h[:, None, :])
        below = law(gaps[..., None] + r)[1]
        below[:, np.arange(m), np.arange(m)] = 1.0
        return np.trapezoid(density * below.prod(axis=2), r, axis=-1)

    h = rng.uniform(-1, 1, (12, m)) * (np.arange(12) > 0)[:, None]
    change = 1e-4 * (2 * np.eye(m)[np.arange(12) % m] - 1)
    return float(np.abs(chances(h + change) - chances(h)).max() / (np.abs(change).max() * kappa * m**2))


def per_square(measure: Any) -> Any:
    """Return a measurement of a ratio over M^2, the constant of the paper."""
    return lambda lab, point, seed: measure(lab, point, seed) / point["M"] ** 2


def chosen_gate(lab: Any, point: Mapping[str, Any], seed: int, reach: float = 1.0) -> float:
    """Return the smallest softmax of an expert that can be chosen, times 1 + e (M - 1).

    An expert can be chosen if its logit is within `reach` of the largest one.
    """
    m, rng = point["M"], np.random.default_rng(seed)
    h = rng.uniform(-reach, 0, (2000, m))
    h[:, 1:][:500] = 0.0
    h[:500, 0] = -reach
    top = h.max(axis=1, keepdims=True)
    gates = np.where(h >= top - reach, softmax(h), 1.0)
    return float(gates.min() * (1 + math.e * (m - 1)))


def gate_spread(lab: Any, point: Mapping[str, Any], seed: int) -> float:
    """Return the largest |pi_m - pi_m'|/tanh(|h_m - h_m'|/2)."""
    h = np.random.default_rng(seed).uniform(-2, 2, (2000, point["M"]))
    h[:500, 2:] -= 20
    pi = softmax(point.get("scale", 1.0) * h)
    pairs = list(itertools.combinations(range(point["M"]), 2))
    return float(max((np.abs(pi[:, a] - pi[:, b]) / np.tanh(np.abs(h[:, a] - h[:, b]) / 2)).max() for a, b in pairs))

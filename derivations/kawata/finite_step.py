"""Effects of a finite step: contraction, diffusion, and the critical step size d^{-k/2}.

One step of size h (1/J and routing included) changes an overlap by h (drift) - (h^2/2) D m on average, with
D = E|g|^2 ~ d F, F = sum_c p_c E[y^2 sigma'^2], and spreads it by h sqrt(S), S = E[(u.g)^2].  Drift beats contraction
below h = 2 k p alpha beta kappa^{k-2} / (d F), of order d^{-k/2} at the start; there, with X = sqrt(d) kappa,
h = a d^{-k/2} and s = steps/d^{k-1},

    dX = (a k p alpha beta X^{k-1} - (a^2/2) F X) ds + a sqrt(S) dB.

Source: Kawata et al. 2025, Lemma C.7, whose noise terms these are, worked out at leading order.
"""

import numpy as np

from derivations.contract import Initial
from derivations.kawata.parameters import ACTIVATIONS, Parameters, exponent, links, weights_of_global
from derivations.kawata.shifted import shifted


def label_power(p: Parameters) -> float:
    """sum_c p_c E[y^2 | c] = mean of |f_c|^2 + s_c^2 |g|^2, plus zeta^2."""
    squares = [sum(v * v for v in row) for row in links(p)]
    s = weights_of_global(p)
    return float(np.mean([squares[c] + s[c] ** 2 * squares[-1] for c in range(p.C)]) + p.zeta**2)


def slope_power(p: Parameters, b: np.ndarray, series: np.ndarray) -> np.ndarray:
    """E[sigma'(Z + b)^2] of every neuron, by quadrature (ReLU: Phi(b))."""
    from scipy.special import ndtr

    from derivations.kawata import model

    if p.activation == "relu":
        return ndtr(b)
    x, w = np.polynomial.hermite_e.hermegauss(80)
    kind = ACTIVATIONS.index(p.activation)
    values = [model.slope(z + b, series, kind) ** 2 for z in x]
    return np.tensordot(w / w.sum(), np.array(values), axes=1)


def noise_strength(initial: Initial) -> np.ndarray:
    """F of every neuron at small overlaps (N,)."""
    p, c = initial.parameters, initial.constants
    return c["a"] ** 2 * label_power(p) * slope_power(p, c["b"], c["sigma"])


def critical_step(initial: Initial) -> np.ndarray:
    """The step size below which the drift of each neuron's best local task beats its contraction (N,); 0 if none grows.

    In units of `--step-size`: h = step/(J M) for a routed sample of Phase I.
    """
    p, c = initial.parameters, initial.constants
    k = exponent(p)
    alpha = np.array(shifted(np, ACTIVATIONS.index(p.activation), c["a"], c["b"], c["sigma"], k)[k])
    beta = np.array([row[k] if len(row) > k else 0.0 for row in links(p)[: p.C]])
    kappa = initial.state["kappa"]
    growth = (
        alpha[:, None] * beta * (np.abs(kappa) ** (k - 2) if k % 2 == 0 else np.sign(kappa) * np.abs(kappa) ** (k - 2))
    )
    best = np.maximum(growth.max(axis=1), 0.0)
    return 2 * k * best / (p.C * p.d * noise_strength(initial)) * p.J * p.M


def recovery_chance(
    a: float, x: float, k: int, drift: float, F: float, S: float, *, until: float, replicas: int,
    rng: np.random.Generator,
) -> float:  # fmt: skip
    """The share of paths of the critical equation from X = x that diverge by s = `until`.

    drift = p alpha beta. Euler-Maruyama with steps that shrink as X grows; a path counts as soon as X^{k-2} a k drift
    would make it diverge within a hundredth of the remaining time.
    """
    X, s = np.full(replicas, float(x)), np.zeros(replicas)
    gone = np.zeros(replicas, bool)
    while not (gone | (s >= until)).all():
        rate = a * k * drift * np.abs(X) ** (k - 2) + a * a * F / 2 + a * a * S / np.maximum(X * X, 1.0)
        h = np.minimum(0.02 / rate, until - s)
        move = ~gone & (s < until)
        noise = a * np.sqrt(S * np.maximum(h, 0.0)) * rng.standard_normal(replicas)
        step = (a * k * drift * X ** (k - 1) - a * a / 2 * F * X) * h + noise
        X, s = np.where(move, X + step, X), np.where(move, s + h, s)
        gone |= (X > 0) & (100.0 < a * k * drift * (k - 2) * np.abs(X) ** (k - 2) * np.maximum(until - s, 1e-9))
    return float(gone.mean())

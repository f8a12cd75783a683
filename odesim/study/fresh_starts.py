"""Distribution of the start if every replica of SGD draws its own weights: the mean start and its covariance of order
1/d.

For directions that are uniform on the sphere, w_a . v with a fixed vector v has the mean 0 and

    d Cov(w_a . v, w_a . v') = |w_a|^2 v . v',        d Var(w_a . w_b) = |w_a|^2 |w_b|^2,

all other entries are uncorrelated. Drawn starts test whether a system has this distribution. If not, mean and
covariance are those of many draws.
"""

import numpy as np

from derivations.contract import Initial, ScalarModel, load, packed
from odesim.errors import UsageError
from odesim.flow.problem import Problem
from odesim.machine import streams
from odesim.sgd.increments import Increments
from odesim.study.local_dynamics import Map

TRIED = 256
"""Number of draws that test whether directions are uniform."""
DRAWS = 8192
"""Number of draws of a start with another distribution, whose covariance is then accurate to 1.6 %."""
MISSED = 6.0
"""z-score beyond which a drawn moment contradicts the closed form, over all entries."""
SPREAD = 4.0
"""Largest variance of an entry, times d, in units of the squared size of the state. A start with a larger spread is not
a fluctuation of order 1/sqrt(d).
"""


def fresh_start(problem: Problem, increments: Increments, d: float) -> tuple[np.ndarray, np.ndarray, str]:
    """Return the mean start (P,), d times its covariance (P, P), and their origin.

    Raises `UsageError` if starts differ by more than 1/sqrt(d), as random readouts do.
    """
    ahead = Map(problem, increments)
    starts = np.array([increments.packed(_drawn(problem, k)) for k in range(TRIED)])
    closed = _uniform(increments, problem.initial)
    if closed is not None and _agrees(starts, *closed, d):
        mean, covariance, source = *closed, "directions uniform on the sphere"
    else:
        later_starts = [increments.packed(_drawn(problem, k)) for k in range(TRIED, DRAWS)]
        starts = np.concatenate([starts, np.array(later_starts)])
        mean, covariance = starts.mean(0), d * np.cov(starts.T)
        source = f"{DRAWS} drawn starts"
    slopes = ahead.jacobian(mean)
    size = float(np.abs(mean).max(initial=0.0))
    if np.diag(covariance).max(initial=0.0) > SPREAD * d**0.5 * size**2:
        raise UsageError(
            "--fresh-initial: the starts of this model differ by more than 1/sqrt(d), so that a band around one path "
            "does not describe them; leave it out and choose a --seed"
        )
    return ahead(mean[None])[0], slopes @ covariance @ slopes.T, source


def _drawn(problem: Problem, replica: int) -> Initial:
    """The initial condition of a replica."""
    case = problem.case
    rng = streams.generator(case.seed, "fresh start", replica)
    return load(case.system.stage(case.stage).enter)(case.parameters, None, rng)


def _uniform(increments: Increments, initial: Initial) -> tuple[np.ndarray, np.ndarray] | None:
    """Packed mean and covariance (times d) of uniform directions; None for inputs with several eigenspaces."""
    gram = increments.model.place(initial)
    if gram.ndim != 2:
        return None
    trained, fixed = increments.model.sizes(increments.parameters)
    n = trained + fixed
    mean = gram.copy()
    mean[:trained] = 0.0
    mean[:, :trained] = 0.0
    np.fill_diagonal(mean, np.diag(gram))
    scalars = increments.model.scalars(initial) if isinstance(increments.model, ScalarModel) else np.empty(0)
    covariance = np.zeros((n, n, n, n))
    for a in range(trained):
        for k in range(n):
            for m in range(n):
                if a not in (k, m) and (k == m or min(k, m) >= trained):
                    value = mean[a, a] * mean[k, m]
                    for first in ((a, k), (k, a)):
                        for second in ((a, m), (m, a)):
                            covariance[(*first, *second)] = value
    full = np.zeros((n * n + scalars.size,) * 2)
    full[: n * n, : n * n] = covariance.reshape(n * n, n * n)
    return packed(mean, scalars), full


def _agrees(starts: np.ndarray, mean: np.ndarray, covariance: np.ndarray, d: float) -> bool:
    """Return True if the means and variances of drawn starts agree with the closed form."""
    variance = np.diag(covariance) / d
    error = np.sqrt(variance / len(starts))
    off = np.abs(starts.mean(0) - mean)
    exact = variance == 0
    scale = float(np.abs(mean).max(initial=1e-300))
    if (off[exact] > 1e-9 * scale).any() or (np.ptp(starts[:, exact], axis=0) > 1e-9 * scale).any():
        return False
    ratio = starts[:, ~exact].var(0, ddof=1) / variance[~exact]
    spread = np.sqrt(2 / (len(starts) - 1))
    return bool((off[~exact] <= MISSED * error[~exact]).all() and (np.abs(ratio - 1) <= MISSED * spread).all())

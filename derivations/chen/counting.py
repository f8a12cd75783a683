"""Counted batches of system `chen`: the configurations of an example of three signals, and the law of its expert.

With finitely many strengths an example of P = 3 is one of 4 K (K - 1) |A| |B| |C| configurations (k, k', y, eps, alpha,
beta, gamma). Its gradient depends on the routing noise only through its expert. Hence the numbers of examples of each
configuration at each expert determine a step of Algorithm 1. Given the weights these numbers are multinomial with the
probabilities (R1) of `route`, for any number of examples.
"""

import numpy as np

from derivations.alphabet.patterns import Counting, Examples
from derivations.chen import model, route
from derivations.chen.parameters import Parameters

LAWS = ("alpha", "beta", "gamma")


def obstacle(parameters: Parameters) -> str:
    """Empty, or the reason why counts do not determine a step."""
    p = parameters
    if p.variant == "released":
        return "variant released multiplies every example by its own noisy logit, which counts do not contain"
    for name in LAWS:
        law = getattr(p, name)
        if p.laws == "uniform" and len(law) == 2 and law[0] < law[1]:
            return f"the law of {name} is continuous (-p laws=points makes a list of values)"
    if p.P > 3:
        return "every example has individual noise patches"
    return ""


def strengths(parameters: Parameters, name: str) -> np.ndarray:
    """The equally likely values of a law that is a list of them, or one value."""
    values = np.array(getattr(parameters, name), float)
    return values if parameters.laws == "points" else values[:1]


def configurations(parameters: Parameters) -> tuple[Examples, np.ndarray]:
    """All configurations as examples in the frame [v, c], equally likely, and their chances."""
    p, scale = parameters, model.input_scale(parameters)
    axes = (np.arange(p.K), np.arange(1, p.K), [-1.0, 1.0], [-1.0, 1.0], *(strengths(p, name) for name in LAWS))
    k, step, y, eps, alpha, beta, gamma = (axis.ravel() for axis in np.meshgrid(*axes, indexing="ij"))
    atoms = np.stack([k, p.K + k, (k + step) % p.K])
    amplitudes = scale * np.stack([y * alpha, beta, eps * gamma])
    return Examples(atoms, amplitudes, np.zeros((k.size, 0, 2 * p.K)), y, k), np.full(k.size, 1 / k.size)


def routing(logits: np.ndarray) -> np.ndarray:
    """The probability (M, C) of every expert at logits (M, C)."""
    return route.probabilities(logits.T).T


COUNTING = Counting(obstacle, configurations, routing)

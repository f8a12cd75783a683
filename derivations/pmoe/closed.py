"""The closed form of level L3: two samples (a deterministic composition), constant routers, infinite width.

With one sample of each class the drive c_s is a combination of the two samples, so that two numbers X_a = int v(u_a) dt
determine the run:

    phi_s(t) = phi_s(0) + (1/(2 k l)) K (n_s^+ G^+ X_+ - n_s^- G^- X_-),     u_a = u_a(0) + sum_b C_ab X_b,
    C_ab = y_a y_b (1/(2 k l^2)) sum_s (n_s^a G_s^a)' K (n_s^b G_s^b)

and, if both classes have the same margin (C_++ = C_--, equal starts), u + e^u grows linearly, at the rate R = C_++ +
C_+-:

    u(t) = A - W(e^A),  A = u(0) + e^(u(0)) + R t            (W: Lambert's function)

Ours; R = (1/2 - delta_d kappa0(delta_d))/(2 n^2) for the CNN, R = 1/(4 l^2) for perfect separate routers and p = 1.
"""

import math
from typing import Any

import numpy as np

OVERFLOW = 700.0
"""Above this number e^A overflows, and Newton's method solves u + e^u = A."""
SAME = 1e-12


def lambert(start: Any, rate: Any, t: Any) -> Any:
    """u(t) of du/dt = rate/(1 + e^u): u = A - W(e^A), A = start + e^start + rate t."""
    from scipy.special import lambertw

    a = np.asarray(start + np.exp(start) + rate * np.asarray(t, float))
    small = np.minimum(a, OVERFLOW)
    u = small - np.real(lambertw(np.exp(small)))
    large = np.log(np.maximum(a, 2.0))
    for _ in range(50):  # Newton on u + e^u = A from log A converges from above, quadratically
        large = large - (large + np.exp(large) - a) / (1 + np.exp(large))
    return np.where(a < OVERFLOW, u, large)


def time_to(v: float, start: float, rate: float) -> float:
    """The flow after which v = 1/(1 + e^u) has fallen to `v`: (u + e^u - u(0) - e^u(0))/rate at u = log(1/v - 1)."""
    u = math.log(1 / v - 1)
    return (u + math.exp(u) - start - math.exp(start)) / rate


def rate(start: np.ndarray, coupling: np.ndarray) -> float:
    """R of the closed form, or NaN if the two margins differ."""
    size = float(np.abs(coupling).max())
    equal = abs(coupling[0, 0] - coupling[1, 1]) <= SAME * size and abs(start[0] - start[1]) <= SAME * (
        1 + abs(start[0])
    )
    return float(coupling[0, 0] + coupling[0, 1]) if equal else math.nan

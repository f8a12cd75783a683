"""Common part of the exact slopes for independent tokens, as plain loops for numba.

The pooled activation sum_j sigma_j e^(h_j) / sum_j e^(h_j) is linearised by 1/Z = int_0^inf exp(-u Z) du: given the
rank tau of the l-th best irrelevant token, tokens factorise, and one sum over tau and one quadrature in log u remain.
The integrand is analytic and decays, so that the trapezoidal rule converges geometrically. Derivatives follow from the
same sums in reverse order.
"""

import numpy as np


def grid(nodes, l, smallest):
    """The trapezoid in v = log u: u (nodes,) and u dv, on [-38 - log l, 4 - log(l z_min)]."""
    low, high = -38.0 - np.log(l), 4.0 - np.log(l * smallest)
    step = (high - low) / (nodes - 1)
    u = np.exp(low + step * np.arange(nodes))
    return u, u * step


def choose(n, k):
    """The binomial coefficient as a float."""
    found = 1.0
    for i in range(k):
        found *= (n - i) / (i + 1.0)
    return found


def finish(sig, side, order, raised, bars, out):
    """Add a class's derivatives along sigma and h: dE/dsigma = z s_bar, dE/dh = z (sigma s_bar + z_bar).

    `side` = (task token, sign), `raised` = (z of the tokens by rank, z of the task token), `bars` = (s_bar, z_bar, and
    both of the task token), `out` = (dh, g).
    """
    (task, sign), (z, zo), (dh, g) = side, raised, out
    s_bar, z_bar, so_bar, zo_bar = bars
    for i in range(z.size):
        p = order[i] + 2
        g[p] += sign * z[i] * s_bar[i]
        dh[p] += sign * z[i] * (sig[p] * s_bar[i] + z_bar[i])
    g[task] += sign * zo * so_bar
    dh[task] += sign * zo * (sig[task] * so_bar + zo_bar)

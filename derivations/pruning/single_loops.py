"""The exact slope of one expert for data=single and multi_copy as plain loops around the gate kernel, for numba.

`odesim.code.compile` copies these functions, unchanged, into one generated file; they always run compiled.
"""

from collections.abc import Callable

import numpy as np

from derivations.ranking import rank

gate: Callable[..., tuple[float, float, float]]


def best_law(h, pi, copies, law):
    """Fill law (N,): the probability that each pattern has the largest logit of `copies` draws from pi.

    Patterns of equal logit have shares in proportion to pi; a stable selection keeps the tokens drawn first.
    """
    order = np.empty(pi.size, np.int64)
    rank(h[2:], order)
    below = 1.0
    at = 0
    while at < order.size:
        end = at
        tied = 0.0
        while end < order.size and h[2 + order[end]] == h[2 + order[at]]:
            tied += pi[order[end]]
            end += 1
        rest = max(0.0, below - tied)
        chance = below**copies - rest**copies
        for i in range(at, end):
            law[order[i]] = chance * pi[order[i]] / tied if tied > 0.0 else 0.0
        below = rest
        at = end


def expert_slope(h, sig, plus, minus, dh, g, value, given):
    """Fill dh = dPhi/dh and g = dPhi/dsigma (d,); value[y] = E[sbar | y] times the chance of the class.

    `plus` and `minus` (N,) are the chances of the inputs (y = +1, q) and (y = -1, q); for several copies the law of the
    best of them replaces pi. The task token is selected, with l - 1 copies of q, if its logit is at least that of q;
    otherwise J is l copies of q. With n = l every token is selected. Source: Chowdhury et al. 2024, equations (14) to
    (19), for samples with one repeated irrelevant pattern.
    """
    l, n, copies, pi = given.l, given.n, given.copies, given.pi
    N = pi.size
    law = np.empty(0)
    if copies > 1:
        law = np.empty(N)
        best_law(h, pi, copies, law)
    S = np.empty((1, 1))
    for p in range(h.size):
        dh[p] = 0.0
        g[p] = 0.0
    for task in range(2):
        sign = 1.0 if task == 0 else -1.0
        total = 0.0
        for q in range(N):
            chance = plus[q] if task == 0 else minus[q]
            if copies > 1:
                chance = 0.5 * law[q]
            x = h[task] - h[q + 2]
            mass = 0.0
            rest = 1.0
            if x >= 0.0 or n == l:
                mass, rest, pull = gate(S, 0, x, l)
                moved = sign * chance * pull * (sig[task] - sig[q + 2])
                dh[task] += moved
                dh[q + 2] -= moved
            g[task] += sign * chance * mass
            g[q + 2] += sign * chance * rest
            total += chance * (mass * sig[task] + rest * sig[q + 2])
        value[task] = total

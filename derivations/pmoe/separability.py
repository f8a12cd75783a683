"""Linear separability of the data, exactly: for exchangeable positions only the patch sums matter.

With every composition possible the classes are strictly separated by some u (with a bias) if and only if

    <u, o1 - o2> > (n - 1)(max_q <u, q> - min_q <u, q>)   for some u,   that is   n - 1 < beta*,
    beta* = min{ |b|_1/2 : sum_q b_q q = o1 - o2, sum_q b_q = 0 }   (infinite if there is no such b)

Ours; it replaces Lemma K.1 of Chowdhury et al. 2023, which is false as stated.
"""

import math

import numpy as np

from derivations.vectors import root


def beta_star(o: np.ndarray, q: np.ndarray) -> float:
    """beta* of patterns o (2, d) and q (p, d), by linear programming; infinite for linearly independent patterns."""
    from scipy.optimize import linprog

    p = len(q)
    equal = np.vstack([q.T, np.ones((1, p))])
    target = np.append(o[0] - o[1], 0.0)
    found = linprog(
        np.full(2 * p, 0.5), A_eq=np.hstack([equal, -equal]), b_eq=target, bounds=(0, None), method="highs"
    )  # fmt: skip
    return float(found.fun) if found.status == 0 else math.inf


def of_gram(gram: np.ndarray, classes: int = 2) -> tuple[np.ndarray, float | None]:
    """(distances |z - z'| (P, P), beta*) of patterns o_1.., q_1.. with this Gram matrix; no beta* beyond two classes.

    >>> distance, bound = of_gram(np.eye(4))
    >>> round(float(distance[0, 1]), 6), bound  # independent patterns are separable at every n
    (1.414214, inf)
    """
    norms = np.diag(gram)
    distance = np.sqrt(np.maximum(norms[:, None] + norms - 2 * gram, 0.0))
    np.fill_diagonal(distance, 0.0)
    if classes > 2:
        return distance, None
    rows = root(gram)
    # b depends only on linear relations: independent patterns have none
    free = len(gram) == 2 or np.linalg.matrix_rank(gram) == len(gram)
    bound = math.inf if free else beta_star(rows[:2], rows[2:])
    return distance, bound


def margin(o: np.ndarray, q: np.ndarray, n: int) -> float:
    """The largest margin between the classes over |u|_inf <= 1 with a bias, all compositions of n - 1 patches.

    Sums of patches are extreme if all n - 1 irrelevant ones are equal, so that 2 p points suffice.
    """
    from scipy.optimize import linprog

    d = o.shape[1]
    plus, minus = o[0] + (n - 1) * q, o[1] + (n - 1) * q
    # maximise t: <u, plus> + b >= t, -<u, minus> - b >= t
    rows = np.vstack(
        [
            np.hstack([-plus, -np.ones((len(q), 1)), np.ones((len(q), 1))]),
            np.hstack([minus, np.ones((len(q), 1)), np.ones((len(q), 1))]),
        ]
    )
    bounds = [(-1, 1)] * d + [(None, None), (0, None)]
    found = linprog(
        np.append(np.zeros(d + 1), -1.0), A_ub=rows, b_ub=np.zeros(len(rows)), bounds=bounds, method="highs"
    )
    return float(-found.fun)


def tilted(angle: float, delta_d: float = 0.0, d: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """o1, o2 and q+- = cos(angle) c +- sin(angle) (o1 - o2)/|o1 - o2|: beta* = |o1 - o2|/(2 sin angle)."""
    o = np.zeros((2, d))
    o[0, 0] = 1.0
    o[1, :2] = delta_d, math.sqrt(1 - delta_d**2)
    along = (o[0] - o[1]) / np.linalg.norm(o[0] - o[1])
    c = np.zeros(d)
    c[2] = 1.0
    return o, np.array([math.cos(angle) * c + sign * math.sin(angle) * along for sign in (1, -1)])

"""Sorting and maxima for compiled loops: numba's functions take a second and half a second to compile."""


def largest(values):
    """The largest entry of `values` (n,), n > 0.

    >>> import numpy as np
    >>> float(largest(np.array([0.5, 2.0, -1.0])))
    2.0
    """
    found = values[0]
    for k in range(1, values.size):
        found = max(found, values[k])
    return found


def rank(values, order):
    """Fill `order` (n,) with the indices of `values` (n,) from the largest to the smallest, ties in the given order.

    Shell's method with Gonnet's gaps: about n^1.25 comparisons.

    >>> import numpy as np
    >>> order = np.empty(4, np.int64)
    >>> rank(np.array([0.5, 2.0, -1.0, 2.0]), order)
    >>> order
    array([1, 3, 0, 2])
    """
    n, gap = order.size, order.size
    for i in range(n):
        order[i] = i
    while gap > 1:
        gap = 1 if gap == 2 else gap * 5 // 11
        for i in range(gap, n):
            moved, at = order[i], i
            while at >= gap:
                before = order[at - gap]
                if values[before] > values[moved] or (values[before] == values[moved] and before < moved):
                    break
                order[at] = before
                at -= gap
            order[at] = moved

"""A step of DOP853 in compiled loops, the same for all flows, which are tables of the engine.

All sums over the slopes of the stages are one loop with `weights` (14, 13): row s - 1 has those of stage s of the
method, the twelfth the new state's, the last two its errors of third and fifth order (Hairer, Norsett & Wanner 1993).
"""

import numpy as np

from derivations.equations.options import OPTIONS
from odesim.code.engine import KERNELS, TABLES, flow, numbers, types
from odesim.code.module_cache import compiled

matrix, number = types.float64[:, ::1], types.float64
pair, bounded = types.UniTuple(number, 2), types.UniTuple(numbers, 2)


@compiled(types.void(numbers, number, types.UniTuple(matrix, 2), numbers, TABLES, KERNELS), **OPTIONS)
def attempt(y, h, stages, sums, tables, kernels):
    """Compute the slopes K[1:13] of the stages of one step of length h from the state y, whose slope is K[0].

    stages = (weights, K). The new state and the sums of slopes for its two errors are written to `sums` (3, n), flat.
    """
    (weights, K), n = stages, y.size
    new, found = sums[:n], np.empty(n)
    for s in range(1, 15):
        row = weights[s - 1]
        for i in range(n):
            found[i] = 0.0
        for j in range(min(s, 13)):
            w, k = row[j], K[j]
            for i in range(n):
                found[i] += w * k[i]
        if s > 12:
            error = sums[(s - 12) * n : (s - 11) * n]
            for i in range(n):
                error[i] = found[i]
            continue
        for i in range(n):
            new[i] = y[i] + h * found[i]
        flow(new, K[s], tables, kernels)

"""The exact slope of one expert for a table of inputs (data=empirical) as plain loops, for numba."""

import numpy as np


def select_top(h, row, l, chosen):
    """Fill chosen (l,) with the positions of the l largest logits of a row of tokens; earlier tokens win ties."""
    count = 0
    for j in range(row.size):
        at = count
        while at > 0 and h[row[j]] > h[row[chosen[at - 1]]]:
            at -= 1
        if at < l:
            for i in range(min(count, l - 1), at, -1):
                chosen[i] = chosen[i - 1]
            chosen[at] = j
            count = min(count + 1, l)


def expert_slope(h, sig, plus, minus, dh, g, value, given):
    """Fill dh = dPhi/dh and g = dPhi/dsigma for the average over the rows of a table of tokens.

    `plus` holds one weight per row (1/S, or 0 where the hinge masks the sample), `minus` is not used.
    """
    l, tokens, labels = given.l, given.tokens, given.labels
    dh[:] = 0.0
    g[:] = 0.0
    value[:] = 0.0
    chosen, weight = np.empty(l, dtype=np.int64), np.empty(l)
    for i in range(labels.size):
        row = tokens[i]
        select_top(h, row, l, chosen)
        total, mean = 0.0, 0.0
        for j in range(l):
            weight[j] = np.exp(h[row[chosen[j]]] - h[row[chosen[0]]])
            total += weight[j]
        for j in range(l):
            weight[j] /= total
            mean += weight[j] * sig[row[chosen[j]]]
        signed = labels[i] * plus[i]
        for j in range(l):
            p = row[chosen[j]]
            g[p] += signed * weight[j]
            dh[p] += signed * weight[j] * (sig[p] - mean)
        value[0 if labels[i] > 0 else 1] += plus[i] * mean

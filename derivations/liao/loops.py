"""The right-hand sides as plain loops around the pair kernels, for numba.

`odesim.code.compile` copies these functions, unchanged, into one generated file together with the scalar kernels
derived by SymPy, and compiles that file; nothing here runs uncompiled.  Every array a function takes is a
run-time argument, so one compiled file serves every size, dimension, gate and temperature of one degree.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from derivations.addressed import SLOPED, WRAPPED
from derivations.contract import Shared


class Arguments(NamedTuple):
    """The run-time arguments: sizes, the teachers' Gram matrix, the students' rates (2m,), and the gate's table."""

    m: int
    m_star: int
    teachers: Any
    rates: Any
    series: Any
    shift: Any
    odd: Any
    reach: Any


PAIRS = "f8[::1], f8[::1], Tuple((f8[:,:,::1], f8[::1], f8[::1], f8[:,::1], f8[::1])), i8, f8[::1] -> UniTuple(f8, 2)"
PRODUCT = "f8[::1], f8[::1], i8, i8, f8[::1]"
"""The types that `pair_blocks`, of every degree, and `product` take."""
KIND = (
    "Tuple((UniTuple(i8, 6), f8[::1], f8[::1], Tuple((f8[:,:,::1], f8[::1], f8[::1], f8[:,::1], f8[::1])), f8[::1], "
    "UniTuple(u4[::1], 2), Tuple((u4[::1], f4[::1], u4[::1], u4[::1], f4[::1])), UniTuple(u4[::1], 2)))"
)
"""The type of what `given` makes."""
COMMON = (
    "derivations.lanes:gather",
    *(
        f"{__name__}:{name}"
        for name in ("PAIRS", "PRODUCT", "KIND", "resolved", "scatter", "product", "project", "slope")
    ),
    *WRAPPED,
)
SHARED = (Shared(COMMON, "sloped", SLOPED),)
"""What surrounds the pairs, for all degrees: a process beside can compile it while those are derived."""
address: Callable[..., int]
by_address: Callable[..., Any]
dgemm: Callable[[], int]
multiplied: Callable[..., None]
correlations: Callable[..., None]
gather: Callable[..., None]
pair_gradient: Callable[..., tuple[float, ...]]
aligned_gradient: Callable[..., tuple[float, ...]]
aligned_energy: Callable[..., tuple[float, ...]]


def pair_blocks(X, energy, tables, alone, Y):
    """Fill Y = (dK/drho, dK/dg, dK/dz11, .., dK/dz22) of all pairs from X = (rho, g, z11, z12, z21, z22), both flat.

    Returns sum energy K and sum |energy K|; value and derivatives in one function, as compiling the pair kernel twice
    takes a second.  The lanes of a block are copied into flat arrays and out of them (`Kernel.lanes`).
    tables = (series, shift, odd, reach, limit), where `limit` are the correlations at rho = 1, those of a vector with
    itself, which stand in the blocks from `alone` on.
    """
    series, shift, odd, reach, limit = tables
    total, size = 0.0, 0.0
    S, square = np.empty((limit.size, 16)), np.empty(16)
    table = S.reshape(16 * limit.size)
    x, found, width = np.empty(5 * 16), np.empty(7 * 16), energy.size
    for block in range(width // 16):
        a = 16 * block
        if block < alone:
            correlations(X[a : a + 16], series, shift, odd, reach, square, S)
        elif block == alone:
            for k in range(limit.size):
                for lane in range(16):
                    S[k, lane] = limit[k]
        for k in range(5):
            inputs = X[(k + 1) * width + a : (k + 1) * width + a + 16]  # in a slice no index can be negative
            for lane in range(16):
                x[16 * k + lane] = inputs[lane]
        for lane in range(16):
            d_rho, d11, d12, d21, d22, d_g, K = pair_gradient(
                table, lane, x[lane], x[16 + lane], x[32 + lane], x[48 + lane], x[64 + lane]
            )
            found[lane] = d_rho
            found[16 + lane] = d_g
            found[32 + lane] = d11
            found[48 + lane] = d12
            found[64 + lane] = d21
            found[80 + lane] = d22
            found[96 + lane] = K
        for k in range(6):
            outputs = Y[k * width + a : k * width + a + 16]
            for lane in range(16):
                outputs[lane] = found[16 * k + lane]
        for lane in range(16):
            term = energy[a + lane] * found[96 + lane]
            total += term
            size += abs(term)
    return total, size


def resolved(total, size):
    """A sum of terms that cancel, `size` the sum of their sizes: a mean square that is negative by rounding alone is 0.

    Beyond the rounding it is left as it is: then the overlaps are those of no vectors, and that must be seen.
    """
    return 0.0 if -1.5e-14 * size < total < 0.0 else total


def scatter(source, first, factor, index, place, weight, target):
    """target[k] = factor[k] source[first[k]], then target[place[k]] += weight[k] source[index[k]].

    Most entries have one term, and a loop that only reads at random is twice as fast as one that also writes so.
    """
    for k in range(first.size):
        target[k] = factor[k] * source[first[k]]
    for k in range(index.size):
        target[place[k]] += weight[k] * source[index[k]]


def product(C, G, s, n, D):
    """D = C G (s, n), all flat, four rows of G at a time: where there is no BLAS that takes half as long."""
    for i in range(s):
        row, found = C[i * n : i * n + n], D[i * n : i * n + n]
        for j in range(n):
            found[j] = 0.0
        for k in range(0, n - 3, 4):
            rows, c0, c1, c2, c3 = G[k * n : k * n + 4 * n], row[k], row[k + 1], row[k + 2], row[k + 3]
            for j in range(n):
                found[j] += c0 * rows[j] + c1 * rows[n + j] + c2 * rows[2 * n + j] + c3 * rows[3 * n + j]
        for k in range(n - n % 4, n):
            last = G[k * n : k * n + n]
            for j in range(n):
                found[j] += row[k] * last[j]


def project(D, G, rates, n, rows, columns, dy):
    """D = C G (s, n) becomes -rate (D - diag(D) G): rows of unit norm move in their tangent space at their own rate.

    D is flat and ends in a zero; dy[k] = D[rows[k]] + D[columns[k]].
    """
    for i in range(rates.size):
        moved, gram = D[i * n : i * n + n], G[i * n : i * n + n]
        own = moved[i]
        for j in range(n):
            moved[j] = rates[i] * (own * gram[j] - moved[j])
    for k in range(dy.size):
        dy[k] = D[rows[k]] + D[columns[k]]


def slope(y, dy, p):
    """Fill dy = -rate (C G - diag(C G) G) on the overlaps of the exact Gram flow, C = dL/dG; returns L.

    L = (1/2) sum K_ir - sum K_ij* + (1/2) sum K_j*j'* over all pairs of students and teachers.
    """
    (pairs_at, dgemm_at, product_at, s, n, alone), fixed, rates, tables, energy, places, terms, targets = p
    known = np.empty(y.size + fixed.size)
    for k in range(y.size):  # assigned as slices they take a second to compile
        known[k] = y[k]
    for k in range(fixed.size):
        known[y.size + k] = fixed[k]
    G, X, Y = np.empty(n * n), np.empty(6 * energy.size), np.empty(6 * energy.size)
    gather(known, places[0], G)
    gather(known, places[1], X)
    total, size = by_address(PAIRS, pairs_at, (X, energy, tables, alone, Y))
    C, D = np.empty(s * n), np.empty(s * n + 1)
    scatter(Y, terms[0], terms[1], terms[2], terms[3], terms[4], C)
    if dgemm_at != 0:
        multiplied(dgemm_at, C, G, D, s, n, n)
    else:
        by_address(PRODUCT, product_at, (C, G, s, n, D))
    D[s * n] = 0.0
    project(D, G, rates, n, targets[0], targets[1], dy)
    return resolved(total, size)


@functools.cache
def layout(m, m_star):
    """Where everything lies, as unsigned indices into flat arrays, for the sizes m and m_star.

    `gram` finds the Gram matrix (n, n) of [v, w, v*, w*], and `inputs` those of the pair kernel (6, width), (rho, g,
    z11, z12, z21, z22), in [y, teacher Gram matrix, 1, 0]; pairs are student pairs, (student, teacher), teacher pairs,
    each followed by zeros up to a multiple of 16, and from block `alone` on those of a vector with itself; C = dL/dG is
    `factor` Y[`first`] and `weight` Y[`output`] added at `entry` where there are more terms; L = sum `energy` K.
    `ends` are the 1 and the 0.  `rows` and `columns` find an entry of dy and its mirror image in D (0 for a teacher,
    which does not move).
    """
    s, n = 2 * m, 2 * m + 2 * m_star
    size = 4 * m * m_star + m * (m - 1) + m * m
    place = np.full((n, n), size + 4 * m_star**2)  # the diagonal: 1
    place[s:, s:] = size + np.arange(4 * m_star**2).reshape(2 * m_star, 2 * m_star)
    v, w, v_star, w_star = np.split(np.arange(n), [m, s, s + m_star])
    upper = np.triu_indices(m, 1)
    entries = [np.meshgrid(a, b, indexing="ij") for a, b in ((v, v_star), (w, w_star), (v, w_star), (w, v_star))]
    entries += [(block[upper[0]], block[upper[1]]) for block in (v, w)] + [np.meshgrid(v, w, indexing="ij")]
    rows, columns = (np.concatenate([np.ravel(e[k]) for e in entries]) for k in (0, 1))
    place[rows, columns] = place[columns, rows] = np.arange(size)

    r, own, other = np.triu_indices(m), np.triu_indices(m_star), np.indices((m, m_star)).reshape(2, -1)
    first = np.concatenate([v[r[0]], v[other[0]], v_star[own[0]]])
    second = np.concatenate([v[r[1]], v_star[other[1]], v_star[own[1]]])
    # A vector's overlap with itself is 1, where the series are longest and the correlations known.
    apart = np.argsort(first == second, kind="stable")
    first, second = first[apart], second[apart]
    same = first == second
    others, count = int((~same).sum()), len(first)
    alone = -(-others // 16)
    lane, width = np.arange(count) + same * (16 * alone - others), 16 * (alone - (others - count) // 16)
    gate = np.where(np.arange(n) < m, m, m_star)  # from a router's row to that of its expert
    a, b, c, d = first, first + gate[first], second, second + gate[second]
    inputs = np.array([(a, c), (b, d), (a, b), (a, d), (c, b), (c, d)])
    pairs = np.full((6, width), size + 4 * m_star**2 + 1)
    pairs[:, lane] = place[inputs[:, 0], inputs[:, 1]]

    energy = np.zeros(width)
    energy[lane] = np.where(second < m, 1.0, np.where(first < m, -1.0, 1.0)) * np.where(same, 0.5, 1.0)
    output = np.arange(6)[:, None] * width + lane
    row, column = inputs[:, 0], inputs[:, 1]
    trained = (np.minimum(row, column) < s) & (row != column)
    low, high = np.minimum(row, column)[trained], np.maximum(row, column)[trained]
    entry, weight = low * n + high, np.broadcast_to(energy[lane], output.shape)[trained]
    output = output[trained]
    both = high < s  # C is symmetric on the students
    output, weight = np.concatenate([output, output[both]]), np.concatenate([weight, weight[both]])
    entry = np.concatenate([entry, (high * n + low)[both]])
    filled, terms = np.unique(entry, return_index=True)
    first, factor, more = np.zeros(s * n), np.zeros(s * n), np.ones(entry.size, bool)
    first[filled], factor[filled], more[terms] = output[terms], weight[terms], False
    index = {
        "gram": place.ravel(),
        "inputs": pairs.ravel(),
        "first": first,
        "output": output[more],
        "entry": entry[more],
        "rows": rows * n + columns,
        "columns": np.where(columns < s, columns * n + rows, s * n),
    }
    tables = {name: np.ascontiguousarray(value, np.uint32) for name, value in index.items()}
    weights = {"factor": np.float32(factor), "weight": np.float32(weight[more])}
    return {**tables, **weights, "energy": energy, "alone": alone, "ends": np.array([1.0, 0.0])}


def given(m, m_star, teachers, rates, series, shift, odd, reach):
    """The arguments of `slope`: addresses and sizes, what is fixed in the Gram matrix, and the tables of `layout`."""
    at = layout(m, m_star)
    multiply = dgemm()
    products = (multiply, 0 if multiply else address(product, PRODUCT))
    sizes = (address(pair_blocks, PAIRS), *products, 2 * m, 2 * m + 2 * m_star, at["alone"])
    fixed = np.concatenate([teachers.ravel(), at["ends"]])
    terms = tuple(at[name] for name in ("first", "factor", "output", "entry", "weight"))
    places, targets = (at["gram"], at["inputs"]), (at["rows"], at["columns"])
    tables = (series, shift, odd, reach, shift + series[-1].sum(axis=1))
    return sizes, fixed, rates, tables, at["energy"], places, terms, targets

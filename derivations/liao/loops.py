"""The right-hand sides as plain loops around the pair kernels, for numba.

`odesim.code.compile` copies these functions, unchanged, into one generated file together with the scalar kernels
derived by SymPy, and compiles that file; nothing here runs uncompiled.  Every array a function takes is a
run-time argument, so one compiled file serves every size, dimension, gate and temperature of one degree.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

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


class InnerArguments(NamedTuple):
    """Those of `inner_flow`: s = 2m and n = 2m + 2m* in place of m and m*, and the tables of `layout`."""

    s: int
    n: int
    teachers: Any
    rates: Any
    series: Any
    shift: Any
    odd: Any
    reach: Any
    inputs: Any
    energy: Any
    first: Any
    factor: Any
    output: Any
    entry: Any
    weight: Any
    rows: Any
    columns: Any


INDEX = "u8[::1]"
COMMON = ("derivations.lanes:gather", f"{__name__}:scatter", f"{__name__}:project")
SHARED = (
    Shared(COMMON, "gather", f"f8[::1], {INDEX}, f8[::1]", entered=True),
    Shared(COMMON, "scatter", f"f8[::1], {INDEX}, f8[::1], {INDEX}, {INDEX}, f8[::1], f8[::1]", entered=True),
    Shared(COMMON, "project", f"f8[:,::1], f8[:,::1], f8[::1], f8[::1], {INDEX}, {INDEX}, f8[::1]", entered=True),
)
"""What surrounds the pairs, for all degrees: a process beside can compile it while those are derived."""
correlations: Callable[..., None]
gather: Callable[..., None]
pair_gradient: Callable[..., tuple[float, ...]]
aligned_gradient: Callable[..., tuple[float, ...]]
aligned_energy: Callable[..., tuple[float, ...]]


def pair_blocks(X, energy, series, shift, odd, reach, table, Y):
    """Fill Y = (dK/drho, dK/dg, dK/dz11, .., dK/dz22) of all pairs from X = (rho, g, z11, z12, z21, z22).

    Returns sum energy K and sum |energy K|; value and derivatives in one function, as compiling the pair kernel twice
    takes a second.  The lanes of a block are copied into flat arrays and out of them (`Kernel.lanes`); `table`
    (functions * 16) is room for the correlations.
    """
    total, size = 0.0, 0.0
    S, square = table.reshape((table.size // 16, 16)), np.empty(16)
    x, found = np.empty(5 * 16), np.empty(7 * 16)
    for block in range(X.shape[1] // 16):
        a = 16 * block
        correlations(X[0, a : a + 16], series, shift, odd, reach, square, S)
        for k in range(5):
            for lane in range(16):
                x[16 * k + lane] = X[k + 1, a + lane]
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
            for lane in range(16):
                Y[k, a + lane] = found[16 * k + lane]
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


def project(N, G, rates, D, rows, columns, dy):
    """N becomes D = -rate (N - diag(N) G): rows of unit norm move in their tangent space at their own rate.

    N (s, n) is a view of the flat D, which ends in a zero; dy[k] = D[rows[k]] + D[columns[k]].
    """
    for i in range(N.shape[0]):
        own = N[i, i]
        for j in range(N.shape[1]):
            N[i, j] = rates[i] * (own * G[i, j] - N[i, j])
    for k in range(dy.size):
        dy[k] = D[rows[k]] + D[columns[k]]


@functools.cache
def layout(m, m_star):
    """Where everything lies, as unsigned indices into flat arrays, for the sizes m and m_star.

    `inputs` finds the Gram matrix (n, n) of [v, w, v*, w*], then the inputs (6, width) of the pair kernel (rho, g, z11,
    z12, z21, z22), in [y, teacher Gram matrix, 1, 0]; pairs are student pairs, (student, teacher), teacher pairs, those
    of a vector with itself after all others, then zeros up to a multiple of 16.  C = dL/dG is `factor` Y[`first`], and
    `weight` Y[`output`] added at `entry` where there are more terms; L = sum `energy` K.  `ends` are the 1 and the 0.
    `rows` and `columns` find an entry of dy and its mirror image in D (0 for a teacher, which does not move).
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
    # A vector's overlap with itself is 1, where the series are longest: these pairs share lanes with each other only.
    apart = np.argsort(first == second, kind="stable")
    first, second = first[apart], second[apart]
    gate = np.where(np.arange(n) < m, m, m_star)  # from a router's row to that of its expert
    a, b, c, d = first, first + gate[first], second, second + gate[second]
    inputs = np.array([(a, c), (b, d), (a, b), (a, d), (c, b), (c, d)])
    count, width = len(first), 16 * (-(-len(first) // 16))
    pairs = np.full((6, width), size + 4 * m_star**2 + 1)
    pairs[:, :count] = place[inputs[:, 0], inputs[:, 1]]

    energy = np.zeros(width)
    same = first == second
    energy[:count] = np.where(second < m, 1.0, np.where(first < m, -1.0, 1.0)) * np.where(same, 0.5, 1.0)
    output = np.arange(6)[:, None] * width + np.arange(count)
    row, column = inputs[:, 0], inputs[:, 1]
    trained = (np.minimum(row, column) < s) & (row != column)
    low, high = np.minimum(row, column)[trained], np.maximum(row, column)[trained]
    entry, weight = low * n + high, np.broadcast_to(energy[:count], output.shape)[trained]
    output = output[trained]
    both = high < s  # C is symmetric on the students
    output, weight = np.concatenate([output, output[both]]), np.concatenate([weight, weight[both]])
    entry = np.concatenate([entry, (high * n + low)[both]])
    filled, terms = np.unique(entry, return_index=True)
    first, factor, more = np.zeros(s * n), np.zeros(s * n), np.ones(entry.size, bool)
    first[filled], factor[filled], more[terms] = output[terms], weight[terms], False
    index = {
        "inputs": np.concatenate([place.ravel(), pairs.ravel()]),
        "first": first,
        "output": output[more],
        "entry": entry[more],
        "rows": rows * n + columns,
        "columns": np.where(columns < s, columns * n + rows, s * n),
    }
    tables = {name: np.ascontiguousarray(value, np.uint64) for name, value in index.items()}
    return {**tables, "factor": factor, "weight": weight[more], "energy": energy, "ends": np.array([1.0, 0.0])}


def flow_loss(t, y, p):
    """(dy/dt, L) of the exact Gram flow: C = dL/dG, N = C G, D = -rate (N - diag(N) G).

    L = (1/2) sum K_ir - sum K_ij* + (1/2) sum K_j*j'* over all pairs of students and teachers.  Stays a Python
    function: allocations and the matrix product take a second to compile and microseconds to call.
    """
    m, m_star, teachers, rates = p.m, p.m_star, p.teachers, p.rates
    series, shift, odd, reach = p.series, p.shift, p.odd, p.reach
    at = layout(m, m_star)
    n, s = 2 * m + 2 * m_star, 2 * m
    known = np.concatenate([y, teachers.ravel(), at["ends"]])
    inputs, C, D = np.empty(at["inputs"].size), np.empty(s * n), np.empty(s * n + 1)
    D[-1] = 0.0
    gather(known, at["inputs"], inputs)
    G, X, Y = inputs[: n * n].reshape(n, n), inputs[n * n :].reshape(6, -1), np.empty((6, at["energy"].size))
    table = np.empty(16 * series.shape[0])
    loss = resolved(*pair_blocks(X, at["energy"], series, shift, odd, reach, table, Y))
    scatter(Y.reshape(-1), at["first"], at["factor"], at["output"], at["entry"], at["weight"], C)
    N, dy = D[:-1].reshape(s, n), np.empty(y.size)
    np.matmul(C.reshape(s, n), G, out=N)
    project(N, G, rates, D, at["rows"], at["columns"], dy)
    return dy, loss


def inner_flow(y, p):
    """dy/dt of `flow_loss` compiled as a whole, for loops that are themselves compiled; s = 2m, n = 2m + 2m*."""
    s, n, teachers, rates, series, shift = p.s, p.n, p.teachers, p.rates, p.series, p.shift
    odd, reach, inputs, energy, first, factor = p.odd, p.reach, p.inputs, p.energy, p.first, p.factor
    output, entry, weight, rows, columns = p.output, p.entry, p.weight, p.rows, p.columns
    known = np.empty(y.size + teachers.size + 2)
    for k in range(y.size):  # assigned as slices they take a second to compile
        known[k] = y[k]
    for k in range(teachers.size):
        known[y.size + k] = teachers[k]
    known[-2], known[-1] = 1.0, 0.0
    found = np.empty(inputs.size)
    gather(known, inputs, found)
    G, X = found[: n * n].reshape(n, n), found[n * n :].reshape(6, (inputs.size - n * n) // 6)
    Y, table = np.empty((6, X.shape[1])), np.empty(16 * series.shape[0])
    pair_blocks(X, energy, series, shift, odd, reach, table, Y)
    C, D, dy = np.empty(s * n), np.zeros(s * n + 1), np.empty(y.size)
    scatter(Y.reshape(-1), first, factor, output, entry, weight, C)
    N = D[:-1].reshape(s, n)
    np.dot(C.reshape(s, n), G, N)
    project(N, G, rates, D, rows, columns, dy)
    return dy

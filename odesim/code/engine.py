"""One compiled right-hand side for all models, which executes a table of steps on one vector of numbers.

The right-hand side is interpreted like byte code. The vector W has the state, then constants, then the results of the
steps, then work space for one block. A step is one row of integers: the operation, the number of repetitions, and the
places (see `odesim.code.steps` for the columns). The machine code of a model is one function, `kernel`, with its scalar
formulas and its sums. The engine, and every integrator, is therefore compiled once for all models. The tables of the
engine are arguments of two types.

Only documented features of numba are used: explicit signatures, `cache=True`, `types.FunctionType`, and `np.dot`. All
tables are unsigned, because numba tests whether a signed index is negative, which doubles the time that LLVM takes
here.
"""

import numpy as np
from numba import types
from numba.typed import List

from derivations.equations.options import OPTIONS
from odesim.code.module_cache import compiled
from odesim.code.steps import BLOCKS, COPY, HEAD, LANES, LOOPS, PRODUCT, RATES, SUM, WIDTH

numbers, places, wholes = types.float64[::1], types.uint32[::1], types.uint64[::1]
KERNEL = types.void(types.uint64, numbers, numbers, numbers, wholes)
"""kernel(which, x, s, z, g): formula `which` of a model, from arguments x and values of series s to results z.

Formulas with loops read their arguments from W, which is then passed as x, at places and with strides in g.
"""
POINTER = types.FunctionType(KERNEL)
TABLES = types.Tuple((numbers, places, wholes))
"""W, the vector of numbers; T, places in W; N, the steps and the numbers of their loops."""
KERNELS = types.ListType(POINTER)
"""List of one kernel. Passing it to compiled code takes 2 us; the function itself takes 40 to 500, and a tuple with the
list 200.
"""
FLOW = types.void(numbers, numbers, TABLES, KERNELS)
"""Type of flow(y, dy, tables, kernels), which fills dy."""
I0, I1, I2, I3, I4, I5, I6, I7, I8, I9 = map(np.uint64, range(10))
ALL, FIRST, NEXT = np.uint64(LANES), np.uint64(HEAD), np.uint64(WIDTH)


@compiled(types.void(numbers, numbers, types.uint64, types.uint64, types.uint64, numbers, numbers), **OPTIONS)
def fill_series(s, W, level, many, argument, x, square):
    """Compute values of `many` series at sixteen arguments: s[k] = shift + x^odd P_k(x^2), with as many terms as x
    needs.

    From `level` on W has (largest square, groups of four terms, place of the coefficients) of every level, ascending.
    """
    lanes = np.uint64(square.size)  # not a constant: loops that LLVM unrolls are not vectorised afterwards
    largest = 0.0
    for lane in range(lanes):
        square[lane] = x[argument + lane] * x[argument + lane]
        largest = max(largest, square[lane])
    while W[level] < largest:
        level += I3
    groups, c = np.uint64(W[level + I1]), np.uint64(W[level + I2])
    for k in range(many):
        row = ALL * k
        for lane in range(lanes):
            s[row + lane] = W[c]
        c += I1
        for _ in range(groups):
            c0, c1, c2, c3 = W[c], W[c + I1], W[c + I2], W[c + I3]
            c += I4
            for lane in range(lanes):
                v = square[lane]
                s[row + lane] = (((s[row + lane] * v + c0) * v + c1) * v + c2) * v + c3
        shift, odd, even = W[c], W[c + I1], W[c + I2]
        c += I3
        for lane in range(lanes):
            s[row + lane] = shift + s[row + lane] * (odd * x[argument + lane] + even)


@compiled(FLOW, **OPTIONS)
def flow(y, dy, tables, kernels):  # noqa: C901 - one branch for each kind of step
    """Compute dy/dt at the state y of an autonomous system of equations.

    The state may be rows that do not act on each other (N[5] of them). Then the steps are those of one row. Before them
    its N[6] individual constants are copied from W[N[8] ..] to W[T[N[7] ..]], where the steps read them.
    """
    (W, T, N), kernel = tables, kernels[0]
    x, s, z, square = W[N[I1] : N[I2]], W[N[I2] : N[I3]], W[N[I3] : N[I4]], W[N[I4] : N[I4] + ALL]
    rows, own, first, values = N[I5], N[I6], N[I7], N[I8]
    width = np.uint64(y.size) // rows
    for row in range(rows):
        for k in range(width):
            W[k] = y[row * width + k]
        for k in range(own):
            W[T[first + k]] = W[values + row * own + k]
        at_row = FIRST
        for _ in range(N[I0]):
            what, count, at, to = N[at_row], N[at_row + I1], N[at_row + I2], N[at_row + I3]
            by, more, which = N[at_row + I4], N[at_row + I5], N[at_row + I6]
            if what == COPY:
                for e in range(count):
                    W[to + e] = W[T[at + e]]
            elif what == SUM:  # `more` terms, with factors
                for e in range(count):
                    W[to + e] = 0.0
                for _ in range(more):
                    for e in range(count):
                        W[to + e] += W[by + e] * W[T[at + e]]
                    by += count
                    at += count
            elif what == PRODUCT:  # (count, more) by (more, which)
                left = W[at : at + count * more].reshape((count, more))
                right = W[by : by + more * which].reshape((more, which))
                np.dot(left, right, W[to : to + count * which].reshape((count, which)))
            elif what == LOOPS:  # loops over W in the kernel; N says extents, places and strides
                kernel(which, W, s, z, N[at : at + count])
            elif what == RATES:
                for e in range(count):
                    dy[row * count + e] = W[T[at + e]]
            elif what == BLOCKS:  # `count` blocks of `by` arguments and `more` results
                level, argument, many = N[at_row + I7], N[at_row + I8], N[at_row + I9]
                for _ in range(count):
                    for e in range(by):
                        x[e] = W[T[at + e]]
                    at += by
                    if many > I0:
                        fill_series(s, W, level, many, argument, x, square)
                    kernel(which, x, s, z, N)
                    for e in range(more):
                        W[to + e] = z[e]
                    to += more
            at_row += NEXT


@compiled(KERNELS(POINTER))
def hold(kernel):
    """Return a list of one kernel."""
    held = List.empty_list(POINTER)
    held.append(kernel)
    return held

"""One-pass SGD of a soft committee with activation He_3: the right-hand side of its overlaps, drift and noise.

Students f(x) = sum_i s(w_i . x) and teachers y = sum_r s(w*_r . x), s = He_3, orthonormal w*_r, e = y - f, x ~ N(0, I):

    dM_ir = E[s'(l_i) l*_r e]        dQ_ij = E[s'(l_i) l_j e] + E[s'(l_j) l_i e] + step E[s'(l_i) s'(l_j) e^2]

(Saad & Solla 1995, equation (7)).  Two kernels, E[s'(a) b s(c)] and E[s'(a) s'(b) s(c) s(d)] as polynomials in the
covariances, are derived once by the lemma and called by loops over the nodes, as in the systems of odesim; the peers
get the whole right-hand side as one expression.
"""

import functools
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from benchmarks import peers
from benchmarks.measure import Row, compare, timing
from derivations.contract import Kernel

SIZES = {2: "1 us", 4: "3.5 us", 8: "25 us"}
"""p = k, and the bar for one evaluation."""
STEP = 0.1
FLAT = 4
"""The largest size at which the peers' one expression is built: at 8 its subexpressions alone take half a minute."""
FLOOR = "floor: a compiled function of the same arguments that returns an empty state"
THIRD = ("aa", "ab", "ac", "bc", "cc")
ORDER = "bd ac ad aa bc ab bb dd cc cd"
FOURTH = ("aa", "bb", "cc", "dd", "ab", "ac", "ad", "bc", "bd", "cd")


@functools.cache
def kernels() -> Mapping[str, Kernel]:
    """E[He_3'(a) b He_3(c)] and E[He_3'(a) He_3'(b) He_3(c) He_3(d)]; aa, .. are variances less 1, ab, .. covariances.

    In these the lemma has 25 terms in place of 86, and Horner's scheme in this order 73 operations.
    """
    import sympy

    from hermite.gaussian import expectation_symbolic

    def matrix(nodes: str) -> Any:
        def entry(i: int, j: int) -> Any:
            return sympy.Symbol("".join(sorted(nodes[i] + nodes[j]))) + (1 if i == j else 0)

        return sympy.Matrix(len(nodes), len(nodes), entry)

    third = 3 * expectation_symbolic((2, 1, 3), matrix("abc"))
    fourth = 9 * expectation_symbolic((2, 2, 3, 3), matrix("abcd"))
    return {
        "third_moment": Kernel((), THIRD, {"value": sympy.horner(third)}),
        "fourth_moment": Kernel((), FOURTH, {"value": sympy.horner(fourth, wrt=sympy.symbols(ORDER))}),
    }


def covariances(y, p, k, C):
    """Fill the covariance matrix of the p + k fields from the state (M (p, k), then Q above and on the diagonal)."""
    at = p * k
    for i in range(p):
        for r in range(k):
            C[i, p + r] = C[p + r, i] = y[i * k + r]
        for j in range(i, p):
            C[i, j] = C[j, i] = y[at]
            at += 1
    for r in range(p, p + k):
        for s in range(p, p + k):
            C[r, s] = 1.0 if r == s else 0.0


def tabulate(C, own, p, T):
    """Every pair of nodes (c, d) once, as columns of T, so that the moments of all pairs are one vectorised loop.

    Rows: the variances less 1 of c and of d, C_cd, and the weight of the pair in e^2; then C_ic and C_id of every
    student i.
    """
    n, q = len(C), 0
    for c in range(n):
        for d in range(c, n):
            weight = 1.0 if d == c else 2.0
            T[0, q], T[1, q], T[2, q] = own[c], own[d], C[c, d]
            T[3, q] = weight if (c >= p) == (d >= p) else -weight
            for i in range(p):
                T[4 + 2 * i, q], T[5 + 2 * i, q] = C[i, c], C[i, d]
            q += 1


def noise(T, own_i, own_j, between, i, j):
    """E[s'(l_i) s'(l_j) e^2] from the table of pairs, the variances of l_i and l_j less 1 and their covariance."""
    total = 0.0
    for q in range(T.shape[1]):
        total += T[3, q] * fourth_moment(  # type: ignore[name-defined]
            0, 0, own_i, own_j, T[0, q], T[1, q], between,
            T[4 + 2 * i, q], T[5 + 2 * i, q], T[4 + 2 * j, q], T[5 + 2 * j, q], T[2, q],
        )[0]  # fmt: skip
    return total


def flow(t, y, p, k, step):
    """The derivative of the flat state."""
    n = p + k
    C, own, out = np.empty((n, n)), np.empty(n), np.empty(y.size)
    T = np.empty((4 + 2 * p, n * (n + 1) // 2))
    covariances(y, p, k, C)
    for i in range(n):
        own[i] = C[i, i] - 1.0
    tabulate(C, own, p, T)
    for at in range(p * k, y.size):
        out[at] = 0.0
    for i in range(p):
        for b in range(n):
            total = 0.0  # E[s'(l_i) l_b e]
            for c in range(n):
                value = third_moment(0, 0, own[i], C[i, b], C[i, c], C[b, c], own[c])[0]  # type: ignore[name-defined]
                total += value if c >= p else -value
            if b >= p:
                out[i * k + b - p] = total
                continue
            low, high = min(i, b), max(i, b)
            at = p * k + low * p - low * (low - 1) // 2 + high - low
            out[at] += 2.0 * total if i == b else total
            if b >= i:
                out[at] += step * noise(T, own[i], own[b], C[i, b], i, b)
    return out


def compiled() -> Callable[..., Any]:
    """Our right-hand side, one module for all sizes."""
    from odesim.code import compile

    loops = tuple(f"benchmarks.committee:{function.__name__}" for function in (covariances, tabulate, noise, flow))
    return compile.functions_of("committee", compile.generate_module("committee", kernels(), loops), ["flow"])["flow"]


def state(p: int, seed: int = 0) -> np.ndarray:
    """The flat state of p students and as many teachers in a few dimensions."""
    rng = np.random.default_rng(seed)
    w = rng.standard_normal((p, 2 * p)) / np.sqrt(2 * p)
    return np.concatenate([w[:, :p].ravel(), (w @ w.T)[np.triu_indices(p)]])


def flat(p: int, symbols: Any, step: float = STEP) -> list[Any]:
    """The same right-hand side as p^2 + p (p + 1) / 2 expressions in `symbols`, for programs that take expressions."""
    from odesim.code.arrays import array_kernel

    found = {name: array_kernel(kernel) for name, kernel in kernels().items()}
    n, upper = 2 * p, {}
    for at, (i, j) in enumerate(zip(*np.triu_indices(p), strict=True)):
        upper[int(i), int(j)] = symbols[p * p + at]

    def v(i: int, j: int) -> Any:
        i, j = sorted((i, j))
        if i >= p:
            return 1.0 if i == j else 0.0
        return upper[i, j] if j < p else symbols[i * p + j - p]

    def third(i: int, b: int, c: int) -> Any:
        value = found["third_moment"](None, v(i, i) - 1, v(i, b), v(i, c), v(b, c), v(c, c) - 1)[0]
        return value if c >= p else -value

    def fourth(i: int, j: int, c: int, d: int) -> Any:
        own = [v(a, a) - 1 for a in (i, j, c, d)]
        value = found["fourth_moment"](None, *own, v(i, j), v(i, c), v(i, d), v(j, c), v(j, d), v(c, d))[0]
        return (1 if c == d else 2) * (value if (c >= p) == (d >= p) else -value)

    D = {(i, b): sum(third(i, b, c) for c in range(n)) for i in range(p) for b in range(n)}
    pairs = [(c, d) for c in range(n) for d in range(c, n)]
    square = {(i, j): sum(fourth(i, j, c, d) for c, d in pairs) for i, j in upper}
    drift = {(i, j): D[i, j] + D[j, i] + step * square[i, j] for i, j in upper}
    return [D[i, p + r] for i in range(p) for r in range(p)] + list(drift.values())


def heyoka(p: int) -> Callable[[np.ndarray], np.ndarray]:
    """A compiled function of one expression per component."""
    import heyoka as hk

    symbols = hk.make_vars(*[f"y{i}" for i in range(state(p).size)])
    return hk.cfunc(flat(p, symbols), symbols, compact_mode=True)


def symengine(p: int) -> Callable[[np.ndarray], np.ndarray]:
    """`Lambdify` through LLVM after elimination of common subexpressions."""
    import symengine as se

    symbols = [se.Symbol(f"y{i}") for i in range(state(p).size)]
    return se.Lambdify(symbols, flat(p, symbols), backend="llvm", cse=True)


PEERS = {"heyoka": heyoka, "symengine": symengine}


def rows(quick: bool) -> list[Row]:
    """One evaluation, warm, one core, with the seconds that building took."""
    import numba
    import sympy  # noqa: F401  (imports are not part of the time to build, theirs neither)

    began = time.perf_counter()
    ours = compiled()
    ours(0.0, state(2), 2, 2, STEP)
    built = time.perf_counter() - began
    empty = numba.njit(lambda t, y, p, k, step: np.empty(y.size))
    found = []
    for p, bar in SIZES.items():
        y = state(p)
        solvers: dict[str, Callable[[], Any]] = {"odesim": functools.partial(ours, 0.0, y, p, p, STEP)}
        notes = {name: "not built" for name in PEERS}
        for name, build in PEERS.items() if p <= (2 if quick else FLAT) else ():
            try:
                began = time.perf_counter()
                function = build(p)
                function(y)
                notes[name] = f"built in {time.perf_counter() - began:.1f} s"
                solvers[name] = functools.partial(function, y)
            except Exception as error:
                notes[name] = peers.reason(error)
        times = compare({**solvers, "floor": functools.partial(empty, 0.0, y, p, p, STEP)}, 5 if quick else 40)
        truth = solvers["odesim"]()
        for name in PEERS:
            peer = times.get(name, timing([float("nan")])).median if name in times else None
            error = float(np.abs(np.asarray(solvers[name]()) - truth).max()) if name in solvers else None
            note = f"bar {bar}; derived and compiled in {built:.1f} s (bar 2 s) for all sizes; {notes[name]}; {FLOOR}"
            found.append(
                Row(
                    f"right-hand side, He_3 committee, p = k = {p}", times["odesim"].median, times["odesim"].spread,
                    name, peer, None, error, times["floor"].median, note=note,
                )
            )  # fmt: skip
    return found

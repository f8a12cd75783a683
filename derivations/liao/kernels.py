"""The pair kernel of two experts and its derivatives: exact SymPy expressions from the Hermite lemma.

For experts (v1, w1) and (v2, w2) with overlaps

    rho = v1.v2   g = w1.w2   z11 = v1.w1   z12 = v1.w2   z21 = v2.w1   z22 = v2.w2

the kernel is K = E[pi(v1.x) pi(v2.x) He_p(w1.x) He_p(w2.x)], a polynomial in g and the z's whose coefficients
are the correlation functions S_ab(rho) = E[pi^(a)(v1.x) pi^(b)(v2.x)] (Lemma 1 of the paper: a finite sum over
multigraphs, 30 terms at p = 3).  Its partial derivatives are the paper's lambdas:

    dK/drho = lambda_1   dK/dz11 = p lambda_2   dK/dz12 = p lambda_4   dK/dz21 = p lambda_3   dK/dg = p^2 lambda_5
"""

import functools
from typing import Any

import sympy

from derivations.contract import Kernel
from derivations.lanes import LANES
from derivations.liao.pairs import correlation_pairs
from hermite.gaussian import pair_kernel

OVERLAPS: Any = tuple(sympy.Symbol(name) for name in ("g", "z11", "z12", "z21", "z22"))


def correlation_symbol(a: int, b: int) -> sympy.Symbol:
    """The symbol of S_ab = S_ba (both gates are the same function)."""
    low, high = sorted((a, b))
    return sympy.Symbol(f"S_{low}_{high}")


def orders(symbol: sympy.Symbol) -> tuple[int, int]:
    """The pair (a, b) that a correlation symbol stands for."""
    _, low, high = symbol.name.split("_")
    return int(low), int(high)


def symbols_of(expression: sympy.Expr) -> set[sympy.Symbol]:
    """The correlation symbols that occur in an expression."""
    return {s for s in expression.free_symbols if isinstance(s, sympy.Symbol) and s not in OVERLAPS}


@functools.cache
def kernel(degree: int, a: int = 0, b: int = 0, p: int | None = None, q: int | None = None) -> Any:
    """T[a, b, p, q] = E[pi^(a)(v1.x) pi^(b)(v2.x) He_p(w1.x) He_q(w2.x)]; by default K = T[0, 0, degree, degree].

    Source: Liao & Kyrillidis 2026, Lemma 1, with the product over unordered pairs.
    """
    p, q = degree if p is None else p, degree if q is None else q
    g, z11, z12, z21, z22 = OVERLAPS
    return pair_kernel(a, b, p, q, g, z11, z12, z21, z22, correlation_symbol)


@functools.cache
def partial(degree: int, variable: str) -> Any:
    """dK/d(variable) by differentiation; for rho by Price's rule dS_ab/drho = S_{a+1,b+1}."""
    expression = kernel(degree)
    if variable != "rho":
        return sympy.diff(expression, sympy.Symbol(variable))
    symbols = sorted(symbols_of(expression), key=orders)
    total = sympy.Integer(0)
    for symbol in symbols:
        a, b = orders(symbol)
        total += sympy.diff(expression, symbol) * correlation_symbol(a + 1, b + 1)
    return sympy.expand(total)


def table_names(degree: int) -> tuple[str, ...]:
    """The names of the correlation functions in the order of `correlation_pairs`."""
    return tuple(f"S_{a}_{b}" for a, b in correlation_pairs(degree))


@functools.cache
def exact_kernels(degree: int) -> dict[str, Kernel]:
    """The kernels of the exact flow: `pair_gradient` (six partial derivatives, and K) and `pair_energy` (K alone)."""
    scalars = tuple(symbol.name for symbol in OVERLAPS)
    gradient = {name: partial(degree, name) for name in ("rho", "z11", "z12", "z21", "z22", "g")}
    names = table_names(degree)
    return {
        "pair_gradient": Kernel(names, scalars, {**gradient, "K": kernel(degree)}, LANES),
        "pair_energy": Kernel(names, scalars, {"K": kernel(degree)}),
    }


@functools.cache
def aligned_kernels(degree: int) -> dict[str, Kernel]:
    """The kernels where every mis-alignment vanishes: K = p! S_00 g^p, which closes on (rho, g) alone.

    Source: Liao & Kyrillidis 2026, equation (5), with the constants of the invariant set z = 0.
    """
    zero = dict.fromkeys(OVERLAPS[1:], 0)
    g = OVERLAPS[0]
    outputs = {name: partial(degree, name).subs(zero) for name in ("rho", "g")}
    energy = kernel(degree).subs(zero)
    names = table_names(degree)
    return {
        "aligned_gradient": Kernel(names, (g.name,), outputs),
        "aligned_energy": Kernel(names, (g.name,), {"K": energy}),
    }


@functools.cache
def leading_kernels(degree: int) -> dict[str, Kernel]:
    """The leading order in small overlaps: dK/dg and dK/drho at S_ab(0), and the self term's linear rate.

    `repulsion` is the coefficient of p in (1/2) dK_ii/dp for the self overlap p = v_i.w_i (rho = g = 1): at
    degree 3 it is -18 c_3 = 36 C_S2.  Source: Liao & Kyrillidis 2026, equations (4) and (5).
    """
    self_overlap = sympy.Symbol("p")
    diagonal = kernel(degree).subs({OVERLAPS[0]: 1} | dict.fromkeys(OVERLAPS[1:], self_overlap))
    repulsion = sympy.diff(diagonal, self_overlap, 2).subs(self_overlap, 0) / 2
    names = table_names(degree)
    aligned = aligned_kernels(degree)["aligned_gradient"]
    return {
        "aligned_gradient": aligned,
        "self_repulsion": Kernel(names, (), {"rate": sympy.expand(repulsion)}),
    }


def numpy_kernel(kernel: Kernel) -> Any:
    """A kernel as a NumPy function of (table, *scalars) -> list of outputs, for real or complex arguments."""
    inputs = [sympy.symbols(kernel.table), *sympy.symbols(kernel.scalars)]
    return sympy.lambdify(inputs, list(kernel.outputs.values()), modules="numpy", cse=True)

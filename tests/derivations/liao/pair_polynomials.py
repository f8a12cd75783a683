"""The pair kernel and its derivatives as polynomials in plain symbols, S_a_b for the correlation functions."""

import sympy

from derivations.liao.tiers import kernels
from hermite.gaussian import pair_kernel

OVERLAPS = tuple(sympy.Symbol(name) for name in ("g", "z11", "z12", "z21", "z22"))
FACTORS = {"rho": ("Lam1", 0), "z11": ("Lam2", 1), "z21": ("Lam3", 1), "z12": ("Lam4", 1), "g": ("Lam5", 2)}
"""The lambda of every variable, and the power of the degree that it is divided by."""


def correlation_symbol(a: int, b: int) -> sympy.Symbol:
    """The symbol of S_ab = S_ba."""
    low, high = sorted((a, b))
    return sympy.Symbol(f"S_{low}_{high}")


def orders(symbol: sympy.Symbol) -> tuple[int, int]:
    """The pair (a, b) that a correlation symbol stands for."""
    _, low, high = symbol.name.split("_")
    return int(low), int(high)


def symbols_of(expression: sympy.Expr) -> set[sympy.Symbol]:
    """The correlation symbols that occur in an expression."""
    return {s for s in expression.free_symbols if s.name.startswith("S_")}


def kernel(degree: int, a: int = 0, b: int = 0, p: int | None = None, q: int | None = None) -> sympy.Expr:
    """E[pi^(a)(v1.x) pi^(b)(v2.x) He_p(w1.x) He_q(w2.x)] by the lemma; without orders the kernel that is compiled."""
    if (a, b, p, q) == (0, 0, None, None):
        return plain(kernels.polynomials(degree)["K"])
    return pair_kernel(a, b, p, q, *OVERLAPS, correlation_symbol)


def partial(degree: int, variable: str) -> sympy.Expr:
    """The derivative of the kernel by an overlap, as it is compiled."""
    name, power = FACTORS[variable]
    return plain(kernels.polynomials(degree)[name]) * degree**power


def plain(expression: sympy.Expr) -> sympy.Expr:
    """Functions S(a, b, rho) as symbols."""
    found = {s: correlation_symbol(int(s.args[0]), int(s.args[1])) for s in expression.atoms(kernels.S)}
    return expression.xreplace(found)

"""Overlaps of random ReLU units, by SymPy.

For standard normal (u, u') of correlation rho, sigma the ReLU and 1(.) its derivative,

    kappa0(rho) = E[1(u >= 0) 1(u' >= 0)] = sum_j (b_j^2/j!) rho^j = 1/4 + arcsin(rho)/(2 pi),   b_j = E[He_j(u) 1(u >=
    0)]
    kappa1(rho) = E[sigma(u) sigma(u')] = rho kappa0(rho) + sqrt(1 - rho^2)/(2 pi)
"""

import math
from typing import Any

import sympy

U: Any = sympy.Symbol("u", real=True)
RHO: Any = sympy.Symbol("rho", real=True)


def step_coefficient(j: int) -> Any:
    """b_j = E[He_j(u) 1(u >= 0)]: 1/2 for j = 0, else He_(j-1)(0)/sqrt(2 pi) by parts (He_j phi = -(He_(j-1) phi)')."""
    from hermite.polynomials import coefficients

    if j == 0:
        return sympy.Rational(1, 2)
    return sympy.Integer(int(coefficients(j - 1)[0])) / sympy.sqrt(2 * sympy.pi)


def series(degree: int) -> Any:
    """The Hermite series of kappa0 up to rho^degree: sum_j b_j^2/j! rho^j."""
    return sum(step_coefficient(j) ** 2 / math.factorial(j) * RHO**j for j in range(degree + 1))


def kappa0() -> Any:
    """The sum of the series: its even terms vanish except the first, and the odd ones are those of the arcsine."""
    return sympy.Rational(1, 4) + sympy.asin(RHO) / (2 * sympy.pi)


def kappa1() -> Any:
    """E[sigma(u) sigma(u')]: kappa1' = kappa0 (Gaussian integration by parts), kappa1(-1) = 0."""
    r = sympy.Symbol("r", real=True)
    return sympy.simplify(sympy.integrate(kappa0().subs(RHO, r), (r, -1, RHO)))

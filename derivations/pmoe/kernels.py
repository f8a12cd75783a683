"""The scalar kernels of the population dynamics, by SymPy: the logistic loss, and overlaps of random ReLU units.

For standard normal (u, u') of correlation rho, sigma the ReLU and 1(.) its derivative,

    kappa0(rho) = E[1(u >= 0) 1(u' >= 0)] = sum_j (b_j^2/j!) rho^j = 1/4 + arcsin(rho)/(2 pi),   b_j = E[He_j(u) 1(u >=
    0)]
    kappa1(rho) = E[sigma(u) sigma(u')] = rho kappa0(rho) + sqrt(1 - rho^2)/(2 pi)
"""

import functools
import math
from collections.abc import Mapping
from typing import Any

import sympy

from derivations.contract import Kernel

U: Any = sympy.Symbol("u", real=True)
RHO: Any = sympy.Symbol("rho", real=True)


@functools.cache
def logistic() -> Kernel:
    """`logistic(u)` -> (log(1 + e^-u), 1/(1 + e^u)) of the margin u = y f, by |u| so that no exponential overflows."""
    small = sympy.exp(-sympy.Abs(U))
    loss = sympy.log(1 + small) + (sympy.Abs(U) - U) / 2
    slope = sympy.exp(-(sympy.Abs(U) + U) / 2) / (1 + small)
    return Kernel((), ("u",), {"loss": loss, "slope": slope})


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
    """The sum of the series: its even terms vanish but the first, and the odd ones are those of the arcsine."""
    return sympy.Rational(1, 4) + sympy.asin(RHO) / (2 * sympy.pi)


def kappa1() -> Any:
    """E[sigma(u) sigma(u')]: kappa1' = kappa0 (Gaussian integration by parts), kappa1(-1) = 0."""
    r = sympy.Symbol("r", real=True)
    return sympy.simplify(sympy.integrate(kappa0().subs(RHO, r), (r, -1, RHO)))


@functools.cache
def network_kernels() -> Mapping[str, Kernel]:
    """The kernel of the levels that follow neurons or their frozen activation pattern."""
    return {"logistic": logistic()}


@functools.cache
def limit_kernels() -> Mapping[str, Kernel]:
    """Those of infinite width: the logistic loss, and `overlap(rho)` -> kappa0."""
    return {"logistic": logistic(), "overlap": Kernel((), ("rho",), {"kappa0": kappa0()})}

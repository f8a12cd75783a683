"""The activations of an expert with their slopes, and the slope of the logistic loss.

All follow by SymPy from the definition of the expert, f = sum_j sum_p sigma(w_j . x_p), and the logistic loss.
"""

import functools
from typing import Any

import sympy

Z: Any = sympy.Symbol("z", real=True)
POWER: Any = sympy.Symbol("power", positive=True)


def q_of(u: Any) -> Any:
    """q(u) = -l'(u) = 1/(1 + e^u) for the logistic loss l(u) = log(1 + e^-u)."""
    loss = sympy.log(1 + sympy.exp(-Z))
    return sympy.simplify(-sympy.diff(loss, Z)).subs(Z, u)


def activation(name: str) -> Any:
    """sigma(z) as an expression in z (and `power` for activation power)."""
    z = Z
    return {
        "cubic": z**3,
        "linear": z,
        "relu": (z + sympy.Abs(z)) / 2,
        "celu": (z + sympy.Abs(z)) / 2 + sympy.exp((z - sympy.Abs(z)) / 2) - 1,
        "gelu": z * (1 + sympy.erf(z / sympy.sqrt(2))) / 2,
        "silu": z / (1 + sympy.exp(-z)),
        "tanh": sympy.tanh(z),
        "power": sympy.sign(z) * sympy.Abs(z) ** POWER,
    }[name]


def slope(name: str) -> Any:
    """sigma'(z) by differentiation, away from kinks; at a kink the mean of both sides (sign(0) = 0)."""
    if name == "power":
        return POWER * sympy.Abs(Z) ** (POWER - 1)
    return sympy.diff(activation(name), Z)


@functools.cache
def early_drift() -> tuple[Any, Any]:
    """(coefficient of sigma'(x_k) along v_k, the same along c_k) at h = 0, q = 1/2, for cubic experts.

    E over y, eps and the uniform cluster pair of one example's -grad_w, projected: E[alpha^3]/(2 K M^2) and 0.
    Source: Chen et al. 2022, Lemma E.5.
    """
    x, c = sympy.symbols("x c", real=True)
    alpha, beta, gamma, k, m = sympy.symbols("alpha beta gamma K M", positive=True)
    y, eps = sympy.symbols("y epsilon", real=True)
    sigma = sympy.Lambda(Z, sympy.diff(Z**3, Z))
    gate = sympy.Rational(1, 2) / m**2  # p pi q at h = 0
    feature = gate * y * (sigma(y * alpha * x) * y * alpha / k + sigma(eps * gamma * x) * eps * gamma / k)
    centre = gate * y * sigma(beta * c) * beta / k

    def mean(expression: Any) -> Any:
        corners = [expression.subs({y: a, eps: b}) for a in (-1, 1) for b in (-1, 1)]
        return sympy.simplify(sympy.Add(*corners) / 4)

    return sympy.simplify(mean(feature) / sigma(x)), mean(centre)

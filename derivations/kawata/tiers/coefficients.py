"""The shifted Hermite coefficients alpha_i(t) = E[sigma(Z + t) h_i(Z)] of every activation, for the pages."""

from typing import Any

import numpy as np

from derivations.contract import Initial
from derivations.kawata.parameters import MOST_DEGREE, Parameters, activation_series
from derivations.statement import HALF, Base, E, He, Kernel, Named, function, sp

T = sp.Symbol("t", real=True)
ORDER = sp.Symbol("order", integer=True, nonnegative=True)
WIDTH = sp.Symbol("width", integer=True)
N = sp.Symbol("N", integer=True, positive=True)
J = sp.Idx("j", N)
SIGMA, TERM = Base("sigma"), sp.Idx("l", WIDTH)
alpha = function("alpha", lambda x, at: sp.sqrt(x[0] + 1) * alpha(x[0] + 1, x[1]) if at == 2 else None)
"""alpha_i(t), with Stein's rule d alpha_i/dt = sqrt(i + 1) alpha_(i+1)."""
monomial = function("monomial", lambda x, at: monomial(x[0] - 1, x[1]) if at == 2 else None)
MONOMIAL = Kernel(
    "monomial",
    (ORDER, T),
    {"monomial": sp.Piecewise((0, sp.Lt(ORDER, 0)), (T**ORDER / sp.factorial(ORDER), True))},
    orders=1,
    note="t^n/n!, whose derivative is that of order n - 1, and 0 for n = -1",
)
DENSITY = Kernel(
    "phi",
    (T,),
    {"phi": sp.Mul(sp.exp(-(T**2) / 2), sp.Pow(2 * sp.pi, -HALF, evaluate=False), evaluate=False)},
    note="normal density",
)
DISTRIBUTION = Kernel("Phi", (T,), {"Phi": (1 + sp.erf(T / sp.sqrt(2))) / 2}, note="normal distribution function")


def coefficients(p: Parameters, low: int) -> tuple[Kernel, ...]:
    """The kernel alpha and the kernels in it, for orders from `low` on; powers for polynomials of each neuron."""
    if p.signs:
        return (MONOMIAL,)
    phi, below, root = DENSITY["phi"](T), DISTRIBUTION["Phi"](T), sp.sqrt(sp.factorial(ORDER))
    needed: tuple[Kernel, ...] = ()
    if p.activation == "relu":
        needed = (DENSITY,) if low > 1 else (DENSITY, DISTRIBUTION)
        value: Any = (-1) ** ORDER * He(ORDER - 2, T) * phi / root
        if low < 2:
            value = sp.Piecewise((T * below + phi, sp.Eq(ORDER, 0)), (below, sp.Eq(ORDER, 1)), (value, True))
    elif p.activation == "polynomial":
        ratio = sp.sqrt(sp.factorial(ORDER + TERM) / sp.factorial(ORDER)) / sp.factorial(TERM)
        value = sp.Sum(SIGMA[ORDER + TERM] * ratio * T**TERM, TERM)
    elif p.activation in ("erf", "probit"):
        needed = (DENSITY,)
        scale = 1 if p.activation == "probit" else 2
        value = scale * (-1) ** (ORDER - 1) * He(ORDER - 1, T / sp.sqrt(2)) * DENSITY["phi"](T / sp.sqrt(2))
        value = value / (sp.sqrt(2) ** ORDER * root)
        if low < 1:
            first = sp.erf(T / 2) if p.activation == "erf" else (1 + sp.erf(T / 2)) / 2
            value = sp.Piecewise((first, sp.Eq(ORDER, 0)), (value, True))
    else:
        own = sp.exp(T + HALF) if p.activation == "exp" else sp.exp(-HALF) * sp.cos(T + sp.pi * ORDER / 2)
        value = own / root
    Z = sp.Symbol("Z")
    mean = E(function("activation")(Z + T), He(ORDER, Z)) / root
    note = "coefficients of the shifted activation; their derivative raises the order (Stein)"
    return (*needed, Kernel("alpha", (ORDER, T), {"alpha": value}, {"alpha": (mean,)}, orders=1, note=note))


def shifted(p: Parameters, order: Any, t: Any) -> Any:
    """alpha_order(t) of neuron j: the kernel, or with `signs` the series of the neuron's polynomial."""
    if not p.signs:
        return alpha(order, t)
    ratio = sp.sqrt(sp.factorial(order + TERM) / sp.factorial(order))
    return sp.Sum(SIGMA[J, order + TERM] * ratio * monomial(TERM, t), TERM)


def constants(p: Parameters) -> tuple[Named, ...]:
    """The coefficients of a polynomial activation, those of every neuron with `signs`."""
    if p.activation != "polynomial":
        return ()
    row = activation_series(p)
    width, table = (
        Named(WIDTH, "coefficients of the activation", len(row)),
        f"np.array({padded(np.array(row)).tolist()})",
    )
    if p.signs:
        table = f"{table} * np.random.default_rng(3).choice([-1.0, 1.0], (N, {padded(np.array(row)).size}))"
        return width, Named(SIGMA[J, TERM], "orthonormal coefficients of the neuron's activation by degree", table)
    return width, Named(SIGMA[TERM], "its orthonormal coefficients by degree", table)


def bind(initial: Initial) -> dict[str, Any]:
    """The numbers of these constants."""
    p, rows = initial.parameters, np.atleast_2d(initial.constants["sigma"])
    if p.activation != "polynomial":
        return {}
    return {"sigma": padded(rows if p.signs else rows[0]), "width": rows.shape[1]}


def padded(rows: np.ndarray) -> np.ndarray:
    """Coefficients (.., degrees), followed by zeros for the degrees in a series of any order."""
    return np.pad(rows, [*[(0, 0)] * (rows.ndim - 1), (0, 2 * MOST_DEGREE + 4)])


NOTATION = {
    "order": ("n", "n"),
    "activation": (r"\sigma", "σ"),
    "U_kappa": (r"U^{\kappa}", "Uκ"),
    "U_xi": (r"U^{\xi}", "Uξ"),
    "U_nu": (r"U^{\nu}", "Uν"),
    "degree": ("p", "p"),
    "Phi": (r"\Phi", "Φ"),
    "dn": (r"\Delta\nu", "Δν"),
    "s_1": ("s_1", "s₁"),
    "monomial": ("m", "m"),
}

"""Probability of an orthant of two correlated normal fields, as a function of SymPy and as code."""

from math import erf
from typing import Any

import numpy as np
from numba import njit

from derivations.equations.options import INNER
from derivations.statement import HALF, Special, sp


def orthant(u, v, X, Y, T, r):
    """P(z1 > -u, z2 > -v) of variances X, Y and covariance T, r = sqrt(X Y - T^2), by two of Owen's functions T(h, a).

    These are integrals of a smooth function over [0, 1], by 16 Gauss-Legendre nodes and weights (over 2 pi); with
    |a| > 1 they are T(a h, 1/a).  The same text works for numbers and arrays.  Source: Owen 1956.
    """
    u, v = u + 1e-100 * (u == 0.0), v + 1e-100 * (v == 0.0)  # Owen's formula is 0/0 at a threshold of 0
    total = 0.25 * (2.0 + erf(u / np.sqrt(2.0 * X)) + erf(v / np.sqrt(2.0 * Y))) - 0.5 * ((u < 0.0) != (v < 0.0))
    for h, p, V in ((u / np.sqrt(X), v * X - T * u, X), (v / np.sqrt(Y), u * Y - T * v, Y)):
        q, m = h * r * np.sqrt(V), np.abs(p) / (r * np.sqrt(V))
        inverted = 1.0 * (np.abs(p) > np.abs(q))
        a = (inverted * q + (1.0 - inverted) * p) / (inverted * p + (1.0 - inverted) * q)
        g = 0.5 * (inverted * m * m + (1.0 - inverted) * h * h)
        part = 0.0 * a
        for x, c in (
            (0.005299532504175031, 0.002160724066241367),
            (0.0277124884633837, 0.00495397802986269),
            (0.06718439880608412, 0.0075724737557682845),
            (0.1222977958224985, 0.009917658413887993),
            (0.19106187779867811, 0.011904470543439039),
            (0.2709916111713863, 0.013461048108967368),
            (0.35919822461037054, 0.014531118064930284),
            (0.4524937450811813, 0.015076000562850642),
            (0.5475062549188188, 0.015076000562850642),
            (0.6408017753896295, 0.014531118064930284),
            (0.7290083888286136, 0.013461048108967368),
            (0.8089381222013219, 0.011904470543439039),
            (0.8777022041775016, 0.009917658413887993),
            (0.9328156011939159, 0.0075724737557682845),
            (0.9722875115366163, 0.00495397802986269),
            (0.994700467495825, 0.002160724066241367),
        ):
            y = 1.0 + (x * a) * (x * a)
            part = part + c * np.exp(-g * y) / y
        phi_h, phi_m = 0.5 + 0.5 * erf(np.abs(h) / np.sqrt(2.0)), 0.5 + 0.5 * erf(m / np.sqrt(2.0))
        part = np.abs(a) * part
        total = total - np.sign(a) * (part + inverted * (0.5 * phi_h + 0.5 * phi_m - phi_h * phi_m - 2.0 * part))
    return total


compiled_orthant = njit(**INNER)(orthant)


class Orthant(Special):
    """P(z1 > -u, z2 > -v) of variances X, Y and covariance T, as Orthant(u, v, X, Y, T, r), r = sqrt(X Y - T^2).

    r is a separate argument for accuracy; derivatives are those with respect to the others.
    """

    nargs = 6
    is_real = True
    code = staticmethod(orthant)
    compiled = f"{__name__}:compiled_orthant"

    def fdiff(self, argindex: int = 1) -> Any:
        """Return the derivative by a threshold, a variance (half the second derivative by the threshold), or the
        covariance.
        """
        u, v, X, Y, T, r = self.args
        if argindex in (1, 3):
            return _by_threshold(u, v, X, T, r, argindex == 3)
        if argindex in (2, 4):
            return _by_threshold(v, u, Y, T, r, argindex == 4)
        if argindex == 5:
            return sp.exp(-(Y * u**2 - 2 * T * u * v + X * v**2) / (2 * r**2)) / (2 * sp.pi * r)
        return sp.Integer(0)


def _by_threshold(u: Any, v: Any, X: Any, T: Any, r: Any, twice: bool) -> Any:
    """The derivative by the threshold u of variance X, or half of the second."""
    density = sp.exp(-(u**2) / (2 * X)) / sp.sqrt(2 * sp.pi * X)
    bound = (v * X - T * u) / (r * sp.sqrt(X))
    probability = HALF + sp.erf(bound / sp.sqrt(2)) / 2
    if not twice:
        return density * probability
    slope = sp.exp(-(bound**2) / 2) / sp.sqrt(2 * sp.pi)
    return -HALF * density * (u / X * probability + slope * T / (r * sp.sqrt(X)))

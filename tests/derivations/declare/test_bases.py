"""Closed forms of two gates with biases against quadrature, and the orthant probability against 30 digits."""

import itertools

import mpmath
import numpy as np
import pytest
import sympy
from scipy.special import erf

from derivations.declare import bases, orthants, symbols
from derivations.declare.gates import Gate, Open
from derivations.equations.arrays import with_library

VALUES = {
    "relu": (lambda x: np.maximum(x, 0.0), lambda x: 1.0 * (x > 0)),
    "step": (lambda x: 1.0 * (x > 0),),
    "erf": (
        erf,
        lambda x: 2 / np.sqrt(np.pi) * np.exp(-x * x),
        lambda x: -4 * x / np.sqrt(np.pi) * np.exp(-x * x),
    ),
}
SPACE: dict = {"np": np, "erf": erf, "orthant": with_library(orthants.orthant, np, erf)}
exec("".join(symbols.SOURCE.values()), SPACE)
SLOPES = (sympy.Rational(6, 5), sympy.Rational(7, 10))


def value(form, **places):
    """A form by its generated text."""
    return eval(symbols.text(form, "np.", root="root"), {**SPACE, **places})


def nodes(kinks):
    """Gauss panels that end at the kinks."""
    edges = np.unique([*np.linspace(-12, 12, 49), *kinks])
    x, w = np.polynomial.legendre.leggauss(20)
    middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    return (middle[:, None] + half[:, None] * x).ravel(), (half[:, None] * w).ravel()


def gate(kind, slope, bias):
    return Gate(kind, 0, slope, sympy.Float(bias, 17) if bias else sympy.S.Zero)


@pytest.mark.parametrize(("one", "two"), list(itertools.product(VALUES, VALUES)))
@pytest.mark.parametrize("biases", [(0.4, -0.7), (0.0, 0.5)])
def test_two_fields(one, two, biases):
    covariance = np.array([[1.3, 0.6], [0.6, 0.8]])
    inverse, det = np.linalg.inv(covariance), np.linalg.det(covariance)
    (x, wx), (y, wy) = (nodes([-b / float(s)]) for b, s in zip(biases, SLOPES, strict=True))
    square = inverse[0, 0] * x[:, None] ** 2 + 2 * inverse[0, 1] * x[:, None] * y + inverse[1, 1] * y**2
    density = np.exp(-square / 2) / (2 * np.pi * np.sqrt(det))
    for (a, f), (b, g) in itertools.product(enumerate(VALUES[one]), enumerate(VALUES[two])):
        form = bases.pair(gate(one, SLOPES[0], biases[0]), a, gate(two, SLOPES[1], biases[1]), b, False)
        left = wx * f(float(SLOPES[0]) * x + biases[0]) * float(SLOPES[0]) ** a
        right = wy * g(float(SLOPES[1]) * y + biases[1]) * float(SLOPES[1]) ** b
        assert value(form, x=1.3, y=0.8, t=0.6) == pytest.approx(left @ density @ right, abs=1e-13)


@pytest.mark.parametrize(("one", "two"), list(itertools.product(VALUES, VALUES)))
@pytest.mark.parametrize("biases", [(0.4, -0.7), (-0.5, -0.5), (0.0, 0.5)])
def test_a_field_with_itself(one, two, biases):
    """Gates of one field, at one threshold or at two: what jumps stands at the other's threshold or apart from it."""
    slopes = SLOPES if biases[0] != biases[1] else (SLOPES[0], SLOPES[0])
    z, w = nodes([-b / float(s) for b, s in zip(biases, slopes, strict=True)])
    w = w * np.exp(-(z**2) / 2.6) / np.sqrt(2.6 * np.pi)
    for (a, f), (b, g) in itertools.product(enumerate(VALUES[one]), enumerate(VALUES[two])):
        form = bases.pair(gate(one, slopes[0], biases[0]), a, gate(two, slopes[1], biases[1]), b, True)
        left = f(float(slopes[0]) * z + biases[0]) * float(slopes[0]) ** a
        right = g(float(slopes[1]) * z + biases[1]) * float(slopes[1]) ** b
        assert value(form, x=1.3) == pytest.approx((w * left * right).sum(), abs=1e-13)


@pytest.mark.parametrize("biases", [(0.3, 0.3), (0.9, 0.3), (0.3, 0.9), (0.0, 0.0)])
def test_a_ramp_times_what_jumps(biases):
    """E[relu(z + u) delta(z + v)] and with delta' against differences of E[relu(z + u) step(z + v)] in v."""
    ramp, u, v, h = "relu", *biases, 1e-4

    def mean(level, at):
        form = bases.pair(gate(ramp, sympy.S.One, u), 0, gate("step", sympy.S.One, at), level, True)
        return value(form, x=1.3)

    if u == v:
        assert mean(1, v) == 0.0
        assert mean(2, v) == pytest.approx(-np.exp(-(v**2) / 2.6) / np.sqrt(2 * np.pi * 1.3) / 2, abs=1e-15)
        return
    assert mean(1, v) == pytest.approx((mean(0, v + h) - mean(0, v - h)) / (2 * h), abs=1e-7)
    assert mean(2, v) == pytest.approx((mean(1, v + h) - mean(1, v - h)) / (2 * h), abs=1e-7)


def test_what_diverges_is_refused():
    with pytest.raises(Open, match="no finite mean"):
        bases.pair(gate("step", sympy.S.One, 0.5), 1, gate("step", sympy.S.One, 0.5), 1, True)


def orthant(u, v, X, Y, T):
    """P(z1 > -u, z2 > -v) to 30 digits: Plackett's identity, panels graded towards the end."""
    h, k, rho = mpmath.mpf(u) / mpmath.sqrt(X), mpmath.mpf(v) / mpmath.sqrt(Y), mpmath.mpf(T) / mpmath.sqrt(X * Y)
    end = mpmath.asin(rho)

    def density(s):
        return mpmath.exp(-(h * h + k * k - 2 * h * k * mpmath.sin(s)) / (2 * mpmath.cos(s) ** 2))

    panels = [0, *(end * (1 - mpmath.mpf(10) ** -p) for p in (0.3, 1, 2, 4, 6)), end]
    return mpmath.ncdf(h) * mpmath.ncdf(k) + mpmath.quad(density, panels) / (2 * mpmath.pi)


def test_the_orthant_probability():
    """At any correlation, thresholds from 1e-8 to 10 deviations, and at 0; near +-1 it is as uncertain as its root."""
    rng = np.random.default_rng(0)
    with mpmath.workdps(30):
        for n in range(60):
            X, Y = np.exp(rng.normal(size=2)).tolist()
            near = 1 - 10 ** rng.uniform(-6, -1)
            rho = [rng.uniform(-1, 1), near, -near][n % 3]
            u, v = (rng.normal(size=2) * [1e-8, 0.1, 1.0, 4.0][n % 4]).tolist()
            u, v = (0.0 if n % 7 == 0 else u), (0.0 if n % 11 == 0 else v)
            T = rho * np.sqrt(X * Y)
            r = float(mpmath.sqrt(mpmath.mpf(X) * Y - mpmath.mpf(T) ** 2))
            found = SPACE["orthant"](u, v, X, Y, T, r)
            assert abs(found - float(orthant(u, v, X, Y, T))) < 1e-15 + 1e-16 * X * Y / r, (u, v, X, Y, rho)

"""References for Gaussian means that share nothing with the package: double-exponential quadrature and mpmath."""

import math
from fractions import Fraction

import mpmath
import numpy as np
from scipy import special

REACH = 18.0  # exponentials of rate 7 are integrated, too


def phi(x):
    return np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)


# name -> (f, E[f(m + s n)] in closed form or None)
FUNCTIONS = {
    "step": (lambda u: (np.sign(u) + 1) / 2, lambda m, s: special.ndtr(m / s)),
    "sign": (np.sign, lambda m, s: special.erf(m / s / math.sqrt(2))),
    "abs": (np.abs, lambda m, s: m * special.erf(m / s / math.sqrt(2)) + 2 * s * phi(m / s)),
    "relu": (lambda u: np.maximum(u, 0), lambda m, s: m * special.ndtr(m / s) + s * phi(m / s)),
    "erf": (special.erf, lambda m, s: special.erf(m / np.sqrt(1 + 2 * s * s))),
    "probit": (special.ndtr, lambda m, s: special.ndtr(m / np.sqrt(1 + s * s))),
    "gelu": (
        lambda u: u * special.ndtr(u),
        lambda m, s: (
            m * special.ndtr(m / np.sqrt(1 + s * s)) + s * s / np.sqrt(1 + s * s) * phi(m / np.sqrt(1 + s * s))
        ),
    ),
    "logistic": (special.expit, None),
    "tanh": (np.tanh, None),
    "silu": (lambda u: u * special.expit(u), None),
    "softplus": (lambda u: np.logaddexp(0, u), None),
    "exp": (np.exp, lambda m, s: np.exp(m + s * s / 2)),
    "cos": (np.cos, lambda m, s: np.cos(m) * np.exp(-s * s / 2)),
    "sin": (np.sin, lambda m, s: np.sin(m) * np.exp(-s * s / 2)),
}


def double_exponential(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on (0, 1): features at the ends are resolved whatever their scale."""
    t = np.linspace(-3.9, 3.9, count)
    q = special.expit(math.pi * np.sinh(t))
    return q, (t[1] - t[0]) * math.pi * np.cosh(t) * q * special.expit(-math.pi * np.sinh(t))


def integrate(f, cuts: np.ndarray, count: int = 600, reach: float = REACH) -> tuple[np.ndarray, np.ndarray]:
    """E[f(x)] and E|f(x)|, standard normal x, by one rule between neighbouring cuts (..., B) and
    a fixed grid; f maps (..., M)."""
    cuts = np.clip(np.asarray(cuts, dtype=float), -reach, reach)
    # steps of 2: the rule has to resolve the Gaussian weight, too
    grid = np.broadcast_to(np.arange(-reach, reach + 1, 2), (*cuts.shape[:-1], round(reach) + 1))
    edges = np.sort(np.concatenate([grid, cuts], axis=-1), axis=-1)
    q, w = double_exponential(count)
    length = np.diff(edges, axis=-1)[..., None]
    x = edges[..., :-1, None] + length * q
    x = np.where(q > 0.5, edges[..., 1:, None] - length * q[::-1], x)
    shape = (*x.shape[:-2], -1)
    x, weight = x.reshape(shape), (length * w).reshape(shape)
    values = weight * phi(x) * f(x)
    return values.sum(axis=-1), np.abs(values).sum(axis=-1)


def smoothed(name: str, m: np.ndarray, s) -> np.ndarray:
    """E[f(m + s n)] for arrays m, s > 0 that broadcast."""
    f, closed = FUNCTIONS[name]
    if closed is not None:
        return closed(m, s)
    if np.max(s) <= 1:
        # trapezoidal: the nearest pole, of tanh at i pi/2, leaves exp(-2 pi (pi/2) / step)
        t = np.arange(-57, 58) / 6
        return f(np.asarray(m)[..., None] + np.asarray(s)[..., None] * t) @ phi(t) / 6
    m, s = np.broadcast_arrays(m, s)
    m, s = m[..., None], s[..., None]
    return integrate(lambda x: f(m + s * x), -m / s, 140, 10.0)[0]  # 70 leave 4e-14


def exact_rest(v1: float, v2: float, c: float) -> float:
    """sqrt(v2 - c^2 / v1), the difference taken exactly."""
    return math.sqrt(max(float(Fraction(v2) - Fraction(c) ** 2 / Fraction(v1)), 0.0))


def pair(names, scales, shifts, mean, covariance) -> tuple[float, float]:
    """E[f(z1) g(z2)] and the size of its integrand, one given the other."""
    (v1, c), (_, v2) = covariance
    (n1, n2), (a1, a2), (b1, b2) = names, scales, shifts
    if FUNCTIONS[n2][1] is None and FUNCTIONS[n1][1] is not None:
        return pair(names[::-1], scales[::-1], shifts[::-1], mean[::-1], np.asarray(covariance)[::-1, ::-1])
    f = FUNCTIONS[n1][0]
    s1, rest = math.sqrt(v1), exact_rest(v1, v2, c)

    def integrand(x):
        z2 = a2 * (mean[1] + c / s1 * x) + b2
        inner = FUNCTIONS[n2][0](z2) if rest == 0 else smoothed(n2, z2, abs(a2) * rest)
        return f(a1 * (mean[0] + s1 * x) + b1) * inner

    cuts = [-(mean[0] + b1 / a1) / s1]
    if c != 0:
        cuts.append(-(mean[1] + b2 / a2) / (c / s1))
    # two integrals in one another: moderate variances only
    value, size = integrate(integrand, np.array(cuts), *(() if FUNCTIONS[n2][1] else (90, 12.0)))
    return float(value), float(size)


def one_factor(names, shifts, loads, rests, power: int = 0) -> tuple[float, float]:
    """E[x^power prod f_i(loads_i x + rests_i n_i + shift_i)]: every correlation through one variable x."""

    def integrand(x):
        total = x**power
        for name, b, load, rest in zip(names, shifts, loads, rests, strict=True):
            total = total * (FUNCTIONS[name][0](load * x + b) if rest == 0 else smoothed(name, load * x + b, rest))
        return total

    cuts = [-b / load for b, load in zip(shifts, loads, strict=True) if load != 0] or [0.0]
    numeric = sum(FUNCTIONS[name][1] is None for name in names)
    value, size = integrate(integrand, np.array(cuts), *((400, 12.0) if numeric else ()))
    return float(value), float(size)


def _mp(covariance):
    return mpmath.matrix([[mpmath.mpf(float(c)) for c in row] for row in np.asarray(covariance)])


def saad_solla(c):
    """(I3, I4 and E[g1' g2'], E[g1 g2]) of g = erf(x / sqrt 2) for a 4 x 4 covariance, in mpmath numbers."""
    c = _mp(c)
    one, pi = mpmath.mpf(1), mpmath.pi
    i2 = 2 / pi * mpmath.asin(c[0, 1] / mpmath.sqrt((one + c[0, 0]) * (one + c[1, 1])))
    l4 = (one + c[0, 0]) * (one + c[1, 1]) - c[0, 1] ** 2
    slopes = 2 / pi / mpmath.sqrt(l4)
    l3 = (one + c[0, 0]) * (one + c[2, 2]) - c[0, 2] ** 2
    i3 = 2 / pi * (c[1, 2] * (one + c[0, 0]) - c[0, 1] * c[0, 2]) / ((one + c[0, 0]) * mpmath.sqrt(l3))
    l0 = l4 * c[2, 3] - c[1, 2] * c[1, 3] * (one + c[0, 0]) - c[0, 2] * c[0, 3] * (one + c[1, 1])
    l0 += c[0, 1] * (c[0, 2] * c[1, 3] + c[0, 3] * c[1, 2])

    def last(k):
        return (
            l4 * (one + c[k, k])
            - c[1, k] ** 2 * (one + c[0, 0])
            - c[0, k] ** 2 * (one + c[1, 1])
            + 2 * c[0, 1] * c[0, k] * c[1, k]
        )

    i4 = 4 / pi**2 / mpmath.sqrt(l4) * mpmath.asin(l0 / mpmath.sqrt(last(2) * last(3)))
    return i2, slopes, i3, i4


def kinks_two(c):
    """E of relu relu, step step, abs abs, step relu for a 2 x 2 covariance, mpmath numbers."""
    c = _mp(c)
    v1, v2, c12 = c[0, 0], c[1, 1], c[0, 1]
    d = mpmath.sqrt(max(v1 * v2 - c12**2, 0))
    arc = mpmath.atan2(c12, d)
    pi = mpmath.pi
    both = (2 * d + pi * c12 + 2 * c12 * arc) / (4 * pi)
    size = 2 / pi * (d + c12 * arc)
    single = (mpmath.sqrt(v2) + c12 / mpmath.sqrt(v1)) / (2 * mpmath.sqrt(2 * pi)) / 1
    # E[H1 r2] = (sqrt(v2) + c12 / sqrt(v1)) / (2 sqrt(2 pi))
    return {"relu": both, "step": mpmath.mpf(1) / 4 + arc / (2 * pi), "abs": size, "mixed": single}


def kinks_three(c):
    """E of abs^3 (Nabeya 1952), relu^3 and step^3, centred, for a 3 x 3 covariance, mpmath numbers."""
    c = _mp(c)
    s = [mpmath.sqrt(c[i, i]) for i in range(3)]
    pi = mpmath.pi
    r = {(i, j): c[i, j] / (s[i] * s[j]) for i in range(3) for j in range(3)}
    determinant = 1 + 2 * r[0, 1] * r[0, 2] * r[1, 2] - r[0, 1] ** 2 - r[0, 2] ** 2 - r[1, 2] ** 2
    root = mpmath.sqrt(max(determinant, 0))
    absolute, mixed, arcs = root, mpmath.mpf(0), mpmath.mpf(0)
    for i, j, k in ((0, 1, 2), (0, 2, 1), (1, 2, 0)):
        # arcsine of the partial correlation, through its complement
        absolute += (r[i, j] + r[i, k] * r[j, k]) * mpmath.atan2(r[i, j] - r[i, k] * r[j, k], root)
        mixed += r[i, j] + r[i, k] * r[j, k]
        arcs += mpmath.atan2(r[i, j], mpmath.sqrt(max(1 - r[i, j] ** 2, 0)))
    scale = s[0] * s[1] * s[2]
    absolute *= mpmath.sqrt(8 / pi**3) * scale
    return {
        "abs": absolute,
        "relu": (absolute + mpmath.sqrt(2 / pi) * mixed * scale) / 8,
        "step": mpmath.mpf(1) / 8 + arcs / (4 * pi),
    }

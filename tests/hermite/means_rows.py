"""Random cases of every row of the table of Gaussian means, each with an independent reference."""

import math
from fractions import Fraction

import mpmath
import numpy as np

from hermite import gaussian
from hermite.ladders import factor

from . import means_reference as reference

STEP_FAMILY = ("step", "sign", "abs", "relu", "erf", "probit", "gelu")
SMOOTH = ("erf", "probit", "gelu", "logistic", "tanh", "silu", "softplus", "cos", "sin")
ALL = (*STEP_FAMILY, "logistic", "tanh", "silu", "softplus")


def correlation(rng) -> float:
    """Anything in [-1, 1], as often as not within 1e-1 to 1e-15 of the ends, or at them."""
    kind = rng.integers(5)
    sign = rng.choice([-1.0, 1.0])
    if kind < 2:
        return rng.uniform(-1, 1)
    return sign if kind == 2 else sign * (1 - 10.0 ** rng.uniform(-15, -1))


def two(rng, widest: float = 6.0) -> np.ndarray:
    """A 2 x 2 covariance with variances of 10^-widest to 10^widest, singular or not, never indefinite."""
    v1 = 1.0 if rng.random() < 0.3 else 10.0 ** rng.uniform(-widest, widest)
    v2 = v1 if rng.random() < 0.4 else 10.0 ** rng.uniform(-widest, widest)
    c = correlation(rng) * math.sqrt(v1) * math.sqrt(v2)
    while Fraction(c) ** 2 > Fraction(v1) * Fraction(v2):
        c = math.nextafter(c, 0.0)
    return np.array([[v1, c], [c, v2]])


def several(rng, n: int, widest: float = 2.0) -> np.ndarray:
    """A covariance of n variables, exact in doubles: A A^T for short dyadic A, often nearly or wholly singular."""
    a = np.round(rng.standard_normal((n, n)) * 1024) / 1024
    near = rng.integers(4)
    if near:
        # the second row all but parallel to the first, by 2^-24 at the least
        a[1] = a[0] * rng.choice([-1, 1]) + (near > 1) * np.round(rng.standard_normal(n) * 8) / 2.0 ** rng.integers(
            8, 18
        )
    scale = 2.0 ** rng.integers(-round(widest * 3), round(widest * 3), size=n)
    a = a * scale[:, None]
    return a @ a.T


def shifted(rng, n: int) -> np.ndarray:
    return np.zeros(n) if rng.random() < 0.4 else np.round(rng.standard_normal(n) * 64) / 64


def loads(rng, n: int, reach: float = 3.0):
    """(loads, rests, covariance) of a one-factor law, exact in doubles."""
    load = np.round(rng.uniform(-1, 1, n) * 4096) / 4096 * 2.0 ** rng.integers(-2, round(reach), size=n)
    load[load == 0] = 0.5
    rest = np.where(rng.random(n) < 0.4, 2.0 ** -rng.integers(2, 20, size=n), 2.0 ** -rng.integers(0, 3, size=n))
    if rng.random() < 0.1:
        rest[0] = 0.0
    return load, rest, np.outer(load, load) + np.diag(rest**2)


def polynomials(rng):
    """Row 1 against the sum over multigraphs, in rational numbers."""
    n = int(rng.integers(2, 5))
    covariance, mean = several(rng, n), shifted(rng, n)
    degrees = [int(k) for k in rng.integers(0, 5 if n < 4 else 4, size=n)]
    exact = [[Fraction(c) for c in row] for row in covariance]
    truth = gaussian.expectation(degrees, exact)
    factors = [factor("hermite", coefficients=[0] * k + [1], shift=-m) for k, m in zip(degrees, mean, strict=True)]
    return (factors, covariance, mean), truth, 0.0


def single(rng):
    """Row 2: He_k of one variable times any function of another."""
    name = str(rng.choice([*ALL, "exp", "cos", "sin"]))
    wide = name not in ("exp", "cos", "sin")
    covariance, mean, degree = two(rng, 3.0 if wide else 0.5), shifted(rng, 2), int(rng.integers(0, 5))
    (v1, c), (_, v2) = covariance
    coefficients = np.polynomial.hermite_e.herme2poly([0] * degree + [1])
    s1, rest = math.sqrt(v1), reference.exact_rest(v1, v2, c)

    def integrand(x):
        m, moments = mean[1] + c / s1 * x, [np.ones_like(x)]
        moments.append(m)
        for k in range(1, degree):
            moments.append(m * moments[k] + k * rest**2 * moments[k - 1])
        f = reference.FUNCTIONS[name][0](mean[0] + s1 * x)
        return f * sum(p * q for p, q in zip(coefficients, moments[: degree + 1], strict=True))

    value, size = reference.integrate(integrand, np.array([-mean[0] / s1]))
    spread = (abs(mean[1]) + math.sqrt(v2) + 1) ** degree * (abs(mean[0]) + s1 + 1)
    power = factor("power", coefficients=[int(p) for p in coefficients])
    return ([factor(name), power], covariance, mean), float(value), 4e-15 * float(max(size, spread * (name != "exp")))


def double(rng, names):
    """Row 3: two functions, any scale and shift."""
    names = [str(name) for name in rng.choice(names, size=2)]
    wave = any(name in ("exp", "cos", "sin") for name in names)
    nested = all(reference.FUNCTIONS[name][1] is None for name in names)  # the reference is a double integral
    covariance, mean = two(rng, 0.5 if wave or nested else 4.0), shifted(rng, 2)
    scales = rng.choice([1.0, 0.5, -2.0, 0.75], size=2)
    shifts = rng.choice([0.0, 0.0, 0.25, -1.5], size=2)
    value, size = reference.pair(names, scales, shifts, mean, covariance)
    factors = [factor(n, scale=a, shift=b) for n, a, b in zip(names, scales, shifts, strict=True)]
    return (factors, covariance, mean), value, 4e-15 * size


def pairs(rng):
    """Row 3, a closed form at any variance."""
    return double(rng, [*STEP_FAMILY, *STEP_FAMILY, "exp"])


def waves(rng):
    """Row 3, cosines and sines beside one other function."""
    args, value, slack = double(rng, ["cos", "sin", "exp", *STEP_FAMILY])
    while sum(f.ladder is not None for f in args[0]) > 1:
        args, value, slack = double(rng, ["cos", "sin", "exp", *STEP_FAMILY])
    return args, value, slack


def gates(rng):
    """Row 3 by panels: logistic, tanh, silu, softplus beside each other or the step's family."""
    other = str(rng.choice(ALL))
    args, value, slack = double(rng, ["logistic", "tanh", "silu", "softplus", other])
    while not any(f.ladder.kind == "logistic" for f in args[0]):
        args, value, slack = double(rng, ["logistic", "tanh", "silu", "softplus", other])
    return args, value, slack


def unit_gates(rng):
    """Row 3 by correlation functions: unit variances."""
    rho = correlation(rng)
    names = [str(name) for name in rng.choice(["logistic", "tanh"], size=2)]
    scales = [1.0, 1.0] if rng.random() < 0.5 else [1.0, 0.5]
    covariance = np.array([[1.0, rho], [rho, 1.0]])
    value, size = reference.pair(names, scales, [0.0, 0.0], [0.0, 0.0], covariance)
    return ([factor(n, scale=a) for n, a in zip(names, scales, strict=True)], covariance, None), value, 4e-15 * size


def error_functions(rng):
    """Row 4: I2, E[g'g'], I3 and I4 with g(x) = erf(x / sqrt 2), to 30 digits as erf(z) of half the covariance."""
    # erf(z) of covariance C is g of covariance 2 C: exact in doubles
    covariance = several(rng, 4, 1.0)
    with mpmath.workdps(50):
        i2, slopes, i3, i4 = reference.saad_solla(2 * covariance)
        which = int(rng.integers(4))
        erf, slope = factor("erf"), factor("erf", order=1)
        linear = factor("power", coefficients=[0, 1])
        # erf'(z) = sqrt(2) g'(x), z = x / sqrt 2
        truth = [i2, 2 * slopes, i3, 2 * i4][which]
        factors = [[erf, erf], [slope, slope], [slope, linear, erf], [slope, slope, erf, erf]][which]
        return (factors, covariance[: len(factors), : len(factors)], None), truth, 0.0


def kinks(rng):
    """Row 5 up to three, centred, to 30 digits."""
    name = str(rng.choice(["relu", "step", "abs"]))
    with mpmath.workdps(50):
        if rng.random() < 0.5:
            covariance = two(rng)
            return ([factor(name)] * 2, covariance, None), reference.kinks_two(covariance)[name], 0.0
        covariance = several(rng, 3)
        while any(covariance[i, j] ** 2 >= covariance[i, i] * covariance[j, j] for i in range(3) for j in range(i)):
            covariance = several(rng, 3)  # Nabeya's formula is 0/0 for parallel variables
        return ([factor(name)] * 3, covariance, None), reference.kinks_three(covariance)[name], 0.0


def _by_one_factor(rng, names, biased: bool, reach: float = 3.0):
    n = len(names)
    load, rest, covariance = loads(rng, n, reach)
    shift = shifted(rng, n) if biased else np.zeros(n)
    value, size = reference.one_factor(names, shift, load, rest)
    return ([factor(name) for name in names], covariance, shift), value, 4e-15 * size


def plackett(rng):
    """Row 5, four of the step's family, or three with biases."""
    biased = bool(rng.random() < 0.5)
    count = 3 if biased and rng.random() < 0.6 else 4
    names = [str(name) for name in rng.choice(["step", "sign", "abs", "relu", "erf", "probit"], size=count)]
    return _by_one_factor(rng, names, biased)


def smooth(rng):
    """Row 6: three and four analytic factors."""
    names = [str(name) for name in rng.choice(SMOOTH, size=3 if rng.random() < 0.8 else 4)]
    return _by_one_factor(rng, names, bool(rng.random() < 0.5), 1.0)


def rough(rng):
    """Row 7: three or four factors of which one at least has a kink and one is logistic."""
    names = [str(name) for name in rng.choice([*STEP_FAMILY, "tanh", "silu"], size=int(rng.integers(1, 3)))]
    names += [str(rng.choice(["step", "relu", "abs"])), str(rng.choice(["logistic", "softplus"]))]
    return _by_one_factor(rng, names, bool(rng.random() < 0.5), 2.0)


ROWS = {
    f.__name__: f
    for f in (polynomials, single, pairs, waves, gates, unit_gates, error_functions, kinks, plackett, smooth, rough)
}

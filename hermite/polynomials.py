"""Probabilists' Hermite polynomials He_k, exact by recurrence."""

from fractions import Fraction
from functools import cache
from math import comb, factorial

import numpy as np

from hermite.errors import DomainError, degree


@cache
def _coefficients(k: int) -> tuple[int, ...]:
    """Return He_k in ascending powers, from He_k = x He_{k-1} - (k-1) He_{k-2} run upwards."""
    older, newer = (1,), (0, 1)
    if k == 0:
        return older
    for i in range(1, k):
        lifted = (0, *newer)
        older, newer = newer, tuple(c - i * (older[m] if m < i else 0) for m, c in enumerate(lifted))
    return newer


def coefficients(k: int) -> tuple[int, ...]:
    """Return the integer coefficients of He_k in ascending powers of x.

    He_{k+1} = x He_k - k He_{k-1}, He_0 = 1, He_1 = x.

    Arguments: k, integer >= 0. Returns a tuple of k + 1 ints.
    Raises: DegreeError. Source: Abramowitz & Stegun 1964, chapter 22.

    >>> coefficients(4)
    (3, 0, -6, 0, 1)
    """
    return _coefficients(degree(k, "k"))


def _prepare(x):
    """Return x with machine integers converted to floats, because machine integers would wrap around silently."""
    kind = getattr(getattr(x, "dtype", None), "kind", None)
    return x * 1.0 if kind in ("i", "u", "b") else x


def evaluate(k: int, x):
    """Return He_k(x) by the three-term recurrence, using only +, -, * on x.

    He_{k+1}(x) = x He_k(x) - k He_{k-1}(x).

    Arguments: k, integer >= 0; x, a float, Fraction, SymPy, mpmath, NumPy or JAX value of any shape. Returns a value of
    x's kind and shape (integer arrays become float64, Python ints stay exact). Raises: DegreeError; DomainError if a
    float or NumPy result is beyond the largest number, as He_400 at 1.5 (ints, Fractions and mpmath numbers can
    represent it). Inside JAX such a result is not finite. Source: Abramowitz & Stegun 1964, chapter 22.

    >>> evaluate(3, 2), evaluate(4, Fraction(1, 2))
    (2, Fraction(25, 16))
    """
    return evaluate_all(k, x)[-1]


def evaluate_all(K: int, x) -> list:
    """Return [He_0(x), ..., He_K(x)] by the three-term recurrence.

    Arguments and errors are those of `evaluate`. Returns a list of K + 1 values.
    Source: Abramowitz & Stegun 1964, chapter 22.

    >>> evaluate_all(4, 1)
    [1, 1, 0, -2, -2]
    """
    K = degree(K, "K")
    x = _prepare(x)
    # x ** 0 is one of x's own kind and shape, also where x is infinite (x * 0 + 1 would not be).
    values = [x**0, x]
    with np.errstate(over="ignore", invalid="ignore"):  # an overflow raises an error below
        for k in range(1, K):
            values.append(x * values[k] - k * values[k - 1])
    _require_representable(K, x, values[K])
    return values[: K + 1]


def _require_representable(K: int, x, value) -> None:
    """Raise `DomainError` if He_K is not finite at a finite x. Otherwise the recurrence would continue with inf -
    inf.
    """
    if not isinstance(x, float | np.ndarray | np.floating):
        return
    found = np.asarray(value)
    if found.dtype.kind in "fc" and not np.isfinite(found[np.isfinite(x)]).all():
        raise DomainError(
            f"He_{K} is beyond the largest number of {found.dtype.name} ({np.finfo(found.dtype).max:.3g}) at "
            "this x: give x as an int, a Fraction or an mpmath number, which can represent it"
        )


def symbolic(k: int, x):
    """Return He_k(x) as an exact, expanded SymPy polynomial when x is a symbol.

    He_k(x) = sum_m (-1)^m k! / (2^m m! (k-2m)!) x^(k-2m).

    Arguments: k, integer >= 0; x, a SymPy expression. Raises: DegreeError.
    Source: Abramowitz & Stegun 1964, chapter 22.

    >>> import sympy
    >>> symbolic(3, sympy.Symbol("x"))
    x**3 - 3*x
    """
    import sympy

    x = sympy.sympify(x)
    return sympy.Add(*(sympy.Integer(c) * x**power for power, c in enumerate(coefficients(k)) if c))


def derivative(k: int) -> tuple[int, int]:
    """Return (factor, order) such that He_k' = factor He_order.

    He_k' = k He_{k-1}; for k = 0 the answer is (0, 0), the zero polynomial.

    Arguments: k, integer >= 0. Raises: DegreeError. Source: Abramowitz & Stegun 1964, chapter 22.

    >>> derivative(5)
    (5, 4)
    """
    k = degree(k, "k")
    return (k, max(k - 1, 0))


def linearise(j: int, k: int) -> dict[int, int]:
    """Return {n: coefficient} of the product He_j He_k in the Hermite basis.

    He_j He_k = sum_r r! C(j, r) C(k, r) He_{j+k-2r}.

    Arguments: j, k, integers >= 0. Raises: DegreeError. Source: Feldheim 1938; Andrews, Askey & Roy 1999,
    (6.8.3).

    >>> linearise(2, 2)
    {4: 1, 2: 4, 0: 2}
    """
    j, k = degree(j, "j"), degree(k, "k")
    return {j + k - 2 * r: factorial(r) * comb(j, r) * comb(k, r) for r in range(min(j, k) + 1)}


def to_power(hermite_coefficients) -> list:
    """Return the ascending power coefficients of sum_k b_k He_k.

    Arguments: hermite_coefficients, sequence of b_0..b_n (int, Fraction, SymPy Rational or float).
    Returns a list of the same length, exact for exact input. Source: Abramowitz & Stegun 1964, chapter 22.

    >>> to_power([0, 0, 1])
    [-1, 0, 1]
    """
    entries = list(hermite_coefficients)
    result = [entry * 0 for entry in entries]
    for k, entry in enumerate(entries):
        for power, c in enumerate(coefficients(k)):
            if c:
                result[power] = result[power] + c * entry
    return result


def from_power(power_coefficients) -> list:
    """Return b_0..b_n with sum_n p_n x^n = sum_k b_k He_k(x).

    x^n = sum_r n! / (2^r r! (n-2r)!) He_{n-2r}(x).

    Arguments: power_coefficients, sequence p_0..p_n (int, Fraction, SymPy Rational or float).
    Returns a list of the same length, exact for exact input. Source: Abramowitz & Stegun 1964, chapter 22.

    >>> from_power([0, 0, 0, 1])
    [0, 3, 0, 1]
    """
    entries = list(power_coefficients)
    result = [entry * 0 for entry in entries]
    for n, entry in enumerate(entries):
        for r in range(n // 2 + 1):
            count = factorial(n) // (2**r * factorial(r) * factorial(n - 2 * r))
            result[n - 2 * r] = result[n - 2 * r] + count * entry
    return result


def as_fraction(value) -> Fraction:
    """Return an int, Fraction, float or SymPy Rational as the Fraction it equals exactly.

    Arguments: value, a finite rational number. Raises: ValueError, TypeError from Fraction.

    >>> as_fraction(0.5)
    Fraction(1, 2)
    """
    if hasattr(value, "p") and hasattr(value, "q"):  # SymPy Rational
        return Fraction(int(value.p), int(value.q))
    return Fraction(value.item() if hasattr(value, "item") else value)

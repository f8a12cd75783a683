"""Errors of hermite, all subclasses of ValueError, and checks shared by its modules."""

import math
from numbers import Integral


class HermiteError(ValueError):
    """Base class of the errors of this package."""


class DegreeError(HermiteError):
    """A degree, order or count is not a non-negative integer."""


class DomainError(HermiteError):
    """An argument lies outside the set on which the formula holds."""


class ShapeError(HermiteError):
    """An array has the wrong shape, or a covariance is not symmetric."""


class NotReached(HermiteError):
    """The requested error bound is not reached."""


class Undecided(HermiteError):
    """A coefficient cannot be distinguished from zero."""


class TooLarge(HermiteError):
    """A result does not fit in a double."""


def degree(value, what: str = "degree") -> int:
    """Return value as an int, or raise DegreeError unless it is an integer >= 0.

    >>> degree(3)
    3
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 0:
        raise DegreeError(f"{what}: expected an integer >= 0, got {value!r}; pass an int such as 3")
    return int(value)


def finite(**values: float) -> list[float]:
    """Return the values as floats, or raise DomainError if one of them is not finite.

    >>> finite(shift=2)
    [2.0]
    """
    for what, value in values.items():
        if not math.isfinite(value):
            raise DomainError(f"{what}: expected a finite number, got {value!r}; try 1.0")
    return [float(value) for value in values.values()]


def positive(**values: float) -> list[float]:
    """Return the values as floats, or raise DomainError unless all are finite and > 0.

    >>> positive(scale=2)
    [2.0]
    """
    for what, value in values.items():
        if not (math.isfinite(value) and value > 0):
            raise DomainError(f"{what}: expected a finite number > 0, got {value!r}; try 1.0")
    return [float(value) for value in values.values()]

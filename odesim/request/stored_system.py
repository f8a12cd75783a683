"""System of a stored data set, built from its declaration. Code that the data set names is never imported."""

from typing import Any

import derivations
from derivations import outside
from derivations.contract import System


def system_of(dataset: Any) -> System | None:
    """Return the system of the run or sweep in a data set; None if this needs code that odesim does not import."""
    return derivations.restored(str(dataset.attrs["system"]), str(dataset.attrs.get("declaration", "")))


def name_of(dataset: Any) -> str:
    """Return the name of the system of a data set, which has no path of a machine."""
    return short_name(str(dataset.attrs["system"]), str(dataset.attrs.get("declaration", "")))


def short_name(reference: str, declaration: str = "") -> str:
    """Return the name of a stored system; if the system cannot be built, the last word of its reference.

    >>> short_name("liao"), short_name("/home/me/models/decay.py:SYSTEM")
    ('liao', 'decay')
    """
    system = derivations.restored(reference, declaration)
    return system.name if system is not None else outside.last_name(reference)

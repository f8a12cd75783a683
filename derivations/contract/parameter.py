"""A parameter of a system: its default, domain and meaning; and the error for values outside of the domain."""

import dataclasses
from collections.abc import Sequence
from typing import Any


def parameter(
    default: Any,
    meaning: str,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    above: float | None = None,
    choices: Sequence[str] | None = None,
    start: bool = False,
) -> Any:
    """Declare one field of a system's parameter class: default, domain and meaning.

    `minimum` and `maximum` are included in the domain, `above` is excluded; `choices` lists the words allowed. `start`
    marks a parameter that only determines the initial state. It gives an error in a run that continues another.
    """
    metadata = {
        "meaning": meaning,
        "minimum": minimum,
        "maximum": maximum,
        "above": above,
        "choices": tuple(choices) if choices else None,
        "start": start or None,
    }
    return dataclasses.field(default=default, metadata=metadata)


class UsageError(ValueError):
    """Mistake of the caller; a `ValueError` that says what was expected, what was given, and what to try.  Exit code 2.

    Example:
        >>> import odesim
        >>> try:
        ...     odesim.integrate("liao", m=5, untill=3.0)
        ... except odesim.UsageError as error:
        ...     print(error)
        integrate has no argument 'untill'; did you mean 'until'?
    """

"""Available memory, and refusals of requests that do not fit."""

import psutil

from odesim.errors import UsageError


def free_memory() -> int:
    """Bytes that can be allocated without swapping.

    Copies of files that the system keeps in memory count as free, since it drops them when memory is asked for.
    """
    return int(psutil.virtual_memory().available)


def require_memory(numbers: float, what: str, instead: str) -> None:
    """Raise `UsageError` where that many numbers of eight bytes cannot be held."""
    available = free_memory()
    if 8.0 * numbers > available:
        raise UsageError(
            f"{what} would take {8e-9 * numbers:.3g} GB, but {available / 1e9:.1f} GB are free: lower {instead}"
        )

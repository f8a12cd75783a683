"""Available memory, and errors for requests that do not fit."""

import psutil

from odesim.errors import UsageError


def free_memory() -> int:
    """Bytes that can be allocated without swapping.

    Cached copies of files count as free, because the system drops them if memory is needed.
    """
    return int(psutil.virtual_memory().available)


def require_memory(numbers: float, what: str, instead: str) -> None:
    """Raise `UsageError` if that many numbers of eight bytes do not fit into memory."""
    available = free_memory()
    if 8.0 * numbers > available:
        raise UsageError(
            f"{what} would take {8e-9 * numbers:.3g} GB, but {available / 1e9:.1f} GB are free: lower {instead}"
        )

"""How much memory there is, and a refusal of what does not fit."""

import os

from odesim.errors import UsageError


def free_memory() -> int:
    """Bytes of memory that nobody uses now."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")


def require_memory(numbers: float, what: str, instead: str) -> None:
    """Raise `UsageError` where that many numbers of eight bytes cannot be held."""
    available = free_memory()
    if 8.0 * numbers > available:
        raise UsageError(
            f"{what} would take {8e-9 * numbers:.3g} GB, but {available / 1e9:.1f} GB are free: lower {instead}"
        )

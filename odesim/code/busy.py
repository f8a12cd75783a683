"""Derivations and compilations in progress, for the progress display."""

import contextlib
from collections.abc import Iterator

BUSY: list[str] = []


@contextlib.contextmanager
def busy(what: str) -> Iterator[None]:
    """Context manager that announces a derivation or compilation whose result the next run finds in the cache."""
    BUSY.append(what)
    try:
        yield
    finally:
        BUSY.pop()

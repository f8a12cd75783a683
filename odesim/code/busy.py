"""What is derived or compiled at this moment: progress says so, and says nothing of it while there is nothing."""

import contextlib
from collections.abc import Iterator

BUSY: list[str] = []


@contextlib.contextmanager
def busy(what: str) -> Iterator[None]:
    """Say that something is being made which the next run finds in the cache."""
    BUSY.append(what)
    try:
        yield
    finally:
        BUSY.pop()

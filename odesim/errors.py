"""The exceptions that users see, each with one clear sentence and its exit code."""

import contextlib
import errno
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from derivations.contract import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odesim.request.trajectory import Trajectory

__all__ = [
    "INTERNAL",
    "INTERRUPTED",
    "ChangedDeclaration",
    "Interrupted",
    "InterruptedRun",
    "MissingError",
    "NumericalError",
    "StorageError",
    "Unfinished",
    "UsageError",
    "exit_code",
    "interruptible",
]

INTERRUPTED = 130
INTERNAL = 70  # EX_SOFTWARE: an error in odesim, distinct from the exit code 1 of `--strict`


class NumericalError(RuntimeError):
    """Numerical failure of a computation without a trajectory. A run reports a failure in `outcome`. Exit code 3.

    Example:
        >>> import odesim, sympy
        >>> m = sympy.Symbol("m")
        >>> try:
        ...     odesim.Flow({m: m**2}).integrate({m: 1.0}, until=2.0)  # infinite at time 1
        ... except odesim.NumericalError as error:
        ...     print(str(error)[:29])
        the state is no longer finite
    """


class StorageError(OSError):
    """A run that could not be stored (a full disk, a lost mount): there is no result.  Exit code 3."""


class MissingError(RuntimeError):
    """Error for a device or optional package that is missing or is known to compute wrong numbers. Exit code 4.

    Example:
        >>> import odesim
        >>> issubclass(odesim.MissingError, RuntimeError)
        True
    """


class ChangedDeclaration(UserWarning):
    """Warning that the file of a model has changed since a run; the declaration stored with the run is used."""


class Unfinished(UsageError):
    """A later stage cannot start; `finished` are the trajectories of the stages before it.  Exit code 2."""

    def __init__(self, sentence: str, finished: "Sequence[Trajectory]") -> None:
        super().__init__(sentence)
        self.finished = list(finished)


class Interrupted(RuntimeError):
    """The user stopped a run; `finished` are the stages before the one that was stopped.  Exit code 130."""

    def __init__(self, sentence: str, finished: "Sequence[Trajectory]" = ()) -> None:
        super().__init__(sentence)
        self.finished = list(finished)


class InterruptedRun(KeyboardInterrupt):
    """Interruption by Ctrl-C in Python. It is a `KeyboardInterrupt`, so it also ends a loop over many runs.

    Attributes:
        result: The result so far: a run up to its last good state, the finished stages or verdicts, or None.

    Example:
        >>> import odesim
        >>> try:
        ...     raise odesim.InterruptedRun("interrupted at time 3", result=[1, 2])
        ... except odesim.InterruptedRun as stopped:
        ...     print(stopped, stopped.result)
        interrupted at time 3 [1, 2]
    """

    def __init__(self, sentence: str, result: Any = None) -> None:
        super().__init__(sentence)
        self.result = result


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Context manager that raises `KeyboardInterrupt` for Ctrl-C also inside compiled functions.

    There the exception is raised between two instructions of numba's dispatcher, which still returns a result. Python
    turns both into a `SystemError`.
    """
    try:
        yield
    except SystemError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        raise


UNUSABLE = (errno.ENAMETOOLONG, errno.EACCES, errno.ENOTDIR, errno.EISDIR, errno.EROFS, errno.ELOOP)
"""Error codes of the operating system for a wrong path."""


def of_path(error: BaseException) -> UsageError | None:
    """Return the `UsageError` for an error of the operating system that a wrong path caused, otherwise None."""
    if not isinstance(error, OSError) or isinstance(error, StorageError) or error.errno not in UNUSABLE:
        return None
    name = str(error.filename)
    shown = name if len(name) <= 80 else f"{name[:60]}... ({len(name)} characters)"
    return UsageError(f"the path {shown} cannot be used ({error.strerror}); choose another")


LOST = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG, errno.ESTALE, errno.ENODEV)
"""Error codes of the operating system for a disk that is full, broken or missing."""


def of_disk(error: BaseException) -> StorageError | None:
    """Return the `StorageError` for an error of the operating system that a disk caused, otherwise None."""
    if not isinstance(error, OSError) or isinstance(error, StorageError) or error.errno not in LOST:
        return None
    name = f"{error.filename}" if error.filename is not None else "the output"
    why = "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else f"the disk fails ({error.strerror})"
    return StorageError(f"{why}: {name} is incomplete; free some space or choose another place")


def of_memory(error: BaseException) -> NumericalError | None:
    """Return the `UsageError` for an array that does not fit into memory, otherwise None."""
    if not isinstance(error, MemoryError):
        return None
    asked = f" ({error})" if str(error) else ""
    return NumericalError(f"the memory of this machine is too small{asked}; use smaller sizes")


def exit_code(exception: BaseException) -> int:
    """Return the exit code: 2 usage, 3 numerical or storage, 4 missing device or extra, 130 interrupted, 70 internal
    error.
    """
    from hermite.errors import NotReached

    codes: list[tuple[type[BaseException], int]] = [
        (UsageError, 2),
        (NumericalError, 3),
        (NotReached, 3),  # a requested error bound of a Gaussian mean that was not reached
        (StorageError, 3),
        (MissingError, 4),
        (Interrupted, INTERRUPTED),
        (KeyboardInterrupt, INTERRUPTED),
    ]
    return next((code for kind, code in codes if isinstance(exception, kind)), INTERNAL)

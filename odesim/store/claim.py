"""Lock of a folder for one command at a time, and removal of the files that a killed command left behind."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from odesim.errors import UsageError

try:
    import fcntl
except ImportError:  # if the operating system has no such locks, the last command to end wins
    fcntl = None


@contextlib.contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Context manager that locks a folder until its results are written.

    The lock is the file `.NAME.lock` next to the folder `NAME`, or inside it if the parent folder cannot be written.
    The operating system releases it when the process ends, in any way. The owner of the lock may remove files that a
    killed command left next to the folder. File systems without locks, and places that cannot be written, are not
    locked; writing there raises its own error.

    Raises `UsageError` if another command has locked the folder.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as place:
        ...     with claimed(Path(place) / "run"):
        ...         sorted(os.listdir(place))
        ...     sorted(os.listdir(place))
        ['.run.lock']
        []
    """
    folder = Path(os.path.abspath(folder))
    made = [parent for parent in folder.parents if not parent.exists()]
    file = _locked(folder)
    if file is None:
        yield
        return
    try:
        _tidy(folder)
        yield
    finally:
        with contextlib.suppress(OSError):  # the folder may have been removed, and its parents may be needed
            os.unlink(file.name)  # while it is locked: no command takes a file that is about to be removed
            for parent in made:
                parent.rmdir()
        file.close()


def _locked(folder: Path) -> IO[str] | None:
    """Return the locked file, or None if locks are impossible here."""
    if fcntl is None:
        return None
    while True:
        try:
            file = _opened(folder)
        except OSError:
            return None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise UsageError(
                f"{folder} is being written by another command; wait for it, or choose another --out"
            ) from None
        except OSError:
            file.close()
            return None
        # Another command may have removed the file after it was opened here and before it was locked; then it has no
        # name.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.stat(file.name), os.fstat(file.fileno())):
                return file
        file.close()


def _opened(folder: Path) -> IO[str]:
    """Open the file of the lock: next to the folder, or inside if the parent folder cannot be written."""
    name = f".{folder.name}.lock"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        return (folder.parent / name).open("a")
    except PermissionError:
        if not folder.is_dir():
            raise
        return (folder / name).open("a")


def _tidy(folder: Path) -> None:
    """Remove files that a killed command left next to the folder; a folder that it had only moved aside is restored."""
    for path in [*folder.parent.glob(".*"), *folder.glob(".*")]:
        if path.name.startswith(f".{folder.name}.old-") and not folder.exists():
            os.replace(path, folder)
        elif path.name.startswith((f".{folder.name}.old-", f".{folder.name}.partial-")):
            shutil.rmtree(path, ignore_errors=True)

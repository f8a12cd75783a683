"""One command at a time for a folder, and what a killed one left beside it goes."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from odesim.errors import UsageError

try:
    import fcntl
except ImportError:  # where the operating system has no such locks, the last command to end wins
    fcntl = None


@contextlib.contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Hold a folder until its results are in it.

    A lock on `.NAME.lock` beside the folder `NAME` (inside it where nothing can be made beside it), which the operating
    system gives up with the process, however that ends.  Whoever holds it may remove what a killed command left beside
    the folder.  File systems without locks go without, and places that cannot be written: what writes there says so.

    Raises `UsageError` where another command holds the folder.

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
        with contextlib.suppress(OSError):  # the folder may have been removed, and those above may be needed
            os.unlink(file.name)  # while it is held: nobody takes a file that is about to go
            for parent in made:
                parent.rmdir()
        file.close()


def _locked(folder: Path) -> IO[str] | None:
    """The locked file, or None where there can be none."""
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
        # Another command may have removed the file between its being opened and locked here: then it is none of a name.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.stat(file.name), os.fstat(file.fileno())):
                return file
        file.close()


def _opened(folder: Path) -> IO[str]:
    """The file that is locked: beside the folder, or inside where nothing can be made beside it."""
    name = f".{folder.name}.lock"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        return (folder.parent / name).open("a")
    except PermissionError:
        if not folder.is_dir():
            raise
        return (folder / name).open("a")


def _tidy(folder: Path) -> None:
    """Remove what a killed command left beside the folder; a folder that it had only put aside comes back."""
    for path in [*folder.parent.glob(".*"), *folder.glob(".*")]:
        if path.name.startswith(f".{folder.name}.old-") and not folder.exists():
            os.replace(path, folder)
        elif path.name.startswith((f".{folder.name}.old-", f".{folder.name}.partial-")):
            shutil.rmtree(path, ignore_errors=True)

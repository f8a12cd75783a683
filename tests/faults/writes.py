"""A disk that fails at the n-th operation: what opens, writes, synchronises, renames or makes folders is counted.

It is put under Python's own file operations (`open`, `os.open`, `os.fdopen`, `os.mkdir`, ..) in this process, for paths
under some roots; a write that fails leaves half of its bytes, as a full disk does.
"""

import builtins
import errno
import io
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

FAULTS = {"full": errno.ENOSPC, "broken": errno.EIO, "read-only": errno.EROFS, "removed": 0, "slow": 0}
"""What happens at the n-th operation: ever after it the disk is full or read-only; one operation fails; the folder that
is written is gone; every operation takes 20 ms."""


class Disk:
    """Operations under `roots`, counted in the file `counter`; the `at`-th meets a fault of one of `FAULTS`."""

    def __init__(self, roots: list[Path], counter: Path, fault: str, at: int | None = None) -> None:
        self.roots = [os.path.realpath(root) for root in roots]
        self.counter, self.fault, self.at, self.count = str(counter), fault, at, 0
        self.real_open, self.real_os_open = io.open, os.open

    def install(self) -> None:
        """Put the disk under this process."""
        self.log = self.real_os_open(self.counter, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        setattr(builtins, "open", self._open)  # noqa: B010
        setattr(io, "open", self._open)  # noqa: B010
        setattr(os, "open", self._os_open)  # noqa: B010
        for name in ("mkdir", "replace", "rename", "fsync"):
            setattr(os, name, self._watched(name, getattr(os, name)))

    def operation(self, name: str, path: Any) -> None:
        """One more operation; raises `OSError` where it meets the fault."""
        self.count += 1
        os.write(self.log, f"{name} {path}\n".encode())
        if self.fault == "slow":
            time.sleep(0.02)
        if self.at is None or self.count < self.at:
            return
        if self.fault == "removed" and self.count == self.at:
            shutil.rmtree(self.roots[0], ignore_errors=True)
        elif self.fault in ("full", "read-only") or (self.fault == "broken" and self.count == self.at):
            number = FAULTS[self.fault]
            raise OSError(number, os.strerror(number), str(path))

    def watches(self, path: Any) -> str | None:
        """The path, where it lies under a root."""
        try:
            name = os.readlink(f"/proc/self/fd/{path}") if isinstance(path, int) else os.fspath(path)
        except (OSError, TypeError):
            return None
        if isinstance(path, int) and not name.startswith("/"):  # a pipe to another process
            return None
        name = os.path.realpath(name if isinstance(name, str) else os.fsdecode(name))
        return name if any(name == root or name.startswith(root + "/") for root in self.roots) else None

    def _watched(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def operation(path: Any, *arguments: Any, **named: Any) -> Any:
            if (found := self.watches(path)) is not None:
                self.operation(name, found)
            return real(path, *arguments, **named)

        return operation

    def _os_open(self, path: Any, flags: int, *arguments: Any, **named: Any) -> int:
        if flags & (os.O_CREAT | os.O_WRONLY | os.O_RDWR) and (found := self.watches(path)) is not None:
            self.operation("create", found)
        return self.real_os_open(path, flags, *arguments, **named)

    def _open(self, file: Any, mode: str = "r", buffering: int = -1, encoding: Any = None, errors: Any = None,
              newline: Any = None, closefd: bool = True, opener: Any = None) -> Any:  # fmt: skip
        found = self.watches(file) if set(mode) & set("wax+") else None
        if found is None:
            return self.real_open(file, mode, buffering, encoding, errors, newline, closefd, opener)
        if not isinstance(file, int):
            self.operation("open", found)
        raw = File(file, mode.replace("b", "").replace("t", ""), closefd, opener)
        raw.disk, raw.path = self, found
        if buffering == 0:
            return raw
        buffered = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        return buffered if "b" in mode else io.TextIOWrapper(buffered, encoding, errors, newline)


class File(io.FileIO):
    """A file on a `Disk`."""

    disk: Disk
    path: str

    def write(self, data: Any) -> int:
        """Write, or half of it and an error."""
        try:
            self.disk.operation("write", self.path)
        except OSError:
            super().write(memoryview(data)[: len(data) // 2])
            raise
        return super().write(data)

"""Cache files with a key and a hash. A file is used only if it is complete and was written for the same key."""

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path

HEAD = b"odesim 1 "
"""First bytes of every sealed file; a hash and the content follow."""


def folder() -> Path:
    """Return the cache folder: `ODESIM_CACHE`, else `XDG_CACHE_HOME/odesim`, else `~/.cache/odesim`."""
    if "ODESIM_CACHE" in os.environ:
        return Path(os.environ["ODESIM_CACHE"])
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "odesim"


def write(path: Path, content: bytes) -> None:
    """Write a file that other processes may read: they see the complete file or no file. Raises `OSError`."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".partial")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        if path.is_dir():  # a folder at this path can only be an accident
            path.rmdir()
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def seal(path: Path, key: str, content: bytes) -> None:
    """Write a sealed file, which is read for the same `key` only.  Raises `OSError`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, HEAD + _digest(key, content) + b"\n" + content)


def unsealed(path: Path, key: str) -> bytes | None:
    """Return the content that `seal` wrote for this key; None if the file is missing, changed or of another key."""
    try:
        head, _, content = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    return content if head == HEAD + _digest(key, content) else None


def _digest(key: str, content: bytes) -> bytes:
    return hashlib.sha256(f"{len(key)} {key}\n".encode() + content).hexdigest().encode()

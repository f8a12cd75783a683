"""Where generated and derived code is kept between processes."""

import os
import tempfile
from pathlib import Path


def folder() -> Path:
    """The cache folder: `ODESIM_CACHE`, else `XDG_CACHE_HOME/odesim`, else `~/.cache/odesim`."""
    if "ODESIM_CACHE" in os.environ:
        return Path(os.environ["ODESIM_CACHE"])
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "odesim"


def write(path: Path, content: bytes) -> None:
    """Write a file that other processes may read: they see all of it, or none.  Raises `OSError`."""
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=path.suffix)
    with os.fdopen(handle, "wb") as stream:
        stream.write(content)
    os.replace(name, path)


def offer(path: Path, content: bytes) -> None:
    """As `write`, where the file only saves time: a folder that cannot be written costs the next start that time."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, content)
    except OSError:
        return

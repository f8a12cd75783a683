"""Where generated and derived code is kept between processes."""

import os
from pathlib import Path

from hermite.sealed import write


def folder() -> Path:
    """The cache folder: `ODESIM_CACHE`, else `XDG_CACHE_HOME/odesim`, else `~/.cache/odesim`."""
    if "ODESIM_CACHE" in os.environ:
        return Path(os.environ["ODESIM_CACHE"])
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "odesim"


def offer(path: Path, content: bytes) -> None:
    """As `write`, where the file only saves time: a folder that cannot be written costs the next start that time."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, content)
    except OSError:
        return

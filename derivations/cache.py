"""Where generated and derived code is kept between processes."""

import os
from pathlib import Path


def folder() -> Path:
    """The cache folder: `ODESIM_CACHE`, else `XDG_CACHE_HOME/odesim`, else `~/.cache/odesim`."""
    if "ODESIM_CACHE" in os.environ:
        return Path(os.environ["ODESIM_CACHE"])
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "odesim"

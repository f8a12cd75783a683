"""Pictures inside the page, each a data address that was checked against the hash of its file."""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from odesim.errors import UsageError
from odesim.show.report.sections import Picture
from odesim.store.files import sha256

PICTURES = {".png": "image/png", ".svg": "image/svg+xml"}


def _drawn(name: str) -> bool:
    return Path(name).suffix.lower() in PICTURES


def is_shown(name: str, files: Mapping[str, Any]) -> bool:
    """Return True if the page shows a picture of a run; if a picture has both forms, the page shows the SVG."""
    return _drawn(name) and not (name.endswith(".png") and f"{name.removesuffix('.png')}.svg" in files)


def picture_of(folder: Path, name: str, entry: Mapping[str, Any], caption: str = "") -> Picture:
    """Return a picture of a folder as a data address. Raises `UsageError` if it is missing, changed or elsewhere."""
    path = folder / name
    inside = not Path(name).is_absolute() and ".." not in Path(name).parts
    if not (inside and _drawn(name) and path.is_file()) or sha256(path) != entry["sha256"]:
        raise UsageError(f"{folder} is damaged: its picture {name} is missing or was changed since it was drawn")
    content = base64.b64encode(path.read_bytes()).decode("ascii")
    return Picture(name, caption, f"data:{PICTURES[path.suffix.lower()]};base64,{content}")

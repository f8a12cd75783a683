"""Cache of generated and derived code, shared by processes."""

import hashlib
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from derivations.installed import version
from hermite.sealed import folder, seal, unsealed, write


def offer(path: Path, content: bytes) -> None:
    """As `write`, where the file only saves time: a folder that cannot be written costs the next start that time."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, content)
    except OSError:
        return


def offer_sealed(path: Path, key: str, content: bytes) -> None:
    """The same for a sealed file, which is read for this key alone (`hermite.sealed.unsealed`)."""
    try:
        seal(path, key, content)
    except OSError:
        return


def remembered(stem: str, modules: Sequence[str], derive: Callable[[], Any]) -> Any:
    """Plain data that SymPy derives: from a file of the cache, or derived and kept there.

    The file is read for the same text of `modules`, which are imported and derive it, and the same SymPy alone; one
    that is missing or damaged is written anew.
    """
    texts = [Path(str(sys.modules[name].__file__)).read_bytes() for name in modules]
    key = f"{version('sympy')} {hashlib.sha256(bytes(0).join(texts)).hexdigest()}"
    path = folder() / f"{stem}.json"
    content = unsealed(path, key)
    if content is None:
        content = json.dumps(derive()).encode()
        offer_sealed(path, key, content)
    return json.loads(content)

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
    """Write a file as `write` does, but without an error in a folder that cannot be written: the file only saves
    time.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, content)
    except OSError:
        return


def offer_sealed(path: Path, key: str, content: bytes) -> None:
    """Write a sealed file as `offer` does; only this key opens it (`hermite.sealed.unsealed`)."""
    try:
        seal(path, key, content)
    except OSError:
        return


def remembered(stem: str, modules: Sequence[str], derive: Callable[[], Any]) -> Any:
    """Plain data that SymPy derives: read from a file of the cache, or derived and stored there.

    The modules in `modules` are imported for the derivation. The file is valid only for the same text of these modules
    and the same SymPy; a missing or damaged file is written again.
    """
    texts = [Path(str(sys.modules[name].__file__)).read_bytes() for name in modules]
    key = f"{version('sympy')} {hashlib.sha256(bytes(0).join(texts)).hexdigest()}"
    path = folder() / f"{stem}.json"
    content = unsealed(path, key)
    if content is None:
        content = json.dumps(derive()).encode()
        offer_sealed(path, key, content)
    return json.loads(content)

"""Cache of programs compiled by XLA: JAX's cache in a folder for one type of processor, with a hash for every file.

JAX identifies a program by its text and by versions, but not by the processor, and does not check its files. Here every
type of processor has a folder, and files without a valid hash are removed before JAX reads the cache.
"""

import atexit
import hashlib
import importlib.util
import os
import sys
import warnings
from pathlib import Path

from derivations import cache
from hermite.machine_code import processor
from hermite.sealed import seal, unsealed

FOLDER = "JAX_COMPILATION_CACHE_DIR"
SETTINGS = {
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.02",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    # XLA writes two long lines for every program that it loads, because it takes its own tuning flags for features that
    # the processor lacks. Its other messages are lost too; its failures are still exceptions.
    "TF_CPP_MIN_LOG_LEVEL": "3",
}
ENTRY, SEAL = "-cache", ".seal"
"""Endings of the names of JAX's files, and of the hash files next to them."""
MOST_BYTES = 200_000_000
"""Largest number of bytes of programs in a folder; the oldest are removed first."""


def keep() -> None:
    """Switch JAX's cache of programs on, before JAX is imported. With an accelerator, or settings of the user, nothing
    is set.
    """
    if "jax" in sys.modules or FOLDER in os.environ or importlib.util.find_spec("jax_plugins") is not None:
        return
    folder = cache.folder() / f"xla_{processor()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            return
        sift(folder)
    except OSError:  # as if the cache cannot be written
        return
    os.environ[FOLDER] = str(folder)
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    warnings.filterwarnings("ignore", "Error (reading|writing) persistent compilation cache entry")
    atexit.register(seal_all, folder)


def sift(folder: Path) -> None:
    """Remove every program with an invalid hash, and the oldest ones beyond `MOST_BYTES`."""
    entries = sorted(folder.glob(f"*{ENTRY}"), key=lambda path: path.stat().st_mtime, reverse=True)
    total = 0
    for entry in entries:
        content = entry.read_bytes()
        total += len(content)
        if total > MOST_BYTES or unsealed(_beside(entry), entry.name) != _digest(content):
            entry.unlink(missing_ok=True)
            _beside(entry).unlink(missing_ok=True)


def seal_all(folder: Path) -> None:
    """Write hashes of the programs that this process, or a simultaneous one, has added."""
    try:
        for entry in folder.glob(f"*{ENTRY}"):
            if not _beside(entry).exists():
                seal(_beside(entry), entry.name, _digest(entry.read_bytes()))
    except OSError:  # removed by another process, or a full disk: the next process compiles again
        return


def _beside(entry: Path) -> Path:
    return entry.with_name(entry.name + SEAL)


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()

"""Programs that XLA has compiled, kept between processes: JAX's own cache, in a folder for one processor, with seals.

JAX takes a program for the same as another by its text and the versions, not by the processor that it was made for, and
reads what a file holds.  Here every processor has a folder of its own, and a file that lacks its seal is removed before
JAX looks.
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
    # XLA writes two long lines of every program that it loads: it takes its own tuning flags for features that the
    # processor lacks.  What else it writes goes with them; its failures are exceptions all the same.
    "TF_CPP_MIN_LOG_LEVEL": "3",
}
ENTRY, SEAL = "-cache", ".seal"
"""The ends of the names of JAX's files, and of ours beside them."""
MOST_BYTES = 200_000_000
"""Of programs in a folder; the oldest go first."""


def keep() -> None:
    """Let JAX keep its programs, before it is imported; where an accelerator or the user decides, nothing is set."""
    if "jax" in sys.modules or FOLDER in os.environ or importlib.util.find_spec("jax_plugins") is not None:
        return
    folder = cache.folder() / f"xla_{processor()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            return
        sift(folder)
    except OSError:  # as where nothing can be kept
        return
    os.environ[FOLDER] = str(folder)
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    warnings.filterwarnings("ignore", "Error (reading|writing) persistent compilation cache entry")
    atexit.register(seal_all, folder)


def sift(folder: Path) -> None:
    """Remove every program that is not as it was sealed, and the oldest beyond `MOST_BYTES`."""
    entries = sorted(folder.glob(f"*{ENTRY}"), key=lambda path: path.stat().st_mtime, reverse=True)
    total = 0
    for entry in entries:
        content = entry.read_bytes()
        total += len(content)
        if total > MOST_BYTES or unsealed(_beside(entry), entry.name) != _digest(content):
            entry.unlink(missing_ok=True)
            _beside(entry).unlink(missing_ok=True)


def seal_all(folder: Path) -> None:
    """Seal the programs that this process, or one that runs beside it, has added."""
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

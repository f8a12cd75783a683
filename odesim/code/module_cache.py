"""Machine code between processes: numba's own cache, in a folder of this project.

numba keeps the machine code of a function that is compiled with `cache=True`, one file for each processor, next to its
module or in `NUMBA_CACHE_DIR`.  That folder is set here, unless the user has set it or has imported numba before.  A
cache only saves time: where it is damaged, or cannot be written, functions are compiled again.
"""

import hashlib
import importlib.util
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from derivations import cache

LOCK = threading.RLock()
"""Two replicas in threads may ask for one module: the second must not see half of it."""


def prepare_numba() -> None:
    """Set the folder of numba's cache, before numba is imported for the first time."""
    if "numba" not in sys.modules:
        os.environ.setdefault("NUMBA_CACHE_DIR", str(cache.folder() / "numba"))


def compiled(signature: Any, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorator like `numba.njit(signature, cache=True)` that compiles anew where the cache fails.

    A damaged file makes numba raise whatever reading it raises; a folder that cannot be written, `RuntimeError`.  The
    retry is without a cache, so that an error of the function itself is raised by it.
    """
    from numba import njit

    def compile_function(function: Callable[..., Any]) -> Any:
        try:
            return njit(signature, cache=True, **options)(function)
        except Exception:
            return njit(signature, **options)(function)

    return compile_function


def load_module(stem: str, text: str) -> ModuleType:
    """Import a generated text as a module, from a file in the cache folder where numba finds its machine code again."""
    name = f"odesim_{stem}_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    with LOCK:
        if name in sys.modules:
            return sys.modules[name]
        path = _written(name, text)
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        # numba's cache can only be read for a module that is in `sys.modules` when its functions are compiled.
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
        return module


def _written(name: str, text: str) -> Path:
    """A file with the text: in the cache folder, or in a temporary one where that cannot be written."""
    path = cache.folder() / "kernels" / f"{name}.py"
    if not _holds(path, text):
        cache.offer(path, text.encode())
    if not _holds(path, text):
        path = Path(tempfile.mkdtemp(prefix="odesim-")) / f"{name}.py"
        path.write_text(text, encoding="utf-8")
    return path


def _holds(path: Path, text: str) -> bool:
    """Return True if a file has exactly this text."""
    try:
        return path.read_text(encoding="utf-8") == text
    except (OSError, UnicodeDecodeError):
        return False

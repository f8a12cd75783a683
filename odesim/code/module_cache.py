"""Machine code between processes: numba's own cache, in a folder of this project.

numba keeps the machine code of a function that is compiled with `cache=True`, one file for each processor, next to its
module or in a folder that is set here, unless the user has named one.  A cache only saves time: where it is damaged, or
cannot be written, functions are compiled again.
"""

import contextlib
import glob
import hashlib
import importlib
import importlib.util
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from derivations import cache
from odesim.code.busy import busy
from odesim.errors import MissingError

LOCK = threading.RLock()
"""Two replicas in threads may ask for one module: the second must not see half of it."""


FOLDER = "NUMBA_CACHE_DIR"


def require_compiler() -> None:
    """Raise `MissingError` where the environment switches numba's compiler off."""
    said = os.environ.get("NUMBA_DISABLE_JIT", "").strip()
    if said not in ("", "0"):
        raise MissingError(
            f"NUMBA_DISABLE_JIT={said} switches off the compiler, which this needs; unset NUMBA_DISABLE_JIT, or set it "
            "to 0"
        )


@contextlib.contextmanager
def cache_folder() -> Iterator[Path]:
    """While this lasts, numba keeps machine code in a folder of ours, unless the user has named another.

    numba reads the variable whenever it compiles, and its setting whenever it looks for a folder.  Both are put back: a
    user's environment stays as it is.
    """
    settings: Any = importlib.import_module("numba").config  # documented, but not exported
    with LOCK:
        named, before = os.environ.get(FOLDER), settings.CACHE_DIR
        folder = named or str(cache.folder() / "numba")
        os.environ[FOLDER] = settings.CACHE_DIR = folder
        try:
            yield Path(folder)
        finally:
            settings.CACHE_DIR = before
            if named is None:
                del os.environ[FOLDER]


def compiled(signature: Any, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorator like `numba.njit(signature, cache=True)` that takes nothing damaged from the cache.

    numba runs whatever machine code its files hold: a changed byte gives other numbers, or ends the process.  So each
    of its files has another one beside it with a hash of its content, and is removed where that is missing or wrong.
    Where the cache cannot be read or written, the function is compiled without one.
    """
    require_compiler()
    from numba import njit

    def compile_function(function: Callable[..., Any]) -> Any:
        with busy(f"compiling {function.__name__}"), cache_folder() as folder:
            try:
                for path in _files(function, folder):
                    if not _is_whole(path):
                        path.unlink()
                dispatcher = njit(signature, cache=True, **options)(function)
            except Exception:  # whatever reading a file of the cache raises; an error of the function comes again
                return njit(signature, **options)(function)
            for path in _files(function, folder):
                if not _is_whole(path):
                    cache.offer(_seal_of(path), _hash(path).encode())
            return dispatcher

    return compile_function


def _files(function: Callable[..., Any], folder: Path) -> list[Path]:
    """The files in which numba keeps a function, by how it names them."""
    code = function.__code__
    stem = f"{Path(code.co_filename).stem}.{function.__qualname__}-{code.co_firstlineno}."
    return [path for path in folder.glob(f"*/{glob.escape(stem)}*") if path.suffix in (".nbi", ".nbc")]


def _seal_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _is_whole(path: Path) -> bool:
    """Return True if a file of numba's cache has the content that it was written with."""
    try:
        return _seal_of(path).read_text(encoding="utf-8") == _hash(path)
    except (OSError, UnicodeDecodeError):
        return False


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

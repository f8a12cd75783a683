"""Machine code between processes: numba's own cache in a folder of this project, with a hash beside each of its files.

numba stores the machine code of a function that is compiled with `cache=True`, and later runs the content of its files
without a check.  A changed byte gives wrong numbers, or ends the process.  Therefore a file is used only if its hash is
correct.  If the cache is damaged, or cannot be read or written, functions are compiled again.
"""

import contextlib
import functools
import glob
import hashlib
import importlib
import os
import platform
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from hermite import sealed

FOLDER, LEVEL = "NUMBA_CACHE_DIR", "NUMBA_OPT"
LOCK = threading.RLock()
"""Lock that is held while a function is compiled, because numba's settings are those of the whole process."""


def compile_function(function: Callable[..., Any], signature: Any, *, level: int | None = None, **options: Any) -> Any:
    """Return `numba.njit(signature, cache=True, **options)(function)`; damaged files of the cache are not used.

    The machine code includes that of all functions that this one calls, so these need no cache. Each function of a
    module is compiled for one signature only, because simultaneous programs would confuse the files of several.

    Arguments: function; signature, numba types of the arguments, with or without the type of the result; level of
    optimisation, 0 to 3, by default numba's own (NUMBA_OPT takes precedence); options of `numba.njit`. Returns the
    compiled function, which takes arguments of these types only. Raises: numba's error if it cannot compile the
    function.

    >>> from numba import types
    >>> def half(x):
    ...     return x / 2
    >>> compile_function(half, types.float64(types.float64))(3.0)
    1.5
    """
    from numba import njit

    with _interrupt_delayed(), cache_folder(level) as folder:
        try:
            # If odesim's folder is not writable, numba uses one next to the source file, which other programs may
            # share.
            place = njit(cache=True, **options)(function).stats.cache_path
            if place is None or not Path(place).is_relative_to(folder):
                return njit(signature, **options)(function)
            for path in files_of(function, folder):
                if not is_whole(path):
                    path.rmdir() if path.is_dir() else path.unlink()
            dispatcher = njit(signature, cache=True, **options)(function)
        except (
            Exception
        ):  # any error of reading or writing the cache; an error of the function itself is raised again below
            return njit(signature, **options)(function)
        for path in files_of(function, folder):
            if not is_whole(path):
                with contextlib.suppress(OSError):
                    sealed.write(hash_file(path), _hash(path).encode())
        return dispatcher


@contextlib.contextmanager
def cache_folder(level: int | None = None) -> Iterator[Path]:
    """Context manager: numba stores machine code in a folder of odesim, unless the user has named another folder.

    numba reads environment variables at each compilation, and its settings whenever it looks for a folder.  Both are
    restored at the end.  `level` is that of `compile_function`.
    """
    settings: Any = importlib.import_module("numba").config  # documented, but not exported
    with LOCK:
        before = settings.CACHE_DIR, settings.OPT
        folder = os.environ.get(FOLDER) or str(sealed.folder() / "numba" / _circumstances())
        added = {FOLDER: folder} if level is None else {FOLDER: folder, LEVEL: str(level)}
        added = {name: value for name, value in added.items() if not os.environ.get(name)}
        os.environ.update(added)
        settings.CACHE_DIR = folder
        if LEVEL in added:
            settings.OPT = type(settings.OPT)(level)
        try:
            yield Path(folder)
        finally:
            settings.CACHE_DIR, settings.OPT = before
            for name in added:
                del os.environ[name]


def files_of(function: Callable[..., Any], folder: Path) -> list[Path]:
    """Return the files with numba's machine code of a function, recognised by numba's file names."""
    code = function.__code__
    stem = f"{Path(code.co_filename).stem}.{function.__qualname__}-{code.co_firstlineno}."
    return [path for path in folder.glob(f"*/{glob.escape(stem)}*") if path.suffix in (".nbi", ".nbc")]


def hash_file(path: Path) -> Path:
    """Return the path of the file that has the hash of a file of the cache."""
    return path.with_name(f"{path.name}.sha256")


def is_whole(path: Path) -> bool:
    """Return True if a file of the cache has the content that it was written with."""
    try:
        return hash_file(path).read_text(encoding="utf-8") == _hash(path)
    except (OSError, UnicodeDecodeError):
        return False


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _circumstances() -> str:
    """Return a hash (16 hexadecimal characters) of everything besides the function that determines its machine code.

    numba's own keys hold its version and the processor, but not NumPy's version, nor its own settings (NUMBA_OPT,
    NUMBA_BOUNDSCHECK, ..). Processors that fill one folder at once would mix up their files.
    """
    return _digest(tuple(sorted((k, v) for k, v in os.environ.items() if k.startswith("NUMBA_") and k != FOLDER)))


@functools.cache
def _digest(settings: tuple[tuple[str, str], ...]) -> str:
    import numba
    import numpy

    said = repr((numba.__version__, numpy.__version__, sys.version, processor(), settings))
    return hashlib.sha256(said.encode()).hexdigest()[:16]


def processor() -> str:
    """Return a hash (16 hexadecimal characters) of the processor: its model and the features that the system
    reports.
    """
    words = [platform.machine(), platform.processor()]
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as stream:
        first = stream.read(2**14).partition("\n\n")[0]  # the first core only: the system generates the entries anew
        words += [line for line in first.splitlines() if line.startswith(("model", "flags", "Features", "cpu family"))]
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:16]


@contextlib.contextmanager
def _interrupt_delayed() -> Iterator[None]:
    """Context manager that delays Ctrl-C until its end.

    LLVM calls back into Python. A `KeyboardInterrupt` raised there is lost with a traceback, and the compiler either
    fails or continues as if Ctrl-C had not been pressed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asked: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        asked.append(number)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if asked:
        raise KeyboardInterrupt

"""Generated modules, and compiled functions that are cached between processes (`hermite.machine_code`)."""

import hashlib
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from derivations import cache
from hermite.machine_code import LOCK, cache_folder, compile_function, files_of
from odesim.code.busy import busy
from odesim.errors import MissingError

_told: list[Path] = []
"""Folders that cannot be written and that the user was told about."""
_forms: dict[tuple[str, str], Callable[..., Any]] = {}
"""Compiled forms by the names of their module and function. Loading one takes longer than a short run."""


def require_compiler() -> None:
    """Raise `MissingError` if an environment variable switches numba's compiler off."""
    said = os.environ.get("NUMBA_DISABLE_JIT", "").strip()
    if said not in ("", "0"):
        raise MissingError(
            f"NUMBA_DISABLE_JIT={said} switches off the compiler, which this needs; unset NUMBA_DISABLE_JIT, or set it "
            "to 0"
        )


def compiled(signature: Any, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorator like `numba.njit(signature, cache=True)` that never uses damaged files of the cache.

    If the cache cannot be read or written, the function is compiled without it, and a message is printed.
    """
    require_compiler()

    def compile_it(function: Callable[..., Any]) -> Any:
        with busy(f"compiling {function.__name__}"):
            dispatcher = compile_function(function, signature, **options)
        _tell_of_missing(function)
        return dispatcher

    return compile_it


def _tell_of_missing(function: Callable[..., Any]) -> None:
    """Print once, in one of several processes, that machine code is not cached."""
    with cache_folder() as folder:
        if _told or multiprocessing.parent_process() is not None or files_of(function, folder):
            return
    _told.append(folder)
    said = f"machine code cannot be kept in {folder}"
    print(f"odesim: {said}; every run compiles again until that folder can be written", file=sys.stderr)


class TypedFunction:
    """Function of a generated module, compiled for the types of its arguments at the first call with them.

    Every form is compiled in a separate module, with the types in its name (`hermite.machine_code` gives the reason).

    >>> text = "from numba import njit\\n\\n@njit\\ndef double(x):\\n    return 2 * x\\n"
    >>> double = TypedFunction("double", text, "double")
    >>> double(3), double(0.25)
    (6, 0.5)
    """

    def __init__(self, stem: str, text: str, name: str, **options: Any) -> None:
        self.stem, self.text, self.name, self.options = stem, text, name, options
        self._forms: dict[Any, Callable[..., Any]] = {}

    def __call__(self, *arguments: Any) -> Any:
        """Call the form for arguments of these types."""
        key = tuple(map(_kind, arguments))
        form = self._forms.get(key)
        if form is None:
            form = self._forms[key] = self.compiled_for(*arguments)
        return form(*arguments)

    def compiled_for(self, *arguments: Any) -> Callable[..., Any]:
        """Return the form for arguments of these types, for a caller with these types only."""
        require_compiler()
        from numba import typeof

        types = tuple(map(typeof, arguments))
        with LOCK:
            module = load_module(self.stem, self.text, str(types))
            place = module.__name__, self.name
            if place not in _forms:
                _forms[place] = compiled(types, **self.options)(getattr(module, self.name).py_func)
            return _forms[place]


def _kind(argument: Any) -> Any:
    """Return the properties of an argument that determine its numba type; `numba.typeof` takes a hundred times as
    long.
    """
    if isinstance(argument, np.ndarray):
        flags = argument.flags
        return argument.dtype, argument.ndim, flags.c_contiguous, flags.f_contiguous, flags.writeable, flags.aligned
    if isinstance(argument, tuple):
        return type(argument), *map(_kind, argument)
    return type(argument)


def load_module(stem: str, text: str, types: str = "") -> ModuleType:
    """Import a generated text as a module from a file in the cache folder, next to which numba stores its machine code.

    One text makes a module for each description of `types` that its functions are compiled for.
    """
    name = f"odesim_{stem}_{hashlib.sha256(f'{types}{text}'.encode()).hexdigest()[:16]}"
    with LOCK:
        if name in sys.modules:
            return sys.modules[name]
        path = _written(name, text)
        module = ModuleType(name)
        module.__file__ = str(path)
        # numba's cache can only be read for a module that is in `sys.modules` when its functions are compiled.
        sys.modules[name] = module
        try:
            # Not from byte code, which Python reads from the folder even if it is damaged.
            exec(compile(text, str(path), "exec"), vars(module))
        except BaseException:
            del sys.modules[name]
            raise
        return module


def _written(name: str, text: str) -> Path:
    """Return a file with the text: in the cache folder or, if that cannot be written, in a temporary one."""
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

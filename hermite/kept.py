"""Machine code of compiled functions, kept between processes in sealed files.

numba's own cache reads whatever its files hold: a changed byte ends the process, and of two processors (or two programs
at once) that fill one folder, the later may leave its code under the index of the other.  Here every compiled form of
a function is one file, under a seal that covers the machine that it was made for.
"""

import copy
import hashlib
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba.core import config
from numba.core.caching import FunctionCache, _Cache
from numba.core.compiler import CompileResult
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps

from hermite.sealed import seal, unsealed

SETTINGS = ("OPT", "USING_SVML", "BOUNDSCHECK", "LOOP_VECTORIZE", "SLP_VECTORIZE", "DEBUGINFO_DEFAULT")
"""What numba is told by its environment, decides on the code, and is not in its own keys."""
Refused = Callable[[OSError], None]
"""Told of a file that could not be written."""


class MachineCode(_Cache):
    """The compiled forms of one function, in the place of numba's own cache.

    `folder` None keeps nothing.  `stamp` is what the code depends on beside the function's own: the text of its module.
    """

    def __init__(
        self, function: Callable[..., Any], folder: Path | None, stamp: str, refused: Refused | None = None
    ) -> None:
        code = function.__code__
        self.folder, self.stamp, self.refused = folder, stamp, refused
        self.name = f"{Path(code.co_filename).stem}.{function.__qualname__}-{code.co_firstlineno}"
        self.enabled = True

    def of(self, form: str) -> "MachineCode":
        """The place of another form of the same function."""
        other = copy.copy(self)
        other.name = f"{self.name}.{form}"
        return other

    @property
    def cache_path(self) -> Any:
        """The folder."""
        return None if self.folder is None else str(self.folder)

    def place(self, signature: Any, codegen: Any) -> tuple[Path, str] | None:
        """The file of a compiled form and the key that it is sealed for; None where nothing is kept.

        The key holds the processor's name and features, and the settings that decide on code: what was made for
        another processor is another file, and would not be read under this name either.
        """
        if self.folder is None or not self.enabled:
            return None
        settings = [str(getattr(config, name, None)) for name in SETTINGS]
        form = repr((signature, codegen.magic_tuple(), settings))
        path = self.folder / f"{self.name}.{hashlib.sha256(form.encode()).hexdigest()[:16]}.nbc"
        return path, f"{self.name} {form} {self.stamp} {numba.__version__} {llvmlite.__version__}"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled form of a signature; None where it is to be compiled.

        It needs numba's runtime, but none of the tables by which numba compiles, which take a tenth of a second to
        read: whoever compiles reads them.
        """
        rtsys.initialize(target_context)
        place = self.place(sig, target_context.codegen())
        if place is None:
            return None
        content = unsealed(*place)
        return CompileResult._rebuild(target_context, *pickle.loads(content)) if content is not None else None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled form; one that cannot be written costs the next process its time."""
        place = self.place(sig, data.codegen)
        if place is None or data.lifted or data.library.has_dynamic_globals:  # addresses of this process
            return
        try:
            seal(*place, dumps(data._reduce()))
        except OSError as error:
            if self.refused is not None:
                self.refused(error)

    def enable(self) -> None:
        """Keep, which is how it begins."""
        self.enabled = True

    def disable(self) -> None:
        """Keep nothing from now on."""
        self.enabled = False

    def flush(self) -> None:
        """Forget what was kept."""
        for path in self.folder.glob(f"{self.name}.*.nbc") if self.folder is not None else ():
            path.unlink(missing_ok=True)


def compiled(function: Callable[..., Any]) -> Any:
    """A function compiled by numba when it is called, its machine code kept where numba keeps it for its module."""
    dispatcher: Any = numba.njit(function)
    plain = dispatcher.py_func
    try:
        folder = Path(FunctionCache(plain).cache_path)
    except (OSError, RuntimeError):  # neither beside the module nor in the home of the user
        folder = None
    stamp = hashlib.sha256(Path(plain.__code__.co_filename).read_bytes()).hexdigest()
    dispatcher._cache = MachineCode(plain, folder, stamp)
    return dispatcher

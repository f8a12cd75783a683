"""Generated modules between processes: their text, byte code and machine code in the cache, and what is made of them.

Everything that is read has a seal: what was damaged, cut or made for another machine is made again.  Where nothing can
be written, a module is made of its text all the same.
"""

import contextlib
import functools
import hashlib
import marshal
import multiprocessing
import os
import re
import signal
import sys
import threading
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from derivations import cache
from hermite.sealed import seal, unsealed
from odesim.code.busy import busy
from odesim.code.module_cache import require_compiler

LLVM_LEVEL = 2
"""At level 3, numba's default, the loops over lanes take 40 % longer: as long as with vectorisation switched off."""
FAST = ("contract", "reassoc", "arcp", "nsz")
"""What arithmetic may be changed by: NaN and infinity keep their meaning, so failures are seen."""
MACHINE = "machine"
"""The folder of byte code and machine code in the cache."""
SEAL = "# odesim seal "
"""Begins the last line of a generated module, which holds a hash of all lines before it."""


def sealed(text: str) -> str:
    """A module's text with its seal as the last line."""
    return f"{text}\n{SEAL}{hashlib.sha256(text.encode()).hexdigest()}\n"


def read(path: Path) -> str | None:
    """The text of a generated module as it was written; None where there is none, or a damaged one."""
    try:
        text, _, digest = path.read_bytes().decode().rpartition(f"\n{SEAL}")
    except (OSError, UnicodeDecodeError):
        return None
    return text if digest.strip() == hashlib.sha256(text.encode()).hexdigest() else None


def noted(note: Path, stem: str) -> Path | None:
    """The generated module that a note names; None where there is no note, or a damaged one."""
    try:
        name = note.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    return note.with_name(name) if re.fullmatch(rf"{re.escape(stem)}_[0-9a-f]{{16}}\.py", name) else None


def imported(path: Path, text: str) -> types.ModuleType:
    """The module of a generated text, which need not be in its file: where nothing can be written, nothing is lost.

    Its byte code is kept under a seal as its machine code is: Python takes what it finds beside a module as it is.
    Raises `MissingError` where the environment switches numba's compiler off.
    """
    require_compiler()
    module = types.ModuleType(f"odesim_generated_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    kept, key = path.parent / MACHINE / f"{path.stem}.code", f"{sys.version} {path}\n{text}"
    content = unsealed(kept, key)
    code = compile(text, str(path), "exec") if content is None else marshal.loads(content)
    try:
        exec(code, vars(module))
    except BaseException:
        del sys.modules[module.__name__]  # a half of it would be taken for the whole the next time
        raise
    if content is None:
        offer(kept, marshal.dumps(code), key)
    functions = [value for value in vars(module).values() if hasattr(value, "py_func")]
    if functions:
        from hermite.kept import MachineCode
        from odesim.code.linked import link

        for function in functions:
            function._cache = MachineCode(function.py_func, kept.parent, path.stem, _cannot_keep)
            _at_level(function)
            link(function, _at_level)
    return module


def offer(path: Path, content: bytes, key: str | None = None) -> None:
    """Write a file of the cache, under a seal where it has a key; the user is told where that cannot be done."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        seal(path, key, content) if key is not None else cache.write(path, content)
    except OSError as error:
        _cannot_keep(error)


def _cannot_keep(error: OSError) -> None:
    """Say once, and in one process of a crew, that the cache cannot be written."""
    if not _told and multiprocessing.parent_process() is None:
        said = f"the cache {cache.folder()} cannot be written ({error.strerror})"
        print(f"odesim: {said}; what is compiled is not kept for the next run", file=sys.stderr)
    _told.append(error)


_told: list[OSError] = []


@contextlib.contextmanager
def unbroken() -> Iterator[None]:
    """Ctrl-C waits until this ends.

    LLVM calls back into Python: `KeyboardInterrupt` raised there is dropped with a traceback, and the compiler fails,
    or goes on as if nobody had asked.  Functions are compiled within the compilation of those that call them: the
    innermost end is where it is raised, so that nobody waits for the whole.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, _wait)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        asked = bool(_waiting)
        _waiting.clear()
    if asked:
        raise KeyboardInterrupt


_waiting: list[int] = []


def _wait(number: int, frame: types.FrameType | None) -> None:
    _waiting.append(number)


def _at_level(function: Any) -> None:
    """Let a numba dispatcher compile at `LLVM_LEVEL`; numba's own setting is put back, and NUMBA_OPT wins."""
    compile_signature, make = function.compile, function._compiler.compile

    def made(*given: Any) -> Any:
        from odesim.code.linked import overloads, tables
        from odesim.code.references import counted

        tables()
        with overloads(), counted():
            return make(*given)

    @functools.wraps(compile_signature)
    def compile_at_level(signature: Any) -> Any:
        import numba.core.config

        config: Any = numba.core.config
        before = config.OPT
        if "NUMBA_OPT" not in os.environ:
            config.OPT = type(before)(LLVM_LEVEL)
        try:
            with busy("compiling"), unbroken():
                return compile_signature(signature)
        finally:
            config.OPT = before

    function._compiler.compile, function.compile = made, compile_at_level

"""From symbolic kernels to functions compiled by numba.

The CSE'd scalar kernels (`printer`) and the plain loops of a system are written, together, into one generated module
that is compiled once and kept in a cache folder under a digest of its text.  A note beside it says from which sources
it was made (`sources` finds them), so that a second process loads the machine code and imports no SymPy.
Parameters are run-time arguments throughout.
"""

import functools
import inspect
import os
import platform
import re
import sys
import textwrap
import threading
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from derivations import cache
from derivations.contract import Code, Equations, Kernel, Written, load
from derivations.contract.equations import BOTH, HEADS, Role
from derivations.installed import version
from odesim.code import kept, sources
from odesim.code.arrays import from_arrays
from odesim.code.busy import busy
from odesim.code.printer import scalar_source

FASTMATH = "{" + ", ".join(map(repr, kept.FAST)) + "}"
"""Reassociation and fused multiply-add for speed.

But numba asks x - x for whether x is finite, and reassociation makes that 0 where x is a sum: compare with infinity.
"""
DECORATOR = f"@njit(nogil=True, fastmath={FASTMATH}, error_model='numpy', no_cfunc_wrapper=True)\n"
"""An entry for C takes as long to compile as ten lines, and nobody calls it."""
PROVIDED = {
    "odesim.code.addressed": ("address", "by_address"),
    "math": ("acos", "atan"),
}
"""What a generated module imports where its text calls it."""
LOADED: dict[Path, str] = {}
"""The names of the modules of this process by the notes that lead to them: a short run would read five again."""
IMPORTING = threading.RLock()
"""Replicas in threads ask for the same modules: one imports, and the others must not see the half of one."""
ENTRY = "_one_by_one"
"""Ends the names of what Python calls."""


def compile_numba(equations: Equations) -> dict[str, Callable[..., Any]]:
    """The compiled functions of `equations` by name and by role (`flow`, ..), from the cache when it is there.

    A role that has no loops (a loss evaluated at saved points only) is the form on arrays, in NumPy.
    """
    module = generated(equations.code.structure, sources.roots(equations), lambda: module_text(equations))
    names = [reference.partition(":")[2] for reference in equations.code.loops]
    found: dict[str, Callable[..., Any]] = {name: getattr(module, name) for name in names}
    code = equations.code
    for role, name in code.roles.items():
        function = getattr(module, name if code.takes is None else name + ENTRY, None)
        function = from_arrays(equations, np)[role] if function is None else function
        found |= both_roles(function, role) if role in BOTH else {role: function}
    return found


def common(references: tuple[str, ...]) -> dict[str, Any]:
    """Functions that many equations share, compiled in a module of their own, and the constants that they read."""
    stem, modules = _named(references)
    module = generated(stem, modules, lambda: generate_module(stem, {}, references))
    return {name: getattr(module, name) for name in (reference.partition(":")[2] for reference in references)}


def _named(references: tuple[str, ...]) -> tuple[str, list[str]]:
    """The stem of the module of a common group, and the modules that its functions stand in."""
    modules = sorted({reference.partition(":")[0] for reference in references})
    return "common_" + "_".join(name.rpartition(".")[2] for name in modules), modules


def _note(stem: str, modules: Sequence[str], writer: str) -> Path:
    """The file that names the generated module of some sources."""
    return cache.folder() / f"{stem}_{source_digest(stem, (*modules, writer))}.made"


def generated(stem: str, modules: Sequence[str], write: Callable[[], str]) -> types.ModuleType:
    """Import the module whose text `write()` makes; it is called only where no cached text is known to be the same.

    `modules` hold the functions and kernels that are written; what they and the module of `write` import belongs to
    them.  The file is named by `stem` and a digest of its text, and by whatever else decides on the machine code.
    """
    folder, note = cache.folder(), _note(stem, modules, write.__module__)
    found = sys.modules.get(LOADED.get(note, ""))
    if found is not None:  # with its machine code, which takes longer to load than a short run
        return found
    path = kept.noted(note, stem)
    text = kept.read(path) if path is not None else None
    if path is None or text is None:
        with busy("deriving"):
            text = write()
        path = folder / f"{stem}_{text_digest(text)}.py"
        if kept.read(path) is None:
            kept.offer(path, kept.sealed(text).encode())
        kept.offer(note, path.name.encode())
    with IMPORTING:
        loaded = sys.modules.get(f"odesim_generated_{path.stem}")
        if loaded is None or loaded.__file__ != str(path):
            loaded = kept.imported(path, text)
        LOADED[note] = loaded.__name__
        return loaded


def module_text(equations: Equations) -> str:
    """The text of the module that numba compiles for some equations."""
    code = equations.code
    return generate_module(code.structure, code.kernels(), code.loops) + entries(code)


def entries(code: Code) -> str:
    """What Python calls where loops take their arguments in one: functions that take them one by one.

    Numba needs a microsecond to see what a named tuple is, every time that Python passes one.
    """
    if code.takes is None:
        return ""
    fields, compiled = ", ".join(code.takes._fields), {reference.partition(":")[2] for reference in code.loops}
    texts = [f"from {code.takes.__module__} import {code.takes.__name__} as Arguments\n"]
    for role, name in code.roles.items():
        if name in compiled:
            head = ", ".join(HEADS[role])
            body = f"def {name}{ENTRY}({head}, {fields}):\n    return {name}({head}, Arguments({fields}))\n"
            texts.append(DECORATOR + body)
    return "\n\n" + "\n\n".join(texts)


def generate_module(origin: str, kernels: Mapping[str, Kernel | Written], loops: Sequence[str]) -> str:
    """The text of a module for numba: kernels first, then the loops "module:function" in the order they are listed."""
    texts = [
        kernel.text if isinstance(kernel, Written) else scalar_source(name, kernel)
        for name, kernel in kernels.items()
        if not (isinstance(kernel, Written) and kernel.serves == "arrays")
    ]
    return numba_module(origin, [*texts, *map(source, loops)])


def source(reference: str) -> str:
    """The text of a function, or of a constant that functions read."""
    found = load(reference)
    return inspect.getsource(inspect.unwrap(found)) if callable(found) else f"{reference.partition(':')[2]} = {found!r}"


def numba_module(origin: str, functions: Sequence[str]) -> str:
    """A module of numba functions from their plain source texts, in the order in which they call each other."""
    head = f'"""Generated by odesim from {origin}; do not edit."""\n\n'
    head += (
        "import functools\nimport math\nfrom math import asin, cos, cosh, erf, exp, log, pi, sin, sinh, sqrt, tanh\n\n"
    )
    head += "import numpy as np\nfrom numba import njit, vectorize\nfrom numpy import sign"
    text = decorated(functions)
    called = set(re.findall(r"(\w+)\(", text))
    for module, names in PROVIDED.items():
        wanted = [name for name in names if name in called]
        head += f"\n\nfrom {module} import {', '.join(wanted)}" if wanted else ""
    return f"{head}\n\n\n{text}\n"


def decorated(functions: Sequence[str]) -> str:
    """Plain source texts as numba functions; a constant, and one that says itself what it is, stay as they are."""
    texts = [textwrap.dedent(text) for text in functions]
    return "\n\n\n".join(DECORATOR + text if text.startswith("def ") else text for text in texts) + "\n"


@functools.cache
def source_digest(stem: str, modules: tuple[str, ...]) -> str:
    """16 hexadecimal characters that change whenever the text of the generated module could.

    They cover the files of `modules`, of what writes modules, and of all that these import (`sources.closure`), and
    the versions of the libraries whose answers are written: SymPy's expressions, SciPy's coefficients.  Those of the
    compilers too: a note leads to the module, and so to the machine code, of one version of each.
    """
    versions = _versions("sympy", "mpmath", "scipy", "numpy", "numba", "llvmlite")
    return sources.digest((__name__, *modules), stem, *versions)


def text_digest(text: str) -> str:
    """16 hexadecimal characters of all that decides on the machine code of a generated module.

    Its text, the files of ours that the text imports, how it is linked and counts references, the compilers, the
    interpreter, the processor's family, and the level of optimisation (the names and seals of `hermite.kept` keep apart
    the code of different processors).
    """
    level = os.environ.get("NUMBA_OPT", str(kept.LLVM_LEVEL))
    ours = [name for name in sources.imported_by(text) if sources.followed(name)]
    return sources.digest(
        ["odesim.code.linked", "odesim.code.references", *ours], text, level, *_versions("numba", "llvmlite", "numpy")
    )


def _versions(*libraries: str) -> list[str]:
    """The versions of some libraries and of the interpreter, and the kind of machine."""
    found = [f"{name} {version(name)}" for name in libraries]
    return [*found, platform.python_version(), platform.machine()]


def both_roles(function: Callable[..., Any], role: Role) -> dict[str, Callable[..., Any]]:
    """`flow(t, y, ...)` and `loss(y, ...)` of one compiled function that returns the two."""
    free, priced = ((False,), (True,)) if role == "flow_priced" else ((), ())
    flow, whole = lambda t, y, *arguments: function(t, y, *free, *arguments)[0], getattr(function, "whole", None)
    if whole is not None:
        vars(flow)["whole"] = lambda t, y, arguments: whole(t, y, *free, arguments)[0]
    return {"flow": flow, "loss": lambda y, *arguments: function(0.0, y, *priced, *arguments)[1]}

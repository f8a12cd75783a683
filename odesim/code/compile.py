"""From symbolic kernels and plain loops to functions compiled by numba.

The CSE'd scalar kernels (`printer`) and the plain loops of a system are written, together, into one generated module.
Its functions call each other directly. Functions that Python calls are compiled for the types of their arguments, and
their machine code is cached (`module_cache`). Parameters are run-time arguments throughout.
"""

import functools
import inspect
import platform
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from derivations import cache
from derivations.contract import Code, Equations, Kernel, Written, load
from derivations.contract.equations import BOTH, HEADS, Role
from derivations.installed import version
from hermite.sealed import unsealed
from odesim.code import sources
from odesim.code.arrays import from_arrays
from odesim.code.busy import busy
from odesim.code.module_cache import TypedFunction
from odesim.code.printer import scalar_source

OPTIONS: dict[str, Any] = {
    "nogil": True,
    "fastmath": {"contract", "reassoc", "arcp", "nsz"},
    "error_model": "numpy",
}
"""Options of numba: reassociation and fused multiply-add for speed. NaN and infinity keep their meaning, so that
failures are detected.

numba's test for finite x uses x - x, which reassociation turns into 0 if x is a sum. Therefore compare with infinity.
"""
DECORATOR = "@njit(nogil=True, fastmath={'contract', 'reassoc', 'arcp', 'nsz'}, error_model='numpy')\n"
"""Text of the decorator with `OPTIONS` in a generated module."""
LEVEL = 2
"""Level of optimisation. numba's default, 3, takes 1.7 times as long to compile steps of SGD, which are no faster
then.
"""
PROVIDED = {"math": ("acos", "atan")}
"""Imports of a generated module, by the names in its text."""
ENTRY = "_one_by_one"
"""Ending of the names of functions that Python calls."""
_texts: dict[str, str] = {}
"""Generated texts by the structure of their equations."""


def compile_numba(equations: Equations) -> dict[str, Callable[..., Any]]:
    """Return the compiled functions of `equations` by name and by role (`flow`, ..), from the cache if possible.

    A role without loops (a loss that is evaluated at saved points only) has the NumPy form.
    """
    code = equations.code
    if code.structure not in _texts:
        _texts[code.structure] = derived_text(code.structure, sources.roots(equations), lambda: module_text(equations))
    text = _texts[code.structure]
    found: dict[str, Callable[..., Any]] = {**functions_of(code.structure, text, names_of(code.loops))}
    for role, name in code.roles.items():
        entry = name if code.takes is None else name + ENTRY
        defined = f"def {entry}(" in text
        typed = functions_of(code.structure, text, [entry] if defined else [])
        function = typed[entry] if defined else from_arrays(equations, np)[role]
        found |= both_roles(function, role) if role in BOTH else {role: function}
    return found


def derived_text(stem: str, modules: Sequence[str], write: Callable[[], str]) -> str:
    """Return the text that `write()` makes, from the cache if files and libraries have not changed.

    `modules` contain the functions and kernels of the text; the imports of these modules also count.
    """
    libraries = [f"{name} {version(name)}" for name in ("sympy", "mpmath", "scipy", "numpy")]
    key = sources.digest((__name__, *modules), stem, *libraries, platform.python_version())
    path = cache.folder() / f"{stem}_{key}.text"
    content = unsealed(path, key)
    if content is not None:
        return content.decode()
    with busy("deriving"):
        text = write()
    cache.offer_sealed(path, key, text.encode())
    return text


@functools.cache
def common(references: tuple[str, ...]) -> dict[str, TypedFunction]:
    """Return functions that many equations share, compiled in a separate module, with the constants that they use."""
    modules = sorted({reference.partition(":")[0] for reference in references})
    stem = "common_" + "_".join(name.rpartition(".")[2] for name in modules)
    return functions_of(stem, generate_module(stem, {}, references), names_of(references))


def names_of(references: Sequence[str]) -> list[str]:
    """Return the names of the functions among references "module:name"."""
    return [reference.partition(":")[2] for reference in references if callable(load(reference))]


def functions_of(stem: str, text: str, names: Sequence[str]) -> dict[str, TypedFunction]:
    """Return functions of a generated text by name, each compiled at its first call."""
    return {name: TypedFunction(stem, text, name, level=LEVEL, **OPTIONS) for name in names}


def module_text(equations: Equations) -> str:
    """Return the text of the module that numba compiles for some equations."""
    code = equations.code
    return generate_module(code.structure, code.kernels(), code.loops) + entries(code)


def entries(code: Code) -> str:
    """Return functions with single arguments, which Python calls, for loops with one joint argument.

    numba needs a microsecond for the type of a named tuple, every time that Python passes one.
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
    """Return the text of a module for numba: kernels first, then the loops "module:function" in the given order."""
    texts = [
        kernel.text if isinstance(kernel, Written) else scalar_source(name, kernel)
        for name, kernel in kernels.items()
        if not (isinstance(kernel, Written) and kernel.serves == "arrays")
    ]
    return numba_module(origin, [*texts, *map(source, loops)])


def source(reference: str) -> str:
    """Return the text of a function, or of a constant that functions use."""
    found = load(reference)
    return inspect.getsource(inspect.unwrap(found)) if callable(found) else f"{reference.partition(':')[2]} = {found!r}"


def numba_module(origin: str, functions: Sequence[str]) -> str:
    """Return a module of numba functions from their plain source texts, in the order in which they call each other."""
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
    """Return plain source texts as numba functions; constants, and texts with their own decorator, are unchanged."""
    texts = [textwrap.dedent(text) for text in functions]
    return "\n\n\n".join(DECORATOR + text if text.startswith("def ") else text for text in texts) + "\n"


def both_roles(function: Callable[..., Any], role: Role) -> dict[str, Callable[..., Any]]:
    """Return `flow(t, y, ...)` and `loss(y, ...)` for one compiled function that returns both."""
    free, priced = ((False,), (True,)) if role == "flow_priced" else ((), ())
    flow, whole = lambda t, y, *arguments: function(t, y, *free, *arguments)[0], getattr(function, "whole", None)
    if whole is not None:
        vars(flow)["whole"] = lambda t, y, arguments: whole(t, y, *free, arguments)[0]
    return {"flow": flow, "loss": lambda y, *arguments: function(0.0, y, *priced, *arguments)[1]}

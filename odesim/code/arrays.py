"""From symbolic kernels to functions of an array library, NumPy or JAX."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from derivations.contract import Equations, Kernel, Written
from derivations.contract.equations import HEADS
from derivations.special import special
from odesim.code.printer import array_source

_traced: dict[str, dict[str, Callable[..., Any]]] = {}
"""Functions for JAX by the structure of their equations, because JAX compiles a function again for every new object."""


def compile_arrays(equations: Equations, backend: str) -> dict[str, Callable[..., Any]]:
    """The same functions built from array operations, for `backend` "numpy" or "jax" (not yet jitted)."""
    if backend == "jax":
        import jax.numpy as xp

        if equations.code.structure not in _traced:
            _traced[equations.code.structure] = from_arrays(equations, xp)
        return _traced[equations.code.structure]
    return from_arrays(equations, np)


def from_arrays(equations: Equations, xp: Any) -> dict[str, Callable[..., Any]]:
    """Return the functions of `equations` by role, built from the operations of one array library."""
    kernels = equations.code.kernels()
    functions = {name: array_kernel(kernel, xp) for name, kernel in kernels.items() if isinstance(kernel, Kernel)}
    written = [kernel.text for kernel in kernels.values() if isinstance(kernel, Written) and kernel.serves != "loops"]
    found = equations.code.arrays(xp, {**functions, **_array_texts(written, xp)})
    if equations.code.takes is None:
        return dict(found)
    heads = {str(role): len(names) for role, names in HEADS.items()}
    return {role: one_by_one(function, heads[role], equations.code.takes) for role, function in found.items()}


def one_by_one(function: Callable[..., Any], head: int, takes: Any) -> Callable[..., Any]:
    """Convert a function of `head` values and one joint argument to a function of these values and every single
    argument.

    The attribute `whole` is the original function, for callers that use the same arguments many times.
    """

    def called(*values: Any) -> Any:
        return function(*values[:head], takes._make(values[head:]))

    vars(called)["whole"] = function
    return called


def _array_texts(texts: Sequence[str], xp: Any) -> dict[str, Callable[..., Any]]:
    """Return the functions of some texts, which may call each other, with `np` and the elementary functions of a
    library.
    """
    if not texts:
        return {}
    namespace = {"np": xp, **_elementary(xp)}
    known = set(namespace)
    exec("\n\n".join(texts), namespace)
    return {name: value for name, value in namespace.items() if name not in known and callable(value)}


def array_kernel(kernel: Kernel, xp: Any = None) -> Callable[..., tuple[Any, ...]]:
    """Return a kernel as a function of (table, *scalars); the first axis of the table is indexed.

    `xp` is the array library (NumPy unless given) whose elementary functions the kernel uses.
    """
    namespace = _elementary(xp)
    exec(array_source(kernel), namespace)
    return namespace["evaluate"]


def _elementary(xp: Any) -> dict[str, Any]:
    """Return the elementary functions of one array library that a printed kernel may call."""
    if xp is None:
        import numpy as xp
    names = ("exp", "log", "sqrt", "tanh", "cosh", "sinh", "sin", "cos", "sign")
    found: dict[str, Any] = {name: getattr(xp, name) for name in names}
    found |= {"erf": lambda x: special(xp).erf(x), "erfc": lambda x: special(xp).erfc(x)}
    return {**found, "asin": xp.arcsin, "pi": xp.pi}

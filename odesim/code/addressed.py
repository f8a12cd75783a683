"""Compiled functions called by their address: machine code that is made once calls what is made for each model.

A caller that links what it calls (`odesim.code.linked`) is compiled for each; one that is given an address is compiled
once for all, and what it calls is optimised alone: loops that are vectorised before they are inlined run faster.
"""

import functools
from typing import Any

from numba.core import sigutils, types
from numba.core.errors import TypingError
from numba.extending import intrinsic


@functools.cache
def address(function: Any, signature: str) -> int:
    """Where the machine code of a compiled function of no result lies, for arguments of the types of a signature.

    >>> import numpy as np
    >>> from numba import njit
    >>> @njit
    ... def twice(x):
    ...     x[0] *= 2.0
    >>> at = address(twice, "f8[::1],")
    >>> @njit
    ... def called(at, x):
    ...     by_address("f8[::1],", at, (x,))
    >>> x = np.ones(1)
    >>> called(at, x)
    >>> x
    array([2.])
    """
    arguments = types_of(signature)
    form = function.bare() if hasattr(function, "bare") else function
    form.compile(arguments)
    made = form.overloads[arguments]
    return made.library.get_pointer_to_function(made.fndesc.llvm_func_name)


def types_of(signature: str) -> tuple[Any, ...]:
    """The types of the arguments of a signature."""
    return sigutils.normalize_signature(f"void({signature.rstrip(', ')})")[0]


@intrinsic(prefer_literal=True)
def by_address(typing: Any, signature: Any, at: Any, arguments: Any) -> Any:
    """Call the function at `address(function, signature)` with a tuple of arguments; what it raises is raised.

    That the arguments have the types of the signature is seen when the caller is compiled.
    """
    if not isinstance(signature, types.StringLiteral):
        return None
    wanted = types_of(signature.literal_value)
    if tuple(arguments) != wanted:
        raise TypingError(f"what is called by its address takes {wanted}, but {tuple(arguments)} was given")

    def generate(context: Any, builder: Any, _: Any, values: Any) -> Any:
        convention = context.call_conv
        made = convention.get_function_type(types.none, wanted)
        function = builder.inttoptr(values[1], made.as_pointer())
        given = [builder.extract_value(values[2], k) for k in range(len(wanted))]
        status, _ = convention.call_function(builder, function, types.none, wanted, given)
        with builder.if_then(status.is_error, likely=False):
            convention.return_status_propagate(builder, status)
        return context.get_dummy_value()

    return types.void(signature, types.intp, arguments), generate

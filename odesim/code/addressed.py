"""Compiled functions called by their address: machine code that is made once calls what is made for each model.

A caller that links what it calls (`odesim.code.linked`) is compiled for each; one that is given an address is compiled
once for all, and what it calls is optimised alone: loops that are vectorised before they are inlined run faster.
"""

import functools
import hashlib
from types import ModuleType
from typing import Any

from numba import typeof
from numba.core import cgutils, imputils, sigutils, types
from numba.core.errors import TypingError
from numba.extending import intrinsic


@functools.cache
def address(function: Any, signature: str) -> int:
    """Where the machine code of a compiled function lies, for arguments of the types of a signature.

    Its result has the type that the signature names after an arrow ("f8, i8 -> f8[::1]"); without one it has none.

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
    if made.signature.return_type != result_of(signature):
        raise TypingError(f"what is called by its address as ({signature}) returns {made.signature.return_type}")
    return made.library.get_pointer_to_function(made.fndesc.llvm_func_name)


def types_of(signature: str) -> tuple[Any, ...]:
    """The types of the arguments of a signature."""
    return sigutils.normalize_signature(f"void({signature.partition('->')[0].rstrip(', ')})")[0]


def result_of(signature: str) -> Any:
    """The type of the result of a signature: what it says after an arrow, else none."""
    named = signature.partition("->")[2].strip()
    return sigutils.normalize_signature(f"{named}()")[1] if named else types.none


@intrinsic(prefer_literal=True)
def by_address(typing: Any, signature: Any, at: Any, arguments: Any) -> Any:
    """Call the function at `address(function, signature)` with a tuple of arguments; what it raises is raised.

    The caller owns the arrays for as long as that takes, so that nobody counts references to them, unless a result that
    is no number could be a part of one.  That the arguments have the types of the signature is seen when the caller is
    compiled.
    """
    if not isinstance(signature, types.StringLiteral):
        return None
    wanted, result = types_of(signature.literal_value), result_of(signature.literal_value)
    if tuple(arguments) != wanted:
        raise TypingError(f"what is called by its address takes {wanted}, but {tuple(arguments)} was given")

    def generate(context: Any, builder: Any, _: Any, values: Any) -> Any:
        convention = context.call_conv
        made = convention.get_function_type(result, wanted)
        function = builder.inttoptr(values[1], made.as_pointer())
        numbers = result == types.none or all(
            isinstance(one, types.Number) for one in getattr(result, "types", [result])
        )
        lent = _without_owners(context, builder, arguments, values[2]) if numbers else values[2]
        given = [builder.extract_value(lent, k) for k in range(len(wanted))]
        status, found = convention.call_function(builder, function, result, wanted, given)
        with builder.if_then(status.is_error, likely=False):
            convention.return_status_propagate(builder, status)
        return context.get_dummy_value() if result == types.none else found

    return result(signature, types.intp, arguments), generate


@intrinsic
def lent(typing: Any, value: Any) -> Any:
    """Where a copy of a value lies, until the function that calls this ends; its arrays belong to their owners."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        (kind,) = signature.args
        place = cgutils.alloca_once_value(builder, _without_owners(context, builder, kind, values[0]))
        return builder.ptrtoint(place, context.get_value_type(types.intp))

    return types.intp(value), generate


def _without_owners(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """A value whose arrays say nothing of who owns their memory, so that nobody counts references to it."""
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        for name in ("meminfo", "parent"):
            setattr(array, name, cgutils.get_null_value(getattr(array, name).type))
        return array._getvalue()
    if isinstance(kind, types.BaseTuple):
        for k, part in enumerate(kind.types):
            found = _without_owners(context, builder, part, builder.extract_value(value, k))
            value = builder.insert_value(value, found, k)
    return value


@functools.cache
def borrower(kind: Any) -> Any:
    """The function `borrowed(at)` of compiled code: the value of a type that was `lent` at an address.

    >>> import numpy as np
    >>> from numba import njit, typeof
    >>> values = (2.0, np.ones(3))
    >>> borrowed = borrower(typeof(values))
    >>> @njit
    ... def through(values):
    ...     factor, x = borrowed(lent(values))
    ...     return factor * x.sum()
    >>> through(values)
    6.0
    """

    @intrinsic
    def borrowed(typing: Any, at: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            place = builder.inttoptr(values[0], context.get_value_type(kind).as_pointer())
            return imputils.impl_ret_borrowed(context, builder, kind, builder.load(place))

        return kind(types.intp), generate

    return borrowed


class Lending:
    """What a generated module needs whose functions lend values of one type, and borrow them.

    The machine code depends on the type, which stands in the `text` of the module and, as a `digest`, in its name.
    """

    def __init__(self, values: Any) -> None:
        self.kind = typeof(values)
        self.text = f"LENT = {str(self.kind)!r}"
        self.digest = hashlib.sha256(self.text.encode()).hexdigest()[:8]

    def serve(self, module: ModuleType) -> None:
        """Give the functions of the module `lent` and `borrowed`."""
        vars(module).update(lent=lent, borrowed=borrower(self.kind))

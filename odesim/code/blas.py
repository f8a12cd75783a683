"""Products of matrices in compiled code by the BLAS that NumPy has loaded already.

numba's own `np.dot` imports SciPy's linear algebra for it, a sixth of a second in every process.  The function is found
among the symbols of what NumPy's linear algebra is linked with, and trusted where it multiplies two matrices right;
elsewhere (another BLAS, other names) callers have a way of their own.
"""

import contextlib
import ctypes
import functools
import importlib
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

NAMES = ("scipy_cblas_dgemm64_", "cblas_dgemm64_")
"""dgemm with integers of 64 bits, as NumPy's wheels have it."""
ROWS, AS_IS = 101, 111
"""CblasRowMajor and CblasNoTrans."""
PROTOTYPE = (*[ctypes.c_int] * 3, *[ctypes.c_int64] * 3, ctypes.c_double, *[ctypes.c_void_p, ctypes.c_int64] * 2,
             ctypes.c_double, ctypes.c_void_p, ctypes.c_int64)  # fmt: skip


@functools.cache
def dgemm() -> int:
    """The address of NumPy's dgemm, with integers of 64 bits; 0 where none is found that multiplies right."""
    with contextlib.suppress(ImportError, OSError):
        library = ctypes.CDLL(importlib.import_module("numpy.linalg._umath_linalg").__file__)
        for name in NAMES:
            function: Any = getattr(library, name, None)
            if function is not None and _multiplies(function):
                return ctypes.cast(function, ctypes.c_void_p).value or 0
    return 0


def _multiplies(function: Any) -> bool:
    """Whether a dgemm gives the product of two matrices of whole numbers."""
    A, B, found = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4) - 5.0, np.zeros((2, 4))
    function.argtypes, function.restype = PROTOTYPE, None
    a, b, c = (array.ctypes.data for array in (A, B, found))
    function(ROWS, AS_IS, AS_IS, 2, 4, 3, 1.0, a, 3, b, 4, 0.0, c, 4)
    return bool((found == A @ B).all())


@intrinsic
def multiplied(typing: Any, at: Any, A: Any, B: Any, C: Any, rows: Any, inner: Any, columns: Any) -> Any:
    """C = A B by the `dgemm` at an address: (rows, inner), (inner, columns), (rows, columns), in arrays of any shape.

    >>> from numba import njit
    >>> @njit
    ... def product(at, A, B, C):
    ...     multiplied(at, A, B, C, A.shape[0], A.shape[1], B.shape[1])
    >>> A, C = np.array([[1.0, 2.0], [3.0, 4.0]]), np.zeros((2, 2))
    >>> if dgemm():
    ...     product(dgemm(), A, A, C)
    >>> bool((C == A @ A).all()) or not dgemm()
    True
    """
    given = (A, B, C)
    if not all(isinstance(one, types.Array) and one.layout == "C" and one.dtype == types.float64 for one in given):
        return None

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        number, real, whole = ir.IntType(64), ir.DoubleType(), ir.IntType(32)
        a, b, c = (
            builder.ptrtoint(context.make_array(kind)(context, builder, value).data, number)
            for kind, value in zip(signature.args[1:4], values[1:4], strict=True)
        )
        m, k, n = values[4:]
        named = [ir.Constant(whole, word) for word in (ROWS, AS_IS, AS_IS)]
        words = [*named, m, n, k, ir.Constant(real, 1.0), a, k, b, n, ir.Constant(real, 0.0), c, n]
        kinds = ir.FunctionType(ir.VoidType(), [word.type for word in words])
        builder.call(builder.inttoptr(values[0], kinds.as_pointer()), words)
        return context.get_dummy_value()

    size = types.intp
    return types.none(size, A, B, C, size, size, size), generate

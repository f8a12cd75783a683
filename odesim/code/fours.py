"""Four numbers at a time as one instruction, where a loop is too short for a compiler to find them.

numba vectorises long loops over the entries of rows; a rule with one to four nodes, or a sum over eight experts, that
is taken again and again is no such loop.  A `four` is a value of its own in compiled code, like a number: it is read
from a row; goes through + - * / with other fours or with numbers that stand for four, `larger`, `where_positive`,
`root_of_four` and what `odesim.code.elementary` has; and is written to a row or summed.
"""

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import TypingError
from numba.core import types
from numba.core.datamodel.models import PrimitiveModel
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, register_model

COUNT = 4
DOUBLE, PLACE = ir.DoubleType(), ir.IntType(32)
VECTOR = ir.VectorType(DOUBLE, COUNT)
ALIGNED = 8
"""Rows are aligned as single numbers are."""


class FourType(types.Type):
    """What numba calls four numbers of double precision side by side."""

    def __init__(self) -> None:
        super().__init__(name="four")


FOUR = FourType()


@register_model(FourType)
class FourModel(PrimitiveModel):
    """They lie in a register."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, VECTOR)


@intrinsic
def four(typing: Any, row: Any, at: Any) -> Any:
    """The four numbers of an array from its entry `at` on, in the order of the memory; the place is not checked.

    The array holds double precision, its last axis the closest.

    >>> import numpy as np
    >>> from numba import njit
    >>> njit(lambda row: sum_of_four(four(row, 1) * 2.0))(np.arange(6.0))
    20.0
    """

    _require_rows(row)

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        found = builder.load(_place(context, builder, signature, values))
        found.align = ALIGNED
        return found

    return FOUR(row, types.intp), generate


@intrinsic
def put_four(typing: Any, row: Any, at: Any, x: Any) -> Any:
    """Write four numbers to an array from its entry `at` on, as `four` reads them.

    >>> import numpy as np
    >>> from numba import njit
    >>> row = np.zeros(6)
    >>> njit(lambda row: put_four(row, 2, four(row, 0) + 1.5))(row)
    >>> row
    array([0. , 0. , 1.5, 1.5, 1.5, 1.5])
    """

    _require_rows(row)

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        store = builder.store(values[2], _place(context, builder, signature, values))
        store.align = ALIGNED
        return context.get_dummy_value()

    return types.void(row, types.intp, FOUR), generate


@intrinsic
def alike(typing: Any, x: Any) -> Any:
    """The number x four times."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return _spread(builder, values[0])

    return FOUR(types.float64), generate


@intrinsic
def sum_of_four(typing: Any, x: Any) -> Any:
    """(x_0 + x_1) + (x_2 + x_3) of a four.

    >>> from numba import njit
    >>> njit(lambda x: sum_of_four(alike(x) + 1.0))(2.0)
    12.0
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        a, b, c, d = (builder.extract_element(values[0], PLACE(k)) for k in range(COUNT))
        return builder.fadd(builder.fadd(a, b), builder.fadd(c, d))

    return types.float64(FOUR), generate


@intrinsic
def larger(typing: Any, x: Any, y: Any) -> Any:
    """max(x, y) of fours and numbers, place by place; y where one of them is no number.

    >>> from numba import njit
    >>> njit(lambda x: sum_of_four(larger(alike(x), -1.0)))(-2.0)
    -4.0
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        first, second = _fours(builder, signature, values)
        return builder.select(builder.fcmp_ordered(">", first, second), first, second)

    return FOUR(_place_type(x), _place_type(y)), generate


@intrinsic
def where_positive(typing: Any, x: Any, one: Any, other: Any) -> Any:
    """`one` where x > 0 and `other` elsewhere, place by place.

    >>> from numba import njit
    >>> njit(lambda x: sum_of_four(where_positive(alike(x), 1.0, 5.0)))(0.0)
    20.0
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        tested, first, second = _fours(builder, signature, values)
        return builder.select(builder.fcmp_ordered(">", tested, _spread(builder, DOUBLE(0.0))), first, second)

    return FOUR(*(_place_type(kind) for kind in (x, one, other))), generate


@intrinsic
def root_of_four(typing: Any, x: Any) -> Any:
    """The square roots of a four.

    >>> from numba import njit
    >>> njit(lambda x: sum_of_four(root_of_four(alike(x))))(9.0)
    12.0
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        name = f"llvm.sqrt.v{COUNT}f64"
        root = builder.module.globals.get(name) or ir.Function(builder.module, ir.FunctionType(VECTOR, [VECTOR]), name)
        return builder.call(root, values)

    return FOUR(FOUR), generate


class Together(AbstractTemplate):
    """What numba is told of an operation on fours, or on a four and a number."""

    def generic(self, args: Any, kws: Any) -> Any:
        """The type of the result: four numbers; None where it is no such operation."""
        if FOUR not in args or not all(kind == FOUR or isinstance(kind, types.Number) for kind in args):
            return None
        return signature(FOUR, *map(_place_type, args))


def _lowered(name: str) -> Callable[..., Any]:
    """An operation as an instruction."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return getattr(builder, name)(*_fours(builder, signature, values))

    return generate


def _operations(operation: Callable[..., Any], name: str) -> None:
    """Make an operator of Python known for fours."""
    register: Any = infer_global
    register(operation)(type(name, (Together,), {}))
    for kinds in ((FOUR, FOUR), (FOUR, types.float64), (types.float64, FOUR)):
        lower_builtin(operation, *kinds)(_lowered(name))


_operations(operator.add, "fadd")
_operations(operator.sub, "fsub")
_operations(operator.mul, "fmul")
_operations(operator.truediv, "fdiv")


def _place_type(kind: Any) -> Any:
    """What an argument is taken as."""
    return FOUR if kind == FOUR else types.float64


def _fours(builder: Any, signature: Any, values: Any) -> list[Any]:
    """Arguments as fours."""
    pairs = zip(signature.args, values, strict=True)
    return [value if kind == FOUR else _spread(builder, value) for kind, value in pairs]


def _require_rows(kind: Any) -> None:
    """Refuse arrays in which the numbers that follow each other do not lie side by side."""
    if not (isinstance(kind, types.Array) and kind.dtype == types.float64 and kind.layout == "C"):
        raise TypingError(f"a four lies in a contiguous array of float64, not in {kind}")


def _place(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    """Where the four numbers of an array lie."""
    array = context.make_array(signature.args[0])(context, builder, values[0])
    return builder.bitcast(builder.gep(array.data, [values[1]]), VECTOR.as_pointer())


def _spread(builder: Any, x: Any) -> Any:
    """A number in all four places."""
    none = ir.Constant(VECTOR, ir.Undefined)
    first = builder.insert_element(none, x, PLACE(0))
    return builder.shuffle_vector(first, none, ir.Constant(ir.VectorType(PLACE, COUNT), [0] * COUNT))

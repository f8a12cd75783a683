"""Straight-line kernels as machine instructions, without what numba does for a function of any kind.

A printed kernel is a list of assignments of sums and products.  numba types and lowers each of them, and makes a
function of it, which takes five milliseconds a line; here the lines are read with Python's own parser and become the
instructions that they stand for, in the middle of whoever calls the kernel.
"""

import ast
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from odesim.code.kept import FAST

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "asin": math.asin, "cos": math.cos, "cosh": math.cosh, "erf": math.erf, "exp": math.exp, "log": math.log,
    "sin": math.sin, "sinh": math.sinh, "sqrt": math.sqrt, "tanh": math.tanh, "sign": np.sign,
}  # fmt: skip
"""What a kernel may call, as numba knows it."""
OPERATIONS = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv"}
WHOLE = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul"}


def straight(text: str) -> Any:
    """The function of a text `def name(S, lane, x, ..): ..`, for compiled code to call.

    S is an array, lane a whole number; it returns the tuple of its last line.  Raises `ValueError` for a text that is
    anything but assignments of arithmetic, elements of S and the functions of `FUNCTIONS`.

    >>> from numba import njit
    >>> kernel = straight("def kernel(S, lane, x):\\n    y = 2*S[lane]\\n    return (y - x*x, -y,)\\n")
    >>> njit(lambda S, x: kernel(S, 1, x))(np.array([0.0, 5.0]), 3.0)
    (1.0, -10.0)
    """
    (function,) = ast.parse(text).body
    if not isinstance(function, ast.FunctionDef):
        raise ValueError("a kernel is one function")
    *lines, last = function.body
    names = [argument.arg for argument in function.args.args]
    if not (isinstance(last, ast.Return) and isinstance(last.value, ast.Tuple)):
        raise ValueError(f"{function.name} does not end in a tuple")
    outputs = last.value.elts
    _require_plain(lines, outputs, names)

    def typed(context: Any, given: tuple[Any, ...]) -> Any:
        table, lane, *scalars = given
        if not isinstance(table, types.Array) or table.dtype != types.float64 or not isinstance(lane, types.Integer):
            return None
        signature = types.UniTuple(types.float64, len(outputs))(table, types.intp, *[types.float64] * len(scalars))

        def generate(target: Any, builder: Any, signature: Any, values: Any) -> Any:
            table = target.make_array(signature.args[0])(target, builder, values[0])
            writer = _Writer(target, builder, context, names[0], (signature.args[0], table))
            writer.known = {names[1]: values[1], **dict(zip(names[2:], values[2:], strict=True))}
            for line in lines:
                assert isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name)
                writer.known[line.targets[0].id] = writer.real(line.value)
            return target.make_tuple(builder, signature.return_type, [writer.real(output) for output in outputs])

        return signature, generate

    space: dict[str, Any] = {"typed": typed}
    exec(f"def {function.name}(context, {', '.join(names)}):\n    return typed(context, ({', '.join(names)},))", space)
    return intrinsic(space[function.name])


def _require_plain(lines: list[ast.stmt], outputs: list[ast.expr], names: list[str]) -> None:
    """Raise `ValueError` where a line is something else than is written here."""
    plain = (ast.BinOp, ast.UnaryOp, ast.Name, ast.Constant, ast.Subscript, ast.Call, ast.Tuple)
    words = (*OPERATIONS, ast.Pow, ast.USub, ast.UAdd, ast.expr_context)
    for line in lines:
        if not (isinstance(line, ast.Assign) and len(line.targets) == 1 and isinstance(line.targets[0], ast.Name)):
            raise ValueError(f"a kernel has assignments alone: {ast.unparse(line)}")
    for part in (node for one in (*lines, *outputs) for node in ast.walk(one)):
        called = isinstance(part, ast.Call) and not (isinstance(part.func, ast.Name) and part.func.id in FUNCTIONS)
        looked = isinstance(part, ast.Subscript) and not (
            isinstance(part.value, ast.Name) and part.value.id == names[0]
        )
        power = isinstance(part, ast.BinOp) and isinstance(part.op, ast.Pow) and not _is_whole(part.right)
        if called or looked or power or not isinstance(part, (*plain, *words, ast.Assign)):
            raise ValueError(f"a kernel has no {ast.unparse(part)}")


def _is_whole(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value > 0


class _Writer:
    """Writes expressions at the place of a builder; `known` are the values of names."""

    def __init__(self, target: Any, builder: Any, typing: Any, name: str, table: tuple[Any, Any]) -> None:
        self.target, self.builder, self.typing, self.name, self.table = target, builder, typing, name, table
        self.known: dict[str, Any] = {}

    def real(self, node: ast.expr) -> Any:
        """The value of an expression of numbers."""
        match node:
            case ast.Constant(value=int() | float() as value):
                return ir.Constant(ir.DoubleType(), float(value))
            case ast.Name(id="pi"):
                return ir.Constant(ir.DoubleType(), math.pi)
            case ast.Name(id=name):
                return self.known[name]
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return self.builder.fneg(self.real(inner), flags=FAST)
            case ast.UnaryOp(op=ast.UAdd(), operand=inner):
                return self.real(inner)
            case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int() as power)):
                return self._power(self.real(left), power)
            case ast.BinOp(left=left, op=op, right=right):
                operation = getattr(self.builder, OPERATIONS[type(op)])
                return operation(self.real(left), self.real(right), flags=FAST)
            case ast.Subscript(slice=index):
                return self._element(index.elts if isinstance(index, ast.Tuple) else [index])
            case ast.Call(func=ast.Name(id=name), args=[inner]):
                return self._called(FUNCTIONS[name], self.real(inner))
        raise ValueError(f"a kernel has no {ast.unparse(node)}")

    def _power(self, base: Any, power: int) -> Any:
        """By squares, as numba does."""
        found = None
        while power:
            if power & 1:
                found = base if found is None else self.builder.fmul(found, base, flags=FAST)
            power >>= 1
            base = self.builder.fmul(base, base, flags=FAST) if power else base
        return found

    def _called(self, function: Any, value: Any) -> Any:
        kind = self.typing.resolve_value_type(function)
        signature = kind.get_call_type(self.typing, (types.float64,), {})
        return self.target.get_function(kind, signature)(self.builder, [value])

    def _element(self, index: list[ast.expr]) -> Any:
        kind, table = self.table
        where = [self._whole(one) for one in index]
        pointer = cgutils.get_item_pointer(self.target, self.builder, kind, table, where, wraparound=False)
        return self.builder.load(pointer)

    def _whole(self, node: ast.expr) -> Any:
        """The value of an expression of whole numbers."""
        match node:
            case ast.Constant(value=int() as value):
                return ir.Constant(ir.IntType(64), value)
            case ast.Name(id=name):
                return self.known[name]
            case ast.BinOp(left=left, op=op, right=right):
                return getattr(self.builder, WHOLE[type(op)])(self._whole(left), self._whole(right))
        raise ValueError(f"an element of {self.name} has no number {ast.unparse(node)}")

"""SymPy expressions as straight-line Python text, for scalars and for arrays."""

from typing import Any

from derivations.contract import Kernel


def _body(kernel: Kernel) -> tuple[list[str], list[str]]:
    """Return CSE'd assignments and output expressions as Python source, with integer powers as products."""
    import sympy
    from sympy.codegen.rewriting import create_expand_pow_optimization

    expand = create_expand_pow_optimization(12)
    printer = _printer()
    factored = [_horner(expression) for expression in kernel.outputs.values()]
    assignments, outputs = sympy.cse(factored, symbols=sympy.numbered_symbols("x_"), optimizations="basic")
    lines = [f"{name} = {printer.doprint(expand(value))}" for name, value in assignments]
    return lines, [str(printer.doprint(expand(value))) for value in outputs]


def _printer() -> Any:
    """Return SymPy's Python printer; sign(x) stays a call, so that one text serves scalars and arrays."""
    from sympy.printing.pycode import PythonCodePrinter

    class Printer(PythonCodePrinter):
        def _print_sign(self, e: Any) -> str:
            return f"sign({self._print(e.args[0])})"

        def _print_Pow(self, expr: Any, rational: bool = False) -> str:
            # numba raises an error if x**(-1) divides by zero; a quotient gives infinity, also in an idle lane
            if expr.exp.is_Integer and expr.exp < 0:
                return f"(1.0/({self._print(expr.base)})**{-expr.exp})"
            return super()._print_Pow(expr, rational)

    return Printer({"fully_qualified_modules": False})


def _horner(expression: Any) -> Any:
    """Collect a polynomial kernel in g, highest power first, which shortens it before CSE."""
    import sympy

    g = sympy.Symbol("g")
    return sympy.collect(sympy.expand(expression), g, sympy.factor_terms) if expression.has(g) else expression


def scalar_source(name: str, kernel: Kernel) -> str:
    """Return the kernel as a numba function of (S, lane, *scalars) -> tuple, reading S[k, lane]."""
    lines, outputs = _body(kernel)
    used = " ".join([*lines, *outputs])
    table = [f"{symbol} = S[{k}, lane]" for k, symbol in enumerate(kernel.table) if symbol in used]
    arguments = ", ".join(["S", "lane", *kernel.scalars])
    body = "\n".join(f"    {line}" for line in [*table, *lines])
    return f"def {name}({arguments}):\n{body}\n    return ({', '.join(outputs)},)\n"


def array_source(kernel: Kernel) -> str:
    """Return the kernel as a function `evaluate(S, *scalars)` -> tuple; the first axis of the table S is indexed."""
    lines, outputs = _body(kernel)
    used = " ".join([*lines, *outputs])
    table = [f"{symbol} = S[{k}]" for k, symbol in enumerate(kernel.table) if symbol in used]
    body = "\n".join(f"    {line}" for line in [*table, *lines])
    return f"def evaluate({', '.join(['S', *kernel.scalars])}):\n{body}\n    return ({', '.join(outputs)},)\n"

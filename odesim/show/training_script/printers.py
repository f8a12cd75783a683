"""SymPy's printers for NumPy, PyTorch and JAX, with the functions of a declaration and constants that need no array.

The printers of SymPy print sqrt(2) as a function of an array, which PyTorch does not accept, and erf for JAX as a
function of the module `math`. Both are replaced here by methods `_print_NAME`, the documented way to extend SymPy's
printers.
"""

import functools
import re
from collections.abc import Mapping
from typing import Any

BACKENDS = ("torch", "numpy", "jax")
FUNCTIONS: Mapping[str, Mapping[str, str]] = {
    "numpy": {
        "erf": "erf({0})", "probit": "ndtr({0})", "logistic": "expit({0})", "softplus": "np.logaddexp(0.0, {0})",
        "relu": "np.maximum({0}, 0.0)", "step": "np.heaviside({0}, 0.0)", "sign": "np.sign({0})",
        "abs": "np.abs({0})", "Abs": "np.abs({0})", "silu": "(({0})*expit({0}))", "gelu": "(({0})*ndtr({0}))",
        "clip": "np.clip({0}, -({1}), {1})", "tanh": "np.tanh({0})", "exp": "np.exp({0})", "log": "np.log({0})",
        "sin": "np.sin({0})", "cos": "np.cos({0})",
    },
    "torch": {
        "erf": "torch.erf({0})", "probit": "torch.special.ndtr({0})", "logistic": "torch.sigmoid({0})",
        "softplus": "functional.softplus({0})", "relu": "torch.relu({0})", "step": "({0} > 0).double()",
        "sign": "torch.sign({0})", "abs": "torch.abs({0})", "Abs": "torch.abs({0})", "silu": "functional.silu({0})",
        "gelu": "functional.gelu({0})", "clip": "torch.clamp({0}, -({1}), {1})", "tanh": "torch.tanh({0})",
        "exp": "torch.exp({0})", "log": "torch.log({0})", "sin": "torch.sin({0})", "cos": "torch.cos({0})",
    },
    "jax": {
        "erf": "jax.scipy.special.erf({0})", "probit": "jax.scipy.special.ndtr({0})",
        "logistic": "jax.nn.sigmoid({0})", "softplus": "jax.nn.softplus({0})", "relu": "jax.nn.relu({0})",
        "step": "jnp.where({0} > 0, 1.0, 0.0)", "sign": "jnp.sign({0})", "abs": "jnp.abs({0})",
        "Abs": "jnp.abs({0})", "silu": "jax.nn.silu({0})", "gelu": "jax.nn.gelu({0}, approximate=False)",
        "clip": "jnp.clip({0}, -({1}), {1})", "tanh": "jnp.tanh({0})", "exp": "jnp.exp({0})", "log": "jnp.log({0})",
        "sin": "jnp.sin({0})", "cos": "jnp.cos({0})",
    },
}  # fmt: skip
"""Call of the back end for every function of an expression; {0} and {1} are its arguments."""
ARRAYS = {"numpy": "np", "torch": "torch", "jax": "jnp"}
"""Name of the module of arrays in a script."""


def code(expression: Any, backend: str) -> str:
    """Return an expression as Python of a back end, for arrays by the names of its symbols.

    >>> import sympy
    >>> w = sympy.Symbol("w", real=True)
    >>> code(sympy.erf(w / sympy.sqrt(2)), "torch"), code(w**3 - 3 * w, "jax")
    ('torch.erf(math.sqrt(2)*w/2)', 'w**3 - 3*w')
    """
    return _printer(backend).doprint(expression)


def imported(text: str, names: tuple[str, ...]) -> list[str]:
    """Return those of some names that a text calls without a module."""
    return [name for name in names if re.search(rf"(?<![\w.]){name}\(", text)]


@functools.cache
def _printer(backend: str) -> Any:
    import sympy
    from sympy.printing.numpy import JaxPrinter, NumPyPrinter
    from sympy.printing.precedence import PRECEDENCE
    from sympy.printing.pytorch import TorchPrinter

    base = {"numpy": NumPyPrinter, "torch": TorchPrinter, "jax": JaxPrinter}[backend]

    class Printer(base):  # type: ignore[misc, valid-type]
        def _print_Pow(self, expr: Any, rational: bool = False) -> str:
            root = f"{'math' if expr.base.is_number else ARRAYS[backend]}.sqrt"
            if abs(expr.exp) == sympy.S.Half:
                text = f"{root}({self._print(expr.base)})"
                return text if expr.exp > 0 else f"1/{text}"
            base, power = (self.parenthesize(part, PRECEDENCE["Pow"]) for part in (expr.base, expr.exp))
            return f"1/{base}" if expr.exp == -1 else f"{base}**{power}"

        def _print_Pi(self, expr: Any) -> str:
            return "math.pi"

        def _print_Half(self, expr: Any) -> str:
            return "0.5"

        def _print_Rational(self, expr: Any) -> str:
            return f"{expr.p}/{expr.q}"

        def _print_Mul(self, expr: Any) -> str:
            factor, rest = expr.as_coeff_Mul()
            if not factor.is_Rational or factor.q == 1:
                return super()._print_Mul(expr)
            product = factor.p * rest  # w/3 and not (1/3)*w
            return f"({self._print(product)})/{factor.q}" if product.is_Add else f"{self._print(product)}/{factor.q}"

        def _called(self, expr: Any) -> str:
            arguments = [self._print(one) for one in expr.args]
            if expr.is_number:
                return repr(float(expr.evalf(17)))
            return FUNCTIONS[backend][type(expr).__name__].format(*arguments)

    for name in FUNCTIONS[backend]:
        setattr(Printer, f"_print_{name}", Printer._called)  # noqa: SLF001 - as SymPy extends printers
    return Printer({"fully_qualified_modules": False})

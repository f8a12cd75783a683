"""Right-hand sides of tiers recursion, flow and frozen as array operations, generated from their statements.

NumPy and JAX evaluate them, for example for a Jacobian by forward mode. Runs use the compiled loops.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any

from derivations.contract import UsageError
from derivations.equations.functions import array_functions
from derivations.pruning import flow_loops, recursion_loops
from derivations.pruning.parameters import Parameters
from derivations.pruning.statements import single
from derivations.statement import Statement, key_of

Functions = dict[str, Callable[..., Any]]


def build_recursion(data: str, xp: Any, kernels: Mapping[str, Any]) -> Functions:
    """`flow(t, y, p)` and `loss(y, p)` of the recursion for one or several repeated patterns.

    Raises `UsageError` for other distributions of the tokens.
    """
    if data not in ("single", "multi_copy"):
        raise UsageError(f"data={data} is available only in compiled loops: use the numba back end")

    def made(p: recursion_loops.Arguments) -> tuple[Functions, tuple[Any, ...]]:
        stated, functions = of_recursion(xp, p.n, p.l, p.copies, p.loss)
        return functions, arguments_of(stated, p, {"m": p.m, "c": p.copies}, xp)

    return by_statement(made, ("flow", "loss"))


def build_flow(xp: Any, kernels: Mapping[str, Any]) -> Functions:
    """`flow(t, y, p)` of the tiers flow and frozen away from ties."""

    def made(p: flow_loops.Arguments) -> tuple[Functions, tuple[Any, ...]]:
        stated, functions = of_flow(xp, "frozen" if p.frozen else "flow", p.l, p.soft)
        # The order of neurons has no meaning, and neurons that never move have the value -1.
        numbers = {"m": p.top.shape[2], "u_0": xp.swapaxes(p.top, 1, 2)}
        return functions, arguments_of(stated, p, numbers, xp)

    return by_statement(made, ("flow",))


@functools.cache
def of_recursion(xp: Any, n: int, l: int, copies: int, hinge: int) -> tuple[Statement, Functions]:
    """The statement of tier recursion with these numbers in its equations, and its functions by an array library."""
    data, loss = "multi_copy" if copies > 1 else "single", "hinge" if hinge else "linear"
    return with_functions(single.recursion(Parameters(data=data, n=n, l=l, copies=copies, loss=loss), "tune"), xp)


@functools.cache
def of_flow(xp: Any, tier: str, l: int, soft: int) -> tuple[Statement, Functions]:
    """The statement of tier flow or frozen, for samples with all tokens selected (`soft`) or not, and its functions."""
    return with_functions(single.flow(Parameters(data="single", n=l if soft else l + 1, l=l), tier, "tune"), xp)


def with_functions(stated: Statement, xp: Any) -> tuple[Statement, Functions]:
    """A statement and its functions, which are lowered once for every set of sizes."""
    return stated, array_functions(stated, "jax" if xp.__name__.startswith("jax") else "numpy")


def arguments_of(stated: Statement, p: Any, more: Mapping[str, Any], xp: Any) -> tuple[Any, ...]:
    """The numbers of the constants of a statement in its order, from the run-time arguments of the loops."""
    pi = xp.concatenate([xp.zeros(2), xp.asarray(p.pi)])
    numbers = {"k": p.k, "d": p.d, "l": p.l, "eta_r": p.eta_r, "eta_e": p.eta_e, "a": p.a, "pi": pi, **more}
    return tuple(numbers[key_of(c.target)] for c in stated.constants)


def by_statement(made: Callable[[Any], tuple[Functions, tuple[Any, ...]]], roles: tuple[str, ...]) -> Functions:
    """Functions by role that take the run-time arguments p last, of `made(p)`: functions, and their arguments."""

    def of(role: str) -> Callable[..., Any]:
        def called(*values: Any) -> Any:
            functions, arguments = made(values[-1])
            return functions[role](*values[:-1], *arguments)

        return called

    return {role: of(role) for role in roles}

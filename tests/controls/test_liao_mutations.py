"""Every one of the thirty terms of the pair kernel matters: dropping it, or changing it by 1 %, is refuted."""

import functools

import numpy as np
import pytest
import sympy

from derivations.claim import Evaluator
from derivations.contract import Kernel
from derivations.liao import kernels, population
from derivations.liao.arrays import build_exact
from hermite.gaussian import pair_terms
from odesim.evidence import verification
from odesim.evidence.laboratory import Laboratory
from odesim.request.case import find_system

TERMS = pair_terms(3, 3)


def term(k: int) -> sympy.Expr:
    """Term k of the kernel."""
    coefficient, n13, n14, n23, n24, n34 = TERMS[k]
    g, z11, z12, z21, z22 = kernels.OVERLAPS
    return (
        coefficient
        * z11**n13
        * z12**n14
        * z21**n23
        * z22**n24
        * g**n34
        * kernels.correlation_symbol(n13 + n14, n23 + n24)
    )


def derivative(expression: sympy.Expr, variable: str) -> sympy.Expr:
    """The partial derivative, with Price's rule for the gate overlap."""
    if variable != "rho":
        return sympy.diff(expression, sympy.Symbol(variable))
    total = sympy.Integer(0)
    for symbol in kernels.symbols_of(expression):
        a, b = kernels.orders(symbol)
        total += sympy.diff(expression, symbol) * kernels.correlation_symbol(a + 1, b + 1)
    return total


@functools.cache
def original() -> dict[str, object]:
    """The kernels as NumPy functions."""
    return {name: kernels.numpy_kernel(kernel) for name, kernel in kernels.exact_kernels(3).items()}


def mutated(k: int, change: float) -> dict[str, object]:
    """The kernels plus `change` times term k, energy and gradient alike."""
    names, scalars = kernels.table_names(3), tuple(symbol.name for symbol in kernels.OVERLAPS)
    extra = sympy.Float(change) * term(k)
    partials = {v: derivative(extra, v) for v in ("rho", "z11", "z12", "z21", "z22", "g")} | {"K": extra}
    added = {
        "pair_gradient": kernels.numpy_kernel(Kernel(names, scalars, partials)),
        "pair_energy": kernels.numpy_kernel(Kernel(names, scalars, {"K": extra})),
    }

    def both(name):
        return lambda *inputs: [a + b for a, b in zip(original()[name](*inputs), added[name](*inputs), strict=True)]

    return {name: both(name) for name in added}


class Mutant(Laboratory):
    """A laboratory whose compiled functions come from given kernels."""

    def __init__(self, functions: dict[str, object]) -> None:
        super().__init__(find_system("liao"))
        self.built = build_exact(np, functions)

    def functions(self, initial, tier=None):
        equations = population.exact(initial.parameters)
        arguments = equations.arguments(initial)

        def at(state):
            return equations.layout.pack(state)

        return Evaluator(
            lambda state: equations.unpack(self.built["flow"](0.0, at(state), arguments)),
            lambda state: float(self.built["loss"](at(state), arguments)),
        )


def verdict(functions: dict[str, object]) -> str:
    """The answer of claim own-8 with these kernels."""
    lab = Mutant(functions)
    (claim,) = verification.claims_of(lab.system, ["own-8"])
    return verification.verify(lab, claim, claim.variants[0]).answer


def test_the_kernel_itself_is_confirmed():
    assert verdict(original()) == "confirmed"


@pytest.mark.parametrize("k", range(len(TERMS)))
def test_dropping_a_term_is_refuted(k):
    assert verdict(mutated(k, -1.0)) == "refuted"


@pytest.mark.parametrize("k", range(len(TERMS)))
def test_changing_a_coefficient_by_one_per_cent_is_refuted(k):
    assert verdict(mutated(k, 0.01)) == "refuted"

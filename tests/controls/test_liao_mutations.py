"""Every one of the thirty terms of the pair kernel matters: dropping it, or changing it by 1 %, is refuted."""

import dataclasses
import functools

import pytest
import sympy

from derivations.claim import Evaluator
from derivations.equations import arrays
from derivations.equations.lower import lower
from derivations.equations.setup import setup
from derivations.liao.tiers import exact, kernels
from derivations.statement import Kernel, Statement
from hermite.gaussian import pair_terms
from odesim.evidence import verification
from odesim.evidence.laboratory import Laboratory
from odesim.request.case import find_system

TERMS = pair_terms(3, 3)


def term(k: int) -> sympy.Expr:
    """Term k of the kernel."""
    coefficient, n13, n14, n23, n24, n34 = TERMS[k]
    z11, z12, z21, z22 = kernels.OVERLAPS
    overlaps = z11**n13 * z12**n14 * z21**n23 * z22**n24 * kernels.G**n34
    return coefficient * overlaps * kernels.S(*sorted((n13 + n14, n23 + n24)), kernels.RHO)


@functools.cache
def original(parameters) -> Statement:
    """The statement of the tier."""
    return exact.statement(parameters)


def mutated(stated: Statement, k: int | None, change: float) -> Statement:
    """The statement with `change` times term k added to K, and to the lambdas what follows from it."""
    if k is None:
        return stated
    extra, by = sympy.Float(change) * term(k), (kernels.RHO, *kernels.OVERLAPS, kernels.G)
    rho, z11, z12, z21, _, g = (extra.diff(variable) for variable in by)
    added = {"K": extra, "Lam1": rho, "Lam2": z11 / 3, "Lam3": z21 / 3, "Lam4": z12 / 3, "Lam5": g / 9}

    def changed(definition):
        kernel = definition if isinstance(definition, Kernel) else definition.kernel
        if kernel is None or not kernel.values.keys() & added.keys():
            return definition
        kernel = dataclasses.replace(kernel, values={n: value + added[n] for n, value in kernel.values.items()})
        return kernel if isinstance(definition, Kernel) else dataclasses.replace(definition, kernel=kernel)

    return dataclasses.replace(stated, definitions=tuple(map(changed, stated.definitions)))


@functools.cache
def programs(parameters, k: int | None, change: float) -> tuple:
    """The programs of the rates and of the loss of a mutated statement."""
    stated = mutated(original(parameters), k, change)
    sizes = {"m": parameters.m, "m_star": parameters.m_star}
    return tuple(lower(stated, sizes, frozenset(("I1", "I2")), what)["pairs"] for what in ("rates", "loss"))


class Mutant(Laboratory):
    """A laboratory whose functions come from a mutated statement."""

    def __init__(self, k: int | None, change: float) -> None:
        super().__init__(find_system("liao"))
        self.k, self.change = k, change

    def functions(self, initial, tier=None):
        rates, loss = programs(initial.parameters, self.k, self.change)
        numbers = rates.statement.numbers(initial)
        known = setup(rates, numbers) | setup(loss, numbers)
        return Evaluator(
            lambda state: arrays.evaluate(rates, known, state),
            lambda state: float(arrays.evaluate(loss, known, state)["loss"]),
        )


def verdict(k: int | None, change: float) -> str:
    """The answer of claim own-8 with this kernel."""
    lab = Mutant(k, change)
    (claim,) = verification.claims_of(lab.system, ["own-8"])
    return verification.verify(lab, claim, claim.variants[0]).answer


def test_the_kernel_itself_is_confirmed():
    assert verdict(None, 0.0) == "confirmed"


@pytest.mark.parametrize("k", range(len(TERMS)))
def test_dropping_a_term_is_refuted(k):
    assert verdict(k, -1.0) == "refuted"


@pytest.mark.parametrize("k", range(len(TERMS)))
def test_changing_a_coefficient_by_one_per_cent_is_refuted(k):
    assert verdict(k, 0.01) == "refuted"

"""Every term of the compiled drift matters: without it, or 1 % larger, the flow no longer equals the quadrature."""

import functools

import numpy as np
import pytest
import sympy

from derivations.claim import Evaluator
from derivations.contract import Kernel
from derivations.kawata import kernels, population, tiers
from derivations.kawata.arrays import build_exact
from odesim.code.arrays import array_kernel
from odesim.evidence import verification
from odesim.evidence.laboratory import Laboratory
from odesim.request.case import find_system

DEGREE = 6
OUTPUTS = ("d_kappa", "d_xi", "d_t")


def terms() -> list[tuple[str, int]]:
    """The terms of the drift that the example of the claim feels: its only link is h_4, without a global task."""
    return [("d_kappa", 4), ("d_t", 4)]


@functools.cache
def original() -> dict[str, object]:
    """The kernels as NumPy functions."""
    return {name: array_kernel(kernel) for name, kernel in kernels.cluster_kernels(DEGREE).items()}


def term(output: str, i: int) -> sympy.Expr:
    """The term of degree i of one output."""
    monomial = kernels.local_weight(i) * kernels.KAPPA**i
    if output == "d_kappa":
        return kernels.coefficient(i) * sympy.diff(monomial, kernels.KAPPA)
    return sympy.sqrt(i + 1) * kernels.coefficient(i + 1) * monomial


def mutated(output: str, i: int, change: float) -> dict[str, object]:
    """The kernels with `change` times one term added to one output."""
    zero = dict.fromkeys((*OUTPUTS, "value"), sympy.Integer(0))
    extra = {**zero, output: sympy.N(change * term(output, i))}
    added = array_kernel(Kernel(kernels.table(DEGREE), ("kappa", "xi"), extra))
    base = original()["cluster_gradient"]

    def gradient(*inputs):
        return [a + b for a, b in zip(base(*inputs), added(*inputs), strict=True)]

    return {**original(), "cluster_gradient": gradient}


class Mutant(Laboratory):
    """A laboratory whose functions come from given kernels, with R changed where asked."""

    def __init__(self, functions: dict[str, object], mode: int = 1) -> None:
        super().__init__(find_system("kawata"))
        self.built, self.mode = build_exact(np, functions), mode

    def functions(self, initial, tier=None):
        equations = tiers.equations(initial.parameters, "exact")
        arguments = population.arguments(initial, self.mode)
        return Evaluator(
            lambda state: equations.unpack(self.built["flow"](0.0, equations.start(initial), arguments)),
            lambda state: float(self.built["loss"](equations.start(initial), arguments)),
        )


def verdict(lab: Laboratory, name: str = "lem-C.7-drift") -> str:
    """The answer of the claim that holds the drift against quadrature."""
    (claim,) = verification.claims_of(lab.system, [name])
    variant = next(v for v in claim.variants if v.name == "corrected")
    return verification.verify(lab, claim, variant).answer


def test_the_drift_itself_is_confirmed():
    assert verdict(Mutant(original())) == "confirmed"


@pytest.mark.parametrize(("output", "i"), terms())
@pytest.mark.parametrize("change", [-1.0, 0.01])
def test_a_changed_term_is_refuted(output, i, change):
    assert verdict(Mutant(mutated(output, i, change))) == "refuted"


@pytest.mark.parametrize("mode", [0, 2])
def test_a_projection_without_its_means_or_means_at_rest_is_refuted(mode):
    assert verdict(Mutant(original(), mode)) == "refuted"


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("i", [1, 2, 3, 4, 5, 6])
def test_every_term_of_every_degree_is_in_the_compiled_kernel(output, i):
    # One term at a time: with B_i = 1 (Y_i for xi) and all else zero an output is that term alone.
    rng = np.random.default_rng(i)
    kappa, xi = rng.uniform(0.2, 0.9, 2)
    alpha = rng.normal(size=DEGREE + 3)
    local, remote = np.zeros(DEGREE + 1), np.zeros(DEGREE + 1)
    (remote if output == "d_xi" else local)[i] = 1.0
    found = original()["cluster_gradient"](list(np.concatenate([alpha, local, remote])), kappa, xi)
    exact = {
        "d_kappa": i * alpha[i] * kappa ** (i - 1),
        "d_xi": i * alpha[i] * xi ** (i - 1),
        "d_t": np.sqrt(i + 1) * alpha[i + 1] * kappa**i,
    }[output]
    assert found[OUTPUTS.index(output)] == pytest.approx(exact, rel=1e-13)

"""Every part of the drift of kawata matters: with one of them changed the flow no longer equals the quadrature."""

import pytest

from derivations.claim import Evaluator
from derivations.equations.tier import equations_of
from odesim.evidence import verification
from odesim.evidence.laboratory import Laboratory
from odesim.request.case import find_system
from tests.controls.stated import flow_of, namespace

FLOW = ("derivations.kawata.tiers.flow",)
BOTH = ("derivations.kawata.tiers.coefficients", *FLOW)
MUTATIONS = {
    "a local term": (FLOW, "(local * KAPPA[J, cluster] ** i +", "(1.01 * local * KAPPA[J, cluster] ** i +"),
    "no local term": (FLOW, "(local * KAPPA[J, cluster] ** i +", "(0 * KAPPA[J, cluster] ** i +"),
    "the mean": (FLOW, "argument = RHO * NU[J, cluster] + B[J]", "argument = 1.01 * RHO * NU[J, cluster] + B[J]"),
    "the second layer": (FLOW, "return A[J] / (J_SIZE * C)", "return 1.01 * A[J] / (J_SIZE * C)"),
    "no means in R": (FLOW, 'if tier == "exact" else 0', 'if tier == "none" else 0'),
    "means at rest": (FLOW, 'still = {"R1": ("nu",), "R2"', 'still = {"exact": ("nu",), "R2"'),
    "no projection": (FLOW, "rates = {name: g[name] - along[name]", "rates = {name: g[name]"),
    "Stein's factor": (BOTH, "sp.sqrt(x[0] + 1) * alpha(x[0] + 1", "sp.sqrt(x[0] + 1.2) * alpha(x[0] + 1"),
    "Stein's order": (BOTH, "* alpha(x[0] + 1, x[1])", "* alpha(x[0] + 2, x[1])"),
}


class Mutant(Laboratory):
    """A laboratory whose flow is that of a statement with a text of its source replaced."""

    def __init__(self, modules, old, new) -> None:
        super().__init__(find_system("kawata"))
        self.names = namespace(modules, old, new)

    def functions(self, initial, tier=None):
        statement = self.names["statement"](initial.parameters, "exact")
        equations, flow = equations_of(statement), flow_of(statement)
        arguments = statement.arguments(initial)
        return Evaluator(
            lambda state: equations.unpack(flow(0.0, equations.start(initial), *arguments)), lambda state: 0.0
        )


def verdict(modules, old, new) -> str:
    """The answer of the claim that holds the drift against quadrature."""
    lab = Mutant(modules, old, new)
    (claim,) = verification.claims_of(lab.system, ["lem-C.7-drift"])
    variant = next(v for v in claim.variants if v.name == "corrected")
    return verification.verify(lab, claim, variant).answer


def test_the_drift_itself_is_confirmed():
    assert verdict(FLOW, "def statement", "def statement") == "confirmed"


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_changed_part_is_refuted(name):
    assert verdict(*MUTATIONS[name]) == "refuted"

"""Every term of the population flow matters: each mutation of the compiled loops is refuted by the model's mean."""

import inspect

import pytest

from derivations.chen import loops, population
from derivations.claim import Evaluator
from derivations.contract import load
from odesim.code import printer
from odesim.evidence import verification
from odesim.evidence.laboratory import Laboratory
from odesim.request.case import find_system

MUTATIONS = {
    "margin without the gate": ("margin = label * pi * f\n", "margin = label * f\n"),
    "gradient without the gate": ("size = share * pi * where", "size = share * where"),
    "gradient without the multiplier": ("where_positive(margin, small, 1.0) / (1.0 + small)", "0.5"),
    "routing by the softmax": ("chance * four(example, 3 * W + m)", "chance * four(found, W + m) * scale"),
    "no label": ("G = size * label", "G = size"),
    "no softmax coupling": (
        "four(found, m) * four(example, W + m) - push * four(found, W + m)",
        "four(found, m) * four(example, W + m)",
    ),
    "router blind to feature signals": (
        "tabulate(feat, gfeat, a, S, power, A)",
        "tabulate(feat, 0.0 * gfeat, a, S, power, A)",
    ),
    "router blind to feature noise": (
        "tabulate(feat, gfeat, c, S, power, C)",
        "tabulate(feat, 0.0 * gfeat, c, S, power, C)",
    ),
    "router blind to centres": ("tabulate(cen, gcen, b, S, power, B)", "tabulate(cen, 0.0 * gcen, b, S, power, B)"),
    "experts blind to centres": ("tabulate(cen, gcen, b, S, power, B)", "tabulate(0.0 * cen, gcen, b, S, power, B)"),
    "experts blind to feature noise": (
        "tabulate(feat, gfeat, c, S, power, C)",
        "tabulate(0.0 * feat, gfeat, c, S, power, C)",
    ),
    "feature noise in the wrong place": (
        "put_four(along_c, 2 * W * in_c + q",
        "put_four(along_c, 2 * W * (k * n_c + r) + q",
    ),
    "no drift along the centres": (
        "collect(cen, b, along_b, S, power, rho, dcen, dgcen)",
        "collect(cen, b, along_b, S, power, rho, 0.0 * dcen, dgcen)",
    ),
    "no router drift from feature noise": (
        "along_c, S, power, rho, dfeat, dgfeat",
        "along_c, S, power, 0.0, dfeat, dgfeat",
    ),
    "no router drift from feature signals": (
        "along_a, S, power, rho, dfeat, dgfeat",
        "along_a, S, power, 0.0, dfeat, dgfeat",
    ),
    "router drift a fifth too large": (
        "along_b, S, power, rho, dcen, dgcen",
        "along_b, S, power, 1.2 * rho, dcen, dgcen",
    ),
    "a piece of the routing law less": ("for i in range(first, M):", "for i in range(first, M - 1):"),
    "slope of another activation": (
        "share * activation(S, 0, x[i] * rows[m, j, k], power)[1]",
        "share * rows[m, j, k]",
    ),
}


@pytest.fixture(scope="module")
def compiled():
    """A laboratory whose flow is compiled anew from the loops with one text replaced."""
    import numba

    def build(old: str, new: str) -> Laboratory:
        laboratory = Laboratory(find_system("chen"))
        equations = population.exact(laboratory.system.parameters())
        head = "import numpy as np\nfrom odesim.code.elementary import log_above_one, raised\n"
        head += (
            "from odesim.code.fours import alike, four, larger, put_four, root_of_four, sum_of_four, where_positive\n"
        )
        kernel = printer.scalar_source("activation", equations.code.kernels()["activation"])
        names = [name for name in equations.code.loops if name.startswith(loops.__name__)]
        texts = [kernel, *(inspect.getsource(inspect.unwrap(load(name))) for name in names)]
        source = "\n\n".join(texts)
        assert old in source, "the mutation names a text that is no longer there"
        source = source.replace(old, new)
        namespace: dict = {}
        exec(head + source, namespace)
        for name in [text.split("(")[0].removeprefix("def ") for text in texts]:
            namespace[name] = numba.njit(namespace[name])
        made = namespace["p3_drift"]

        def functions(initial, tier=None):
            chosen = population.exact(initial.parameters)
            arguments = chosen.arguments(initial)
            flow = lambda state: chosen.unpack(made(0.0, chosen.layout.pack(state), False, arguments)[0])  # noqa: E731
            return Evaluator(flow, lambda state: 0.0)

        laboratory.functions = functions  # type: ignore[method-assign]
        return laboratory

    return build


def answer(laboratory: Laboratory) -> str:
    """What the claim that compares flow and model says of a flow."""
    (claim,) = verification.claims_of(laboratory.system, ["p3-drift"])
    return claim.law.judge([({}, 0, claim.measure(laboratory, {}, 0))]).answer


def test_the_flow_itself_agrees_with_the_model(compiled):
    assert answer(compiled("np", "np")) == "confirmed"


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutation_is_refuted(compiled, name):
    assert answer(compiled(*MUTATIONS[name])) == "refuted"
